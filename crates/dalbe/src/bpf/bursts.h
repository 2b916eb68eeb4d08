/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Whether packets come in bursts, as on Wi-Fi, whose stations send several frames at once.
 *
 * A packet waits there for its burst, so delays vary by the time between bursts, and nobody
 * is in the way. A small window that is in step with the bursts meets the same part of that
 * time in each round trip, and takes it for a queue that never goes. But acknowledgements
 * come closer together then than packets leave the bottleneck, and either the gaps between
 * such bursts are equal, which slow start may show before the first queue, or delays vary.
 *
 * Only a flow that fills its window tells. The flows of a group have a part of each burst, so
 * a group knows what its first flow has learnt. Up to 255 packets of a burst are counted.
 */
#pragma once

#include "levels.h"

/* So many packets that are acknowledged together are a burst: two have one
 * acknowledgement, and two such may be late. */
#define BURST_PACKETS 4
/* Acknowledgements are of one burst if they are closer together than one part in so many of
 * the time of a packet, half, and than this, us: the capacity may not be known yet, or only
 * a part of it. */
#define CLOSE_PART 2
#define MAX_CLOSE_US 500
/* A capacity that grows by more than one part in so many in a round trip has made packets
 * look closer than they are. */
#define CAPACITY_GROWTH_PART 4
/* Bursts count from this time between them on, us, and up to this one: a longer one is that
 * of a processor that was taken away. */
#define MIN_BETWEEN_BURSTS_US 2000
#define MAX_BETWEEN_BURSTS_US 20000
/* So many bursts in a row show by the gaps between them, where each has several
 * acknowledgements: a receiver that leaves out acknowledgements sends one. In slow start, two
 * are enough: the first window holds no more. Gaps are equal if they differ by one part in so
 * many at most. */
#define BURSTS_IN_A_ROW 3
#define FIRST_BURSTS_IN_A_ROW 2
#define EQUAL_PART 8
/* Unit of a gap: 128 us. */
#define GAP_SHIFT 7
/* A gap takes one part in so many of a round trip at most: a window may be one burst. */
#define GAP_PART 3
/* Other bursts show by delays that vary by this part of the time between them at least, and
 * the time that is known follows that of a round trip by one part in so many. */
#define LEAST_RANGE_PART 2
#define BURSTS_RISE 2
/* Round trips of so many packets without a burst show that there are none once they have
 * carried what comes in this many times the time between them, or in so many times if a burst
 * would be small. The time falls by one part in so many. */
#define MIN_APART_PACKETS (2 * BURST_PACKETS)
#define APART_TIMES 2
#define APART_TIMES_OF_SMALL 32
#define BURSTS_FALL 16

/* Whether a round trip has shown bursts. It has until its end. */
static __always_inline bool burst_is_shown(const struct round *round)
{
	return round->bursts >= (round->is_slow_start ? FIRST_BURSTS_IN_A_ROW : BURSTS_IN_A_ROW);
}

/* Whether so much time may be that between bursts. */
static __always_inline bool burst_may_wait(__u32 us)
{
	return us >= MIN_BETWEEN_BURSTS_US && us <= MAX_BETWEEN_BURSTS_US;
}

/* Ends a burst by the gap after it. */
static __always_inline void burst_end(struct round *round, __u32 gap_us)
{
	bool is_burst = round->is_several && round->burst >= BURST_PACKETS;
	__u32 gap = min_of(gap_us >> GAP_SHIFT, 255), before = round->gap;

	round->burst = 0;
	if (burst_is_shown(round))
		return;
	round->bursts = is_burst ? round->bursts + 1 : 0;
	/* The gap that is kept is the one between two of them. */
	if (burst_is_shown(round))
		return;
	if (!burst_may_wait(gap_us) || gap_us > round->base_us / GAP_PART)
		round->bursts = 0;
	else if (round->bursts > 1 &&
		 max_of(gap, before) - min_of(gap, before) > gap / EQUAL_PART)
		round->bursts = 1;
	round->gap = gap;
}

/* Takes an acknowledgement of so many packets, none of which follows a hole. */
static __always_inline void burst_take(struct round *round, __u32 now_us, __u32 packets)
{
	__u32 gap_us = (now_us - round->acknowledged_us) & 0xffffff;
	__u32 close_us = round->close_us ? min_of(round->close_us, MAX_CLOSE_US) : MAX_CLOSE_US;
	bool is_close = gap_us <= close_us;

	/* A change of the receiver's window acknowledges nothing. */
	if (!packets)
		return;
	if (!is_close)
		burst_end(round, gap_us);
	round->is_several = is_close;
	round->acknowledged_us = now_us;
	round->burst = min_of(round->burst + packets, 255);
	round->most = max_of(round->most, round->burst);
}

/* Takes the bursts of a round trip. */
static __always_inline void burst_learn(struct yielding *own, struct round *round,
					const struct round_sample *sample)
{
	__u32 close_us = min_of(level_takes_us(own, 1) / CLOSE_PART, 0xffff);
	bool is_known = round->close_us <= close_us + close_us / CAPACITY_GROWTH_PART;
	__u32 seen_us = level_takes_us(own, round->most);
	__u32 range_us = minus(sample->rtt_max_us, sample->rtt_min_us), times = APART_TIMES;
	bool is_burst = round->most >= BURST_PACKETS && burst_may_wait(seen_us);

	round->close_us = close_us;
	if (!sample->is_limited)
		return;
	if (burst_is_shown(round)) {
		__u32 shown_us = round->gap << GAP_SHIFT, known_us = own->between_bursts_us;

		/* A longer time counts at once, and of a shorter one a part. */
		own->between_bursts_us =
			max_of(shown_us, known_us - minus(known_us, shown_us) / BURSTS_FALL);
		own->apart = 0;
		return;
	}
	if (round->is_slow_start || !is_known)
		return;
	if (is_burst && seen_us > own->between_bursts_us) {
		if (range_us >= seen_us / LEAST_RANGE_PART)
			own->between_bursts_us +=
				(seen_us - own->between_bursts_us) / BURSTS_RISE;
		own->apart = 0;
		return;
	}
	if (sample->delivered < MIN_APART_PACKETS)
		return;
	if (scaled(sample->delivered, own->between_bursts_us, sample->elapsed_us) < BURST_PACKETS)
		times = APART_TIMES_OF_SMALL;
	own->apart = min_of(own->apart + sample->delivered, 65536);
	if (level_takes_us(own, own->apart) < times * own->between_bursts_us)
		return;
	own->apart = 0;
	own->between_bursts_us -=
		(own->between_bursts_us - (is_burst ? seen_us : 0)) / BURSTS_FALL;
	if (own->between_bursts_us < MIN_BETWEEN_BURSTS_US)
		own->between_bursts_us = 0;
}
