/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The window of a flow that yields to all other traffic and still fills an idle link,
 * at every kind of bottleneck: once per round trip, and after a loss.
 *
 * A queue, or a loss, tells that somebody offers more than the link carries. It does
 * not tell who. So the flow asks:
 *
 * - Filling. Without a queue the window grows: in small steps near the level at which a
 *   queue was last met, faster and faster beyond it.
 * - Testing. When a queue is met, the window goes a little below what the path carries,
 *   and is held. Other traffic that takes what it can get fills the gap, and the queue
 *   returns within the time in which CUBIC is back at its old window. If it does not
 *   return, nobody else wants this share, and the level is proven.
 * - Yielding. If the queue returns, the window goes to its minimum at once. If the queue
 *   then stays short, the flow knocks (knock.h), because the queue may belong to another
 *   flow of this kind.
 * - Climbing. Without a queue, the flow comes back from there in small steps. A queue
 *   that is met below the share that CUBIC leaves free after a loss ends the climb.
 *
 * Where queues are so long that CUBIC leaves nothing free after a loss, a queue that has
 * gone was that of somebody who has gone. There, tests and waits are short, and the flow
 * comes back fast.
 *
 * Where the rate varies by itself, as radio's does (variation.h), a queue says little. The
 * window then stays, and a test asks from time to time.
 *
 * At a proven level the flow keeps a queue of its own as FAST TCP does (Wei, Jin, Low and
 * Hegde 2006, eq. 1). To see the delay without a queue now and then, it makes room for a
 * moment (the periodic slow-down of LEDBAT++, RFC 9840).
 *
 * receive_window/yielding.rs is the same for a receiver. This file does not depend on
 * weights.
 */
#pragma once

#include "knock.h"
#include "levels.h"
#include "step.h"

enum phase {
	/* Slow start (congestion.bpf.c). */
	PHASE_OPENING = 0,
	PHASE_FILLING = 1,
	PHASE_TESTING = 2,
	PHASE_YIELDING = 3,
	PHASE_CLIMBING = 4,
};

/* A queue within this many times the target is noise until the next round trip has one
 * too: 2.5. So is one that returns in a test, once. */
#define NOISE_TARGETS_Q16 163840
/* Our own queue at a proven level is at most this many targets, and our own part of the
 * queue, long. */
#define OWN_TARGETS 2
/* Our own part of the queue: 0.4 times the square root of the window. n flows then keep
 * a queue that is only sqrt(n) times as long, and shares become equal. */
#define OWN_QUEUE_Q16 26214
/* From this many targets on, a queue is long. */
#define LONG_QUEUE_TARGETS 8

/* A test holds this share of what the path carries, 0.8, ... */
#define TESTED_Q16 52429
/* ... 0.5 with a long queue: somebody has come, ... */
#define TESTED_BESIDE_A_LONG_QUEUE_Q16 32768
/* ... 0.5 where others come and go, ... */
#define TESTED_BESIDE_CHANGE_Q16 32768
/* ... 0.95 near a level that was proven before, and of that after noise, ... */
#define TESTED_OF_PROVEN_Q16 62259
/* ... and 0.9 after a loss. */
#define TESTED_AFTER_LOSS_Q16 58982
/* Packets that are not in flight on average, packets/256: the last packet of an odd window
 * waits at the receiver for another one (delayed acknowledgements). */
#define DELAYED_Q8 128
/* A level is proven from this share of it on: 0.9. */
#define PROVEN_Q16 58982

/* A test takes twice the time in which CUBIC is back at its window from before a loss in
 * a short queue, ... */
#define TEST_PER_RECOVERY_Q16 131072
/* ... at least so many round trips and this long, us: a flow that came last does not know
 * the window of the whole path, ... */
#define MIN_TEST_ROUND_TRIPS 10
#define MIN_TEST_US 4000000
/* ... and at most this long, us. */
#define MAX_TEST_US 8000000
/* The first test only lets the burst of slow start pass. */
#define FIRST_TEST_ROUND_TRIPS 8
/* Where queues hide nobody, so many round trips are enough. */
#define MIN_TEST_OF_NOBODY 4
/* A loss within so many round trips of the first belongs to the same burst. */
#define BURST_ROUND_TRIPS 5

/* At a proven level, the window goes down by at most this factor in a step, 0.85. A rate
 * that asks for less lasts only a moment. */
#define MIN_STEP_DOWN_Q16 55706
/* It goes up by one part in this many of the difference (gamma of FAST TCP is 0.5), and by
 * at most so much. */
#define FAST_PART 2
#define MAX_FAST_STEP_Q8 PACKET_Q8
/* A window that does not limit the flow has room for this many times what is used: two. */
#define UNLIMITING 2

/* Round trips from one step to the next, until its effect shows, in quarters: after
 * growth, ... */
#define AFTER_GROWTH 4
/* ... after a step down at a proven level, ... */
#define AFTER_FILL 7
/* ... after a step down for others: one until less is in flight, and one until that is
 * seen, ... */
#define AFTER_STEP_DOWN 8
/* ... and after the end of slow start and after a loss, ... */
#define AFTER_BURST 16
/* ... which takes at least this long to be repaired, us (RFC 6298: Linux retransmits
 * after 200 ms). */
#define MIN_REPAIR_US 250000

/* The flow comes back after this many round trips without a queue, ... */
#define CLEAR_ROUND_TRIPS 3
/* ... or this many quarters of one where queues hide nobody, ... */
#define CLEAR_QUARTERS_OF_NOBODY 5
/* ... but after a climb that met others only after this time, us, ... */
#define AFTER_FAILED_CLIMB_US 1000000
/* ... which doubles this often while no level is proven, ... */
#define MAX_FAILURES 3
/* ... and after losses, of which one in time warns of none, after this time, us. */
#define AFTER_LOSSES_US 7000000
/* Other traffic that has kept a queue for so many round trips has left when it is gone. */
#define MIN_QUEUED_ROUND_TRIPS 8
/* A round trip of fewer packets tells nothing of the depth of a queue. */
#define MIN_DEPTH_PACKETS 4
/* There was a gap in the queue of others. */
#define NOT_QUEUED 255

/* The flow makes room when it has not seen the base for this time, us. */
#define BASE_UNSEEN_US 15000000ULL
/* The window while making room, as a share of what the path carries: 0.88. */
#define ROOM_Q16 57672

static __always_inline __u32 own_queue(__u32 carried_q8)
{
	return times_q16(root_q8(max_of(carried_q8, PACKET_Q8)), OWN_QUEUE_Q16);
}

/* Waits for the effect of a step, in quarters of a round trip. A round trip that ends a
 * little early counts as one. */
static __always_inline void yield_wait(struct yielding *own, const struct step *step,
				       __u32 quarters)
{
	own->next_us = step->now_us + (__u64)step->rtt_us * quarters / 4 - step->rtt_us / 8;
}

/* Goes down to this window at most, and waits for the effect. */
static __always_inline void yield_lower(struct yielding *own, struct telemetry *seen,
					const struct step *step, __u32 to_q8, __u32 quarters)
{
	__u32 before = own->window_q8;

	own->window_q8 = max_of(min_of(to_q8, before), FLOOR_Q8);
	yield_wait(own, step, quarters);
	if (step->is_lost)
		return;
	seen->delays++;
	if (own->window_q8 < before) {
		seen->backoffs++;
		seen->delay_share_q16 += scaled(before - own->window_q8, ONE_Q16, before);
	}
}

static __always_inline __u32 test_length_us(const struct yielding *own, const struct step *step)
{
	__u32 length_us = times_q16(level_recovery_us(step->full_q8), TEST_PER_RECOVERY_Q16);

	length_us = max_of(length_us, min_of(step->rtt_us, MAX_TEST_US) * MIN_TEST_ROUND_TRIPS);
	length_us = min_of(max_of(length_us, MIN_TEST_US), MAX_TEST_US);
	return max_of(scaled(length_us, own->left_free_q16, MOST_LEFT_FREE_Q16),
		      MIN_TEST_OF_NOBODY * step->rtt_us);
}

/* Others take what they can get. */
static __always_inline void yield_to_others(struct yielding *own, struct telemetry *seen,
					    const struct step *step, bool by_test)
{
	own->phase = PHASE_YIELDING;
	own->queued_rounds = (by_test && !step->is_lost) || level_hides_nobody(own) ? 0 : NOT_QUEUED;
	own->climb_us = step->now_us + max_of(step->is_lost ? AFTER_LOSSES_US : 0,
					      AFTER_FAILED_CLIMB_US << (own->failures & 7));
	own->failures = min_of(own->failures + 1, MAX_FAILURES);
	own->proven_q8 = UNPROVEN;
	variation_forget(own);
	own->yielded_us = step->now_us;
	yield_lower(own, seen, step, FLOOR_Q8, AFTER_STEP_DOWN);
}

/* Keeps a queue of its own at a proven level. */
static __always_inline void yield_follow(struct yielding *own, struct telemetry *seen,
					 const struct step *step)
{
	__u32 to_q8 = step->carried_q8 + own_queue(step->carried_q8);
	__u32 most_q8 = min_of(to_q8, level_ceiling(own, step->now_us));

	if (most_q8 > own->window_q8)
		own->window_q8 += min_of((most_q8 - own->window_q8) / FAST_PART, MAX_FAST_STEP_Q8);
	yield_lower(own, seen, step,
		    max_of(to_q8, times_q16(own->window_q8, MIN_STEP_DOWN_Q16)), AFTER_FILL);
}

/* Begins a test at the level at which a queue was met. */
static __always_inline void yield_test(struct yielding *own, struct telemetry *seen,
				       const struct step *step)
{
	__u32 share = TESTED_Q16, quarters = AFTER_STEP_DOWN;

	if (step->is_lost) {
		share = TESTED_AFTER_LOSS_Q16;
		quarters = max_of(AFTER_BURST, scaled(4, MIN_REPAIR_US, step->rtt_us));
	} else if (own->proven_q8 != UNPROVEN &&
		   own->met_q8 > times_q16(own->proven_q8, PROVEN_Q16)) {
		share = TESTED_OF_PROVEN_Q16;
	}
	if (!step->is_lost && level_is_beside_change(own))
		share = TESTED_BESIDE_CHANGE_Q16;
	if (step->has_come || variation_is_known(own))
		share = TESTED_BESIDE_A_LONG_QUEUE_Q16;
	own->phase = PHASE_TESTING;
	own->is_first = 0;
	own->by_loss = step->is_lost;
	own->is_repeated = 0;
	own->began_us = step->now_us;
	own->until_us = step->now_us + test_length_us(own, step);
	yield_lower(own, seen, step, times_q16(own->met_q8, share) + DELAYED_Q8, quarters);
}

/* The queue has returned in a test. */
static __always_inline void yield_fail(struct yielding *own, struct telemetry *seen,
				       const struct step *step)
{
	if (step->is_lost &&
	    (own->is_first ||
	     step->now_us < own->began_us + (__u64)BURST_ROUND_TRIPS * step->rtt_us)) {
		/* What slow start has lost tells nothing of others. */
		if (own->is_first)
			own->until_us = step->now_us + test_length_us(own, step);
		own->by_loss = !own->is_first;
		own->is_first = 0;
		yield_lower(own, seen, step, times_q16(own->met_q8, TESTED_AFTER_LOSS_Q16),
			    AFTER_STEP_DOWN);
	} else if (!step->is_lost && !own->is_repeated &&
		   step->queue_us < times_q16(step->target_us, NOISE_TARGETS_Q16)) {
		own->is_repeated = 1;
		own->until_us = step->now_us + test_length_us(own, step);
		yield_lower(own, seen, step, times_q16(step->carried_q8, TESTED_OF_PROVEN_Q16),
			    AFTER_STEP_DOWN);
	} else {
		yield_to_others(own, seen, step, true);
	}
}

/* A step with a queue, or a loss. */
APART int yield_meet(struct yielding *own, struct telemetry *seen, const struct step *step)
{
	bool is_climbing, is_own;

	if (!own || !seen || !step)
		return 0;
	is_climbing = own->phase == PHASE_CLIMBING;
	if (own->phase == PHASE_YIELDING && knock_meet(own, step)) {
		own->window_q8 = max_of(own->window_q8, knock_window_q8(step->full_q8));
		own->yielded_us = step->now_us;
		yield_wait(own, step, AFTER_GROWTH);
		return 0;
	}
	if (own->phase == PHASE_YIELDING) {
		if (step->gap_us > CLEAR_ROUND_TRIPS * step->rtt_us)
			own->queued_rounds = NOT_QUEUED;
		else if (own->queued_rounds < NOT_QUEUED - 1)
			own->queued_rounds++;
		own->yielded_us = step->now_us;
		yield_lower(own, seen, step, FLOOR_Q8, AFTER_GROWTH);
		return 0;
	}
	if (!step->is_limited && !step->is_lost) {
		/* The application decides, but it must not add much to the queue. */
		own->phase = PHASE_FILLING;
		yield_lower(own, seen, step, UNLIMITING * step->used_q8, AFTER_GROWTH);
		return 0;
	}
	if (own->phase == PHASE_TESTING) {
		yield_fail(own, seen, step);
		return 0;
	}
	if (is_climbing && own->is_free && !step->is_lost) {
		/* The bursts of slow start: what the path carries shows once they are over. */
		own->phase = PHASE_FILLING;
		yield_wait(own, step, AFTER_BURST);
		own->burst_us = own->next_us;
		return 0;
	}
	if (own->phase == PHASE_FILLING && !step->is_lost &&
	    variation_explains(own, step->now_us, step->carried_q8)) {
		yield_wait(own, step, AFTER_GROWTH);
		return 0;
	}
	if (step->is_lost)
		variation_forget(own);
	level_meet(own, step->carried_q8);
	is_own = step->queue_us < OWN_TARGETS * step->target_us +
				  scaled(own_queue(step->carried_q8), step->packet_us, PACKET_Q8);
	if (own->phase == PHASE_FILLING && !step->is_lost && is_own &&
	    own->proven_q8 != UNPROVEN &&
	    step->carried_q8 > times_q16(own->proven_q8, PROVEN_Q16)) {
		yield_follow(own, seen, step);
	} else if (is_climbing && !own->is_free &&
		   (step->is_lost || step->carried_q8 < level_left_by_others(own, step->full_q8))) {
		yield_to_others(own, seen, step, false);
	} else {
		yield_test(own, seen, step);
	}
	return 0;
}

/* A step without a queue. */
APART int yield_go_on(struct yielding *own, const struct step *step)
{
	__u32 clear_us;
	bool is_answered, is_free, may_climb;

	if (!own || !step)
		return 0;
	switch (own->phase) {
	case PHASE_YIELDING:
		is_answered = knock_take_answer(own, step);
		is_free = is_answered || (own->queued_rounds != NOT_QUEUED &&
					  (level_hides_nobody(own) ||
					   own->queued_rounds >= MIN_QUEUED_ROUND_TRIPS));
		clear_us = level_hides_nobody(own) ? step->rtt_us / 4 * CLEAR_QUARTERS_OF_NOBODY
						   : CLEAR_ROUND_TRIPS * step->rtt_us;
		may_climb = (is_free || step->now_us >= own->climb_us) && step->gap_us > clear_us;
		if (is_answered || may_climb) {
			own->is_free = is_free;
			knock_forget(own);
			own->phase = PHASE_CLIMBING;
		}
		break;
	case PHASE_TESTING:
		if (step->now_us >= own->until_us) {
			if (!own->is_first) {
				level_prove(own, step->now_us, step->full_q8, own->by_loss);
				own->failures = 0;
			}
			own->phase = PHASE_FILLING;
		}
		break;
	case PHASE_CLIMBING:
		if (step->is_limited && !step->is_late) {
			level_climb(own, step->full_q8, own->is_free);
			yield_wait(own, step, AFTER_GROWTH);
		}
		if (own->window_q8 >= level_top(step->full_q8, own->is_free)) {
			if (own->is_free)
				level_prove_all(own, step->full_q8);
			/* The last steps come in bursts. */
			yield_wait(own, step, AFTER_BURST);
			own->burst_us = own->next_us;
			own->phase = PHASE_FILLING;
		}
		break;
	default:
		if (step->is_limited)
			level_fill(own, step->now_us, step->full_q8, step->used_q8);
	}
	return 0;
}

/* Sets the window after a round trip. */
APART int yield_round(struct yielding *own, struct telemetry *seen,
		      const struct round_sample *sample)
{
	struct step step = {};
	bool has_queue, was_queued, may_be_noise, is_queued;

	if (!own || !seen || !sample || !sample->is_timed)
		return 0;
	step.now_us = sample->now_us;
	step.rtt_us = max_of(sample->mean_us, 1);
	step.carried_q8 = sample->carried_q8;
	step.used_q8 = sample->used_q8;
	step.queue_us = sample->standing_us;
	step.target_us = sample->target_us;
	step.packet_us = sample->packet_us;
	step.is_limited = sample->is_limited;
	step.is_late = sample->is_late;
	/* The acknowledgement of a few packets may be delayed. */
	if (sample->delivered >= MIN_DEPTH_PACKETS && !own->knock_until_us)
		level_depth(own, sample->queue_us, sample->target_us, sample->base_us);
	variation_see(own, sample->now_us, sample->standing_us, sample->target_us);
	step.full_q8 = level_full(own, sample->base_us);
	step.gap_us = capped(sample->now_us - own->queued_us, 60000000);
	own->carried_q8 = sample->carried_q8;
	own->rtt_us = step.rtt_us;

	if (step.queue_us < step.target_us / 2)
		own->clear_us = sample->now_us;
	has_queue = step.queue_us > step.target_us;
	was_queued = own->was_queued;
	own->was_queued = has_queue;
	may_be_noise = own->phase == PHASE_FILLING || own->phase == PHASE_CLIMBING;
	is_queued = has_queue && (was_queued || !may_be_noise ||
				  step.queue_us >= times_q16(step.target_us, NOISE_TARGETS_Q16));
	step.has_come = own->phase == PHASE_FILLING && sample->now_us >= own->burst_us &&
			step.queue_us > LONG_QUEUE_TARGETS * step.target_us && level_is_near(own);
	if (is_queued)
		own->queued_us = sample->now_us;
	/* Nothing that the flow has done lately makes a long queue at a steady level. */
	if (sample->now_us < own->next_us && !step.has_come)
		return 0;
	if (is_queued)
		yield_meet(own, seen, &step);
	else
		yield_go_on(own, &step);
	if (own->phase == PHASE_FILLING && step.is_limited &&
	    sample->now_us > own->clear_us + BASE_UNSEEN_US) {
		own->clear_us = sample->now_us;
		yield_lower(own, seen, &step, times_q16(step.carried_q8, ROOM_Q16), AFTER_STEP_DOWN);
	}
	return 0;
}

/* Reduces the window after a loss. `longest_us` is the longest delay of this round trip. */
APART int yield_loss(struct yielding *own, struct telemetry *seen, __u64 now_us, __u32 base_us,
		     __u32 longest_us)
{
	struct step step = {};

	if (!own || !seen)
		return 0;
	level_overflow(own, longest_us);
	step.now_us = now_us;
	step.rtt_us = max_of(max_of(own->rtt_us, base_us), 1);
	step.carried_q8 = max_of(own->carried_q8, FLOOR_Q8);
	step.full_q8 = level_full(own, base_us);
	step.queue_us = longest_us;
	step.gap_us = capped(now_us - own->queued_us, 60000000);
	step.is_lost = true;
	own->queued_us = now_us;
	own->was_queued = 1;
	/* A knock ends at once. */
	if (now_us >= own->next_us || (own->phase == PHASE_YIELDING && own->knock_until_us))
		yield_meet(own, seen, &step);
	return 0;
}

/* A loss is repaired: what got through meanwhile, in so long, is what the path carries
 * beside others. A policer, or the bursts of slow start, may have let more through for a
 * moment. */
APART int yield_repaired(struct yielding *own, __u64 elapsed_us, __u32 delivered, __u32 base_us)
{
	__u32 carried_q8;

	if (!own || own->phase != PHASE_TESTING || elapsed_us < base_us || elapsed_us > 60000000)
		return 0;
	carried_q8 = max_of(scaled(min_of(delivered, 65536) * PACKET_Q8, base_us, elapsed_us),
			    FLOOR_Q8);
	if (carried_q8 >= own->met_q8)
		return 0;
	own->met_q8 = carried_q8;
	own->window_q8 = max_of(min_of(own->window_q8, times_q16(carried_q8, TESTED_AFTER_LOSS_Q16)),
				FLOOR_Q8);
	return 0;
}

/* Begins with this window after slow start, or after another law. */
static __always_inline void yield_begin(struct yielding *own, __u64 now_us, __u32 window_q8,
					__u32 base_us)
{
	own->window_q8 = max_of(window_q8, FLOOR_Q8);
	knock_forget(own);
	if (own->phase != PHASE_OPENING)
		return;
	own->phase = PHASE_TESTING;
	own->is_first = 1;
	own->by_loss = 0;
	own->is_repeated = 0;
	own->proven_q8 = UNPROVEN;
	own->left_free_q16 = MOST_LEFT_FREE_Q16;
	own->is_steady = 1;
	own->met_q8 = own->window_q8;
	own->began_us = now_us;
	own->until_us = now_us + (__u64)FIRST_TEST_ROUND_TRIPS * base_us;
	own->next_us = now_us + (__u64)AFTER_BURST * base_us / 4;
	own->clear_us = now_us;
}
