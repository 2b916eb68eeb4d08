//! A ceiling on the rate of several requests together.

use std::time::Duration;

use crate::clock::Clock;
use crate::limiter::RateLimiter;

/// See the module.
#[derive(Debug)]
pub struct RateLimit {
    limiter: RateLimiter,
    clock: Clock,
}

impl RateLimit {
    /// So many byte/s; at least 1.
    #[must_use]
    pub fn new(rate: u64) -> Self {
        Self {
            limiter: RateLimiter::new(rate),
            clock: Clock::start(),
        }
    }

    /// How long whoever moves so many bytes has to wait before the next.
    #[must_use]
    pub fn reserve(&self, bytes: usize) -> Duration {
        self.limiter.reserve(self.clock.now(), bytes)
    }
}
