//! The one clock of a lab: seconds since the run began, the same for every
//! thread, so that a sample of the link and a completion of a fetch can be
//! laid beside each other.

use std::time::{Duration, Instant};

/// Moments of one run. Copies tell the same time.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    zero: Instant,
}

impl Clock {
    /// Starts at zero now.
    #[must_use]
    #[allow(clippy::disallowed_methods, reason = "the shell's clock")]
    pub fn start() -> Self {
        Self {
            zero: Instant::now(),
        }
    }

    /// Time since the start.
    #[must_use]
    pub fn now(self) -> Duration {
        self.zero.elapsed()
    }

    /// Time since the start, s.
    #[must_use]
    pub fn seconds(self) -> f64 {
        self.now().as_secs_f64()
    }

    /// What this clock calls `moment`, as an [`Instant`] to sleep until.
    #[must_use]
    pub fn at(self, moment: Duration) -> Instant {
        self.zero + moment
    }

    /// Blocks this thread until `moment`.
    pub fn sleep_until(self, moment: Duration) {
        std::thread::sleep(moment.saturating_sub(self.now()));
    }
}
