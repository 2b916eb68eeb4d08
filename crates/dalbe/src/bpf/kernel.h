/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The kernel's types, numbers and functions that the programs use.
 */
#pragma once

#include "types.h"

/* net/tcp.h */
enum {
	TCP_CA_NAME_MAX = 16,
	/* Any user may choose it. */
	TCP_CONG_NON_RESTRICTED = 1,
	TCP_INFINITE_SSTHRESH = 0x7fffffff,
	/* linux/tcp.h, enum tcp_ca_state. */
	TCP_CA_Open = 0,
	TCP_CA_CWR = 2,
	TCP_CA_Recovery = 3,
	/* net/sock.h, enum sk_pacing. */
	SK_PACING_NONE = 0,
	SK_PACING_NEEDED = 1,
	/* linux/socket.h */
	AF_INET6 = 10,
};

/* The fields that the programs use. The loader finds their places in the
 * running kernel (CO-RE). */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct sk_buff {
	__u32 len;
	__u32 end;
	unsigned char *head;
	unsigned char *data;
};
struct skb_shared_info {
	unsigned short gso_segs;
};
struct ns_common {
	__u32 inum;
};
struct net {
	struct ns_common ns;
};
typedef struct {
	struct net *net;
} possible_net_t;
struct in6_addr {
	union {
		__u32 u6_addr32[4];
	} in6_u;
};
struct sock_common {
	__u32 skc_daddr;
	__u32 skc_rcv_saddr;
	unsigned short skc_family;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};
typedef struct {
	__u32 val;
} kuid_t;
struct sock {
	struct sock_common __sk_common;
	kuid_t sk_uid;
	__u32 sk_pacing_status;
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
};
struct inet_sock {
	struct sock sk;
};
struct inet_connection_sock {
	struct inet_sock icsk_inet;
	__u8 icsk_ca_state : 5;
	__u64 icsk_ca_priv[13];
};
struct minmax_sample {
	__u32 t;
	__u32 v;
};
struct minmax {
	struct minmax_sample s[3];
};
struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__u32 snd_una;
	__u32 snd_nxt;
	__u32 snd_wnd;
	__u32 snd_cwnd;
	__u32 snd_cwnd_cnt;
	__u32 snd_ssthresh;
	__u32 mss_cache;
	__u32 delivered;
	__u32 packets_out;
	__u32 data_segs_out;
	__u32 max_packets_out;
	__u64 tcp_wstamp_ns;
	__u64 tcp_mstamp;
	__u32 prior_cwnd;
	struct minmax rtt_min;
	__u32 rcv_nxt;
	__u32 tsoffset;
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
	__u32 (*min_tso_segs)(struct sock *sk);
	__u32 (*undo_cwnd)(struct sock *sk);
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
	char name[TCP_CA_NAME_MAX];
	__u32 flags;
};
#pragma clang attribute pop

/* A map with a value for each socket. The value ends with the socket. */
#define SOCKET_MAP(NAME, VALUE)                        \
	struct {                                       \
		__uint(type, BPF_MAP_TYPE_SK_STORAGE); \
		__uint(map_flags, BPF_F_NO_PREALLOC);  \
		__type(key, int);                      \
		__type(value, VALUE);                  \
	} NAME SEC(".maps")

/* Functions that the kernel offers to congestion controls. */
extern __u32 tcp_slow_start(struct tcp_sock *tp, __u32 acked) __attribute__((section(".ksyms")));
extern void tcp_cong_avoid_ai(struct tcp_sock *tp, __u32 w, __u32 acked)
	__attribute__((section(".ksyms")));
