/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * TCP-LP's early congestion indication and inference (Kuzmanovic and Knightly, "TCP-LP:
 * A Distributed Algorithm for Low Priority Data Transfer", INFOCOM 2003).
 * This file knows no kernel.
 */
#pragma once

#include "types.h"

/* delta: the threshold is at so much of the range of delays, percent. */
#define THRESHOLD_PERCENT 15
/* gamma = 1/8 of the smoothed delay, as a shift. */
#define SMOOTHING_SHIFT 3
/* The inference time-out, round trips. */
#define INFERENCE_ROUNDS 3

struct tcp_lp {
	/* The least, the largest and the smoothed one-way delay, us against an
	 * arbitrary zero, modulo 2^32. */
	__u32 min_us;
	__u32 max_us;
	__u32 smoothed_us;
	/* When the inference is over, us. */
	__u32 until_us;
	/* Delays count again when this is acknowledged. */
	__u32 heed_from;
	__u8 is_known;
	/* The first loss has ended slow start. */
	__u8 has_lost;
	__u8 is_inferring;
	/* A reduction has been made, whose effect is not known yet. */
	__u8 is_waiting;
	/* gamma of the next delay, as a shift: 0 for the first one after a reduction. */
	__u8 shift;
};

/* What an acknowledgement does to the window. */
enum lp_step {
	/* One packet more in each round trip. */
	LP_INCREASE,
	/* Only observe. */
	LP_STAY,
	LP_HALVE,
	LP_ONE_PACKET,
};

static __always_inline bool lp_is_less(__u32 a, __u32 b)
{
	return (__s32)(a - b) < 0;
}

/* A delay has come, with an acknowledgement of `una`. */
static __always_inline void lp_take_delay(struct tcp_lp *own, __u32 delay_us, __u32 una)
{
	if (!own->is_known) {
		own->is_known = 1;
		own->shift = SMOOTHING_SHIFT;
		own->min_us = own->max_us = own->smoothed_us = delay_us;
		return;
	}
	if (lp_is_less(delay_us, own->min_us))
		own->min_us = delay_us;
	if (lp_is_less(own->max_us, delay_us))
		own->max_us = delay_us;
	if (own->is_waiting) {
		if (!lp_is_less(own->heed_from, una))
			return;
		own->is_waiting = 0;
		own->shift = 0;
	}
	own->smoothed_us += (__s32)(delay_us - own->smoothed_us) >> own->shift;
	if (own->shift < SMOOTHING_SHIFT)
		own->shift++;
}

/* Whether the smoothed delay is an early congestion indication. One delay alone after a
 * reduction is none yet: it may be that of the packet behind another of its burst. */
static __always_inline bool lp_indicates(const struct tcp_lp *own)
{
	__u64 range_us = own->max_us - own->min_us;

	return own->shift > 1 &&
	       own->smoothed_us - own->min_us > range_us * THRESHOLD_PERCENT / 100;
}

/* The window has been reduced, with `nxt` to be sent next. What was sent before says
 * nothing about it (as with a mark, RFC 3168), and neither does what was smoothed: with few
 * packets in a round trip an eighth of each would not take the queue of before out of it
 * within the time-out, and one event would be inferred to be two. So smoothing begins anew. */
static __always_inline void lp_reduced(struct tcp_lp *own, __u32 nxt)
{
	own->is_waiting = 1;
	own->heed_from = nxt;
}

/* What to do at this acknowledgement, in congestion avoidance, where `nxt` is sent
 * next. */
static __always_inline enum lp_step lp_acknowledged(struct tcp_lp *own, __u32 nxt, __u32 rtt_us,
						    __u32 now_us)
{
	bool was_inferring;

	if (own->is_inferring && !lp_is_less(now_us, own->until_us))
		own->is_inferring = 0;
	if (own->is_waiting || !lp_indicates(own))
		return own->is_inferring ? LP_STAY : LP_INCREASE;
	was_inferring = own->is_inferring;
	own->is_inferring = 1;
	lp_reduced(own, nxt);
	own->until_us = now_us + INFERENCE_ROUNDS * rtt_us;
	return was_inferring ? LP_ONE_PACKET : LP_HALVE;
}
