/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The structures of the congestion controls. The kernel's side shares the first
 * ones with the process and alone uses the others. ../ebpf/layout.rs is the
 * counterpart. Both sides assert the sizes.
 *
 * The socket itself (icsk_ca_priv) holds the part of a flow's state that every
 * packet touches: struct round. The map `state` holds the rest.
 */
#pragma once

#include "types.h"

/* Raise this with every change of the structures or of the kernel's side. A
 * process uses only controls of its own version. */
#define CONGESTION_VERSION 23

/* Weights and ratios: 16 bits behind the point. */
#define ONE_Q16 65536
/* The smallest weight (MIN_WEIGHT of weight/mod.rs): 0.02. */
#define MIN_WEIGHT_Q16 1311
/* Windows: 8 bits behind the point of a packet. */
#define PACKET_Q8 256
/* Smallest window. In a smaller one, a delayed acknowledgement stops the flow. */
#define FLOOR_Q8 (2 * PACKET_Q8)
/* Largest window. Its products with times fit into 64 bits. */
#define MAX_WINDOW_Q8 (1U << 24)
/* Largest priority. Its product with a window fits into 32 bits. */
#define MAX_PRIORITY 64

/* The laws. congestion.bpf.c tells which control has which laws. */
enum law {
	LAW_NONE = 0,
	LAW_VEGAS = 1,
	LAW_VEGAS_PAPER = 2,
	LAW_CDG = 3,
	LAW_CDG_PAPER = 4,
	LAW_CUBIC_PHANTOM = 5,
	LAW_CUBIC_BETA = 6,
};

/* The parameters that a process sets for its socket. */
struct parameters {
	/* enum law. A law of another congestion control chooses the default. */
	__u32 law;
	/* w, MIN_WEIGHT_Q16 to ONE_Q16. */
	__u32 w_q16;
	/* DA-LBE's effective price ratio (eq. 26). 0 means 1. */
	__u32 phi_q16;
	/* CDG's G. With 0, it follows from w and the base round-trip time. */
	__u32 g_us;
	/* Capacity of the path as far as the process knows, byte/s; 0 if it is
	 * unknown. */
	__u32 capacity;
	/* The flow's share of the window of all that yield together to the same host, relative
	 * to a flow of priority 1: 1 to MAX_PRIORITY. 0: it yields by itself. */
	__u32 priority;
	/* From this moment on, s on the monotonic clock, the weight is 1: whoever has set it is
	 * gone. 0: it holds until it is set anew. */
	__u32 until_s;
	/* Never taken. With a lock in its values, nobody can freeze the map. */
	struct bpf_spin_lock lock;
};
_Static_assert(sizeof(struct parameters) == 32, "as in layout.rs");

/* Whether a flow with this law yields at the smallest weight, and has a share of the path
 * above it. */
static __always_inline bool may_yield(__u32 law)
{
	return law == LAW_VEGAS || law == LAW_CDG;
}

/* Whether a flow with these parameters yields to all other traffic. */
static __always_inline bool is_to_yield(const struct parameters *wanted)
{
	return wanted->w_q16 <= MIN_WEIGHT_Q16 && may_yield(wanted->law);
}

/* The state of a socket for the process. Counters start when the connection comes
 * under control, or are those of its group. */
struct telemetry {
	__u32 version;
	__u32 law;
	/* Of the last complete round trip. */
	__u32 cwnd;
	__u32 rtt_us;
	/* Round-trip time without a queue; 0 while it is unknown. */
	__u32 base_us;
	/* CDG's smoothed gradients. */
	__s32 gradient_min_us;
	__s32 gradient_max_us;
	/* Indications of congestion: recoveries from loss, and indications by
	 * delay. */
	__u32 losses;
	__u32 delays;
	/* Back-offs by a random decision, without a loss. */
	__u32 phantoms;
	/* Reductions of the window, for any reason. */
	__u32 backoffs;
	/* Whether the flow yields to other traffic. */
	__u32 is_yielding;
	/* CDG's G, us; 0 where no delay makes the flow back off by it. */
	__u32 g_us;
	__u32 reserved;
	__u64 packets;
	/* Sums of the shares of the window that indications removed. */
	__u64 loss_share_q16;
	__u64 delay_share_q16;
	__u64 updated_us;
};
_Static_assert(sizeof(struct telemetry) == 88, "as in layout.rs");

/* Shortest round trip, us. Within a machine, the fastest packets are back in 3 us,
 * and most packets take ten times as long. A window for 3 us would be too small
 * for them. A decision for each such round trip would cost more than the
 * transfer. */
#define MIN_RTT_US 250
/* Shortest round trip of a law that yields, us. It holds the fastest packets also where
 * others wait for a processor. */
#define MIN_ROUND_US 10000

/* Smallest window that is paced, packets. Smaller windows make no bursts. The
 * kernel spaces packets by a smoothed round-trip time, and few acknowledgements
 * do not keep it up to date. Pacing goes on with one packet less, because whole
 * windows change by one all the time. */
#define MIN_PACED_PACKETS 4

/* The present round trip. It ends with the first acknowledgement of a packet that
 * left after its beginning. */
struct round {
	/* Sequence number of the first packet of the next round trip. */
	__u32 end;
	__u32 delivered;
	__u64 began_us;
	__u32 rtt_min_us;
	__u32 rtt_max_us;
	__u32 samples;
	/* Window at its beginning, packets. */
	__u32 cwnd;
	/* A copy of the round-trip time without a queue. */
	__u32 base_us;
	/* Slow start ends when some packets in a row have this delay, us. */
	__u32 patience_us;
	/* Smallest round-trip time of the last few packets. */
	__u32 rtt_few_us;
	/* Rate of a flow that sends pairs of packets (group.h), byte/s; 0 for others. */
	__u32 pair_rate;
	/* Packets with this time stamp have left earlier; see pace(). */
	__u64 unpaced_us;
	/* All acknowledged packets. */
	__u64 packets;
	/* Sum of the round-trip times. */
	__u64 rtt_sum_us;
	/* The train (round.h): its sequence numbers, the time of its first
	 * acknowledgement, and its result, byte/s. */
	__u32 train_from;
	__u32 train_end;
	__u32 train_us;
	__u32 tested;
	/* What was acknowledged last, a sequence number, and when, us, modulo 2^24. */
	__u32 acknowledged;
	__u32 acknowledged_us : 24;
	/* The last gap between bursts (bursts.h), 2^GAP_SHIFT us, up to 255. */
	__u32 gap : 8;
	/* Half of the time of a packet, us; 0 while the capacity is not known. Packets closer
	 * together are a burst (bursts.h): the packets of the present one, and of the largest
	 * one of this round trip. */
	__u16 close_us;
	__u8 burst;
	__u8 most;
	/* Shortest round trip, us. */
	__u16 least_us;
	/* enum train. */
	__u8 train : 2;
	/* Round trips since the first packets, up to HYSTART_FROM_ROUND. */
	__u8 turns : 2;
	/* Whether this round trip began in slow start. */
	__u8 is_slow_start : 1;
	/* Whether the flow has the smallest weight. */
	__u8 is_yielding : 1;
	/* Whether this control has turned on pacing. */
	__u8 is_paced : 1;
	/* Whether the flow shares a window with others (group.h). */
	__u8 is_coupled : 1;
	/* Whether the present burst has several acknowledgements, and the bursts in a row before
	 * it in this round trip, up to BURSTS_IN_A_ROW. */
	__u8 is_several : 1;
	__u8 bursts : 2;
	/* Whether the kernel's Reno lets the window grow. */
	__u8 is_reno : 1;
};
_Static_assert(sizeof(struct round) <= 104, "icsk_ca_priv has room for it");

/* Whether a window of this many packets can be paced. */
static __always_inline bool is_pacing_possible(const struct round *round, __u32 cwnd)
{
	return cwnd >= MIN_PACED_PACKETS - (__u32)round->is_paced;
}

/* A complete round trip. */
struct round_sample {
	__u64 now_us;
	__u32 elapsed_us;
	__u32 rtt_min_us;
	__u32 rtt_max_us;
	/* Mean of the smallest and the largest, without the limit of MIN_RTT_US. */
	__u32 rtt_us;
	/* Mean of all. */
	__u32 mean_us;
	/* Window at its beginning, and packets delivered in it. */
	__u32 cwnd;
	__u32 delivered;
	/* The delivered packets per round trip without a queue, and per round
	 * trip of this length, packets/256. */
	__u32 carried_q8;
	__u32 used_q8;
	/* Smallest delay above the base, and that of a queue that is there all the time. */
	__u32 queue_us;
	__u32 standing_us;
	/* The longest of the latter that is no sign of others, and the time of a packet
	 * at the bottleneck. */
	__u32 target_us;
	__u32 packet_us;
	__u32 base_us;
	__u32 w_q16;
	__u32 phi_q16;
	__u32 g_us;
	/* Capacity as far as the process knows, byte/s. */
	__u32 capacity;
	/* Largest segment, bytes. */
	__u32 segment;
	/* Whether the window was what limited the flow. */
	bool is_limited;
	/* Whether flows that share the window have not learnt yet that it has grown. */
	bool is_late;
	/* Whether its times count. */
	bool is_timed;
	/* Whether its packets were acknowledged one by one. */
	bool is_apart;
};

/* The smallest round-trip time of the last minute, in two halves; see round.h. */
struct base {
	__u32 now_us;
	__u32 before_us;
	__u64 began_us;
	__u64 measured_us;
	/* A delay that does not change: its range, its length in round trips, and
	 * the losses at its beginning. */
	__u64 flat_since_us;
	__u32 flat_min_us;
	__u32 flat_max_us;
	__u32 flat_rounds;
	__u32 flat_losses;
	/* The smallest round-trip time ever, that of the handshake's small packets among
	 * them; 0 if unknown. The kernel forgets it after some minutes. */
	__u32 least_us;
	/* The least round-trip time of the last round trip that was not at rest, us, if the
	 * flow carried much of what the path carries, or did before a test, and the delay has
	 * been the same since; otherwise 0. */
	__u32 loaded_us;
};

/* Growth with a weight; see weighted.h. Windows in 1/256 packets. */
struct weighted {
	__u32 window_q8;
	__u32 origin_q8;
	__u32 friendly_q8;
	__u32 w_q16;
	__u32 k_ms;
	/* Recent mean round-trip time. */
	__u32 rtt_us;
	__u64 epoch_us;
};

/* The longest of so many queues counts: slow start makes a queue once that an active
 * queue management (CoDel, PIE) does not let anybody repeat. A power of two. */
#define DEPTHS 8
/* So many levels at which tests have found nobody count. */
#define QUIET_LEVELS 8
/* The capacity is a mean over so many round trips. */
#define STEADY_ROUND_TRIPS 3

/* See levels.h, yielding.h and pause.h. Windows and levels in 1/256 packets. */
struct yielding {
	__u32 window_q8;
	/* The most that was carried over some round trips, per second. */
	__u32 capacity_q8;
	/* The level at which a queue was last met, the level at which a test has found
	 * nobody, and a level that loses data. */
	__u32 met_q8;
	__u32 proven_q8;
	__u32 ceiling_q8;
	/* The longest delay before a loss, and of the last round trip. */
	__u32 buffer_us;
	__u32 last_max_us;
	/* What the last round trips delivered, in how long, the latest first. */
	__u32 delivered[STEADY_ROUND_TRIPS];
	__u32 elapsed_us[STEADY_ROUND_TRIPS];
	/* Of the last round trip: its data in a round trip without a queue, and its mean
	 * round-trip time. */
	__u32 carried_q8;
	__u32 rtt_us;
	/* How much delays vary without a standing queue. */
	__u32 noise_us;
	/* The time between bursts (bursts.h), 0 where packets come apart, and so many that
	 * have come apart since the last burst. */
	__u32 between_bursts_us;
	__u32 apart;
	/* The longest delays of the last queues, and of the present one; 0 without one. */
	__u32 depths_us[DEPTHS];
	__u32 depth_us;
	/* The share of the path that CUBIC may leave free after a loss. */
	__u32 left_free_q16;
	/* The levels at which tests have found nobody since others were last found, the
	 * latest first, and the least of them where the rate varies by itself; 0 if not. */
	__u32 quiet_q8[QUIET_LEVELS];
	__u32 least_q8;
	/* The shortest and the longest queue since it last changed much. */
	__u32 shortest_us;
	__u32 longest_us;
	/* When the capacity was measured, and the ceiling. */
	__u64 capacity_us;
	__u64 ceiling_us;
	/* When a queue, and the base, was last seen. */
	__u64 queued_us;
	__u64 clear_us;
	/* When the next step, and the next climb, is allowed, and until when a queue may
	 * be that of the flow's own bursts. */
	__u64 next_us;
	__u64 climb_us;
	__u64 burst_us;
	/* The test. */
	__u64 began_us;
	__u64 until_us;
	/* When the queue last changed much. */
	__u64 changed_us;
	/* When a test last found nobody. */
	__u64 tested_us;
	__u64 yielded_us;
	/* When the queue became short, or when the last knock ended, and when the present
	 * knock ends at the latest; 0 if not. */
	__u64 short_since_us;
	__u64 knock_until_us;
	/* enum phase. */
	__u8 phase;
	/* Whether the last round trip had a queue. */
	__u8 was_queued;
	/* Steps beyond the level that was met, and whether the one before was met at about
	 * the same level. */
	__u8 beyond;
	__u8 is_steady;
	/* The oldest of the depths. */
	__u8 oldest;
	/* Testing: whether it follows slow start and tells nothing of others, whether it
	 * began with a loss, and whether a short queue was taken for noise already. */
	__u8 is_first;
	__u8 by_loss;
	__u8 is_repeated;
	/* Yielding: round trips with a queue since the beginning, or NOT_QUEUED. */
	__u8 queued_rounds;
	/* Climbing: whether the others are known to have left. */
	__u8 is_free;
	/* The pauses below the smallest window. */
	__u8 pause_left;
	__u8 pause_length;
	__u8 patience;
	/* Knocks in a row without an answer, at most MAX_UNANSWERED. */
	__u8 unanswered;
	/* Failures in a row, as far as they count. */
	__u8 failures;
	/* Tests in a row that have found nobody, as far as they count. */
	__u8 quiet_tests;
	/* The part of earlier windows below a whole packet. */
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
	/* G_be that gives the weight its share, us; 0 before the first. */
	__u32 best_effort_us;
	/* The window before the last loss; 0 before the first. */
	__u32 lost_q8;
	/* Whether the last round trip has ended with a back-off. */
	__u8 is_reduced;
	__u8 reserved[3];
};

/* See dalbe.h. */
struct cubic {
	__u64 began_us;
	__u64 loss_us;
	/* Mean time between losses. */
	__u64 tau_us;
	/* Packets between losses: the mean, and since the last loss. */
	__u32 spacing;
	__u32 count;
};

/* See round.h. Bytes per second. */
struct trains {
	__u32 rates[4];
	__u32 capacity;
	/* Number of tests, and whether they agree. */
	__u16 next;
	__u16 is_sure;
	__u64 last_us;
};

/* A flow in its group; see group.h. */
struct member {
	/* enum law of the group, or 0 without one, and the flow's number in it. */
	__u32 law;
	__u32 number;
	/* Its share of the window; see struct parameters. */
	__u32 priority;
	/* The last epoch in which the flow was heard, and the priority with which it counts
	 * there; 0 unless its part limits it. */
	__u32 epoch;
	__u32 counted;
	/* Delivered packets that the group knows of. */
	__u32 delivered;
};

struct state {
	struct telemetry seen;
	struct base base;
	struct weighted weighted;
	struct yielding yielding;
	struct cdg cdg;
	struct cubic cubic;
	struct trains trains;
	struct member member;
	/* Weight of the last round trip; 0 before the first. */
	__u32 w_q16;
	/* Windows of the law that yields, of CUBIC and of CDG before the last loss. */
	__u32 before_q8[3];
};
_Static_assert(sizeof(struct state) == 672, "as in layout.rs");
