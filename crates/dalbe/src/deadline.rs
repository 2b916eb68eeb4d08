//! zeta: the lowest rate that still meets the soft deadlines.
//!
//! DA-LBE (Hayes et al. 2017, NEAT D3.2 Appendix B) eq. (6) for one transfer,
//! zeta = data remaining / (t_D − t); for several it becomes the processor
//! demand of an earliest-deadline-first schedule (Jackson 1955; Baruah,
//! Rosier and Howell 1990): the largest, over all deadlines D, of the work
//! due no later than D divided by the time until D. Knows nothing of
//! connections, files or clocks.

use std::time::Duration;

/// Reserve before the deadline, as a share of a transfer's window. At its full
/// weight a transfer is one ordinary connection and cannot make up for a busy
/// minute, so it has to be ahead before.
const MARGIN_SHARE: f64 = 0.1;

/// Smallest reserve before a deadline. The last chunk is cut for about four
/// seconds and ends anywhere within them, two on average.
const MIN_MARGIN: Duration = Duration::from_secs(2);

/// The aim stays at least this share of the time left away, so that a transfer
/// that is late for its aim speeds up with a finite rate.
const MIN_AIM_SHARE: f64 = 0.1;

/// Least time over which a demand is spread, s. It keeps zeta finite when no
/// time is left. It is short beside the period of any controller, so moving at
/// zeta does reach the end.
const MIN_HORIZON: f64 = 0.1;

/// A transfer that ends in time within this many periods keeps its weight.
const LAST_PERIODS: f64 = 2.0;

/// A soft deadline, and how much earlier to aim.
///
/// Points in time are durations since the start of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline {
    by: Duration,
    margin: Duration,
}

impl Deadline {
    /// The deadline `by` of a transfer that starts at `start`.
    ///
    /// Aims early by 10 % of the window between the two, by 2 s at least, but
    /// never by more than half of the window. A deadline before `start` is
    /// missed from the beginning.
    #[must_use]
    pub fn new(start: Duration, by: Duration) -> Self {
        let window = by.saturating_sub(start);
        let margin = window.mul_f64(MARGIN_SHARE).max(MIN_MARGIN).min(window / 2);
        Self { by, margin }
    }

    /// The deadline `by` of a transfer that aims at it and no earlier, as eq.
    /// (6) has it.
    #[must_use]
    pub fn exact(by: Duration) -> Self {
        let margin = Duration::ZERO;
        Self { by, margin }
    }

    /// The deadline itself.
    #[must_use]
    pub fn by(&self) -> Duration {
        self.by
    }

    /// The time to aim at, a margin before the deadline.
    #[must_use]
    pub fn aim(&self) -> Duration {
        self.by.saturating_sub(self.margin)
    }

    /// Whether the deadline is over.
    #[must_use]
    pub fn is_over(&self, now: Duration) -> bool {
        now >= self.by
    }

    /// Seconds over which what remains at `now` is to be spread; at least 0.1.
    fn time_left(&self, now: Duration) -> f64 {
        let left = self.by.saturating_sub(now);
        left.saturating_sub(self.margin)
            .as_secs_f64()
            .max(left.as_secs_f64() * MIN_AIM_SHARE)
            .max(MIN_HORIZON)
    }
}

/// What the deadlines of a lane ask for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Demand {
    /// The lowest rate that still meets every deadline that can be met,
    /// byte/s; finite, at least 0.
    pub zeta: f64,
    /// Bytes still to move in transfers with a deadline.
    pub remaining: u64,
    /// Those of them whose deadline is over.
    pub overdue: u64,
}

impl Demand {
    /// The demand at `now` of transfers with these deadlines and bytes
    /// remaining, in any order; `None` without any.
    pub fn of(now: Duration, due: impl IntoIterator<Item = (Deadline, u64)>) -> Option<Self> {
        let mut due: Vec<_> = due.into_iter().collect();
        // Of transfers that are due at the same time, the one with the widest
        // margin comes last: it has to wait for all of them.
        due.sort_by_key(|(deadline, _)| (deadline.by, deadline.margin));
        let nothing = Self {
            zeta: 0.0,
            remaining: 0,
            overdue: 0,
        };
        (!due.is_empty()).then(|| {
            due.into_iter().fold(nothing, |sum, (deadline, bytes)| {
                sum.and(now, deadline, bytes)
            })
        })
    }

    /// Whether the remaining data arrives in time, within the last periods of
    /// this length, at this rate, byte/s. Near the end the demand falls to
    /// nothing. A controller that follows it would let go of a flow that is
    /// about to finish.
    #[must_use]
    pub fn is_nearly_over(&self, rate: f64, period: Duration) -> bool {
        self.remaining > 0
            && self.zeta <= rate
            && (self.remaining as f64) < rate * LAST_PERIODS * period.as_secs_f64()
    }

    /// Adds a transfer whose deadline is no earlier than the others'.
    fn and(self, now: Duration, deadline: Deadline, bytes: u64) -> Self {
        let remaining = self.remaining.saturating_add(bytes);
        Self {
            zeta: self.zeta.max(remaining as f64 / deadline.time_left(now)),
            remaining,
            overdue: if deadline.is_over(now) {
                remaining
            } else {
                self.overdue
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn secs(s: f64) -> Duration {
        Duration::from_secs_f64(s)
    }

    fn deadline(by: f64) -> Deadline {
        Deadline::new(Duration::ZERO, secs(by))
    }

    #[test]
    fn no_deadline_makes_no_demand() {
        assert_eq!(Demand::of(Duration::ZERO, []), None);
    }

    #[test]
    fn one_transfer_aims_a_tenth_of_its_window_before_its_deadline() {
        let demand = Demand::of(secs(0.0), [(deadline(1000.0), 900)]).unwrap();
        assert!((demand.zeta - 1.0).abs() < 1e-9, "{demand:?}");
        let later = Demand::of(secs(450.0), [(deadline(1000.0), 450)]).unwrap();
        assert!(
            (later.zeta - 1.0).abs() < 1e-9,
            "on plan, zeta stays: {later:?}"
        );
    }

    #[test]
    fn the_margin_is_at_least_two_seconds_and_at_most_half_the_window() {
        assert_eq!(deadline(15.0).margin, secs(2.0));
        assert_eq!(deadline(3.0).margin, secs(1.5));
        assert_eq!(deadline(7200.0).margin, secs(720.0));
        assert_eq!(Deadline::new(secs(9.0), secs(5.0)).margin, Duration::ZERO);
    }

    #[test]
    fn an_urgent_transfer_behind_a_big_one_raises_the_demand() {
        // 100 bytes due at 100 s (aim 90 s) alone ask for 1.1 byte/s; the 9,900
        // due at 1000 s (aim 900 s) for 10,000/900 together.
        let small = (deadline(100.0), 100);
        let big = (deadline(1000.0), 9_900);
        let both = Demand::of(Duration::ZERO, [big, small]).unwrap();
        assert!((both.zeta - 10_000.0 / 900.0).abs() < 1e-9, "{both:?}");
        let urgent = Demand::of(
            Duration::ZERO,
            [(deadline(100.0), 2_000), (deadline(1000.0), 100)],
        );
        assert!((urgent.unwrap().zeta - 2_000.0 / 90.0).abs() < 0.1);
    }

    #[test]
    fn bytes_past_their_deadline_are_overdue_and_others_are_not() {
        let demand = Demand::of(secs(20.0), [(deadline(30.0), 7), (deadline(10.0), 5)]).unwrap();
        assert_eq!((demand.overdue, demand.remaining), (5, 12));
    }

    #[test]
    fn the_widest_margin_counts_for_transfers_due_at_once() {
        let by = Duration::from_secs(1000);
        let early = Deadline::new(Duration::ZERO, by);
        let late = Deadline::new(secs(890.0), by);
        assert!(early.margin > late.margin);
        let demand = |due| Demand::of(secs(900.0), due).unwrap().zeta;
        let zeta = demand([(early, 500), (late, 500)]);
        assert_eq!(zeta, 1000.0 / early.time_left(secs(900.0)));
        assert_eq!(zeta, demand([(late, 500), (early, 500)]));
    }

    #[test]
    fn a_transfer_at_rate_zeta_ends_before_the_deadline() {
        for window in [5.0, 60.0, 600.0, 86_400.0] {
            let (mut left, mut t) = (1e9, 0.0);
            let step = window / 20_000.0;
            while left >= 1e5 {
                let due = [(deadline(window), left as u64)];
                left -= Demand::of(secs(t), due).unwrap().zeta * step;
                t += step;
            }
            assert!((0.5..=1.0).contains(&(t / window)), "{t} of {window}");
            assert!(window < 100.0 || t / window < 0.935, "{t} of {window}");
        }
    }

    proptest! {
        #[test]
        fn zeta_is_finite_and_enough_for_every_prefix(
            now in 0_u64..10_000,
            due in prop::collection::vec((0_u64..1_000, 0_u64..10_000, any::<u64>()), 1..8),
        ) {
            let now = Duration::from_millis(now);
            let due: Vec<_> = due
                .into_iter()
                .map(|(start, by, bytes)| {
                    (Deadline::new(Duration::from_millis(start), Duration::from_millis(by)), bytes)
                })
                .collect();
            let demand = Demand::of(now, due.iter().copied()).unwrap();
            prop_assert!(demand.zeta.is_finite() && demand.zeta >= 0.0);
            prop_assert!(demand.overdue <= demand.remaining);
            for (last, _) in &due {
                let work = due
                    .iter()
                    .filter(|(deadline, _)| deadline.by <= last.by)
                    .fold(0_u64, |sum, (_, bytes)| sum.saturating_add(*bytes));
                prop_assert!(demand.zeta >= work as f64 / last.time_left(now) * (1.0 - 1e-12));
            }
        }
    }
}
