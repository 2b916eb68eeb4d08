/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The kernel's types and numbers that the observer uses, and no others: so
 * building needs neither the headers of a kernel nor a description of one.
 */
#pragma once

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef short __s16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef __u16 __sum16;

/* linux/bpf.h, as far as it is needed: numbers of the kernel's interface. */
enum {
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_F_NO_PREALLOC = 1,
	BPF_SK_STORAGE_GET_F_CREATE = 1,
};

/* linux/bpf.h: a map whose values have one can be frozen by nobody (Linux
 * 6.2; BPF_MAP_FREEZE needs no more than the right to write). */
struct bpf_spin_lock {
	__u32 val;
};

/* The kernel's own structures, as far as they are needed: where the fields
 * are on the running kernel, the loader finds out (CO-RE). */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct sock;
struct sk_buff {
	__u32 len;
	__u32 end;
	unsigned char *head;
	unsigned char *data;
};
struct skb_shared_info {
	unsigned short gso_segs;
};
struct tcp_sock {
	__u32 rcv_nxt;
	__u32 tsoffset;
	/* Since Linux 6.7. */
	__u8 tcp_usec_ts : 1;
};
#pragma clang attribute pop
