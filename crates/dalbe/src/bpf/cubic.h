/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * DA-LBE's CUBIC (Hayes et al. 2017, section on loss-based congestion
 * controls): CUBIC as it is, and either
 * - phantom congestion signals, with the probability P[loss] (1/w - 1) for each
 *   packet, as long as the last real one is no longer ago than three times the
 *   mean time between them; before there is an estimate, with 0.25; or
 * - beta = w beta_orig at a real one.
 * A flow reacts to one signal in a round trip, so that it is enough to decide
 * once for all packets of it.
 */
#pragma once

/* v */
#define PHANTOM_TIMES 3
/* 0.25 */
#define PHANTOM_FIRST_Q16 16384
/* Share of a new measurement in the means. */
#define CUBIC_GAIN 4

/* A real signal. */
static __always_inline void cubic_loss(struct cubic *own, __u64 now_us)
{
	/* The first estimate is of the time until the first loss: a flow that
	 * gives way to phantom signals might never see a second one. */
	if (own->began_us) {
		__u64 since = now_us - (own->loss_us ? own->loss_us : own->began_us);

		own->tau_us = own->tau_us ? own->tau_us - own->tau_us / CUBIC_GAIN +
						    since / CUBIC_GAIN
					  : since;
		own->spacing = own->spacing ? own->spacing - own->spacing / CUBIC_GAIN +
						      own->count / CUBIC_GAIN
					    : own->count;
	}
	own->loss_us = now_us;
	own->count = 0;
}

/* Whether there was a phantom signal in this round trip. */
static __always_inline bool cubic_phantom(struct cubic *own, const struct look *look)
{
	__u64 expected_q16;

	if (!own->began_us)
		own->began_us = look->now_us;
	own->count += look->delivered;
	if (!own->loss_us || look->w_q16 >= ONE_Q16)
		return false;
	if (own->tau_us && look->now_us > own->loss_us + PHANTOM_TIMES * own->tau_us)
		return false;
	if (own->spacing)
		expected_q16 = (__u64)look->delivered * (ONE_Q16 - look->w_q16) * ONE_Q16 /
			       ((__u64)look->w_q16 * own->spacing);
	else
		expected_q16 = (__u64)look->delivered * PHANTOM_FIRST_Q16;
	return (bpf_get_prandom_u32() & 0xffff) >= exponential_q16(expected_q16);
}
