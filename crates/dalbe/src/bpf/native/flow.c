/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The congestion controls of congestion.bpf.c, for senders outside the kernel: QUIC, and
 * simulations. ebpf/native.rs is the counterpart.
 */
#include <stdlib.h>
#include <string.h>

#include "../types.h"

/* The linker has a symbol of this name. */
#define end native_end
#include "../congestion.bpf.c"
#undef end

#include "additive.h"

/* What a sender knows, and what it takes back. As in native.rs. */
struct view {
	__u64 now_us;
	/* When the next paced packet leaves. */
	__u64 next_us;
	__u32 acknowledged;
	__u32 next;
	__u32 window;
	__u32 threshold;
	__u32 delivered;
	__u32 outstanding;
	__u32 max_outstanding;
	__u32 segment;
	__u32 least_rtt_us;
	/* Round-trip times vary by this without a queue, us, as a round trip begins; by twice as
	 * much where packets of it have no time of their own. 0 if the law goes on with what it
	 * has learnt. */
	__u32 noise_us;
	/* enum tcp_ca_state. */
	__u8 phase;
	__u8 is_window_limited;
	__u8 is_paced;
	__u8 at_once;
	/* The peer's window, bytes. */
	__u32 offered;
	/* The rate that is set before a packet leaves, byte/s; 0 for the kernel's. */
	__u32 rate;
};

/* A host that flows are sent to: what the map of groups holds for it. */
struct host {
	struct group group;
	__u8 is_there;
};

/* A socket, and what the maps hold for it. */
struct flow {
	struct tcp_sock tp;
	struct parameters parameters;
	struct state state;
	struct tcp_congestion_ops *control;
	struct net net;
	struct host *host;
	__u64 now_us;
	__u64 random;
};

/* The one that is called. */
static _Thread_local struct flow *called;

void *bpf_sk_storage_get(void *map, void *sk, void *value, unsigned long long flags)
{
	(void)sk, (void)value, (void)flags;
	return map == (void *)&parameters ? (void *)&called->parameters : (void *)&called->state;
}

/* All flows to a host follow the same law. */
void *bpf_map_lookup_elem(void *map, const void *key)
{
	(void)map, (void)key;
	return called->host->is_there ? &called->host->group : 0;
}

long bpf_map_update_elem(void *map, const void *key, const void *value, unsigned long long flags)
{
	(void)map, (void)key, (void)flags;
	memcpy(&called->host->group, value, sizeof(called->host->group));
	called->host->is_there = 1;
	return 0;
}

long bpf_map_delete_elem(void *map, const void *key)
{
	(void)map, (void)key;
	called->host->is_there = 0;
	return 0;
}

unsigned long long bpf_ktime_get_ns(void)
{
	return called->now_us * 1000;
}

/* xorshift64* (Vigna 2016). */
unsigned int bpf_get_prandom_u32(void)
{
	__u64 x = called->random;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	called->random = x;
	return (x * 0x2545f4914f6cdd1dULL) >> 32;
}

/* As the kernel has it (net/ipv4/tcp_cong.c): up to the threshold. */
__u32 tcp_slow_start(struct tcp_sock *tp, __u32 acked)
{
	__u32 before = tp->snd_cwnd;

	tp->snd_cwnd = min_of(before + acked, tp->snd_ssthresh);
	return acked - (tp->snd_cwnd - before);
}

void tcp_cong_avoid_ai(struct tcp_sock *tp, __u32 w, __u32 acked)
{
	avoid_additively(tp, w, acked);
}

static struct sock *enter(struct flow *flow, const struct view *view)
{
	struct tcp_sock *tp = &flow->tp;
	struct round *round = round_of(tp);
	bool is_untimed;

	called = flow;
	flow->now_us = view->now_us;
	tp->tcp_mstamp = view->now_us;
	tp->tcp_wstamp_ns = view->next_us * 1000;
	tp->snd_una = view->acknowledged;
	tp->snd_nxt = view->next;
	tp->snd_wnd = view->offered;
	tp->snd_cwnd = view->window;
	tp->snd_ssthresh = view->threshold;
	tp->delivered = view->delivered;
	tp->packets_out = view->outstanding;
	tp->max_packets_out = view->max_outstanding;
	tp->mss_cache = view->segment;
	tp->rtt_min.s[0].v = view->least_rtt_us;
	/* The last one may have been counted before its time. */
	is_untimed = tp->delivered - round->delivered > round->samples + 1;
	if (view->noise_us)
		flow->state.yielding.noise_us = view->noise_us << is_untimed;
	tp->is_cwnd_limited = view->is_window_limited;
	tp->inet_conn.icsk_ca_state = view->phase;
	return (struct sock *)tp;
}

static void leave(struct flow *flow, struct view *view)
{
	struct sock *sk = (struct sock *)&flow->tp;

	sk->sk_pacing_rate = 0;
	view->at_once = flow->control->min_tso_segs(sk);
	view->rate = sk->sk_pacing_rate;
	view->window = flow->tp.snd_cwnd;
	view->threshold = flow->tp.snd_ssthresh;
	view->is_paced = sk->sk_pacing_status != SK_PACING_NONE;
}

/* A host of which nothing is known; none without memory. */
struct host *dalbe_host_new(void)
{
	return calloc(1, sizeof(struct host));
}

void dalbe_host_free(struct host *host)
{
	free(host);
}

/* A flow with these parameters to a host; none without memory. */
struct flow *dalbe_flow_new(const struct parameters *wanted, __u64 seed, struct host *host)
{
	struct flow *flow = calloc(1, sizeof(*flow));
	__u32 law = wanted->law;

	if (!flow)
		return 0;
	flow->parameters = *wanted;
	flow->random = seed * 2 + 1;
	flow->host = host;
	/* Pairs of a group are spaced from the first one on. */
	flow->tp.data_segs_out = 10;
	((struct sock *)&flow->tp)->__sk_common.skc_net.net = &flow->net;
	flow->control = law <= LAW_VEGAS_PAPER ? &vegas : law <= LAW_CDG_PAPER ? &cdg : &cubic;
	((struct sock *)&flow->tp)->sk_max_pacing_rate = ~0UL;
	return flow;
}

/* The same flow once more; none without memory. */
struct flow *dalbe_flow_clone(const struct flow *flow)
{
	struct flow *copy = malloc(sizeof(*copy));

	if (!copy)
		return 0;
	memcpy(copy, flow, sizeof(*copy));
	((struct sock *)&copy->tp)->__sk_common.skc_net.net = &copy->net;
	return copy;
}

/* Sets other parameters. Their law is of the same congestion control, which is chosen once. */
void dalbe_flow_set(struct flow *flow, const struct parameters *wanted)
{
	flow->parameters = *wanted;
}

/* Copies the state that the flow shows to a process. */
void dalbe_flow_tell(const struct flow *flow, struct telemetry *told)
{
	*told = flow->state.seen;
}

void dalbe_flow_free(struct flow *flow)
{
	called = flow;
	flow->control->release((struct sock *)&flow->tp);
	free(flow);
}

void dalbe_flow_begin(struct flow *flow, struct view *view)
{
	flow->control->init(enter(flow, view));
	leave(flow, view);
}

/* A negative round-trip time is unknown. */
void dalbe_flow_acknowledged(struct flow *flow, struct view *view, __u32 packets, __s32 rtt_us)
{
	struct ack_sample sample = {.pkts_acked = packets, .rtt_us = rtt_us};

	flow->control->pkts_acked(enter(flow, view), &sample);
	leave(flow, view);
}

void dalbe_flow_avoid(struct flow *flow, struct view *view, __u32 acknowledged)
{
	flow->control->cong_avoid(enter(flow, view), view->acknowledged, acknowledged);
	leave(flow, view);
}

__u32 dalbe_flow_threshold(struct flow *flow, struct view *view)
{
	return flow->control->ssthresh(enter(flow, view));
}

/* The phase that begins. */
void dalbe_flow_changed(struct flow *flow, struct view *view, __u8 phase)
{
	flow->control->set_state(enter(flow, view), phase);
	leave(flow, view);
}
