//! The length of the queue: round-trip times, or the observer's one-way delays,
//! above the smallest recent value.

mod flat;

use std::collections::VecDeque;
use std::time::Duration;

use self::flat::FlatDelay;
use super::{LeastRtt, PacketArrivals, TIMESTAMP_TICK};
use crate::socket::TcpInfo;

/// The queueing delay of one connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct QueueDelays {
    base: MinFilter<Duration>,
    samples: RttSamples,
    /// Whether the receiver had measured a round-trip time at the last sample.
    is_measured: bool,
    /// Smallest one-way delay, µs, against an arbitrary zero.
    one_way: MinFilter<i64>,
    /// The tick of the sender's timestamps. That zero changes with it.
    tick: Duration,
    /// Queueing delay by the observer since the last sample, s; `None` without an
    /// observer.
    observed: Option<Option<f64>>,
    flat: FlatDelay,
}

/// The delay at one sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct DelaySample {
    /// Round-trip time without a queue.
    pub(crate) base: Duration,
    /// Queueing delay of the data since the last sample, s; `None` without data.
    pub(crate) queueing: Option<f64>,
    /// The longest that this may have been, s. A fall of the kernel's average leaves open
    /// by how much: it also takes over a shorter value as it is.
    longest: Option<f64>,
}

impl QueueDelays {
    /// Takes the observer's report since the last sample. To be called before
    /// [`Self::update`].
    pub(crate) fn arrived(&mut self, now: Duration, arrivals: &PacketArrivals) {
        if arrivals.delay_us.is_some() && arrivals.tick != self.tick {
            self.tick = arrivals.tick;
            self.one_way = MinFilter::default();
        }
        self.observed = Some(arrivals.delay_us.map(|delay| {
            let min = self.one_way.update(now, delay);
            (delay - min) as f64 * 1e-6
        }));
    }

    /// Another connection has seen this round-trip time on the same path.
    pub(crate) fn learn(&mut self, now: Duration, rtt: Duration) {
        self.base.update(now, rtt);
    }

    /// The smallest round-trip time of the last minute, and when it was measured.
    pub(crate) fn base(&self) -> Option<(Duration, Duration)> {
        self.base.min()
    }

    /// Takes a sample of a connection with this round-trip time, over a path with these least
    /// ones. `pauses` tells whether it pauses between segments.
    pub(crate) fn update(
        &mut self,
        now: Duration,
        info: &TcpInfo,
        rtt: Duration,
        path: LeastRtt,
        pauses: bool,
    ) -> DelaySample {
        // The handshake's packets are small: on a slow link a segment takes
        // longer than they do without any queue.
        let measured = info.rcv_rtt.map(|rtt| not_too_short(rtt, path.handshake));
        let own = measured.map_or(rtt, |rtt| self.base.update(now, rtt));
        let base = path.base.map_or(own, |least| own.min(least));
        if std::mem::replace(&mut self.is_measured, measured.is_some()) != measured.is_some() {
            // Another average.
            self.samples = RttSamples::default();
        }
        let short = if info.min_rtt.is_some_and(|rtt| rtt < TIMESTAMP_TICK) {
            ShortPath::Yes { pauses }
        } else {
            ShortPath::No
        };
        let segments = info.data_segs_in.unwrap_or(0);
        let newest = self.samples.newest(now, rtt, segments, base, short);
        // The queue on the way here is part of the round trip. A longer one-way
        // delay comes from a clock that drifts.
        let longest = newest.map(|newest| newest.max(rtt));
        let max = longest.unwrap_or(rtt).saturating_sub(base) + TIMESTAMP_TICK;
        let observed = self.observed.take();
        // Its least one-way delay was there when its base was.
        let more = (own - base).as_secs_f64();
        let observed = observed.map(|delay| delay.map(|s| (s + more).min(max.as_secs_f64())));
        let above = |rtt: Duration| rtt.saturating_sub(base).as_secs_f64();
        DelaySample {
            base,
            queueing: observed.unwrap_or_else(|| newest.map(above)),
            longest: observed.unwrap_or_else(|| longest.map(above)),
        }
    }

    /// The flow is nearly at rest beside other traffic with a queue. It cannot
    /// see the base, and must not forget it. A flat delay replaces the base:
    /// the path has become longer.
    pub(crate) fn keep(&mut self, now: Duration, sample: &DelaySample, out_of_order: u32) {
        self.base.keep(now);
        self.one_way.keep(now);
        let base = sample.base.as_secs_f64();
        if let Some(queue) = sample.longest
            && self.flat.is_longer_path(now, queue, base, out_of_order)
        {
            self.base = MinFilter::default();
            self.one_way = MinFilter::default();
        }
    }

    /// The flow is not at rest, so the queue may be its own. `carries_much` tells whether it
    /// carries much of what the path carries.
    pub(crate) fn move_on(&mut self, sample: &DelaySample, carries_much: bool) {
        self.flat.move_on(sample.longest, carries_much);
    }
}

/// By so much at most, and at most by this part of itself, the receiver's round-trip time may be
/// too short. The kernel takes it from ticks of timestamps, or from the time in which a window
/// arrives. If the window has just become smaller, more than that is on its way already.
const TOO_SHORT: Duration = TIMESTAMP_TICK.saturating_mul(3);
/// Half of what the shallowest queues hold.
const TOO_SHORT_PART: u32 = 8;

/// A receiver's round-trip time that is only a little shorter than the least that was measured
/// exactly, by acknowledged packets, is that one. One that is much shorter is true: the exact one
/// was measured while there was a queue, or on a longer path.
///
/// A base that is too short by a tick or two looks like a queue that nobody can empty.
fn not_too_short(rcv_rtt: Duration, exact: Option<Duration>) -> Duration {
    let exact = exact.filter(|exact| {
        let tolerance = TOO_SHORT.min(*exact / TOO_SHORT_PART);
        (*exact - tolerance..*exact).contains(&rcv_rtt)
    });
    exact.unwrap_or(rcv_rtt)
}

/// How long a smallest delay counts. Most traffic leaves the queue empty for a
/// moment within this time, and a new route is noticed (LEDBAT keeps minutes,
/// RFC 6817, section 3.4.2; BBR keeps 10 s).
const MIN_FILTER_MEMORY: Duration = Duration::from_secs(60);

/// The memory moves on in steps of this length.
const MIN_FILTER_STEP: Duration = Duration::from_secs(6);

/// A delay that is kept by [`MinFilter::keep`] is forgotten after this time.
const MAX_KEPT: Duration = Duration::from_secs(600);

/// The smallest value of the last minute.
#[derive(Debug, Clone)]
pub(crate) struct MinFilter<T> {
    /// When each step began, and the smallest value within it.
    steps: VecDeque<(Duration, T)>,
    /// When the smallest value was last measured.
    measured: Duration,
}

impl<T> Default for MinFilter<T> {
    fn default() -> Self {
        Self {
            steps: VecDeque::new(),
            measured: Duration::ZERO,
        }
    }
}

impl<T: Copy + Ord> MinFilter<T> {
    /// Takes a measured delay and returns the smallest.
    pub(crate) fn update(&mut self, now: Duration, delay: T) -> T {
        if self.min().is_none_or(|(_, min)| delay <= min) {
            self.measured = now;
        }
        match self.steps.back_mut() {
            Some((began, min)) if now < *began + MIN_FILTER_STEP => *min = delay.min(*min),
            _ => self.steps.push_back((now, delay)),
        }
        while self.steps.len() > 1 && self.steps[0].0 + MIN_FILTER_MEMORY <= now {
            self.steps.pop_front();
        }
        self.min().map_or(delay, |(_, min)| min)
    }

    /// Keeps the smallest value for up to ten minutes while it cannot be measured:
    /// others keep a queue, and a flow that yields to them cannot empty it.
    pub(crate) fn keep(&mut self, now: Duration) {
        let measured = self.measured;
        if now < measured + MAX_KEPT
            && let Some((_, min)) = self.min()
        {
            self.update(now, min);
            self.measured = measured;
        }
    }

    /// The smallest value, unless it was measured longer ago than it counts.
    pub(crate) fn recent(&self, now: Duration) -> Option<T> {
        let min = self.min()?;
        (now < self.measured + MIN_FILTER_MEMORY).then_some(min.1)
    }

    /// When the step with the smallest value began, and the value; `None` before the
    /// first one.
    pub(crate) fn min(&self) -> Option<(Duration, T)> {
        self.steps.iter().copied().min_by_key(|&(_, min)| min)
    }
}

/// Gain of the kernel's moving average of the receiver's round-trip time
/// (`tcp_rcv_rtt_update`).
const RTT_GAIN: f64 = 0.125;

/// Segments per acknowledgement, and so per echoed timestamp (delayed
/// acknowledgements, RFC 5681, section 4.2).
pub(super) const SEGMENTS_PER_UPDATE: u32 = 2;

/// An average that has not moved in this many samples with data had no update.
/// Echoes within the same tick of the timestamp clock are no update: after a
/// queue on a short path has gone, the kernel keeps reporting the old average.
const STILL_SAMPLES: u32 = 4;
/// The same for an average of whole ticks, on a flow that pauses. Equal samples
/// lead to such an average too, so it takes longer.
const STILL_SAMPLES_WHOLE_TICKS: u32 = 5;

/// Whether the handshake took less than a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShortPath {
    No,
    Yes {
        /// The flow pauses between two segments and the next two.
        pauses: bool,
    },
}

/// The round-trip times of one connection, computed back from the kernel's
/// moving average. A flow that yields gets few updates: with two segments per
/// round trip, the average takes twenty round trips to forget a queue.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RttSamples {
    last: Option<SmoothedRtt>,
    /// Samples in a row with new segments and the same average.
    still: u32,
}

#[derive(Debug, Clone, Copy)]
struct SmoothedRtt {
    at: Duration,
    smoothed: Duration,
    segments: u32,
}

impl RttSamples {
    /// The mean of what the kernel has measured since the last sample, from its
    /// average `smoothed` and the `segments` received so far; `None` if there
    /// was nothing to measure.
    pub(crate) fn newest(
        &mut self,
        now: Duration,
        smoothed: Duration,
        segments: u32,
        base: Duration,
        short: ShortPath,
    ) -> Option<Duration> {
        let sample = SmoothedRtt {
            at: now,
            smoothed,
            segments,
        };
        let Some(last) = self.last.replace(sample) else {
            return Some(smoothed);
        };
        let arrived = segments.wrapping_sub(last.segments);
        if arrived == 0 {
            return None;
        }
        self.still = if smoothed == last.smoothed {
            self.still + 1
        } else {
            0
        };
        let is_whole = smoothed
            .as_nanos()
            .is_multiple_of(TIMESTAMP_TICK.as_nanos());
        let limit = match short {
            ShortPath::No => None,
            ShortPath::Yes { pauses } if is_whole => pauses.then_some(STILL_SAMPLES_WHOLE_TICKS),
            ShortPath::Yes { .. } => Some(STILL_SAMPLES),
        };
        if limit.is_some_and(|limit| self.still >= limit) {
            self.still = 0;
            return Some(base.min(TIMESTAMP_TICK));
        }
        // No more than one update in each.
        let ticks = now
            .saturating_sub(last.at)
            .div_duration_f64(TIMESTAMP_TICK)
            .max(1.0);
        let updates = f64::from(arrived.div_ceil(SEGMENTS_PER_UPDATE)).min(ticks);
        let kept = (1.0 - RTT_GAIN).powf(updates);
        let (old, new) = (last.smoothed.as_secs_f64(), smoothed.as_secs_f64());
        // Never negative or infinite: `kept` is at most 7/8.
        let newest = old + (new - old) / (1.0 - kept);
        // Besides, the kernel takes the time of a whole window as it is if it
        // is shorter: that shows by values that cannot be.
        let newest = if newest < 0.98 * base.as_secs_f64() {
            new
        } else {
            newest
        };
        Some(Duration::from_secs_f64(newest))
    }
}

#[cfg(test)]
mod min_filter_tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_coarse_round_trip_is_no_shorter_than_an_exact_one_unless_by_much() {
        let exact = Some(Duration::from_micros(20_095));
        let of = |rcv_rtt| not_too_short(rcv_rtt, exact);
        assert_eq!(of(ms(18)), Duration::from_micros(20_095));
        assert_eq!(of(ms(21)), ms(21));
        assert_eq!(of(ms(17)), ms(17), "there was a queue");
        assert_eq!(not_too_short(ms(97), Some(ms(100))), ms(100));
        assert_eq!(not_too_short(ms(96), Some(ms(100))), ms(96));
        // A full queue of a quarter of the round trip.
        assert_eq!(not_too_short(ms(10), Some(ms(12))), ms(10));
        assert_eq!(not_too_short(ms(10), None), ms(10));
    }

    #[test]
    fn the_minimum_is_forgotten_after_a_minute() {
        let mut base = MinFilter::default();
        assert_eq!(base.min(), None);
        assert_eq!(base.update(ms(0), ms(40)), ms(40));
        for second in 1..60 {
            assert_eq!(base.update(ms(1000 * second), ms(55)), ms(40));
        }
        assert_eq!(base.update(ms(66_000), ms(60)), ms(55));
        assert_eq!(base.update(ms(66_100), ms(41)), ms(41));
    }

    #[test]
    fn a_minimum_that_cannot_be_measured_is_kept_for_ten_minutes() {
        let mut base = MinFilter::default();
        base.update(ms(1000), ms(40));
        let mut kept = Vec::new();
        for second in 2..800 {
            let now = ms(1000 * second);
            base.keep(now);
            kept.push(base.update(now, ms(70)));
        }
        assert_eq!(kept[500], ms(40));
        assert_eq!(kept[797], ms(70));
    }
}

#[cfg(test)]
mod path_tests {
    use super::*;

    #[test]
    fn what_others_know_of_the_path_counts_for_one_way_delays_too() {
        let ms = Duration::from_millis;
        let queueing = |path: LeastRtt| {
            let mut delays = QueueDelays::default();
            let mut newest = None;
            for look in 0..10_u32 {
                // There was a queue of 80 ms from the beginning.
                let arrivals = PacketArrivals {
                    delay_us: Some(1_000_000),
                    ..PacketArrivals::default()
                };
                let info = TcpInfo {
                    rcv_rtt: Some(ms(100)),
                    data_segs_in: Some(2 * look),
                    ..TcpInfo::parse(&[0; 240]).unwrap()
                };
                let now = ms(100) * look;
                delays.arrived(now, &arrivals);
                newest = delays.update(now, &info, ms(100), path, false).queueing;
            }
            newest
        };
        let known = LeastRtt {
            base: Some(ms(20)),
            handshake: None,
        };
        assert_eq!(queueing(LeastRtt::default()), Some(0.0));
        assert_eq!(queueing(known), Some(0.08));
    }
}

#[cfg(test)]
mod samples_tests {
    use super::*;

    const BASE: Duration = Duration::from_millis(100);

    /// The kernel's average after another sample.
    fn smooth(average: f64, sample: f64) -> f64 {
        average + RTT_GAIN * (sample - average)
    }

    fn newest(samples: &mut RttSamples, look: u64, average: f64, segments: u32) -> f64 {
        let now = Duration::from_millis(20 * look);
        let smoothed = Duration::from_secs_f64(average);
        let newest = samples.newest(now, smoothed, segments, BASE, ShortPath::No);
        newest.unwrap().as_secs_f64()
    }

    #[test]
    fn a_flow_of_two_segments_notices_an_emptied_queue_at_once() {
        let (mut samples, mut average) = (RttSamples::default(), 0.180);
        let _ = newest(&mut samples, 0, average, 0);
        for look in 1..4_u32 {
            average = smooth(average, 0.100);
            let seen = newest(&mut samples, u64::from(look), average, 2 * look);
            assert!((seen - 0.100).abs() < 1e-4, "{seen}");
        }
    }

    #[test]
    fn many_samples_count_by_their_mean() {
        let (mut samples, mut average) = (RttSamples::default(), 0.100);
        let _ = newest(&mut samples, 0, average, 0);
        for _ in 0..8 {
            average = smooth(average, 0.140);
        }
        let seen = newest(&mut samples, 1, average, 16);
        assert!((seen - 0.140).abs() < 1e-3, "{seen}");
    }

    #[test]
    fn no_update_gives_no_sample_and_an_impossible_value_is_kept() {
        let mut samples = RttSamples::default();
        let _ = newest(&mut samples, 0, 0.180, 2);
        let again = samples.newest(BASE, Duration::from_millis(180), 2, BASE, ShortPath::No);
        assert_eq!(again, None);
        // A whole window's time: 120 ms, and not an average of it.
        let seen = newest(&mut samples, 6, 0.120, 4);
        assert!((seen - 0.120).abs() < 1e-9, "{seen}");
    }

    /// At which of twenty looks, with so many new segments each, an average
    /// that stands still is taken for a path without a queue.
    fn still(average: Duration, segments: u32, short: ShortPath) -> Vec<u32> {
        let mut samples = RttSamples::default();
        let looks = (0..20).filter(|look| {
            let now = Duration::from_millis(300 * u64::from(*look));
            samples.newest(now, average, segments * look, BASE, short) == Some(TIMESTAMP_TICK)
        });
        looks.collect()
    }

    #[test]
    fn an_average_that_stands_still_means_a_path_shorter_than_a_tick() {
        let (pauses, flows) = (
            ShortPath::Yes { pauses: true },
            ShortPath::Yes { pauses: false },
        );
        let odd = Duration::from_micros(124_366);
        for short in [pauses, flows] {
            assert_eq!(still(odd, 3, short), [4, 8, 12, 16]);
            assert!(still(odd, 0, short).is_empty());
        }
        assert!(still(odd, 3, ShortPath::No).is_empty());
        // Others may keep a queue of the same length.
        assert!(still(27 * TIMESTAMP_TICK, 3, flows).is_empty());
        assert_eq!(still(27 * TIMESTAMP_TICK, 3, pauses), [5, 10, 15]);
    }
}
