//! A limit on the rate of everything that shares it.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::clock::Clock;

/// An idle limit lets this much time's worth of bytes through at once.
const BURST_TIME: Duration = Duration::from_millis(100);

/// A virtual-scheduling rate limiter (ITU-T I.371, GCRA): each reservation moves the moment
/// up to which the rate is used.
#[derive(Debug)]
pub struct RateLimit {
    clock: Clock,
    /// byte/s, at least 1.
    rate: f64,
    /// The rate is used up to this moment.
    used_until: Mutex<Duration>,
}

impl RateLimit {
    /// A limit of `rate` byte/s, at least 1.
    #[must_use]
    pub fn new(rate: u64) -> Self {
        Self {
            clock: Clock::start(),
            rate: rate.max(1) as f64,
            used_until: Mutex::new(Duration::ZERO),
        }
    }

    /// The rate, byte/s.
    pub(crate) fn rate(&self) -> u64 {
        self.rate as u64
    }

    /// Counts `bytes`, and returns the wait before the next ones may move.
    #[must_use]
    pub fn reserve(&self, bytes: usize) -> Duration {
        self.reserve_at(self.clock.now(), bytes)
    }

    fn reserve_at(&self, now: Duration, bytes: usize) -> Duration {
        let used_until = self.used_until.lock();
        let mut used_until = used_until.unwrap_or_else(PoisonError::into_inner);
        let from = (*used_until).max(now.saturating_sub(BURST_TIME));
        *used_until = from + Duration::from_secs_f64(bytes as f64 / self.rate);
        used_until.saturating_sub(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_rate_is_the_limit() {
        let limiter = RateLimit::new(1_000_000);
        let mut now = Duration::from_secs(5);
        for _ in 0..1000 {
            now += limiter.reserve_at(now, 10_000);
        }
        let elapsed = (now - Duration::from_secs(5)).as_secs_f64();
        assert!((9.89..=10.0).contains(&elapsed), "10 MB took {elapsed} s");
    }

    #[test]
    fn a_pause_saves_up_no_more_than_the_burst() {
        let limiter = RateLimit::new(1000);
        limiter.reserve_at(Duration::ZERO, 1000);
        let wait = limiter.reserve_at(Duration::from_secs(3600), 1100);
        assert_eq!(wait, Duration::from_secs(1));
    }
}
