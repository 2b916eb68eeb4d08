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
 * it grows as Reno's. The round trip after a back-off shows its effect: the
 * window neither grows nor shrinks. Linux's tcp_cdg, which the paper measured,
 * does the same, because the kernel reduces the window for a round trip (CWR).
 *
 * G = w G_be. LAW_CDG_PAPER takes G_be, the scale of a best-effort flow, from the
 * base round-trip time. LAW_CDG begins with it, and moves it until the window is
 * the share of the weight on average. At w = 1 the kernel's Reno takes its place.
 * Below, it refills faster than Reno, the more so the smaller w is.
 */
#pragma once

#include "arithmetic.h"
#include "congestion.h"

/* Gradients in a mean. */
#define CDG_SMOOTHED 8
/* The part of the window that a back-off leaves: 0.7. */
#define CDG_BETA_Q16 45875
/* G_be from the base: 120 ms from a base of 100 ms on, and below that proportional
 * to the base to the power of 1.25 (model/price.rs: 1.26). */
#define MAX_CDG_G_US 120000

/* G_be moves by so many times at most from where it began. */
#define CDG_RANGE 16
/* A window twice the share halves G_be in about this time, us, some sawteeth of CUBIC. */
#define CDG_STEER_US 8000000
/* The window exceeds the share by one part in this many at most: where losses come without
 * delay, no G brakes it. */
#define CDG_ABOVE_PART 4
/* In a round trip, refilling takes half of what is missing. Near w = 1, where it ends, it takes
 * so many times 1 - w, ... */
#define CDG_REFILL_SLOPE 2
/* ... and ends at this share of the window that was last lost, 15/16: faster growth up to it
 * would only make losses more frequent. */
#define CDG_REFILLED_Q16 61440

/* G_be at this base, us. */
static __always_inline __u32 cdg_best_effort(__u32 base_us)
{
	__u32 base = min_of(base_us, 100000);
	/* 64 times the fourth root: 1138 at 100 ms. */
	__u32 root = square_root(square_root(base << 8) << 8);

	return max_of(min_of(scaled(base, 12 * root, 11380), MAX_CDG_G_US), 1);
}

/* G at this weight, us; at least 1. */
static __always_inline __u32 cdg_scale(__u32 w_q16, __u32 best_effort_us)
{
	return max_of(times_q16(best_effort_us, w_q16), 1);
}

/* Moves G_be towards the one with which the window is the share of the weight. */
static __always_inline void cdg_steer(struct cdg *own, const struct round_sample *sample,
				      __u32 share_q8)
{
	__u32 began_us = cdg_best_effort(sample->base_us);
	/* Idle time does not count. */
	__u32 elapsed_us = min_of(sample->elapsed_us, 2 * sample->rtt_max_us);
	__u32 off_q8, part_us;

	if (own->best_effort_us == 0)
		own->best_effort_us = began_us;
	/* A window that is not used up says nothing of what G gives. */
	if (!sample->is_limited)
		return;
	off_q8 = max_of(minus(own->window_q8, share_q8), minus(share_q8, own->window_q8));
	part_us = scaled(own->best_effort_us,
			 scaled(min_of(off_q8, share_q8), min_of(elapsed_us, CDG_STEER_US), share_q8),
			 CDG_STEER_US);
	if (own->window_q8 < share_q8)
		own->best_effort_us += max_of(part_us, 1);
	else
		own->best_effort_us = minus(own->best_effort_us, part_us);
	own->best_effort_us = min_of(max_of(own->best_effort_us, began_us / CDG_RANGE + 1),
				     began_us * CDG_RANGE);
}

/* By how much faster than Reno the window grows in a round trip. */
static __always_inline __u32 cdg_refill(const struct cdg *own, __u32 share_q8, __u32 w_q16)
{
	__u32 to_q8 = own->lost_q8 ? min_of(share_q8, times_q16(own->lost_q8, CDG_REFILLED_Q16))
				   : share_q8;

	return times_q16(minus(to_q8, own->window_q8),
			 min_of(CDG_REFILL_SLOPE * (ONE_Q16 - w_q16), ONE_Q16 / 2));
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

/* Whether to back off with this G. */
static __always_inline bool cdg_decides(struct cdg *own, struct telemetry *seen,
					const struct round_sample *sample, __u32 g_us)
{
	__s32 gradient, min_us, max_us;

	min_us = cdg_smooth(own->mins_us, own->tail, sample->rtt_min_us - own->rtt_min_us);
	max_us = cdg_smooth(own->maxs_us, own->tail, sample->rtt_max_us - own->rtt_max_us);
	own->tail++;
	seen->gradient_min_us = min_us;
	seen->gradient_max_us = max_us;
	gradient = min_us > max_us ? min_us : max_us;
	if (gradient <= 0)
		return false;
	seen->delays++;
	return (bpf_get_prandom_u32() & 0xffff) >= exponential_q16(((__u64)gradient << 16) / g_us);
}

/* By how much Reno's window has grown in a round trip: by a packet for each window that was
 * acknowledged (RFC 5681, section 3.1), where the paper says a packet. What is counted as a
 * round trip ends with the next acknowledgement, and is a little longer. A long time between
 * two acknowledgements does not count more than twice. */
static __always_inline __u32 reno_growth(const struct round_sample *sample)
{
	__u32 cwnd = max_of(sample->cwnd, 1);

	return scaled(PACKET_Q8, min_of(sample->delivered, 2 * cwnd), cwnd);
}

/* Sets the window after a round trip, with this G. It grows by so much more than Reno's. */
APART int cdg_round(struct cdg *own, struct telemetry *seen, const struct round_sample *sample,
		    __u32 g_us, __u32 more_q8)
{
	bool was_reduced, is_known;
	__u32 window, next;

	if (!own || !seen || !sample)
		return 0;
	seen->g_us = g_us;
	if (!sample->is_timed)
		return 0;
	window = own->window_q8;
	was_reduced = own->is_reduced;
	is_known = own->rtt_min_us && !was_reduced;
	own->is_reduced = 0;
	if (is_known && cdg_decides(own, seen, sample, g_us)) {
		next = max_of(times_q16(window, CDG_BETA_Q16), FLOOR_Q8);
		own->is_reduced = 1;
		own->window_q8 = next;
		seen->phantoms++;
		seen->backoffs++;
		seen->delay_share_q16 += scaled(window - next, ONE_Q16, window);
	} else if (sample->is_limited && !was_reduced) {
		own->window_q8 = min_of(window + reno_growth(sample) + more_q8, MAX_WINDOW_Q8);
	}
	own->rtt_min_us = sample->rtt_min_us;
	own->rtt_max_us = sample->rtt_max_us;
	return 0;
}

/* Reduces the window after a loss, as Reno does. */
static __always_inline __u32 cdg_loss(struct cdg *own)
{
	own->lost_q8 = own->window_q8;
	own->window_q8 = max_of(own->window_q8 / 2, FLOOR_Q8);
	/* The recovery is no round trip, so the next one has no gradient. */
	own->rtt_min_us = 0;
	own->is_reduced = 0;
	return own->window_q8;
}
