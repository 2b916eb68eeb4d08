/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Access to the kernel's socket: its state, the round trip that is kept in it,
 * and whether TCP spaces its packets. This file does not depend on the laws.
 */
#pragma once

#include "arithmetic.h"
#include "congestion.h"
#include "kernel.h"

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

/* Whether the kernel reduces the window or repairs a loss. */
static __always_inline bool is_reducing(struct tcp_sock *tp)
{
	return BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state) >= TCP_CA_CWR;
}

/* The smallest round-trip time of the last minutes, us, the handshake's among them. */
static __always_inline __u32 least_rtt_us(const struct tcp_sock *tp)
{
	return tp->rtt_min.s[0].v;
}

/* Whether no packet is missing: an acknowledgement that fills a hole covers what came
 * before it. */
static __always_inline bool is_whole(struct tcp_sock *tp)
{
	return BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state) == TCP_CA_Open;
}

/* Whether the kernel repairs a loss without having waited for a timer. */
static __always_inline bool is_repairing(struct tcp_sock *tp)
{
	return BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state) == TCP_CA_Recovery;
}

static __always_inline bool is_window_limited(struct tcp_sock *tp)
{
	return BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited);
}

static __always_inline void begin_round(struct tcp_sock *tp, struct round *round, __u64 now_us)
{
	round->end = tp->snd_nxt;
	round->delivered = tp->delivered;
	round->began_us = now_us;
	round->rtt_min_us = 0xffffffff;
	round->rtt_max_us = 0;
	round->rtt_few_us = 0xffffffff;
	round->rtt_sum_us = 0;
	round->samples = 0;
	round->most = 0;
	round->bursts = 0;
	round->cwnd = tp->snd_cwnd;
	round->is_slow_start = is_in_slow_start(tp);
}

/* Whether packets that were acknowledged just now, with so many bytes, are full ones. A
 * short one, as at the end of a TLS record, takes less time at the bottleneck: by its
 * round-trip time, each full one would seem to wait. Nothing is told of packets after a
 * hole, which acknowledge no bytes. */
static __always_inline bool are_full(const struct tcp_sock *tp, __u32 packets, __u32 bytes)
{
	return bytes == 0 || bytes >= packets * (tp->mss_cache - tp->mss_cache / 8);
}

/* Whether a packet of the next round trip is acknowledged and the least time is over. */
static __always_inline bool is_round_over(const struct tcp_sock *tp, const struct round *round)
{
	return is_before(round->end, tp->snd_una) &&
	       tp->tcp_mstamp >= round->began_us + max_of(round->least_us, MIN_RTT_US);
}

/* Turns TCP's pacing on or off. A window that changes at once needs pacing. A
 * window that grows by single packets would gain an advantage from it: a packet
 * between the bursts of other flows finds room in a full queue. */
static __always_inline void pace(struct sock *sk, struct round *round, bool is_paced)
{
	is_paced = is_paced &&
		   (round->pair_rate || is_pacing_possible(round, tcp_sk(sk)->snd_cwnd));
	if (is_paced && sk->sk_pacing_status == SK_PACING_NONE) {
		sk->sk_pacing_status = SK_PACING_NEEDED;
		round->is_paced = 1;
	} else if (!is_paced && round->is_paced) {
		sk->sk_pacing_status = SK_PACING_NONE;
		round->is_paced = 0;
		/* The kernel stamps packets with the time of the next paced packet.
		 * A packet that leaves earlier seems to come back too soon. */
		round->unpaced_us = tcp_sk(sk)->tcp_wstamp_ns / 1000;
	}
}
