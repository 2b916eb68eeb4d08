/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What the path carries altogether, by an active test: packets that leave at
 * once stand behind each other in the queue of the bottleneck, and come out of
 * it, and so do their acknowledgements, at its rate (packet trains; Dovrolis,
 * Ramanathan and Moore 2004). Others' packets between them make it seem slower,
 * acknowledgements that catch up with each other make it seem faster: of some
 * tests the second largest counts, and of two the largest, for it is slower more
 * often.
 *
 * Ours begin with the first packets of a connection; later one leaves every few
 * seconds, while the weight makes use of the answer.
 */
#pragma once

/* Packets of a train beyond those that would leave anyway. */
#define TRAIN 6
#define TRAIN_EVERY_US 10000000ULL
/* As long as the two largest answers differ by more than an eighth. */
#define TRAIN_FIRST_US 2000000ULL
/* Less than so much between the first and the last acknowledgement is no
 * measurement, bytes and us. */
#define TRAIN_LEAST 4000
#define TRAIN_LEAST_US 20

enum train {
	TRAIN_NONE = 0,
	/* Until its first acknowledgement. */
	TRAIN_AWAITED = 1,
	/* From then to its last. */
	TRAIN_COMING = 2,
};

/* What leaves now is a train, of such segments. The acknowledgement of the last
 * may be delayed until another packet comes, and is not waited for. */
static __always_inline void train_begin(struct round *round, __u32 from, __u32 segment)
{
	round->train = TRAIN_AWAITED;
	round->train_from = from;
	round->train_end = from + (TRAIN - 1) * segment;
}

/* Everything up to `una` has been acknowledged, and everything up to `nxt` has
 * left. */
static __always_inline void train_acknowledged(struct round *round, __u32 una, __u32 nxt,
					       __u64 now_us)
{
	__u32 took_us, bytes;

	if (round->train == TRAIN_AWAITED) {
		if ((__s32)(una - round->train_from) <= 0)
			return;
		/* There was not that much to send: what leaves next, at once, is
		 * one, if nothing of this is on its way any more. */
		if ((__s32)(nxt - round->train_end) < 0) {
			if (una != nxt)
				round->train = TRAIN_NONE;
			round->train_end += nxt - round->train_from;
			round->train_from = nxt;
			round->turns = 0;
			return;
		}
		round->train = TRAIN_COMING;
		round->train_from = una;
		round->train_us = now_us;
	}
	if ((__s32)(una - round->train_end) < 0)
		return;
	round->train = TRAIN_NONE;
	took_us = now_us - round->train_us;
	bytes = una - round->train_from;
	if (bytes >= TRAIN_LEAST && took_us >= TRAIN_LEAST_US)
		round->tested = scaled(bytes, 1000000, took_us);
}

/* Another test's answer, byte/s. */
static __always_inline void train_learn(struct trains *own, __u32 rate)
{
	__u32 first = 0, second = 0;

	own->rates[own->next & 3] = rate;
	/* Once there are enough they are counted no further. */
	own->next = own->next < 0xffff ? own->next + 1 : 4;
	for (int i = 0; i < 4; i++) {
		__u32 each = own->rates[i];

		if (each > first) {
			second = first;
			first = each;
		} else if (each > second) {
			second = each;
		}
	}
	own->capacity = own->next > 2 ? second : first;
	own->is_sure = second >= first - first / 8;
}
