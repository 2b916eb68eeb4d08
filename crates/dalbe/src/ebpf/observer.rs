//! The observer: statistics of short intervals about the packets that arrive on a
//! connection. The kernel's side computes them.
//!
//! `TCP_INFO` reports round-trip times and byte counts to a receiver. It does
//! not report when each packet left its sender and when it arrived. One-way
//! delay variation (LEDBAT, RFC 6817) and packet-interval variation (Vulture,
//! algorithm 1) need both. An eBPF program on the kernel's `tcp_probe`
//! tracepoint sees both: the sending time is the TSval of the timestamp option
//! (RFC 7323). Root loads the program once ([`crate::ebpf::setup`]). Afterwards
//! any user can have its own connections observed; all others are left alone.
//!
//! Without the feature `bpf` the types exist, and opening the observer fails
//! with [`EbpfUnavailable::NotBuilt`].

use std::io;
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use super::layout::{DELAY_BUCKETS, DELAY_UNIT_SHIFT, RawStatistics, RawWatch, SLOTS, Slot};
use super::maps::SocketMaps;
use super::{EbpfPart, EbpfUnavailable, PIN_DIRECTORY};
use crate::socket::TcpSocket;

/// Shortest and longest interval.
pub const OBSERVER_INTERVALS: RangeInclusive<Duration> =
    Duration::from_millis(1)..=Duration::from_secs(1);

/// The observer of this machine, opened by this process.
///
/// It is two descriptors, so it is cheap to share (`Arc`). It works until the
/// observer is removed or replaced ([`crate::ebpf::setup`]). Then it reports nothing
/// new.
#[derive(Debug)]
pub struct Observer {
    maps: SocketMaps,
}

impl Observer {
    /// Opens the observer that root has set up on this machine
    /// ([`PIN_DIRECTORY`]). Needs no privilege.
    ///
    /// # Errors
    /// There is none, or this process may not use it.
    pub fn open() -> Result<Self, EbpfUnavailable> {
        Self::open_in(Path::new(PIN_DIRECTORY))
    }

    /// The same, of an observer that was set up in another directory.
    ///
    /// # Errors
    /// There is none, or this process may not use it.
    pub fn open_in(directory: &Path) -> Result<Self, EbpfUnavailable> {
        let maps = SocketMaps::open::<RawWatch, RawStatistics>(directory, EbpfPart::Observer)?;
        Ok(Self { maps })
    }

    /// Observes a connection from its next packet to its end, in intervals of this
    /// length ([`OBSERVER_INTERVALS`]). A second request changes nothing. A request
    /// with another length starts over.
    ///
    /// The connection need not be open yet. The observer sees no packets after this
    /// end has shut down its sending half.
    ///
    /// # Errors
    /// A length out of range, not a TCP socket, or no memory. A kernel without room
    /// for the statistics (`net.core.optmem_max` below 20480) gives no error and no
    /// statistics.
    pub fn watch(&self, socket: &TcpSocket, interval: Duration) -> io::Result<()> {
        if !OBSERVER_INTERVALS.contains(&interval) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("an interval of {interval:?} is not between 1 ms and 1 s"),
            ));
        }
        let watch = RawWatch {
            interval_us: u32::try_from(interval.as_micros()).unwrap_or(u32::MAX),
            reserved: 0,
        };
        self.maps.request(socket, &watch)
    }

    /// What has arrived in the last 30 finished intervals, oldest first: a
    /// window over the past, so an interval that was there at the last call
    /// is there again. One system call. Intervals in which nothing arrived
    /// are left out; a connection that is not watched has none.
    ///
    /// An interval is finished 1 ms after its end.
    ///
    /// # Errors
    /// Not a TCP socket.
    pub fn arrivals(&self, socket: &TcpSocket) -> io::Result<Vec<ObservedInterval>> {
        let statistics = self.maps.answer::<RawStatistics>(socket)?;
        Ok(statistics.map_or_else(Vec::new, |statistics| finished(&statistics, now())))
    }
}

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
    /// The tick of the sender's timestamps. It is assumed to be 1 ms, as on nearly every
    /// sender, until another is measured. Then the statistics start over.
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
    pub min_us: i64,
    /// The mean, µs.
    pub mean_us: i64,
    /// What nine of ten samples do not exceed, µs: up to an eighth of its
    /// distance to the least delay of the connection, and at least 0.13 ms,
    /// off.
    pub p90_us: i64,
    /// How many samples there were. A merged packet is one.
    pub samples: u32,
}

/// Where each band of [`PivCounts`] but the first begins, µs. These are the
/// thresholds of Vulture's algorithm 3 (`cLow`, `cHigh`, `aLow`, `aHigh`): 1, 2,
/// 3 and 5 jiffies of 4 ms. A variation of `aLow` itself is still low.
const PIV_BANDS_US: [u64; 4] = [4_000, 8_000, 12_001, 20_000];

/// Counts of packet-interval variations (Vulture, algorithm 1), with psi at least
/// 20 ms: how much further apart two packets arrived than they were sent. They
/// hold all that algorithms 2 and 3 need.
///
/// Of the packets that left within the same millisecond, only the first counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PivCounts {
    /// By absolute value: below 4 ms, from 4 to below 8 ms, from 8 to 12 ms,
    /// above 12 and below 20 ms, and from 20 ms.
    pub bands: [u64; 5],
    /// How many are above 0.
    pub positive: u64,
    /// Sum, µs.
    pub sum_us: i64,
}

impl PivCounts {
    /// Counts one variation, µs.
    pub fn add(&mut self, variation_us: i64) {
        let length = variation_us.unsigned_abs();
        let band = PIV_BANDS_US.partition_point(|&begin| begin <= length);
        self.bands[band] = self.bands[band].saturating_add(1);
        if variation_us > 0 {
            self.positive = self.positive.saturating_add(1);
        }
        self.sum_us = self.sum_us.saturating_add(variation_us);
    }

    /// Adds the counts of other variations.
    pub fn merge(&mut self, more: &Self) {
        for (band, more) in self.bands.iter_mut().zip(more.bands) {
            *band = band.saturating_add(more);
        }
        self.positive = self.positive.saturating_add(more.positive);
        self.sum_us = self.sum_us.saturating_add(more.sum_us);
    }

    /// How many variations there are: `pivCount`.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.bands.iter().copied().fold(0, u64::saturating_add)
    }
}

/// The clock of `bpf_ktime_get_ns`.
fn now() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanoseconds = u32::try_from(now.tv_nsec).unwrap_or(0);
    Duration::new(seconds, nanoseconds)
}

/// Slots that are reported. The kernel may be about to reuse the others.
const REPORTED: u64 = SLOTS as u64 - 2;

/// Time after which an interval is finished, µs. A packet from before its end may
/// still be on its way through the kernel's side. That takes about 1 µs, and an
/// interrupt may come in between.
const SETTLING_US: u64 = 1000;

/// The intervals that are finished `now` (on `CLOCK_MONOTONIC`), oldest first.
pub(crate) fn finished(statistics: &RawStatistics, now: Duration) -> Vec<ObservedInterval> {
    let length = u64::from(statistics.interval_us);
    let now = u64::try_from(now.as_micros()).unwrap_or(u64::MAX);
    let is_reported = |slot: &&Slot| {
        slot.epoch == statistics.epoch
            && slot.packets > 0
            && slot.began_us.saturating_add(length + SETTLING_US) <= now
            && slot.began_us.saturating_add(REPORTED * length) > now.saturating_sub(length)
    };
    let mut slots: Vec<&Slot> = statistics.slots.iter().filter(is_reported).collect();
    slots.sort_unstable_by_key(|slot| slot.began_us);
    let length = Duration::from_micros(length);
    slots.iter().map(|slot| interval(slot, length)).collect()
}

fn interval(slot: &Slot, length: Duration) -> ObservedInterval {
    let ended_round = slot.rounds > 0;
    ObservedInterval {
        began: Duration::from_micros(slot.began_us),
        length,
        packets: slot.packets,
        bytes: slot.bytes,
        out_of_order: slot.out_of_order,
        holes: slot.holes,
        delay: delay(slot),
        piv: PivCounts {
            bands: slot.piv_bands.map(u64::from),
            positive: slot.piv_positive.into(),
            sum_us: slot.piv_sum_us,
        },
        cwnd_bytes: ended_round.then_some(slot.round_bytes),
        round: ended_round.then(|| Duration::from_micros(u64::from(slot.round_us))),
        tick: Duration::from_micros(u64::from(slot.tick_us)),
    }
}

fn delay(slot: &Slot) -> Option<DelayStatistics> {
    let mean_us = slot.delay_sum_us.checked_div(i64::from(slot.delays))?;
    Some(DelayStatistics {
        min_us: slot.delay_min_us,
        mean_us,
        p90_us: p90_us(slot).max(slot.delay_min_us),
        samples: slot.delays,
    })
}

/// The 90th percentile, µs. The samples of a bucket count as evenly spread over
/// it.
fn p90_us(slot: &Slot) -> i64 {
    let counts = slot.delay_buckets.map(u64::from);
    let total: u64 = counts.iter().sum();
    // The ninth of ten samples.
    let wanted = (total * 9).div_ceil(10);
    let mut below = 0;
    for (bucket, &count) in counts.iter().enumerate() {
        if below + count >= wanted {
            let (from, to) = (edge_us(bucket), edge_us(bucket + 1));
            let into = ((to - from) * (wanted - below)).checked_div(count);
            let above_us = from + into.unwrap_or(0);
            return slot.delay_reference_us.saturating_add_unsigned(above_us);
        }
        below += count;
    }
    slot.delay_min_us
}

/// Where a bucket begins, µs above the reference: the inverse of `bucket_of`
/// in `intervals.h`.
fn edge_us(bucket: usize) -> u64 {
    let bucket = bucket.min(DELAY_BUCKETS) as u64;
    let units = match bucket {
        0..4 => bucket,
        _ => (4 + bucket % 4) << (bucket / 4 - 1),
    };
    units << DELAY_UNIT_SHIFT
}

#[cfg(test)]
mod tests;
