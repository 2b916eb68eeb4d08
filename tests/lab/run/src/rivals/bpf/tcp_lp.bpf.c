// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * TCP-LP (Kuzmanovic and Knightly, INFOCOM 2003) as a congestion control.
 *
 * The delay is the one-way delay of the data from the timestamps of both ends, which
 * is what the paper uses: so queues on the way back do not count.
 * Without timestamps it is the round-trip time.
 *
 * The least and the largest delay are first those of slow start, and indications count
 * from the first loss on. Losses are TCP's business (Reno with selective
 * acknowledgements).
 *
 * At one packet the delay is that of the queue only if the receiver answers at once, as
 * those of the paper's simulations do. One that waits for a second packet makes 40 ms and
 * more out of any delay, which for short queues is an indication at every acknowledgement.
 * So the lab has receivers answer at once (`Rival::needs_quick_acks`).
 */
#include "kernel.h"

#include "tcp_lp.h"

SEC("struct_ops")
void BPF_PROG(begin, struct sock *sk)
{
	struct tcp_lp *own = STATE_OF(struct tcp_lp, tcp_sk(sk));

	__builtin_memset(own, 0, sizeof(*own));
}

SEC("struct_ops")
void BPF_PROG(acknowledged, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	__u32 delay_us;

	if (one_way_delay(tp, sample, &delay_us))
		lp_take_delay(STATE_OF(struct tcp_lp, tp), delay_us, tp->snd_una);
}

SEC("struct_ops")
void BPF_PROG(avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct tcp_lp *own = STATE_OF(struct tcp_lp, tp);

	if (is_in_slow_start(tp)) {
		if (is_window_limited(tp))
			tcp_slow_start(tp, acked);
		return;
	}
	if (!own->has_lost || !own->is_known) {
		if (is_window_limited(tp))
			tcp_cong_avoid_ai(tp, tp->snd_cwnd, acked);
		return;
	}
	switch (lp_acknowledged(own, tp->snd_nxt, smoothed_rtt_us(tp), tp->tcp_mstamp)) {
	case LP_INCREASE:
		if (is_window_limited(tp))
			tcp_cong_avoid_ai(tp, tp->snd_cwnd, acked);
		return;
	case LP_STAY:
		return;
	case LP_HALVE:
		tp->snd_cwnd = tp->snd_cwnd > 1 ? tp->snd_cwnd / 2 : 1;
		break;
	case LP_ONE_PACKET:
		tp->snd_cwnd = 1;
		break;
	}
	/* After a reduction the window grows by one packet for each round trip. */
	tp->snd_cwnd_cnt = 0;
	tp->snd_ssthresh = tp->snd_cwnd;
}

SEC("struct_ops")
__u32 BPF_PROG(lost, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct tcp_lp *own = STATE_OF(struct tcp_lp, tp);

	own->has_lost = 1;
	/* The delays of before are those of a full queue. */
	lp_reduced(own, tp->snd_nxt);
	return half_of_window(tp, MIN_WINDOW);
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
	.name = "tcp_lp",
};

/* The kernel offers its functions to programs under the GPL only. */
char LICENSE[] SEC("license") = "Dual MIT/GPL";
