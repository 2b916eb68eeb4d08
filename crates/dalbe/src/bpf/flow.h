/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What is kept of a flow: what every packet touches in the socket itself
 * (struct round, in icsk_ca_priv), all else in the map `state`.
 */
#pragma once

/* No round trip is taken for shorter, us. Within a machine a packet may be back
 * in 3, and most take ten times as long, as those do who wait for a processor:
 * what is carried in the least would be no window for the others, and to ask the
 * law for each would cost more than to send. */
#define RTT_LEAST_US 250

/* Smaller windows are no bursts; and the kernel spaces their packets by a
 * smoothed round-trip time that few acknowledgements keep up to date. What is
 * paced stays so with a packet less: whole windows go up and down by one. */
#define PACED_LEAST 4

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
	/* See train.h: sequence numbers, when its first acknowledgement came, and
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
	return cwnd >= PACED_LEAST - (__u32)round->is_paced;
}

/* A round trip that is over. */
struct look {
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

/* The least round-trip time of late, in two halves of a minute; see base.h. */
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
	/* See crawl.h. */
	__u8 crawl;
	__u8 crawl_length;
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

/* See cubic.h. */
struct cubic {
	__u64 began_us;
	__u64 loss_us;
	/* Mean time between losses. */
	__u64 tau_us;
	/* Packets between losses, mean and up to now. */
	__u32 spacing;
	__u32 count;
};

/* See train.h. Bytes per second. */
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
