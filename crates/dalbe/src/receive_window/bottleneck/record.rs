//! The recent samples of a connection under test, and the rate that all tests
//! give.

use crate::receive_window::TIMESTAMP_TICK;
use std::collections::VecDeque;
use std::time::Duration;

/// Samples count for this many round trips and a second. CUBIC's sawtooth takes
/// some ten round trips on a short path and seconds on a long one.
const RECENT_ROUND_TRIPS: f64 = 20.0;
/// Samples count for at most this time, s.
const MAX_RECENT: f64 = 30.0;

/// One in this many delays may be wrong on either side: they are computed back
/// from the kernel's average.
const OUTLIER_DIVISOR: usize = 16;

/// One sample of a connection under test.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BottleneckSample {
    /// Round-trip time without a queue, s.
    pub(crate) base: f64,
    /// Queueing delay of the data since the last sample, s; `None` without data.
    pub(crate) queueing: Option<f64>,
    /// Bytes that have come, in order or not.
    pub(crate) arrived: f64,
    /// Largest segment, bytes.
    pub(crate) segment: f64,
    /// Window that is offered, bytes.
    pub(crate) window: f64,
    /// The level about which the window swings, bytes.
    pub(crate) level: f64,
    /// Whether nothing else decides on the window.
    pub(crate) is_steady: bool,
}

/// The recent samples.
#[derive(Debug, Clone, Default)]
pub(crate) struct BottleneckRecord {
    samples: VecDeque<(Duration, BottleneckSample)>,
}

pub(crate) fn seconds(s: f64) -> Duration {
    Duration::try_from_secs_f64(s).unwrap_or_default()
}

impl BottleneckRecord {
    /// Adds a sample. The round-trip time is `rtt`, s.
    pub(crate) fn add(&mut self, now: Duration, sample: BottleneckSample, rtt: f64) {
        self.samples.push_back((now, sample));
        let late = now.saturating_sub(seconds((RECENT_ROUND_TRIPS * rtt + 1.0).min(MAX_RECENT)));
        while self.samples.front().is_some_and(|&(at, _)| at < late) {
            self.samples.pop_front();
        }
    }

    /// When the last sample was taken.
    pub(crate) fn last_at(&self) -> Option<Duration> {
        self.samples.back().map(|&(at, _)| at)
    }

    /// Smallest and largest recent queueing delay, s.
    pub(crate) fn range(&self) -> Option<(f64, f64)> {
        let samples = self.samples.iter();
        let mut delays: Vec<f64> = samples.filter_map(|(_, sample)| sample.queueing).collect();
        delays.sort_by(f64::total_cmp);
        let wrong = delays.len() / OUTLIER_DIVISOR;
        Some((*delays.get(wrong)?, *delays.iter().rev().nth(wrong)?))
    }

    fn within(
        &self,
        from: Duration,
        until: Duration,
    ) -> impl Iterator<Item = &(Duration, BottleneckSample)> {
        let samples = self.samples.iter();
        samples.filter(move |&&(at, _)| from < at && at <= until)
    }

    /// Median queueing delay, s.
    pub(crate) fn queueing(&self, from: Duration, until: Duration) -> Option<f64> {
        let within = self.within(from, until);
        let mut delays: Vec<f64> = within.filter_map(|(_, sample)| sample.queueing).collect();
        delays.sort_by(f64::total_cmp);
        delays.get(delays.len() / 2).copied()
    }

    /// Bytes that have come in the last `time`: a window arrives in bunches,
    /// one in each round trip, and over any other time it would seem to swing.
    pub(crate) fn came_in(&self, now: Duration, time: f64) -> f64 {
        let from = now.saturating_sub(seconds(time));
        let newest_first = || self.samples.iter().rev();
        let (Some(&(at, before)), Some(&(_, last))) = (
            newest_first().find(|&&(at, _)| at <= from),
            newest_first().next(),
        ) else {
            return 0.0;
        };
        let after = newest_first().take_while(|&&(at, _)| at > from).last();
        let part = after.map_or(0.0, |&(after_at, after)| {
            let share = (from - at).div_duration_f64(after_at - at);
            (after.arrived - before.arrived) * share
        });
        last.arrived - before.arrived - part
    }

    /// The share of the offered windows since then that was used.
    pub(crate) fn used(&self, from: Duration, now: Duration) -> f64 {
        let samples = || self.within(from, now);
        let (Some((_, first)), Some((_, last))) = (samples().next(), samples().last()) else {
            return 0.0;
        };
        let (mut queueing, mut offered) = (0.0, 0.0);
        for (&(at, sample), &(next, _)) in samples().zip(samples().skip(1)) {
            queueing = sample.queueing.unwrap_or(queueing);
            offered += sample.window / (sample.base + queueing) * (next - at).as_secs_f64();
        }
        let used = (last.arrived - first.arrived) / offered;
        if used.is_finite() { used } else { 0.0 }
    }
}

/// What one delay is measured to, s.
pub(crate) const TICK: f64 = TIMESTAMP_TICK.as_secs_f64();

/// Error of a single test, ticks. The rest of it in the mean counts as delay,
/// so few tests give a low rate rather than a high one.
const TEST_ERROR: f64 = 0.9;

/// Weight of the older tests after a new one: about fourteen tests count.
const TEST_MEMORY: f64 = 0.93;

/// From this weight of tests on (three tests) there is a rate, and an outlier
/// is limited.
const MIN_TESTS: f64 = 2.5;

/// Largest result of a single test, in units of the expected one.
const MAX_OUTLIER: f64 = 3.0;

/// Weighted sums over the tests; the weight of each is its width.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RateEstimate {
    /// Bytes in flight that were added or taken away, and the delay of that.
    bytes: f64,
    delay: f64,
    weight: f64,
    tests: f64,
}

impl RateEstimate {
    /// How many tests there were; older ones count for less.
    pub(crate) fn tests(&self) -> f64 {
        self.tests
    }

    /// The expected delay of `bytes`, s; `None` while one more test
    /// may say something very different.
    pub(crate) fn expected(&self, bytes: f64) -> Option<f64> {
        (self.tests >= MIN_TESTS).then(|| bytes / self.rate())
    }

    /// Another test: so many bytes were added or taken away, which made so much
    /// delay, s. Wider tests count for more.
    pub(crate) fn add(&mut self, width: f64, bytes: f64, delay: f64) {
        let delay = self.expected(bytes).map_or(delay, |expected| {
            delay.clamp(-expected, MAX_OUTLIER * expected)
        });
        self.bytes = TEST_MEMORY * self.bytes + width * bytes;
        self.delay = TEST_MEMORY * self.delay + width * delay;
        self.weight = TEST_MEMORY * self.weight + width;
        self.tests = TEST_MEMORY * self.tests + 1.0;
    }

    /// byte/s; infinite while there are too few tests.
    pub(crate) fn rate(&self) -> f64 {
        if self.tests < MIN_TESTS {
            return f64::INFINITY;
        }
        let error = TEST_ERROR * TICK / self.tests;
        self.bytes / (self.delay.max(0.0) + error * self.weight)
    }
}
