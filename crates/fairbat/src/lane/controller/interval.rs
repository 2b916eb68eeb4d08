//! Bytes over a stretch of time, and their rate.

use std::time::Duration;

/// A sample counts for a moment that it misses by less than this.
const JITTER: Duration = Duration::from_millis(500);

/// Bytes moved since a moment.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Interval {
    pub(super) start: Duration,
    pub(super) bytes: u64,
}

impl Interval {
    pub(super) fn restart(&mut self, now: Duration) {
        *self = Self {
            start: now,
            bytes: 0,
        };
    }

    /// Whether it is so long by now.
    pub(super) fn lasts(&self, period: Duration, now: Duration) -> bool {
        now + JITTER >= self.start + period
    }

    /// Mean rate up to `now`, byte/s; 0 over no time.
    pub(super) fn rate(&self, now: Duration) -> f64 {
        let elapsed = now.saturating_sub(self.start).as_secs_f64();
        if elapsed > 0.0 {
            self.bytes as f64 / elapsed
        } else {
            0.0
        }
    }
}
