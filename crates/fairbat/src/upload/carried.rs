//! What a path carries: bytes per second in the last control period. Pure.

use std::time::Duration;

/// The rate of the last period.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PeriodRate {
    /// When the period began, and the bytes carried until then.
    began: (Duration, u64),
    /// Rate in the period before, byte/s.
    rate: f64,
}

impl PeriodRate {
    /// A period is over; so many bytes were carried since the start.
    pub(super) fn end_period(&mut self, now: Duration, bytes: u64) {
        let (began, before) = self.began;
        let seconds = now.saturating_sub(began).as_secs_f64();
        if seconds > 0.0 {
            self.rate = bytes.saturating_sub(before) as f64 / seconds;
            self.began = (now, bytes);
        }
    }

    /// Byte/s.
    pub(super) fn get(&self) -> f64 {
        self.rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_that_of_the_last_period() {
        let mut rate = PeriodRate::default();
        assert!(rate.get() <= 0.0);
        for (second, bytes, expected) in [(2, 10, 5.0), (3, 10, 0.0), (3, 20, 0.0), (4, 30, 20.0)] {
            rate.end_period(Duration::from_secs(second), bytes);
            assert!((rate.get() - expected).abs() < 1e-9, "{second} {bytes}");
        }
    }
}
