/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The structures of the congestion controls: first those that the kernel's side
 * shares with the process, then those that the kernel's side alone reads and
 * writes. Their counterpart is ../ebpf/layout.rs; both sides assert the sizes.
 *
 * Of a flow, the socket itself (icsk_ca_priv) holds what every packet touches:
 * struct round. The map `state` holds the rest.
 */
#pragma once

#include "types.h"

/* To be raised with every change of the structures or of what the kernel's
 * side does: it is how a process and what root has set up know whether they
 * belong together. */
#define CONGESTION_VERSION 3

/* Weights and ratios: 16 bits behind the point. */
#define ONE_Q16 65536
/* The least weight (MIN_WEIGHT of weight/mod.rs): 0.02. */
#define MIN_WEIGHT_Q16 1311
/* Windows: 8 bits behind the point of a packet. */
#define PACKET_Q8 256
/* Least window: with less, a delayed acknowledgement stops the flow. */
#define FLOOR_Q8 (2 * PACKET_Q8)

/* What a congestion control of ours follows. Which of them belong to which is
 * told in congestion.bpf.c. */
enum law {
	LAW_NONE = 0,
	LAW_VEGAS = 1,
	LAW_VEGAS_PAPER = 2,
	LAW_CDG = 3,
	LAW_CDG_PAPER = 4,
	LAW_CUBIC_PHANTOM = 5,
	LAW_CUBIC_BETA = 6,
};

/* What a process writes for its socket. */
struct parameters {
	/* enum law; one of another congestion control is its default. */
	__u32 law;
	/* w, MIN_WEIGHT_Q16 to ONE_Q16. */
	__u32 w_q16;
	/* DA-LBE's effective price ratio (eq. 26); 0 is 1. */
	__u32 phi_q16;
	/* CDG's G; 0: by w and the base round-trip time. */
	__u32 g_us;
	/* What the path is known to carry altogether, byte/s; 0 if nothing is. */
	__u32 capacity;
	/* Never taken: it keeps everybody who may write to the map from freezing
	 * it for all. */
	struct bpf_spin_lock lock;
};
_Static_assert(sizeof(struct parameters) == 24, "as in layout.rs");

/* What the kernel's side tells of a socket, from the moment it came under
 * control. */
struct telemetry {
	__u32 version;
	__u32 law;
	/* Of the round trip that is over. */
	__u32 cwnd;
	__u32 rtt_us;
	/* Without a queue; 0 while nothing is known. */
	__u32 base_us;
	/* CDG's smoothed gradients. */
	__s32 gradient_min_us;
	__s32 gradient_max_us;
	/* Indications of congestion: recoveries from loss, and by delay. */
	__u32 losses;
	__u32 delays;
	/* Back-offs that a random decision made of no loss. */
	__u32 phantoms;
	/* Reductions of the window, for whatever reason. */
	__u32 backoffs;
	/* Whether it makes room for others. */
	__u32 is_yielding;
	__u64 packets;
	/* Sums of the shares of the window that indications removed. */
	__u64 loss_share_q16;
	__u64 delay_share_q16;
	__u64 updated_us;
};
_Static_assert(sizeof(struct telemetry) == 80, "as in layout.rs");

/* No round trip is taken for shorter, us. Within a machine a packet may be back
 * in 3, and most take ten times as long, as those do who wait for a processor:
 * what is carried in the least would be no window for the others, and to ask the
 * law for each would cost more than to send. */
#define MIN_RTT_US 250

/* Smaller windows are no bursts; and the kernel spaces their packets by a
 * smoothed round-trip time that few acknowledgements keep up to date. What is
 * paced stays so with a packet less: whole windows go up and down by one. */
#define MIN_PACED_PACKETS 4

/* The round trip that is going on, from packets that left after its beginning
 * to the first acknowledgement of one. */
struct round {
	/* Sequence number of the first packet of the next. */
	__u32 end;
	__u32 delivered;
	__u64 began_us;
	__u32 rtt_min_us;
	__u32 rtt_max_us;
	__u32 samples;
	/* Packets of the window with which it began. */
	__u32 cwnd;
	/* Round-trip time without a queue, as far as it is known: a copy. */
	__u32 base_us;
	/* Slow start ends when some packets in a row were so late, us. */
	__u32 patience_us;
	/* The least of the last few. */
	__u32 rtt_few_us;
	/* What is stamped with this has left sooner; see pace(). */
	__u64 unpaced_us;
	/* What was acknowledged in all, packets. */
	__u64 packets;
	/* See round.h: sequence numbers, when its first acknowledgement came, and
	 * the answer, byte/s. */
	__u32 train_from;
	__u32 train_end;
	__u64 train_us;
	__u32 tested;
	__u8 train;
	/* The flow was in slow start in this round trip. */
	__u8 is_slow_start;
	/* Its weight is the least. */
	__u8 is_yielding;
	/* TCP paces it because we have said so. */
	__u8 is_paced;
	/* Round trips since the first packets that left at once, as far as it
	 * matters. */
	__u8 turns;
};
_Static_assert(sizeof(struct round) <= 104, "icsk_ca_priv has room for it");

/* Whether a window of so many packets can be paced. */
static __always_inline bool is_pacing_possible(const struct round *round, __u32 cwnd)
{
	return cwnd >= MIN_PACED_PACKETS - (__u32)round->is_paced;
}

/* A round trip that is over. */
struct round_sample {
	__u64 now_us;
	__u32 elapsed_us;
	__u32 rtt_min_us;
	__u32 rtt_max_us;
	/* Midway between what the least and the most were, however short. */
	__u32 rtt_us;
	/* Packets of the window with which it began, and delivered in it. */
	__u32 cwnd;
	__u32 delivered;
	/* What that rate is in a round trip without a queue, and in this one:
	 * packets/256. */
	__u32 carried_q8;
	__u32 used_q8;
	/* Delay beyond the base, up to where it is no queue, and where there is
	 * nothing to be seen of one. */
	__u32 queue_us;
	__u32 short_us;
	__u32 clear_us;
	__u32 base_us;
	__u32 w_q16;
	__u32 phi_q16;
	__u32 g_us;
	/* What the process knows of the path, byte/s. */
	__u32 capacity;
	/* Largest segment, bytes. */
	__u32 segment;
	/* Whether the window was what limited the flow. */
	bool is_limited;
	/* Whether its times say anything. */
	bool is_timed;
};

/* The least round-trip time of late, in two halves of a minute; see round.h. */
struct base {
	__u32 now_us;
	__u32 before_us;
	__u64 began_us;
	__u64 measured_us;
	/* A delay that does not change, for so many round trips, and the losses
	 * when it began. */
	__u64 flat_since_us;
	__u32 flat_least_us;
	__u32 flat_most_us;
	__u32 flat_rounds;
	__u32 flat_losses;
};

/* Growth with a weight; see weighted.h. Windows in 1/256 packets. */
struct weighted {
	__u32 window_q8;
	__u32 origin_q8;
	__u32 friendly_q8;
	__u32 w_q16;
	__u32 k_ms;
	/* Mean round-trip time of late. */
	__u32 rtt_us;
	__u64 epoch_us;
};

/* See vegas.h. Windows in 1/256 packets. */
struct vegas {
	__u32 window_q8;
	/* Where a queue was met; 0 while unknown. */
	__u32 threshold_q8;
	/* The most that was carried in a round trip. */
	__u32 carried_most_q8;
	/* Windows and queues of the last round trips, the latest first. */
	__u32 windows_q8[4];
	__u32 queues_us[4];
	__u32 carried_q8[4];
	__u64 came_us;
	__u64 clear_us;
	__u64 yielded_us;
	__u64 loss_us;
	/* Round trips left: until the next step, without growth, without
	 * looking for a rise. */
	__u8 wait;
	__u8 hold;
	__u8 calm;
	__u8 has_met;
	__u8 quiet;
	__u8 was_queued;
	/* Of the pauses below the smallest window. */
	__u8 pause_left;
	__u8 pause_length;
	__u8 patience;
	__u8 looks;
	/* What whole packets have left of the windows before. */
	__u16 left_q8;
};

/* See cdg.h. */
struct cdg {
	__s32 mins_us[8];
	__s32 maxs_us[8];
	__u32 rtt_min_us;
	__u32 rtt_max_us;
	__u32 tail;
	__u32 window_q8;
	__u8 since_backoff;
	__u8 reserved[3];
};

/* See dalbe.h. */
struct cubic {
	__u64 began_us;
	__u64 loss_us;
	/* Mean time between losses. */
	__u64 tau_us;
	/* Packets between losses, mean and up to now. */
	__u32 spacing;
	__u32 count;
};

/* See round.h. Bytes per second. */
struct trains {
	__u32 rates[4];
	__u32 capacity;
	/* Tests so far, and whether they agree. */
	__u16 next;
	__u16 is_sure;
	__u64 last_us;
};

struct state {
	struct telemetry seen;
	struct base base;
	struct weighted weighted;
	struct vegas vegas;
	struct cdg cdg;
	struct cubic cubic;
	struct trains trains;
	/* The weight of the last round trip; 0 before the first. */
	__u32 w_q16;
	/* The windows before the last loss: of Vegas, CUBIC and CDG. */
	__u32 before_q8[3];
};
_Static_assert(sizeof(struct state) == 440, "as in layout.rs");
