/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The round-trip time without a queue: the least of the last 30 to 60 s. While
 * a flow makes room for others who keep a queue it cannot see it, and does not
 * forget it, for ten minutes; but no queue that others keep has the same length
 * for long without losses, and a delay that has is the path's own (another route).
 */
#pragma once

#define BASE_HALF_US 30000000ULL
#define BASE_KEPT_US 600000000ULL
/* A delay that varies by less, plus 1/128 of the base, in this time is none
 * that others keep: CUBIC's sawtooth takes some seconds. */
#define FLAT_US 1500
#define FLAT_TIME_US 10000000ULL
#define FLAT_ROUNDS 30

static __always_inline void base_forget(struct base *base)
{
	base->now_us = 0;
	base->before_us = 0;
	base->flat_since_us = 0;
}

/* Another round trip; returns the base. `is_held`: others keep a queue. */
APART __u32 base_update(struct base *base, __u64 now_us, __u32 rtt_us, bool is_held,
			__u32 losses)
{
	__u32 known;

	if (!base)
		return rtt_us;
	if (base->now_us == 0 || rtt_us <= base->now_us) {
		if (base->now_us == 0)
			base->began_us = now_us;
		base->now_us = rtt_us;
		base->measured_us = now_us;
	}
	if (is_held && now_us < base->measured_us + BASE_KEPT_US) {
		base->began_us = now_us;
	} else if (now_us > base->began_us + BASE_HALF_US) {
		base->before_us = base->now_us;
		base->now_us = rtt_us;
		base->began_us = now_us;
		base->measured_us = now_us;
	}
	known = base->before_us && base->before_us < base->now_us ? base->before_us : base->now_us;
	if (!is_held) {
		base->flat_since_us = 0;
		return known;
	}
	if (base->flat_since_us && losses == base->flat_losses) {
		base->flat_rounds++;
		base->flat_least_us = least(base->flat_least_us, rtt_us);
		base->flat_most_us = most(base->flat_most_us, rtt_us);
		if (base->flat_most_us - base->flat_least_us <= FLAT_US + known / 128) {
			if (base->flat_rounds >= FLAT_ROUNDS &&
			    now_us > base->flat_since_us + FLAT_TIME_US) {
				base_forget(base);
				base->now_us = rtt_us;
				base->began_us = now_us;
				base->measured_us = now_us;
				return rtt_us;
			}
			return known;
		}
	}
	base->flat_since_us = now_us;
	base->flat_least_us = rtt_us;
	base->flat_most_us = rtt_us;
	base->flat_rounds = 0;
	base->flat_losses = losses;
	return known;
}
