/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Whether packets come in bursts, as on Wi-Fi, whose stations send several frames at once.
 *
 * A packet waits there for its burst, so delays vary by the time between bursts, and nobody
 * is in the way. A small window that is in step with the bursts meets the same part of that
 * time in each round trip, and takes it for a queue that never goes. But acknowledgements
 * come closer together then than packets leave the bottleneck.
 *
 * Only a flow that fills its window in congestion avoidance tells: in slow start the
 * capacity is not known yet. The flows of a group have a part of each burst, so a group
 * knows what its first flow has learnt. Up to 255 packets of a burst are counted.
 */
#pragma once

#include "levels.h"

/* So many packets that are acknowledged together are a burst: two have one
 * acknowledgement, and two such may be late. */
#define BURST_PACKETS 4
/* Bursts count from this time between them on, us, and up to this one: a longer one is that
 * of a processor that was taken away. */
#define MIN_BETWEEN_BURSTS_US 2000
#define MAX_BETWEEN_BURSTS_US 20000
/* Delays vary by this part of the time between bursts at least. Otherwise somebody may have
 * left out acknowledgements, ... */
#define LEAST_RANGE_PART 2
/* ... but not between so many gaps in a row, each a part of the time that is close. A window
 * that is in step with the bursts has the same delay all the time. */
#define QUICK_GAPS 2
#define QUICK_PART 3
/* The time between bursts follows that of a round trip by one part in so many. */
#define BURSTS_RISE 2
#define BURSTS_FALL 16
/* Round trips of so many packets show that there are no bursts once they have carried what
 * comes in this many times the time between them. */
#define MIN_APART_PACKETS (2 * BURST_PACKETS)
#define APART_TIMES 2

/* Takes an acknowledgement of so many packets, none of which follows a hole. */
static __always_inline void burst_take(struct round *round, __u32 now_us, __u32 packets)
{
	__u32 gap_us = now_us - round->acknowledged_us;
	__u32 before = gap_us <= round->close_us ? round->burst : 0;
	__u32 quick_before = gap_us <= round->close_us / QUICK_PART ? round->quick_gaps + 1 : 0;

	round->acknowledged_us = now_us;
	round->burst = min_of(before + packets, 255);
	round->most = max_of(round->most, round->burst);
	round->quick_gaps = min_of(quick_before, QUICK_GAPS);
	if (quick_before >= QUICK_GAPS && round->burst >= BURST_PACKETS)
		round->is_quick = 1;
}

/* Takes the bursts of a round trip. */
static __always_inline void burst_learn(struct yielding *own, struct round *round,
					const struct round_sample *sample)
{
	__u32 close_us = min_of(level_takes_us(own, 1) / 2, 0xffff);
	/* A capacity that grows fast made packets look closer than they are. */
	bool is_known = round->close_us <= close_us + close_us / 4;
	__u32 seen_us = level_takes_us(own, round->most);
	__u32 range_us = minus(sample->rtt_max_us, sample->rtt_min_us);
	bool is_burst = round->most >= BURST_PACKETS && seen_us >= MIN_BETWEEN_BURSTS_US &&
			seen_us <= MAX_BETWEEN_BURSTS_US;

	round->close_us = close_us;
	if (round->is_slow_start || !sample->is_limited || !is_known)
		return;
	if (is_burst && seen_us > own->between_bursts_us) {
		if (round->is_quick || range_us >= seen_us / LEAST_RANGE_PART)
			own->between_bursts_us +=
				(seen_us - own->between_bursts_us) / BURSTS_RISE;
		own->apart = 0;
		return;
	}
	if (sample->delivered < MIN_APART_PACKETS)
		return;
	own->apart = min_of(own->apart + sample->delivered, 65536);
	if (level_takes_us(own, own->apart) < APART_TIMES * own->between_bursts_us)
		return;
	own->apart = 0;
	own->between_bursts_us -=
		(own->between_bursts_us - (is_burst ? seen_us : 0)) / BURSTS_FALL;
}
