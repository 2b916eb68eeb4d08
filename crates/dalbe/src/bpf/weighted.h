/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * CUBIC (RFC 9438) with a weight. The window grows w times as fast as that of
 * CUBIC and loses the same share at a loss. In a long queue, all flows lose
 * packets in the same round trip. The time between losses is then the same for
 * all flows, and their windows are proportional to their growth. So a flow of
 * weight w takes w times as much as a flow of weight 1. At w = 1 this is CUBIC.
 *
 * This file does not depend on delays.
 */
#pragma once

#include "arithmetic.h"
#include "congestion.h"

/* What a loss leaves of the window (RFC 9438, section 4.6): 0.7. */
#define BETA_Q16 45875
/* Growth in the Reno-friendly region: 3(1 - beta)/(1 + beta) packets per round
 * trip (section 4.3): 0.529. */
#define FRIENDLY_Q16 34695
/* C = 0.4 packets/s^3 (section 5.1), with w in 1/65536 and windows in 1/256:
 * x^3 [ms^3] * w / this. */
#define CUBIC_SCALE 640000000000ULL
/* Largest time in computations, ms. The products then fit into 64 bits. */
#define MAX_CUBIC_MS 60000
/* At most 1.5 times the window in a round trip (section 4.2). */
#define CUBIC_GROWTH_DIVISOR 2

/* Begins with this window. */
static __always_inline void weighted_begin(struct weighted *own, __u32 window_q8)
{
	own->window_q8 = window_q8;
	own->origin_q8 = 0;
	own->epoch_us = 0;
}

/* Reduces the window after a loss. */
static __always_inline void weighted_loss(struct weighted *own)
{
	__u32 window = own->window_q8;

	/* Fast convergence (section 4.7). */
	own->origin_q8 = window < own->origin_q8 ? times_q16(window, (ONE_Q16 + BETA_Q16) / 2)
						 : window;
	/* Growth is proportional to the window, so a window of 0 would never
	 * grow. */
	own->window_q8 = max_of(times_q16(window, BETA_Q16), FLOOR_Q8);
	own->epoch_us = 0;
}

/* |time|^3 packets/256 with this weight. */
static __always_inline __u32 cube(__u32 ms, __u32 w_q16)
{
	__u64 time = min_of(ms, MAX_CUBIC_MS);

	return min_of(time * time * time * w_q16 / CUBIC_SCALE, MAX_WINDOW_Q8);
}

/* Sets the window of the next round trip. It grows only if it limited the
 * flow. */
APART int weighted_grow(struct weighted *own, const struct round_sample *sample, __u32 w_q16)
{
	__u32 window, time_ms, cubic, friendly, target;

	if (!own || !sample)
		return 0;
	window = own->window_q8;
	if (!sample->is_limited) {
		/* Idle time does not count. */
		if (own->epoch_us)
			own->epoch_us += min_of(sample->elapsed_us, sample->now_us - own->epoch_us);
		return 0;
	}
	if (own->epoch_us == 0 || own->w_q16 != w_q16) {
		__u32 below = min_of(minus(own->origin_q8, window), MAX_WINDOW_Q8);

		own->epoch_us = sample->now_us;
		own->w_q16 = w_q16;
		own->friendly_q8 = window;
		own->k_ms = min_of(cube_root((__u64)below * CUBIC_SCALE / w_q16), MAX_CUBIC_MS);
		if (below == 0)
			own->origin_q8 = window;
	}
	time_ms = (sample->now_us - own->epoch_us + sample->rtt_min_us) / 1000;
	if (time_ms < own->k_ms)
		cubic = minus(own->origin_q8, cube(own->k_ms - time_ms, w_q16));
	else
		cubic = own->origin_q8 + cube(time_ms - own->k_ms, w_q16);
	/* The growth follows the acknowledged packets, in windows (section 4.3). A
	 * round trip of MIN_RTT_US may hold many shorter ones. */
	friendly = scaled(PACKET_Q8 * FRIENDLY_Q16 / ONE_Q16, sample->delivered, sample->cwnd);
	own->friendly_q8 = min_of(own->friendly_q8, MAX_WINDOW_Q8) + times_q16(friendly, w_q16);
	target = max_of(cubic, own->friendly_q8);
	target = min_of(target, window + window / CUBIC_GROWTH_DIVISOR);
	own->window_q8 = min_of(max_of(window, target), MAX_WINDOW_Q8);
	return 0;
}
