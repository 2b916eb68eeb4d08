//! The plain sender lever: a limit on the rate at which packets leave
//! (`SO_MAX_PACING_RATE`), driven by what the kernel reports of the connection
//! (`TCP_INFO`). It needs no privilege and no kernel module.
//!
//! The law is that of the receiver lever ([`crate::receive_window`]). Its
//! window becomes a rate: one window per round-trip time as it is now. So the
//! rate falls as the queue grows, as the rate of a flow under that window
//! would. Two things are easier here than at the receiver: less than two
//! segments in a round trip is just a lower rate, and an offered window need
//! not be used up first.
//!
//! The kernel's congestion control stays active below the limit. It still
//! answers losses, and its congestion window still limits. BBR has a model of
//! the rate and takes the limit for the path;
//! [`super::stock::choose_beneath_limit`] names a better one.
//!
//! After the first limit, the kernel spaces the packets of a connection for
//! good. Without a limit it then loses less than a flow whose packets come in
//! bursts: it has 62 to 65 % beside such a CUBIC flow (10 Mbit/s, 20 and 50
//! ms), where two equal flows have a half each. From about w = 0.85 on, where
//! the limit hardly binds, the same holds.
//!
//! [`Pacer`] is pure: it knows numbers, not sockets.

use crate::receive_window::{
    MIN_SEGMENT, MinFilter, PacketArrivals, ReceiveWindowLimiter, ReceiveWindowState,
    ReceiverPolicy,
};
use crate::socket::TcpInfo;
use crate::weight::{FlowTarget, MIN_WEIGHT};
use std::time::Duration;

/// On a path with a shorter round-trip time, the kernel sends 64 KiB at once
/// whatever the limit (`net.ipv4.tcp_tso_rtt_log`), and the delay of these
/// packets looks like other traffic, ...
const SHORT_PATH: Duration = Duration::from_millis(1);
/// ... so the limit is at least this share of the capacity.
const SHORT_PATH_MIN_SHARE: f64 = 0.15;

/// Samples in a round trip, ...
const SAMPLES_PER_ROUND_TRIP: u32 = 4;
/// ... at least this far apart, because a sample costs two system calls, ...
const MIN_SAMPLE_INTERVAL: Duration = Duration::from_millis(10);
/// ... and at most this far apart, so that new traffic is seen soon.
const MAX_SAMPLE_INTERVAL: Duration = Duration::from_millis(50);

/// Segments that leave together (`tcp_min_tso_segs` of Linux) and are
/// acknowledged together.
const SEGMENTS_PER_BURST: f64 = 2.0;

/// The law takes three segments out of order for one loss, because a receiver
/// cannot tell a loss from reordering. A sender counts losses.
const OUT_OF_ORDER_PER_LOSS: u32 = 3;

/// Lowest limit, byte/s: two segments take three seconds.
const MIN_RATE: u64 = 1000;

/// A test of the bottleneck counts only from this many times the highest rate
/// on. Tests find 10 to 25 % too much, and a limit on the rate carries exactly
/// what it says.
const MIN_TESTED_PER_SEEN: f64 = 1.5;

/// The limit to set now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacingTarget {
    /// Limit on the rate of the packets, byte/s of payload, at least 1000;
    /// `None` for no limit.
    pub rate: Option<u64>,
    /// Whether it holds the flow back for other traffic, as of the last second.
    pub is_yielding: bool,
    /// Time until the next sample, 10 ms to 50 ms.
    pub next: Duration,
}

/// The rate of one connection under control.
#[derive(Debug, Clone)]
pub struct Pacer {
    limiter: ReceiveWindowLimiter,
    samples: AckSamples,
    /// Round-trip time as it is now.
    rtt: Option<Duration>,
    carried: DeliveredBytes,
}

impl Default for Pacer {
    fn default() -> Self {
        Self {
            limiter: ReceiveWindowLimiter::new(ReceiverPolicy::Delay).doubting(MIN_TESTED_PER_SEEN),
            samples: AckSamples::default(),
            rtt: None,
            carried: DeliveredBytes::default(),
        }
    }
}

impl Pacer {
    /// The effect of the limit in the last second.
    #[must_use]
    pub fn state(&self) -> ReceiveWindowState {
        self.limiter.state()
    }

    /// So many connections, this one among them, send over the same path from now on, each under a
    /// limit of its own. While they yield to the end, they ask together for no more than one would;
    /// from about eight on for somewhat more, since none of them pauses for longer than 2 s.
    pub fn set_connections(&mut self, connections: u32) {
        self.limiter.set_connections(connections);
    }

    /// Takes a sample; `None` while too little is known. The first
    /// acknowledgements give no round-trip time, and a kernel before Linux 4.2
    /// reports too little. Until then there is no limit, and the connection is
    /// in slow start.
    pub fn update(
        &mut self,
        now: Duration,
        info: &TcpInfo,
        target: FlowTarget,
    ) -> Option<PacingTarget> {
        let segment = info.snd_mss.max(MIN_SEGMENT);
        let bytes = self.carried.update(info)?;
        let newest = self.samples.newest(now, info);
        let rtt = newest.or(self.rtt)?;
        self.rtt = Some(rtt);
        self.limiter.arrived(now, &PacketArrivals::of_rtt(newest));
        self.limiter.take_small_packets(info.min_rtt);
        let seen = seen_from_there(info, rtt, segment, bytes);
        let window = f64::from(self.limiter.update(now, &seen, target, None)?);
        let rate = window / rtt.as_secs_f64();
        let rate = match self.limiter.pause() {
            Some(pause) if target.w <= MIN_WEIGHT => {
                rate.min(SEGMENTS_PER_BURST * f64::from(segment) / pause.as_secs_f64())
            }
            // A pause would not be monotone in w.
            Some(_) | None => rate,
        };
        let is_short = info.min_rtt.is_some_and(|rtt| rtt < SHORT_PATH);
        let least = if is_short {
            SHORT_PATH_MIN_SHARE * target.capacity
        } else {
            0.0
        };
        // Saturates, at what means no limit; never NaN.
        let rate = rate.max(target.share()).max(least) as u64;
        Some(PacingTarget {
            rate: (target.w < 1.0).then_some(rate.max(MIN_RATE)),
            is_yielding: self.state() == ReceiveWindowState::Yielding,
            next: (rtt / SAMPLES_PER_ROUND_TRIP).clamp(MIN_SAMPLE_INTERVAL, MAX_SAMPLE_INTERVAL),
        })
    }
}

/// The sample that the law would get at the other end of the path, where the data
/// arrives.
fn seen_from_there(info: &TcpInfo, rtt: Duration, segment: u32, bytes: u64) -> TcpInfo {
    TcpInfo {
        rcv_mss: segment,
        rtt: Some(rtt),
        rcv_rtt: Some(rtt),
        bytes_received: Some(bytes),
        // Wraps, as the kernel's own does.
        data_segs_in: Some((bytes / u64::from(segment)) as u32),
        rcv_ooopack: Some(info.total_retrans.saturating_mul(OUT_OF_ORDER_PER_LOSS)),
        // The clock has no ticks that would make a short path look shorter.
        min_rtt: None,
        ..*info
    }
}

/// Gain of the kernel's average (RFC 6298 section 2).
const RTT_GAIN: f64 = 0.125;

/// The first segments of a connection are acknowledged one by one (Linux's
/// `TCP_MAX_QUICKACKS`, and the SYN). Later ones come in pairs, which take
/// longer by the time of a segment on the link. This is no queue.
const SINGLY_ACKNOWLEDGED: u32 = 17;

/// Where an acknowledgement is of fewer segments in the mean, some are of a single one.
const SINGLE: f64 = 1.9;
/// If all of so many were, the receiver acknowledges every segment.
const MAX_SINGLES: u32 = 48;

/// Smallest round-trip time, s: the kernel's unit.
const MIN_RTT: f64 = 1e-6;

/// The round-trip times of one connection that sends, computed back from the
/// kernel's moving average: a flow with few acknowledgements would take seconds
/// to see a queue come or go. `tcpi_segs_in` counts the updates.
#[derive(Debug, Clone, Default)]
pub(crate) struct AckSamples {
    /// Smoothed round-trip time at the last sample, segments received until then, and bytes that
    /// were acknowledged.
    last: Option<(Duration, u32, u64)>,
    /// Of pairs.
    least: MinFilter<Duration>,
}

impl AckSamples {
    /// The mean of what the kernel has measured since the last sample, later
    /// samples counting for more; at least 1 µs. `None` if there was nothing to
    /// measure, or nothing that would say something of the path.
    ///
    /// The end of what is sent, and a request, are single segments, which take less time than
    /// pairs. They count as a pair without a queue at the least; before the first pair they do
    /// not count.
    pub(crate) fn newest(&mut self, now: Duration, info: &TcpInfo) -> Option<Duration> {
        let (smoothed, segments) = (info.rtt?, info.segs_in?);
        let acked = info.bytes_acked.unwrap_or(0);
        let (before, already, acked_before) = self.last.replace((smoothed, segments, acked))?;
        let updates = segments.wrapping_sub(already);
        if updates == 0 || already < SINGLY_ACKNOWLEDGED {
            return None;
        }
        let kept = (1.0 - RTT_GAIN).powf(f64::from(updates));
        let (old, new) = (before.as_secs_f64(), smoothed.as_secs_f64());
        let newest = old + (new - old) / (1.0 - kept);
        // An acknowledgement of a segment sent again measures nothing, but counts
        // here. So the result needs the measured minimum as its lower limit.
        let least = info.min_rtt.map_or(MIN_RTT, |rtt| rtt.as_secs_f64());
        let newest = Duration::from_secs_f64(newest.max(least));
        let each = acked.saturating_sub(acked_before) as f64 / f64::from(updates);
        if each >= SINGLE * f64::from(info.snd_mss) {
            self.least.update(now, newest);
            return Some(newest);
        }
        match self.least.recent(now) {
            Some(pair) => Some(newest.max(pair)),
            None => (segments >= MAX_SINGLES).then_some(newest),
        }
    }
}

/// Counts the bytes that have arrived at the other end of a connection, in order or
/// not. Bytes acknowledged in order jump when a hole is filled, so the path would
/// seem faster than it is.
#[derive(Debug, Clone, Copy, Default)]
pub struct DeliveredBytes {
    /// Bytes at the last sample; `None` before the first.
    bytes: Option<u64>,
}

impl DeliveredBytes {
    /// Takes a sample and returns the bytes so far: those acknowledged in order, and
    /// the segments that have arrived beyond holes. `None` before Linux 4.1.
    pub fn update(&mut self, info: &TcpInfo) -> Option<u64> {
        let beyond = u64::from(info.sacked) * u64::from(info.snd_mss);
        let bytes = info.bytes_acked?.saturating_add(beyond);
        // Receivers may take back what they had reported (RFC 2018, section 8).
        self.bytes = self.bytes.max(Some(bytes));
        self.bytes
    }

    /// Takes a sample and returns the bytes since the last one; 0 at the first.
    pub fn since_last(&mut self, info: &TcpInfo) -> u64 {
        let before = self.bytes;
        let now = self.update(info);
        now.zip(before)
            .map_or(0, |(now, before)| now.saturating_sub(before))
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod samples_tests {
    use super::*;

    fn info(rtt: f64, segs_in: u32) -> TcpInfo {
        TcpInfo {
            rtt: Some(Duration::from_secs_f64(rtt)),
            segs_in: Some(segs_in),
            min_rtt: Some(Duration::from_millis(50)),
            ..TcpInfo::parse(&[0; 240]).unwrap()
        }
    }

    /// What is found when so many acknowledgements have measured `sample`
    /// after an average of 90 ms.
    fn found(sample: f64, updates: u32) -> f64 {
        let mut samples = AckSamples::default();
        assert_eq!(samples.newest(Duration::ZERO, &info(0.090, 100)), None);
        let kept = 0.875_f64.powi(updates.try_into().unwrap());
        let smoothed = sample + kept * (0.090 - sample);
        let newest = samples.newest(Duration::ZERO, &info(smoothed, 100 + updates));
        newest.unwrap().as_secs_f64()
    }

    #[test]
    fn an_emptied_queue_is_noticed_at_once() {
        for updates in [1, 2, 7, 60] {
            let newest = found(0.055, updates);
            assert!((newest - 0.055).abs() < 1e-5, "{newest} after {updates}");
        }
    }

    #[test]
    fn a_sample_is_never_below_the_minimum() {
        assert!((found(0.020, 1) - 0.050).abs() < 1e-9);
    }

    #[test]
    fn single_segments_do_not_make_pairs_look_queued() {
        let mut samples = AckSamples::default();
        let (mut acks, mut bytes) = (0, 0);
        let mut look = |of_each: u64, rtt: f64| {
            // So many that the average has forgotten all before.
            acks += 40;
            bytes += 40 * of_each;
            let seen = TcpInfo {
                snd_mss: 1448,
                bytes_acked: Some(bytes),
                ..info(rtt, acks)
            };
            let newest = samples.newest(Duration::from_secs(1), &seen);
            newest.map(|rtt| (rtt.as_secs_f64() * 1000.0).round())
        };
        look(1448, 0.060);
        assert_eq!(look(1448, 0.060), Some(60.0), "there are no pairs");
        assert_eq!(look(2896, 0.061), Some(61.0));
        assert_eq!(look(1448, 0.060), Some(61.0), "the end of a file");
        assert_eq!(look(300, 0.060), Some(61.0), "a request");
        assert_eq!(look(300, 0.070), Some(70.0), "a queue");
    }

    #[test]
    fn no_update_and_the_first_segments_give_no_sample() {
        let mut samples = AckSamples::default();
        assert_eq!(
            samples.newest(Duration::ZERO, &info(0.060, 1)),
            None,
            "the handshake"
        );
        assert_eq!(
            samples.newest(Duration::ZERO, &info(0.060, 17)),
            None,
            "single segments"
        );
        assert_eq!(
            samples.newest(Duration::ZERO, &info(0.060, 17)),
            None,
            "nothing new"
        );
        assert!(samples.newest(Duration::ZERO, &info(0.060, 18)).is_some());
    }
}
