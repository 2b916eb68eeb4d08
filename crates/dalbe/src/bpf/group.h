/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The flows of a group yield as one: all that one user sends from one network namespace to
 * one host (coupled congestion control: ctrlTCP, NEAT D3.2, appendix D). One law follows
 * what they deliver together, and its window is divided by their priorities (algorithm 3).
 *
 * - Opening. One flow finds the path by slow start, and the others send at the floor. A flow
 *   that comes later begins with its part, without slow start.
 * - A step of the law takes all acknowledgements of a round trip. The flow whose own round
 *   trip ends next takes it for all.
 * - A flow that does not use its part, or that its receiver holds back, does not count. The
 *   others divide the window among themselves, and its losses tell nothing of the path.
 * - Where a part is only a few packets in a round trip, the flow sends pairs and waits between
 *   them. A pair is acknowledged at once, and a single packet is not.
 *
 * This file does not depend on the kernel's socket.
 */
#pragma once

#include "yielding.h"

/* A flow that was not heard of for this time, us, and two of its turns, has gone. */
#define EPOCH_US 1000000
/* A group of which nothing was heard for this time, us, and some round trips, begins anew. */
#define GROUP_MEMORY_US 1000000
#define GROUP_MEMORY_ROUND_TRIPS 4
/* A flow with a smaller part, packets/256, sends pairs. */
#define MAX_PAIRED_Q8 (8 * PACKET_Q8)
/* A flow sends a pair at least so often, s. The queueing discipline fq drops packets that are
 * to leave more than 10 s later. */
#define MAX_TURN_S 8
/* Flows have learnt of a window of which they use this share, 0.6, or after so many turns: a
 * turn may take a third longer (pair_rate), and more while a pair is repaired. */
#define LEARNT_Q16 39322
#define LEARNING_TURNS 2

/* What a group is of. */
struct group_key {
	/* IPv6, or IPv4 in the first of them. */
	__u32 address[4];
	__u32 local[4];
	__u32 family;
	__u32 user;
	__u32 network;
	/* enum law. */
	__u32 law;
};

struct group {
	/* What the law knows, as of a single flow. */
	struct state s;
	/* When the present round trip of the group began, and what had been delivered by
	 * then; 0 while there is only one flow. */
	__u64 began_us;
	__u32 delivered_before;
	/* The window at its beginning, packets, and the round-trip time without a queue. */
	__u32 window;
	__u32 base_us;
	/* When all flows have learnt of the last growth of the window. */
	__u64 learnt_us;
	/* Packets that its flows have delivered, and their round-trip times in this round
	 * trip. Each acknowledgement adds to them. */
	__u32 delivered;
	__u32 samples;
	__u32 rtt_min_us;
	__u64 rtt_sum_us;
	/* When a flow was last heard, and when the one that opens the path was. */
	__u64 heard_us;
	__u64 opener_us;
	/* The present epoch, in which flows are counted: those that were heard, and the sum of
	 * the priorities of those of them that their part limits. */
	__u64 epoch_us;
	__u32 epoch;
	__u32 heard_now;
	__u32 sum_now;
	/* The same in the last epoch, or in the present one if that is more. */
	__u32 flows;
	__u32 priority_sum;
	/* The number of the last flow that came, and of the one that opens the path. */
	__u32 numbers;
	__u32 opener;
	/* A flow changes the group. Others do not wait: they skip a round trip. */
	__u32 is_busy;
};

/* Whether nothing is known any more of the flows of a group. */
static __always_inline bool group_is_over(const struct group *group, __u64 now_us)
{
	return !group->flows ||
	       now_us > group->heard_us + GROUP_MEMORY_US +
				GROUP_MEMORY_ROUND_TRIPS * (__u64)group->s.yielding.rtt_us;
}

/* Begins with what this flow knows. */
static __always_inline void group_begin(struct group *group, const struct state *own, __u64 now_us)
{
	group->s = *own;
	group->began_us = 0;
	/* Nobody was heard in the last epoch either, nor in a group that was removed. */
	group->epoch = max_of(group->epoch, (__u32)(now_us / EPOCH_US)) + 2;
	group->learnt_us = now_us;
	group->epoch_us = now_us;
	group->heard_now = 0;
	group->sum_now = 0;
	group->flows = 0;
	group->priority_sum = 0;
	group->opener = group->numbers + 1;
	group->opener_us = now_us;
	group->heard_us = now_us;
}

/* The window of a flow, whose priority is 1 at least, packets/256. */
static __always_inline __u32 group_part(const struct group *group, const struct member *own)
{
	__u32 sum = minus(group->priority_sum + own->priority, own->counted);

	if (group->s.yielding.phase == PHASE_OPENING)
		return FLOOR_Q8 / max_of(minus(group->flows, 1), 1);
	return max_of(group->s.yielding.window_q8, FLOOR_Q8) * own->priority /
	       max_of(sum, max_of(own->priority, 1));
}

/* Time from one pair of packets of a flow of priority 1 to the next, us. */
static __always_inline __u64 group_turn_us(const struct group *group)
{
	const struct yielding *law = &group->s.yielding;
	__u64 turn_us = (__u64)law->rtt_us * max_of(group->priority_sum, 1);

	if (law->phase == PHASE_OPENING)
		turn_us = (__u64)law->rtt_us * max_of(minus(group->flows, 1), 1);
	else
		turn_us = turn_us * FLOOR_Q8 / max_of(law->window_q8, FLOOR_Q8);
	return min_of(turn_us, MAX_TURN_S * 1000000ULL);
}

/* Hears of a flow: whether its part is what limits it. */
static __always_inline void group_hear(struct group *group, struct member *own, __u64 now_us,
				       bool is_limited)
{
	__u64 length_us = EPOCH_US + 2 * group_turn_us(group);

	/* The group of before was removed while this flow was silent. */
	if (own->number > group->numbers)
		own->number = 0;
	if (!own->number)
		own->number = ++group->numbers;
	/* All were idle. */
	if (now_us > group->epoch_us + 2 * length_us) {
		group->heard_now = 0;
		group->sum_now = 0;
		group->began_us = 0;
	}
	if (now_us > group->epoch_us + length_us) {
		group->flows = group->heard_now;
		group->priority_sum = group->sum_now;
		group->heard_now = 0;
		group->sum_now = 0;
		group->epoch++;
		group->epoch_us = now_us;
	}
	if (own->epoch != group->epoch) {
		own->epoch = group->epoch;
		own->counted = 0;
		group->heard_now++;
	}
	if (is_limited) {
		group->sum_now = minus(group->sum_now + own->priority, own->counted);
		own->counted = own->priority;
	}
	group->flows = max_of(group->flows, group->heard_now);
	group->priority_sum = max_of(group->priority_sum, group->sum_now);
	group->heard_us = now_us;
}

/* A flow has left. */
static __always_inline void group_forget(struct group *group, const struct member *own)
{
	if (group->opener == own->number)
		group->opener_us = 0;
	/* A flow that was not heard does not count any more. */
	if (!own->number || (own->epoch != group->epoch && own->epoch + 1 != group->epoch))
		return;
	if (own->epoch == group->epoch) {
		group->heard_now = minus(group->heard_now, 1);
		group->sum_now = minus(group->sum_now, own->counted);
	}
	group->flows = minus(group->flows, 1);
	/* It may not have been there in the last epoch. */
	group->priority_sum = max_of(minus(group->priority_sum, own->counted), group->sum_now);
}

static __always_inline bool group_is_coupled(const struct group *group)
{
	return group->flows > 1;
}

/* Whether this flow finds the path for all. Another one takes over if it is silent, or if its
 * application or its receiver holds it back. */
static __always_inline bool group_opens(struct group *group, const struct member *own, __u64 now_us)
{
	if (group->s.yielding.phase != PHASE_OPENING)
		return false;
	if (group->opener != own->number && now_us <= group->opener_us + GROUP_MEMORY_US)
		return false;
	if (group->opener != own->number || own->counted)
		group->opener_us = now_us;
	group->opener = own->number;
	return true;
}

static __always_inline bool group_is_round_over(const struct group *group, __u64 now_us)
{
	return group->s.yielding.phase != PHASE_OPENING && group->began_us && group->samples &&
	       now_us >= group->began_us + max_of(group->s.yielding.rtt_us, MIN_ROUND_US);
}

/* The present round trip of all flows, as if it were of a single one. Its longest time is
 * unknown: packets of different flows meet each other, which is no noise of the path. */
static __always_inline struct round group_round(const struct group *group)
{
	return (struct round){
		.began_us = group->began_us,
		.cwnd = group->window,
		.base_us = group->base_us,
		.samples = group->samples,
		.rtt_min_us = group->rtt_min_us,
		.rtt_sum_us = group->rtt_sum_us,
	};
}

/* Whether flows send pairs. */
static __always_inline bool group_sends_pairs(const struct group *group)
{
	return group->s.yielding.window_q8 / max_of(group->flows, 1) < MAX_PAIRED_Q8;
}

/* The law takes a round trip of all flows. A flow that sends pairs learns of its part when the
 * next pair is due. Until then, a window that has grown shows nothing. */
static __always_inline void group_step(struct group *group, struct round_sample *sample)
{
	struct yielding *law = &group->s.yielding;
	__u64 turn_us = group_turn_us(group);
	__u32 before_q8 = law->window_q8;

	sample->is_limited = group->priority_sum;
	sample->is_late = sample->now_us < group->learnt_us &&
			  sample->used_q8 < times_q16(group->window * PACKET_Q8, LEARNT_Q16);
	/* The second packet of a pair waits for the first one. */
	if (group_sends_pairs(group))
		sample->target_us += sample->packet_us;
	yield_round(law, &group->s.seen, sample);
	if (law->window_q8 > before_q8)
		group->learnt_us = sample->now_us + LEARNING_TURNS * turn_us + law->rtt_us;
}

static __always_inline void group_begin_round(struct group *group, __u64 now_us)
{
	group->began_us = now_us;
	group->window = max_of(group->s.yielding.window_q8, FLOOR_Q8) / PACKET_Q8;
	group->delivered_before = group->delivered;
	group->samples = 0;
	group->rtt_min_us = 0xffffffff;
	group->rtt_sum_us = 0;
}

/* A flow has taken a step as the only one. */
static __always_inline void group_go_alone(struct group *group, __u32 base_us)
{
	group->began_us = 0;
	group->base_us = base_us;
}
