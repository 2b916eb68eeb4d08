/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The laws as congestion.bpf.c has them, with what they take of the kernel and
 * of its helpers in a form that any machine runs.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "../../src/bpf/types.h"
#include "../../src/bpf/congestion.h"

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

/* A decision at random, always the same. */
static inline __u32 bpf_get_prandom_u32(void)
{
	return 0x8000;
}

#include "../../src/bpf/group.h"
#include "../../src/bpf/laws.h"

/* In place of socket.h: what round.h asks of a socket. */
struct tcp_sock {
	__u32 delivered;
	__u32 mss_cache;
	bool is_cwnd_limited;
};

/* The handshake tells nothing. */
static inline __u32 least_rtt_us(const struct tcp_sock *tp)
{
	(void)tp;
	return 0;
}

static inline bool is_window_limited(const struct tcp_sock *tp)
{
	return tp->is_cwnd_limited;
}

#include "../../src/bpf/round.h"

/* What did not hold. */
static int failures;

/* Goes on, and says the first few. */
#define EXPECT(condition, ...)                                          \
	do {                                                            \
		if (!(condition) && failures++ < 5) {                   \
			fprintf(stderr, "%s:%d: ", __FILE__, __LINE__); \
			fprintf(stderr, __VA_ARGS__);                   \
			fprintf(stderr, " [%s]\n", #condition);         \
		}                                                       \
	} while (0)

#define SECOND_US 1000000ULL
