/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Cases of CDG. Decisions at random are always the same (native.h): it backs off where that
 * is more probable than not.
 */
#pragma once

#include "native.h"
#include "path.h"

/* A round trip of 100 ms and this queue, which the window limits. */
static struct round_sample cdg_look(__u32 w_q16, __u32 queue_us)
{
	struct round_sample look = {
		.segment = 1250, .w_q16 = w_q16, .cwnd = 20, .delivered = 20,
		.base_us = 100000, .queue_us = queue_us, .rtt_us = 100000 + queue_us,
		.rtt_min_us = 100000 + queue_us, .rtt_max_us = 100000 + queue_us,
		.mean_us = 100000 + queue_us, .elapsed_us = 100000 + queue_us,
		.is_limited = true, .is_timed = true,
	};

	return look;
}

static void waits_for_the_effect_of_a_back_off(void)
{
	struct cdg own = {.window_q8 = 100 * PACKET_Q8};
	struct telemetry seen = {0};
	__u32 backoffs = 0;

	/* The queue always grows. */
	for (__u32 i = 0; i < 20; i++) {
		struct round_sample look = cdg_look(ONE_Q16 / 4, i * 1000);
		__u32 before = own.window_q8;
		bool was_reduced = own.is_reduced;

		cdg_round(&own, &seen, &look, 100, 0);
		EXPECT(seen.g_us == 100, "it tells G = %u us", seen.g_us);
		if (was_reduced)
			EXPECT(own.window_q8 == before && seen.backoffs == backoffs,
			       "round trip %u: after a back-off %u/256 become %u", i, before,
			       own.window_q8);
		backoffs = seen.backoffs;
	}
	EXPECT(backoffs >= 9, "20 round trips with a queue that grows: %u back-offs", backoffs);
}

static void full_weight_is_reno(void)
{
	struct state s = known_path();
	struct parameters wanted = {.law = LAW_CDG, .w_q16 = ONE_Q16};
	__u32 window;

	s.cdg.window_q8 = s.yielding.window_q8 = 20 * PACKET_Q8;
	/* The kernel lets it grow with each acknowledgement. */
	for (__u32 i = 0; i < 100; i++) {
		struct round_sample look = cdg_look(ONE_Q16, i * 1000);

		steered_cdg(&s, &look);
		EXPECT(s.cdg.window_q8 == 20 * PACKET_Q8, "round trip %u: %u/256 packets", i,
		       s.cdg.window_q8);
	}
	EXPECT(s.seen.g_us == 0, "there is a G: %u us", s.seen.g_us);
	window = s.cdg.window_q8;
	law_loss(&s, &wanted, window, 100000, 100000, 10000000, false);
	EXPECT(s.cdg.window_q8 == window / 2, "a loss leaves %u of %u", s.cdg.window_q8, window);
}

static void grows_by_what_was_acknowledged(void)
{
	struct cdg own = {.window_q8 = 20 * PACKET_Q8};
	struct telemetry seen = {0};
	struct round_sample look = cdg_look(ONE_Q16 / 2, 0);

	look.delivered = 25;
	cdg_round(&own, &seen, &look, 1000, 0);
	EXPECT(own.window_q8 == 20 * PACKET_Q8 + PACKET_Q8 * 5 / 4,
	       "25 packets of a window of 20: %u/256", own.window_q8);
}

static void steers_towards_the_share(void)
{
	struct round_sample look = cdg_look(ONE_Q16 / 4, 20000);
	struct cdg own = {.window_q8 = 10 * PACKET_Q8};
	__u32 began_us = cdg_best_effort(look.base_us), before, i;

	for (i = 0; i < 100; i++) {
		before = own.best_effort_us ? own.best_effort_us : began_us;
		cdg_steer(&own, &look, 20 * PACKET_Q8);
		EXPECT(own.best_effort_us > before, "below the share: %u us", own.best_effort_us);
	}
	EXPECT(own.best_effort_us > 3 * began_us / 2, "12 s make %u us of %u",
	       own.best_effort_us, began_us);
	own.window_q8 = 40 * PACKET_Q8;
	for (i = 0; i < 100; i++) {
		before = own.best_effort_us;
		cdg_steer(&own, &look, 20 * PACKET_Q8);
		EXPECT(own.best_effort_us < before, "above the share: %u us", own.best_effort_us);
	}
	for (i = 0; i < 2000; i++)
		cdg_steer(&own, &look, 20 * PACKET_Q8);
	EXPECT(own.best_effort_us >= began_us / CDG_RANGE, "down to %u us", own.best_effort_us);
	own.window_q8 = FLOOR_Q8;
	for (i = 0; i < 2000; i++)
		cdg_steer(&own, &look, 20 * PACKET_Q8);
	EXPECT(own.best_effort_us == began_us * CDG_RANGE, "up to %u us", own.best_effort_us);
	own = (struct cdg){.window_q8 = FLOOR_Q8};
	look.is_limited = false;
	for (i = 0; i < 2000; i++)
		cdg_steer(&own, &look, 20 * PACKET_Q8);
	EXPECT(own.best_effort_us == began_us, "a sender with little to send: %u us",
	       own.best_effort_us);
}

static void refills_less_with_more_weight(void)
{
	struct cdg own = {.window_q8 = 10 * PACKET_Q8};
	__u32 before = 0xffffffff, w_q16, more_q8;

	for (w_q16 = MIN_WEIGHT_Q16; w_q16 <= ONE_Q16; w_q16 += 100) {
		more_q8 = cdg_refill(&own, 50 * PACKET_Q8, w_q16);
		EXPECT(more_q8 <= before, "w = %u/65536: %u after %u", w_q16, more_q8, before);
		before = more_q8;
	}
	EXPECT(cdg_refill(&own, 50 * PACKET_Q8, ONE_Q16) == 0, "at w = 1 it grows faster");
	own.lost_q8 = 16 * PACKET_Q8;
	own.window_q8 = 15 * PACKET_Q8;
	EXPECT(cdg_refill(&own, 50 * PACKET_Q8, MIN_WEIGHT_Q16) == 0, "it refills to the loss");
}

static void a_share_by_cdg(void)
{
	struct state s = known_path();
	struct round_sample look = cdg_look(ONE_Q16 / 4, 0);
	__u32 share = 20 * PACKET_Q8, window = 0;

	for (__u32 i = 1; i <= 600; i++) {
		look.now_us = i * 100000ULL;
		window = steered_cdg(&s, &look);
		EXPECT(window <= share + share / CDG_ABOVE_PART, "round trip %u: %u/256 packets",
		       i, window);
	}
	EXPECT(window >= share - 2, "without a queue it comes to %u/256 packets", window);
	look.w_q16 = MIN_WEIGHT_Q16;
	EXPECT(steered_cdg(&s, &look) == 0, "the least weight has a window of its own");
}
