/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The knock of a flow that yields to a short queue.
 *
 * A flow of the same kind that has found nobody keeps a short queue of its own for as
 * long as it likes. One that comes later would yield to it for ever, and the first would
 * never know. So it takes a part of the path for some round trips. One of its kind gives
 * way to that, and the queue goes. Traffic that takes all stays, and each knock without an
 * answer doubles the time to the next.
 *
 * receive_window/yielding/knock.rs is the same for a receiver.
 */
#pragma once

#include "arithmetic.h"
#include "congestion.h"
#include "step.h"

/* A queue of so many targets is short: 3.5. */
#define SHORT_TARGETS_Q16 229376
/* It stays for this time before the first knock, us, ... */
#define FIRST_REST_US 5000000ULL
/* ... which doubles this often. */
#define MAX_UNANSWERED 4
/* A knock lasts for so many round trips at most, ... */
#define KNOCK_ROUND_TRIPS 14
/* ... and is answered by so many without a queue. */
#define ANSWER_ROUND_TRIPS 2
/* A queue that is gone for longer is that of others who come and go. */
#define GONE_ROUND_TRIPS 3
/* It takes this share of the path, 0.3, and at least so many packets. */
#define KNOCK_Q16 19661
#define MIN_KNOCK_Q8 (4 * PACKET_Q8)

/* A round trip with a queue; returns whether the flow knocks. */
static __always_inline bool knock_meet(struct yielding *own, const struct step *step)
{
	bool is_short = !step->is_lost &&
			step->queue_us <= times_q16(step->target_us, SHORT_TARGETS_Q16);

	if (own->knock_us) {
		if (is_short && step->now_us < own->knock_us)
			return true;
		own->knock_us = 0;
		own->unanswered = min_of(own->unanswered + 1, MAX_UNANSWERED);
		own->short_us = 0;
	}
	if (!is_short) {
		own->short_us = 0;
		return false;
	}
	if (!own->short_us)
		own->short_us = step->now_us;
	if (step->now_us < own->short_us + (FIRST_REST_US << (own->unanswered & 7)))
		return false;
	own->knock_us = step->now_us + (__u64)step->rtt_us * KNOCK_ROUND_TRIPS;
	return true;
}

/* A round trip without a queue; returns whether a knock is answered. */
static __always_inline bool knock_is_answered(struct yielding *own, const struct step *step)
{
	if (step->gap_us > GONE_ROUND_TRIPS * step->rtt_us)
		own->short_us = 0;
	if (!own->knock_us || step->gap_us <= ANSWER_ROUND_TRIPS * step->rtt_us)
		return false;
	own->knock_us = 0;
	own->short_us = 0;
	own->unanswered = 0;
	return true;
}

/* The window of a knock on a path that carries so much. */
static __always_inline __u32 knock_window_q8(__u32 full_q8)
{
	return max_of(times_q16(full_q8, KNOCK_Q16), MIN_KNOCK_Q8);
}
