//! The one place that reads clocks. Everything else gets `now` as an
//! argument, in time since the run's start.

use std::time::{Duration, Instant};

/// A monotonic clock that starts with the run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    start: Instant,
    /// The wall-clock moment of the start.
    wall_start: jiff::Timestamp,
}

impl Clock {
    #[allow(clippy::disallowed_methods, reason = "the shell that reads the clock")]
    pub(super) fn start() -> Self {
        Self {
            start: Instant::now(),
            wall_start: jiff::Timestamp::now(),
        }
    }

    /// Time since the start.
    pub(super) fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// The moment `since_start` as the runtime's timer wants it.
    pub(super) fn at(&self, since_start: Duration) -> tokio::time::Instant {
        (self.start + since_start).into()
    }

    /// A wall-clock moment on this clock; the past is the start itself.
    pub(super) fn since_start(&self, moment: jiff::Timestamp) -> Duration {
        Duration::try_from(moment.duration_since(self.wall_start)).unwrap_or_default()
    }
}
