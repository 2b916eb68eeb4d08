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
#include "../../src/rivals/bpf/tcp_lp_linux.h"

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
		ledbat_acknowledged(own, left > 1 ? 2 : 1, queue_us, 100000, gain_q16, MIN_WINDOW);
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

	ledbat_limit(&own, 60, MIN_WINDOW);
	EXPECT(whole_packets(&own.window) == 50, "%f packets", packets(&own.window));
	ledbat_limit(&own, 30, MIN_WINDOW);
	EXPECT(whole_packets(&own.window) == 31, "%f packets", packets(&own.window));
	ledbat_limit(&own, 0, MIN_WINDOW);
	EXPECT(whole_packets(&own.window) == MIN_WINDOW, "%f packets", packets(&own.window));
	ledbat_limit(&own, 0, 1);
	EXPECT(whole_packets(&own.window) == 1, "%f packets", packets(&own.window));
}

/* LEDBAT as its first implementations had it: 25 ms, and one packet at least. */
static void ledbat_early(void)
{
	struct ledbat own = {.window = {3 * PACKET_Q16}};

	for (int i = 0; i < 200; i++)
		ledbat_acknowledged(&own, 1, 100000, 25000, PACKET_Q16, 1);
	EXPECT(whole_packets(&own.window) == 1, "%f packets beside others", packets(&own.window));
	ledbat_acknowledged(&own, 1, 25000, 25000, PACKET_Q16, 1);
	EXPECT(packets(&own.window) == 1, "%f packets at the target", packets(&own.window));
	/* With an empty queue, a packet more in each round trip. */
	for (int round = 0; round < 5; round++) {
		double before = packets(&own.window);

		for (__u32 left = whole_packets(&own.window); left > 0; left--)
			ledbat_acknowledged(&own, 1, 0, 25000, PACKET_Q16, 1);
		EXPECT(packets(&own.window) > before + 0.7 && packets(&own.window) < before + 1.1,
		       "from %f to %f packets", before, packets(&own.window));
	}
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

/* So many delays of acknowledged packets. */
static void lp_hear(struct tcp_lp *own, int count, __u32 delay_us, __u32 una)
{
	for (int i = 0; i < count; i++)
		lp_take_delay(own, delay_us, una);
}

static void early_indication(void)
{
	struct tcp_lp own = {0};

	/* A range of 100 ms. */
	lp_hear(&own, 1, 1000000, 0);
	lp_hear(&own, 100, 1100000, 0);
	EXPECT(lp_indicates(&own), "a full queue");
	lp_hear(&own, 200, 1014000, 0);
	EXPECT(!lp_indicates(&own), "14 %%, smoothed %u us", own.smoothed_us);
	lp_hear(&own, 200, 1016000, 0);
	EXPECT(lp_indicates(&own), "16 %%, smoothed %u us", own.smoothed_us);
	/* One packet says nothing: an eighth of it counts. */
	lp_hear(&own, 200, 1000000, 0);
	lp_hear(&own, 1, 1100000, 0);
	EXPECT(!lp_indicates(&own), "one packet, smoothed %u us", own.smoothed_us);
}

/* One that has met a queue of 100 ms, and halves at it, with `nxt` to be sent next. */
static struct tcp_lp lp_halved(__u32 nxt, __u32 now_us)
{
	struct tcp_lp own = {.has_lost = 1};

	lp_hear(&own, 1, 0, 0);
	lp_hear(&own, 100, 100000, 1000);
	EXPECT(lp_acknowledged(&own, nxt, RTT_US, now_us) == LP_HALVE, "the first");
	return own;
}

static void inference(void)
{
	const __u32 nxt = 5000;
	__u32 now_us = 1000000;
	struct tcp_lp own = lp_halved(nxt, now_us);

	/* What was sent before does not count. */
	now_us += RTT_US / 2;
	lp_hear(&own, 10, 100000, nxt);
	EXPECT(lp_acknowledged(&own, 6000, RTT_US, now_us) == LP_STAY, "at once");
	/* Nor does one delay alone. */
	now_us += RTT_US;
	lp_hear(&own, 1, 100000, nxt + 1);
	EXPECT(lp_acknowledged(&own, 6000, RTT_US, now_us) == LP_STAY, "one delay");
	lp_hear(&own, 1, 100000, nxt + 2);
	EXPECT(lp_acknowledged(&own, 6000, RTT_US, now_us) == LP_ONE_PACKET, "the second");
	/* Without an indication it waits for three round trips, and then grows. */
	lp_hear(&own, 200, 0, 6001);
	EXPECT(lp_acknowledged(&own, 7000, RTT_US, now_us + 2 * RTT_US) == LP_STAY,
	       "within the time-out");
	now_us += 3 * RTT_US;
	EXPECT(lp_acknowledged(&own, 7000, RTT_US, now_us) == LP_INCREASE, "after it");
	/* An indication then is a first one again. */
	lp_hear(&own, 100, 100000, 7001);
	EXPECT(lp_acknowledged(&own, 8000, RTT_US, now_us) == LP_HALVE, "another first");
}

/* A queue that a halving empties is one event, however few packets tell of it. */
static void one_event(void)
{
	__u32 now_us = 1000000;
	struct tcp_lp own = lp_halved(5000, now_us);
	enum lp_step step = LP_STAY;

	/* Two acknowledgements in a round trip, for longer than the time-out. */
	for (__u32 i = 0; i < 2 * (INFERENCE_ROUNDS + 1); i++) {
		now_us += RTT_US / 2;
		lp_take_delay(&own, 1000, 5001 + i);
		step = lp_acknowledged(&own, 9000, RTT_US, now_us);
		EXPECT(step == LP_STAY || step == LP_INCREASE, "reduced again after %u", i);
	}
	EXPECT(step == LP_INCREASE, "it does not grow");
}

/* The queue that a loss has found is not heard again behind it. */
static void after_a_loss(void)
{
	struct tcp_lp own = {.has_lost = 1};
	__u32 now_us = 1000000;

	lp_hear(&own, 1, 0, 0);
	lp_hear(&own, 100, 100000, 1000);
	lp_reduced(&own, 5000);
	EXPECT(lp_acknowledged(&own, 6000, RTT_US, now_us) == LP_INCREASE, "recovered");
	for (__u32 i = 0; i < 10; i++) {
		lp_take_delay(&own, 5000, 5001 + i);
		EXPECT(lp_acknowledged(&own, 6000, RTT_US, now_us) == LP_INCREASE,
		       "an empty queue behind a loss, %u", i);
	}
}

/* At one packet it is told of the queue by a receiver that answers at once. It stays there
 * beside others, and grows when they are gone. */
static void one_packet(void)
{
	__u32 now_us = 1000000, una = 1000, grown = 0;
	struct tcp_lp own = lp_halved(una + 1, now_us);

	for (int i = 0; i < 40; i++) {
		enum lp_step step;

		now_us += RTT_US;
		una++;
		lp_take_delay(&own, i < 20 ? 100000 : 0, una);
		step = lp_acknowledged(&own, una + 1, RTT_US, now_us);
		grown += step == LP_INCREASE;
		EXPECT(i >= 20 || step != LP_INCREASE, "it grows beside others at %d", i);
	}
	EXPECT(grown >= 14, "it grows in %u of 20 round trips", grown);
}

/* So long for `lpl_take_delay`, again and again; whether it reduced the window. */
static enum lpl_step lpl_round(struct tcp_lp_linux *own, __u32 delay_us, __u32 *now_us)
{
	enum lpl_step step = LPL_NOTHING;

	for (int i = 0; i < 20; i++) {
		enum lpl_step now = lpl_take_delay(own, delay_us, 2 * RTT_US, *now_us);

		step = now > step ? now : step;
		*now_us += RTT_US / 20;
	}
	return step;
}

static void linux_rebases(void)
{
	struct tcp_lp_linux own = {0};
	__u32 now_us = 1000000;

	/* The zero of the clocks is arbitrary. */
	EXPECT(lpl_round(&own, 0xfffffff0, &now_us) == LPL_NOTHING, "an empty queue");
	EXPECT(own.smoothed_us == RTT_US, "half of the round trip, %u us", own.smoothed_us);
	EXPECT(lpl_round(&own, 0xfffffff0 + 30000, &now_us) >= LPL_HALVE, "30 ms more");
	/* On the queue that it has found, nothing more is said of it. */
	for (int i = 0; i < 20; i++)
		lpl_round(&own, 0xfffffff0 + 30000, &now_us);
	for (int i = 0; i < 20; i++)
		EXPECT(lpl_round(&own, 0xfffffff0 + 30000, &now_us) == LPL_NOTHING,
		       "the same queue again");
	EXPECT(!lpl_is_inferring(&own, now_us), "it infers for ever");
	/* The threshold is 15 % of twice the delay less the least. */
	EXPECT(lpl_round(&own, 0xfffffff0 + 60000, &now_us) >= LPL_HALVE, "a longer one");
}

static void linux_infers(void)
{
	struct tcp_lp_linux own = {0};
	__u32 now_us = 1000000, rtt_us = 2 * RTT_US;
	enum lpl_step first = LPL_NOTHING, second = LPL_NOTHING;

	lpl_take_delay(&own, 0, rtt_us, now_us);
	for (int i = 0; i < 20 && first == LPL_NOTHING; i++)
		first = lpl_take_delay(&own, 100000, rtt_us, now_us);
	EXPECT(first == LPL_HALVE, "the first, %d", first);
	EXPECT(lpl_is_inferring(&own, now_us + 3 * rtt_us - 1), "within three round trips");
	EXPECT(!lpl_is_inferring(&own, now_us + 3 * rtt_us), "after them");
	for (int i = 0; i < 20 && second == LPL_NOTHING; i++)
		second = lpl_take_delay(&own, 300000, rtt_us, now_us + rtt_us);
	EXPECT(second == LPL_ONE_PACKET, "the second within them, %d", second);
}

static const struct {
	const char *name;
	void (*run)(void);
} CASES[] = {
	{"base_delay", base_delay},
	{"clocks_wrap", clocks_wrap},
	{"ledbat_steps", ledbat_steps},
	{"ledbat_limited", ledbat_limited},
	{"ledbat_early", ledbat_early},
	{"gains", gains},
	{"decrease", decrease},
	{"slowdowns", slowdowns},
	{"slow_start_ends", slow_start_ends},
	{"early_indication", early_indication},
	{"inference", inference},
	{"one_event", one_event},
	{"after_a_loss", after_a_loss},
	{"one_packet", one_packet},
	{"linux_rebases", linux_rebases},
	{"linux_infers", linux_infers},
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
