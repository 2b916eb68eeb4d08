/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Pauses: less than the smallest window. Two packets per round trip are a large share of
 * a short path. If a flow that yields still meets a queue at this window, it goes down to
 * single packets. Their acknowledgements are delayed (40 ms on Linux) and tell nothing
 * about the path. So a window of two packets tests now and then whether the other traffic
 * is still there. The first one without a queue ends the pauses.
 *
 * The two packets must leave together, or each is acknowledged late. A single packet
 * brings them together again, on any path.
 */
#pragma once

#include "yielding.h"

/* There are no pauses on a path that carries more than this, packets/256: two packets are
 * less than 3 % of it. Long paths have none either, because a single packet takes long to
 * come back. */
#define PAUSE_MAX_CARRIED_Q8 (67 * PACKET_Q8)
#define PAUSE_MAX_BASE_US 60000
/* Round trips before the first pause. */
#define PAUSE_PATIENCE 4
/* Most single packets in a row: about half a second. */
#define PAUSE_MAX_LENGTH 5

/* Whether the next round trip has a single packet. */
static __always_inline bool pause_round(struct yielding *own, const struct round_sample *sample)
{
	bool is_short = level_full(own, sample->base_us) <= PAUSE_MAX_CARRIED_Q8 &&
			sample->base_us <= PAUSE_MAX_BASE_US;

	if (own->phase != PHASE_YIELDING || own->window_q8 > FLOOR_Q8 ||
	    (sample->is_timed && sample->standing_us <= sample->target_us)) {
		own->pause_left = 0;
		own->pause_length = 0;
		own->patience = 0;
		return false;
	}
	if (sample->cwnd == 1) {
		/* A time that tells nothing is no time without a queue. */
		own->queued_us += min_of(sample->elapsed_us, sample->now_us - own->queued_us);
		if (own->pause_left)
			own->pause_left--;
		return own->pause_left;
	}
	if (!sample->is_timed)
		return false;
	if (!is_short || own->patience < PAUSE_PATIENCE) {
		own->patience = min_of(own->patience + 1, PAUSE_PATIENCE);
		own->pause_left = sample->is_apart;
		return sample->is_apart;
	}
	own->pause_length = min_of(own->pause_length ? 2 * own->pause_length : 1, PAUSE_MAX_LENGTH);
	own->pause_left = own->pause_length;
	return true;
}
