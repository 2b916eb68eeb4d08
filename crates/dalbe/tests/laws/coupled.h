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

/* The part of this flow is so large, packets/256. */
static void expect_part(const struct group *group, const struct member *flow, __u32 part_q8,
			const char *whose)
{
	__u32 is_q8 = group_part(group, flow);

	EXPECT(is_q8 == part_q8, "%s: %u/256, not %u", whose, is_q8, part_q8);
}

static void parts_of_a_group(void)
{
	struct group group = some_group(40);
	struct member flows[4] = {0};

	hear_all(&group, flows, 1, 1, SECOND_US);
	EXPECT(!group_is_coupled(&group), "one flow is coupled");
	expect_part(&group, &flows[0], 40 * PACKET_Q8, "of one flow");
	hear_all(&group, flows, 4, 4, SECOND_US);
	EXPECT(group_is_coupled(&group) && group.flows == 4, "%u of 4 flows", group.flows);
	expect_part(&group, &flows[0], 10 * PACKET_Q8, "of 4 flows");
	/* Two of them no longer use their part, and the others get it. */
	hear_all(&group, flows, 4, 2, 3 * SECOND_US);
	hear_all(&group, flows, 4, 2, 5 * SECOND_US);
	EXPECT(group.flows == 4 && group.priority_sum == 2, "%u, priorities %u", group.flows,
	       group.priority_sum);
	expect_part(&group, &flows[0], 20 * PACKET_Q8, "of 2 of 4");
	/* At the floor, two packets in a round trip are of all of them. */
	group.s.yielding.window_q8 = FLOOR_Q8;
	hear_all(&group, flows, 4, 4, 5 * SECOND_US);
	expect_part(&group, &flows[0], FLOOR_Q8 / 4, "at the floor");
	EXPECT(group_turn_us(&group) == 400000, "a turn of %llu us", group_turn_us(&group));
}

static void priorities_of_a_group(void)
{
	struct group group = some_group(40);
	struct member flows[3] = {{.priority = 3}};

	hear_all(&group, flows, 2, 2, SECOND_US);
	expect_part(&group, &flows[0], 30 * PACKET_Q8, "of 3");
	expect_part(&group, &flows[1], 10 * PACKET_Q8, "of 1");
	/* A priority may change while the flow sends, up and down. */
	flows[1].priority = 5;
	hear_all(&group, flows, 2, 2, SECOND_US);
	expect_part(&group, &flows[1], 25 * PACKET_Q8, "of 5");
	flows[1].priority = 1;
	hear_all(&group, flows, 2, 2, SECOND_US);
	hear_all(&group, flows, 2, 2, 3 * SECOND_US);
	hear_all(&group, flows, 2, 2, 5 * SECOND_US);
	EXPECT(group.priority_sum == 4, "a sum of %u", group.priority_sum);
	/* A flow that its part does not limit gets one beside the others, and not of them. */
	flows[2].priority = 4;
	group_hear(&group, &flows[2], 5 * SECOND_US, false);
	expect_part(&group, &flows[2], 20 * PACKET_Q8, "of 4");
	expect_part(&group, &flows[0], 30 * PACKET_Q8, "of 3");
	/* One of two that count leaves. */
	group_forget(&group, &flows[0]);
	EXPECT(group.flows == 2 && group.priority_sum == 1, "%u of priority %u left", group.flows,
	       group.priority_sum);
	expect_part(&group, &flows[1], 40 * PACKET_Q8, "the other");
}

/* The longest turns make the longest epochs, whatever the priorities. */
static void turns_of_a_group(void)
{
	struct group group = some_group(2);
	struct member flows[200] = {0};

	hear_all(&group, flows, 4, 4, SECOND_US);
	EXPECT(group_turn_us(&group) == 400000, "of 4 flows: %llu us", group_turn_us(&group));
	hear_all(&group, flows, 200, 200, SECOND_US);
	EXPECT(group_turn_us(&group) == 8000000, "of 200: %llu us", group_turn_us(&group));
}

/* A flow was silent while its group was removed, and another one made. */
static void silence_of_a_flow(void)
{
	struct group group = some_group(40), other = some_group(40);
	struct member flows[2] = {{.priority = 64}, {0}};

	hear_all(&group, flows, 2, 2, SECOND_US);
	flows[0].priority = 1;
	flows[1] = (struct member){0};
	other.epoch = 0;
	group_begin(&other, &group.s, 9 * SECOND_US);
	hear_all(&other, &flows[1], 1, 1, 9 * SECOND_US);
	hear_all(&other, flows, 1, 1, 9 * SECOND_US);
	EXPECT(other.flows == 2 && other.priority_sum == 2, "%u of priority %u", other.flows,
	       other.priority_sum);
}

/* A window that grows while flows send pairs waits for two turns, or until it is used. */
static void growth_of_a_group(void)
{
	struct group group = some_group(2);
	struct member flows[16] = {0};
	struct round_sample look = {
		.is_timed = true, .rtt_min_us = 100000, .mean_us = 100000, .base_us = 100000,
		.target_us = 2000, .packet_us = 600, .delivered = 2, .used_q8 = 2 * PACKET_Q8,
	};

	hear_all(&group, flows, 16, 16, SECOND_US);
	group.s.yielding.phase = PHASE_CLIMBING;
	group.s.yielding.capacity_q8 = 800 * PACKET_Q8;
	for (__u32 i = 0; i < 24; i++) {
		__u32 before_q8 = group.s.yielding.window_q8;

		look.now_us = SECOND_US + i * 200000;
		group_begin_round(&group, look.now_us);
		group_step(&group, &look);
		if (i == 0)
			EXPECT(group.s.yielding.window_q8 > before_q8, "it does not climb");
		if (i > 0 && i < 17)
			EXPECT(group.s.yielding.window_q8 == before_q8, "it climbs in step %u", i);
		if (i == 17)
			EXPECT(group.s.yielding.window_q8 > before_q8, "it waits for ever");
	}
	/* What is used has been learnt of. */
	look.used_q8 = group.s.yielding.window_q8;
	group.learnt_us = look.now_us + SECOND_US;
	group.s.yielding.phase = PHASE_CLIMBING;
	group.s.yielding.window_q8 = 10 * PACKET_Q8;
	look.now_us += 200000;
	group_begin_round(&group, look.now_us);
	group_step(&group, &look);
	EXPECT(group.s.yielding.window_q8 > 10 * PACKET_Q8, "it waits for what is used");
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
	EXPECT(group.flows == 2 && group.priority_sum == 2, "%u after two epochs", group.flows);
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
	expect_part(&group, &flows[0], FLOOR_Q8 / 2, "the others");
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
