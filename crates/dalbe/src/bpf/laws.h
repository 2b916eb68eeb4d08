/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The window that each law gives to a weight: once per round trip, and after a
 * loss. This file does not depend on the kernel's socket.
 */
#pragma once

#include "cdg.h"
#include "dalbe.h"
#include "pause.h"
#include "weighted.h"
#include "yielding.h"

/* The weight that these parameters ask for at this moment, s on the monotonic clock. */
static __always_inline __u32 weight_of(const struct parameters *set, __u64 now_s)
{
	if (set->until_s && now_s >= set->until_s)
		return ONE_Q16;
	return max_of(min_of(set->w_q16, ONE_Q16), MIN_WEIGHT_Q16);
}

/* The delay of packets that slow start tolerates: that of HyStart (RFC 9406), or
 * less for a flow that yields. */
static __always_inline __u32 patience_us(__u32 w_q16, __u32 base_us)
{
	if (w_q16 > MIN_WEIGHT_Q16)
		return min_of(max_of(base_us / 8, 4000), 16000);
	return max_of(base_us / 32, 1500);
}

/* Below this distance 1 - w, a weight gets more than its share: 0.2. The receiver
 * lever has the same limit (FlowTarget::share in weight/mod.rs). */
#define OPENING_Q16 13107

/* The share w/(1 + w) of a window, for a weight between the smallest and 1. */
static __always_inline __u32 share_of(__u32 window_q8, __u32 w_q16)
{
	__u32 share = scaled(window_q8, w_q16, ONE_Q16 + w_q16);

	if (ONE_Q16 - w_q16 < OPENING_Q16)
		share = scaled(share, OPENING_Q16, max_of(ONE_Q16 - w_q16, 1));
	return min_of(share, window_q8);
}

/* Time constant of the mean round-trip time, us. It covers some of CUBIC's
 * sawteeth, and a burst of a second hardly moves it. So beside a burst the flow
 * keeps its window, as other flows do, and not its rate. */
#define MEAN_US 8000000

static __always_inline void mean_rtt(struct weighted *own, const struct round_sample *sample)
{
	__u32 rtt_us = sample->rtt_us;
	/* Idle time does not count. */
	__u32 elapsed_us = min_of(sample->elapsed_us, min_of(2 * sample->rtt_max_us, MEAN_US));

	/* The acknowledgement of a single packet may be delayed. */
	if (own->rtt_us && (!sample->is_timed || sample->cwnd == 1))
		return;
	/* The mean moves by 1 us at least. So on paths of a few ms, the time
	 * constant is shorter. */
	if (own->rtt_us == 0)
		own->rtt_us = rtt_us;
	else if (rtt_us > own->rtt_us)
		own->rtt_us += max_of(scaled(rtt_us - own->rtt_us, elapsed_us, MEAN_US), 1);
	else if (rtt_us < own->rtt_us)
		own->rtt_us -= max_of(scaled(own->rtt_us - rtt_us, elapsed_us, MEAN_US), 1);
}

/* What the path carries with its mean queue, packets/256; MAX_WINDOW_Q8 if the weight has no
 * bound there. It needs a measured capacity. The rate that the process has seen is not
 * enough: a flow that is held to a share of its own rate never finds more. */
static __always_inline __u32 all_of(const struct state *s, const struct round_sample *sample)
{
	__u32 capacity = max_of(s->trains.capacity, sample->capacity);
	__u32 packets_s_q8 = scaled(capacity, PACKET_Q8, sample->segment);

	if (sample->w_q16 >= ONE_Q16 || s->trains.capacity == 0)
		return MAX_WINDOW_Q8;
	return min_of(scaled(packets_s_q8, s->weighted.rtt_us, 1000000), MAX_WINDOW_Q8);
}

/* The window that the weight gets beside any other traffic; MAX_WINDOW_Q8 if it has no
 * bound. */
static __always_inline __u32 bound_of(const struct state *s, const struct round_sample *sample)
{
	__u32 all_q8 = all_of(s, sample);

	if (all_q8 == MAX_WINDOW_Q8)
		return MAX_WINDOW_Q8;
	return max_of(share_of(all_q8, sample->w_q16), FLOOR_Q8);
}

/* Takes the weight of this round trip. Whether it is the first one above the smallest. */
static __always_inline bool take_weight(struct state *s, __u32 w_q16)
{
	__u32 before = s->w_q16;

	s->w_q16 = w_q16;
	return before <= MIN_WEIGHT_Q16 && w_q16 > MIN_WEIGHT_Q16;
}

/* Whether a flow that has gone to its minimum does not yield any more, and nothing tells the
 * share of its weight: it looks for it by slow start, as a new flow does. It takes seconds until
 * a flow has gone there, so a weight that comes and goes does not make it begin each time. */
static __always_inline bool seeks_share(const struct state *s, const struct round_sample *sample)
{
	return s->w_q16 == MIN_WEIGHT_Q16 && sample->w_q16 > MIN_WEIGHT_Q16 &&
	       s->yielding.phase == PHASE_YIELDING && all_of(s, sample) == MAX_WINDOW_Q8;
}

/* The window of a weight above the smallest: that of one CUBIC flow, up to the
 * bound of the weight. Without a known capacity, it grows w times as fast as
 * CUBIC. */
static __always_inline __u32 weighted_law(struct state *s, const struct round_sample *sample)
{
	struct weighted *own = &s->weighted;
	__u32 bound = bound_of(s, sample);
	bool is_bound = bound < MAX_WINDOW_Q8;

	if (take_weight(s, sample->w_q16))
		/* A flow that no longer yields gets its bound at once. */
		weighted_begin(own, max_of(is_bound ? 2 * bound : 0, s->yielding.window_q8));
	if (sample->w_q16 <= MIN_WEIGHT_Q16)
		return 0;
	weighted_grow(own, sample, is_bound ? ONE_Q16 : sample->w_q16);
	/* Twice the bound: after one or two losses, the window is still at the
	 * bound. */
	own->window_q8 = min_of(own->window_q8, min_of(2 * bound, MAX_WINDOW_Q8));
	return min_of(own->window_q8, bound);
}

/* Whether the flow is Reno, whose window the kernel lets grow with each acknowledgement. */
static __always_inline bool is_reno(const struct parameters *wanted)
{
	return wanted->law == LAW_CDG && wanted->w_q16 >= ONE_Q16 && wanted->g_us == 0;
}

/* The window of a weight above the smallest: that of CDG, with the G that gives the weight
 * its share. */
static __always_inline __u32 steered_cdg(struct state *s, const struct round_sample *sample)
{
	__u32 all_q8 = all_of(s, sample), w_q16 = sample->w_q16;
	__u32 share_q8 = max_of(scaled(all_q8, w_q16, ONE_Q16 + w_q16), FLOOR_Q8), g_us, more_q8 = 0;
	bool is_bound = all_q8 < MAX_WINDOW_Q8;
	struct cdg *own = &s->cdg;

	if (take_weight(s, w_q16)) {
		/* A flow that no longer yields gets its share at once. */
		own->window_q8 = max_of(is_bound ? share_q8 : 0, s->yielding.window_q8);
		own->lost_q8 = 0;
		/* A gradient over the time in which it yielded would mean nothing. */
		own->rtt_min_us = 0;
		own->is_reduced = 0;
	}
	if (w_q16 <= MIN_WEIGHT_Q16)
		return 0;
	/* Reno: the window has grown already. */
	if (w_q16 >= ONE_Q16 && sample->g_us == 0) {
		own->rtt_min_us = 0;
		return own->window_q8;
	}
	if (is_bound) {
		cdg_steer(own, sample, share_q8);
		more_q8 = cdg_refill(own, share_q8, w_q16);
	}
	g_us = cdg_scale(w_q16, is_bound ? own->best_effort_us : cdg_best_effort(sample->base_us));
	cdg_round(own, &s->seen, sample, sample->g_us ? sample->g_us : g_us, more_q8);
	if (is_bound)
		own->window_q8 = min_of(own->window_q8, share_q8 + share_q8 / CDG_ABOVE_PART);
	return own->window_q8;
}

/* The window in whole packets. The rest is added to the window of a later round
 * trip, because a short path has windows of few packets. */
static __always_inline __u32 whole(struct yielding *own, __u32 window_q8)
{
	__u32 left_q8 = (window_q8 + own->left_q8) % PACKET_Q8;

	window_q8 = window_q8 + own->left_q8 - left_q8;
	own->left_q8 = left_q8;
	return window_q8;
}

/* The window of a law that yields, but is not below the one of the weight. */
static __always_inline __u32 yield_above(struct state *s, struct round_sample *sample,
					 __u32 window, bool *is_paced)
{
	/* The window doubles at most in a round trip, as in slow start. */
	window = min_of(window, 2 * max_of(sample->cwnd, 2) * PACKET_Q8);
	yield_round(&s->yielding, &s->seen, sample);
	*is_paced = s->yielding.window_q8 >= window;
	if (!*is_paced)
		return whole(&s->yielding, window);
	if (pause_round(&s->yielding, sample))
		return PACKET_Q8;
	return whole(&s->yielding, s->yielding.window_q8);
}

static __always_inline __u32 cubic_law(struct state *s, struct round_sample *sample, __u32 law)
{
	__u32 window = s->weighted.window_q8;

	if (law == LAW_CUBIC_PHANTOM && cubic_phantom(&s->cubic, sample)) {
		weighted_loss(&s->weighted);
		s->seen.phantoms++;
		s->seen.backoffs++;
		return s->weighted.window_q8;
	}
	weighted_grow(&s->weighted, sample, ONE_Q16);
	return max_of(s->weighted.window_q8, window);
}

/* The window after a round trip. `is_paced` tells whether TCP spaces its
 * packets. */
static __always_inline __u32 law_round(struct state *s, struct round_sample *sample, __u32 law,
				       bool *is_paced)
{
	__u32 window;

	s->seen.g_us = 0;
	if (may_yield(law)) {
		mean_rtt(&s->weighted, sample);
		window = law == LAW_VEGAS ? weighted_law(s, sample) : steered_cdg(s, sample);
		return yield_above(s, sample, window, is_paced);
	}
	if (law == LAW_CDG_PAPER) {
		cdg_round(&s->cdg, &s->seen, sample,
			  sample->g_us ? sample->g_us
				       : cdg_scale(sample->w_q16, cdg_best_effort(sample->base_us)),
			  0);
		return s->cdg.window_q8;
	}
	if (law == LAW_VEGAS_PAPER) {
		s->cdg.window_q8 = paper_vegas_round(s->cdg.window_q8, &s->seen, sample);
		return s->cdg.window_q8;
	}
	return cubic_law(s, sample, law);
}

/* Makes this the window of the law, packets/256. */
static __always_inline void take_window(struct state *s, __u32 law, __u32 window_q8, __u64 now_us,
					__u32 base_us)
{
	if (may_yield(law))
		yield_begin(&s->yielding, now_us, window_q8, base_us);
	if (law == LAW_CDG || law == LAW_CDG_PAPER || law == LAW_VEGAS_PAPER)
		s->cdg.window_q8 = window_q8;
	else
		weighted_begin(&s->weighted, window_q8);
}

/* A loss in slow start leaves one part in so many of the window, which has doubled since the
 * path was full. */
#define FIRST_LOSS_PART 2

/* The window of the law that yields after a loss, packets/256. */
static __always_inline __u32 yielding_loss(struct state *s, __u32 window, __u32 base_us,
					   __u32 longest_us, __u64 now_us, bool was_slow_start)
{
	struct yielding *own = &s->yielding;

	yield_loss(own, &s->seen, now_us, base_us, longest_us);
	if (was_slow_start) {
		own->window_q8 =
			max_of(min_of(own->window_q8, window / FIRST_LOSS_PART), FLOOR_Q8);
		level_meet(own, max_of(own->carried_q8, FLOOR_Q8));
	}
	return own->window_q8;
}

/* The window of a weight above the smallest after a loss. */
static __always_inline __u32 share_loss(struct state *s, __u32 law)
{
	if (law == LAW_VEGAS) {
		weighted_loss(&s->weighted);
		return s->weighted.window_q8;
	}
	return cdg_loss(&s->cdg);
}

/* The window after a loss, packets/256. */
static __always_inline __u32 law_loss(struct state *s, const struct parameters *wanted,
				      __u32 window, __u32 base_us, __u32 longest_us,
				      __u64 now_us, bool was_slow_start)
{
	__u32 next;

	if (may_yield(wanted->law)) {
		next = yielding_loss(s, window, base_us, longest_us, now_us, was_slow_start);
		if (wanted->w_q16 > MIN_WEIGHT_Q16)
			next = min_of(max_of(next, share_loss(s, wanted->law)), window);
	} else if (wanted->law == LAW_VEGAS_PAPER) {
		next = paper_vegas_heeds(wanted->w_q16, wanted->phi_q16) ? window / 2 : window;
		s->cdg.window_q8 = next;
	} else if (wanted->law == LAW_CDG_PAPER) {
		next = cdg_loss(&s->cdg);
	} else {
		weighted_loss(&s->weighted);
		cubic_loss(&s->cubic, now_us);
		if (wanted->law == LAW_CUBIC_BETA)
			s->weighted.window_q8 = max_of(
				times_q16(s->weighted.window_q8, wanted->w_q16), FLOOR_Q8);
		next = s->weighted.window_q8;
	}
	return max_of(next, FLOOR_Q8);
}
