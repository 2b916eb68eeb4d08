/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The kernel's side of every rival: types, fields and functions of the kernel, and
 * how a law that knows no kernel is told of an acknowledgement.
 */
#pragma once

#include "types.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "window.h"

/* net/tcp.h and linux/tcp.h */
enum {
	TCP_CA_NAME_MAX = 16,
	TCP_INFINITE_SSTHRESH = 0x7fffffff,
	/* enum tcp_ca_state: a timer has run out. */
	TCP_CA_Loss = 4,
};

/* The fields that the programs use. The loader finds their places in the
 * running kernel (CO-RE). */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct sock {
};
struct inet_connection_sock {
	__u64 icsk_ca_priv[13];
};
struct tcp_options_received {
	__u32 rcv_tsval;
	__u32 rcv_tsecr;
};
struct tcp_sock {
	struct inet_connection_sock inet_conn;
	struct tcp_options_received rx_opt;
	__u32 snd_una;
	__u32 snd_nxt;
	__u32 snd_cwnd;
	__u32 snd_cwnd_cnt;
	__u32 snd_ssthresh;
	__u32 prior_cwnd;
	__u32 packets_out;
	__u32 max_packets_out;
	__u32 sacked_out;
	__u32 srtt_us;
	__u64 tcp_mstamp;
	__u8 is_cwnd_limited : 1;
	/* Since Linux 6.7. */
	__u8 tcp_usec_ts : 1;
};
struct ack_sample {
	__u32 pkts_acked;
	__s32 rtt_us;
};
struct tcp_congestion_ops {
	__u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
	void (*set_state)(struct sock *sk, __u8 new_state);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	__u32 (*undo_cwnd)(struct sock *sk);
	void (*init)(struct sock *sk);
	char name[TCP_CA_NAME_MAX];
};
#pragma clang attribute pop

/* Functions that the kernel offers to congestion controls. */
extern __u32 tcp_slow_start(struct tcp_sock *tp, __u32 acked) __attribute__((section(".ksyms")));
extern void tcp_cong_avoid_ai(struct tcp_sock *tp, __u32 w, __u32 acked)
	__attribute__((section(".ksyms")));

/* What the loader sets. A simulation has none, and says itself what this is. */
#ifndef PARAMETER
#define PARAMETER(TYPE, NAME, VALUE) const volatile TYPE NAME = VALUE
#endif

/* The state of a law, in the kernel's room for it. */
#define STATE_OF(TYPE, TP)                                                          \
	({                                                                          \
		_Static_assert(sizeof(TYPE) <= 13 * sizeof(__u64), "has no room");  \
		(TYPE *)(TP)->inet_conn.icsk_ca_priv;                               \
	})

static __always_inline struct tcp_sock *tcp_sk(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static __always_inline bool is_in_slow_start(const struct tcp_sock *tp)
{
	return tp->snd_cwnd < tp->snd_ssthresh;
}

/* Whether the window is what holds the sender back. In slow start, half of it is
 * enough (RFC 7661 and the kernel's tcp_is_cwnd_limited()). */
static __always_inline bool is_window_limited(struct tcp_sock *tp)
{
	return BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited) ||
	       (is_in_slow_start(tp) && tp->snd_cwnd < 2 * tp->max_packets_out);
}

/* The round-trip time, smoothed, us. The kernel keeps eight times as much. */
static __always_inline __u32 smoothed_rtt_us(const struct tcp_sock *tp)
{
	return tp->srtt_us >> 3;
}

/* The one-way delay of the packets that this acknowledgement is for, us, against an
 * arbitrary zero: the receiver's clock when it answered (TSval) minus the sender's
 * clock when it sent (TSecr, RFC 7323). Both tick once a millisecond on Linux. The
 * zero is that of two clocks that differ, so only differences of delays count; they
 * count modulo 2^32 us. Without timestamps it is the round-trip time. False where
 * there is no delay to be had: of a packet that was sent twice. While something is
 * missing the receiver echoes an older packet's timestamp (section 4.3 there). */
static __always_inline bool any_one_way_delay(struct tcp_sock *tp,
					      const struct ack_sample *sample, __u32 *delay_us)
{
	__u32 ticks = tp->rx_opt.rcv_tsval - tp->rx_opt.rcv_tsecr;
	__s32 rtt_us = sample->rtt_us;

	if (rtt_us <= 0)
		return false;
	/* Nobody has echoed a timestamp. */
	if (!tp->rx_opt.rcv_tsecr) {
		*delay_us = rtt_us;
		return true;
	}
	*delay_us = ticks * 1000;
	if (bpf_core_field_exists(tp->tcp_usec_ts) && BPF_CORE_READ_BITFIELD(tp, tcp_usec_ts))
		*delay_us = ticks;
	return true;
}

/* The same, but for what is of an older packet. */
static __always_inline bool one_way_delay(struct tcp_sock *tp, const struct ack_sample *sample,
					  __u32 *delay_us)
{
	return any_one_way_delay(tp, sample, delay_us) &&
	       !(tp->rx_opt.rcv_tsecr && tp->sacked_out);
}

/* The reaction to a loss that all rivals share with TCP (RFC 5681): half of the
 * window, and `least` packets at least. The kernel goes there step by step (RFC 6937),
 * once for each round trip. */
static __always_inline __u32 half_of_window(const struct tcp_sock *tp, __u32 least)
{
	return tp->snd_cwnd > 2 * least ? tp->snd_cwnd / 2 : least;
}

/* No packet was lost after all. */
static __always_inline __u32 window_before(const struct tcp_sock *tp)
{
	return tp->snd_cwnd > tp->prior_cwnd ? tp->snd_cwnd : tp->prior_cwnd;
}
