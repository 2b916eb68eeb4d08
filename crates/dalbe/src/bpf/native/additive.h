/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Additive increase as the kernel has it, for whatever has a `struct tcp_sock`.
 */
#pragma once

/* By a packet for each window `w` that was acknowledged (net/ipv4/tcp_cong.c). */
static inline void avoid_additively(struct tcp_sock *tp, __u32 w, __u32 acked)
{
	if (tp->snd_cwnd_cnt >= w) {
		tp->snd_cwnd_cnt = 0;
		tp->snd_cwnd++;
	}
	tp->snd_cwnd_cnt += acked;
	if (tp->snd_cwnd_cnt >= w) {
		tp->snd_cwnd += tp->snd_cwnd_cnt / w;
		tp->snd_cwnd_cnt %= w;
	}
}
