/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What a round trip, or a loss, has shown to the law that yields (yielding.h).
 */
#pragma once

#include "types.h"

/* A step of the law. */
struct step {
	__u64 now_us;
	/* The mean round-trip time. */
	__u32 rtt_us;
	__u32 carried_q8;
	__u32 used_q8;
	/* What the path carries at its capacity. */
	__u32 full_q8;
	__u32 queue_us;
	/* The longest queue that is no sign of others, and the time of a packet. */
	__u32 target_us;
	__u32 packet_us;
	/* Since the queue before this one. */
	__u32 gap_us;
	/* Whether the window is what limits the flow. */
	bool is_limited;
	/* Whether flows that share the window have not learnt yet that it has grown. */
	bool is_late;
	bool is_lost;
	/* Whether the queue is long, and nothing that the flow has done explains it. */
	bool has_come;
};
