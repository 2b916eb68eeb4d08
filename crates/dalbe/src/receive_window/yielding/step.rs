//! What the law goes by in one step.

use std::time::Duration;

/// Our own part of the queue, segments, times the square root of the window. n flows
/// then keep a queue that is only sqrt(n) times as long, and shares become equal.
const OWN_QUEUE: f64 = 0.4;

/// The measurements of one step, in segments and seconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    pub(crate) now: Duration,
    /// Whether the queue is long, and nothing that the flow has done lately explains it.
    pub(crate) has_come: bool,
    /// The data of a round trip without a queue.
    pub(crate) carried: f64,
    /// The used part of the window.
    pub(crate) used: f64,
    pub(crate) rtt: f64,
    /// Whether the window limits the flow.
    pub(crate) is_limiting: bool,
    /// The queue of this round.
    pub(crate) queue: f64,
    /// The longest queue that is no sign of others.
    pub(crate) target: f64,
    /// Time of a packet at the bottleneck.
    pub(crate) packet: f64,
    pub(crate) is_lost: bool,
    /// How long ago the queue before this one was seen.
    pub(crate) gap: f64,
}

impl Step {
    /// The moment so many round trips later.
    pub(crate) fn after(&self, round_trips: f64) -> Duration {
        self.now + Duration::from_secs_f64(self.rtt * round_trips)
    }

    /// Our own part of a queue, segments.
    pub(crate) fn own_queue(&self) -> f64 {
        OWN_QUEUE * self.carried.max(1.0).sqrt()
    }
}
