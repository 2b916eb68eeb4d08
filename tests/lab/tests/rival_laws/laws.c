/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Cases for the laws of the rivals. `rival-laws CASE` fails and tells which condition
 * does not hold.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

#include "types.h"

#include "../../src/rivals/bpf/ledbat.h"
#include "../../src/rivals/bpf/ledbat_pp.h"
#include "../../src/rivals/bpf/tcp_lp.h"

/* What did not hold. */
static int failures;

/* Goes on, and says the first few. */
#define EXPECT(condition, ...)                                          \
	do {                                                            \
		if (!(condition) && failures++ < 5) {                   \
			fprintf(stderr, "%s:%d: ", __FILE__, __LINE__); \
			fprintf(stderr, __VA_ARGS__);                   \
			fprintf(stderr, " [%s]\n", #condition);         \
		}                                                       \
	} while (0)

static double packets(const struct window *window)
{
	return (double)window->q16 / PACKET_Q16;
}

static void base_delay(void)
{
	struct delays delays = {0};

	take_delay(&delays, 20000, 0);
	for (__u32 minute = 0; minute < 9; minute++)
		take_delay(&delays, 50000, minute * MINUTE_MS + 1000);
	EXPECT(base_delay_us(&delays) == 20000, "%u us within ten minutes",
	       base_delay_us(&delays));
	EXPECT(queueing_delay_us(&delays) == 30000, "%u us", queueing_delay_us(&delays));
	take_delay(&delays, 60000, 9 * MINUTE_MS + 1000);
	EXPECT(queueing_delay_us(&delays) == 30000, "not the least of the last four");
	take_delay(&delays, 60000, 10 * MINUTE_MS + 1000);
	EXPECT(base_delay_us(&delays) == 50000, "%u us later", base_delay_us(&delays));
}

static void clocks_wrap(void)
{
	struct delays delays = {0};

	take_delay(&delays, 0xfffffff0, 0);
	for (int i = 0; i < CURRENT_FILTER; i++)
		take_delay(&delays, 0xfffffff0 + 5000, 100);
	EXPECT(queueing_delay_us(&delays) == 5000, "%u us", queueing_delay_us(&delays));
}

/* A round trip in which every packet of the window is acknowledged, two by two. */
static void ledbat_round(struct ledbat *own, __u32 queue_us, __u32 gain_q16)
{
	for (__u32 left = whole_packets(&own->window); left > 0; left -= left > 1 ? 2 : 1)
		ledbat_acknowledged(own, left > 1 ? 2 : 1, queue_us, 100000, gain_q16);
}

static void ledbat_steps(void)
{
	static const struct {
		__u32 queue_us, gain_q16;
		double step;
	} CASES[] = {
		{0, 65536, 1}, {50000, 65536, 0.5}, {100000, 65536, 0}, {150000, 65536, -0.5},
		{300000, 65536, -2}, {0, 4 * 65536, 4},
	};

	for (__u32 i = 0; i < sizeof(CASES) / sizeof(*CASES); i++) {
		struct ledbat own = {.window = {50 * PACKET_Q16}};
		double step;

		ledbat_round(&own, CASES[i].queue_us, CASES[i].gain_q16);
		step = packets(&own.window) - 50;
		EXPECT(step > CASES[i].step - 0.2 && step < CASES[i].step + 0.2,
		       "with %u us by %f packets", CASES[i].queue_us, step);
		EXPECT(step <= CASES[i].gain_q16 / 65536.0, "%f is more than the gain", step);
	}
	for (int i = 0; i < 100; i++) {
		struct ledbat own = {.window = {3 * PACKET_Q16}};

		ledbat_round(&own, 1000000 * i, 65536);
		EXPECT(whole_packets(&own.window) >= MIN_WINDOW, "a window below the least");
	}
}

static void ledbat_limited(void)
{
	struct ledbat own = {.window = {50 * PACKET_Q16}};

	ledbat_limit(&own, 60);
	EXPECT(whole_packets(&own.window) == 50, "%f packets", packets(&own.window));
	ledbat_limit(&own, 30);
	EXPECT(whole_packets(&own.window) == 31, "%f packets", packets(&own.window));
	ledbat_limit(&own, 0);
	EXPECT(whole_packets(&own.window) == MIN_WINDOW, "%f packets", packets(&own.window));
}

static void gains(void)
{
	static const __u32 CASES[][2] = {
		{200000, 1}, {120000, 1}, {119999, 2}, {60000, 2}, {20000, 6}, {8000, 15},
		{7000, 16}, {100, 16}, {0, 16},
	};

	for (__u32 i = 0; i < sizeof(CASES) / sizeof(*CASES); i++)
		EXPECT(gain_divisor(CASES[i][0]) == CASES[i][1], "with %u us 1/%u", CASES[i][0],
		       gain_divisor(CASES[i][0]));
}

static void decrease(void)
{
	static const struct {
		__u32 queue_us;
		double least, most;
	} CASES[] = {
		/* 100 (66 / 60 - 1) - 1 = 9 */
		{66000, -9.5, -8}, {300000, -50, -35}, {3000000, -50, -35},
	};

	for (__u32 i = 0; i < sizeof(CASES) / sizeof(*CASES); i++) {
		struct window before = {100 * PACKET_Q16};
		struct ledbat_pp own = {.window = before};
		double step;

		for (int part = 0; part < 50; part++)
			change_window(&own, 2, CASES[i].queue_us, PACKET_Q16);
		step = packets(&own.window) - 100;
		EXPECT(step >= CASES[i].least && step <= CASES[i].most, "with %u us by %f",
		       CASES[i].queue_us, step);
	}
}

/* A path on which a round trip takes so long, with this queue. */
#define RTT_US 50000

static void pp_round(struct ledbat_pp *own, __u32 *ssthresh, __u32 queue_us, __u32 *now_us)
{
	__u32 count = whole_packets(&own->window);

	for (__u32 i = 0; i < count; i++) {
		*now_us += RTT_US / count;
		take_delay(&own->delays, RTT_US + queue_us, *now_us / 1000);
		ledbat_pp_acknowledged(own, ssthresh, 1, RTT_US, *now_us, true);
	}
}

static void slow_start_ends(void)
{
	struct ledbat_pp own = {.window = {MIN_WINDOW * PACKET_Q16}};
	__u32 ssthresh = 0x7fffffff, now_us = 0;
	double before;

	for (int i = 0; i < 5; i++) {
		before = packets(&own.window);
		pp_round(&own, &ssthresh, 0, &now_us);
	}
	/* The gain is a third. */
	EXPECT(own.phase == PHASE_INITIAL, "it is in phase %u", own.phase);
	EXPECT(packets(&own.window) > 1.25 * before && packets(&own.window) < 1.5 * before,
	       "from %f to %f", before, packets(&own.window));
	for (int i = 0; i < 2; i++)
		pp_round(&own, &ssthresh, 44000, &now_us);
	EXPECT(own.phase == PHASE_INITIAL, "below 3/4 of the target it is in phase %u", own.phase);
	for (int i = 0; i < 2; i++)
		pp_round(&own, &ssthresh, 46000, &now_us);
	EXPECT(own.phase == PHASE_AVOIDING, "above it is in phase %u", own.phase);
}

static void slowdowns(void)
{
	struct ledbat_pp own = {.window = {MIN_WINDOW * PACKET_Q16}};
	__u32 ssthresh = 0x7fffffff, now_us = 0, ended_us = 0, took_us = 0, seen = 0;
	enum phase before = PHASE_INITIAL;
	__u32 window = 0, entered_us = 0;

	for (int i = 0; i < 8; i++)
		pp_round(&own, &ssthresh, 0, &now_us);
	while (own.phase == PHASE_INITIAL)
		pp_round(&own, &ssthresh, EXIT_US + 1000, &now_us);
	ended_us = now_us;
	for (__u32 i = 0; i < 100000 && seen < 4; i++) {
		if (own.phase == PHASE_AVOIDING)
			window = whole_packets(&own.window);
		before = own.phase;
		now_us += 2000;
		take_delay(&own.delays, RTT_US, now_us / 1000);
		ledbat_pp_acknowledged(&own, &ssthresh, 1, RTT_US, now_us, true);
		if (own.phase == PHASE_SLOWED) {
			EXPECT(whole_packets(&own.window) == 2, "%f packets", packets(&own.window));
			if (before == PHASE_SLOWED)
				continue;
			entered_us = now_us;
			EXPECT(ssthresh >= window, "%u of %u packets kept", ssthresh, window);
			if (seen)
				EXPECT(now_us - ended_us >= 9 * took_us &&
					       now_us - ended_us < 9 * took_us + 10000,
				       "%u us after one of %u us", now_us - ended_us, took_us);
			else
				EXPECT(now_us - ended_us <= 2 * RTT_US + 10000,
				       "the first after %u us", now_us - ended_us);
		} else if (before == PHASE_SLOWED) {
			EXPECT(now_us - entered_us >= 2 * RTT_US &&
				       now_us - entered_us < 2 * RTT_US + 10000,
			       "held for %u us", now_us - entered_us);
		} else if (before == PHASE_RAMPING && own.phase == PHASE_AVOIDING) {
			seen++;
			ended_us = now_us;
			took_us = now_us - entered_us;
		}
	}
	EXPECT(seen == 4, "%u slowdowns", seen);
}

static void early_indication(void)
{
	struct tcp_lp own = {0};

	/* A range of 100 ms. */
	lp_take_delay(&own, 1000000);
	for (int i = 0; i < 100; i++)
		lp_take_delay(&own, 1100000);
	EXPECT(lp_indicates(&own), "a full queue");
	for (int i = 0; i < 200; i++)
		lp_take_delay(&own, 1014000);
	EXPECT(!lp_indicates(&own), "14 %%, smoothed %u us", own.smoothed_us);
	for (int i = 0; i < 200; i++)
		lp_take_delay(&own, 1016000);
	EXPECT(lp_indicates(&own), "16 %%, smoothed %u us", own.smoothed_us);
	/* One packet says nothing: an eighth of it counts. */
	for (int i = 0; i < 200; i++)
		lp_take_delay(&own, 1000000);
	lp_take_delay(&own, 1100000);
	EXPECT(!lp_indicates(&own), "one packet, smoothed %u us", own.smoothed_us);
}

static void inference(void)
{
	struct tcp_lp own = {0};
	const __u32 nxt = 5000;
	__u32 now_us = 1000000;

	lp_take_delay(&own, 0);
	for (int i = 0; i < 100; i++)
		lp_take_delay(&own, 100000);
	EXPECT(lp_acknowledged(&own, 1000, nxt, RTT_US, now_us) == LP_HALVE, "the first");
	/* What was sent before does not count. */
	now_us += RTT_US / 2;
	EXPECT(lp_acknowledged(&own, nxt, 6000, RTT_US, now_us) == LP_STAY, "at once");
	now_us += RTT_US;
	EXPECT(lp_acknowledged(&own, nxt + 1, 6000, RTT_US, now_us) == LP_ONE_PACKET,
	       "the second");
	/* Without an indication it waits for three round trips, and then grows. */
	for (int i = 0; i < 200; i++)
		lp_take_delay(&own, 0);
	EXPECT(lp_acknowledged(&own, 6001, 7000, RTT_US, now_us + 2 * RTT_US) == LP_STAY,
	       "within the time-out");
	now_us += 3 * RTT_US;
	EXPECT(lp_acknowledged(&own, 6002, 7000, RTT_US, now_us) == LP_INCREASE, "after it");
	/* An indication then is a first one again. */
	for (int i = 0; i < 100; i++)
		lp_take_delay(&own, 100000);
	EXPECT(lp_acknowledged(&own, 7001, 8000, RTT_US, now_us) == LP_HALVE, "another first");
}

static const struct {
	const char *name;
	void (*run)(void);
} CASES[] = {
	{"base_delay", base_delay},
	{"clocks_wrap", clocks_wrap},
	{"ledbat_steps", ledbat_steps},
	{"ledbat_limited", ledbat_limited},
	{"gains", gains},
	{"decrease", decrease},
	{"slowdowns", slowdowns},
	{"slow_start_ends", slow_start_ends},
	{"early_indication", early_indication},
	{"inference", inference},
};

int main(int count, char **words)
{
	for (__u32 i = 0; i < sizeof(CASES) / sizeof(*CASES); i++) {
		if (count == 2 && strcmp(words[1], CASES[i].name) == 0) {
			CASES[i].run();
			return failures != 0;
		}
	}
	fprintf(stderr, "no such case\n");
	return 2;
}
