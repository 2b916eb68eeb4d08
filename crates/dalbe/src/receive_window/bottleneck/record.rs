//! What a connection has shown of late. Decides nothing.

use crate::receive_window::TIMESTAMP_TICK;
use std::collections::VecDeque;
use std::time::Duration;

/// Of late: so many round trips and a second, but no longer than this, s.
/// The sawtooth of CUBIC takes some ten of them on a short path, seconds on a
/// long one.
const LATE: f64 = 20.0;
const LATE_MOST: f64 = 30.0;

/// One in so many delays may be wrong on either side: they are computed back
/// from the kernel's mean.
const WRONG: usize = 16;

/// One look at the connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BottleneckSample {
    /// Round-trip time without a queue, s.
    pub(crate) base: f64,
    /// Queueing delay of what came since the last look, s; `None` if nothing
    /// came.
    pub(crate) queueing: Option<f64>,
    /// Bytes that have come, in order or not.
    pub(crate) arrived: f64,
    /// Largest segment, bytes.
    pub(crate) segment: f64,
    /// Window that is offered, bytes.
    pub(crate) window: f64,
    /// What it swings about, bytes.
    pub(crate) level: f64,
    /// Whether nothing else decides on the window.
    pub(crate) is_steady: bool,
}

/// See the module.
#[derive(Debug, Clone, Default)]
pub(crate) struct BottleneckRecord {
    looks: VecDeque<(Duration, BottleneckSample)>,
}

pub(crate) fn seconds(s: f64) -> Duration {
    Duration::try_from_secs_f64(s).unwrap_or_default()
}

impl BottleneckRecord {
    /// Another look; the round-trip time is now so long, s.
    pub(crate) fn add(&mut self, now: Duration, look: BottleneckSample, rtt: f64) {
        self.looks.push_back((now, look));
        let late = now.saturating_sub(seconds((LATE * rtt + 1.0).min(LATE_MOST)));
        while self.looks.front().is_some_and(|&(at, _)| at < late) {
            self.looks.pop_front();
        }
    }

    /// When the last one was.
    pub(crate) fn last_at(&self) -> Option<Duration> {
        self.looks.back().map(|&(at, _)| at)
    }

    /// Least and most queueing delay of late, s.
    pub(crate) fn range(&self) -> Option<(f64, f64)> {
        let looks = self.looks.iter();
        let mut delays: Vec<f64> = looks.filter_map(|(_, look)| look.queueing).collect();
        delays.sort_by(f64::total_cmp);
        let wrong = delays.len() / WRONG;
        Some((*delays.get(wrong)?, *delays.iter().rev().nth(wrong)?))
    }

    fn within(
        &self,
        from: Duration,
        until: Duration,
    ) -> impl Iterator<Item = &(Duration, BottleneckSample)> {
        let looks = self.looks.iter();
        looks.filter(move |&&(at, _)| from < at && at <= until)
    }

    /// Median queueing delay, s.
    pub(crate) fn queueing(&self, from: Duration, until: Duration) -> Option<f64> {
        let within = self.within(from, until);
        let mut delays: Vec<f64> = within.filter_map(|(_, look)| look.queueing).collect();
        delays.sort_by(f64::total_cmp);
        delays.get(delays.len() / 2).copied()
    }

    /// Bytes that have come in the last `time`: a window arrives in bunches,
    /// one in each round trip, and over any other time it would seem to swing.
    pub(crate) fn came_in(&self, now: Duration, time: f64) -> f64 {
        let from = now.saturating_sub(seconds(time));
        let newest_first = || self.looks.iter().rev();
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

    /// Which share of what was offered since then has come.
    pub(crate) fn used(&self, from: Duration, now: Duration) -> f64 {
        let looks = || self.within(from, now);
        let (Some((_, first)), Some((_, last))) = (looks().next(), looks().last()) else {
            return 0.0;
        };
        let (mut queueing, mut offered) = (0.0, 0.0);
        for (&(at, look), &(next, _)) in looks().zip(looks().skip(1)) {
            queueing = look.queueing.unwrap_or(queueing);
            offered += look.window / (look.base + queueing) * (next - at).as_secs_f64();
        }
        let used = (last.arrived - first.arrived) / offered;
        if used.is_finite() { used } else { 0.0 }
    }
}

/// What one delay is measured to, s.
pub(crate) const TICK: f64 = TIMESTAMP_TICK.as_secs_f64();

/// Error of a single test, ticks. What is left of it in the mean of all is
/// taken for delay: as long as little is known, a rate is rather found too low.
const ERROR: f64 = 0.9;

/// Part of the older tests that is left after a new one: about fourteen count.
const KEPT: f64 = 0.93;

/// From three tests on they say something, and one alone is not believed to be
/// very different.
const ENOUGH: f64 = 2.5;

/// Most that a test may say, in what was expected.
const MOST: f64 = 3.0;

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

    /// The delay to be expected of so many bytes, s; `None` while one more test
    /// may say something very different.
    pub(crate) fn expected(&self, bytes: f64) -> Option<f64> {
        (self.tests >= ENOUGH).then(|| bytes / self.rate())
    }

    /// Another test: so many bytes were added or taken away, which made so much
    /// delay, s. Wider tests count for more.
    pub(crate) fn add(&mut self, width: f64, bytes: f64, delay: f64) {
        let delay = self
            .expected(bytes)
            .map_or(delay, |expected| delay.clamp(-expected, MOST * expected));
        self.bytes = KEPT * self.bytes + width * bytes;
        self.delay = KEPT * self.delay + width * delay;
        self.weight = KEPT * self.weight + width;
        self.tests = KEPT * self.tests + 1.0;
    }

    /// byte/s; infinite while there are too few tests.
    pub(crate) fn rate(&self) -> f64 {
        if self.tests < ENOUGH {
            return f64::INFINITY;
        }
        let error = ERROR * TICK / self.tests;
        self.bytes / (self.delay.max(0.0) + error * self.weight)
    }
}
