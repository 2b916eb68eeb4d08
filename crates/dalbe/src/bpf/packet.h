/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What the observer wants to know of a packet.
 */
#pragma once

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
