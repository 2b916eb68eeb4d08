/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The law of LEDBAT (RFC 6817, section 2.4.2). This file knows no kernel.
 */
#pragma once

#include "delays.h"
#include "window.h"

/* ALLOWED_INCREASE, packets: by how much the window may exceed what is in flight. */
#define ALLOWED_INCREASE 1

struct ledbat {
	struct delays delays;
	struct window window;
};

/* An acknowledgement of so many packets, with this queueing delay. In a round trip
 * the window, of `least` packets or more, changes by
 *
 *   GAIN * (TARGET - queueing_delay) / TARGET    packets.
 *
 * A negative step has no other bound, as in the text. */
static __always_inline void ledbat_acknowledged(struct ledbat *own, __u32 acked, __u32 queue_us,
						__u32 target_us, __u32 gain_q16, __u32 least)
{
	bool is_below = queue_us <= target_us;
	__u32 off_us = is_below ? target_us - queue_us : queue_us - target_us;
	__u64 per_round_q16 = (__u64)gain_q16 * off_us / (target_us ? target_us : 1);
	__u64 step_q16 = part_of_round(&own->window, per_round_q16, acked);

	if (is_below)
		grow(&own->window, step_q16);
	else
		shrink(&own->window, step_q16, least);
}

/* The window never exceeds what was in flight by more than ALLOWED_INCREASE, so that
 * a sender with nothing to send does not grow. */
static __always_inline void ledbat_limit(struct ledbat *own, __u32 flight, __u32 least)
{
	__u64 most_q16 = (flight + ALLOWED_INCREASE) * PACKET_Q16;

	if (most_q16 < least * PACKET_Q16)
		most_q16 = least * PACKET_Q16;
	if (own->window.q16 > most_q16)
		own->window.q16 = most_q16;
}
