//! Where a flow begins that another one goes before: at what that one carried at the end.
//!
//! Slow start would ask again what is known already, and those who share the path would feel it
//! each time.

use std::time::Duration;

use super::step::AFTER_GROWTH;
use super::{Phase, YieldingWindow};
use crate::receive_window::{ConnectionSample, MIN_WINDOW_SEGMENTS};

impl YieldingWindow {
    /// Whether it has not begun yet.
    pub(crate) fn is_new(&self) -> bool {
        self.window == 0.0
    }

    /// Begins at this rate, byte/s. A queue that is met then is answered as any other.
    pub(crate) fn begin_at(&mut self, now: Duration, sample: &ConnectionSample, rate: f64) {
        let base = sample.base.as_secs_f64();
        self.segment = sample.segment;
        self.window = (rate * base / sample.segment).max(MIN_WINDOW_SEGMENTS);
        self.levels.met = self.window;
        self.next_step = now + self.rounds.rtt(sample.base).mul_f64(AFTER_GROWTH);
        self.phase = Phase::Filling;
    }
}
