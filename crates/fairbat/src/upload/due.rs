//! The soft deadline of an upload, on the run's clock and on the wall clock.
//! Pure.

use std::time::Duration;

use dalbe::deadline::{Deadline, Demand};
use jiff::{SignedDuration, Timestamp};

use crate::clock::{Clock, JUMP};
use crate::lane::forecast::lateness;

/// See the module.
#[derive(Debug, Clone, Copy)]
pub(super) struct Due {
    moment: Timestamp,
    /// By how much the wall clock was off when this was planned.
    drift: SignedDuration,
    /// When it was planned, since the run's start.
    from: Duration,
    deadline: Deadline,
    /// It has been said that it will probably be missed.
    is_foretold: bool,
}

impl Due {
    /// A deadline at this moment, planned at the run's start.
    pub(super) fn new(moment: Timestamp, clock: Clock) -> Self {
        let drift = SignedDuration::ZERO;
        let by = clock.since_start(moment, drift);
        Self {
            moment,
            drift,
            from: Duration::ZERO,
            deadline: Deadline::new(Duration::ZERO, by),
            is_foretold: false,
        }
    }

    /// Plans anew when the wall clock, off by `drift` now, has been set since;
    /// says by how much.
    pub(super) fn notice_jump(
        &mut self,
        now: Duration,
        clock: Clock,
        drift: SignedDuration,
    ) -> Option<SignedDuration> {
        let jump = drift - self.drift;
        if jump.abs() < JUMP {
            return None;
        }
        let by = clock.since_start(self.moment, drift);
        *self = Self {
            drift,
            from: now,
            deadline: Deadline::new(now, by),
            is_foretold: false,
            ..*self
        };
        Some(jump)
    }

    /// What it asks for while so many bytes are to move.
    pub(super) fn demand(&self, now: Duration, remaining: u64) -> Option<Demand> {
        Demand::of(now, [(self.deadline, remaining)])
    }

    /// Time until it is over.
    pub(super) fn left(&self, now: Duration) -> Duration {
        self.deadline.by().saturating_sub(now)
    }

    /// How late `remaining` bytes will be at this rate, in s, if that is clear
    /// and has not been said yet.
    pub(super) fn foretell(&mut self, now: Duration, remaining: u64, rate: f64) -> Option<f64> {
        let late_s = lateness(now, self.deadline.by(), remaining, rate)?;
        (!std::mem::replace(&mut self.is_foretold, true)).then_some(late_s)
    }

    /// Bytes by which `remaining` of `total` are behind an even pace; negative
    /// when ahead.
    pub(super) fn lag(&self, now: Duration, remaining: u64, total: u64) -> f64 {
        let aim = self.deadline.aim();
        let all = aim.saturating_sub(self.from).as_secs_f64();
        let left = aim.saturating_sub(now).as_secs_f64();
        let even = if all > 0.0 {
            total as f64 * (left / all).min(1.0)
        } else {
            0.0
        };
        remaining as f64 - even
    }

    /// Whether what ends now is in time.
    pub(super) fn is_met(&self, now: Duration) -> bool {
        now <= self.deadline.by()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Due 100 s after the start; aims at 98 s.
    fn due() -> (Due, Clock) {
        let start: Timestamp = "2026-03-01T00:00:00Z".parse().unwrap();
        let clock = Clock::starting_at(start);
        (
            Due::new(start + SignedDuration::from_secs(100), clock),
            clock,
        )
    }

    #[test]
    fn lag_is_the_distance_to_an_even_pace() {
        let (due, _) = due();
        assert_eq!(due.lag(SECOND * 49, 500, 1000), 0.0);
        assert_eq!(due.lag(SECOND * 49, 700, 1000), 200.0);
        assert_eq!(due.lag(SECOND * 99, 10, 1000), 10.0);
        assert!(due.is_met(SECOND * 100) && !due.is_met(SECOND * 101));
    }

    #[test]
    fn a_clock_that_is_set_moves_the_deadline() {
        let (mut due, clock) = due();
        let adjusted = SignedDuration::from_millis(500);
        assert_eq!(due.notice_jump(SECOND, clock, adjusted), None);
        // 1000 s are needed, and 99 are left.
        assert_eq!(due.foretell(SECOND, 1000, 1.0), Some(901.0));
        assert_eq!(due.foretell(SECOND, 1000, 1.0), None, "it has been said");
        let set = SignedDuration::from_secs(40);
        assert_eq!(due.notice_jump(SECOND * 10, clock, set), Some(set));
        // The wall clock will show the moment 40 s sooner.
        assert!(due.is_met(SECOND * 60) && !due.is_met(SECOND * 61));
        assert_eq!(due.lag(SECOND * 10, 1000, 1000), 0.0);
        assert_eq!(due.foretell(SECOND * 10, 1000, 1.0), Some(950.0), "anew");
        assert_eq!(due.notice_jump(SECOND * 11, clock, set), None);
    }
}
