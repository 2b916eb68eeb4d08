// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * TCP-LP by the rules that Linux and ns-2 have, as a congestion control. FAIRBAT's paper
 * compares with ns-2's.
 *
 * Delays count in every state, those of older packets that a receiver echoes while something
 * is missing as well. Growth and losses are Reno's, and the threshold of slow start is only
 * a loss's business.
 */
#include "kernel.h"

#include "tcp_lp_linux.h"

SEC("struct_ops")
void BPF_PROG(begin, struct sock *sk)
{
	struct tcp_lp_linux *own = STATE_OF(struct tcp_lp_linux, tcp_sk(sk));

	__builtin_memset(own, 0, sizeof(*own));
}

SEC("struct_ops")
void BPF_PROG(acknowledged, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct tcp_lp_linux *own = STATE_OF(struct tcp_lp_linux, tp);
	__u32 delay_us;

	if (!any_one_way_delay(tp, sample, &delay_us))
		return;
	switch (lpl_take_delay(own, delay_us, sample->rtt_us, tp->tcp_mstamp)) {
	case LPL_NOTHING:
		return;
	case LPL_HALVE:
		tp->snd_cwnd = tp->snd_cwnd > 1 ? tp->snd_cwnd / 2 : 1;
		return;
	case LPL_ONE_PACKET:
		tp->snd_cwnd = 1;
		return;
	}
}

SEC("struct_ops")
void BPF_PROG(avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (lpl_is_inferring(STATE_OF(struct tcp_lp_linux, tp), tp->tcp_mstamp) ||
	    !is_window_limited(tp))
		return;
	if (is_in_slow_start(tp)) {
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}
	tcp_cong_avoid_ai(tp, tp->snd_cwnd, acked);
}

SEC("struct_ops")
__u32 BPF_PROG(lost, struct sock *sk)
{
	return half_of_window(tcp_sk(sk), MIN_WINDOW);
}

SEC("struct_ops")
__u32 BPF_PROG(undo, struct sock *sk)
{
	return window_before(tcp_sk(sk));
}

SEC(".struct_ops.link")
struct tcp_congestion_ops control = {
	.init = (void *)begin,
	.ssthresh = (void *)lost,
	.cong_avoid = (void *)avoid,
	.pkts_acked = (void *)acknowledged,
	.undo_cwnd = (void *)undo,
	.name = "tcp_lp_linux",
};

/* The kernel offers its functions to programs under the GPL only. */
char LICENSE[] SEC("license") = "Dual MIT/GPL";
