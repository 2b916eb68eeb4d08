//! When a run will be through, and how late: what a lane foretells, in terms of the
//! wall clock. Pure; that clock is an argument.

use std::time::Duration;

use jiff::Timestamp;

/// What is foretold of a run under way.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Prediction {
    /// When it will be through; `None` when nothing moves, or nobody knows how
    /// much there is.
    pub(super) end: Option<Timestamp>,
    /// By how much that is late, s; 0 when it is not, or not clearly; `None`
    /// without a deadline, and while nothing is known.
    pub(super) late_s: Option<f64>,
}

impl Prediction {
    /// `left` is what its lane gives it to its end, and `late` how late that is
    /// in s, where it is clear.
    pub(super) fn new(
        now: Timestamp,
        deadline: Option<Timestamp>,
        left: Option<Duration>,
        late: Option<f64>,
    ) -> Self {
        let end = left.and_then(|left| now.checked_add(left).ok());
        let late_s = deadline.and_then(|deadline| {
            let over = now.duration_since(deadline).as_secs_f64().max(0.0);
            match end {
                Some(_) => Some(late.unwrap_or(0.0).max(over)),
                // So late it is at least.
                None => (over > 0.0).then_some(over),
            }
        });
        Self { end, late_s }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn at(time: &str) -> Timestamp {
        format!("2026-03-02T{time}Z").parse().unwrap()
    }

    #[test]
    fn the_end_is_as_far_off_as_the_lane_has_it() {
        let foretold = Prediction::new(at("01:00:00"), None, Some(MINUTE), None);
        assert_eq!(foretold.end, Some(at("01:01:00")));
        assert_eq!(foretold.late_s, None, "there is no deadline");
    }

    #[test]
    fn late_is_only_what_is_clear() {
        let late = |late| {
            let deadline = Some(at("01:00:59"));
            Prediction::new(at("01:00:00"), deadline, Some(MINUTE), late).late_s
        };
        assert_eq!(late(None), Some(0.0), "a second may be chance");
        assert_eq!(late(Some(30.0)), Some(30.0));
    }

    #[test]
    fn when_nothing_moves_nothing_is_known_but_what_is_over() {
        let stuck = |deadline| Prediction::new(at("01:00:00"), Some(at(deadline)), None, None);
        assert_eq!(stuck("02:00:00"), Prediction::default());
        assert_eq!(stuck("00:59:50").late_s, Some(10.0));
        assert_eq!(stuck("00:59:50").end, None);
    }

    #[test]
    fn an_end_beyond_all_calendars_is_none() {
        let never = Some(Duration::MAX);
        let foretold = Prediction::new(at("01:00:00"), Some(at("02:00:00")), never, None);
        assert_eq!(foretold, Prediction::default());
    }
}
