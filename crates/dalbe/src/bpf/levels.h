/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What a flow that yields knows of its path: how much it carries, at which levels queues
 * were met, how long a queue may be, and so how far the window grows. Levels and windows
 * are packets/256 (Q8). receive_window/yielding/levels.rs is the same for a receiver,
 * without noise but with packets that come late by themselves.
 *
 * This file does not depend on weights.
 */
#pragma once

#include "arithmetic.h"
#include "congestion.h"
#include "variation.h"

/* The target of the queueing delay: so many packet times, since a packet of another
 * flow ahead of ours is no queue: 1.1, ... */
#define TARGET_PACKETS_Q16 72090
/* ... and at least this, us: the noise of hosts, ... */
#define MIN_TARGET_US 600
/* ... plus this share of the base, since the bursts of a window grow with the path:
 * 0.007. */
#define TARGET_SHARE_Q16 459
/* In a buffer that overflows, it is at most this share of its length: 0.22. */
#define TARGET_PER_BUFFER_Q16 14418
/* A round trip of fewer samples than these may have met only long delays: with noise,
 * they are so many times as long. The noise follows the least variations: one part in so
 * many of a difference in a round trip. */
#define NOISE_SAMPLES 3
#define NOISE_TIMES 2
#define NOISE_RISE 16
#define NOISE_FALL 4
/* The smallest round-trip time of full segments exceeds that of the handshake by the time
 * of one packet at the bottleneck, and by no more than this noise, us. */
#define PACKET_NOISE_US 300
/* No packet takes longer than this, us: 1500 bytes at 0.5 Mbit/s. */
#define MAX_PACKET_US 24000

/* The capacity counts for this time, us, ... */
#define CAPACITY_MEMORY_US 60000000ULL
/* ... and loses one part in this many in each round trip afterwards. */
#define CAPACITY_FADING 50

/* CUBIC after a loss: window = C (t - K)^3 + W, with K = cbrt(W (1 - beta) / C), and
 * beta = 0.7 and C = 0.4 (RFC 9438, sections 4.1 and 4.6): ms^3 per packet/256. */
#define RECOVERY_PER_WINDOW (1000000000ULL * 3 / 4 / PACKET_Q8)

/* CUBIC goes on with 0.7 of its window after a loss (RFC 9438, section 4.6). Without a
 * queue it leaves 0.3 of the path free, ... */
#define KEPT_AFTER_LOSS_Q16 45875
#define MOST_LEFT_FREE_Q16 (ONE_Q16 - KEPT_AFTER_LOSS_Q16)
/* ... and a little more shows that nobody takes all: 0.05. */
#define MORE_THAN_LEFT_Q16 3277
/* The least window that a climb is worth. */
#define MIN_LEFT_Q8 (FLOOR_Q8 + PACKET_Q8)

/* A climb takes one part in this many of the capacity in a step, or of the window. */
#define CLIMB_PART 10
#define CLIMB_GROWTH_PART 4
/* From this many times what others leave on, it takes this share of the window: 1.3
 * and 0.575. */
#define CLEAR_OF_OTHERS_Q16 85197
#define CLEAR_CLIMB_GROWTH_Q16 37683
/* It ends at this share of the capacity: 0.8. */
#define TOP_SHARE_Q16 52429
/* Once the others have left, a climb doubles the window in a step (slow start, RFC
 * 5681), up to this share: 0.92. */
#define FREE_TOP_SHARE_Q16 60293

/* Growth near the level that was last met: 0.0825 times the square root of the window.
 * Small flows grow more for their size, so shares become equal. */
#define CAREFUL_Q16 5407
/* Limit on this growth: a packet (RFC 5681, section 3.1), or one part in this many of
 * a large window. */
#define MAX_CAREFUL_Q8 PACKET_Q8
#define CAREFUL_PART 500
/* From this share of the level on, 0.9, and up to this share, 1.05, growth is careful. */
#define NEAR_BELOW_Q16 58982
#define NEAR_ABOVE_Q16 68813
/* Queues that are met at levels this close to each other, 0.3, come from something
 * steady. */
#define STEADY_Q16 19661
/* Where the rate varies by itself, the window is this share of what the path carries at
 * best, 1.1: a queue of the flow itself in place of a link that idles when its rate has
 * grown. */
#define VARYING_TOP_SHARE_Q16 72090
/* Growth where others or the rate come and go: 0.4 of the window. */
#define GROWTH_BESIDE_CHANGE_Q16 26214
/* Growth below, where no test has found anybody to be absent: 0.27 of the window. */
#define GROWTH_BELOW_Q16 17695
/* Growth above: half a packet at first, twice as much every three steps, up to one part
 * in this many of the window. */
#define GROWTH_ABOVE_PART 4
/* 128 times 2^(n/3). */
#define STEPS_ABOVE 32
static const __u32 GROWTH_ABOVE_Q8[STEPS_ABOVE] = {
	128, 161, 203, 256, 323, 406, 512, 645,
	813, 1024, 1290, 1625, 2048, 2580, 3251, 4096,
	5161, 6502, 8192, 10321, 13004, 16384, 20643, 26008,
	32768, 41285, 52016, 65536, 82570, 104032, 131072, 165140,
};

/* A window grows only if this share of it is used, 0.85: the effect of the last step
 * must have arrived. */
#define USED_SHARE_Q16 55706
/* Below ten packets, whole packets leave more of a window unused: 0.6. */
#define SMALL_WINDOW_Q8 (10 * PACKET_Q8)
#define SMALL_USED_SHARE_Q16 39322
/* So many packets may be unused in any. */
#define UNUSED_Q8 (5 * PACKET_Q8 / 2)

/* After a proven loss, the window stays below this share of the level that was lost,
 * 0.95, which rises by 0.02 in a second. */
#define CEILING_SHARE_Q16 62259
#define CEILING_RISE_US 763
/* A loss at less than this share of the capacity was no full path: 0.8. */
#define MIN_CEILING_SHARE_Q16 52429

/* No level is proven. */
#define UNPROVEN 0xffffffff

/* The square root of a window. */
static __always_inline __u32 root_q8(__u32 window_q8)
{
	return 16 * square_root(window_q8);
}

/* What the path carries in a round trip without a queue. */
static __always_inline __u32 level_full(const struct yielding *own, __u32 base_us)
{
	return scaled(own->capacity_q8, base_us, 1000000);
}

/* The time in which the path carries so many packets at its capacity, us; 0 while that is
 * unknown. */
static __always_inline __u32 level_takes_us(const struct yielding *own, __u32 packets)
{
	return scaled(packets * PACKET_Q8, 1000000, own->capacity_q8);
}

/* Takes a round trip. `is_held` means that other traffic keeps a queue. */
APART int level_learn(struct yielding *own, const struct round_sample *sample, bool is_held)
{
	__u64 delivered_q8, elapsed_us;
	__u32 steady_q8;

	if (!own || !sample)
		return 0;
	for (int i = STEADY_ROUND_TRIPS - 1; i > 0; i--) {
		own->delivered[i] = own->delivered[i - 1];
		own->elapsed_us[i] = own->elapsed_us[i - 1];
	}
	own->delivered[0] = sample->delivered;
	own->elapsed_us[0] = sample->elapsed_us;
	_Static_assert(STEADY_ROUND_TRIPS == 3, "the sums have three");
	delivered_q8 = (__u64)own->delivered[0] + own->delivered[1] + own->delivered[2];
	elapsed_us = (__u64)own->elapsed_us[0] + own->elapsed_us[1] + own->elapsed_us[2];
	delivered_q8 *= PACKET_Q8 * 1000000ULL;
	steady_q8 = elapsed_us ? delivered_q8 / elapsed_us : 0;
	if (steady_q8 > own->capacity_q8) {
		own->capacity_q8 = steady_q8;
		own->capacity_us = sample->now_us;
	} else if (!is_held && sample->now_us > own->capacity_us + CAPACITY_MEMORY_US) {
		own->capacity_q8 -= own->capacity_q8 / CAPACITY_FADING;
	}
	own->last_max_us = minus(sample->rtt_max_us, sample->base_us);
	return 0;
}

/* A queue of this length overflows, us. */
static __always_inline void level_overflow(struct yielding *own, __u32 longest_us)
{
	longest_us = max_of(longest_us, own->last_max_us);
	if (longest_us)
		own->buffer_us = own->buffer_us ? own->buffer_us / 2 + longest_us / 2 : longest_us;
}

/* Time of a packet at the bottleneck, us, where trains have shown this capacity, and full
 * segments take longer than the handshake by `excess_us`. */
static __always_inline __u32 level_packet(const struct yielding *own, __u32 segment,
					  __u32 train_capacity, __u32 excess_us)
{
	__u32 packet_us = level_takes_us(own, 1);

	if (train_capacity)
		packet_us = min_of(packet_us ? packet_us : MAX_PACKET_US,
				   scaled(segment, 1000000, train_capacity));
	return min_of(packet_us, min_of(excess_us + PACKET_NOISE_US, MAX_PACKET_US));
}

/* The longest queueing delay that is no sign of others, us. */
static __always_inline __u32 level_target(const struct yielding *own, __u32 packet_us,
					  __u32 base_us)
{
	__u32 target_us = times_q16(packet_us, TARGET_PACKETS_Q16);

	if (own->buffer_us)
		target_us = min_of(target_us, times_q16(own->buffer_us, TARGET_PER_BUFFER_Q16));
	return max_of(target_us, MIN_TARGET_US) + times_q16(base_us, TARGET_SHARE_Q16);
}

/* Learns how much delays vary without a standing queue, and tolerates as much. */
static __always_inline void level_noise(struct yielding *own, struct round_sample *sample,
					__u32 samples)
{
	__u32 noise_us = sample->mean_us - sample->rtt_min_us;

	if (samples < NOISE_SAMPLES) {
		sample->target_us = max_of(sample->target_us, NOISE_TIMES * own->noise_us);
		return;
	}
	if (sample->queue_us <= max_of(max_of(sample->target_us, own->noise_us), noise_us)) {
		if (own->noise_us < noise_us)
			own->noise_us += (noise_us - own->noise_us) / NOISE_RISE;
		else
			own->noise_us -= (own->noise_us - noise_us) / NOISE_FALL;
	}
	sample->target_us = max_of(sample->target_us, own->noise_us);
}

/* Takes the least delay of a round trip, where one up to `target_us` is no queue. After a
 * loss in a short queue, CUBIC leaves a part of the link free, and looks as if it had
 * gone. From a queue of 0.43 round trips on it leaves nothing: a queue that has gone there
 * was that of somebody who has gone. */
APART int level_depth(struct yielding *own, __u32 least_us, __u32 target_us, __u32 base_us)
{
	__u32 deepest_us;

	if (!own)
		return 0;
	if (least_us > target_us) {
		own->depth_us = max_of(own->depth_us, least_us);
	} else if (own->depth_us) {
		own->depths_us[own->oldest & (DEPTHS - 1)] = own->depth_us;
		own->oldest++;
		own->depth_us = 0;
	}
	deepest_us = own->depth_us;
	for (int i = 0; i < DEPTHS; i++)
		deepest_us = max_of(deepest_us, own->depths_us[i]);
	own->left_free_q16 = minus(MOST_LEFT_FREE_Q16,
				   scaled(KEPT_AFTER_LOSS_Q16, deepest_us, base_us));
	return 0;
}

/* Whether queues are so long that one that has gone was of somebody who has gone. */
static __always_inline bool level_hides_nobody(const struct yielding *own)
{
	return own->left_free_q16 == 0;
}

/* Whether others come and go: queues that hide nobody are met at ever other levels. */
static __always_inline bool level_is_beside_change(const struct yielding *own)
{
	return level_hides_nobody(own) && !own->is_steady;
}

/* The time after which CUBIC is back at the window of the whole path, us. */
static __always_inline __u32 level_recovery_us(__u32 full_q8)
{
	return 1000 * cube_root(max_of(full_q8, PACKET_Q8) * RECOVERY_PER_WINDOW);
}

/* A queue was met with this window, or a loss. */
static __always_inline void level_meet(struct yielding *own, __u32 carried_q8)
{
	__u32 before = own->met_q8;

	own->met_q8 = min_of(carried_q8, own->window_q8);
	own->beyond = 0;
	own->is_steady = max_of(minus(own->met_q8, before), minus(before, own->met_q8)) <=
			 times_q16(before, STEADY_Q16);
}

/* Whether the window is at the level at which a queue was last met, or little above. */
static __always_inline bool level_is_near(const struct yielding *own)
{
	return own->window_q8 >= times_q16(own->met_q8, NEAR_BELOW_Q16) &&
	       own->window_q8 < times_q16(own->met_q8, NEAR_ABOVE_Q16);
}

/* A test at the level that was met has found nobody. */
static __always_inline void level_prove(struct yielding *own, __u64 now_us, __u32 full_q8,
					bool by_loss)
{
	own->proven_q8 = own->met_q8;
	own->ceiling_q8 = 0;
	variation_learn(own, now_us, own->met_q8, full_q8);
	if (by_loss && own->met_q8 > times_q16(full_q8, MIN_CEILING_SHARE_Q16)) {
		own->ceiling_q8 = own->met_q8;
		own->ceiling_us = now_us;
	}
}

/* A climb has come to its top, after all others had left. */
static __always_inline void level_prove_all(struct yielding *own, __u32 full_q8)
{
	own->met_q8 = full_q8;
	own->proven_q8 = full_q8;
	own->ceiling_q8 = 0;
}

/* The level below which a queue may be that of somebody who takes all. */
static __always_inline __u32 level_left_by_others(const struct yielding *own, __u32 full_q8)
{
	return max_of(times_q16(full_q8, own->left_free_q16 + MORE_THAN_LEFT_Q16), MIN_LEFT_Q8);
}

/* Where a climb ends. */
static __always_inline __u32 level_top(__u32 full_q8, bool is_free)
{
	return times_q16(full_q8, is_free ? FREE_TOP_SHARE_Q16 : TOP_SHARE_Q16);
}

/* Takes the next step of a climb. */
static __always_inline void level_climb(struct yielding *own, __u32 full_q8, bool is_free)
{
	__u32 window = own->window_q8, more;
	__u32 clear = times_q16(level_left_by_others(own, full_q8), CLEAR_OF_OTHERS_Q16);

	if (is_free)
		more = max_of(window, full_q8 / CLIMB_PART);
	else if (window < clear)
		more = max_of(full_q8 / CLIMB_PART, window / CLIMB_GROWTH_PART);
	else
		more = times_q16(window, CLEAR_CLIMB_GROWTH_Q16);
	own->window_q8 = min_of(window + max_of(more, PACKET_Q8),
				max_of(level_top(full_q8, is_free), window + PACKET_Q8));
}

/* The widest window that does not lose data again, as far as it is known. */
static __always_inline __u32 level_ceiling(const struct yielding *own, __u64 now_us)
{
	__u32 share = CEILING_SHARE_Q16 +
		      capped(now_us - own->ceiling_us, 60000000) / CEILING_RISE_US;

	return own->ceiling_q8 ? times_q16(own->ceiling_q8, share) : MAX_WINDOW_Q8;
}

/* Sets the window after a round trip without a queue, of which so much was used. */
APART int level_fill(struct yielding *own, __u64 now_us, __u32 full_q8, __u32 used_q8)
{
	__u32 free_q8, top_q8, window, share_q16, careful, growth, next;

	if (!own)
		return 0;
	window = own->window_q8;
	share_q16 = window < SMALL_WINDOW_Q8 ? SMALL_USED_SHARE_Q16 : USED_SHARE_Q16;
	if (used_q8 < min_of(times_q16(window, share_q16), minus(window, UNUSED_Q8)))
		return 0;
	careful = min_of(times_q16(root_q8(window), CAREFUL_Q16),
			 max_of(MAX_CAREFUL_Q8, window / CAREFUL_PART));
	free_q8 = minus(level_top(full_q8, true), window);
	top_q8 = variation_is_known(own) ? times_q16(full_q8, VARYING_TOP_SHARE_Q16) : MAX_WINDOW_Q8;
	if (variation_is_known(own) && top_q8 > window) {
		growth = min_of(top_q8 - window, times_q16(window, GROWTH_BESIDE_CHANGE_Q16));
	} else if (level_is_beside_change(own) && free_q8) {
		growth = max_of(min_of(free_q8, times_q16(window, GROWTH_BESIDE_CHANGE_Q16)),
				careful);
	} else if (window < times_q16(own->met_q8, NEAR_BELOW_Q16)) {
		__u32 below = times_q16(own->met_q8, NEAR_BELOW_Q16) - window;
		__u32 share = own->proven_q8 == UNPROVEN ? times_q16(window, GROWTH_BELOW_Q16)
							 : window;

		growth = max_of(min_of(below, share), careful);
	} else if (window < times_q16(own->met_q8, NEAR_ABOVE_Q16)) {
		growth = careful;
	} else {
		own->beyond = min_of(own->beyond + 1, STEPS_ABOVE - 1);
		growth = GROWTH_ABOVE_Q8[own->beyond % STEPS_ABOVE];
		growth = min_of(growth, max_of(window / GROWTH_ABOVE_PART, PACKET_Q8));
	}
	next = min_of(window + growth, max_of(level_ceiling(own, now_us), window));
	own->window_q8 = min_of(min_of(next, max_of(top_q8, window)), MAX_WINDOW_Q8);
	return 0;
}
