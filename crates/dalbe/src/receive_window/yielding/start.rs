//! Where a flow begins that another one goes before: at what that one carried at the end.
//!
//! Slow start would ask again what is known already, and those who share the path would feel it
//! each time.

use std::time::Duration;

use super::step::AFTER_BURST;
use super::{Phase, YieldingWindow};
use crate::receive_window::{ConnectionSample, MIN_WINDOW_SEGMENTS};

/// What flows over a path have found of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PathLevel {
    /// What they carried lately, byte/s: more than 0.
    pub rate: f64,
    /// What the path carries when nobody else uses it, byte/s; 0 if that is not known.
    pub capacity: f64,
}

impl YieldingWindow {
    /// Whether it has not begun yet.
    pub(crate) fn is_new(&self) -> bool {
        self.window == 0.0
    }

    /// Begins at this level.
    pub(crate) fn begin_at(&mut self, now: Duration, sample: &ConnectionSample, level: PathLevel) {
        let base = sample.base.as_secs_f64();
        let segments = |rate: f64| rate * base / sample.segment;
        self.segment = sample.segment;
        self.window = segments(level.rate).max(MIN_WINDOW_SEGMENTS);
        self.levels.capacity = level.capacity.max(level.rate) / sample.segment;
        (self.levels.capacity_at, self.levels.base) = (now, base);
        self.levels.met = self.window;
        self.next_step = now + self.rounds.rtt(sample.base).mul_f64(AFTER_BURST);
        self.burst_until = self.next_step;
        self.phase = Phase::Filling;
    }
}
