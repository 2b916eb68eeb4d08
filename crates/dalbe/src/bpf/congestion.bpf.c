// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Congestion controls with a weight for each socket, for senders that yield. This
 * file connects the kernel (struct tcp_congestion_ops) with the laws. Each law
 * has a file of its own.
 *
 * Each family has a control. The socket's parameters choose a law of the family:
 *   fairbat_vegas   LAW_VEGAS, LAW_VEGAS_PAPER
 *   fairbat_cdg     LAW_CDG, LAW_CDG_PAPER
 *   fairbat_cubic   LAW_CUBIC_PHANTOM, LAW_CUBIC_BETA
 *
 * A law sets the window once per round trip. TCP paces a flow whose window
 * changes at once. After a loss, the kernel reduces the window step by step to
 * the result of ssthresh() (PRR, RFC 6937). A back-off by delay is immediate.
 *
 * Each change here or in the structures needs a new CONGESTION_VERSION.
 */
#include "kernel.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "laws.h"
#include "groups.h"
#include "round.h"

SOCKET_MAP(parameters, struct parameters);
SOCKET_MAP(state, struct state);

/* Samples in a row that decide on the end of slow start: for a flow that yields,
 * and for other flows (RFC 9406). */
#define YIELDING_SAMPLES 4
#define HYSTART_SAMPLES 8
/* Other flows stay in slow start below this window, packets (Ha and Rhee 2011). */
#define MIN_HYSTART_WINDOW 16
/* Slow start ends after this many round trips at the earliest. The first packets
 * of a connection leave at once (round.h). The packets after them are spaced. */
#define HYSTART_FROM_ROUND 2
_Static_assert(HYSTART_FROM_ROUND < 4, "struct round has two bits");
/* Several round trips with fewer packets than these, as heads of responses make, count as one. */
#define MIN_OPENING_PACKETS 4
/* Slow start of a flow that yields ends at this share of what a train has shown: 0.95. */
#define OPENED_Q16 62259

/* The parameters that the process has set, or the defaults. */
static __always_inline void read_parameters(struct sock *sk, struct parameters *wanted, __u32 law)
{
	struct parameters *set = bpf_sk_storage_get(&parameters, sk, 0, 0);

	wanted->law = law;
	wanted->w_q16 = MIN_WEIGHT_Q16;
	wanted->phi_q16 = ONE_Q16;
	wanted->g_us = 0;
	wanted->capacity = 0;
	wanted->priority = 1;
	if (!set)
		return;
	/* The second law of the family. Any other value chooses the first. */
	if (set->law == law + 1)
		wanted->law = set->law;
	wanted->w_q16 = weight_of(set, bpf_ktime_get_ns() / 1000000000);
	if (set->phi_q16)
		wanted->phi_q16 = set->phi_q16;
	wanted->g_us = set->g_us;
	wanted->capacity = set->capacity;
	wanted->priority = min_of(set->priority, MAX_PRIORITY);
}

/* Tells the process what its socket does, by the state of its law. */
static __always_inline void tell(struct state *own, const struct state *s, struct tcp_sock *tp,
				 const struct round_sample *sample)
{
	seen_take(&own->seen, &s->seen);
	own->seen.version = CONGESTION_VERSION;
	own->seen.cwnd = tp->snd_cwnd;
	own->seen.rtt_us = sample->rtt_min_us;
	own->seen.base_us = sample->base_us;
	own->seen.packets = round_of(tp)->packets;
	own->seen.updated_us = sample->now_us;
	own->seen.is_yielding =
		s->yielding.yielded_us && sample->now_us < s->yielding.yielded_us + 1000000;
}

/* Whether a train is due. It leaves at once only if no packet waits for room in
 * the window. */
static __always_inline bool is_time_for_train(struct tcp_sock *tp, const struct state *s,
					      __u64 now_us)
{
	__u64 every_us = s->trains.is_sure ? TRAIN_EVERY_US : TRAIN_FIRST_US;

	return !is_reducing(tp) && tp->packets_out <= tp->snd_cwnd &&
	       now_us > s->trains.last_us + every_us;
}

/* A round trip of slow start. The first train tells what the path carries without
 * a queue. A flow that yields leaves slow start there. */
static __always_inline void start_slowly(struct tcp_sock *tp, const struct round *round,
					 struct state *s, const struct round_sample *sample)
{
	__u32 all = scaled(s->trains.capacity, sample->base_us, 1000000);

	s->yielding.carried_q8 = sample->carried_q8;
	s->seen.law = 0;
	if (round->is_yielding && all && tp->snd_ssthresh == TCP_INFINITE_SSTHRESH)
		tp->snd_ssthresh = max_of(times_q16(all, OPENED_Q16) / sample->segment, 2 * TRAIN);
}

/* Sets the window of a flow by a law of its own, or as the only one of its group. */
static __always_inline void go_alone(struct sock *sk, struct tcp_sock *tp, struct round *round,
				     struct state *s, const struct parameters *wanted,
				     struct round_sample *sample, __u64 now_us)
{
	__u32 window_q8;
	bool is_paced = false;

	if (round->tested)
		train_learn(&s->trains, round->tested);
	observe(sample, s, tp, round, tp->delivered - round->delivered, wanted, now_us);
	burst_learn(&s->yielding, round, sample);
	round->base_us = sample->base_us;
	round->patience_us = patience_us(wanted->w_q16, sample->base_us) +
			     s->yielding.between_bursts_us;
	round->least_us = MIN_RTT_US;
	round->is_coupled = 0;
	round->pair_rate = 0;

	if (may_yield(wanted->law) && !is_in_slow_start(tp) && !round->is_slow_start &&
	    seeks_share(s, sample))
		tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;
	if (is_in_slow_start(tp)) {
		take_weight(s, wanted->w_q16);
		is_paced = round->train != TRAIN_AWAITED;
		start_slowly(tp, round, s, sample);
	} else {
		/* Another law, or the first round trip after slow start. */
		if (s->seen.law != wanted->law || round->is_slow_start)
			take_window(s, wanted->law, tp->snd_cwnd * PACKET_Q8, now_us,
				    sample->base_us);
		else if (is_reno(wanted) && s->w_q16 >= ONE_Q16)
			s->cdg.window_q8 = tp->snd_cwnd * PACKET_Q8;
		s->seen.law = wanted->law;
		if (is_to_yield(wanted))
			round->least_us = MIN_ROUND_US;
		window_q8 = law_round(s, sample, wanted->law, &is_paced);
		window_q8 = min_of(window_q8, MAX_WINDOW_Q8);
		tp->snd_cwnd = max_of(window_q8 / PACKET_Q8,
				    window_q8 < FLOOR_Q8 && is_to_yield(wanted) ? 1 : 2);
		/* Slow start is over until the kernel says otherwise. */
		tp->snd_ssthresh = tp->snd_cwnd;
		if (may_yield(wanted->law) && !is_paced && wanted->w_q16 < ONE_Q16 &&
		    is_time_for_train(tp, s, now_us)) {
			s->trains.last_us = now_us;
			train_begin(round, tp->snd_nxt, sample->segment);
			tp->snd_cwnd += TRAIN;
		}
	}
	round->turns = min_of(round->turns + 1,
			      sample->delivered < MIN_OPENING_PACKETS ? 1 : HYSTART_FROM_ROUND);
	pace(sk, round, is_paced);
}

/* Sets the window at the end of a round trip. */
static __always_inline void end_round(struct sock *sk, struct tcp_sock *tp, struct round *round,
				      __u64 now_us, __u32 default_law)
{
	struct round_sample sample = {
		.now_us = now_us,
		.rtt_min_us = round->samples ? round->rtt_min_us : round->base_us,
		.base_us = round->base_us,
	};
	bool is_busy, is_together = false;
	struct parameters wanted;
	struct group *group = 0;
	struct state *own, *s;

	own = bpf_sk_storage_get(&state, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!own)
		return;
	read_parameters(sk, &wanted, default_law);
	round->is_yielding = wanted.w_q16 <= MIN_WEIGHT_Q16;
	round->is_reno = is_reno(&wanted);
	if (is_in_group(&wanted))
		group = group_enter(sk, own, &wanted, now_us);
	is_busy = group ? !group_take(group) : own->member.law && !group_leave(sk, own);
	if (is_busy) {
		begin_round(tp, round, now_us);
		return;
	}
	/* A flow that leaves has only had a part, and looks for its share now. */
	if (!group && round->is_coupled)
		tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;
	s = group ? &group->s : own;
	if (group) {
		group_hear(group, &own->member, now_us, is_held_by_window(tp, round));
		/* The packets of the others are between those of a train. */
		if (group_is_coupled(group))
			round->tested = 0;
		/* The last round trip of a flow that is now the only one is of all. */
		is_together = group_is_coupled(group)
				      ? !group_opens(group, &own->member, now_us)
				      : round->is_coupled && s->yielding.phase != PHASE_OPENING;
	}
	if (is_together) {
		go_together(sk, tp, round, group, own, &wanted, &sample, now_us);
		round->is_coupled = group_is_coupled(group);
	} else {
		/* The flow that has opened the path so far is silent. */
		if (group && round->is_coupled && s->yielding.phase == PHASE_OPENING)
			tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;
		go_alone(sk, tp, round, s, &wanted, &sample, now_us);
		if (group)
			group_go_alone(group, sample.base_us);
	}
	round->tested = 0;
	tell(own, s, tp, &sample);
	if (group) {
		own->w_q16 = wanted.w_q16;
		group_release(group);
	}
	begin_round(tp, round, now_us);
}

static __always_inline void avoid(struct sock *sk, __u32 acked, __u32 law)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct round *round = round_of(tp);

	if (is_in_slow_start(tp) &&
	    (is_window_limited(tp) || tp->snd_cwnd < 2 * tp->max_packets_out))
		tcp_slow_start(tp, acked);
	else if (!is_in_slow_start(tp) && round->is_reno && is_window_limited(tp))
		tcp_cong_avoid_ai(tp, tp->snd_cwnd, acked);
	if (is_round_over(tp, round))
		end_round(sk, tp, round, bpf_ktime_get_ns() / 1000, law);
}

/* The window after a loss by a law of its own, packets/256. */
static __always_inline __u32 lose_alone(struct state *s, const struct parameters *wanted,
					const struct round *round, __u32 window, __u32 base_us,
					__u64 now_us, bool was_slow_start)
{
	if (was_slow_start || s->seen.law != wanted->law)
		take_window(s, wanted->law, window, now_us, base_us);
	else if (round->is_reno)
		s->cdg.window_q8 = window;
	s->seen.law = wanted->law;
	s->before_q8[0] = s->yielding.window_q8;
	s->before_q8[1] = s->weighted.window_q8;
	s->before_q8[2] = s->cdg.window_q8;
	return law_loss(s, wanted, window, base_us, minus(round->rtt_max_us, base_us), now_us,
			was_slow_start);
}

static __always_inline __u32 after_loss(struct sock *sk, __u32 law)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct round *round = round_of(tp);
	__u64 now_us;
	__u32 window = tp->snd_cwnd * PACKET_Q8, next, base_us;
	bool is_busy;
	struct group *group = 0;
	struct parameters wanted;
	struct state *own, *s;

	/* No round trip may be over yet. */
	base_us = round->base_us ? round->base_us : least_rtt_us(tp);
	own = bpf_sk_storage_get(&state, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!own)
		return max_of(tp->snd_cwnd / 2, 2);
	read_parameters(sk, &wanted, law);
	/* The weight may have changed since the last round trip. */
	round->is_yielding = wanted.w_q16 <= MIN_WEIGHT_Q16;
	if (is_in_group(&wanted))
		group = group_of(sk, own);
	is_busy = group ? !group_take(group) : own->member.law && !group_leave(sk, own);
	if (is_busy)
		return max_of(tp->snd_cwnd / 2, 2);
	now_us = bpf_ktime_get_ns() / 1000;
	s = group ? &group->s : own;
	if (group && round->is_coupled)
		next = lose_together(group, &own->member, round, window, now_us);
	else
		next = lose_alone(s, &wanted, round, window, base_us, now_us,
				  is_in_slow_start(tp));
	s->seen.losses++;
	/* No round trip ends in a recovery, which shows what gets through. */
	round->began_us = now_us;
	round->delivered = tp->delivered;
	if (next < window) {
		s->seen.backoffs++;
		s->seen.loss_share_q16 += scaled(window - next, ONE_Q16, window);
	}
	if (group)
		group_release(group);
	return next / PACKET_Q8;
}

static __always_inline void start(struct sock *sk, __u32 law)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct round *round = round_of(tp);
	__u64 now_us = bpf_ktime_get_ns() / 1000;
	struct state *s = bpf_sk_storage_get(&state, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	struct parameters wanted;

	/* The connection may have followed one of these laws before. Its window
	 * from then does not count. */
	if (s) {
		s->seen.law = 0;
		s->w_q16 = 0;
	}
	__builtin_memset(round, 0, sizeof(*round));
	begin_round(tp, round, now_us);
	round->acknowledged = tp->snd_una;
	round->patience_us = 4000;
	round->is_yielding = 1;
	/* The congestion control before this one wanted pacing. A process that
	 * wants pacing has also set a rate. */
	if (sk->sk_pacing_status == SK_PACING_NEEDED && sk->sk_max_pacing_rate == ~0UL)
		sk->sk_pacing_status = SK_PACING_NONE;
	/* The first packets are not paced, so they are a train. */
	train_begin(round, tp->snd_nxt, tp->mss_cache);
	read_parameters(sk, &wanted, law);
	if (s && is_in_group(&wanted))
		group_join(sk, tp, round, s, &wanted, now_us);
}

SEC("struct_ops")
void BPF_PROG(end, struct sock *sk)
{
	struct round *round = round_of(tcp_sk(sk));
	struct state *own = bpf_sk_storage_get(&state, sk, 0, 0);

	if (own && own->member.law)
		group_leave(sk, own);
	if (own)
		own->member.law = LAW_NONE;
	if (round->is_coupled)
		tcp_sk(sk)->snd_ssthresh = TCP_INFINITE_SSTHRESH;
	round->pair_rate = 0;
	pace(sk, round, false);
}

SEC("struct_ops")
void BPF_PROG(acknowledged, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct round *round = round_of(tp);
	__u32 rtt_us = sample->rtt_us;
	__u32 bytes = tp->snd_una - round->acknowledged;
	bool is_timed;

	round->acknowledged = tp->snd_una;
	round->packets += sample->pkts_acked;
	/* After a repair of losses, acknowledgements follow the repair and not
	 * the path. */
	if (is_reducing(tp))
		round->train = TRAIN_NONE;
	if (is_whole(tp))
		burst_take(round, (__u32)tp->tcp_mstamp, sample->pkts_acked);
	if (round->train)
		train_acknowledged(round, tp->snd_una, tp->snd_nxt,
				   bpf_ktime_get_ns() / 1000);
	is_timed = sample->rtt_us > 0 && tp->tcp_mstamp != round->unpaced_us + rtt_us &&
		   are_full(tp, sample->pkts_acked, bytes);
	if (round->is_coupled)
		group_tell(sk, tp, bpf_sk_storage_get(&state, sk, 0, 0), is_timed ? rtt_us : 0);
	if (!is_timed)
		return;
	round->samples++;
	round->rtt_sum_us += rtt_us;
	if (rtt_us < round->rtt_min_us)
		round->rtt_min_us = rtt_us;
	/* The acknowledgement of a single packet may have been delayed. */
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
		/* Twice as much is in flight now as when these packets left.
		 * Half of it is enough. */
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
	struct round *round = round_of(tp);
	__u64 now_us = bpf_ktime_get_ns() / 1000;
	struct state *own, *s;

	/* Measurements in a recovery do not count. Reordering alone
	 * (TCP_CA_Disorder) is no recovery. */
	if (!is_reducing(tp))
		return;
	round->train = TRAIN_NONE;
	if (ca_state != TCP_CA_Open)
		return;
	own = bpf_sk_storage_get(&state, sk, 0, 0);
	/* What gets through of one flow tells nothing of what all of a group deliver. */
	if (own && is_repairing(tp) && !round->is_coupled) {
		s = state_of_law(sk, own);
		yield_repaired(&s->yielding, now_us - round->began_us,
			       tp->delivered - round->delivered, round->base_us);
		/* The kernel goes there now. */
		if (round->is_yielding && may_yield(s->seen.law))
			tp->snd_ssthresh = max_of(min_of(tp->snd_ssthresh,
							 s->yielding.window_q8 / PACKET_Q8), 2);
	}
	begin_round(tp, round, now_us);
}

/* The smallest number of packets that leave together. A paced flow sends single
 * packets. On a slow link, other traffic would have to wait for both packets of
 * the usual two (net.ipv4.tcp_min_tso_segs). */
SEC("struct_ops")
__u32 BPF_PROG(at_once, struct sock *sk)
{
	const struct round *round = round_of(tcp_sk(sk));

	/* The kernel sets the rate anew with each acknowledgement, and asks here before
	 * it sends. */
	if (round->pair_rate)
		sk->sk_pacing_rate = round->pair_rate < sk->sk_max_pacing_rate
					     ? round->pair_rate
					     : sk->sk_max_pacing_rate;
	return round->is_paced && !round->pair_rate ? 1 : 2;
}

SEC("struct_ops")
__u32 BPF_PROG(undo, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *own = bpf_sk_storage_get(&state, sk, 0, 0);
	struct state *s;

	/* No packet was lost after all. */
	if (own && !round_of(tp)->is_coupled) {
		s = state_of_law(sk, own);
		s->yielding.window_q8 = max_of(s->yielding.window_q8, s->before_q8[0]);
		s->weighted.window_q8 = max_of(s->weighted.window_q8, s->before_q8[1]);
		s->cdg.window_q8 = max_of(s->cdg.window_q8, s->before_q8[2]);
	}
	return max_of(tp->snd_cwnd, tp->prior_cwnd);
}

/* The congestion control fairbat_NAME. LAW is the first law of its family, which
 * it follows unless a process chooses the second. */
#define CONTROL(NAME, LAW)                                                         \
	SEC("struct_ops")                                                          \
	void BPF_PROG(NAME##_begin, struct sock *sk)                               \
	{                                                                          \
		start(sk, LAW);                                                    \
	}                                                                          \
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
		.init = (void *)NAME##_begin,                                      \
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

/* The kernel offers these functions to programs under the GPL only. */
char LICENSE[] SEC("license") = "Dual MIT/GPL";
