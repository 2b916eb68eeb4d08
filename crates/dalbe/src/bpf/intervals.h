/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Turns the packets of one connection into statistics of short intervals: order
 * of arrival, one-way delay, packet-interval variations (Vulture, algorithm 1)
 * and bytes per round trip (Vulture, algorithm 6).
 *
 * This file does not depend on the kernel's structures.
 */
#pragma once

#include "observer.h"

/* One packet with data. */
struct packet {
	__u64 now_us;
	__u32 seq;
	__u32 bytes;
	__u32 segments;
	__u32 tsval;
	__u32 tsecr;
	__u32 has_timestamps;
};

/* Starts over. Times from before cannot be compared with later ones. */
static __always_inline void restart(struct statistics *s, struct packet *packet, __u32 interval_us,
				    __u32 tick_us)
{
	__builtin_memset(&s->tracker, 0, sizeof(s->tracker));
	s->version = OBSERVER_VERSION;
	s->interval_us = interval_us;
	s->epoch++;
	s->tick_us = tick_us;
	s->tracker.last_us = packet->now_us;
	s->tracker.first_us = packet->now_us;
	s->tracker.sent_us = SENT_ZERO_US;
	s->tracker.tsval = packet->tsval;
}

/* The slot of the present interval. A new interval starts with an empty slot. */
static __always_inline struct interval *current_slot(struct statistics *s, __u64 now_us)
{
	__u64 length = s->interval_us;
	__u64 number = now_us / length;
	struct interval *slot = &s->intervals[number % SLOTS];

	if (slot->began_us != number * length || slot->epoch != s->epoch) {
		__builtin_memset(slot, 0, sizeof(*slot));
		slot->began_us = number * length;
		slot->epoch = s->epoch;
		slot->tick_us = s->tick_us;
		slot->delay_reference_us = s->tracker.min_us;
		/* Clocks drift apart, so the smallest delay grows by 122 ppm. Two
		 * clocks drift by less (RFC 5905: usually 15 ppm each). */
		s->tracker.min_us += length >> 13;
	}
	return slot;
}

/* Counts packets out of order, and holes, by the sequence numbers. */
static __always_inline void note_order(struct tracker *t, struct interval *slot,
				       struct packet *packet)
{
	__s32 distance = packet->seq - t->highest;

	if (distance < 0)
		slot->out_of_order++;
	else if (distance > 0)
		slot->holes++;
	if (distance + (__s32)packet->bytes > 0)
		t->highest = packet->seq + packet->bytes;
}

/* The bucket of a delay above the reference. Each octave has four buckets, see
 * DELAY_BUCKETS. The inverse is edge_us() in observer.rs. */
static __always_inline __u32 bucket_of(__u64 delay_us)
{
	__u32 units = delay_us >> DELAY_UNIT_SHIFT > MAX_DELAY_UNITS
			      ? MAX_DELAY_UNITS
			      : delay_us >> DELAY_UNIT_SHIFT;
	__u32 octave = 0, rest = units;

	if (units < 4)
		return units;
	if (rest >= 256) {
		rest >>= 8;
		octave += 8;
	}
	if (rest >= 16) {
		rest >>= 4;
		octave += 4;
	}
	if (rest >= 4) {
		rest >>= 2;
		octave += 2;
	}
	if (rest >= 2)
		octave += 1;
	return 4 * (octave - 1) + ((units >> (octave - 2)) & 3);
}

static __always_inline void note_delay(struct tracker *t, struct interval *slot, __u64 now_us)
{
	__s64 delay_us = (__s64)(now_us - t->first_us) - (__s64)(t->sent_us - SENT_ZERO_US);
	__s64 above_us = delay_us - slot->delay_reference_us;
	__u32 bucket = bucket_of(above_us > 0 ? above_us : 0);

	if (delay_us < t->min_us)
		t->min_us = delay_us;
	if (slot->delays == 0 || delay_us < slot->delay_min_us)
		slot->delay_min_us = delay_us;
	slot->delays++;
	slot->delay_sum_us += delay_us;
	if (bucket < DELAY_BUCKETS && slot->delay_buckets[bucket] != 0xffff)
		slot->delay_buckets[bucket]++;
}

/* Counts packet-interval variations (Vulture, algorithm 1). The queue holds one
 * packet for each millisecond of sending time. So QUEUE packets always reach back
 * to psi. */
static __always_inline void note_piv(struct statistics *s, struct interval *slot, __u64 now_us)
{
	struct tracker *t = &s->tracker;
	__u64 sent_ms = t->sent_us / 1000;
	struct sent *sent;

	for (int i = 0; i < QUEUE; i++) {
		struct sent *oldest = &s->queue[t->oldest % QUEUE];
		__s64 psi_ms = (__s64)(sent_ms - oldest->sent_ms);
		__s64 piv_us, size_us;

		if (t->queued == 0 || psi_ms < PSI_MS)
			break;
		/* Unsigned, because the sender chooses its times: a sum may wrap. */
		piv_us = (__s64)(now_us - oldest->arrived_us - (__u64)psi_ms * 1000);
		size_us = piv_us < 0 ? -piv_us : piv_us;
		slot->piv_sum_us = (__s64)((__u64)slot->piv_sum_us + (__u64)piv_us);
		slot->piv_positive += piv_us > 0;
		if (size_us < 4000)
			slot->piv_bands[0]++;
		else if (size_us < 8000)
			slot->piv_bands[1]++;
		else if (size_us <= 12000)
			slot->piv_bands[2]++;
		else if (size_us < 20000)
			slot->piv_bands[3]++;
		else
			slot->piv_bands[4]++;
		t->oldest++;
		t->queued--;
	}
	if (t->queued > 0) {
		__u64 newest_ms = s->queue[(t->oldest + t->queued - 1) % QUEUE].sent_ms;

		if ((__s64)(sent_ms - newest_ms) <= 0)
			return;
	}
	if (t->queued == QUEUE) {
		t->oldest++;
		t->queued--;
	}
	sent = &s->queue[(t->oldest + t->queued) % QUEUE];
	sent->sent_ms = sent_ms;
	sent->arrived_us = now_us;
	t->queued++;
}

/* Counts the bytes of a round trip (Vulture, algorithm 6). A round trip begins with
 * a packet. It ends with the first packet that left the sender after the sender
 * received our answer. */
static __always_inline void note_round(struct tracker *t, struct interval *slot,
				       struct packet *packet, __u32 our_tsval)
{
	if (t->in_round && (__s32)(packet->tsecr - t->round_tsval) > 0) {
		__u64 took_us = packet->now_us - t->round_began_us;

		slot->round_bytes = t->round_bytes;
		slot->round_us = took_us < 0xffffffff ? took_us : 0xffffffff;
		slot->rounds++;
		t->in_round = 0;
	}
	if (!t->in_round) {
		t->in_round = 1;
		t->round_tsval = our_tsval;
		t->round_began_us = packet->now_us;
		t->round_bytes = 0;
	}
	t->round_bytes += packet->bytes;
}

/*
 * The sender's tick, us, if it is not 1 ms; otherwise 0. A tick of 1 us (Linux
 * 6.7, feature tcp_usec_ts of a route) shows at once. Coarse ticks (4 and 10 ms,
 * 1/HZ of older systems) show after two seconds. Before that, a growing queue
 * looks the same.
 */
static __always_inline __u32 other_tick(struct tracker *t, __u64 now_us)
{
	__u64 elapsed_us = now_us - t->first_us;
	__u64 ticks = (t->sent_us - SENT_ZERO_US) / 1000;
	__u64 each_us;

	if ((__s64)(t->sent_us - SENT_ZERO_US) <= 0)
		return 0;
	if (ticks > elapsed_us / 125 + 1000)
		return 1;
	if (elapsed_us < 2000000)
		return 0;
	t->tick_is_known = 1;
	each_us = elapsed_us / (ticks ? ticks : 1);
	if (each_us < 3000)
		return 0;
	return each_us < 6300 ? 4000 : each_us < 31600 ? 10000 : 100000;
}

/* Computes the sending time of this packet and finds the sender's tick. Starts
 * over if earlier times cannot be compared with later ones. */
static __always_inline void follow_sender(struct statistics *s, struct packet *packet)
{
	struct tracker *t = &s->tracker;
	__u32 tick_us;

	t->sent_us += (__s64)(__s32)(packet->tsval - t->tsval) * s->tick_us;
	t->tsval = packet->tsval;
	/* TSval may have passed half of its range. Its order is then unknown. */
	if (packet->now_us - t->last_us > (1ULL << 30) * s->tick_us) {
		restart(s, packet, s->interval_us, s->tick_us);
		t->tick_is_known = 1;
		return;
	}
	t->last_us = packet->now_us;
	if (t->tick_is_known)
		return;
	tick_us = other_tick(t, packet->now_us);
	if (tick_us) {
		restart(s, packet, s->interval_us, tick_us);
		t->tick_is_known = 1;
	}
}
