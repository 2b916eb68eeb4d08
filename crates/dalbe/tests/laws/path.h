/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A flow that yields on a path without noise, round trip by round trip: what of
 * its window is beyond what the path holds stands in the queue. end_round() of
 * congestion.bpf.c, without slow start.
 */
#pragma once

struct path {
	/* Capacity, packets/s. */
	__u32 packets_s;
	/* Round-trip time without a queue. */
	__u32 base_us;
};

/* 1000 packets/s, of which a mean round trip of 100 ms has 100. */
static struct state known_path(void)
{
	struct state s = {.trains = {.capacity = 1250000}, .weighted = {.rtt_us = 100000}};

	return s;
}

/* How long the acknowledgement of a single packet is delayed. */
#define DELAYED_US 40000

struct flow {
	struct state s;
	struct round round;
	struct tcp_sock tp;
	__u64 now_us;
	/* Window, packets. */
	__u32 cwnd;
};

/* At the floor, with nothing known of the path. */
static void flow_begin(struct flow *flow)
{
	memset(flow, 0, sizeof(*flow));
	flow->now_us = 1000000;
	flow->cwnd = FLOOR_Q8 / PACKET_Q8;
	flow->tp.mss_cache = 1448;
	flow->tp.is_cwnd_limited = true;
	take_window(&flow->s, LAW_VEGAS, FLOOR_Q8, flow->now_us, 0);
}

/* A round trip is over: how long the fastest packet took, and all in the mean, and so
 * many were delivered in so long. */
static void flow_over(struct flow *flow, __u32 rtt_us, __u32 mean_us, __u32 elapsed_us,
		      __u32 delivered)
{
	const struct parameters wanted = {
		.law = LAW_VEGAS, .w_q16 = MIN_WEIGHT_Q16, .phi_q16 = ONE_Q16,
	};
	struct round_sample look = {0};
	bool is_paced = false;
	__u32 window_q8;

	flow->round.began_us = flow->now_us;
	flow->round.delivered = flow->tp.delivered;
	flow->round.cwnd = flow->cwnd;
	/* Every second packet is acknowledged. */
	flow->round.samples = (delivered + 1) / 2;
	flow->round.rtt_min_us = rtt_us;
	flow->round.rtt_max_us = mean_us;
	flow->round.rtt_sum_us = (__u64)mean_us * flow->round.samples;
	flow->now_us += elapsed_us;
	flow->tp.delivered += delivered;

	observe(&look, &flow->s, &flow->tp, &flow->round, delivered, &wanted, flow->now_us);
	flow->round.base_us = look.base_us;
	window_q8 = law_round(&flow->s, &look, LAW_VEGAS, &is_paced);
	flow->cwnd = max_of(window_q8 / PACKET_Q8, window_q8 < FLOOR_Q8 ? 1 : 2);
	/* As pace() in socket.h. */
	flow->round.is_paced = is_paced && is_pacing_possible(&flow->round, flow->cwnd);
}

/* Another round trip, beside a queue of others; returns our own part of it, us. */
static __u32 flow_round(struct flow *flow, const struct path *path, __u32 others_us)
{
	__u32 own_us = minus(scaled(flow->cwnd, 1000000, path->packets_s), path->base_us);
	__u32 rtt_us = path->base_us + own_us + others_us;

	if (flow->cwnd == 1)
		rtt_us += DELAYED_US;
	flow_over(flow, rtt_us, rtt_us, rtt_us, flow->cwnd);
	return own_us;
}

/* Alone until `end_us`; returns the longest queue, us. */
static __u32 flow_alone(struct flow *flow, const struct path *path, __u64 end_us)
{
	__u32 longest_us = 0;

	while (flow->now_us < end_us)
		longest_us = max_of(longest_us, flow_round(flow, path, 0));
	return longest_us;
}
