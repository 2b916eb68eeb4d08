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
	/* One acknowledgement for all, and soon after it one of no packet. */
	bool is_thinned;
	/* The window is used up after so much of the round trip. */
	__u32 until_us;
	/* Every other burst is late by this. */
	__u32 uneven_us;
	/* The time of the first. */
	__u32 from_us;
};

/* The same as a window in congestion avoidance meets them. */
static struct arrivals_of_bursts arrivals(__u32 packets, __u32 every_us, __u32 range_us,
					  __u32 rtt_us, __u32 round_trips)
{
	return (struct arrivals_of_bursts){
		.packets = packets, .every_us = every_us, .range_us = range_us,
		.rtt_us = rtt_us, .round_trips = round_trips,
	};
}

/* Takes them, in the order in which the kernel tells them; returns the time between bursts that
 * is learnt. */
static __u32 bursts_of(struct yielding *own, struct arrivals_of_bursts seen)
{
	struct round round = {.is_slow_start = seen.is_slow_start, .base_us = seen.rtt_us};
	struct round_sample look = {
		.rtt_min_us = seen.rtt_us, .rtt_max_us = seen.rtt_us + seen.range_us,
		.elapsed_us = seen.rtt_us, .is_limited = !seen.is_unlimited,
	};
	__u32 each = seen.is_thinned ? seen.packets : 2;

	own->capacity_q8 = 833 * PACKET_Q8;
	/* The first round trip tells how close together packets are. */
	burst_learn(own, &round, &look);
	for (__u32 trip = 0; trip <= seen.round_trips; trip++) {
		for (__u32 at_us = 0, n = 0; at_us < seen.rtt_us; at_us += seen.every_us, n++) {
			__u32 now_us = seen.from_us + trip * seen.rtt_us + at_us +
				       n % 2 * seen.uneven_us;

			if (seen.until_us && at_us >= seen.until_us)
				break;
			/* One acknowledgement for two, 20 us apart. */
			for (__u32 i = 0; i < seen.packets; i += each)
				burst_take(&round, now_us + 10 * i, min_of(seen.packets - i, each));
			if (seen.is_thinned)
				burst_take(&round, now_us + 100, 0);
			if (trip && n == 0) {
				burst_learn(own, &round, &look);
				look.delivered = 0;
				round.most = 0;
				round.bursts = 0;
			}
			look.delivered += seen.packets;
		}
	}
	return own->between_bursts_us;
}

/* The same with nothing known before. */
static __u32 first_bursts_of(struct arrivals_of_bursts seen)
{
	struct yielding own = {0};

	return bursts_of(&own, seen);
}

#define EXPECT_BETWEEN(least_us, most_us, seen)                                   \
	do {                                                                       \
		__u32 us = first_bursts_of(seen);                                  \
		EXPECT(us >= (least_us) && us <= (most_us), "%u us are learnt", us); \
	} while (0)

/* Packets that come in bursts are delayed by the time between two, and nobody is there. */
static void bursts(void)
{
	const struct arrivals_of_bursts wifi = arrivals(7, 8000, 7000, 64000, 4);
	const struct arrivals_of_bursts apart = arrivals(2, 2400, 7000, 64000, 100);
	const struct arrivals_of_bursts few = arrivals(2, 64000, 7000, 64000, 100);
	struct arrivals_of_bursts other;
	struct yielding own = {0};
	__u32 learnt_us = bursts_of(&own, wifi);

	EXPECT(learnt_us > 6000 && learnt_us < 9000, "bursts of 8 ms make %u us", learnt_us);
	/* Two packets in a round trip tell nothing. Many without bursts do, also where a round
	 * trip is short. */
	EXPECT(bursts_of(&own, few) == learnt_us, "it forgets to %u us", own.between_bursts_us);
	other = apart;
	other.rtt_us = 9600;
	other.round_trips = 400;
	EXPECT(bursts_of(&own, other) == 0, "it keeps %u us", own.between_bursts_us);
	EXPECT_BETWEEN(0, 0, apart);
	/* So do they where bursts would be small, as the rate has fallen since. */
	own.between_bursts_us = learnt_us;
	other = apart;
	other.packets = 1;
	EXPECT(bursts_of(&own, other) < learnt_us, "it still keeps %u us", own.between_bursts_us);

	/* Shorter times between bursts are learnt as well, some time later. */
	own.between_bursts_us = learnt_us;
	other = arrivals(4, 4000, 3500, 64000, 100);
	EXPECT(bursts_of(&own, other) < 4500, "it keeps %u us", own.between_bursts_us);

	/* A window that is in step with the bursts has equal delays, but equal gaps as well, ... */
	other = wifi;
	other.range_us = 1000;
	EXPECT_BETWEEN(7500, 8100, other);
	/* ... which slow start shows, too, though its window does not fill a round trip. */
	other.is_slow_start = true;
	EXPECT_BETWEEN(7500, 8100, other);
	other.until_us = 16000;
	EXPECT_BETWEEN(7500, 8100, other);
	/* Times are kept modulo 2^24 us. */
	other.from_us = 0xffffff - 20000;
	EXPECT_BETWEEN(7500, 8100, other);
	/* Later on, two in a round trip do not. Nor do unequal gaps, short and long ones, long
	 * parts of a round trip, and packets apart. */
	other.is_slow_start = false;
	EXPECT_BETWEEN(0, 0, other);
	other.until_us = 0;
	other.uneven_us = 2000;
	EXPECT_BETWEEN(0, 0, other);
	other = arrivals(7, 1500, 1000, 64000, 4);
	other.is_slow_start = true;
	EXPECT_BETWEEN(0, 0, other);
	other = arrivals(7, 25000, 1000, 100000, 4);
	other.is_slow_start = true;
	EXPECT_BETWEEN(0, 0, other);
	other = arrivals(20, 16000, 1000, 32000, 4);
	other.is_slow_start = true;
	EXPECT_BETWEEN(0, 0, other);
	other = apart;
	other.is_slow_start = true;
	EXPECT_BETWEEN(0, 0, other);
	/* Acknowledgements that were left out, unless delays vary. */
	other = wifi;
	other.range_us = 1000;
	other.is_thinned = true;
	EXPECT_BETWEEN(0, 0, other);
	other.is_slow_start = true;
	EXPECT_BETWEEN(0, 0, other);
	other.is_slow_start = false;
	other.range_us = wifi.range_us;
	EXPECT_BETWEEN(6000, 9000, other);
	/* An application that pauses, and a processor that is taken away. */
	other = wifi;
	other.is_unlimited = true;
	EXPECT_BETWEEN(0, 0, other);
	EXPECT_BETWEEN(0, 0, arrivals(30, 64000, 30000, 64000, 50));
}
