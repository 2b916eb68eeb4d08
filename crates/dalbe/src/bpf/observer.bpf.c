// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * The kernel's side of the observer. It reads the headers of packets on watched
 * connections. intervals.h turns them into statistics.
 *
 * The program runs on the tcp_probe tracepoint, at the head of
 * tcp_rcv_established(). Every packet of an established connection passes there
 * with the socket locked, so each socket has one writer. A packet that arrives
 * while a process holds the lock to copy data waits in the socket's backlog. It
 * counts as arrived when the lock is free. Packets outside TCP's window count
 * too.
 *
 * GRO merges segments with equal timestamps into one packet. It has the TSval of
 * all segments and the arrival time of the last one.
 *
 * Each change here or in the structures needs a new OBSERVER_VERSION.
 */
#include "kernel.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_tracing.h>

#include "intervals.h"

/* Bytes of a header without options, and the most bytes of options (RFC 9293). */
#define TCP_HEADER 20
#define TCP_OPTIONS 40
/* The timestamp option (RFC 7323, section 3.2): its kind and its length. Nearly
 * every packet has only this option, after two no-operations. */
#define TIMESTAMPS 8
#define TIMESTAMPS_LENGTH 10
#define USUAL_OPTIONS 0x0101080a

/* Reads the headers. Returns false if the packet has no data. */
static __always_inline int parse(struct sk_buff *skb, struct packet *packet)
{
	/* At this tracepoint, skb->data is the TCP header. All of it is in the
	 * linear part. */
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
	/* A read beyond the header stays within the packet's own buffer. */
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

SOCKET_MAP(watch, struct watch);
SOCKET_MAP(statistics, struct statistics);

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

/* The kernel offers these functions to programs under the GPL only. */
char LICENSE[] SEC("license") = "Dual MIT/GPL";
