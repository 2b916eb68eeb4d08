/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Whether the rate of a path varies by itself, as radio's does, and how far it falls.
 *
 * A queue comes and goes there although nobody else is on the path. Tests find nobody,
 * one after the other, and each at another level. As long as that lasts, a queue is that
 * of the flow itself. A queue that stays is another matter: the path has become narrower.
 * receive_window/yielding/variation.rs is the same for a receiver, with other limits.
 */
#pragma once

#include "arithmetic.h"
#include "congestion.h"

/* So many tests in a row have found nobody, ... */
#define MIN_TESTS 2
/* ... at levels that differ by more than this share: 0.12. Those of a rate that does not
 * vary, beside nobody or beside a live stream, hardly differ. A receiver, whose samples
 * are less exact, asks for 0.2. */
#define MIN_SPREAD_Q16 7864
/* A level of less than this share of what the path carries is that of a path with others,
 * 0.4: a test has met a gap between their transfers. */
#define MIN_LEVEL_Q16 26214

/* A queue stays if for this time, us, its shortest is more than one part in so many of its
 * longest: half. */
#define STEADY_US 2000000ULL
#define STEADY_PART 2

/* For this time after a test that found nobody, us, a rate that varies by itself explains a
 * queue, ... */
#define TRUST_US 10000000ULL
/* ... if what is carried is at least this share of the least that tests have met: 0.9. */
#define LEAST_SHARE_Q16 58982

/* Others may be there. */
static __always_inline void variation_forget(struct yielding *own)
{
	own->quiet_tests = 0;
	own->least_q8 = 0;
}

/* Takes the queue of a round trip, where one up to `target_us` is none. */
static __always_inline void variation_see(struct yielding *own, __u64 now_us, __u32 queue_us,
					  __u32 target_us)
{
	own->shortest_us = min_of(own->shortest_us, queue_us);
	own->longest_us = max_of(own->longest_us, queue_us);
	if (queue_us <= target_us || own->shortest_us < own->longest_us / STEADY_PART) {
		own->shortest_us = queue_us;
		own->longest_us = queue_us;
		own->changed_us = now_us;
	} else if (now_us >= own->changed_us + STEADY_US) {
		variation_forget(own);
	}
}

/* Sums up the levels: the least of them, if the rate varies by itself. */
APART int variation_sum_up(struct yielding *own)
{
	__u32 least = 0xffffffff, most = 0;

	if (!own)
		return 0;
	for (int i = 0; i < QUIET_LEVELS; i++) {
		if (i >= own->quiet_tests)
			break;
		least = min_of(least, own->quiet_q8[i]);
		most = max_of(most, own->quiet_q8[i]);
	}
	own->least_q8 = 0;
	if (own->quiet_tests >= MIN_TESTS && most - least > times_q16(most, MIN_SPREAD_Q16))
		own->least_q8 = least;
	return 0;
}

/* A test has found nobody at this level of a path that carries `full_q8`. */
static __always_inline void variation_learn(struct yielding *own, __u64 now_us, __u32 level_q8,
					    __u32 full_q8)
{
	own->tested_us = now_us;
	if (level_q8 < times_q16(full_q8, MIN_LEVEL_Q16)) {
		variation_forget(own);
		return;
	}
	for (int i = QUIET_LEVELS - 1; i > 0; i--)
		own->quiet_q8[i] = own->quiet_q8[i - 1];
	own->quiet_q8[0] = level_q8;
	own->quiet_tests = min_of(own->quiet_tests + 1, QUIET_LEVELS);
	variation_sum_up(own);
}

/* Whether the rate of the path varies by itself. */
static __always_inline bool variation_is_known(const struct yielding *own)
{
	return own->least_q8 != 0;
}

/* Whether a queue while so much is carried may be the flow's own. */
static __always_inline bool variation_explains(const struct yielding *own, __u64 now_us,
					       __u32 carried_q8)
{
	return variation_is_known(own) && now_us < own->tested_us + TRUST_US &&
	       carried_q8 >= times_q16(own->least_q8, LEAST_SHARE_Q16);
}
