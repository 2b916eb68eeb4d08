// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * LEDBAT++ (draft-irtf-iccrg-ledbat-plus-plus) as a congestion control.
 *
 * The delay is the round-trip time, as in the draft: it needs no
 * timestamps and no clocks that agree. The slowdowns measure its base again and again.
 */
#include "kernel.h"

#include "ledbat_pp.h"

static __always_inline __u32 now_us(const struct tcp_sock *tp)
{
	return tp->tcp_mstamp;
}

SEC("struct_ops")
void BPF_PROG(begin, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ledbat_pp *own = STATE_OF(struct ledbat_pp, tp);

	__builtin_memset(own, 0, sizeof(*own));
	/* The initial window is two packets (section 4.1). */
	tp->snd_cwnd = MIN_WINDOW;
	own->window.q16 = MIN_WINDOW * PACKET_Q16;
}

SEC("struct_ops")
void BPF_PROG(acknowledged, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ledbat_pp *own = STATE_OF(struct ledbat_pp, tp);
	__s32 rtt_us = sample->rtt_us;

	/* There is none of what was sent twice. */
	if (rtt_us > 0)
		take_delay(&own->delays, rtt_us, tp->tcp_mstamp / 1000);
}

SEC("struct_ops")
void BPF_PROG(avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ledbat_pp *own = STATE_OF(struct ledbat_pp, tp);
	__u32 ssthresh = tp->snd_ssthresh;

	if (!own->delays.is_known)
		return;
	follow_kernel(&own->window, tp->snd_cwnd);
	ledbat_pp_acknowledged(own, &ssthresh, acked, smoothed_rtt_us(tp), now_us(tp),
			       is_window_limited(tp));
	tp->snd_ssthresh = ssthresh;
	tp->snd_cwnd = whole_packets(&own->window);
}

SEC("struct_ops")
__u32 BPF_PROG(lost, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	/* In a slowdown the window is small already. A loss from before it does not
	 * lower where the window goes back to any further than a half. */
	if (is_in_slow_start(tp) && tp->snd_ssthresh < TCP_INFINITE_SSTHRESH)
		return tp->snd_ssthresh > 2 * MIN_WINDOW ? tp->snd_ssthresh / 2 : MIN_WINDOW;
	return half_of_window(tp, MIN_WINDOW);
}

SEC("struct_ops")
void BPF_PROG(changed, struct sock *sk, __u8 ca_state)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (ca_state == TCP_CA_Loss)
		ledbat_pp_timed_out(STATE_OF(struct ledbat_pp, tp), now_us(tp));
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
	.set_state = (void *)changed,
	.pkts_acked = (void *)acknowledged,
	.undo_cwnd = (void *)undo,
	.name = "ledbat_pp",
};

/* The kernel offers its functions to programs under the GPL only. */
char LICENSE[] SEC("license") = "Dual MIT/GPL";
