/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Whether packets come in bursts, as on Wi-Fi, whose stations send several frames at once.
 *
 * A packet waits there for its burst, so delays vary by the time between bursts, and nobody
 * is in the way. A small window that is in step with the bursts meets the same part of that
 * time in each round trip, and takes it for a queue that never goes. But acknowledgements
 * come closer together then than packets leave the bottleneck.
 */
#pragma once

#include "arithmetic.h"
#include "congestion.h"

/* So many packets that are acknowledged together are a burst: two have one
 * acknowledgement, and two such may be late. */
#define BURST_PACKETS 4
/* Bursts count from this time between them on, us, and at most with this one: more is a
 * processor that was taken away. */
#define MIN_SPACING_US 2000
#define MAX_SPACING_US 20000
/* The time between bursts follows that of a round trip by one part in so many. */
#define SPACING_RISE 4
#define SPACING_FALL 16
/* A round trip of so many bursts shows that there are none. */
#define SPACING_BURSTS 2

/* Takes an acknowledgement of so many packets. */
static __always_inline void burst_take(struct round *round, __u32 now_us, __u32 packets)
{
	__u32 before = now_us - round->burst_us <= round->close_us ? round->burst : 0;

	round->burst_us = now_us;
	round->burst = min_of(before + packets, 255);
	round->most = round->most > round->burst ? round->most : round->burst;
}

/* Takes the bursts of a round trip, which has delivered so many packets. */
static __always_inline void burst_learn(struct yielding *own, struct round *round,
					__u32 delivered)
{
	__u32 packet_us = scaled(1000000, PACKET_Q8, own->capacity_q8);
	__u32 spacing_us = min_of(round->most * packet_us, MAX_SPACING_US);

	if (round->most < BURST_PACKETS || spacing_us < MIN_SPACING_US)
		spacing_us = 0;
	if (spacing_us > own->spacing_us)
		own->spacing_us += (spacing_us - own->spacing_us) / SPACING_RISE;
	else if (delivered * packet_us >= SPACING_BURSTS * own->spacing_us)
		own->spacing_us -= (own->spacing_us - spacing_us) / SPACING_FALL;
	round->close_us = min_of(packet_us / 2, 0xffff);
	round->most = 0;
}
