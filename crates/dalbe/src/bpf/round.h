/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The properties of the path that a complete round trip shows: rate, queue,
 * round-trip time without a queue, and capacity.
 *
 * This file needs struct tcp_sock and is_window_limited() of socket.h. The native
 * test has a substitute for them. Of the laws it uses only what the one that yields
 * knows of the path.
 */
#pragma once

#include "bursts.h"
#include "yielding.h"

/*
 * The base is the round-trip time without a queue: the smallest one of the last 30
 * to 60 s. While other traffic keeps a queue, a flow that yields cannot measure
 * the base. It keeps the old base for ten minutes. A queue of other traffic does
 * not keep the same length for long without losses. So a delay that does is the
 * path's own, after a change of the route.
 */
#define BASE_HALF_US 30000000ULL
#define BASE_KEPT_US 600000000ULL
/* A delay is flat if it varies by less than this, us, plus one part in so many of the
 * base, ... */
#define FLAT_US 1500
#define FLAT_PART 128
/* ... for this time, us, and this many round trips. CUBIC's sawtooth takes some
 * seconds. */
#define FLAT_TIME_US 10000000ULL
#define FLAT_ROUNDS 30
/* A queue of others becomes shorter within a round trip when a flow gives up much of what
 * the path carries, 0.3. A delay that does not is the path's own after this time, us, and
 * this many round trips, if it is more than this many times what it may change. */
#define MUCH_Q16 19661
#define AS_LOADED_TIME_US 3000000ULL
#define AS_LOADED_ROUNDS 9
#define MIN_LONG_CHANGES 4

static __always_inline void base_forget(struct base *base)
{
	base->now_us = 0;
	base->before_us = 0;
	base->loaded_us = 0;
	base->flat_since_us = 0;
}

/* Takes the round-trip time of a round trip and returns the base. `is_held` means
 * that other traffic keeps a queue. */
APART __u32 base_update(struct base *base, __u64 now_us, __u32 rtt_us, bool is_held,
			__u32 losses)
{
	__u32 known, varies_us, rounds = FLAT_ROUNDS;
	__u64 time_us = FLAT_TIME_US;

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
		base->flat_min_us = min_of(base->flat_min_us, rtt_us);
		base->flat_max_us = max_of(base->flat_max_us, rtt_us);
		varies_us = FLAT_US + known / FLAT_PART;
		if (base->flat_max_us - base->flat_min_us <= varies_us) {
			if (base->loaded_us > known + MIN_LONG_CHANGES * varies_us &&
			    max_of(base->flat_max_us, base->loaded_us) <=
				    min_of(base->flat_min_us, base->loaded_us) + varies_us) {
				rounds = AS_LOADED_ROUNDS;
				time_us = AS_LOADED_TIME_US;
			}
			if (base->flat_rounds >= rounds && now_us > base->flat_since_us + time_us) {
				base_forget(base);
				base->now_us = rtt_us;
				base->began_us = now_us;
				base->measured_us = now_us;
				return rtt_us;
			}
			return known;
		}
	}
	if (base->flat_since_us)
		base->loaded_us = 0;
	base->flat_since_us = now_us;
	base->flat_min_us = rtt_us;
	base->flat_max_us = rtt_us;
	base->flat_rounds = 0;
	base->flat_losses = losses;
	return known;
}

/*
 * The capacity of the path, by an active test with packet trains (Dovrolis,
 * Ramanathan and Moore 2004). Packets that leave at once queue up at the
 * bottleneck. They leave it at its rate, and so do their acknowledgements. Packets
 * of other traffic between them make the rate look lower. Acknowledgements that
 * catch up with each other make it look higher. The rate is too low more often, so
 * the second largest result of several tests counts, or the larger of two.
 *
 * The first packets of a connection are a train. Later a train leaves every few
 * seconds while the weight needs the result.
 */
/* Additional packets of a train. */
#define TRAIN 6
/* Time between two trains, us, ... */
#define TRAIN_EVERY_US 10000000ULL
/* ... and while the two largest results differ by more than an eighth. */
#define TRAIN_FIRST_US 2000000ULL
/* Smallest distance of the first and the last acknowledgement that counts, bytes
 * and us. */
#define MIN_TRAIN_BYTES 4000
#define MIN_TRAIN_US 20

enum train {
	TRAIN_NONE = 0,
	/* Before the first acknowledgement. */
	TRAIN_AWAITED = 1,
	/* Between the first acknowledgement and the last. */
	TRAIN_COMING = 2,
};
_Static_assert(TRAIN_COMING < 4, "struct round has two bits");

/* Begins a train of segments of this size. The acknowledgement of the last packet
 * may be delayed until another packet comes, so the train ends without it. */
static __always_inline void train_begin(struct round *round, __u32 from, __u32 segment)
{
	round->train = TRAIN_AWAITED;
	round->train_from = from;
	round->train_end = from + (TRAIN - 1) * segment;
}

/* Takes an acknowledgement. All data up to `una` has been acknowledged, and all data
 * up to `nxt` has left. */
static __always_inline void train_acknowledged(struct round *round, __u32 una, __u32 nxt,
					       __u32 now_us)
{
	__u32 took_us, bytes;

	if (round->train == TRAIN_AWAITED) {
		if ((__s32)(una - round->train_from) <= 0)
			return;
		/* The data did not fill the train. The next packets that leave at
		 * once are the train, if no packet is in flight. */
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

/* Takes the result of a test, byte/s. */
static __always_inline void train_learn(struct trains *own, __u32 rate)
{
	__u32 first = 0, second = 0;

	own->rates[own->next & 3] = rate;
	/* The counter stops at its largest value. */
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

/* A window of this many packets counts as used up, ... */
#define ALWAYS_LIMITED_PACKETS 4
/* ... and so does any of which this share is used, as a fraction: 0.6. */
#define LIMITING_NUMERATOR 3
#define LIMITING_DENOMINATOR 5

/* A standing queue is there all the time, a burst is not: the standing queue is between
 * the smallest and the mean delay of a round, and closer to the smallest: 0.9. */
#define MIN_SHARE_Q16 58982

/* Takes a round trip in which so many packets were delivered. */
static __always_inline void observe(struct round_sample *sample, struct state *s, struct tcp_sock *tp,
				    const struct round *round, __u32 delivered,
				    const struct parameters *wanted, __u64 now_us)
{
	bool was_single = round->cwnd == 1;
	bool is_held = is_to_yield(wanted) && s->yielding.phase == PHASE_YIELDING;
	/* At least a round trip has passed. */
	__u32 elapsed_us = max_of(capped(now_us - round->began_us, 60000000),
				max_of(round->base_us, 1));
	__u32 rtt_min_us = elapsed_us, rtt_max_us = elapsed_us, mean_us = elapsed_us, late_us;

	sample->rtt_us = elapsed_us;
	if (round->samples) {
		sample->rtt_us = round->rtt_min_us / 2 +
			       max_of(round->rtt_max_us, round->rtt_min_us) / 2;
		rtt_min_us = max_of(round->rtt_min_us, MIN_RTT_US);
		rtt_max_us = round->rtt_max_us;
		mean_us = min_of(round->rtt_sum_us / round->samples, 60000000);
	}
	sample->now_us = now_us;
	sample->elapsed_us = elapsed_us;
	sample->cwnd = round->cwnd;
	sample->is_timed = round->samples > 0;
	sample->rtt_min_us = rtt_min_us;
	/* A receiver that acknowledges each packet gives no largest time. */
	sample->rtt_max_us = max_of(rtt_max_us, rtt_min_us);
	sample->mean_us = max_of(mean_us, rtt_min_us);
	sample->delivered = max_of(min_of(delivered, 65536), 1);
	sample->is_apart = round->samples >= sample->delivered;
	sample->w_q16 = wanted->w_q16;
	sample->phi_q16 = wanted->phi_q16;
	sample->g_us = wanted->g_us;
	sample->capacity = wanted->capacity;
	sample->segment = max_of(tp->mss_cache, 1);
	/* The kernel's mark covers the present moment only. In a window of few
	 * packets, whole packets may stay unused. */
	sample->is_limited = is_window_limited(tp) || round->cwnd <= ALWAYS_LIMITED_PACKETS ||
			  scaled(sample->delivered, sample->rtt_min_us, sample->elapsed_us) *
					  LIMITING_DENOMINATOR >=
				  round->cwnd * LIMITING_NUMERATOR;
	sample->base_us = round->base_us;
	/* The acknowledgement of a single packet may be delayed. */
	if (sample->is_timed &&
	    (!was_single || s->base.now_us == 0 || sample->rtt_min_us < s->base.now_us)) {
		sample->base_us = base_update(&s->base, now_us, sample->rtt_min_us, is_held,
					   s->seen.losses);
	}
	sample->base_us = max_of(sample->base_us, 1);
	/* A packet that waits for its burst is in no queue. */
	late_us = sample->base_us + s->yielding.between_bursts_us;
	sample->queue_us = minus(sample->rtt_min_us, late_us);
	sample->standing_us = times_q16(sample->queue_us, MIN_SHARE_Q16) +
			      times_q16(minus(sample->mean_us, late_us),
					ONE_Q16 - MIN_SHARE_Q16);
	sample->carried_q8 = scaled(sample->delivered * PACKET_Q8, sample->base_us, sample->elapsed_us);
	sample->used_q8 = scaled(sample->delivered * PACKET_Q8, sample->mean_us, sample->elapsed_us);
	level_learn(&s->yielding, sample, is_held);
	if (!is_held && sample->is_timed) {
		/* A test holds a part of the level at which a queue was met. */
		__u32 level_q8 = s->yielding.phase == PHASE_TESTING ? s->yielding.met_q8
								     : sample->carried_q8;
		__u32 full_q8 = level_full(&s->yielding, sample->base_us);

		s->base.loaded_us =
			level_q8 > times_q16(full_q8, MUCH_Q16) ? sample->rtt_min_us : 0;
	}
	if (!s->base.least_us || least_rtt_us(tp) < s->base.least_us)
		s->base.least_us = least_rtt_us(tp);
	sample->packet_us = level_packet(&s->yielding, sample->segment, s->trains.capacity,
					 minus(sample->base_us, s->base.least_us));
	sample->target_us = level_target(&s->yielding, sample->packet_us, sample->base_us);
	level_noise(&s->yielding, sample, round->samples);
	if (was_single && sample->queue_us > sample->target_us)
		sample->is_timed = false;
}
