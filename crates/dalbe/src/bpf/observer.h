/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The structures that the kernel's side and the process's side of the observer
 * share. layout.rs is the counterpart. Both sides assert the sizes.
 */
#pragma once

#include "types.h"

/* Raise this with every change of the structures or of the kernel's side. A
 * process uses only an observer of its own version. */
#define OBSERVER_VERSION 1

/* Intervals that are kept; a power of two. */
#define SLOTS 32
/* Packets that wait for a later one, one for each millisecond of sending time. A
 * power of two above PSI_MS. */
#define QUEUE 32
/* Smallest sending distance of a packet-interval variation (Vulture, algorithm 1:
 * 5 jiffies of 4 ms). */
#define PSI_MS 20
/* RFC 7323 allows 1 ms to 1 s; 1 ms is what Linux, Windows and BSD have. */
#define USUAL_TICK_US 1000
/* The sending time of the first packet. Earlier sending times stay above 0. */
#define SENT_ZERO_US (1ULL << 40)
/* Shortest and longest interval. */
#define MIN_INTERVAL_US 1000
#define MAX_INTERVAL_US 1000000
/* Delays above the reference count in units of 2^7 us. The first four buckets
 * hold one unit each. After them, each octave has four buckets. */
#define DELAY_UNIT_SHIFT 7
#define MAX_DELAY_UNITS 8191
#define DELAY_BUCKETS 48

/* The request of a process for its socket. */
struct watch {
	__u32 interval_us;
	/* Never taken. With a lock in its values, nobody can freeze the map. */
	struct bpf_spin_lock lock;
};
_Static_assert(sizeof(struct watch) == 8, "as in layout.rs");

struct interval {
	/* On the clock of bpf_ktime_get_ns(), CLOCK_MONOTONIC. */
	__u64 began_us;
	/* A slot of another epoch than that of the statistics does not count. */
	__u32 epoch;
	__u32 tick_us;
	__u64 bytes;
	__u32 packets;
	__u32 out_of_order;
	__u32 holes;
	__u32 delays;
	__s64 delay_sum_us;
	__s64 delay_min_us;
	/* The buckets count delays above this. */
	__s64 delay_reference_us;
	__s64 piv_sum_us;
	__u32 piv_positive;
	__u32 piv_bands[5];
	__u64 round_bytes;
	__u32 round_us;
	__u32 rounds;
	__u16 delay_buckets[DELAY_BUCKETS];
};
_Static_assert(sizeof(struct interval) == 208, "as in layout.rs");

/* The state that only the kernel's side uses. */
struct tracker {
	__u64 first_us;
	__u64 last_us;
	__u64 sent_us;
	__s64 min_us;
	__u64 round_began_us;
	__u64 round_bytes;
	__u32 round_tsval;
	__u32 in_round;
	__u32 tsval;
	__u32 highest;
	__u32 has_highest;
	__u32 tick_is_known;
	__u32 oldest;
	__u32 queued;
};

struct sent {
	__u64 sent_ms;
	__u64 arrived_us;
};

/* The statistics of a watched socket. */
struct statistics {
	__u32 version;
	__u32 interval_us;
	__u32 epoch;
	__u32 tick_us;
	struct interval intervals[SLOTS];
	struct tracker tracker;
	struct sent queue[QUEUE];
};
_Static_assert(sizeof(struct statistics) == 7264, "as in layout.rs");
