//! When to look for processes and sockets.

use std::time::Duration;

/// Time between two looks where connections are told.
const PERIOD: Duration = Duration::from_secs(1);

/// The same where they are found by looking only.
const SEARCH_PERIOD: Duration = Duration::from_millis(100);

/// Shortest time between two looks.
pub(super) const MIN_PERIOD: Duration = Duration::from_millis(200);

/// When the last look was, and what calls for the next one.
#[derive(Debug)]
pub(super) struct Looks {
    /// Whether connections are told.
    pub(super) has_notices: bool,
    /// Whether what is found now has been there before.
    pub(super) is_first: bool,
    /// Whether a socket is not where it was.
    pub(super) is_missing: bool,
    at: Duration,
}

impl Looks {
    /// There has been none.
    pub(super) fn new() -> Self {
        Self {
            has_notices: false,
            is_first: true,
            is_missing: true,
            at: Duration::ZERO,
        }
    }

    /// When the next one is due, unless something is missing before.
    pub(super) fn next(&self) -> Duration {
        let period = if self.has_notices {
            PERIOD
        } else {
            SEARCH_PERIOD
        };
        self.at + period
    }

    /// Whether one is due now.
    pub(super) fn is_due(&self, now: Duration) -> bool {
        let is_missed = self.is_missing && now >= self.at + MIN_PERIOD;
        self.is_first || is_missed || now >= self.next()
    }

    /// A look begins.
    pub(super) fn begin(&mut self, now: Duration) {
        self.at = now;
        self.is_missing = false;
    }
}
