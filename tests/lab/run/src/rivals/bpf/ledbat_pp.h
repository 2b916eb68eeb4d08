/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The law of LEDBAT++ (draft-irtf-iccrg-ledbat-plus-plus, section 4). This file knows
 * no kernel.
 */
#pragma once

#include "delays.h"
#include "window.h"

/* The target queueing delay, us (section 4.5). */
#define TARGET_US 60000
/* The gain is 1 / min(16, ceil(2 TARGET / base)) (section 4.2). */
#define MAX_GAIN_DIVISOR 16
/* The initial slow start ends at 3/4 of the target (section 4.1). */
#define EXIT_US (TARGET_US * 3 / 4)
/* The first slowdown comes two round trips after slow start, and a slowdown holds the
 * window for two (section 4.4). */
#define SLOWDOWN_ROUNDS 2
/* The next one comes after nine times what the last one took (section 4.4). */
#define INTERVAL 9

enum phase {
	/* The first slow start of the connection. */
	PHASE_INITIAL,
	PHASE_AVOIDING,
	/* The window is two packets. */
	PHASE_SLOWED,
	/* Slow start up to the window before the slowdown. */
	PHASE_RAMPING,
};

struct ledbat_pp {
	struct delays delays;
	struct window window;
	__u32 phase;
	/* When this slowdown began, and when the next one is due or this one has held
	 * the window long enough, us. */
	__u32 began_us;
	__u32 due_us;
};

static __always_inline __u32 gain_divisor(__u32 base_us)
{
	__u32 divisor = base_us ? (2 * TARGET_US + base_us - 1) / base_us : MAX_GAIN_DIVISOR;

	return divisor < MAX_GAIN_DIVISOR ? divisor : MAX_GAIN_DIVISOR;
}

/* The initial slow start is over, or something like a slowdown. */
static __always_inline void avoid_congestion(struct ledbat_pp *own, __u32 due_us)
{
	own->phase = PHASE_AVOIDING;
	own->due_us = due_us;
}

/* In a round trip the window changes by
 *
 *   GAIN                                              below the target, and
 *   max(GAIN - W (delay / target - 1), -W / 2)        above   (section 4.3).
 */
static __always_inline void change_window(struct ledbat_pp *own, __u32 acked, __u32 queue_us,
					  __u64 gain_q16)
{
	__u64 down_q16, half_q16 = own->window.q16 / 2;

	if (queue_us <= TARGET_US) {
		grow(&own->window, part_of_round(&own->window, gain_q16, acked));
		return;
	}
	down_q16 = own->window.q16 * (queue_us - TARGET_US) / TARGET_US;
	if (down_q16 <= gain_q16) {
		grow(&own->window, part_of_round(&own->window, gain_q16 - down_q16, acked));
		return;
	}
	down_q16 -= gain_q16;
	shrink(&own->window,
	       part_of_round(&own->window, down_q16 < half_q16 ? down_q16 : half_q16, acked),
	       MIN_WINDOW);
}

/* An acknowledgement of so many packets. `ssthresh` is where slow start ends, packets;
 * the window grows only if it `is_limited`. */
static __always_inline void ledbat_pp_acknowledged(struct ledbat_pp *own, __u32 *ssthresh,
						   __u32 acked, __u32 rtt_us, __u32 now_us,
						   bool is_limited)
{
	__u32 queue_us = queueing_delay_us(&own->delays);
	__u64 gain_q16 = PACKET_Q16 / gain_divisor(base_delay_us(&own->delays));

	switch (own->phase) {
	case PHASE_INITIAL:
		if (queue_us <= EXIT_US && whole_packets(&own->window) < *ssthresh) {
			if (is_limited)
				grow(&own->window, gain_q16 * acked);
			break;
		}
		avoid_congestion(own, now_us + SLOWDOWN_ROUNDS * rtt_us);
		break;
	case PHASE_AVOIDING:
		if (is_less(own->due_us, now_us)) {
			*ssthresh = whole_packets(&own->window);
			own->window.q16 = MIN_WINDOW * PACKET_Q16;
			own->phase = PHASE_SLOWED;
			own->began_us = now_us;
			own->due_us = now_us + SLOWDOWN_ROUNDS * rtt_us;
			return;
		}
		if (is_limited || queue_us > TARGET_US)
			change_window(own, acked, queue_us, gain_q16);
		break;
	case PHASE_SLOWED:
		own->window.q16 = MIN_WINDOW * PACKET_Q16;
		if (is_less(own->due_us, now_us))
			own->phase = PHASE_RAMPING;
		return;
	default:
		/* The slow start of section 4.1, whose steps the gain scales. Its end by
		 * delay is for the first one only. */
		if (whole_packets(&own->window) < *ssthresh) {
			if (is_limited)
				grow(&own->window, gain_q16 * acked);
			break;
		}
		avoid_congestion(own, now_us + INTERVAL * (now_us - own->began_us));
	}
	/* Otherwise the kernel would take it for slow start. */
	if (own->phase == PHASE_AVOIDING)
		*ssthresh = whole_packets(&own->window);
}

/* A timer has run out: slow start from one packet on, which takes as long as a
 * slowdown and measures the base delay as well. */
static __always_inline void ledbat_pp_timed_out(struct ledbat_pp *own, __u32 now_us)
{
	if (own->phase != PHASE_SLOWED && own->phase != PHASE_RAMPING)
		own->began_us = now_us;
	own->phase = PHASE_RAMPING;
}
