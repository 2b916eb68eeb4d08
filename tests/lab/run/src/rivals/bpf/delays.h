/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The delays that LEDBAT and LEDBAT++ remember (RFC 6817, sections 2.4.2 and 2.5):
 * the least delay of each of the last minutes, and the last few delays. Delays are in
 * microseconds against an arbitrary zero, modulo 2^32. This file knows no kernel.
 */
#pragma once

#include "types.h"

/* BASE_HISTORY, minutes: between 2 and 20, and 10 is recommended. */
#define BASE_HISTORY 10
/* CURRENT_FILTER, samples: at least 1, and 4 is recommended. */
#define CURRENT_FILTER 4
#define MINUTE_MS 60000

struct delays {
	/* The least of each minute, the present one first. */
	__u32 base_us[BASE_HISTORY];
	/* The last ones, the latest first. */
	__u32 current_us[CURRENT_FILTER];
	__u32 minute_began_ms;
	__u32 is_known;
};

static __always_inline bool is_less(__u32 a_us, __u32 b_us)
{
	return (__s32)(a_us - b_us) < 0;
}

/* Takes in a delay. The places are constant, since a program may not choose a place
 * in the kernel's structures at run time. */
static __always_inline void take_delay(struct delays *delays, __u32 delay_us, __u32 now_ms)
{
	if (!delays->is_known) {
		delays->is_known = 1;
		delays->minute_began_ms = now_ms;
#pragma unroll
		for (int i = 0; i < BASE_HISTORY; i++)
			delays->base_us[i] = delay_us;
#pragma unroll
		for (int i = 0; i < CURRENT_FILTER; i++)
			delays->current_us[i] = delay_us;
		return;
	}
	if (now_ms - delays->minute_began_ms >= MINUTE_MS) {
		delays->minute_began_ms = now_ms;
#pragma unroll
		for (int i = BASE_HISTORY - 1; i > 0; i--)
			delays->base_us[i] = delays->base_us[i - 1];
		delays->base_us[0] = delay_us;
	} else if (is_less(delay_us, delays->base_us[0])) {
		delays->base_us[0] = delay_us;
	}
#pragma unroll
	for (int i = CURRENT_FILTER - 1; i > 0; i--)
		delays->current_us[i] = delays->current_us[i - 1];
	delays->current_us[0] = delay_us;
}

static __always_inline __u32 base_delay_us(const struct delays *delays)
{
	__u32 least_us = delays->base_us[0];

#pragma unroll
	for (int i = 1; i < BASE_HISTORY; i++)
		if (is_less(delays->base_us[i], least_us))
			least_us = delays->base_us[i];
	return least_us;
}

/* The queueing delay: the least of the last few delays (FILTER() is a minimum) above
 * the base delay. */
static __always_inline __u32 queueing_delay_us(const struct delays *delays)
{
	__u32 least_us = delays->current_us[0], base_us = base_delay_us(delays);

#pragma unroll
	for (int i = 1; i < CURRENT_FILTER; i++)
		if (is_less(delays->current_us[i], least_us))
			least_us = delays->current_us[i];
	return is_less(least_us, base_us) ? 0 : least_us - base_us;
}
