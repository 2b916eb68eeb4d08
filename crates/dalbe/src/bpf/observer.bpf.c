// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * The kernel's side of the observer: reduces the packets of watched
 * connections to statistics of short intervals.
 *
 * It runs on the tcp_probe tracepoint, at the head of tcp_rcv_established():
 * every packet of an established connection passes there, with the socket
 * locked, so that there is one writer for each socket. A packet that comes
 * while a process holds the lock, copying data out, waits in the socket's
 * backlog, and its arrival is seen when the lock is released. What TCP then
 * refuses, outside its window, has been counted.
 * Segments merged by GRO are one packet, with the TSval of all and the arrival
 * of the last; GRO merges none with different timestamps.
 *
 * It must not know what the statistics are used for. Whatever is changed here
 * or in the structures takes a new OBSERVER_VERSION.
 */
#include "kernel.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_tracing.h>

#include "observer.h"

/* One packet: what the rest looks at. */
struct packet {
	__u64 now_us;
	__u32 seq;
	__u32 bytes;
	__u32 segments;
	__u32 tsval;
	__u32 tsecr;
	__u32 has_timestamps;
};

/* RFC 9293: the header without options, and the most options there can be. */
#define TCP_HEADER 20
#define TCP_OPTIONS 40
/* RFC 7323, section 3.2, and the two no-operations before it that put it in
 * its place: what nearly every packet has and nothing else. */
#define TIMESTAMPS 8
#define TIMESTAMPS_LENGTH 10
#define USUAL_OPTIONS 0x0101080a

/* Reads the headers; false when there is nothing to count. */
static __always_inline int parse(struct sk_buff *skb, struct packet *packet)
{
	/* Here skb->data is the TCP header, all of it in the linear part. */
	struct {
		__be16 source, dest;
		__be32 seq, ack_seq;
		__u8 doff, flags;
		__be16 window, check, urgent;
		__be32 usual, tsval, tsecr;
	} header;
	__u8 options[TCP_OPTIONS];
	struct skb_shared_info *shared;
	__u32 length, at = 0;
	__u16 segments = 0;

	if (bpf_probe_read_kernel(&header, sizeof(header), skb->data))
		return 0;
	length = (header.doff >> 4) * 4;
	if (length < TCP_HEADER || skb->len <= length)
		return 0;
	packet->bytes = skb->len - length;
	packet->seq = bpf_ntohl(header.seq);

	shared = (void *)(skb->head + skb->end);
	bpf_core_read(&segments, sizeof(segments), &shared->gso_segs);
	packet->segments = segments ? segments : 1;

	length -= TCP_HEADER;
	packet->has_timestamps = 0;
	if (length >= 12 && header.usual == bpf_htonl(USUAL_OPTIONS)) {
		packet->has_timestamps = 1;
		packet->tsval = bpf_ntohl(header.tsval);
		packet->tsecr = bpf_ntohl(header.tsecr);
		return 1;
	}
	/* What lies behind the header's end is the packet's own buffer. */
	if (length < TIMESTAMPS_LENGTH ||
	    bpf_probe_read_kernel(options, sizeof(options), skb->data + TCP_HEADER))
		return 1;
	for (int i = 0; i < TCP_OPTIONS; i++) {
		__u32 size = 1;

		if (at + TIMESTAMPS_LENGTH > length || at > TCP_OPTIONS - TIMESTAMPS_LENGTH)
			break;
		if (options[at] == 0)
			break;
		if (options[at] == TIMESTAMPS) {
			__be32 pair[2];

			__builtin_memcpy(pair, &options[at + 2], sizeof(pair));
			packet->has_timestamps = 1;
			packet->tsval = bpf_ntohl(pair[0]);
			packet->tsecr = bpf_ntohl(pair[1]);
			break;
		}
		if (options[at] != 1)
			size = options[at + 1];
		if (size == 0)
			break;
		at += size;
	}
	return 1;
}

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct watch);
} watch SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct statistics);
} statistics SEC(".maps");

/* Begins all anew: nothing from before can be compared with what follows. */
static __always_inline void restart(struct statistics *s, struct packet *packet, __u32 interval_us,
				    __u32 tick_us)
{
	__builtin_memset(&s->tracker, 0, sizeof(s->tracker));
	s->version = OBSERVER_VERSION;
	s->interval_us = interval_us;
	s->epoch++;
	s->tick_us = tick_us;
	s->tracker.last_us = packet->now_us;
	s->tracker.first_us = packet->now_us;
	s->tracker.sent_us = SENT_ZERO_US;
	s->tracker.tsval = packet->tsval;
}

/* The slot of the interval that this moment is in, emptied if it is new. */
static __always_inline struct interval *current_slot(struct statistics *s, __u64 now_us)
{
	__u64 length = s->interval_us;
	__u64 number = now_us / length;
	struct interval *slot = &s->intervals[number % SLOTS];

	if (slot->began_us != number * length || slot->epoch != s->epoch) {
		__builtin_memset(slot, 0, sizeof(*slot));
		slot->began_us = number * length;
		slot->epoch = s->epoch;
		slot->tick_us = s->tick_us;
		slot->delay_reference_us = s->tracker.least_us;
		/* Clocks drift apart: the least ages by 122 ppm, which is more
		 * than two of them do (RFC 5905: 15 ppm each is usual). */
		s->tracker.least_us += length >> 13;
	}
	return slot;
}

/* Order of arrival, by the sequence numbers. */
static __always_inline void note_order(struct tracker *t, struct interval *slot,
				       struct packet *packet)
{
	__s32 distance = packet->seq - t->highest;

	if (distance < 0)
		slot->out_of_order++;
	else if (distance > 0)
		slot->holes++;
	if (distance + (__s32)packet->bytes > 0)
		t->highest = packet->seq + packet->bytes;
}

/* The bucket of a delay above the reference: four for each octave, see
 * DELAY_BUCKETS. Its inverse is edge_us() in observer.rs. */
static __always_inline __u32 bucket_of(__u64 delay_us)
{
	__u32 units = delay_us >> DELAY_UNIT_SHIFT > MAX_DELAY_UNITS
			      ? MAX_DELAY_UNITS
			      : delay_us >> DELAY_UNIT_SHIFT;
	__u32 octave = 0, rest = units;

	if (units < 4)
		return units;
	if (rest >= 256) {
		rest >>= 8;
		octave += 8;
	}
	if (rest >= 16) {
		rest >>= 4;
		octave += 4;
	}
	if (rest >= 4) {
		rest >>= 2;
		octave += 2;
	}
	if (rest >= 2)
		octave += 1;
	return 4 * (octave - 1) + ((units >> (octave - 2)) & 3);
}

static __always_inline void note_delay(struct tracker *t, struct interval *slot, __u64 now_us)
{
	__s64 delay_us = (__s64)(now_us - t->first_us) - (__s64)(t->sent_us - SENT_ZERO_US);
	__s64 above_us = delay_us - slot->delay_reference_us;
	__u32 bucket = bucket_of(above_us > 0 ? above_us : 0);

	if (delay_us < t->least_us)
		t->least_us = delay_us;
	if (slot->delays == 0 || delay_us < slot->delay_least_us)
		slot->delay_least_us = delay_us;
	slot->delays++;
	slot->delay_sum_us += delay_us;
	if (bucket < DELAY_BUCKETS && slot->delay_buckets[bucket] != 0xffff)
		slot->delay_buckets[bucket]++;
}

/* Vulture, algorithm 1. The queue holds one packet for each millisecond of
 * sending time, so that QUEUE of them always reach back to psi. */
static __always_inline void note_piv(struct statistics *s, struct interval *slot, __u64 now_us)
{
	struct tracker *t = &s->tracker;
	__u64 sent_ms = t->sent_us / 1000;
	struct sent *sent;

	for (int i = 0; i < QUEUE; i++) {
		struct sent *oldest = &s->queue[t->oldest % QUEUE];
		__s64 psi_ms = (__s64)(sent_ms - oldest->sent_ms);
		__s64 piv_us, size_us;

		if (t->queued == 0 || psi_ms < PSI_MS)
			break;
		piv_us = (__s64)(now_us - oldest->arrived_us) - psi_ms * 1000;
		size_us = piv_us < 0 ? -piv_us : piv_us;
		slot->piv_sum_us += piv_us;
		slot->piv_positive += piv_us > 0;
		if (size_us < 4000)
			slot->piv_bands[0]++;
		else if (size_us < 8000)
			slot->piv_bands[1]++;
		else if (size_us <= 12000)
			slot->piv_bands[2]++;
		else if (size_us < 20000)
			slot->piv_bands[3]++;
		else
			slot->piv_bands[4]++;
		t->oldest++;
		t->queued--;
	}
	if (t->queued > 0) {
		__u64 newest_ms = s->queue[(t->oldest + t->queued - 1) % QUEUE].sent_ms;

		if ((__s64)(sent_ms - newest_ms) <= 0)
			return;
	}
	if (t->queued == QUEUE) {
		t->oldest++;
		t->queued--;
	}
	sent = &s->queue[(t->oldest + t->queued) % QUEUE];
	sent->sent_ms = sent_ms;
	sent->arrived_us = now_us;
	t->queued++;
}

/* Vulture, algorithm 6: bytes that arrive until the sender has heard of an
 * acknowledgement that left after the first of them. */
static __always_inline void note_round(struct tracker *t, struct interval *slot,
				       struct packet *packet, __u32 our_tsval)
{
	if (t->in_round && (__s32)(packet->tsecr - t->round_tsval) > 0) {
		__u64 took_us = packet->now_us - t->round_began_us;

		slot->round_bytes = t->round_bytes;
		slot->round_us = took_us < 0xffffffff ? took_us : 0xffffffff;
		slot->rounds++;
		t->in_round = 0;
	}
	if (!t->in_round) {
		t->in_round = 1;
		t->round_tsval = our_tsval;
		t->round_began_us = packet->now_us;
		t->round_bytes = 0;
	}
	t->round_bytes += packet->bytes;
}

/*
 * The sender's tick, other than 1 ms; 0 as long as 1 ms is as good. A tick of
 * 1 us (Linux 6.7, feature tcp_usec_ts of a route) shows at once. Coarse ones
 * (4 and 10 ms, 1/HZ of older systems) show after two seconds, when a queue
 * that grew meanwhile can no longer pass for one.
 */
static __always_inline __u32 other_tick(struct tracker *t, __u64 now_us)
{
	__u64 elapsed_us = now_us - t->first_us;
	__u64 ticks = (t->sent_us - SENT_ZERO_US) / 1000;
	__u64 each_us;

	if ((__s64)(t->sent_us - SENT_ZERO_US) <= 0)
		return 0;
	if (ticks > elapsed_us / 125 + 1000)
		return 1;
	if (elapsed_us < 2000000)
		return 0;
	t->tick_is_known = 1;
	each_us = elapsed_us / (ticks ? ticks : 1);
	if (each_us < 3000)
		return 0;
	return each_us < 6300 ? 4000 : each_us < 31600 ? 10000 : 100000;
}

/* Carries the sending time on to this packet, and finds out the sender's tick;
 * begins anew where the times before say nothing of those that follow. */
static __always_inline void follow_sender(struct statistics *s, struct packet *packet)
{
	struct tracker *t = &s->tracker;
	__u32 tick_us;

	t->sent_us += (__s64)(__s32)(packet->tsval - t->tsval) * s->tick_us;
	t->tsval = packet->tsval;
	/* TSval may have gone round half of its range: who knows. */
	if (packet->now_us - t->last_us > (1ULL << 30) * s->tick_us) {
		restart(s, packet, s->interval_us, s->tick_us);
		t->tick_is_known = 1;
		return;
	}
	t->last_us = packet->now_us;
	if (t->tick_is_known)
		return;
	tick_us = other_tick(t, packet->now_us);
	if (tick_us) {
		restart(s, packet, s->interval_us, tick_us);
		t->tick_is_known = 1;
	}
}

SEC("tp_btf/tcp_probe")
int BPF_PROG(observe, struct sock *sk, struct sk_buff *skb)
{
	struct packet packet = {};
	struct statistics *s;
	struct interval *slot;
	struct tcp_sock *tcp;
	struct watch *wanted;
	__u64 now_ns;
	__u32 interval_us;

	wanted = bpf_sk_storage_get(&watch, sk, 0, 0);
	if (!wanted)
		return 0;
	interval_us = wanted->interval_us;
	if (interval_us < MIN_INTERVAL_US || interval_us > MAX_INTERVAL_US)
		return 0;
	tcp = bpf_skc_to_tcp_sock(sk);
	if (!tcp || !parse(skb, &packet))
		return 0;
	s = bpf_sk_storage_get(&statistics, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!s)
		return 0;

	now_ns = bpf_ktime_get_ns();
	packet.now_us = now_ns / 1000;
	if (s->interval_us != interval_us)
		restart(s, &packet, interval_us, USUAL_TICK_US);
	if (packet.has_timestamps)
		follow_sender(s, &packet);
	if (!s->tracker.has_highest) {
		s->tracker.has_highest = 1;
		s->tracker.highest = tcp->rcv_nxt;
	}

	slot = current_slot(s, packet.now_us);
	slot->packets += packet.segments;
	slot->bytes += packet.bytes;
	note_order(&s->tracker, slot, &packet);
	if (packet.has_timestamps) {
		__u64 clock = now_ns / 1000000;

		if (bpf_core_field_exists(tcp->tcp_usec_ts) &&
		    BPF_CORE_READ_BITFIELD(tcp, tcp_usec_ts))
			clock = packet.now_us;
		note_delay(&s->tracker, slot, packet.now_us);
		note_piv(s, slot, packet.now_us);
		note_round(&s->tracker, slot, &packet, (__u32)clock + tcp->tsoffset);
	}
	return 0;
}

/* The kernel lends what this uses to programs that the GPL permits. */
char LICENSE[] SEC("license") = "Dual MIT/GPL";
