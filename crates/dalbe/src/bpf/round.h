/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What a round trip that is over shows of the path: its rate, its queue, its
 * round-trip time without a queue, and its capacity.
 *
 * It needs struct tcp_sock and is_window_limited() of socket.h, for which the
 * native test has a substitute. It knows no laws, but for the delays from which
 * Vegas counts a queue.
 */
#pragma once

#include "vegas.h"

/*
 * The round-trip time without a queue: the least of the last 30 to 60 s. While
 * a flow makes room for others who keep a queue it cannot see it, and does not
 * forget it, for ten minutes; but no queue that others keep has the same length
 * for long without losses, and a delay that has is the path's own (another route).
 */
#define BASE_HALF_US 30000000ULL
#define BASE_KEPT_US 600000000ULL
/* A delay that varies by less, plus 1/128 of the base, in this time is none
 * that others keep: CUBIC's sawtooth takes some seconds. */
#define FLAT_US 1500
#define FLAT_TIME_US 10000000ULL
#define FLAT_ROUNDS 30

static __always_inline void base_forget(struct base *base)
{
	base->now_us = 0;
	base->before_us = 0;
	base->flat_since_us = 0;
}

/* Another round trip; returns the base. `is_held`: others keep a queue. */
APART __u32 base_update(struct base *base, __u64 now_us, __u32 rtt_us, bool is_held,
			__u32 losses)
{
	__u32 known;

	if (!base)
		return rtt_us;
	if (base->now_us == 0 || rtt_us <= base->now_us) {
		if (base->now_us == 0)
			base->began_us = now_us;
		base->now_us = rtt_us;
		base->measured_us = now_us;
	}
	if (is_held && now_us < base->measured_us + BASE_KEPT_US) {
		base->began_us = now_us;
	} else if (now_us > base->began_us + BASE_HALF_US) {
		base->before_us = base->now_us;
		base->now_us = rtt_us;
		base->began_us = now_us;
		base->measured_us = now_us;
	}
	known = base->before_us && base->before_us < base->now_us ? base->before_us : base->now_us;
	if (!is_held) {
		base->flat_since_us = 0;
		return known;
	}
	if (base->flat_since_us && losses == base->flat_losses) {
		base->flat_rounds++;
		base->flat_least_us = min_of(base->flat_least_us, rtt_us);
		base->flat_most_us = max_of(base->flat_most_us, rtt_us);
		if (base->flat_most_us - base->flat_least_us <= FLAT_US + known / 128) {
			if (base->flat_rounds >= FLAT_ROUNDS &&
			    now_us > base->flat_since_us + FLAT_TIME_US) {
				base_forget(base);
				base->now_us = rtt_us;
				base->began_us = now_us;
				base->measured_us = now_us;
				return rtt_us;
			}
			return known;
		}
	}
	base->flat_since_us = now_us;
	base->flat_least_us = rtt_us;
	base->flat_most_us = rtt_us;
	base->flat_rounds = 0;
	base->flat_losses = losses;
	return known;
}

/*
 * What the path carries altogether, by an active test: packets that leave at
 * once stand behind each other in the queue of the bottleneck, and come out of
 * it, and so do their acknowledgements, at its rate (packet trains; Dovrolis,
 * Ramanathan and Moore 2004). Others' packets between them make it seem slower,
 * acknowledgements that catch up with each other make it seem faster: of some
 * tests the second largest counts, and of two the largest, for it is slower more
 * often.
 *
 * Ours begin with the first packets of a connection; later one leaves every few
 * seconds, while the weight makes use of the answer.
 */
/* Packets of a train beyond those that would leave anyway. */
#define TRAIN 6
#define TRAIN_EVERY_US 10000000ULL
/* As long as the two largest answers differ by more than an eighth. */
#define TRAIN_FIRST_US 2000000ULL
/* Less than so much between the first and the last acknowledgement is no
 * measurement, bytes and us. */
#define MIN_TRAIN_BYTES 4000
#define MIN_TRAIN_US 20

enum train {
	TRAIN_NONE = 0,
	/* Until its first acknowledgement. */
	TRAIN_AWAITED = 1,
	/* From then to its last. */
	TRAIN_COMING = 2,
};

/* What leaves now is a train, of such segments. The acknowledgement of the last
 * may be delayed until another packet comes, and is not waited for. */
static __always_inline void train_begin(struct round *round, __u32 from, __u32 segment)
{
	round->train = TRAIN_AWAITED;
	round->train_from = from;
	round->train_end = from + (TRAIN - 1) * segment;
}

/* Everything up to `una` has been acknowledged, and everything up to `nxt` has
 * left. */
static __always_inline void train_acknowledged(struct round *round, __u32 una, __u32 nxt,
					       __u64 now_us)
{
	__u32 took_us, bytes;

	if (round->train == TRAIN_AWAITED) {
		if ((__s32)(una - round->train_from) <= 0)
			return;
		/* There was not that much to send: what leaves next, at once, is
		 * one, if nothing of this is on its way any more. */
		if ((__s32)(nxt - round->train_end) < 0) {
			if (una != nxt)
				round->train = TRAIN_NONE;
			round->train_end += nxt - round->train_from;
			round->train_from = nxt;
			round->turns = 0;
			return;
		}
		round->train = TRAIN_COMING;
		round->train_from = una;
		round->train_us = now_us;
	}
	if ((__s32)(una - round->train_end) < 0)
		return;
	round->train = TRAIN_NONE;
	took_us = now_us - round->train_us;
	bytes = una - round->train_from;
	if (bytes >= MIN_TRAIN_BYTES && took_us >= MIN_TRAIN_US)
		round->tested = scaled(bytes, 1000000, took_us);
}

/* Another test's answer, byte/s. */
static __always_inline void train_learn(struct trains *own, __u32 rate)
{
	__u32 first = 0, second = 0;

	own->rates[own->next & 3] = rate;
	/* Once there are enough they are counted no further. */
	own->next = own->next < 0xffff ? own->next + 1 : 4;
	for (int i = 0; i < 4; i++) {
		__u32 each = own->rates[i];

		if (each > first) {
			second = first;
			first = each;
		} else if (each > second) {
			second = each;
		}
	}
	own->capacity = own->next > 2 ? second : first;
	own->is_sure = second >= first - first / 8;
}

/* A window of so many packets is always used up by who has something to send. */
#define ALWAYS_LIMITED_PACKETS 4

static __always_inline void observe(struct round_sample *look, struct state *s, struct tcp_sock *tp,
				    struct round *round, const struct parameters *wanted,
				    __u64 now_us)
{
	bool was_single = round->cwnd == 1;
	/* Less than a round trip it cannot have been. */
	__u32 elapsed_us = max_of(min_of(now_us - round->began_us, 60000000),
				max_of(round->base_us, 1));
	__u32 rtt_min_us = elapsed_us, rtt_max_us = elapsed_us, packet_us;

	look->rtt_us = elapsed_us;
	if (round->samples) {
		look->rtt_us = round->rtt_min_us / 2 +
			       max_of(round->rtt_max_us, round->rtt_min_us) / 2;
		rtt_min_us = max_of(round->rtt_min_us, MIN_RTT_US);
		rtt_max_us = round->rtt_max_us;
	}
	look->now_us = now_us;
	look->elapsed_us = elapsed_us;
	look->cwnd = round->cwnd;
	look->is_timed = round->samples > 0;
	look->rtt_min_us = rtt_min_us;
	/* Of a receiver that acknowledges each packet there is none. */
	look->rtt_max_us = max_of(rtt_max_us, rtt_min_us);
	look->delivered = max_of(min_of(tp->delivered - round->delivered, 65536), 1);
	look->w_q16 = wanted->w_q16;
	look->phi_q16 = wanted->phi_q16;
	look->g_us = wanted->g_us;
	look->capacity = wanted->capacity;
	look->segment = max_of(tp->mss_cache, 1);
	/* The kernel's mark is that of the moment; and of a window of a few
	 * packets whole ones may be left over. */
	look->is_limited = is_window_limited(tp) || round->cwnd <= ALWAYS_LIMITED_PACKETS ||
			  scaled(look->delivered, look->rtt_min_us, look->elapsed_us) * 5 >=
				  round->cwnd * 3;
	look->base_us = round->base_us;
	/* A single packet's acknowledgement may be delayed. */
	if (look->is_timed &&
	    (!was_single || s->base.now_us == 0 || look->rtt_min_us < s->base.now_us)) {
		bool is_held = wanted->law == LAW_VEGAS &&
			       s->vegas.window_q8 <= FLOOR_Q8 + PACKET_Q8 && s->vegas.has_met;

		look->base_us = base_update(&s->base, now_us, look->rtt_min_us, is_held,
					   s->seen.losses);
	}
	look->base_us = max_of(look->base_us, 1);
	look->queue_us = minus(look->rtt_min_us, look->base_us);
	/* Two that leave at once wait for each other, and seem late by a packet; of
	 * one that seems to take longer than others' queues something else is wrong. */
	if (s->trains.capacity)
		packet_us = scaled(look->segment, 1000000, s->trains.capacity);
	else
		packet_us = scaled(look->base_us, PACKET_Q8, s->vegas.carried_most_q8);
	packet_us = min_of(packet_us, FOREIGN_SOON_US);
	look->short_us = SHORT_US(look->base_us);
	if (!round->is_paced)
		look->short_us += packet_us;
	look->clear_us = min_of(CLEAR_US(look->base_us) + packet_us, look->short_us);
	look->carried_q8 = scaled(look->delivered * PACKET_Q8, look->base_us, look->elapsed_us);
	look->used_q8 = scaled(look->delivered * PACKET_Q8, look->rtt_min_us, look->elapsed_us);
	if (was_single && look->queue_us > look->short_us)
		look->is_timed = false;
}
