// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Congestion controls with a weight for each socket, for senders that yield:
 * the glue between the kernel (struct tcp_congestion_ops) and the laws, each of
 * which has a file of its own.
 *
 * There is a control for each family, and within it a law that the socket's
 * parameters choose:
 *   fairbat_vegas   LAW_VEGAS, LAW_VEGAS_PAPER
 *   fairbat_cdg     LAW_CDG, LAW_CDG_PAPER
 *   fairbat_cubic   LAW_CUBIC_PHANTOM, LAW_CUBIC_BETA
 *
 * Laws are asked once per round trip. Where a law sets large windows anew at
 * once, TCP paces the flow. The kernel reduces the window after a loss (PRR,
 * RFC 6937) down to what ssthresh() says; a back-off by delay is immediate.
 *
 * Whatever is changed here or in the structures takes a new CONGESTION_VERSION.
 */
#include "kernel.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "congestion.h"
#define STATE_SIZE 440
#include "arithmetic.h"
#include "flow.h"
#include "base.h"
#include "train.h"
#include "weighted.h"
#include "vegas.h"
#include "crawl.h"
#include "cdg.h"
#include "cubic.h"
#include "paper_vegas.h"

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct parameters);
} parameters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct state);
} state SEC(".maps");

/* Smaller windows are no bursts; and the kernel spaces their packets by a
 * smoothed round-trip time that few acknowledgements keep up to date. */
#define PACED_LEAST 10
/* A window of so many packets is always used up by who has something to send. */
#define FEW_PACKETS 4
/* Samples in a row by which slow start is judged ... */
#define FEW_SAMPLES 4
/* ... after so many round trips: the first packets of a connection leave at
 * once, and those that came of them are spaced only from then on. */
#define JUDGED_FROM 2

static __always_inline struct tcp_sock *tcp_sk(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static __always_inline struct round *round_of(struct tcp_sock *tp)
{
	return (struct round *)tp->inet_conn.icsk_ca_priv;
}

static __always_inline bool is_before(__u32 a, __u32 b)
{
	return (__s32)(a - b) < 0;
}

static __always_inline bool is_in_slow_start(const struct tcp_sock *tp)
{
	return tp->snd_cwnd < tp->snd_ssthresh;
}

/* After a loss or a mark of congestion, until it is repaired. */
static __always_inline bool is_reducing(struct tcp_sock *tp)
{
	return BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state) >= TCP_CA_CWR;
}

static __always_inline bool is_window_limited(struct tcp_sock *tp)
{
	return BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited);
}

/* What the process has set, or what holds without. */
static __always_inline void read_parameters(struct sock *sk, struct parameters *wish, __u32 law)
{
	struct parameters *set = bpf_sk_storage_get(&parameters, sk, 0, 0);

	wish->law = law;
	wish->w_q16 = LEAST_WEIGHT_Q16;
	wish->phi_q16 = ONE_Q16;
	wish->g_us = 0;
	wish->capacity = 0;
	if (!set)
		return;
	/* The second law of a family, or its first. */
	if (set->law == law + 1)
		wish->law = set->law;
	wish->w_q16 = most(least(set->w_q16, ONE_Q16), LEAST_WEIGHT_Q16);
	if (set->phi_q16)
		wish->phi_q16 = set->phi_q16;
	wish->g_us = set->g_us;
	wish->capacity = set->capacity;
}

static __always_inline void begin_round(struct tcp_sock *tp, struct round *round, __u64 now_us)
{
	round->end = tp->snd_nxt;
	round->delivered = tp->delivered;
	round->began_us = now_us;
	round->rtt_min_us = 0xffffffff;
	round->rtt_max_us = 0;
	round->rtt_few_us = 0xffffffff;
	round->samples = 0;
	round->cwnd = tp->snd_cwnd;
	round->is_slow_start = is_in_slow_start(tp);
}

/* How late packets may be in slow start: HyStart (RFC 9406) for a flow that is
 * one of many, less for one that yields. */
static __always_inline __u32 patience_us(__u32 w_q16, __u32 base_us)
{
	if (w_q16 > LEAST_WEIGHT_Q16)
		return least(most(base_us / 8, 4000), 16000);
	return most(base_us / 32, 1500);
}

/* 1 - w from which on a weight is good for more than its share, as for the
 * receiver lever (brake/order.rs): 0.2. */
#define OPENING_Q16 13107

/* A share w/(1 + w) of this, for a weight between the least and 1. */
static __always_inline __u32 share_of(__u32 window_q8, __u32 w_q16)
{
	__u32 share = scaled(window_q8, w_q16, ONE_Q16 + w_q16);

	if (ONE_Q16 - w_q16 < OPENING_Q16)
		share = scaled(share, OPENING_Q16, most(ONE_Q16 - w_q16, 1));
	return least(share, window_q8);
}

/* The window that the weight is good for whatever the others do; the largest
 * there is if it has no bound. What the process has seen is no answer alone: a
 * flow that is held to a share of what it has carried carries no more. */
static __always_inline __u32 bound_of(const struct state *s, const struct look *look)
{
	__u32 capacity = most(s->trains.capacity, look->capacity);
	__u32 packets_s_q8 = scaled(capacity, PACKET_Q8, look->segment);
	__u32 rtt_us = look->rtt_min_us / 2 + look->rtt_max_us / 2;
	__u32 all_q8 = scaled(packets_s_q8, rtt_us, 1000000);

	if (look->w_q16 >= ONE_Q16 || s->trains.capacity == 0)
		return WINDOW_MOST_Q8;
	return most(least(share_of(all_q8, look->w_q16), WINDOW_MOST_Q8), FLOOR_Q8);
}

/* The window of a weight above the least: that of one CUBIC flow, within what
 * the weight is good for. As long as nobody knows what the path carries, it
 * grows slower than CUBIC by the weight. */
static __always_inline __u32 weighted_law(struct state *s, const struct look *look)
{
	struct weighted *own = &s->weighted;
	__u32 bound = bound_of(s, look), before = s->w_q16;
	bool is_bound = bound < WINDOW_MOST_Q8;

	s->w_q16 = look->w_q16;
	if (look->w_q16 <= LEAST_WEIGHT_Q16)
		return 0;
	if (before <= LEAST_WEIGHT_Q16)
		/* From yielding at once to what the weight is good for. */
		weighted_begin(own, most(is_bound ? 2 * bound : 0, s->vegas.window_q8));
	weighted_grow(own, look, is_bound ? ONE_Q16 : look->w_q16);
	/* A loss or two a flow of this weight need not heed. */
	own->window_q8 = least(own->window_q8, least(2 * bound, WINDOW_MOST_Q8));
	return least(own->window_q8, bound);
}

static __always_inline __u32 vegas_law(struct state *s, struct look *look, __u32 cwnd,
				       bool *is_paced)
{
	__u32 window;

	/* From one round trip to the next it is at most doubled, as in slow
	 * start. */
	window = least(weighted_law(s, look), 2 * most(cwnd, 2) * PACKET_Q8);
	vegas_round(&s->vegas, &s->seen, look);
	s->vegas.window_q8 = least(s->vegas.window_q8, WINDOW_MOST_Q8);
	*is_paced = s->vegas.window_q8 >= window;
	if (!*is_paced)
		return window;
	if (crawl_round(&s->vegas, look, cwnd == 1))
		return PACKET_Q8;
	return s->vegas.window_q8;
}

static __always_inline __u32 cubic_law(struct state *s, struct look *look, __u32 law)
{
	__u32 window = s->weighted.window_q8;

	if (law == LAW_CUBIC_PHANTOM && cubic_phantom(&s->cubic, look)) {
		weighted_loss(&s->weighted);
		s->seen.phantoms++;
		s->seen.backoffs++;
		return s->weighted.window_q8;
	}
	weighted_grow(&s->weighted, look, ONE_Q16);
	return most(s->weighted.window_q8, window);
}

/* The window that the law has now, in packets/256. */
static __always_inline void take_window(struct state *s, __u32 law, __u32 window_q8, __u64 now_us)
{
	if (law == LAW_VEGAS) {
		vegas_begin(&s->vegas, now_us, window_q8);
		weighted_begin(&s->weighted, window_q8);
	} else if (law == LAW_CDG || law == LAW_CDG_PAPER || law == LAW_VEGAS_PAPER) {
		s->cdg.window_q8 = window_q8;
		s->vegas.window_q8 = window_q8;
	} else {
		weighted_begin(&s->weighted, window_q8);
	}
}

static __always_inline void tell(struct state *s, struct tcp_sock *tp, const struct look *look,
				 __u32 law)
{
	s->seen.version = CONGESTION_VERSION;
	s->seen.law = law;
	s->seen.cwnd = tp->snd_cwnd;
	s->seen.rtt_us = look->rtt_min_us;
	s->seen.base_us = look->base_us;
	s->seen.packets = round_of(tp)->packets;
	s->seen.updated_us = look->now_us;
	s->seen.is_yielding = s->vegas.yielded_us && look->now_us < s->vegas.yielded_us + 1000000;
}

/* Has the packets of a flow paced by TCP, or not. A window that is set anew at
 * once takes it; a window that grows by a packet now and then, beside others
 * whose packets follow their acknowledgements, would gain by it: a packet that
 * comes between finds room in a full queue. */
static __always_inline void pace(struct sock *sk, struct round *round, bool is_paced)
{
	is_paced = is_paced && tcp_sk(sk)->snd_cwnd >= PACED_LEAST;
	if (is_paced && sk->sk_pacing_status == SK_PACING_NONE) {
		sk->sk_pacing_status = SK_PACING_NEEDED;
		round->is_paced = 1;
	} else if (!is_paced && round->is_paced) {
		sk->sk_pacing_status = SK_PACING_NONE;
		round->is_paced = 0;
	}
}

/* A round trip is over. */
static __always_inline void end_round(struct sock *sk, struct tcp_sock *tp, struct round *round,
				      __u64 now_us, __u32 default_law)
{
	struct parameters wish;
	struct look look = {};
	struct state *s;
	__u32 window_q8;
	bool was_single = round->cwnd == 1, is_paced = false;

	s = bpf_sk_storage_get(&state, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!s)
		return;
	read_parameters(sk, &wish, default_law);
	look.now_us = now_us;
	/* Less than a round trip it cannot have been. */
	look.elapsed_us = most(least(now_us - round->began_us, 60000000),
			       most(round->base_us, 1));
	look.is_timed = round->samples > 0;
	look.rtt_min_us = look.is_timed ? most(round->rtt_min_us, 1) : look.elapsed_us;
	/* Of a receiver that acknowledges each packet there is none. */
	look.rtt_max_us = most(look.is_timed ? round->rtt_max_us : look.elapsed_us,
			       look.rtt_min_us);
	look.delivered = most(least(tp->delivered - round->delivered, 65536), 1);
	look.w_q16 = wish.w_q16;
	look.phi_q16 = wish.phi_q16;
	look.g_us = wish.g_us;
	look.capacity = wish.capacity;
	look.segment = most(tp->mss_cache, 1);
	if (round->tested) {
		train_learn(&s->trains, round->tested);
		round->tested = 0;
	}
	/* The kernel's mark is that of the moment; and of a window of a few
	 * packets whole ones may be left over. */
	look.is_limited = is_window_limited(tp) || round->cwnd <= FEW_PACKETS ||
			  scaled(look.delivered, look.rtt_min_us, look.elapsed_us) * 5 >=
				  round->cwnd * 3;
	look.base_us = round->base_us;
	/* A single packet's acknowledgement may be delayed. */
	if (look.is_timed &&
	    (!was_single || s->base.now_us == 0 || look.rtt_min_us < s->base.now_us)) {
		bool is_held = wish.law == LAW_VEGAS &&
			       s->vegas.window_q8 <= FLOOR_Q8 + PACKET_Q8 && s->vegas.has_met;

		look.base_us = base_update(&s->base, now_us, look.rtt_min_us, is_held,
					   s->seen.losses);
	}
	look.base_us = most(look.base_us, 1);
	look.queue_us = minus(look.rtt_min_us, look.base_us);
	look.carried_q8 = scaled(look.delivered * PACKET_Q8, look.base_us, look.elapsed_us);
	look.used_q8 = scaled(look.delivered * PACKET_Q8, look.rtt_min_us, look.elapsed_us);
	if (was_single && look.queue_us > SHORT_US(look.base_us))
		look.is_timed = false;
	round->base_us = look.base_us;
	round->patience_us = patience_us(wish.w_q16, look.base_us);
	round->is_yielding = wish.w_q16 <= LEAST_WEIGHT_Q16;

	if (is_in_slow_start(tp)) {
		s->vegas.carried_most_q8 = most(s->vegas.carried_most_q8, look.carried_q8);
		s->seen.law = 0;
		is_paced = true;
		/* What the first train says is carried without a queue is where
		 * a flow that yields begins to look for more. */
		if (round->is_yielding && s->trains.capacity &&
		    tp->snd_ssthresh == TCP_INFINITE_SSTHRESH) {
			__u32 all = scaled(s->trains.capacity, look.base_us, 1000000);

			tp->snd_ssthresh = most(times_q16(all, NEAR_Q16) / look.segment,
						2 * TRAIN);
		}
	} else {
		/* Another law, or the first round trip after slow start. */
		if (s->seen.law != wish.law || round->is_slow_start)
			take_window(s, wish.law, tp->snd_cwnd * PACKET_Q8, now_us);
		if (wish.law == LAW_VEGAS) {
			window_q8 = vegas_law(s, &look, round->cwnd, &is_paced);
		} else if (wish.law == LAW_CDG || wish.law == LAW_CDG_PAPER) {
			cdg_round(&s->cdg, &s->vegas, &s->seen, &look, wish.law == LAW_CDG);
			window_q8 = s->cdg.window_q8;
			is_paced = wish.law == LAW_CDG;
		} else if (wish.law == LAW_VEGAS_PAPER) {
			window_q8 = paper_vegas_round(s->cdg.window_q8, &s->seen, &look);
			s->cdg.window_q8 = window_q8;
		} else {
			window_q8 = cubic_law(s, &look, wish.law);
		}
		window_q8 = least(window_q8, WINDOW_MOST_Q8);
		tp->snd_cwnd = most(window_q8 / PACKET_Q8,
				    window_q8 < FLOOR_Q8 && wish.law == LAW_VEGAS ? 1 : 2);
		/* Slow start is over until the kernel says otherwise. */
		tp->snd_ssthresh = tp->snd_cwnd;
		/* It leaves at once where there is nothing that has to wait for
		 * room in the window. */
		if (wish.law == LAW_VEGAS && !is_paced && wish.w_q16 < ONE_Q16 &&
		    !is_reducing(tp) && tp->packets_out <= tp->snd_cwnd &&
		    now_us > s->trains.last_us +
				     (s->trains.capacity ? TRAIN_EVERY_US : TRAIN_FIRST_US)) {
			s->trains.last_us = now_us;
			train_begin(round, tp->snd_nxt, look.segment);
			tp->snd_cwnd += TRAIN;
		}
		s->seen.law = wish.law;
	}
	round->turns = least(round->turns + 1, JUDGED_FROM);
	pace(sk, round, is_paced);
	tell(s, tp, &look, s->seen.law);
	begin_round(tp, round, now_us);
}

static __always_inline void avoid(struct sock *sk, __u32 acked, __u32 law)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct round *round = round_of(tp);

	if (is_in_slow_start(tp) &&
	    (is_window_limited(tp) || tp->snd_cwnd < 2 * tp->max_packets_out))
		tcp_slow_start(tp, acked);
	/* A packet of the next round trip is acknowledged. */
	if (is_before(round->end, tp->snd_una))
		end_round(sk, tp, round, bpf_ktime_get_ns() / 1000, law);
}

static __always_inline __u32 after_loss(struct sock *sk, __u32 law)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct round *round = round_of(tp);
	__u64 now_us = bpf_ktime_get_ns() / 1000;
	__u32 window = tp->snd_cwnd * PACKET_Q8, next;
	bool was_slow_start;
	struct parameters wish;
	struct state *s;

	s = bpf_sk_storage_get(&state, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!s)
		return most(tp->snd_cwnd / 2, 2);
	read_parameters(sk, &wish, law);
	was_slow_start = is_in_slow_start(tp);
	if (was_slow_start || s->seen.law != wish.law) {
		take_window(s, wish.law, window, now_us);
		s->seen.law = wish.law;
	}
	s->before_q8[0] = s->vegas.window_q8;
	s->before_q8[1] = s->weighted.window_q8;
	s->before_q8[2] = s->cdg.window_q8;
	if (wish.law == LAW_VEGAS) {
		vegas_loss(&s->vegas, now_us, round->base_us);
		/* It has doubled since the path was full. */
		if (was_slow_start)
			s->vegas.window_q8 = least(s->vegas.window_q8,
						   most(window / 2, FLOOR_Q8));
		next = s->vegas.window_q8;
		if (wish.w_q16 > LEAST_WEIGHT_Q16) {
			weighted_loss(&s->weighted);
			next = most(next, s->weighted.window_q8);
			next = least(next, window);
		}
	} else if (wish.law == LAW_VEGAS_PAPER) {
		next = paper_vegas_heeds(wish.w_q16, wish.phi_q16) ? window / 2 : window;
		s->cdg.window_q8 = next;
	} else if (wish.law == LAW_CDG || wish.law == LAW_CDG_PAPER) {
		next = window / 2;
		s->cdg.window_q8 = next;
		s->cdg.since_backoff = 0;
		if (wish.law == LAW_CDG)
			vegas_meet(&s->vegas, window, false);
	} else {
		weighted_loss(&s->weighted);
		cubic_loss(&s->cubic, now_us);
		if (wish.law == LAW_CUBIC_BETA)
			s->weighted.window_q8 = most(
				times_q16(s->weighted.window_q8, wish.w_q16), FLOOR_Q8);
		next = s->weighted.window_q8;
	}
	next = most(next, FLOOR_Q8);
	s->seen.losses++;
	if (next < window) {
		s->seen.backoffs++;
		s->seen.loss_share_q16 += scaled(window - next, ONE_Q16, window);
	}
	return next / PACKET_Q8;
}

SEC("struct_ops")
void BPF_PROG(begin, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct round *round = round_of(tp);

	__builtin_memset(round, 0, sizeof(*round));
	begin_round(tp, round, bpf_ktime_get_ns() / 1000);
	round->patience_us = 4000;
	round->is_yielding = 1;
	/* What the congestion control before has wanted; a process that wants
	 * it has set a rate as well. */
	if (sk->sk_pacing_status == SK_PACING_NEEDED && sk->sk_max_pacing_rate == ~0UL)
		sk->sk_pacing_status = SK_PACING_NONE;
	/* Unpaced, its first packets are a train. */
	train_begin(round, tp->snd_nxt, tp->mss_cache);
}

SEC("struct_ops")
void BPF_PROG(acknowledged, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct round *round = round_of(tp);
	__u32 rtt_us = sample->rtt_us;

	round->packets += sample->pkts_acked;
	/* What comes after a repair tells of the repair. */
	if (is_reducing(tp))
		round->train = TRAIN_NONE;
	if (round->train)
		train_acknowledged(round, tp->snd_una, bpf_ktime_get_ns() / 1000);
	if (sample->rtt_us <= 0)
		return;
	round->samples++;
	if (rtt_us < round->rtt_min_us)
		round->rtt_min_us = rtt_us;
	/* That of a single packet may have been delayed. */
	if (rtt_us > round->rtt_max_us && (sample->pkts_acked > 1 || round->cwnd < 4))
		round->rtt_max_us = rtt_us;
	if (!is_in_slow_start(tp))
		return;
	round->rtt_few_us = least(round->rtt_few_us, rtt_us);
	if (round->samples % FEW_SAMPLES)
		return;
	if (round->turns >= JUDGED_FROM &&
	    round->rtt_few_us > round->base_us + round->patience_us) {
		/* What is on its way now is what was on its way when those
		 * left, and as much again: half of it would do. */
		if (round->is_yielding)
			tp->snd_cwnd = most(tp->snd_cwnd / 2, 2);
		tp->snd_ssthresh = tp->snd_cwnd;
	}
	round->rtt_few_us = 0xffffffff;
}

SEC("struct_ops")
void BPF_PROG(changed, struct sock *sk, __u8 ca_state)
{
	struct tcp_sock *tp = tcp_sk(sk);

	/* What was measured in a recovery says little; reordering alone
	 * (TCP_CA_Disorder) is none. */
	if (!is_reducing(tp))
		return;
	round_of(tp)->train = TRAIN_NONE;
	if (ca_state == TCP_CA_Open)
		begin_round(tp, round_of(tp), bpf_ktime_get_ns() / 1000);
}

SEC("struct_ops")
__u32 BPF_PROG(undo, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *s = bpf_sk_storage_get(&state, sk, 0, 0);

	/* Nothing was lost. */
	if (s) {
		s->vegas.window_q8 = most(s->vegas.window_q8, s->before_q8[0]);
		s->weighted.window_q8 = most(s->weighted.window_q8, s->before_q8[1]);
		s->cdg.window_q8 = most(s->cdg.window_q8, s->before_q8[2]);
	}
	return most(tp->snd_cwnd, tp->prior_cwnd);
}

SEC("struct_ops")
void BPF_PROG(vegas_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	avoid(sk, acked, LAW_VEGAS);
}

SEC("struct_ops")
__u32 BPF_PROG(vegas_ssthresh, struct sock *sk)
{
	return after_loss(sk, LAW_VEGAS);
}

SEC("struct_ops")
void BPF_PROG(cdg_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	avoid(sk, acked, LAW_CDG);
}

SEC("struct_ops")
__u32 BPF_PROG(cdg_ssthresh, struct sock *sk)
{
	return after_loss(sk, LAW_CDG);
}

SEC("struct_ops")
void BPF_PROG(cubic_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	avoid(sk, acked, LAW_CUBIC_PHANTOM);
}

SEC("struct_ops")
__u32 BPF_PROG(cubic_ssthresh, struct sock *sk)
{
	return after_loss(sk, LAW_CUBIC_PHANTOM);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops vegas = {
	.init = (void *)begin,
	.ssthresh = (void *)vegas_ssthresh,
	.cong_avoid = (void *)vegas_avoid,
	.set_state = (void *)changed,
	.pkts_acked = (void *)acknowledged,
	.undo_cwnd = (void *)undo,
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = "fairbat_vegas",
};

SEC(".struct_ops.link")
struct tcp_congestion_ops cdg = {
	.init = (void *)begin,
	.ssthresh = (void *)cdg_ssthresh,
	.cong_avoid = (void *)cdg_avoid,
	.set_state = (void *)changed,
	.pkts_acked = (void *)acknowledged,
	.undo_cwnd = (void *)undo,
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = "fairbat_cdg",
};

SEC(".struct_ops.link")
struct tcp_congestion_ops cubic = {
	.init = (void *)begin,
	.ssthresh = (void *)cubic_ssthresh,
	.cong_avoid = (void *)cubic_avoid,
	.set_state = (void *)changed,
	.pkts_acked = (void *)acknowledged,
	.undo_cwnd = (void *)undo,
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = "fairbat_cubic",
};

/* The kernel lends what this uses to programs that the GPL permits. */
char LICENSE[] SEC("license") = "Dual MIT/GPL";
