/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * DA-LBE's Vegas (Hayes et al. 2017, eqs. 22 to 28): the window grows by a
 * packet per round trip while fewer than alpha of its packets are in the queue,
 * and shrinks by one while more are; alpha = mu alpha_base, mu = w phi. At
 * w = 1 a loss is skipped with the probability 1 - 1/mu.
 */
#pragma once

/* Packets in the queue of a best-effort flow: the middle of Vegas' 2 to 4. */
#define ALPHA_BASE 3

static __always_inline __u32 paper_vegas_mu(const struct look *look)
{
	return scaled(look->w_q16, look->phi_q16, ONE_Q16);
}

static __always_inline __u32 paper_vegas_round(__u32 window_q8, struct telemetry *seen,
					       const struct look *look)
{
	__u32 alpha_q8 = scaled(ALPHA_BASE * PACKET_Q8, paper_vegas_mu(look), ONE_Q16);
	__u32 queued_q8 = scaled(window_q8, look->queue_us, look->rtt_min_us);

	if (!look->is_timed)
		return window_q8;
	if (queued_q8 > alpha_q8 + PACKET_Q8 / 2 && window_q8 > FLOOR_Q8) {
		seen->delays++;
		seen->backoffs++;
		seen->delay_share_q16 += scaled(PACKET_Q8, ONE_Q16, window_q8);
		return most(window_q8 - PACKET_Q8, FLOOR_Q8);
	}
	if (queued_q8 < alpha_q8 && look->is_limited)
		return window_q8 + PACKET_Q8;
	return window_q8;
}

/* Whether a loss counts. */
static __always_inline bool paper_vegas_heeds(__u32 w_q16, __u32 phi_q16)
{
	if (w_q16 < ONE_Q16 || phi_q16 <= ONE_Q16)
		return true;
	/* Heeded with the probability 1/mu. */
	return (__u64)(bpf_get_prandom_u32() & 0xffff) * phi_q16 < (1ULL << 32);
}
