//! What time it is, and whether somebody has set the wall clock. The clocks are
//! read in one place; what is made of them is pure.
//!
//! The other clock is that which counts from the start of the machine, time asleep
//! included: after a sleep the two still agree, and what was due is due.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp, Zoned};
use rustix::time::{ClockId, clock_gettime};

/// Below this it is no step: time servers drag the clock along by less, and the two
/// clocks are not read in the same moment.
const STEP: SignedDuration = SignedDuration::from_secs(1);

/// The wall clock beside that of the machine.
#[derive(Debug, Default)]
pub(super) struct Clocks {
    /// What the wall clock showed at the start of the machine, by the clock as it
    /// was set last.
    start: Option<Timestamp>,
}

impl Clocks {
    /// The wall clock says `now`, and the machine has been up for so long. Returns
    /// by how much the wall clock was set since the last time.
    pub(super) fn look(&mut self, now: Timestamp, up: Duration) -> Option<SignedDuration> {
        let up = SignedDuration::try_from(up).ok()?;
        let start = now.checked_sub(up).ok()?;
        let before = *self.start.get_or_insert(start);
        let step = start.duration_since(before);
        if step.abs() < STEP {
            return None;
        }
        self.start = Some(start);
        Some(step)
    }
}

/// The moment, in the local time zone.
#[allow(clippy::disallowed_methods, reason = "the shell that reads the clock")]
pub(super) fn now() -> Zoned {
    Zoned::now()
}

/// For how long the machine has been up, time asleep included.
pub(super) fn up() -> Duration {
    let up = clock_gettime(ClockId::Boottime);
    Duration::try_from(up).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    #[test]
    fn a_step_is_seen_once_and_a_sleep_is_none() {
        let mut clocks = Clocks::default();
        let seconds = Duration::from_secs;
        assert_eq!(clocks.look(at(1_000_000), seconds(50)), None);
        assert_eq!(clocks.look(at(1_000_001), seconds(51)), None);
        // Asleep for a day.
        assert_eq!(clocks.look(at(1_086_401), seconds(86_451)), None);
        let back = SignedDuration::from_secs(-3_600);
        assert_eq!(clocks.look(at(1_082_802), seconds(86_452)), Some(back));
        assert_eq!(clocks.look(at(1_082_803), seconds(86_453)), None);
        let forth = SignedDuration::from_secs(7_200);
        assert_eq!(clocks.look(at(1_090_004), seconds(86_454)), Some(forth));
        assert_eq!(clocks.look(at(1_090_005), seconds(86_455)), None);
    }

    #[test]
    fn a_clock_that_is_dragged_along_is_not_set_but_when_it_has_come_far() {
        let mut clocks = Clocks::default();
        let mut told = SignedDuration::ZERO;
        for second in 0..3_000_u32 {
            // By a millisecond each second.
            let now = at(1_000_000) + SignedDuration::from_millis(i64::from(second) * 1_001);
            let step = clocks.look(now, Duration::from_secs(second.into()));
            told += step.unwrap_or_default();
        }
        let dragged = SignedDuration::from_millis(2_999);
        assert!((dragged - told).abs() < STEP, "{told:?}");
    }
}
