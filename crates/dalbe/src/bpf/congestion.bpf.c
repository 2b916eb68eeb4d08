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
 * Laws are asked once per round trip. Where a law sets windows anew at once, TCP
 * paces the flow. The kernel reduces the window after a loss (PRR,
 * RFC 6937) down to what ssthresh() says; a back-off by delay is immediate.
 *
 * Whatever is changed here or in the structures takes a new CONGESTION_VERSION.
 */
#include "kernel.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "laws.h"
#include "socket.h"
#include "round.h"

SOCKET_MAP(parameters, struct parameters);
SOCKET_MAP(state, struct state);

/* Samples in a row by which slow start is judged: of a flow that yields, and of
 * others (RFC 9406), which are not judged while their window is small (Ha and
 * Rhee 2011), ... */
#define YIELDING_SAMPLES 4
#define HYSTART_SAMPLES 8
#define MIN_HYSTART_WINDOW 16
/* ... after so many round trips: the first packets of a connection leave at
 * once (round.h), and those that came of them are spaced only from then on. */
#define HYSTART_FROM_ROUND 2

/* What the process has set, or what holds without. */
static __always_inline void read_parameters(struct sock *sk, struct parameters *wanted, __u32 law)
{
	struct parameters *set = bpf_sk_storage_get(&parameters, sk, 0, 0);

	wanted->law = law;
	wanted->w_q16 = MIN_WEIGHT_Q16;
	wanted->phi_q16 = ONE_Q16;
	wanted->g_us = 0;
	wanted->capacity = 0;
	if (!set)
		return;
	/* The second law of a family, or its first. */
	if (set->law == law + 1)
		wanted->law = set->law;
	wanted->w_q16 = max_of(min_of(set->w_q16, ONE_Q16), MIN_WEIGHT_Q16);
	if (set->phi_q16)
		wanted->phi_q16 = set->phi_q16;
	wanted->g_us = set->g_us;
	wanted->capacity = set->capacity;
}

/* How late packets may be in slow start: HyStart (RFC 9406) for a flow that is
 * one of many, less for one that yields. */
static __always_inline __u32 patience_us(__u32 w_q16, __u32 base_us)
{
	if (w_q16 > MIN_WEIGHT_Q16)
		return min_of(max_of(base_us / 8, 4000), 16000);
	return max_of(base_us / 32, 1500);
}

static __always_inline void tell(struct state *s, struct tcp_sock *tp, const struct round_sample *look)
{
	s->seen.version = CONGESTION_VERSION;
	s->seen.cwnd = tp->snd_cwnd;
	s->seen.rtt_us = look->rtt_min_us;
	s->seen.base_us = look->base_us;
	s->seen.packets = round_of(tp)->packets;
	s->seen.updated_us = look->now_us;
	s->seen.is_yielding = s->vegas.yielded_us && look->now_us < s->vegas.yielded_us + 1000000;
}

/* A train leaves at once where nothing has to wait for room in the window. */
static __always_inline bool is_time_for_train(struct tcp_sock *tp, const struct state *s,
					      __u64 now_us)
{
	__u64 every_us = s->trains.is_sure ? TRAIN_EVERY_US : TRAIN_FIRST_US;

	return !is_reducing(tp) && tp->packets_out <= tp->snd_cwnd &&
	       now_us > s->trains.last_us + every_us;
}

/* In slow start: what the first train says is carried without a queue is where
 * a flow that yields begins to look for more. */
static __always_inline void start_slowly(struct tcp_sock *tp, const struct round *round,
					 struct state *s, const struct round_sample *look)
{
	__u32 all = scaled(s->trains.capacity, look->base_us, 1000000);

	s->vegas.carried_most_q8 = max_of(s->vegas.carried_most_q8, look->carried_q8);
	s->seen.law = 0;
	if (round->is_yielding && all && tp->snd_ssthresh == TCP_INFINITE_SSTHRESH)
		tp->snd_ssthresh = max_of(times_q16(all, NEAR_Q16) / look->segment, 2 * TRAIN);
}

/* A round trip is over. */
static __always_inline void end_round(struct sock *sk, struct tcp_sock *tp, struct round *round,
				      __u64 now_us, __u32 default_law)
{
	struct parameters wanted;
	struct round_sample look = {};
	struct state *s;
	__u32 window_q8;
	bool is_paced = false;

	s = bpf_sk_storage_get(&state, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!s)
		return;
	read_parameters(sk, &wanted, default_law);
	if (round->tested) {
		train_learn(&s->trains, round->tested);
		round->tested = 0;
	}
	observe(&look, s, tp, round, &wanted, now_us);
	round->base_us = look.base_us;
	round->patience_us = patience_us(wanted.w_q16, look.base_us);
	round->is_yielding = wanted.w_q16 <= MIN_WEIGHT_Q16;

	if (is_in_slow_start(tp)) {
		is_paced = round->train != TRAIN_AWAITED;
		start_slowly(tp, round, s, &look);
	} else {
		/* Another law, or the first round trip after slow start. */
		if (s->seen.law != wanted.law || round->is_slow_start)
			take_window(s, wanted.law, tp->snd_cwnd * PACKET_Q8, now_us);
		s->seen.law = wanted.law;
		window_q8 = law_round(s, &look, wanted.law, &is_paced);
		window_q8 = min_of(window_q8, MAX_WINDOW_Q8);
		tp->snd_cwnd = max_of(window_q8 / PACKET_Q8,
				    window_q8 < FLOOR_Q8 && wanted.law == LAW_VEGAS ? 1 : 2);
		/* Slow start is over until the kernel says otherwise. */
		tp->snd_ssthresh = tp->snd_cwnd;
		if (wanted.law == LAW_VEGAS && !is_paced && wanted.w_q16 < ONE_Q16 &&
		    is_time_for_train(tp, s, now_us)) {
			s->trains.last_us = now_us;
			train_begin(round, tp->snd_nxt, look.segment);
			tp->snd_cwnd += TRAIN;
		}
	}
	round->turns = min_of(round->turns + 1, HYSTART_FROM_ROUND);
	pace(sk, round, is_paced);
	tell(s, tp, &look);
	begin_round(tp, round, now_us);
}

static __always_inline void avoid(struct sock *sk, __u32 acked, __u32 law)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct round *round = round_of(tp);

	if (is_in_slow_start(tp) &&
	    (is_window_limited(tp) || tp->snd_cwnd < 2 * tp->max_packets_out))
		tcp_slow_start(tp, acked);
	if (is_round_over(tp, round))
		end_round(sk, tp, round, bpf_ktime_get_ns() / 1000, law);
}

static __always_inline __u32 after_loss(struct sock *sk, __u32 law)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct round *round = round_of(tp);
	__u64 now_us = bpf_ktime_get_ns() / 1000;
	__u32 window = tp->snd_cwnd * PACKET_Q8, next;
	bool was_slow_start;
	struct parameters wanted;
	struct state *s;

	s = bpf_sk_storage_get(&state, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!s)
		return max_of(tp->snd_cwnd / 2, 2);
	read_parameters(sk, &wanted, law);
	was_slow_start = is_in_slow_start(tp);
	if (was_slow_start || s->seen.law != wanted.law) {
		take_window(s, wanted.law, window, now_us);
		s->seen.law = wanted.law;
	}
	s->before_q8[0] = s->vegas.window_q8;
	s->before_q8[1] = s->weighted.window_q8;
	s->before_q8[2] = s->cdg.window_q8;
	next = law_loss(s, &wanted, window, round->base_us, now_us, was_slow_start);
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
	struct state *s = bpf_sk_storage_get(&state, sk, 0, 0);

	/* A connection that has followed one of these laws before: the window
	 * that it had then says nothing now. */
	if (s) {
		s->seen.law = 0;
		s->w_q16 = 0;
	}
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
void BPF_PROG(end, struct sock *sk)
{
	pace(sk, round_of(tcp_sk(sk)), false);
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
		train_acknowledged(round, tp->snd_una, tp->snd_nxt,
				   bpf_ktime_get_ns() / 1000);
	if (sample->rtt_us <= 0 || tp->tcp_mstamp == round->unpaced_us + rtt_us)
		return;
	round->samples++;
	if (rtt_us < round->rtt_min_us)
		round->rtt_min_us = rtt_us;
	/* That of a single packet may have been delayed. */
	if (rtt_us > round->rtt_max_us && (sample->pkts_acked > 1 || round->cwnd < 4))
		round->rtt_max_us = rtt_us;
	if (!is_in_slow_start(tp))
		return;
	round->rtt_few_us = min_of(round->rtt_few_us, rtt_us);
	if (round->samples % (round->is_yielding ? YIELDING_SAMPLES : HYSTART_SAMPLES))
		return;
	if (round->turns >= HYSTART_FROM_ROUND &&
	    (round->is_yielding || tp->snd_cwnd >= MIN_HYSTART_WINDOW) &&
	    round->rtt_few_us > round->base_us + round->patience_us) {
		/* What is on its way now is what was on its way when those
		 * left, and as much again: half of it would do. */
		if (round->is_yielding)
			tp->snd_cwnd = max_of(tp->snd_cwnd / 2, 2);
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

/* What is paced is paced by the packet, where the kernel does not put a
 * millisecond's worth together: its two (net.ipv4.tcp_min_tso_segs) would make
 * others wait for both, where a packet takes long. */
SEC("struct_ops")
__u32 BPF_PROG(at_once, struct sock *sk)
{
	return round_of(tcp_sk(sk))->is_paced ? 1 : 2;
}

SEC("struct_ops")
__u32 BPF_PROG(undo, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *s = bpf_sk_storage_get(&state, sk, 0, 0);

	/* Nothing was lost. */
	if (s) {
		s->vegas.window_q8 = max_of(s->vegas.window_q8, s->before_q8[0]);
		s->weighted.window_q8 = max_of(s->weighted.window_q8, s->before_q8[1]);
		s->cdg.window_q8 = max_of(s->cdg.window_q8, s->before_q8[2]);
	}
	return max_of(tp->snd_cwnd, tp->prior_cwnd);
}

/* The congestion control fairbat_NAME. LAW is the first law of its family, which
 * it follows unless a process chooses the second. */
#define CONTROL(NAME, LAW)                                                         \
	SEC("struct_ops")                                                          \
	void BPF_PROG(NAME##_avoid, struct sock *sk, __u32 ack, __u32 acked)       \
	{                                                                          \
		avoid(sk, acked, LAW);                                             \
	}                                                                          \
	SEC("struct_ops")                                                          \
	__u32 BPF_PROG(NAME##_ssthresh, struct sock *sk)                           \
	{                                                                          \
		return after_loss(sk, LAW);                                        \
	}                                                                          \
	SEC(".struct_ops.link")                                                    \
	struct tcp_congestion_ops NAME = {                                         \
		.init = (void *)begin,                                             \
		.release = (void *)end,                                            \
		.ssthresh = (void *)NAME##_ssthresh,                               \
		.cong_avoid = (void *)NAME##_avoid,                                \
		.set_state = (void *)changed,                                      \
		.pkts_acked = (void *)acknowledged,                                \
		.min_tso_segs = (void *)at_once,                                   \
		.undo_cwnd = (void *)undo,                                         \
		.flags = TCP_CONG_NON_RESTRICTED,                                  \
		.name = "fairbat_" #NAME,                                          \
	}

CONTROL(vegas, LAW_VEGAS);
CONTROL(cdg, LAW_CDG);
CONTROL(cubic, LAW_CUBIC_PHANTOM);

/* The kernel lends what this uses to programs that the GPL permits. */
char LICENSE[] SEC("license") = "Dual MIT/GPL";
