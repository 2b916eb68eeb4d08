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
	__u32 priorities_now;
	/* The same in the last epoch, or in the present one if that is more. */
	__u32 flows;
	__u32 priorities;
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
	/* Nobody was heard in the last epoch either. */
	group->epoch += 2;
	group->epoch_us = now_us;
	group->heard_now = 0;
	group->priorities_now = 0;
	group->flows = 0;
	group->priorities = 0;
	group->opener = group->numbers + 1;
	group->opener_us = now_us;
	group->heard_us = now_us;
}

/* The window of a flow of this priority, packets/256. */
static __always_inline __u32 group_part(const struct group *group, __u32 priority)
{
	if (group->s.yielding.phase == PHASE_OPENING)
		return FLOOR_Q8 / max_of(minus(group->flows, 1), 1);
	return max_of(group->s.yielding.window_q8, FLOOR_Q8) * priority /
	       max_of(group->priorities, priority);
}

/* The longest time from one pair of packets of a flow to the next, us. */
static __always_inline __u64 group_turn_us(const struct group *group)
{
	return (__u64)group->s.yielding.rtt_us * FLOOR_Q8 / max_of(group_part(group, 1), 1);
}

/* Hears of a flow: whether its part is what limits it. */
static __always_inline void group_hear(struct group *group, struct member *own, __u64 now_us,
				       bool is_limited)
{
	__u64 length_us = EPOCH_US + 2 * group_turn_us(group);

	if (!own->number)
		own->number = ++group->numbers;
	/* All were idle. */
	if (now_us > group->epoch_us + 2 * length_us) {
		group->heard_now = 0;
		group->priorities_now = 0;
		group->began_us = 0;
	}
	if (now_us > group->epoch_us + length_us) {
		group->flows = group->heard_now;
		group->priorities = group->priorities_now;
		group->heard_now = 0;
		group->priorities_now = 0;
		group->epoch++;
		group->epoch_us = now_us;
	}
	if (own->epoch != group->epoch) {
		own->epoch = group->epoch;
		own->counted = 0;
		group->heard_now++;
	}
	if (is_limited) {
		group->priorities_now += own->priority - own->counted;
		own->counted = own->priority;
	}
	group->flows = max_of(group->flows, group->heard_now);
	group->priorities = max_of(group->priorities, group->priorities_now);
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
		group->priorities_now = minus(group->priorities_now, own->counted);
	}
	group->flows = minus(group->flows, 1);
	group->priorities = minus(group->priorities, own->counted);
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
