//! The time, and whether somebody has set the wall clock.
//!
//! The clocks are read here and nowhere else in the daemon and the fleet. What follows from
//! them is pure. The wall clock is compared with the clock that counts from the start of the
//! machine, time asleep included. After a sleep the two still agree, so a run that
//! became due meanwhile is due.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp, Zoned};
use rustix::time::{ClockId, clock_gettime};

/// Smallest difference that counts as a step of the wall clock. Time servers slew the
/// clock by less, and the two clocks are not read at the same instant.
const MIN_STEP: SignedDuration = SignedDuration::from_secs(1);

/// Detects steps of the wall clock.
#[derive(Debug, Default)]
pub(crate) struct WallClock {
    /// The wall clock's time at the start of the machine, as of its last step.
    boot: Option<Timestamp>,
}

impl WallClock {
    /// Returns how far the wall clock was set since the last call. `now` is its time,
    /// and `uptime` the time since the start of the machine.
    pub(crate) fn step(&mut self, now: Timestamp, uptime: Duration) -> Option<SignedDuration> {
        let uptime = SignedDuration::try_from(uptime).ok()?;
        let boot = now.checked_sub(uptime).ok()?;
        let before = *self.boot.get_or_insert(boot);
        let step = boot.duration_since(before);
        if step.abs() < MIN_STEP {
            return None;
        }
        self.boot = Some(boot);
        Some(step)
    }
}

/// The time now, in the local time zone.
#[allow(clippy::disallowed_methods, reason = "the shell that reads the clock")]
pub(crate) fn now() -> Zoned {
    Zoned::now()
}

/// Time since the start of the machine, time asleep included.
pub(crate) fn uptime() -> Duration {
    let uptime = clock_gettime(ClockId::Boottime);
    Duration::try_from(uptime).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    #[test]
    fn a_step_is_seen_once_and_a_sleep_is_none() {
        let mut wall_clock = WallClock::default();
        let seconds = Duration::from_secs;
        assert_eq!(wall_clock.step(at(1_000_000), seconds(50)), None);
        assert_eq!(wall_clock.step(at(1_000_001), seconds(51)), None);
        // Asleep for a day.
        assert_eq!(wall_clock.step(at(1_086_401), seconds(86_451)), None);
        let back = SignedDuration::from_secs(-3_600);
        assert_eq!(wall_clock.step(at(1_082_802), seconds(86_452)), Some(back));
        assert_eq!(wall_clock.step(at(1_082_803), seconds(86_453)), None);
        let forth = SignedDuration::from_secs(7_200);
        assert_eq!(wall_clock.step(at(1_090_004), seconds(86_454)), Some(forth));
        assert_eq!(wall_clock.step(at(1_090_005), seconds(86_455)), None);
    }

    #[test]
    fn a_clock_that_is_dragged_along_is_not_set_but_when_it_has_come_far() {
        let mut wall_clock = WallClock::default();
        let mut told = SignedDuration::ZERO;
        for second in 0..3_000_u32 {
            // By a millisecond each second.
            let now = at(1_000_000) + SignedDuration::from_millis(i64::from(second) * 1_001);
            let step = wall_clock.step(now, Duration::from_secs(second.into()));
            told += step.unwrap_or_default();
        }
        let dragged = SignedDuration::from_millis(2_999);
        assert!((dragged - told).abs() < MIN_STEP, "{told:?}");
    }
}
