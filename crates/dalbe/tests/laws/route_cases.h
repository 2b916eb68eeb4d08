/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Cases for a route that becomes longer, which a flow at rest must tell from a queue of
 * others (base_update() in round.h).
 */
#pragma once

#include "native.h"
#include "path.h"

static const struct path SHORT_ROUTE = {833, 60000};
static const struct path LONG_ROUTE = {833, 100000};

/* The route becomes longer, and nobody else is there. */
static void a_longer_route(void)
{
	struct flow flow;
	__u64 changed_us;

	flow_begin(&flow);
	flow_alone(&flow, &SHORT_ROUTE, flow.now_us + 20 * SECOND_US);
	EXPECT(flow.s.base.now_us <= 60100, "the short one has %u us", flow.s.base.now_us);
	changed_us = flow.now_us;
	while (flow.now_us < changed_us + 12 * SECOND_US && flow.s.base.now_us <= 60100)
		flow_round(&flow, &LONG_ROUTE, 0);
	EXPECT(flow.s.base.now_us >= 100000, "the long one has %u us", flow.s.base.now_us);
	EXPECT(flow.now_us < changed_us + 9 * SECOND_US, "that takes %llu us",
	       flow.now_us - changed_us);
	flow_alone(&flow, &LONG_ROUTE, flow.now_us + 5 * SECOND_US);
	EXPECT(flow.cwnd > 70, "then it has %u packets", flow.cwnd);
}

/* Begins a flow that is alone and then gives way to a queue of 20 ms. */
static void flow_gives_way(struct flow *flow)
{
	flow_begin(flow);
	flow_alone(flow, &SHORT_ROUTE, flow->now_us + 20 * SECOND_US);
	for (__u32 i = 0; i < 200 && flow->s.yielding.phase != PHASE_YIELDING; i++)
		flow_round(flow, &SHORT_ROUTE, 20000);
	EXPECT(flow->s.yielding.phase == PHASE_YIELDING, "it does not yield");
}

/* Somebody comes, fills what the flow leaves, and keeps a queue of one length for nearly
 * ten seconds. */
static void a_newcomer_is_no_longer_route(void)
{
	struct flow flow;
	__u64 rested_us;

	flow_gives_way(&flow);
	rested_us = flow.now_us;
	flow_round(&flow, &SHORT_ROUTE, 5000);
	while (flow.now_us < rested_us + 9 * SECOND_US)
		flow_round(&flow, &SHORT_ROUTE, 20000);
	EXPECT(flow.s.base.now_us <= 65000, "it takes the queue for the route, of %u us",
	       flow.s.base.now_us);
}

/* A queue of others that has become shorter by more than a delay varies is none that stays
 * as it was, however flat it is then. */
static void a_shorter_queue_is_no_longer_route(void)
{
	struct flow flow;
	__u64 rested_us;

	flow_gives_way(&flow);
	rested_us = flow.now_us;
	for (__u32 i = 0; flow.now_us < rested_us + 9 * SECOND_US; i++)
		flow_round(&flow, &SHORT_ROUTE, 17800 + i % 2 * 1400);
	EXPECT(flow.s.base.now_us <= 65000, "it takes the queue for the route, of %u us",
	       flow.s.base.now_us);
}
