/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Slower than the least window. Two packets per round trip are a large share of
 * a short path. A flow that yields, and still meets a queue at this window,
 * goes down to one: its acknowledgements are delayed (40 ms on Linux), which
 * says nothing of the path, so now and then a window of two looks whether the
 * others are still there. The first that meets no queue ends it.
 */
#pragma once

/* Two packets do no harm where they are less than 3 % of what is carried, nor on
 * long paths, where a single one would also take long to come back. */
#define CRAWL_MATTERS_Q8 (67 * PACKET_Q8)
#define CRAWL_MATTERS_US 60000
/* Round trips before the first time. */
#define CRAWL_PATIENCE 4
/* At most so many single packets in a row: about half a second. */
#define CRAWL_MOST 5
/* A queue of others is so much longer than a short one, us. */
#define CRAWL_QUEUE_US 2000

/* After a round trip; whether the next one is of a single packet. */
static __always_inline bool crawl_round(struct vegas *own, const struct look *look)
{
	if (own->window_q8 > FLOOR_Q8 || own->carried_most_q8 > CRAWL_MATTERS_Q8 ||
	    look->base_us > CRAWL_MATTERS_US ||
	    (look->is_timed && look->queue_us <= look->short_us)) {
		own->crawl = 0;
		own->crawl_length = 0;
		own->patience = 0;
		return false;
	}
	if (look->cwnd == 1) {
		if (own->crawl)
			own->crawl--;
		return own->crawl;
	}
	if (!look->is_timed || look->queue_us < look->short_us + CRAWL_QUEUE_US)
		return false;
	if (own->patience < CRAWL_PATIENCE) {
		own->patience++;
		return false;
	}
	own->crawl_length = least(own->crawl_length ? 2 * own->crawl_length : 1, CRAWL_MOST);
	own->crawl = own->crawl_length;
	return true;
}
