/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * CDG, CAIA Delay-Gradient (Hayes and Armitage 2011; Tangenes et al. 2017, "CDG
 * as a deadline-aware less-than-best-effort candidate", eqs. 1 to 5), with G for
 * each flow and without the coexistence heuristics (shadow window, loss
 * tolerance).
 *
 * In each round trip, CDG takes the changes of the smallest and of the largest
 * round-trip time, each smoothed over 8. g is the greater of the two. If g > 0,
 * the window is multiplied by 0.7 with the probability 1 - exp(-g/G). Otherwise
 * it grows by a packet. It backs off in every second round trip at most.
 *
 * LAW_CDG at the smallest weight yields (yielding.h). Above it, three rules fill an idle
 * path:
 * - Guard: it does not back off while the smallest round-trip time is near the
 *   base.
 * - Level: a standing queue counts as a gradient of a fifth of its delay.
 *   Gradients do not show a queue that does not grow.
 * - Memory: growth is fast below the window of the last back-off. It is fast
 *   again after some time without a queue.
 */
#pragma once

#include "levels.h"

/* Gradients in a mean. */
#define CDG_SMOOTHED 8
/* The part of the window that a back-off leaves: 0.7. */
#define CDG_BETA_Q16 45875
/* The guard: longest queue without a back-off. */
#define CDG_GUARD_US 3000
/* The level: one part in this many of a queue counts as a gradient. */
#define CDG_LEVEL 5
/* G_be, the scale of a best-effort flow: 120 ms from a base of 100 ms on, and
 * below that proportional to the base to the power of 1.25 (model/price.rs:
 * 1.26). */
#define MAX_CDG_G_US 120000

/* G at this weight, us. */
static __always_inline __u32 cdg_scale(__u32 w_q16, __u32 base_us)
{
	__u32 base = min_of(base_us, 100000);
	/* 64 times the fourth root: 1138 at 100 ms. */
	__u32 root = square_root(square_root(base << 8) << 8);
	__u32 g_be = scaled(base, 12 * root, 11380);

	return max_of(times_q16(min_of(g_be, MAX_CDG_G_US), w_q16), 1);
}

/* Adds a gradient and returns the mean of the last 8. */
static __always_inline __s32 cdg_smooth(__s32 *gradients, __u32 tail, __s32 gradient)
{
	__s32 sum = 0;

	gradients[tail & (CDG_SMOOTHED - 1)] = gradient;
	for (int i = 0; i < CDG_SMOOTHED; i++)
		sum += gradients[i];
	/* Rounds towards 0, unlike the shift of a negative number. */
	return sum < 0 ? -(-sum >> 3) : sum >> 3;
}

/* Whether to back off. `is_ours` is LAW_CDG. */
static __always_inline bool cdg_decides(struct cdg *own, struct telemetry *seen,
					const struct round_sample *sample, bool is_ours)
{
	__s32 gradient, min_us, max_us;

	if (own->rtt_min_us == 0) {
		own->rtt_min_us = sample->rtt_min_us;
		own->rtt_max_us = sample->rtt_max_us;
		return false;
	}
	min_us = cdg_smooth(own->mins_us, own->tail, sample->rtt_min_us - own->rtt_min_us);
	max_us = cdg_smooth(own->maxs_us, own->tail, sample->rtt_max_us - own->rtt_max_us);
	own->tail++;
	own->rtt_min_us = sample->rtt_min_us;
	own->rtt_max_us = sample->rtt_max_us;
	seen->gradient_min_us = min_us;
	seen->gradient_max_us = max_us;
	if (own->since_backoff < 255)
		own->since_backoff++;
	gradient = min_us > max_us ? min_us : max_us;
	if (is_ours) {
		__s32 level = sample->queue_us / CDG_LEVEL;

		if (sample->queue_us < CDG_GUARD_US)
			return false;
		if (gradient < level)
			gradient = level;
	}
	if (gradient <= 0 || own->since_backoff < 2)
		return false;
	seen->delays++;
	__u32 g_us = sample->g_us ? sample->g_us : cdg_scale(sample->w_q16, sample->base_us);
	__u32 stays_q16 = exponential_q16(((__u64)gradient << 16) / g_us);

	return (bpf_get_prandom_u32() & 0xffff) >= stays_q16;
}

/* Sets the window after a round trip. */
APART int cdg_round(struct cdg *own, struct yielding *memory, struct telemetry *seen,
		    const struct round_sample *sample, bool is_ours)
{
	__u32 window;

	if (!own || !memory || !seen || !sample || !sample->is_timed)
		return 0;
	window = own->window_q8;
	if (cdg_decides(own, seen, sample, is_ours)) {
		__u32 next = max_of(times_q16(window, CDG_BETA_Q16), FLOOR_Q8);

		own->since_backoff = 0;
		if (is_ours) {
			memory->window_q8 = window;
			level_meet(memory, window);
		}
		own->window_q8 = next;
		seen->phantoms++;
		seen->backoffs++;
		seen->delay_share_q16 += scaled(window - next, ONE_Q16, window);
		memory->yielded_us = sample->now_us;
		return 0;
	}
	if (!sample->is_limited)
		return 0;
	if (is_ours) {
		/* The last back-off takes effect first. */
		if (own->since_backoff < 2)
			return 0;
		memory->window_q8 = window;
		if (sample->queue_us < CDG_GUARD_US) {
			level_fill(memory, sample->now_us,
				   level_full(memory, sample->base_us),
				   sample->used_q8);
			own->window_q8 = max_of(memory->window_q8, window);
			return 0;
		}
	}
	own->window_q8 = window + PACKET_Q8;
	return 0;
}
