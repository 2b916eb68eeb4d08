/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What the kernel's side and the process's side of the congestion controls
 * share. Its counterpart is ../congestion/layout.rs; both assert the sizes.
 */
#pragma once

/* To be raised with every change of the structures or of what the kernel's
 * side does: it is how a process and what root has set up know whether they
 * belong together. */
#define CONGESTION_VERSION 3

/* Weights and ratios: 16 bits behind the point. */
#define ONE_Q16 65536
/* The least weight (LEAST_WEIGHT of brake/order.rs): 0.02. */
#define LEAST_WEIGHT_Q16 1311
/* Windows: 8 bits behind the point of a packet. */
#define PACKET_Q8 256
/* Least window: with less, a delayed acknowledgement stops the flow. */
#define FLOOR_Q8 (2 * PACKET_Q8)

/* What a congestion control of ours follows. Which of them belong to which is
 * told in congestion.bpf.c. */
enum law {
	LAW_NONE = 0,
	LAW_VEGAS = 1,
	LAW_VEGAS_PAPER = 2,
	LAW_CDG = 3,
	LAW_CDG_PAPER = 4,
	LAW_CUBIC_PHANTOM = 5,
	LAW_CUBIC_BETA = 6,
};

/* What a process writes for its socket. */
struct parameters {
	/* enum law; one of another congestion control is its default. */
	__u32 law;
	/* w, LEAST_WEIGHT_Q16 to ONE_Q16. */
	__u32 w_q16;
	/* DA-LBE's effective price ratio (eq. 26); 0 is 1. */
	__u32 phi_q16;
	/* CDG's G; 0: by w and the base round-trip time. */
	__u32 g_us;
	/* What the path is known to carry altogether, byte/s; 0 if nothing is. */
	__u32 capacity;
	/* Never taken: it keeps everybody who may write to the map from freezing
	 * it for all. */
	struct bpf_spin_lock lock;
};
_Static_assert(sizeof(struct parameters) == 24, "as in layout.rs");

/* What the kernel's side tells of a socket, from the moment it came under
 * control. */
struct telemetry {
	__u32 version;
	__u32 law;
	/* Of the round trip that is over. */
	__u32 cwnd;
	__u32 rtt_us;
	/* Without a queue; 0 while nothing is known. */
	__u32 base_us;
	/* CDG's smoothed gradients. */
	__s32 gradient_min_us;
	__s32 gradient_max_us;
	/* Indications of congestion: recoveries from loss, and by delay. */
	__u32 losses;
	__u32 delays;
	/* Back-offs that a random decision made of no loss. */
	__u32 phantoms;
	/* Reductions of the window, for whatever reason. */
	__u32 backoffs;
	/* Whether it makes room for others. */
	__u32 is_yielding;
	__u64 packets;
	/* Sums of the shares of the window that indications removed. */
	__u64 loss_share_q16;
	__u64 delay_share_q16;
	__u64 updated_us;
};
_Static_assert(sizeof(struct telemetry) == 80, "as in layout.rs");
