/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The laws of DA-LBE (Hayes et al. 2017): CUBIC with phantom congestion signals
 * or with a weighted beta, and Vegas with a weighted alpha.
 */
#pragma once

#include "arithmetic.h"
#include "congestion.h"

/*
 * DA-LBE's CUBIC (Hayes et al. 2017, section on loss-based congestion
 * controls) is CUBIC with one of these changes:
 * - Phantom congestion signals. Each packet causes one with the probability
 *   P[loss] (1/w - 1), or 0.25 before there is an estimate. They stop when the
 *   last real signal is longer ago than three times the mean time between real
 *   signals.
 * - beta = w beta_orig at a real signal.
 * A flow reacts to one signal in a round trip. So one decision per round trip is
 * enough.
 */
/* v of the paper: how many mean times phantom signals outlast a real one. */
#define PHANTOM_TIMES 3
/* Probability of a phantom signal before there is an estimate: 0.25. */
#define PHANTOM_FIRST_Q16 16384
/* One part in this many of a mean comes from the new measurement. */
#define CUBIC_GAIN 4

/* Takes note of a real signal. */
static __always_inline void cubic_loss(struct cubic *own, __u64 now_us)
{
	/* The first estimate is the time until the first loss. A flow that
	 * follows phantom signals might never have a second loss. */
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
static __always_inline bool cubic_phantom(struct cubic *own, const struct round_sample *sample)
{
	__u64 expected_q16;

	if (!own->began_us)
		own->began_us = sample->now_us;
	own->count += sample->delivered;
	if (!own->loss_us || sample->w_q16 >= ONE_Q16)
		return false;
	if (own->tau_us && sample->now_us > own->loss_us + PHANTOM_TIMES * own->tau_us)
		return false;
	if (own->spacing)
		expected_q16 = (__u64)sample->delivered * (ONE_Q16 - sample->w_q16) * ONE_Q16 /
			       ((__u64)sample->w_q16 * own->spacing);
	else
		expected_q16 = (__u64)sample->delivered * PHANTOM_FIRST_Q16;
	return (bpf_get_prandom_u32() & 0xffff) >= exponential_q16(expected_q16);
}

/*
 * DA-LBE's Vegas (Hayes et al. 2017, eqs. 22 to 28). The window grows by a
 * packet per round trip while fewer than alpha of its packets are in the queue,
 * and shrinks by a packet while more are. alpha = mu alpha_base and mu = w phi.
 * At w = 1 a loss is ignored with the probability 1 - 1/mu.
 */
/* Packets of a best-effort flow in the queue: the middle of Vegas' 2 to 4. */
#define ALPHA_BASE 3

static __always_inline __u32 paper_vegas_mu(const struct round_sample *sample)
{
	return scaled(sample->w_q16, sample->phi_q16, ONE_Q16);
}

static __always_inline __u32 paper_vegas_round(__u32 window_q8, struct telemetry *seen,
					       const struct round_sample *sample)
{
	__u32 alpha_q8 = scaled(ALPHA_BASE * PACKET_Q8, paper_vegas_mu(sample), ONE_Q16);
	__u32 queued_q8 = scaled(window_q8, sample->queue_us, sample->rtt_min_us);

	if (!sample->is_timed)
		return window_q8;
	if (queued_q8 > alpha_q8 + PACKET_Q8 / 2 && window_q8 > FLOOR_Q8) {
		seen->delays++;
		seen->backoffs++;
		seen->delay_share_q16 += scaled(PACKET_Q8, ONE_Q16, window_q8);
		return max_of(window_q8 - PACKET_Q8, FLOOR_Q8);
	}
	if (queued_q8 < alpha_q8 && sample->is_limited)
		return window_q8 + PACKET_Q8;
	return window_q8;
}

/* Whether a loss changes the window. */
static __always_inline bool paper_vegas_heeds(__u32 w_q16, __u32 phi_q16)
{
	if (w_q16 < ONE_Q16 || phi_q16 <= ONE_Q16)
		return true;
	/* It does with the probability 1/mu. */
	return (__u64)(bpf_get_prandom_u32() & 0xffff) * phi_q16 < (1ULL << 32);
}
