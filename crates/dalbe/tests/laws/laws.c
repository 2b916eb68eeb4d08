/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Cases for the arithmetic of the eBPF programs. `laws CASE` fails and tells
 * which condition does not hold.
 */
#include "arrivals.h"
#include "bursts_cases.h"
#include "cdg_cases.h"
#include "coupled.h"
#include "native.h"
#include "path.h"
#include "route_cases.h"

static void whole_windows(void)
{
	const __u32 window_q8 = 53 * PACKET_Q8 / 10, rounds = 1000;
	struct yielding own = {0};
	__u64 sum_q8 = 0;

	for (__u32 i = 1; i <= rounds; i++) {
		__u32 window = whole(&own, window_q8);

		EXPECT(window % PACKET_Q8 == 0, "%u is not of whole packets", window);
		sum_q8 += window;
		EXPECT(sum_q8 <= (__u64)i * window_q8 && sum_q8 + PACKET_Q8 > (__u64)i * window_q8,
		       "%u windows of 5.3 packets are %llu/256 packets", i, sum_q8);
	}
	for (__u32 i = 0; i < 10000; i++) {
		__u32 wanted = FLOOR_Q8 + i * 37 % (3 * PACKET_Q8);
		__u32 window = whole(&own, wanted);

		EXPECT(window >= FLOOR_Q8, "of %u/256 packets %u/256 are left", wanted, window);
	}
}

/* Round trips of this length until so much time has gone by. */
static void see(struct weighted *own, __u32 rtt_us, __u32 time_us)
{
	struct round_sample look = {
		.rtt_us = rtt_us, .rtt_max_us = rtt_us, .elapsed_us = rtt_us, .cwnd = 10,
		.is_timed = true,
	};

	for (__u32 gone_us = 0; gone_us < time_us; gone_us += rtt_us)
		mean_rtt(own, &look);
}

static void mean_round_trip(void)
{
	static const __u32 RTTS_US[] = {500, 1000, 20000, 200000};

	for (__u32 i = 0; i < sizeof(RTTS_US) / sizeof(*RTTS_US); i++) {
		__u32 low_us = RTTS_US[i], high_us = 2 * low_us;
		struct weighted own = {0};

		see(&own, low_us, 1);
		EXPECT(own.rtt_us == low_us, "the first of %u us makes %u us", low_us, own.rtt_us);
		see(&own, high_us, 4 * MEAN_US);
		EXPECT(own.rtt_us >= high_us - high_us / 50 && own.rtt_us <= high_us,
		       "from %u us to %u us it comes to %u us", low_us, high_us, own.rtt_us);
		see(&own, low_us, 4 * MEAN_US);
		EXPECT(own.rtt_us >= low_us && own.rtt_us <= low_us + low_us / 25,
		       "from %u us back to %u us it comes to %u us", high_us, low_us, own.rtt_us);
	}
	/* A burst of others, on a path that is long enough to tell parts of it. */
	struct weighted own = {.rtt_us = 20000};
	see(&own, 40000, MEAN_US / 8);
	EXPECT(own.rtt_us <= 22500, "a second makes %u us of 20 ms", own.rtt_us);
}

static void unmeasured_round_trips(void)
{
	struct weighted own = {.rtt_us = 20000};
	struct round_sample look = {
		.rtt_us = 60000, .rtt_max_us = 60000, .elapsed_us = 60000, .cwnd = 10,
	};

	mean_rtt(&own, &look);
	EXPECT(own.rtt_us == 20000, "an untimed round trip makes %u us of 20 ms", own.rtt_us);
	look.is_timed = true;
	look.cwnd = 1;
	mean_rtt(&own, &look);
	EXPECT(own.rtt_us == 20000, "a single packet makes %u us of 20 ms", own.rtt_us);
	look.cwnd = 10;
	look.elapsed_us = 60000000;
	mean_rtt(&own, &look);
	EXPECT(own.rtt_us > 20000 && own.rtt_us < 22000,
	       "60 ms after an idle minute make %u us of 20 ms", own.rtt_us);
}

static void trains_answers(void)
{
	struct trains own = {0};

	train_learn(&own, 7000);
	EXPECT(own.capacity == 7000 && !own.is_sure, "of one: %u", own.capacity);
	train_learn(&own, 8000);
	EXPECT(own.capacity == 8000 && own.is_sure, "of two: %u", own.capacity);
	train_learn(&own, 9000);
	EXPECT(own.capacity == 8000 && own.is_sure, "of three: %u", own.capacity);
	train_learn(&own, 20000);
	EXPECT(own.capacity == 9000 && !own.is_sure, "of four: %u", own.capacity);
	for (int i = 0; i < 3; i++)
		train_learn(&own, 1000);
	EXPECT(own.capacity == 1000 && !own.is_sure, "the largest counts: %u", own.capacity);
	train_learn(&own, 1000);
	EXPECT(own.capacity == 1000 && own.is_sure, "the fifth last counts: %u", own.capacity);

	memset(&own, 0, sizeof(own));
	train_learn(&own, 8000);
	train_learn(&own, 6999);
	EXPECT(!own.is_sure, "sure of answers that differ by more than an eighth");

	memset(&own, 0, sizeof(own));
	for (__u32 i = 0; i < 70000; i++) {
		train_learn(&own, 1000 * (i % 4 + 1));
		EXPECT(i < 3 || own.capacity == 3000, "after %u answers: %u", i + 1, own.capacity);
	}
}

/* What leaves at once is a train; what comes later is none. */
static void trains_of_what_there_was(void)
{
	struct round round = {0};

	train_begin(&round, 1000, 1448);
	train_acknowledged(&round, 2448, 1000 + TRAIN * 1448, 50000);
	train_acknowledged(&round, 1000 + TRAIN * 1448, 20000, 55000);
	EXPECT(round.tested == 5 * 1448 * 200, "5 packets in 5 ms are %u byte/s", round.tested);

	memset(&round, 0, sizeof(round));
	train_begin(&round, 1000, 1448);
	train_acknowledged(&round, 1200, 1300, 50000);
	EXPECT(round.train == TRAIN_NONE, "what comes later is waited for");

	/* A greeting, and when it is answered all the rest. */
	train_begin(&round, 1000, 1448);
	train_acknowledged(&round, 1200, 1200, 50000);
	train_acknowledged(&round, 1200 + 1448, 1200 + TRAIN * 1448, 150000);
	train_acknowledged(&round, 1200 + TRAIN * 1448, 20000, 155000);
	EXPECT(round.tested == 5 * 1448 * 200, "5 packets in 5 ms are %u byte/s", round.tested);
}

static void weights_bound(void)
{
	struct state s = known_path();
	struct round_sample look = {
		.segment = 1250, .w_q16 = ONE_Q16 / 4, .cwnd = 10, .delivered = 10,
		.elapsed_us = 100000, .rtt_us = 100000, .rtt_min_us = 100000,
		.rtt_max_us = 100000, .is_limited = true,
	};
	__u32 bound = bound_of(&s, &look), window = 0, before = 0;

	EXPECT(bound >= 20 * PACKET_Q8 - 2 && bound <= 20 * PACKET_Q8,
	       "w = 0.25 is good for %u/256 of 100 packets", bound);
	for (__u32 i = 1; i <= 600; i++) {
		look.now_us = i * 100000ULL;
		window = weighted_law(&s, &look);
		EXPECT(window <= bound, "round trip %u: %u/256 packets", i, window);
	}
	EXPECT(window == bound, "in a minute it comes to %u/256 packets", window);

	for (look.w_q16 = MIN_WEIGHT_Q16; look.w_q16 < ONE_Q16; look.w_q16++) {
		bound = bound_of(&s, &look);
		EXPECT(bound >= before, "w = %u/65536: %u after %u", look.w_q16, bound, before);
		before = bound;
	}
	EXPECT(before >= 99 * PACKET_Q8, "just below w = 1: %u/256 of 100 packets", before);
	EXPECT(bound_of(&s, &look) == MAX_WINDOW_Q8, "w = 1 has a bound");
	look.w_q16 = MIN_WEIGHT_Q16;
	EXPECT(weighted_law(&s, &look) == 0, "the least weight has a window of its own");
	look.w_q16 = ONE_Q16 / 4;
	look.capacity = 1250000;
	s.trains.capacity = 0;
	EXPECT(bound_of(&s, &look) == MAX_WINDOW_Q8, "a bound without an answer of a train");
}

static void a_share_that_is_not_known_is_sought(void)
{
	struct state s = {.weighted = {.rtt_us = 100000}};
	struct round_sample look = {.segment = 1250, .w_q16 = ONE_Q16};

	s.yielding.phase = PHASE_YIELDING;
	EXPECT(!seeks_share(&s, &look), "a new flow seeks what it has");
	s.w_q16 = MIN_WEIGHT_Q16;
	EXPECT(seeks_share(&s, &look), "one that has yielded does not seek the full weight");
	look.w_q16 = ONE_Q16 / 4;
	EXPECT(seeks_share(&s, &look), "a share of an unknown path is not sought");
	look.w_q16 = MIN_WEIGHT_Q16;
	EXPECT(!seeks_share(&s, &look), "a flow that yields seeks a share");
	look.w_q16 = ONE_Q16 / 4;
	s.yielding.phase = PHASE_FILLING;
	EXPECT(!seeks_share(&s, &look), "one that has not gone to its minimum seeks a share");
	s = known_path();
	s.yielding.phase = PHASE_YIELDING;
	s.w_q16 = MIN_WEIGHT_Q16;
	EXPECT(!seeks_share(&s, &look), "a share of a known path is sought");
}

static void fills_an_idle_path(void)
{
	/* 10 and 5 Mbit/s in packets of 1500 bytes. */
	static const struct path PATHS[] = {
		{833, 11000}, {833, 20000}, {833, 100000}, {416, 22000},
	};

	for (__u32 i = 0; i < sizeof(PATHS) / sizeof(*PATHS); i++) {
		const struct path *path = &PATHS[i];
		struct flow flow;
		__u32 longest_us, packets;
		__u64 from_us;

		flow_begin(&flow);
		/* Without slow start, and with a test of whether others are there. */
		flow_alone(&flow, path, flow.now_us + 12 * SECOND_US);
		from_us = flow.now_us;
		packets = flow.tp.delivered;
		longest_us = flow_alone(&flow, path, from_us + 10 * SECOND_US);
		packets = scaled(flow.tp.delivered - packets, SECOND_US, flow.now_us - from_us);
		EXPECT(packets * 10 >= path->packets_s * 9, "%u us: %u of %u packets/s",
		       path->base_us, packets, path->packets_s);
		EXPECT(longest_us <= max_of(5000, 4 * SECOND_US / path->packets_s),
		       "%u us: a queue of %u us", path->base_us, longest_us);
	}
}

/* Whatever a train has told of the path, byte/s; 0 if there was none. */
static void yields_after(__u32 capacity)
{
	static const struct path PATH = {833, 20000};
	__u64 came_us, gone_us;
	struct flow flow;
	__u32 packets;

	flow_begin(&flow);
	flow.s.trains.capacity = capacity;
	flow_alone(&flow, &PATH, flow.now_us + 5 * SECOND_US);
	EXPECT(flow.cwnd > 10, "alone it has %u packets", flow.cwnd);
	came_us = flow.now_us;
	/* Longer than what is seen now is remembered for (round.h). */
	gone_us = came_us + 120 * SECOND_US;
	while (flow.now_us < gone_us) {
		/* 25 to 35 ms: a queue that never changes would be none. */
		__u32 others_us = 25000 + flow.now_us % (2 * SECOND_US) / 200;

		flow_round(&flow, &PATH, others_us);
		EXPECT(flow.now_us < came_us + SECOND_US || flow.cwnd <= 2,
		       "%llu ms after they came: %u packets", (flow.now_us - came_us) / 1000,
		       flow.cwnd);
	}
	flow_alone(&flow, &PATH, gone_us + 5 * SECOND_US / 2);
	came_us = flow.now_us;
	packets = flow.tp.delivered;
	flow_alone(&flow, &PATH, came_us + SECOND_US);
	packets = scaled(flow.tp.delivered - packets, SECOND_US, flow.now_us - came_us);
	EXPECT(packets * 10 >= PATH.packets_s * 9, "after they went: %u of %u packets/s", packets,
	       PATH.packets_s);
}

static void yields_to_others(void)
{
	yields_after(0);
	yields_after(1250000);
	/* A twentieth of it. */
	yields_after(60000);
}

/* Round trips that are shorter than what is taken for one: the window grows by
 * packets, and the mean is that of what they were. */
static void shorter_than_the_least(void)
{
	struct round_sample look = {
		.w_q16 = ONE_Q16, .cwnd = 100, .delivered = 250, .elapsed_us = MIN_RTT_US,
		.rtt_us = 100, .rtt_min_us = MIN_RTT_US, .rtt_max_us = MIN_RTT_US,
		.is_limited = true, .is_timed = true,
	};
	struct weighted own = {0};

	weighted_begin(&own, 100 * PACKET_Q8);
	for (__u32 i = 1; i <= 40; i++) {
		look.now_us = i * MIN_RTT_US;
		weighted_grow(&own, &look, ONE_Q16);
	}
	/* Of 40, a hundred round trips. */
	EXPECT(own.window_q8 >= 150 * PACKET_Q8 && own.window_q8 <= 154 * PACKET_Q8,
	       "from 100 to %u/256 packets", own.window_q8);
	mean_rtt(&own, &look);
	EXPECT(own.rtt_us == 100, "a mean of %u us", own.rtt_us);
}

/* Within a machine: a packet takes 25 us, the fastest 3, and one in fifty waits 2 ms for a
 * processor. */
static void waits_for_a_processor(void)
{
	struct flow flow;

	flow_begin(&flow);
	for (__u32 i = 1; i <= 8000; i++) {
		__u32 windows = MIN_ROUND_US / 25;

		flow_over(&flow, 3, 25 + 2000 / 50, MIN_ROUND_US, windows * flow.cwnd);
		EXPECT(i < 4000 || flow.cwnd >= 30, "%u packets in round %u", flow.cwnd, i);
	}
}

/* 10 Mbit/s, of which a round trip of 100 ms has 83 packets. */
static const struct path LONG_PATH = {833, 100000};

/* Alone until it has found the path, and then beside a queue until it tests. */
static void flow_tests(struct flow *flow)
{
	flow_begin(flow);
	flow_alone(flow, &LONG_PATH, flow->now_us + 20 * SECOND_US);
	EXPECT(flow->cwnd >= 75, "alone it has %u packets", flow->cwnd);
	flow->s.yielding.proven_q8 = UNPROVEN;
	for (__u32 i = 0; i < 20 && flow->s.yielding.phase != PHASE_TESTING; i++)
		flow_round(flow, &LONG_PATH, 6000);
	EXPECT(flow->s.yielding.phase == PHASE_TESTING, "beside a queue it does not test");
	EXPECT(flow->cwnd >= 50 && flow->cwnd <= 70, "it tests with %u packets", flow->cwnd);
}

static void others_come_back(void)
{
	struct flow flow;
	__u64 until_us;

	flow_tests(&flow);
	until_us = flow.now_us + 2 * SECOND_US;
	while (flow.now_us < until_us)
		flow_round(&flow, &LONG_PATH, 0);
	EXPECT(flow.s.yielding.phase == PHASE_TESTING, "a test is over in two seconds");
	flow_round(&flow, &LONG_PATH, 12000);
	EXPECT(flow.cwnd == 2, "when they are back it has %u packets", flow.cwnd);
	EXPECT(flow.s.yielding.phase == PHASE_YIELDING, "it does not yield");
}

static void nobody_comes_back(void)
{
	struct flow flow;
	__u32 met_q8;

	flow_tests(&flow);
	met_q8 = flow.s.yielding.met_q8;
	flow_alone(&flow, &LONG_PATH, flow.now_us + MAX_TEST_US + SECOND_US);
	EXPECT(flow.s.yielding.phase == PHASE_FILLING, "the test is not over");
	EXPECT(flow.s.yielding.proven_q8 == met_q8, "proven is %u/256 of %u/256 packets",
	       flow.s.yielding.proven_q8, met_q8);
	EXPECT(flow.cwnd >= 75, "it has %u packets", flow.cwnd);
}

/* Lets the flow yield, then shows it a queue of this length for this time. Returns for how
 * long it has more than the floor, us. */
static __u64 knocks_beside(struct flow *flow, __u32 queue_us, __u64 time_us)
{
	__u64 until_us, knocked_us = 0;

	flow_tests(flow);
	while (flow->s.yielding.phase == PHASE_TESTING)
		flow_round(flow, &LONG_PATH, 12000);
	until_us = flow->now_us + time_us;
	while (flow->now_us < until_us && flow->s.yielding.phase == PHASE_YIELDING) {
		__u64 before_us = flow->now_us;
		bool is_at_floor = flow->cwnd <= 2;

		/* A queue that never changes would be none. */
		flow_round(flow, &LONG_PATH, queue_us + flow->now_us / 100000 % 2 * 2500);
		if (!is_at_floor)
			knocked_us += flow->now_us - before_us;
	}
	return knocked_us;
}

/* Goes on until the flow knocks. */
static void flow_knocks(struct flow *flow)
{
	while (!flow->s.yielding.knock_until_us)
		flow_round(flow, &LONG_PATH, 3000 + flow->now_us / 100000 % 2 * 2500);
}

static void knocks_at_a_short_queue(void)
{
	struct flow flow;
	__u64 knocked_us = knocks_beside(&flow, 3000, 100 * SECOND_US);

	/* After 5, 10, 20 and 40 s, for 1.4 s. */
	EXPECT(knocked_us > 4 * SECOND_US && knocked_us < 7 * SECOND_US,
	       "beside a short queue it knocks for %llu ms in 100 s", knocked_us / 1000);
	EXPECT(flow.s.yielding.unanswered == 4, "%u knocks", flow.s.yielding.unanswered);
	knocked_us = knocks_beside(&flow, 12000, 100 * SECOND_US);
	EXPECT(knocked_us < SECOND_US, "beside a long queue it knocks for %llu ms",
	       knocked_us / 1000);
}

static void an_answer_to_a_knock(void)
{
	struct flow flow;
	struct yielding *own = &flow.s.yielding;

	knocks_beside(&flow, 3000, 10 * SECOND_US);
	EXPECT(own->unanswered == 1, "%u knocks without an answer", own->unanswered);
	flow_knocks(&flow);
	EXPECT(own->window_q8 > 4 * FLOOR_Q8, "a knock of %u/256 packets", own->window_q8);
	/* It must not come back for any other reason. */
	own->queued_rounds = NOT_QUEUED;
	own->climb_us = flow.now_us + 60 * SECOND_US;
	for (__u32 i = 0; i < 4; i++)
		flow_round(&flow, &LONG_PATH, 0);
	EXPECT(own->phase == PHASE_CLIMBING, "the queue has gone, and it yields");
	EXPECT(!own->unanswered, "the answer does not count");
	EXPECT(own->is_free, "after an answer it climbs carefully");
	flow_alone(&flow, &LONG_PATH, flow.now_us + 3 * SECOND_US);
	EXPECT(flow.cwnd >= 60, "it comes back to %u packets", flow.cwnd);
}

static void a_knock_that_loses_data(void)
{
	struct flow flow;
	struct yielding *own = &flow.s.yielding;

	knocks_beside(&flow, 3000, 5 * SECOND_US);
	flow_knocks(&flow);
	yield_loss(own, &flow.s.seen, flow.now_us + 1000, 100000, 5000);
	EXPECT(own->window_q8 == FLOOR_Q8, "after a loss %u/256 packets", own->window_q8);
	EXPECT(!own->knock_until_us && own->unanswered == 1, "the knock goes on");
}

/* A loss in a test is one of the same burst at first, and later somebody's. */
static void losses_in_a_test(void)
{
	struct flow flow;
	struct yielding *own = &flow.s.yielding;

	flow_tests(&flow);
	flow_round(&flow, &LONG_PATH, 0);
	flow_round(&flow, &LONG_PATH, 0);
	yield_loss(own, &flow.s.seen, flow.now_us, 100000, 20000);
	EXPECT(own->phase == PHASE_TESTING, "it takes the end of a burst for others");
	for (__u32 i = 0; i < 8; i++)
		flow_round(&flow, &LONG_PATH, 0);
	yield_loss(own, &flow.s.seen, flow.now_us, 100000, 20000);
	EXPECT(own->phase == PHASE_YIELDING && own->window_q8 == FLOOR_Q8,
	       "after another loss it has %u/256 packets", own->window_q8);
}

/* What gets through a policer is the level, whatever went before. */
static void a_repair_shows_the_level(void)
{
	struct flow flow;
	struct yielding *own = &flow.s.yielding;

	flow_tests(&flow);
	yield_repaired(own, 200000, 80, 100000);
	EXPECT(own->met_q8 == 40 * PACKET_Q8, "the level is %u/256 packets", own->met_q8);
	EXPECT(own->window_q8 <= 36 * PACKET_Q8, "of which it holds %u/256", own->window_q8);
	own->phase = PHASE_FILLING;
	yield_repaired(own, 200000, 20, 100000);
	EXPECT(own->met_q8 == 40 * PACKET_Q8, "a level without a test");
}

static void a_climb_that_meets_others(void)
{
	struct flow flow;
	__u64 failed_us;

	flow_tests(&flow);
	flow_round(&flow, &LONG_PATH, 0);
	flow_round(&flow, &LONG_PATH, 0);
	/* They are back, for less than eight round trips. */
	for (__u32 i = 0; i < 4; i++)
		flow_round(&flow, &LONG_PATH, 12000);
	EXPECT(flow.cwnd == 2, "beside them it has %u packets", flow.cwnd);
	for (__u32 i = 0; i < 40 && flow.cwnd < 8; i++)
		flow_round(&flow, &LONG_PATH, 0);
	EXPECT(flow.s.yielding.phase == PHASE_CLIMBING, "it does not climb");
	EXPECT(flow.cwnd < 25, "in a step of the climb it has %u packets", flow.cwnd);
	flow_round(&flow, &LONG_PATH, 12000);
	flow_round(&flow, &LONG_PATH, 12000);
	EXPECT(flow.cwnd == 2, "where it meets them it has %u packets", flow.cwnd);
	failed_us = flow.now_us;
	while (flow.now_us < failed_us + 3 * SECOND_US / 2)
		flow_round(&flow, &LONG_PATH, 0);
	EXPECT(flow.cwnd == 2, "it is back too soon, with %u packets", flow.cwnd);
}

/* A queue as long as this one does not go because somebody has lost a packet. */
static void a_long_queue_that_has_gone_hides_nobody(void)
{
	struct flow flow;
	__u32 rounds = 0;

	flow_tests(&flow);
	flow_round(&flow, &LONG_PATH, 0);
	for (__u32 i = 0; i < 4; i++)
		flow_round(&flow, &LONG_PATH, 50000);
	EXPECT(flow.cwnd == 2, "beside others it has %u packets", flow.cwnd);
	while (flow.cwnd < 20 && rounds < 40) {
		flow_round(&flow, &LONG_PATH, 0);
		rounds++;
	}
	EXPECT(rounds < 10, "it is back after %u round trips", rounds);
}

static void others_that_stayed_have_left(void)
{
	struct flow flow;
	__u32 before = 2, doubled = 0;

	flow_tests(&flow);
	flow_round(&flow, &LONG_PATH, 0);
	flow_round(&flow, &LONG_PATH, 0);
	for (__u32 i = 0; i < 20; i++)
		flow_round(&flow, &LONG_PATH, 12000 + i % 4 * 2000);
	EXPECT(flow.cwnd == 2, "beside them it has %u packets", flow.cwnd);
	for (__u32 i = 0; i < 25 && flow.cwnd < 70; i++) {
		flow_round(&flow, &LONG_PATH, 0);
		/* Windows are of whole packets. */
		doubled += flow.cwnd + 1 >= 2 * before;
		before = flow.cwnd;
	}
	EXPECT(flow.cwnd >= 70, "2.5 s after they left it has %u packets", flow.cwnd);
	EXPECT(doubled >= 3, "it has doubled %u times", doubled);
}

static void a_rate_that_varies(void)
{
	const __u32 full_q8 = 80 * PACKET_Q8;
	struct yielding own = {0};

	variation_learn(&own, 0, 60 * PACKET_Q8, full_q8);
	EXPECT(!variation_is_known(&own), "one test shows it");
	variation_learn(&own, 0, 58 * PACKET_Q8, full_q8);
	EXPECT(!variation_is_known(&own), "a steady rate shows it");
	variation_learn(&own, 0, 45 * PACKET_Q8, full_q8);
	EXPECT(own.least_q8 == 45 * PACKET_Q8, "the least is %u", own.least_q8);
	for (__u32 i = 0; i < 60; i++)
		variation_see(&own, i * 100000ULL, i % 2 ? 30000 : 10000, 2000);
	EXPECT(variation_is_known(&own), "a queue that comes and goes ends it");
	for (__u32 i = 60; i < 85; i++)
		variation_see(&own, i * 100000ULL, 30000, 2000);
	EXPECT(!variation_is_known(&own), "a queue that stays does not end it");
	variation_learn(&own, 0, 60 * PACKET_Q8, full_q8);
	variation_learn(&own, 0, 20 * PACKET_Q8, full_q8);
	EXPECT(!variation_is_known(&own), "a gap between transfers of others shows it");
	variation_learn(&own, 0, 40 * PACKET_Q8, full_q8);
	variation_learn(&own, 0, 34 * PACKET_Q8, full_q8);
	EXPECT(own.least_q8 == 34 * PACKET_Q8, "levels that differ by 15 %% do not show it");
}

int main(int count, char **arguments)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} CASES[] = {
		{"whole_windows", whole_windows},
		{"mean_round_trip", mean_round_trip},
		{"unmeasured_round_trips", unmeasured_round_trips},
		{"trains_answers", trains_answers},
		{"trains_of_what_there_was", trains_of_what_there_was},
		{"weights_bound", weights_bound},
		{"a_share_that_is_not_known_is_sought", a_share_that_is_not_known_is_sought},
		{"waits_for_the_effect_of_a_back_off", waits_for_the_effect_of_a_back_off},
		{"full_weight_is_reno", full_weight_is_reno},
		{"grows_by_what_was_acknowledged", grows_by_what_was_acknowledged},
		{"steers_towards_the_share", steers_towards_the_share},
		{"refills_less_with_more_weight", refills_less_with_more_weight},
		{"a_share_by_cdg", a_share_by_cdg},
		{"fills_an_idle_path", fills_an_idle_path},
		{"yields_to_others", yields_to_others},
		{"waits_for_a_processor", waits_for_a_processor},
		{"others_come_back", others_come_back},
		{"knocks_at_a_short_queue", knocks_at_a_short_queue},
		{"an_answer_to_a_knock", an_answer_to_a_knock},
		{"a_knock_that_loses_data", a_knock_that_loses_data},
		{"nobody_comes_back", nobody_comes_back},
		{"losses_in_a_test", losses_in_a_test},
		{"a_repair_shows_the_level", a_repair_shows_the_level},
		{"a_climb_that_meets_others", a_climb_that_meets_others},
		{"a_long_queue_that_has_gone_hides_nobody", a_long_queue_that_has_gone_hides_nobody},
		{"others_that_stayed_have_left", others_that_stayed_have_left},
		{"a_rate_that_varies", a_rate_that_varies},
		{"a_longer_route", a_longer_route},
		{"a_newcomer_is_no_longer_route", a_newcomer_is_no_longer_route},
		{"a_shorter_queue_is_no_longer_route", a_shorter_queue_is_no_longer_route},
		{"shorter_than_the_least", shorter_than_the_least},
		{"bursts", bursts},
		{"parts_of_a_group", parts_of_a_group},
		{"priorities_of_a_group", priorities_of_a_group},
		{"turns_of_a_group", turns_of_a_group},
		{"silence_of_a_flow", silence_of_a_flow},
		{"growth_of_a_group", growth_of_a_group},
		{"flows_of_a_group", flows_of_a_group},
		{"opener_of_a_group", opener_of_a_group},
		{"round_trips_of_a_group", round_trips_of_a_group},
		{"variations_of_an_example", variations_of_an_example},
		{"variations_of_distant_packets", variations_of_distant_packets},
		{"variations_of_odd_timestamps", variations_of_odd_timestamps},
		{"variations_of_a_constant_delay", variations_of_a_constant_delay},
		{"variations_of_arbitrary_clocks", variations_of_arbitrary_clocks},
		{"tick_of_the_sender", tick_of_the_sender},
		{"variations_of_a_clock_that_stands_still", variations_of_a_clock_that_stands_still},
		{"bytes_per_round_trip", bytes_per_round_trip},
	};

	for (__u32 i = 0; i < sizeof(CASES) / sizeof(*CASES); i++) {
		if (count == 2 && strcmp(arguments[1], CASES[i].name) == 0) {
			CASES[i].run();
			return failures > 0;
		}
	}
	fprintf(stderr, "no such case\n");
	return 2;
}
