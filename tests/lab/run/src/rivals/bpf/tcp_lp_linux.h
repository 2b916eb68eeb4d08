/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * TCP-LP as Linux has it, and ns-2 with it, by what that is known to do (it is written
 * anew). It differs from the paper's (tcp_lp.h) in three ways. The delay is absolute, and an
 * indication makes the smoothed delay the new least one and twice that the new largest one:
 * the next takes 15 % more than the queue that this one has found. Delays count in
 * every state of the connection. And a reduction does not end slow start.
 * This file knows no kernel.
 */
#pragma once

#include "types.h"

/* The threshold is at so much of the range of delays, percent. */
#define LPL_THRESHOLD_PERCENT 15
/* An eighth of a delay counts in the smoothed one, as a shift. */
#define LPL_SMOOTHING_SHIFT 3
/* How long an indication is remembered, round trips. */
#define LPL_INFERENCE_ROUNDS 3

struct tcp_lp_linux {
	/* The least delay of two clocks that differ, us, modulo 2^32. */
	__u32 base_us;
	__u32 least_rtt_us;
	/* One-way delays, us. The largest one is not used, but the next: one alone may be an
	 * accident. */
	__u32 min_us;
	__u32 max_us;
	__u32 largest_us;
	__u32 smoothed_us;
	/* The last indication, us, and how long it is remembered. */
	__u32 indicated_us;
	__u32 inference_us;
	__u8 is_known;
	__u8 has_indicated;
};

/* What a delay does to the window at once. */
enum lpl_step {
	LPL_NOTHING,
	LPL_HALVE,
	LPL_ONE_PACKET,
};

/* Within this the window does not grow. */
static __always_inline bool lpl_is_inferring(const struct tcp_lp_linux *own, __u32 now_us)
{
	return own->has_indicated && now_us - own->indicated_us < own->inference_us;
}

/* The one-way delay itself. The clocks of two hosts have no common zero, so it is half of
 * the least round trip, and what this delay is above the least one. */
static __always_inline __u32 lpl_absolute_us(struct tcp_lp_linux *own, __u32 delay_us,
					     __u32 rtt_us)
{
	if (!own->is_known || (__s32)(delay_us - own->base_us) < 0)
		own->base_us = delay_us;
	if (!own->is_known || rtt_us < own->least_rtt_us)
		own->least_rtt_us = rtt_us;
	return own->least_rtt_us / 2 + (delay_us - own->base_us);
}

/* A delay has come, with a round trip of `rtt_us`. */
static __always_inline enum lpl_step lpl_take_delay(struct tcp_lp_linux *own, __u32 delay_us,
						    __u32 rtt_us, __u32 now_us)
{
	__u32 one_way_us = lpl_absolute_us(own, delay_us, rtt_us);
	bool was_inferring;
	__u64 range_us;

	own->inference_us = LPL_INFERENCE_ROUNDS * rtt_us;
	if (!own->is_known) {
		own->is_known = 1;
		own->min_us = own->max_us = one_way_us;
		own->largest_us = own->smoothed_us = one_way_us;
	}
	if (one_way_us < own->min_us)
		own->min_us = one_way_us;
	if (one_way_us > own->largest_us) {
		own->max_us = own->largest_us;
		own->largest_us = one_way_us;
	} else if (one_way_us > own->max_us) {
		own->max_us = one_way_us;
	}
	own->smoothed_us += (__s32)(one_way_us - own->smoothed_us) >> LPL_SMOOTHING_SHIFT;
	range_us = own->max_us > own->min_us ? own->max_us - own->min_us : 0;
	if (own->smoothed_us <= own->min_us + range_us * LPL_THRESHOLD_PERCENT / 100)
		return LPL_NOTHING;
	was_inferring = lpl_is_inferring(own, now_us);
	own->min_us = own->smoothed_us;
	own->max_us = own->largest_us = 2 * own->smoothed_us;
	own->has_indicated = 1;
	own->indicated_us = now_us;
	return was_inferring ? LPL_ONE_PACKET : LPL_HALVE;
}
