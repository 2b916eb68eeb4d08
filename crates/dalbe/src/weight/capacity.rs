//! The known capacity of a path without other traffic: the highest rate so far.

use std::time::Duration;

/// A rate is measured over at least this time, so that a queue, or a hole in
/// the sequence that is filled, does not make it look much larger.
const MIN_MEASUREMENT_TIME: Duration = Duration::from_millis(500);

/// An old peak loses half of its value in this time, s. So a path that has
/// become slower is noticed, and a path that has been held back for hours is
/// tried again.
const HALF_LIFE: f64 = 600.0;

/// A peak of more than this many times a best-effort rate comes from another
/// path or from a burst of the server, ...
const MAX_PEAK_PER_RATE: f64 = 16.0;
/// ... and shrinks by this factor in each such period.
const FADE_FACTOR: f64 = 0.7;

/// The highest recent rate.
#[derive(Debug, Clone, Copy, Default)]
pub struct CapacityEstimate {
    bin_began: Duration,
    bytes: u64,
    peak: f64,
    peak_at: Duration,
}

impl CapacityEstimate {
    /// `bytes` have arrived just now.
    pub fn record(&mut self, now: Duration, bytes: u64) {
        self.record_since(now, now, bytes);
    }

    /// `bytes` have arrived since `from`, and are counted now.
    pub fn record_since(&mut self, from: Duration, now: Duration, bytes: u64) {
        if self.bytes == 0 {
            self.bin_began = from;
        }
        self.bytes = self.bytes.saturating_add(bytes);
        let elapsed = now.saturating_sub(self.bin_began);
        if elapsed < MIN_MEASUREMENT_TIME {
            return;
        }
        let rate = self.bytes as f64 / elapsed.as_secs_f64();
        if rate >= self.rate(now) {
            self.peak = rate;
            self.peak_at = now;
        }
        self.bytes = 0;
    }

    /// Another connection has seen this rate at `at`, byte/s.
    pub fn learn(&mut self, at: Duration, rate: f64) {
        if rate > self.rate(at) {
            (self.peak, self.peak_at) = (rate, at);
        }
    }

    /// Flows of full weight had this rate, byte/s. Beside other traffic it is
    /// lower than the capacity, but not by orders of magnitude. If it is, the
    /// peak shrinks.
    pub fn lower_if_implausible(&mut self, rate: f64) {
        if rate * MAX_PEAK_PER_RATE < self.peak {
            self.peak *= FADE_FACTOR;
        }
    }

    /// The capacity, byte/s; 0 while it is unknown.
    #[must_use]
    pub fn rate(&self, now: Duration) -> f64 {
        let age = now.saturating_sub(self.peak_at).as_secs_f64();
        self.peak * (-age / HALF_LIFE).exp2()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn the_highest_rate_counts_and_fades() {
        let mut capacity = CapacityEstimate::default();
        assert_eq!(capacity.rate(at(0)), 0.0);
        for ms in (0..=2000).step_by(100) {
            capacity.record(at(ms), 1000);
        }
        let fast = capacity.rate(at(2000));
        assert!((10_000.0..=12_000.0).contains(&fast), "{fast}");
        for ms in (2100..=10_000).step_by(100) {
            capacity.record(at(ms), 10);
        }
        let later = capacity.rate(at(10_000));
        assert!((0.98 * fast..=fast).contains(&later), "{later} of {fast}");
        let half = capacity.rate(at(602_000));
        assert!((half / fast - 0.5).abs() < 0.01, "{half} of {fast}");
    }

    #[test]
    fn an_unconfirmed_peak_shrinks() {
        let mut capacity = CapacityEstimate::default();
        capacity.record(at(0), 500_000);
        capacity.record(at(500), 500_000);
        capacity.lower_if_implausible(130_000.0);
        assert_eq!(capacity.rate(at(500)), 2_000_000.0, "others may be there");
        for _ in 0..20 {
            capacity.lower_if_implausible(10_000.0);
        }
        let rate = capacity.rate(at(500));
        assert!((100_000.0..=160_000.0).contains(&rate), "{rate}");
    }

    #[test]
    fn a_burst_after_a_pause_is_spread_over_its_time() {
        let mut capacity = CapacityEstimate::default();
        capacity.record(at(0), 1);
        capacity.record(at(10), 100_000);
        assert_eq!(capacity.rate(at(10)), 0.0, "too short to tell");
        capacity.record(at(1000), 1);
        assert!((capacity.rate(at(1000)) - 100_002.0).abs() < 1.0);
    }
}
