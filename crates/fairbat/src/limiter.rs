//! A ceiling on the bytes per second of all connections that share it.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How much an idle ceiling lets through at once.
const BURST_TIME: Duration = Duration::from_millis(100);

/// A virtual-scheduling rate limiter (ITU-T I.371, GCRA): each reservation
/// moves the moment up to which the rate is spoken for.
#[derive(Debug)]
pub(crate) struct RateLimiter {
    /// byte/s, at least 1.
    rate: f64,
    /// The moment, since the run's start, up to which the rate is used up.
    spoken_for: Mutex<Duration>,
}

impl RateLimiter {
    /// A ceiling of so many byte/s; at least 1.
    #[must_use]
    pub(crate) fn new(rate: u64) -> Self {
        Self {
            rate: rate.max(1) as f64,
            spoken_for: Mutex::new(Duration::ZERO),
        }
    }

    /// byte/s
    #[must_use]
    pub(crate) fn rate(&self) -> u64 {
        self.rate as u64
    }

    /// Reserves `bytes`; the caller waits for the returned time.
    pub(crate) fn reserve(&self, now: Duration, bytes: usize) -> Duration {
        let mut spoken_for = self
            .spoken_for
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let from = (*spoken_for).max(now.saturating_sub(BURST_TIME));
        *spoken_for = from + Duration::from_secs_f64(bytes as f64 / self.rate);
        spoken_for.saturating_sub(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_rate_is_the_ceiling() {
        let limiter = RateLimiter::new(1_000_000);
        let mut now = Duration::from_secs(5);
        for _ in 0..1000 {
            now += limiter.reserve(now, 10_000);
        }
        let elapsed = (now - Duration::from_secs(5)).as_secs_f64();
        assert!((9.89..=10.0).contains(&elapsed), "10 MB took {elapsed} s");
    }

    #[test]
    fn a_pause_saves_up_no_more_than_the_burst() {
        let limiter = RateLimiter::new(1000);
        limiter.reserve(Duration::ZERO, 1000);
        let wait = limiter.reserve(Duration::from_secs(3600), 1100);
        assert_eq!(wait, Duration::from_secs(1));
    }
}
