/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A congestion window with a fraction, which the kernel's has not. This file knows
 * no kernel, so that tests can run it.
 */
#pragma once

#include "types.h"

/* A packet, in the unit of windows. */
#define PACKET_Q16 65536ULL

/* MIN_CWND of RFC 6817, section 2.5, and the least window of LEDBAT++ and after a loss
 * (RFC 5681), packets. */
#define MIN_WINDOW 2

/* Largest window, packets: it keeps products within 64 bits. */
#define MAX_WINDOW (1U << 20)

/* The window, and what the kernel was told of it. */
struct window {
	__u64 q16;
};

static __always_inline __u32 whole_packets(const struct window *window)
{
	return window->q16 / PACKET_Q16;
}

/* Takes over the kernel's window, unless it is this one: the kernel changes it
 * after a loss, a timeout or a pause. */
static __always_inline void follow_kernel(struct window *window, __u32 packets)
{
	if (whole_packets(window) != packets)
		window->q16 = packets * PACKET_Q16;
}

static __always_inline void grow(struct window *window, __u64 step_q16)
{
	window->q16 += step_q16;
	if (window->q16 > MAX_WINDOW * PACKET_Q16)
		window->q16 = MAX_WINDOW * PACKET_Q16;
}

/* Down to so many packets. */
static __always_inline void shrink(struct window *window, __u64 step_q16, __u32 least)
{
	__u64 least_q16 = least * PACKET_Q16;

	if (window->q16 > least_q16 + step_q16)
		window->q16 -= step_q16;
	else
		window->q16 = least_q16;
}

/* What an acknowledgement of some packets adds to a window that is to change by so
 * much for each round trip, that is, for each window of packets. */
static __always_inline __u64 part_of_round(const struct window *window, __u64 per_round_q16,
					   __u32 acked)
{
	return per_round_q16 * acked / (window->q16 / PACKET_Q16 ? window->q16 / PACKET_Q16 : 1);
}
