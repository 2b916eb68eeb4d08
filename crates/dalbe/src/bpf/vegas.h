/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Vegas with a memory: the window of a flow that yields to all other traffic and
 * still fills an idle path. It sets the window once per round trip.
 *
 * - Filling. With a short queue, the window goes to what the path carries without
 *   a queue, plus a little (Brakmo and Peterson 1995; FAST TCP, Wei, Jin, Low and
 *   Hegde 2006, eq. 1). Without a queue it grows. Growth is fast up to the window
 *   that last met a queue (Vulture's rwndThresh), and careful beyond it. It is
 *   fast again after some time without a queue.
 * - Yielding. A queue belongs to other traffic if it is longer than ours ever
 *   gets, or grows by more than our own window explains. The window is halved.
 * - Making room. If the flow has not measured the base for some time, it lowers
 *   its window for a moment (LEDBAT++, RFC 9840).
 *
 * This file does not depend on weights.
 */
#pragma once

#include "arithmetic.h"
#include "congestion.h"

/* The longest delay of a short queue, us. */
#define SHORT_US(base_us) (885 + (base_us) / 60)
/* The longest delay of an empty queue, us, without the time of the packet ahead. */
#define CLEAR_US(base_us) (800 + (base_us) / 256)

/* A queue that exceeds a short one by this belongs to other traffic, us. */
#define FOREIGN_US 8000
/* The same shortly after other traffic has arrived, ... */
#define FOREIGN_SOON_US 4000
/* ... for this time, us. */
#define SOON_US 3000000ULL
/* A rise of the delay means new traffic if it exceeds our own part, and this, us,
 * and 1/32 of the base. */
#define RISE_US 7500

/* Round trips without growth after other traffic has arrived. */
#define HOLD 3
/* After this time without a measured base, us, the flow makes room. */
#define UNSEEN_US 15000000ULL
/* The window then is this part of what the path carries: 0.88. */
#define ROOM_Q16 57672

/* Our own part of the queue: 0.1 times the square root of the window. So n flows
 * make a queue that is only sqrt(n) times as long. */
#define OWN_Q16 6554
/* Packets that are not in flight on average, packets/256. The last packet of an
 * odd window waits at the receiver for another one (delayed acknowledgements). */
#define DELAYED_Q8 48
/* Growth near the threshold: 0.11 times the square root of the window, at most
 * one packet (RFC 5681). */
#define CAREFUL_Q16 7209
/* A window is near the threshold from this part of it on: 0.95. */
#define NEAR_Q16 62259
/* Weight of the old threshold in the mean with a new one: 0.7. */
#define MEMORY_Q16 45875
/* Largest decrease beyond the queue, as a part of the window: 0.15. */
#define DECREASE_Q16 9830
/* The part of the window that a loss without a queue leaves: 0.85. Such a loss
 * comes from noise. */
#define LOSS_ALONE_Q16 55706

/* Growth doubles after QUIET round trips and QUIET_US without a queue. From then
 * on it doubles every 1.3 round trips and every 1.3 * DOUBLED_US. The times matter
 * on short paths, where one or two packets too many are a long queue. On paths
 * below 2.5 and 4.5 ms, 100 and 10 round trips are enough. */
#define QUIET 3
#define QUIET_US 250000
#define DOUBLED_US 42000
#define QUIET_STEPS 16
static const __u32 QUIET_GROWTH_Q8[QUIET_STEPS] = {
	256, 436, 744, 1267, 2160, 3682, 6275, 10695, 18228, 31067,
	52949, 90244, 153808, 262144, 446788, 761488,
};

static __always_inline bool vegas_fills(__u32 used, __u32 window, __u32 share_q16)
{
	return used >= min_of(times_q16(window, share_q16), minus(window, 5 * PACKET_Q8 / 2));
}

/* The square root of a window, both in packets/256. */
static __always_inline __u32 root_q8(__u32 window_q8)
{
	return 16 * square_root(window_q8);
}

/* Updates the most data delivered in a round trip. It fades within 512 round
 * trips. */
static __always_inline void vegas_carried(struct vegas *own, __u32 carried_q8)
{
	__u32 faded = own->carried_max_q8 - own->carried_max_q8 / 512;

	own->carried_max_q8 = max_of(faded, carried_q8);
}

/* Takes note that this window has met a queue. If the other traffic has stayed since
 * the last time, the old threshold does not count. */
static __always_inline void vegas_meet(struct vegas *own, __u32 window_q8, bool stayed)
{
	own->quiet = 0;
	if (own->has_met)
		return;
	own->has_met = 1;
	if (own->threshold_q8 && !stayed) {
		__u32 mean = times_q16(own->threshold_q8, MEMORY_Q16) +
			     times_q16(window_q8, ONE_Q16 - MEMORY_Q16);
		own->threshold_q8 = max_of(window_q8, mean);
	} else {
		own->threshold_q8 = window_q8;
	}
}

/* The largest growth of the window over the last round trips. */
static __always_inline __u32 vegas_growth(const struct vegas *own)
{
	__u32 low = own->windows_q8[3], growth = 0;

	growth = max_of(growth, minus(own->windows_q8[2], low));
	low = min_of(low, own->windows_q8[2]);
	growth = max_of(growth, minus(own->windows_q8[1], low));
	low = min_of(low, own->windows_q8[1]);
	return max_of(growth, minus(own->windows_q8[0], low));
}

static __always_inline void vegas_remember(struct vegas *own, const struct round_sample *sample)
{
	for (int i = 3; i > 0; i--) {
		own->windows_q8[i] = own->windows_q8[i - 1];
		own->queues_us[i] = own->queues_us[i - 1];
		own->carried_q8[i] = own->carried_q8[i - 1];
	}
	own->windows_q8[0] = sample->cwnd * PACKET_Q8;
	own->queues_us[0] = sample->queue_us;
	own->carried_q8[0] = sample->carried_q8;
}

/* Yields to the queue of other traffic. */
static __always_inline void vegas_yield(struct vegas *own, struct telemetry *seen, __u64 now_us,
					__u32 window_q8)
{
	__u32 before = own->window_q8;

	own->window_q8 = max_of(min_of(window_q8, before), FLOOR_Q8);
	own->yielded_us = now_us;
	seen->delays++;
	if (own->window_q8 < before) {
		seen->backoffs++;
		seen->delay_share_q16 += scaled(before - own->window_q8, ONE_Q16, before);
	}
}

/* Sets the window with a short queue. */
static __always_inline void vegas_fill(struct vegas *own, struct telemetry *seen,
				       const struct round_sample *sample, __u32 carried, __u32 used)
{
	__u32 window = own->window_q8;
	__u32 full = carried + DELAYED_Q8 +
		     times_q16(root_q8(max_of(carried, PACKET_Q8)), OWN_Q16);
	__u32 queued = scaled(carried, sample->queue_us, sample->base_us);
	__u32 target = max_of(full, minus(window, max_of(queued, times_q16(window, DECREASE_Q16))));

	if (target + PACKET_Q8 < window) {
		vegas_meet(own, min_of(full, window), false);
		own->window_q8 = max_of(target, FLOOR_Q8);
		own->wait = 1;
		seen->delays++;
		seen->backoffs++;
		seen->delay_share_q16 += scaled(window - own->window_q8, ONE_Q16, window);
	} else if (target > window && own->hold == 0 && vegas_fills(used, window, 58982)) {
		own->window_q8 = min_of(target, window + PACKET_Q8);
		own->has_met = 0;
	}
}

/* Sets the window without a queue. */
APART int vegas_grow(struct vegas *own, const struct round_sample *sample, __u32 used, bool has_come)
{
	__u32 window, near, careful, growth, limit, quiet, stretch;
	bool is_known;

	if (!own || !sample)
		return 0;
	window = own->window_q8;
	quiet = max_of(QUIET, min_of(QUIET_US / sample->base_us + 1, 100));
	stretch = min_of(DOUBLED_US / sample->base_us + 1, 10);
	near = times_q16(own->threshold_q8, NEAR_Q16);
	is_known = !has_come && window < times_q16(own->carried_max_q8, NEAR_Q16);
	if (is_known || sample->queue_us < sample->clear_us)
		own->quiet = min_of(own->quiet + 1, quiet + (QUIET_STEPS - 1) * stretch);
	else
		own->quiet = min_of(own->quiet, quiet - 1);
	if (own->threshold_q8 == 0) {
		if (vegas_fills(used, window, 45875))
			own->window_q8 = 2 * window;
		return 0;
	}
	if (window < near) {
		own->has_met = 0;
		own->window_q8 = min_of(2 * window, max_of(near, window + PACKET_Q8));
		return 0;
	}
	if (!vegas_fills(used, window, own->quiet > quiet + 1 ? 39322 : 55706))
		return 0;
	own->has_met = 0;
	careful = min_of(times_q16(root_q8(window), CAREFUL_Q16), PACKET_Q8);
	growth = careful;
	if (own->quiet >= quiet) {
		__u32 step = (own->quiet - quiet) / stretch;

		growth = max_of(growth, QUIET_GROWTH_Q8[step % QUIET_STEPS]);
	}
	limit = max_of(minus(own->carried_max_q8, window), careful);
	if (!has_come)
		limit = max_of(limit, window / 2);
	window += min_of(growth, limit);
	/* In a window of few packets, the last acknowledgement is delayed. The
	 * flow seems to use little of its window. One packet more helps. */
	limit = max_of(2 * used, own->window_q8 + PACKET_Q8);
	own->window_q8 = max_of(min_of(window, limit), FLOOR_Q8);
	return 0;
}

/* Sets the window after a round trip. */
APART int vegas_round(struct vegas *own, struct telemetry *seen, const struct round_sample *sample)
{
	__u32 base, queue, carried, used, window, own_us, foreign_us = FOREIGN_US, steady;
	bool has_come;

	if (!own || !seen || !sample || !sample->is_timed)
		return 0;
	base = sample->base_us;
	queue = sample->queue_us;
	window = own->window_q8;
	carried = sample->carried_q8;
	used = sample->used_q8;
	has_come = own->came_us && sample->now_us < own->came_us + SOON_US;
	vegas_remember(own, sample);
	vegas_carried(own, carried);
	if (own->samples < 4)
		own->samples++;
	if (queue < sample->clear_us)
		own->clear_us = sample->now_us;
	if (own->hold)
		own->hold--;
	if (own->calm)
		own->calm--;
	own_us = scaled(vegas_growth(own), sample->elapsed_us, sample->delivered * PACKET_Q8);

	if (sample->is_limited && own->samples >= 3 && own->calm == 0 && window > 2 * FLOOR_Q8) {
		__u32 before = min_of(own->queues_us[1], own->queues_us[2]);

		if (queue > before + own_us + max_of(RISE_US, base / 32)) {
			vegas_meet(own, min_of(carried, window), has_come);
			vegas_yield(own, seen, sample->now_us, min_of(used, window) / 2);
			own->came_us = sample->now_us;
			own->hold = HOLD;
			own->calm = 1;
			own->wait = 0;
			return 0;
		}
	}
	if (own->wait) {
		own->wait--;
		return 0;
	}
	if (has_come) {
		foreign_us = FOREIGN_SOON_US;
		own_us = 0;
	}
	if (queue > own_us + sample->short_us + foreign_us) {
		vegas_meet(own, min_of(carried, window), has_come);
		vegas_yield(own, seen, sample->now_us, min_of(min_of(window, used) / 2, carried));
		return 0;
	}
	if (own->clear_us && sample->now_us > own->clear_us + UNSEEN_US && own->hold == 0 &&
	    sample->is_limited) {
		own->clear_us = sample->now_us;
		own->window_q8 = max_of(min_of(times_q16(carried, ROOM_Q16), window), FLOOR_Q8);
		own->wait = 1;
		own->calm = 4;
		return 0;
	}
	if (queue > sample->short_us) {
		bool was_queued = own->was_queued;

		own->was_queued = 1;
		/* The bursts of fast growth make a queue for a moment. */
		if (!was_queued && own->threshold_q8 &&
		    window < times_q16(own->threshold_q8, NEAR_Q16))
			return 0;
		steady = (own->carried_q8[0] + own->carried_q8[1] + own->carried_q8[2]) / 3;
		if (sample->now_us < own->yielded_us + 4 * sample->elapsed_us || own->samples < 3)
			steady = carried;
		if (sample->is_limited)
			vegas_fill(own, seen, sample, max_of(carried, steady), used);
		return 0;
	}
	own->was_queued = 0;
	if (own->hold == 0 && sample->is_limited)
		vegas_grow(own, sample, used, has_come);
	return 0;
}

/* Reduces the window after a loss. */
static __always_inline void vegas_loss(struct vegas *own, __u64 now_us, __u32 base_us)
{
	bool is_queued = own->queues_us[0] > SHORT_US(base_us);
	/* Repeated losses come from other traffic in a queue too short to
	 * measure. */
	bool goes_on = own->loss_us && now_us < own->loss_us + SOON_US;

	own->loss_us = now_us;
	if (own->samples)
		vegas_meet(own, min_of(own->carried_q8[0], own->window_q8), false);
	own->window_q8 = is_queued || goes_on ? own->window_q8 / 2
					      : times_q16(own->window_q8, LOSS_ALONE_Q16);
	own->window_q8 = max_of(own->window_q8, FLOOR_Q8);
	if (goes_on)
		own->threshold_q8 = own->window_q8;
	own->hold = 2;
	own->wait = 1;
	if (is_queued || goes_on)
		own->yielded_us = now_us;
}

/* Begins with this window after slow start. */
static __always_inline void vegas_begin(struct vegas *own, __u64 now_us, __u32 window_q8)
{
	own->window_q8 = max_of(window_q8, FLOOR_Q8);
	if (own->threshold_q8 == 0) {
		own->threshold_q8 = own->window_q8;
		own->clear_us = now_us;
	}
	own->samples = 0;
	own->wait = 1;
	own->calm = 2;
	own->has_met = 1;
}

/*
 * Pauses: less than the smallest window. Two packets per round trip are a large
 * share of a short path. If a flow that yields still meets a queue at this window,
 * it goes down to single packets. Their acknowledgements are delayed (40 ms on
 * Linux) and tell nothing about the path. So a window of two packets tests now and
 * then whether the other traffic is still there. The first one without a queue
 * ends the pauses.
 */
/* There are no pauses on a path that carries more than this, packets/256: two
 * packets are less than 3 % of it. Long paths have none either, because a single
 * packet takes long to come back. */
#define PAUSE_MAX_CARRIED_Q8 (67 * PACKET_Q8)
#define PAUSE_MAX_BASE_US 60000
/* Round trips before the first pause. */
#define PAUSE_PATIENCE 4
/* Most single packets in a row: about half a second. */
#define PAUSE_MAX_LENGTH 5
/* A queue that exceeds a short one by this belongs to other traffic, us. */
#define PAUSE_QUEUE_US 2000

/* Whether the next round trip has a single packet. */
static __always_inline bool pause_round(struct vegas *own, const struct round_sample *sample)
{
	if (own->window_q8 > FLOOR_Q8 || own->carried_max_q8 > PAUSE_MAX_CARRIED_Q8 ||
	    sample->base_us > PAUSE_MAX_BASE_US ||
	    (sample->is_timed && sample->queue_us <= sample->short_us)) {
		own->pause_left = 0;
		own->pause_length = 0;
		own->patience = 0;
		return false;
	}
	if (sample->cwnd == 1) {
		if (own->pause_left)
			own->pause_left--;
		return own->pause_left;
	}
	if (!sample->is_timed || sample->queue_us < sample->short_us + PAUSE_QUEUE_US)
		return false;
	if (own->patience < PAUSE_PATIENCE) {
		own->patience++;
		return false;
	}
	own->pause_length = min_of(own->pause_length ? 2 * own->pause_length : 1, PAUSE_MAX_LENGTH);
	own->pause_left = own->pause_length;
	return true;
}
