/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The knock of a flow that yields to a short queue.
 *
 * A flow that has found nobody keeps a short queue of its own. A second flow of this kind
 * meets that queue and yields to it. The first flow then never learns of the second. So
 * the second flow knocks: it takes a part of the path for some round trips. If the first
 * flow gives way, the queue goes, and the second flow grows. Other traffic does not give
 * way. The wait doubles after each knock without an answer.
 *
 * receive_window/yielding/knock.rs is the same for a receiver.
 */
#pragma once

#include "arithmetic.h"
#include "congestion.h"
#include "step.h"

/* A queue of up to this many targets is short: 3.5. */
#define SHORT_TARGETS_Q16 229376
/* The queue is short for this time before the first knock, us, ... */
#define FIRST_REST_US 5000000
/* ... and for at least this many round trips. */
#define MIN_REST_ROUND_TRIPS 42
/* The time doubles at most this many times. */
#define MAX_UNANSWERED 4
/* A knock lasts for at most this many round trips. */
#define KNOCK_ROUND_TRIPS 14ULL
/* This many round trips without a queue are an answer. */
#define ANSWER_ROUND_TRIPS 2
/* If the queue is gone for longer than this, its traffic comes and goes. */
#define GONE_ROUND_TRIPS 3
/* A knock takes this share of the path, 0.3, and at least this many packets, ... */
#define KNOCK_Q16 19661
#define MIN_KNOCK_Q8 (4 * PACKET_Q8)
/* ... but no more than one part in so many. */
#define MAX_KNOCK_PART 2

/* Forgets the short queue, and ends a knock. */
static __always_inline void knock_forget(struct yielding *own)
{
	own->short_since_us = 0;
	own->knock_until_us = 0;
}

/* Takes a round trip with a queue; returns whether the flow knocks. */
static __always_inline bool knock_meet(struct yielding *own, const struct step *step)
{
	bool is_short = !step->is_lost &&
			step->queue_us <= times_q16(step->target_us, SHORT_TARGETS_Q16);
	__u64 rest_us = max_of(FIRST_REST_US, MIN_REST_ROUND_TRIPS * step->rtt_us);

	if (step->gap_us > FIRST_REST_US)
		own->short_since_us = 0;
	if (own->knock_until_us) {
		if (is_short && step->now_us < own->knock_until_us)
			return true;
		knock_forget(own);
		own->unanswered = min_of(own->unanswered + 1, MAX_UNANSWERED);
	}
	if (!is_short) {
		own->short_since_us = 0;
		return false;
	}
	if (!own->short_since_us)
		own->short_since_us = step->now_us;
	if (step->now_us < own->short_since_us + (rest_us << (own->unanswered & 7)))
		return false;
	own->knock_until_us = step->now_us + step->rtt_us * KNOCK_ROUND_TRIPS;
	return true;
}

/* Takes a round trip without a queue; returns whether it is the answer to a knock. */
static __always_inline bool knock_take_answer(struct yielding *own, const struct step *step)
{
	__u32 gone_us = GONE_ROUND_TRIPS * step->rtt_us;
	bool is_answered = own->knock_until_us &&
			   step->now_us < own->knock_until_us + gone_us &&
			   step->gap_us > ANSWER_ROUND_TRIPS * step->rtt_us;

	if (is_answered)
		own->unanswered = 0;
	if (is_answered || step->gap_us > gone_us)
		knock_forget(own);
	return is_answered;
}

/* The window of a knock on a path that carries so much. */
static __always_inline __u32 knock_window_q8(__u32 full_q8)
{
	return max_of(times_q16(full_q8, KNOCK_Q16),
		      min_of(MIN_KNOCK_Q8, full_q8 / MAX_KNOCK_PART));
}
