/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Vegas with a memory: the window of a flow that yields to anybody, yet fills
 * an idle path. The law of the receiver lever (receive_window/yielding.rs), once per
 * round trip; with a shorter queue, for here it is seen where it arises, and on
 * short paths with less haste:
 * - Filling. With a short queue the window goes to what the path carries
 *   without one and a little more (Brakmo and Peterson 1995; FAST TCP, Wei,
 *   Jin, Low and Hegde 2006, eq. 1). Without a queue it grows: fast up to where
 *   a queue was last met (Vulture's rwndThresh), carefully beyond, and fast
 *   again when nothing has been met for some time.
 * - Yielding. A queue that is longer than ours ever gets, or grows by more than
 *   our own window explains, is somebody else's: the window is halved.
 * - Looking. A flow that has not seen the path without a queue for some time
 *   makes room for a moment (LEDBAT++).
 *
 * It must not know of weights.
 */
#pragma once

#include "arithmetic.h"
#include "congestion.h"

/* A delay no longer than this is no queue ... */
#define SHORT_US(base_us) (885 + (base_us) / 60)
/* ... and in one no longer than this nothing at all is to be seen of one, but
 * for the packet that stands behind the one that left with it. */
#define CLEAR_US(base_us) (800 + (base_us) / 256)

/* What is longer than a short queue by this much is somebody else's, us; less
 * while others have just come, ... */
#define FOREIGN_US 8000
#define FOREIGN_SOON_US 4000
/* ... which they have for so long. */
#define SOON_US 3000000ULL
/* A rise by more than ours, and than 1/32 of the base, is somebody who comes. */
#define RISE_US 7500

/* Round trips without growth after somebody has come. */
#define HOLD 3
/* The base has not been seen for so long: make room, down to 0.88 of what the
 * path carries. */
#define UNSEEN_US 15000000ULL
#define ROOM_Q16 57672

/* Our own part of the queue: 0.1 times the square root of the window, so that
 * n flows make one that is sqrt(n) times as long. */
#define OWN_Q16 6554
/* Of an odd window the last packet waits at the receiver for another (delayed
 * acknowledgements), and is not on its way: so much on average, packets/256. */
#define DELAYED_Q8 48
/* Growth near the threshold: 0.11 times the square root of the window, at most
 * one packet (RFC 5681). */
#define CAREFUL_Q16 7209
/* "Near" begins here: 0.95. */
#define NEAR_Q16 62259
/* The threshold is a mean of the old one, with this weight (0.7), and the new. */
#define MEMORY_Q16 45875
/* At most this much (0.15) beyond the queue's worth is taken away at once. */
#define DECREASE_Q16 9830
/* After a loss without a queue, of noise: 0.85. */
#define LOSS_ALONE_Q16 55706

/* After QUIET round trips without a queue, and QUIET_US, growth doubles every 1.3
 * of them, and every 1.3 * DOUBLED_US: on a short path a packet or two too many
 * are a long queue. Where they are shorter than 2.5 and 4.5 ms, 100 and 10
 * round trips are time enough. */
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

/* The most that was carried fades away within 512 round trips. */
static __always_inline void vegas_carried(struct vegas *own, __u32 carried_q8)
{
	__u32 faded = own->carried_most_q8 - own->carried_most_q8 / 512;

	own->carried_most_q8 = max_of(faded, carried_q8);
}

/* A queue was met by this window. */
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

/* The most by which the window has been above what it was before. */
static __always_inline __u32 vegas_growth(const struct vegas *own)
{
	__u32 low = own->windows_q8[3], growth = 0;

	growth = max_of(growth, minus(own->windows_q8[2], low));
	low = min_of(low, own->windows_q8[2]);
	growth = max_of(growth, minus(own->windows_q8[1], low));
	low = min_of(low, own->windows_q8[1]);
	return max_of(growth, minus(own->windows_q8[0], low));
}

static __always_inline void vegas_remember(struct vegas *own, const struct round_sample *look)
{
	for (int i = 3; i > 0; i--) {
		own->windows_q8[i] = own->windows_q8[i - 1];
		own->queues_us[i] = own->queues_us[i - 1];
		own->carried_q8[i] = own->carried_q8[i - 1];
	}
	own->windows_q8[0] = look->cwnd * PACKET_Q8;
	own->queues_us[0] = look->queue_us;
	own->carried_q8[0] = look->carried_q8;
}

/* Somebody else's queue. */
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

/* With a short queue. */
static __always_inline void vegas_fill(struct vegas *own, struct telemetry *seen,
				       const struct round_sample *look, __u32 carried, __u32 used)
{
	__u32 window = own->window_q8;
	__u32 full = carried + DELAYED_Q8 +
		     times_q16(root_q8(max_of(carried, PACKET_Q8)), OWN_Q16);
	__u32 queued = scaled(carried, look->queue_us, look->base_us);
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

/* Without a queue. */
APART int vegas_grow(struct vegas *own, const struct round_sample *look, __u32 used, bool has_come)
{
	__u32 window, near, careful, growth, limit, quiet, stretch;
	bool is_known;

	if (!own || !look)
		return 0;
	window = own->window_q8;
	quiet = max_of(QUIET, min_of(QUIET_US / look->base_us + 1, 100));
	stretch = min_of(DOUBLED_US / look->base_us + 1, 10);
	near = times_q16(own->threshold_q8, NEAR_Q16);
	is_known = !has_come && window < times_q16(own->carried_most_q8, NEAR_Q16);
	if (is_known || look->queue_us < look->clear_us)
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
	limit = max_of(minus(own->carried_most_q8, window), careful);
	if (!has_come)
		limit = max_of(limit, window / 2);
	window += min_of(growth, limit);
	/* Of a few packets the acknowledgement of the last is delayed: they seem to
	 * make little use of their window, and one more helps. */
	limit = max_of(2 * used, own->window_q8 + PACKET_Q8);
	own->window_q8 = max_of(min_of(window, limit), FLOOR_Q8);
	return 0;
}

/* Another round trip is over. */
APART int vegas_round(struct vegas *own, struct telemetry *seen, const struct round_sample *look)
{
	__u32 base, queue, carried, used, window, own_us, foreign_us = FOREIGN_US, steady;
	bool has_come;

	if (!own || !seen || !look || !look->is_timed)
		return 0;
	base = look->base_us;
	queue = look->queue_us;
	window = own->window_q8;
	carried = look->carried_q8;
	used = look->used_q8;
	has_come = own->came_us && look->now_us < own->came_us + SOON_US;
	vegas_remember(own, look);
	vegas_carried(own, carried);
	if (own->looks < 4)
		own->looks++;
	if (queue < look->clear_us)
		own->clear_us = look->now_us;
	if (own->hold)
		own->hold--;
	if (own->calm)
		own->calm--;
	own_us = scaled(vegas_growth(own), look->elapsed_us, look->delivered * PACKET_Q8);

	if (look->is_limited && own->looks >= 3 && own->calm == 0 && window > 2 * FLOOR_Q8) {
		__u32 before = min_of(own->queues_us[1], own->queues_us[2]);

		if (queue > before + own_us + max_of(RISE_US, base / 32)) {
			vegas_meet(own, min_of(carried, window), has_come);
			vegas_yield(own, seen, look->now_us, min_of(used, window) / 2);
			own->came_us = look->now_us;
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
	if (queue > own_us + look->short_us + foreign_us) {
		vegas_meet(own, min_of(carried, window), has_come);
		vegas_yield(own, seen, look->now_us, min_of(min_of(window, used) / 2, carried));
		return 0;
	}
	if (own->clear_us && look->now_us > own->clear_us + UNSEEN_US && own->hold == 0 &&
	    look->is_limited) {
		own->clear_us = look->now_us;
		own->window_q8 = max_of(min_of(times_q16(carried, ROOM_Q16), window), FLOOR_Q8);
		own->wait = 1;
		own->calm = 4;
		return 0;
	}
	if (queue > look->short_us) {
		bool was_queued = own->was_queued;

		own->was_queued = 1;
		/* The bursts of a fast growth make a queue for a moment. */
		if (!was_queued && own->threshold_q8 &&
		    window < times_q16(own->threshold_q8, NEAR_Q16))
			return 0;
		steady = (own->carried_q8[0] + own->carried_q8[1] + own->carried_q8[2]) / 3;
		if (look->now_us < own->yielded_us + 4 * look->elapsed_us || own->looks < 3)
			steady = carried;
		if (look->is_limited)
			vegas_fill(own, seen, look, max_of(carried, steady), used);
		return 0;
	}
	own->was_queued = 0;
	if (own->hold == 0 && look->is_limited)
		vegas_grow(own, look, used, has_come);
	return 0;
}

/* After a loss. */
static __always_inline void vegas_loss(struct vegas *own, __u64 now_us, __u32 base_us)
{
	bool is_queued = own->queues_us[0] > SHORT_US(base_us);
	/* Losses that go on are others' traffic, in a queue too short to be seen. */
	bool goes_on = own->loss_us && now_us < own->loss_us + SOON_US;

	own->loss_us = now_us;
	if (own->looks)
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

/* Slow start is over with this window. */
static __always_inline void vegas_begin(struct vegas *own, __u64 now_us, __u32 window_q8)
{
	own->window_q8 = max_of(window_q8, FLOOR_Q8);
	if (own->threshold_q8 == 0) {
		own->threshold_q8 = own->window_q8;
		own->clear_us = now_us;
	}
	own->looks = 0;
	own->wait = 1;
	own->calm = 2;
	own->has_met = 1;
}

/*
 * Slower than the least window. Two packets per round trip are a large share of
 * a short path. A flow that yields, and still meets a queue at this window,
 * goes down to one: its acknowledgements are delayed (40 ms on Linux), which
 * says nothing of the path, so now and then a window of two looks whether the
 * others are still there. The first that meets no queue ends it.
 */
/* Two packets do no harm where they are less than 3 % of what is carried, nor on
 * long paths, where a single one would also take long to come back. */
#define PAUSE_MAX_CARRIED_Q8 (67 * PACKET_Q8)
#define PAUSE_MAX_BASE_US 60000
/* Round trips before the first time. */
#define PAUSE_PATIENCE 4
/* At most so many single packets in a row: about half a second. */
#define PAUSE_MAX_LENGTH 5
/* A queue of others is so much longer than a short one, us. */
#define PAUSE_QUEUE_US 2000

/* After a round trip; whether the next one is of a single packet. */
static __always_inline bool pause_round(struct vegas *own, const struct round_sample *look)
{
	if (own->window_q8 > FLOOR_Q8 || own->carried_most_q8 > PAUSE_MAX_CARRIED_Q8 ||
	    look->base_us > PAUSE_MAX_BASE_US ||
	    (look->is_timed && look->queue_us <= look->short_us)) {
		own->pause_left = 0;
		own->pause_length = 0;
		own->patience = 0;
		return false;
	}
	if (look->cwnd == 1) {
		if (own->pause_left)
			own->pause_left--;
		return own->pause_left;
	}
	if (!look->is_timed || look->queue_us < look->short_us + PAUSE_QUEUE_US)
		return false;
	if (own->patience < PAUSE_PATIENCE) {
		own->patience++;
		return false;
	}
	own->pause_length = min_of(own->pause_length ? 2 * own->pause_length : 1, PAUSE_MAX_LENGTH);
	own->pause_left = own->pause_length;
	return true;
}
