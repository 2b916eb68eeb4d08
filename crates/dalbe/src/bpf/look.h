/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What a round trip that is over has shown.
 *
 * It must not know what follows from it.
 */
#pragma once

/* A window of so many packets is always used up by who has something to send. */
#define FEW_PACKETS 4

static __always_inline void observe(struct look *look, struct state *s, struct tcp_sock *tp,
				    struct round *round, const struct parameters *wish,
				    __u64 now_us)
{
	bool was_single = round->cwnd == 1;
	/* Less than a round trip it cannot have been. */
	__u32 elapsed_us = most(least(now_us - round->began_us, 60000000),
				most(round->base_us, 1));
	__u32 rtt_min_us = elapsed_us, rtt_max_us = elapsed_us, packet_us;

	look->rtt_us = elapsed_us;
	if (round->samples) {
		look->rtt_us = round->rtt_min_us / 2 +
			       most(round->rtt_max_us, round->rtt_min_us) / 2;
		rtt_min_us = most(round->rtt_min_us, RTT_LEAST_US);
		rtt_max_us = round->rtt_max_us;
	}
	look->now_us = now_us;
	look->elapsed_us = elapsed_us;
	look->cwnd = round->cwnd;
	look->is_timed = round->samples > 0;
	look->rtt_min_us = rtt_min_us;
	/* Of a receiver that acknowledges each packet there is none. */
	look->rtt_max_us = most(rtt_max_us, rtt_min_us);
	look->delivered = most(least(tp->delivered - round->delivered, 65536), 1);
	look->w_q16 = wish->w_q16;
	look->phi_q16 = wish->phi_q16;
	look->g_us = wish->g_us;
	look->capacity = wish->capacity;
	look->segment = most(tp->mss_cache, 1);
	/* The kernel's mark is that of the moment; and of a window of a few
	 * packets whole ones may be left over. */
	look->is_limited = is_window_limited(tp) || round->cwnd <= FEW_PACKETS ||
			  scaled(look->delivered, look->rtt_min_us, look->elapsed_us) * 5 >=
				  round->cwnd * 3;
	look->base_us = round->base_us;
	/* A single packet's acknowledgement may be delayed. */
	if (look->is_timed &&
	    (!was_single || s->base.now_us == 0 || look->rtt_min_us < s->base.now_us)) {
		bool is_held = wish->law == LAW_VEGAS &&
			       s->vegas.window_q8 <= FLOOR_Q8 + PACKET_Q8 && s->vegas.has_met;

		look->base_us = base_update(&s->base, now_us, look->rtt_min_us, is_held,
					   s->seen.losses);
	}
	look->base_us = most(look->base_us, 1);
	look->queue_us = minus(look->rtt_min_us, look->base_us);
	/* Two that leave at once wait for each other, and seem late by a packet; of
	 * one that seems to take longer than others' queues something else is wrong. */
	if (s->trains.capacity)
		packet_us = scaled(look->segment, 1000000, s->trains.capacity);
	else
		packet_us = scaled(look->base_us, PACKET_Q8, s->vegas.carried_most_q8);
	packet_us = least(packet_us, FOREIGN_SOON_US);
	look->short_us = SHORT_US(look->base_us);
	if (!round->is_paced)
		look->short_us += packet_us;
	look->clear_us = least(CLEAR_US(look->base_us) + packet_us, look->short_us);
	look->carried_q8 = scaled(look->delivered * PACKET_Q8, look->base_us, look->elapsed_us);
	look->used_q8 = scaled(look->delivered * PACKET_Q8, look->rtt_min_us, look->elapsed_us);
	if (was_single && look->queue_us > look->short_us)
		look->is_timed = false;
}
