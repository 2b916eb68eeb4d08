/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The kernel's structures that the observer uses, and no others.
 */
#pragma once

#include "types.h"

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
