// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * LEDBAT (RFC 6817) as a congestion control, LEDBAT~a of the FAIRBAT paper, and LEDBAT as
 * its first implementations had it, which are the same with other parameters. The loader
 * sets them.
 *
 * The delay is the one-way delay of the data, as the RFC has it, from the timestamps
 * that both ends put into their packets: traffic the other way, on which this sender
 * has no influence, does not count. Without timestamps it is the
 * round-trip time.
 *
 * Three things are TCP's, for the RFC leaves them to the transport: acknowledgements
 * and retransmissions, slow start after a timeout, and slow start at the beginning.
 * The latter ends when the queue takes half of TARGET. What is in flight then makes
 * about twice that queue a round trip later.
 */
#include "kernel.h"

#include "ledbat.h"

/* TARGET, at most 100 ms, us; GAIN, at most 1; MIN_CWND, packets (section 2.5). */
PARAMETER(__u32, target_us, 100000);
PARAMETER(__u32, gain_q16, 65536);
PARAMETER(__u32, least_window, MIN_WINDOW);
/* Whether there is slow start at all. */
PARAMETER(__u32, has_slow_start, 1);

SEC("struct_ops")
void BPF_PROG(begin, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ledbat *own = STATE_OF(struct ledbat, tp);

	__builtin_memset(own, 0, sizeof(*own));
	/* INIT_CWND is 2, as MIN_CWND is (section 2.5). */
	tp->snd_cwnd = least_window;
	own->window.q16 = least_window * PACKET_Q16;
}

SEC("struct_ops")
void BPF_PROG(acknowledged, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ledbat *own = STATE_OF(struct ledbat, tp);
	__u32 delay_us;

	if (one_way_delay(tp, sample, &delay_us))
		take_delay(&own->delays, delay_us, tp->tcp_mstamp / 1000);
}

SEC("struct_ops")
void BPF_PROG(avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ledbat *own = STATE_OF(struct ledbat, tp);
	__u32 queue_us, flight;

	if (!own->delays.is_known)
		return;
	queue_us = queueing_delay_us(&own->delays);
	if (is_in_slow_start(tp)) {
		if (has_slow_start && queue_us < target_us / 2) {
			if (is_window_limited(tp))
				tcp_slow_start(tp, acked);
			return;
		}
		tp->snd_ssthresh = tp->snd_cwnd;
	}
	follow_kernel(&own->window, tp->snd_cwnd);
	ledbat_acknowledged(own, acked, queue_us, target_us, gain_q16, least_window);
	/* What was in flight before this acknowledgement. The kernel holds packets
	 * back now and then to send several at once, so the most of the last round
	 * trip counts. */
	flight = tp->packets_out + acked;
	ledbat_limit(own, flight > tp->max_packets_out ? flight : tp->max_packets_out,
		     least_window);
	tp->snd_cwnd = whole_packets(&own->window);
	/* Slow start comes after a timeout only. */
	if (tp->snd_cwnd < tp->snd_ssthresh)
		tp->snd_ssthresh = tp->snd_cwnd;
}

SEC("struct_ops")
__u32 BPF_PROG(lost, struct sock *sk)
{
	return half_of_window(tcp_sk(sk), least_window);
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
	.name = "ledbat",
};

/* The kernel offers its functions to programs under the GPL only. */
char LICENSE[] SEC("license") = "Dual MIT/GPL";
