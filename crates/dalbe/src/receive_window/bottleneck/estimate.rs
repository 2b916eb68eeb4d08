//! The rate that all tests together speak for. Knows nothing of how they are
//! made.

use crate::receive_window::limits;

/// What one delay is measured to, s.
pub(super) const TICK: f64 = limits::TICK.as_secs_f64();

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
pub(super) struct Estimate {
    /// Bytes in flight that were added or taken away, and the delay of that.
    bytes: f64,
    delay: f64,
    weight: f64,
    tests: f64,
}

impl Estimate {
    /// How many tests there were; older ones count for less.
    pub(super) fn tests(&self) -> f64 {
        self.tests
    }

    /// The delay to be expected of so many bytes, s; `None` while one more test
    /// may say something very different.
    pub(super) fn expected(&self, bytes: f64) -> Option<f64> {
        (self.tests >= ENOUGH).then(|| bytes / self.rate())
    }

    /// Another test: so many bytes were added or taken away, which made so much
    /// delay, s. Wider tests count for more.
    pub(super) fn add(&mut self, width: f64, bytes: f64, delay: f64) {
        let delay = self
            .expected(bytes)
            .map_or(delay, |expected| delay.clamp(-expected, MOST * expected));
        self.bytes = KEPT * self.bytes + width * bytes;
        self.delay = KEPT * self.delay + width * delay;
        self.weight = KEPT * self.weight + width;
        self.tests = KEPT * self.tests + 1.0;
    }

    /// byte/s; infinite while there are too few tests.
    pub(super) fn rate(&self) -> f64 {
        if self.tests < ENOUGH {
            return f64::INFINITY;
        }
        let error = ERROR * TICK / self.tests;
        self.bytes / (self.delay.max(0.0) + error * self.weight)
    }
}
