/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Cases for the observer's arithmetic: Vulture's algorithms 1 and 6 on single
 * packets.
 */
#pragma once

#include "native.h"

#include "../../src/bpf/intervals.h"

/* When a packet left and when it arrived, ms. */
struct passage {
	__u32 sent_ms;
	__u32 arrived_ms;
};

/* The interval that holds all packets of a case. It begins with a second of the
 * clock and is the longest there is. */
#define CASE_BEGAN_US 1000000000ULL

static struct interval *take(struct statistics *s, struct passage passage, struct packet packet)
{
	struct interval *slot;

	packet.now_us = CASE_BEGAN_US + passage.arrived_ms * 1000ULL;
	packet.tsval = passage.sent_ms;
	if (s->interval_us == 0)
		restart(s, &packet, MAX_INTERVAL_US, USUAL_TICK_US);
	follow_sender(s, &packet);
	slot = current_slot(s, packet.now_us);
	note_piv(s, slot, packet.now_us);
	return slot;
}

/* Expects this sum, ms, and these counts in the bands of 4, 8, 12 and 20 ms. */
#define EXPECT_VARIATIONS(passages, sum_ms, ...)                                        \
	do {                                                                            \
		struct statistics s = {0};                                              \
		struct interval *slot = NULL;                                           \
		const __u32 bands[5] = {__VA_ARGS__};                                   \
		for (__u32 i = 0; i < sizeof(passages) / sizeof(*(passages)); i++)      \
			slot = take(&s, (passages)[i], (struct packet){0});             \
		EXPECT(slot->piv_sum_us == (sum_ms) * 1000, "%lld us", slot->piv_sum_us); \
		for (__u32 i = 0; i < 5; i++)                                           \
			EXPECT(slot->piv_bands[i] == bands[i], "%u in band %u",         \
			       slot->piv_bands[i], i);                                  \
	} while (0)

/* 20 pairs with 0: 4 ms longer. 27 pairs with 5: no longer. 60 pairs with 15, 20
 * and 27: 3, 6 and 2 ms shorter. */
static void variations_of_an_example(void)
{
	const struct passage packets[] = {{0, 100}, {5, 105}, {15, 116}, {20, 124}, {27, 127}, {60, 158}};

	EXPECT_VARIATIONS(packets, 4 + 0 - 3 - 6 - 2, 3, 2, 0, 0, 0);
}

static void variations_of_distant_packets(void)
{
	const struct passage near[] = {{7, 0}, {26, 90}}, far[] = {{7, 0}, {27, 90}};

	EXPECT_VARIATIONS(near, 0, 0);
	EXPECT_VARIATIONS(far, 70, 0, 0, 0, 0, 1);
}

static void variations_of_odd_timestamps(void)
{
	/* The timestamp wraps. A packet that was overtaken makes no pair. */
	const struct passage wrapping[] = {{0xffffffff - 9, 0}, {15, 26}};
	const struct passage late[] = {{40, 1}, {30, 2}, {60, 31}}, falling[] = {{50, 1}, {25, 2}};

	EXPECT_VARIATIONS(wrapping, 1, 1);
	EXPECT_VARIATIONS(late, 10, 0, 0, 1);
	EXPECT_VARIATIONS(falling, 0, 0);
}

static void variations_of_a_constant_delay(void)
{
	struct statistics s = {0};
	struct interval *slot = NULL;
	__u32 sent_ms = 0, pairs = 0;

	for (__u32 i = 0; i < 60; i++) {
		sent_ms += i * 7 % 15;
		slot = take(&s, (struct passage){sent_ms, sent_ms + 30}, (struct packet){0});
	}
	for (__u32 i = 0; i < 5; i++)
		pairs += slot->piv_bands[i];
	EXPECT(slot->piv_sum_us == 0 && slot->piv_positive == 0, "%lld us", slot->piv_sum_us);
	EXPECT(pairs > 0 && pairs == slot->piv_bands[0], "%u of %u", slot->piv_bands[0], pairs);
}

static void variations_of_a_clock_that_stands_still(void)
{
	struct statistics s = {0};

	for (__u32 i = 0; i < 3 * QUEUE; i++)
		take(&s, (struct passage){1, 0}, (struct packet){0});
	EXPECT(s.tracker.queued == 1, "%u packets wait", s.tracker.queued);
}

/* Whatever the clocks of both ends say, a packet makes at most one pair. */
static void variations_of_arbitrary_clocks(void)
{
	__u64 random = 29;

	for (__u32 run = 0; run < 200; run++) {
		struct statistics s = {0};
		struct interval *slot = NULL;
		__u32 sent_ms = 0, pairs = 0;

		for (__u32 i = 0; i < 1000; i++) {
			random = random * 6364136223846793005ULL + 1442695040888963407ULL;
			/* Small steps, steps back, and sometimes a leap anywhere. */
			sent_ms += random >> 60 == 0 ? (__u32)(random >> 20) : (random >> 40) % 20 - 4;
			slot = take(&s, (struct passage){sent_ms, i * 9 / 10}, (struct packet){0});
		}
		for (__u32 i = 0; i < 5; i++)
			pairs += slot->piv_bands[i];
		EXPECT(pairs <= 1000 && s.tracker.queued <= QUEUE, "run %u: %u pairs, %u wait", run,
		       pairs, s.tracker.queued);
	}
}

/* The tick of the sender's clock is found within three seconds. */
static void tick_of_the_sender(void)
{
	const __u32 ticks_us[] = {1, 1000, 4000, 10000};

	for (__u32 i = 0; i < 4; i++) {
		struct statistics s = {0};
		__u32 tick_us = ticks_us[i];

		for (__u32 now_ms = 0; now_ms < 3000; now_ms += 10)
			take(&s, (struct passage){now_ms * 1000 / tick_us, now_ms}, (struct packet){0});
		EXPECT(s.tick_us == tick_us && s.tracker.tick_is_known, "%u us for %u us", s.tick_us,
		       tick_us);
		/* Times in another tick are not compared with each other. */
		EXPECT(s.epoch == (tick_us == USUAL_TICK_US ? 1 : 2), "epoch %u", s.epoch);
	}
}

/* Packets of 1000 bytes, `each` in every 10 ms, on a path of 100 ms: each one
 * echoes the time at which our answer left 100 ms before. Our clock stands at
 * `clock` when the case begins. */
static void round_trips(__u32 clock)
{
	struct statistics s = {0};
	struct interval *slot = NULL;

	for (__u32 now_ms = 0; now_ms < 1000; now_ms += 10) {
		__u32 each = now_ms < 300 || now_ms >= 600 ? 1 : 2;

		for (__u32 i = 0; i < each; i++) {
			struct packet packet = {
				.now_us = CASE_BEGAN_US + now_ms * 1000ULL,
				.bytes = 1000,
				.tsecr = clock + now_ms - 100,
			};
			slot = take(&s, (struct passage){now_ms, now_ms}, packet);
			note_round(&s.tracker, slot, &packet, clock + now_ms);
		}
		/* The first packet that knows of our answer comes one step later. */
		EXPECT(now_ms < 110 || slot->round_us == 110000, "%u us", slot->round_us);
		EXPECT(now_ms < 110 || now_ms > 300 || slot->round_bytes == 11000,
		       "%llu bytes at %u ms", slot->round_bytes, now_ms);
		EXPECT(now_ms < 560 || now_ms > 600 || slot->round_bytes == 22000,
		       "%llu bytes at %u ms", slot->round_bytes, now_ms);
		EXPECT(now_ms < 860 || slot->round_bytes == 11000, "%llu bytes at %u ms",
		       slot->round_bytes, now_ms);
	}
}

static void bytes_per_round_trip(void)
{
	round_trips(1000);
	round_trips(0xffffffff - 250);
}
