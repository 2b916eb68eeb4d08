/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A socket in its group (group.h): how it finds the group, enters it and leaves it, what it
 * tells the group, and the part of the window that it takes.
 */
#pragma once

#include <bpf/bpf_helpers.h>

#include "group.h"
#include "laws.h"
#include "socket.h"
#include "round.h"

/* The last flow of a group removes it. If there is no room, flows yield one by one. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct group_key);
	__type(value, struct group);
} groups SEC(".maps");

/* The kernel spaces no packets before these (tcp_update_skb_after_send). */
#define UNPACED_SEGMENTS 10

/* What a group begins with. */
static const struct group NOBODY;

/* Whether a flow with these parameters yields together with others to the same host. */
static __always_inline bool is_in_group(const struct parameters *wanted)
{
	return is_to_yield(wanted) && wanted->priority;
}

static __always_inline struct group_key group_key_of(struct sock *sk, __u32 law)
{
	struct group_key key = {
		.family = sk->__sk_common.skc_family,
		.user = sk->sk_uid.val,
		.network = sk->__sk_common.skc_net.net->ns.inum,
		.law = law,
	};

	if (key.family == AF_INET6) {
		for (int i = 0; i < 4; i++) {
			key.address[i] = sk->__sk_common.skc_v6_daddr.in6_u.u6_addr32[i];
			key.local[i] = sk->__sk_common.skc_v6_rcv_saddr.in6_u.u6_addr32[i];
		}
	} else {
		key.address[0] = sk->__sk_common.skc_daddr;
		key.local[0] = sk->__sk_common.skc_rcv_saddr;
	}
	return key;
}

/* Changes of a group are of one flow at a time. Nobody waits. */
static __always_inline bool group_take(struct group *group)
{
	return __sync_val_compare_and_swap(&group->is_busy, 0, 1) == 0;
}

static __always_inline void group_release(struct group *group)
{
	__sync_lock_test_and_set(&group->is_busy, 0);
}

/* The group of a flow; none if it is in none. */
static __always_inline struct group *group_of(struct sock *sk, const struct state *own)
{
	struct group_key key = group_key_of(sk, own->member.law);

	return own->member.law ? bpf_map_lookup_elem(&groups, &key) : 0;
}

/* The state of the law that a flow follows: its group's, or its own. */
static __always_inline struct state *state_of_law(struct sock *sk, struct state *own)
{
	struct group *group = group_of(sk, own);

	return group ? &group->s : own;
}

/* Enters the group of the law, with the priority. Returns none if there is no room for it. */
static __always_inline struct group *group_enter(struct sock *sk, struct state *own,
						 const struct parameters *wanted, __u64 now_us)
{
	struct group_key key = group_key_of(sk, wanted->law);
	struct group *group = bpf_map_lookup_elem(&groups, &key);
	bool is_in = own->member.law == wanted->law;

	if (!group) {
		/* It was removed: the present window is all that is left. */
		if (is_in)
			own->seen.law = LAW_NONE;
		is_in = false;
		bpf_map_update_elem(&groups, &key, &NOBODY, BPF_NOEXIST);
		group = bpf_map_lookup_elem(&groups, &key);
	}
	if (!is_in)
		__builtin_memset(&own->member, 0, sizeof(own->member));
	own->member.law = group ? wanted->law : LAW_NONE;
	own->member.priority = wanted->priority;
	if (group && (!group->heard_us || (!is_in && group_is_over(group, now_us))) &&
	    group_take(group)) {
		group_begin(group, own, now_us);
		group_release(group);
	}
	return group;
}

/* Takes over what a law has counted. The rest of what a socket tells is its own. */
static __always_inline void seen_take(struct telemetry *own, const struct telemetry *law)
{
	own->law = law->law;
	own->gradient_min_us = law->gradient_min_us;
	own->gradient_max_us = law->gradient_max_us;
	own->losses = law->losses;
	own->delays = law->delays;
	own->phantoms = law->phantoms;
	own->backoffs = law->backoffs;
	own->g_us = law->g_us;
	own->loss_share_q16 = law->loss_share_q16;
	own->delay_share_q16 = law->delay_share_q16;
}

/* Leaves the group, and keeps what it knows and its part. Returns false while another flow
 * changes the group. */
static __always_inline bool group_leave(struct sock *sk, struct state *own)
{
	struct group_key key = group_key_of(sk, own->member.law);
	struct group *group = bpf_map_lookup_elem(&groups, &key);
	bool is_last;

	if (group && !group_take(group))
		return false;
	if (group) {
		seen_take(&own->seen, &group->s.seen);
		own->base = group->s.base;
		own->weighted = group->s.weighted;
		own->yielding = group->s.yielding;
		own->cdg = group->s.cdg;
		own->trains = group->s.trains;
		for (int i = 0; i < 3; i++)
			own->before_q8[i] = group->s.before_q8[i];
		if (group_is_coupled(group)) {
			own->yielding.window_q8 = group_part(group, &own->member);
			own->weighted.rtt_us = 0;
		}
		group_forget(group, &own->member);
		is_last = !group->flows;
		group_release(group);
		if (is_last)
			bpf_map_delete_elem(&groups, &key);
	} else {
		own->seen.law = LAW_NONE;
	}
	own->member.law = LAW_NONE;
	return true;
}

/* Tells the group of an acknowledgement: what the flow has delivered, and the round-trip time;
 * 0 if it tells nothing. */
static __always_inline void group_tell(struct sock *sk, struct tcp_sock *tp, struct state *own,
				       __u32 rtt_us)
{
	struct group *group = own ? group_of(sk, own) : 0;

	if (!group)
		return;
	__sync_fetch_and_add(&group->delivered, tp->delivered - own->member.delivered);
	own->member.delivered = tp->delivered;
	if (!rtt_us)
		return;
	__sync_fetch_and_add(&group->rtt_sum_us, rtt_us);
	/* Of two at once, one may be forgotten. */
	if (rtt_us < group->rtt_min_us)
		group->rtt_min_us = rtt_us;
	__sync_fetch_and_add(&group->samples, 1);
}

/* Whether a flow's own window is what limits it, and not its application or receiver. */
static __always_inline bool is_held_by_window(struct tcp_sock *tp, const struct round *round)
{
	return tp->snd_wnd >= (__u64)round->cwnd * tp->mss_cache &&
	       (round->pair_rate || is_window_limited(tp) ||
		round->cwnd <= ALWAYS_LIMITED_PACKETS ||
		(tp->delivered - round->delivered) * LIMITING_DENOMINATOR >=
			round->cwnd * LIMITING_NUMERATOR);
}

/* The rate of a flow that sends pairs, one of so many, byte/s. Flows that begin with pairs
 * begin together, so the first wait of each is random. */
static __always_inline __u32 pair_rate(struct tcp_sock *tp, const struct round *round,
				       __u32 part_q8, __u32 flows, __u32 rtt_us)
{
	__u32 bytes = part_q8 * tp->mss_cache / PACKET_Q8;
	__u32 rate = max_of(scaled(bytes, 1000000, rtt_us), 2 * tp->mss_cache / MAX_TURN_S);

	if (!round->pair_rate || tp->data_segs_out < UNPACED_SEGMENTS)
		return scaled(rate, flows, 1 + bpf_get_prandom_u32() % flows);
	return scaled(rate, ONE_Q16, ONE_Q16 * 3 / 4 + (bpf_get_prandom_u32() & 0x7fff));
}

/* Gives a flow its part of the window that it shares with others. */
static __always_inline void take_part(struct tcp_sock *tp, struct round *round,
				      struct state *own, const struct group *group)
{
	__u32 part_q8 = group_part(group, &own->member);
	__u32 rtt_us = max_of(group->s.yielding.rtt_us, max_of(least_rtt_us(tp), 1));
	__u32 window;

	round->is_coupled = 1;
	round->train = TRAIN_NONE;
	round->base_us = group->base_us;
	round->least_us = MIN_ROUND_US;
	if (part_q8 < MAX_PAIRED_Q8) {
		round->pair_rate = pair_rate(tp, round, part_q8, max_of(group->flows, 1), rtt_us);
		/* The kernel sends at most half of the window at once (tcp_cwnd_test). */
		window = part_q8 / FLOOR_Q8 * 2 + 4;
	} else {
		round->pair_rate = 0;
		window = whole(&own->yielding, part_q8) / PACKET_Q8;
	}
	/* After a timeout, the kernel comes back by slow start. */
	if (!is_reducing(tp) || tp->snd_cwnd > window)
		tp->snd_cwnd = window;
	tp->snd_ssthresh = window;
}

/* A flow that comes to others of its group begins with its part, without slow start. */
static __always_inline void group_join(struct sock *sk, struct tcp_sock *tp, struct round *round,
				       struct state *own, const struct parameters *wanted,
				       __u64 now_us)
{
	struct group *group = group_enter(sk, own, wanted, now_us);
	__u32 window = tp->snd_cwnd;

	if (!group || !group_take(group))
		return;
	group_hear(group, &own->member, now_us, true);
	if (group_is_coupled(group)) {
		own->member.delivered = tp->delivered;
		take_part(tp, round, own, group);
		tp->snd_cwnd = min_of(tp->snd_cwnd, max_of(window, 2));
		tp->snd_ssthresh = tp->snd_cwnd;
		pace(sk, round, true);
	}
	group_release(group);
}

/* Sets the window of a flow that yields together with others. */
static __always_inline void go_together(struct sock *sk, struct tcp_sock *tp, struct round *round,
					struct group *group, struct state *own,
					const struct parameters *wanted,
					struct round_sample *sample, __u64 now_us)
{
	struct state *s = &group->s;
	struct round joint = group_round(group);
	bool is_over = group_is_round_over(group, now_us);

	/* From now on, each acknowledgement counts. */
	if (!round->is_coupled)
		own->member.delivered = tp->delivered;
	if (is_over) {
		observe(sample, s, tp, &joint, group->delivered - group->delivered_before, wanted,
			now_us);
		group->base_us = sample->base_us;
		group_step(group, sample);
	}
	if (is_over || !group->began_us)
		group_begin_round(group, now_us);
	take_part(tp, round, own, group);
	pace(sk, round, true);
}

/* The window after a loss of a flow that shares one with others, packets/256. */
static __always_inline __u32 lose_together(struct group *group, const struct member *own,
					   const struct round *round, __u32 window,
					   __u64 now_us)
{
	struct state *s = &group->s;

	/* What others have lost is not to be undone. */
	for (int i = 0; i < 3; i++)
		s->before_q8[i] = 0;
	if (s->yielding.phase != PHASE_OPENING && own->counted) {
		yield_loss(&s->yielding, &s->seen, now_us, group->base_us,
			   minus(round->rtt_max_us, group->base_us));
	}
	return max_of(min_of(group_part(group, own), window), FLOOR_Q8);
}
