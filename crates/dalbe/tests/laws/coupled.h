/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Cases for flows that yield as one (group.h).
 */
#pragma once

#include "native.h"

/* Flows that are heard at this moment, the first `limited` of them limited by their part. */
static void hear_all(struct group *group, struct member *flows, __u32 count, __u32 limited,
		     __u64 now_us)
{
	for (__u32 i = 0; i < count; i++) {
		flows[i].priority = max_of(flows[i].priority, 1);
		group_hear(group, &flows[i], now_us, i < limited);
	}
}

/* A group of this window that is at work. */
static struct group some_group(__u32 window)
{
	const struct state nothing = {0};
	struct group group = {0};

	group_begin(&group, &nothing, SECOND_US);
	group.s.yielding.phase = PHASE_FILLING;
	group.s.yielding.window_q8 = window * PACKET_Q8;
	group.s.yielding.rtt_us = 100000;
	return group;
}

static void parts_of_a_group(void)
{
	struct group group = some_group(40);
	struct member flows[4] = {0};

	hear_all(&group, flows, 1, 1, SECOND_US);
	EXPECT(!group_is_coupled(&group), "one flow is coupled");
	EXPECT(group_part(&group, 1) == 40 * PACKET_Q8, "of one flow: %u/256", group_part(&group, 1));
	hear_all(&group, flows, 4, 4, SECOND_US);
	EXPECT(group_is_coupled(&group) && group.flows == 4, "%u of 4 flows", group.flows);
	EXPECT(group_part(&group, 1) == 10 * PACKET_Q8, "of 4 flows: %u/256", group_part(&group, 1));
	/* Two of them no longer use their part, and the others get it. */
	hear_all(&group, flows, 4, 2, 3 * SECOND_US);
	hear_all(&group, flows, 4, 2, 5 * SECOND_US);
	EXPECT(group.flows == 4 && group.priorities == 2, "%u, priorities %u", group.flows,
	       group.priorities);
	EXPECT(group_part(&group, 1) == 20 * PACKET_Q8, "of 2 of 4: %u/256", group_part(&group, 1));
	/* At the floor, two packets in a round trip are of all of them. */
	group.s.yielding.window_q8 = FLOOR_Q8;
	hear_all(&group, flows, 4, 4, 5 * SECOND_US);
	EXPECT(group_part(&group, 1) == FLOOR_Q8 / 4, "at the floor: %u/256", group_part(&group, 1));
	EXPECT(group_turn_us(&group) == 400000, "a turn of %llu us", group_turn_us(&group));
}

static void priorities_of_a_group(void)
{
	struct group group = some_group(40);
	struct member flows[2] = {{.priority = 3}};

	hear_all(&group, flows, 2, 2, SECOND_US);
	EXPECT(group_part(&group, 3) == 30 * PACKET_Q8, "of 3: %u/256", group_part(&group, 3));
	EXPECT(group_part(&group, 1) == 10 * PACKET_Q8, "of 1: %u/256", group_part(&group, 1));
	/* A priority may change while the flow sends. */
	flows[0].priority = 1;
	hear_all(&group, flows, 2, 2, 3 * SECOND_US);
	hear_all(&group, flows, 2, 2, 5 * SECOND_US);
	EXPECT(group_part(&group, 1) == 20 * PACKET_Q8, "changed: %u/256", group_part(&group, 1));
	/* One that its part does not limit leaves all to the other. */
	flows[0].priority = 3;
	hear_all(&group, flows, 2, 1, 7 * SECOND_US);
	hear_all(&group, flows, 2, 1, 9 * SECOND_US);
	EXPECT(group_part(&group, 3) == 40 * PACKET_Q8, "alone: %u/256", group_part(&group, 3));
	group_forget(&group, &flows[0]);
	EXPECT(group.flows == 1 && group.priorities == 0, "%u of priority %u left", group.flows,
	       group.priorities);
}

static void flows_of_a_group(void)
{
	struct group group = some_group(40);
	struct member flows[3] = {0};

	hear_all(&group, flows, 3, 3, SECOND_US);
	EXPECT(!group_is_over(&group, 2 * SECOND_US), "a group is over too soon");
	EXPECT(group_is_over(&group, 3 * SECOND_US), "a silent group is not over");
	/* The third one is silent, and has gone after the next epoch. */
	hear_all(&group, flows, 2, 2, 3 * SECOND_US);
	EXPECT(group.flows == 3, "%u after one epoch", group.flows);
	hear_all(&group, flows, 2, 2, 5 * SECOND_US);
	EXPECT(group.flows == 2 && group.priorities == 2, "%u after two epochs", group.flows);
	group_forget(&group, &flows[1]);
	EXPECT(group.flows == 1 && !group_is_coupled(&group), "%u after one left", group.flows);
	group_forget(&group, &flows[0]);
	EXPECT(group_is_over(&group, 5 * SECOND_US), "a group of nobody is not over");
	/* Long turns make long epochs: nobody is forgotten between two pairs. */
	group = some_group(2);
	memset(flows, 0, sizeof(flows));
	hear_all(&group, flows, 3, 3, SECOND_US);
	group.s.yielding.rtt_us = 1000000;
	hear_all(&group, flows, 1, 1, 6 * SECOND_US);
	EXPECT(group.flows == 3 && group.epoch == flows[1].epoch, "epoch %u of %u", group.epoch,
	       flows[1].epoch);
}

static void opener_of_a_group(void)
{
	struct group group = some_group(0);
	struct member flows[3] = {0};

	group.s.yielding.phase = PHASE_OPENING;
	hear_all(&group, flows, 3, 3, SECOND_US);
	EXPECT(group_opens(&group, &flows[0], SECOND_US), "the first does not open");
	EXPECT(!group_opens(&group, &flows[1], SECOND_US), "two open at once");
	EXPECT(group_part(&group, 1) == FLOOR_Q8 / 2, "the others send %u/256", group_part(&group, 1));
	EXPECT(group_opens(&group, &flows[2], 3 * SECOND_US), "nobody takes over");
	EXPECT(!group_opens(&group, &flows[0], 3 * SECOND_US), "two open at once");
	group.s.yielding.phase = PHASE_TESTING;
	EXPECT(!group_opens(&group, &flows[2], 3 * SECOND_US), "it opens what is open");
}

/* A step of the group takes all acknowledgements of a round trip, whosesoever they are. */
static void round_trips_of_a_group(void)
{
	struct group group = some_group(40);
	struct round all;

	EXPECT(!group_is_round_over(&group, 9 * SECOND_US), "a round trip that has not begun");
	group.delivered = 7;
	group_begin_round(&group, SECOND_US);
	EXPECT(!group_is_round_over(&group, 2 * SECOND_US), "a round trip without packets");
	group.samples = 3;
	group.rtt_min_us = 100000;
	group.rtt_sum_us = 330000;
	group.delivered += 38;
	EXPECT(!group_is_round_over(&group, SECOND_US + 99999), "it is too short");
	EXPECT(group_is_round_over(&group, SECOND_US + 100000), "it is too long");
	all = group_round(&group);
	EXPECT(all.cwnd == 40 && all.samples == 3 && all.rtt_min_us == 100000, "%u packets", all.cwnd);
	EXPECT(group.delivered - group.delivered_before == 38, "of %u", group.delivered);
	group_go_alone(&group, 100000);
	EXPECT(!group_is_round_over(&group, 9 * SECOND_US), "one flow has round trips of its own");
}
