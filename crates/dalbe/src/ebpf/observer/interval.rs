//! What the observer tells of one interval.

use std::time::Duration;

/// What arrived on a connection during one interval. Packets without data are
/// not counted anywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObservedInterval {
    /// When it began, on the clock `CLOCK_MONOTONIC`, which is that of
    /// [`std::time::Instant`]. A multiple of [`ObservedInterval::length`], so the
    /// intervals of several connections fall together.
    pub began: Duration,
    /// How long it was, as asked for.
    pub length: Duration,
    /// Packets with data, as they were on the wire: what the network card or
    /// the kernel merged (GRO) counts as many times as it was merged of.
    pub packets: u32,
    /// Bytes of data, also those that had arrived before.
    pub bytes: u64,
    /// Packets that began below the highest byte seen: retransmitted, late or
    /// doubled. Merged packets count once.
    pub out_of_order: u32,
    /// Packets that began above the highest byte seen, so that something
    /// between was lost or is late. Merged packets count once.
    pub holes: u32,
    /// One-way delay variation; `None` without timestamps (RFC 7323).
    pub delay: Option<DelayStatistics>,
    /// Packet-interval variations, completed in this interval.
    pub piv: PivCounts,
    /// Bytes that arrived in the round trip that ended last in this interval,
    /// which is the sender's congestion window if nothing else held it back
    /// (Vulture, algorithm 6); `None` if none ended, or without timestamps.
    pub cwnd_bytes: Option<u64>,
    /// How long that round trip was: from a packet until the first one that
    /// left the sender after it knew of our answer. That is the round-trip time
    /// with what our clock's tick (1 ms), a delayed acknowledgement and the
    /// sender's waiting for data add.
    pub round: Option<Duration>,
    /// The tick of the sender's timestamps. It is taken for 1 ms, as nearly
    /// everybody has it, until measured otherwise: then the statistics begin
    /// anew.
    pub tick: Duration,
}

/// One-way delay variation over an interval: arrival time minus sending time
/// (TSval), against an arbitrary zero which stays the same for a connection
/// until [`ObservedInterval::tick`] changes. Differences between intervals mean
/// something, the values do not.
///
/// Each sample is up to one tick of the sender's clock too large, for TSval is
/// rounded down; the least of several is rarely. The two clocks drift apart,
/// by some 10 µs per second: whoever keeps a base must let it age (RFC 6817,
/// section 3.4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DelayStatistics {
    /// The least, µs.
    pub least_us: i64,
    /// The mean, µs.
    pub mean_us: i64,
    /// What nine of ten samples do not exceed, µs: up to an eighth of its
    /// distance to the least delay of the connection, and at least 0.13 ms,
    /// off.
    pub p90_us: i64,
    /// How many samples there were. A merged packet is one.
    pub samples: u32,
}

/// Packet-interval variations (Vulture, algorithm 1), with psi at least 20 ms:
/// how much further apart two packets arrived than they were sent.
///
/// Of the packets that left within the same millisecond only the first is
/// taken. The bands are what algorithm 3 needs in either mode; its
/// boundaries, in jiffies of 4 ms there, are taken in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PivCounts {
    /// How many there were.
    pub count: u32,
    /// How many of them were above zero.
    pub positive: u32,
    /// Their sum, µs.
    pub sum_us: i64,
    /// |piv| below 4 ms.
    pub below_4_ms: u32,
    /// |piv| from 4 ms to below 8 ms.
    pub from_4_ms: u32,
    /// |piv| from 8 ms to 12 ms, both included.
    pub from_8_ms: u32,
    /// |piv| above 12 ms and below 20 ms.
    pub above_12_ms: u32,
    /// |piv| of 20 ms and more.
    pub from_20_ms: u32,
}
