/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Cases for packets that come in bursts (bursts.h), on a path of 833 packets/s.
 */
#pragma once

#include "native.h"

/* Acknowledgements of so many packets at once, every so often, and the delays that vary. */
struct arrivals_of_bursts {
	__u32 packets;
	__u32 every_us;
	__u32 range_us;
	/* Round-trip time, and how many. */
	__u32 rtt_us;
	__u32 round_trips;
	bool is_slow_start;
	bool is_unlimited;
	/* One acknowledgement for all. */
	bool is_thinned;
};

/* Takes them; returns the time between bursts that is learnt. */
static __u32 bursts_of(struct yielding *own, struct arrivals_of_bursts seen)
{
	struct round round = {.is_slow_start = seen.is_slow_start};
	struct round_sample look = {
		.rtt_min_us = seen.rtt_us, .rtt_max_us = seen.rtt_us + seen.range_us,
		.is_limited = !seen.is_unlimited,
	};
	__u32 each;

	own->capacity_q8 = 833 * PACKET_Q8;
	/* The first round trip tells how close together packets are. */
	burst_learn(own, &round, &look);
	for (__u32 now_us = 0, over_us = seen.rtt_us; seen.round_trips; now_us += seen.every_us) {
		if (now_us >= over_us) {
			burst_learn(own, &round, &look);
			look.delivered = 0;
			round.most = 0;
			round.is_quick = 0;
			over_us += seen.rtt_us;
			seen.round_trips--;
		}
		/* One acknowledgement for two, 20 us apart. */
		each = seen.is_thinned ? seen.packets : 2;
		for (__u32 i = 0; i < seen.packets; i += each)
			burst_take(&round, now_us + 10 * i, min_of(seen.packets - i, each));
		look.delivered += seen.packets;
	}
	return own->between_bursts_us;
}

/* The same with nothing known before. */
static __u32 first_bursts_of(struct arrivals_of_bursts seen)
{
	struct yielding own = {0};

	return bursts_of(&own, seen);
}

/* Packets that come in bursts are delayed by the time between two, and nobody is there. */
static void bursts(void)
{
	const struct arrivals_of_bursts wifi = {7, 8000, 7000, 64000, 4, false, false, false};
	const struct arrivals_of_bursts apart = {2, 2400, 7000, 64000, 100, false, false, false};
	const struct arrivals_of_bursts few = {2, 64000, 7000, 64000, 100, false, false, false};
	struct arrivals_of_bursts other;
	struct yielding own = {0};
	__u32 learnt_us = bursts_of(&own, wifi);

	EXPECT(learnt_us > 6000 && learnt_us < 9000, "bursts of 8 ms make %u us", learnt_us);
	/* Two packets in a round trip tell nothing. Many without bursts do, also where a round
	 * trip is short. */
	EXPECT(bursts_of(&own, few) == learnt_us, "it forgets to %u us", own.between_bursts_us);
	other = apart;
	other.rtt_us = 10000;
	other.round_trips = 400;
	EXPECT(bursts_of(&own, other) < 500, "it keeps %u us", own.between_bursts_us);
	EXPECT(first_bursts_of(apart) == 0, "packets apart make %u us", first_bursts_of(apart));
	/* A window that is in step with the bursts has equal delays. */
	other = wifi;
	other.range_us = 1000;
	EXPECT(first_bursts_of(other) == learnt_us, "in step: %u us", first_bursts_of(other));
	/* Acknowledgements that were left out, slow start, an application that pauses, and a
	 * processor that is taken away. */
	other.is_thinned = true;
	EXPECT(first_bursts_of(other) == 0, "thinned: %u us", first_bursts_of(other));
	other.range_us = wifi.range_us;
	EXPECT(first_bursts_of(other) == learnt_us, "thinned bursts: %u us", first_bursts_of(other));
	other = wifi;
	other.is_slow_start = true;
	EXPECT(first_bursts_of(other) == 0, "slow start makes %u us", first_bursts_of(other));
	other = wifi;
	other.is_unlimited = true;
	EXPECT(first_bursts_of(other) == 0, "pauses make %u us", first_bursts_of(other));
	other = (struct arrivals_of_bursts){30, 64000, 30000, 64000, 50, false, false, false};
	EXPECT(first_bursts_of(other) == 0, "36 ms make %u us", first_bursts_of(other));
}
