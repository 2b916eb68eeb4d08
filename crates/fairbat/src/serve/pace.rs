//! The weight of one connection, by what its client wishes and by what got
//! through. Pure.
//!
//! A deadline is met as a lane of downloads meets one (`engine/pace.rs`): every
//! T_w the controller compares the rate with what the deadline asks for. Each
//! connection is on its own, and moves what its client says is left for it:
//! everything, for the first of several that begin together, until its next
//! request. That errs on the side of the deadline.

use std::time::Duration;

use dalbe::deadline::{Deadline, Demand};
use dalbe::weight::{FLOW_WEIGHT_PERIOD, FlowWeightController};
use dalbe::weight::{FlowTarget, MIN_WEIGHT};

use crate::http::priority::RequestPriority;

/// Two deadlines that differ by less than this are the same one, told twice:
/// the request took some time to come.
const SAME: Duration = Duration::from_secs(1);

/// How a response is to be sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Manner {
    /// As every server sends it: without a brake.
    Ordinary,
    /// With this weight, below 1.
    Weight(f64),
    /// So that a deadline is met, and no faster.
    By {
        /// Time until then.
        due: Duration,
        /// Bytes to move until then.
        remaining: u64,
        /// Least weight.
        least: f64,
    },
}

impl std::fmt::Display for Manner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ordinary => f.write_str("ordinary"),
            Self::Weight(w) => write!(f, "w={w}"),
            Self::By {
                due,
                remaining,
                least,
            } => write!(
                f,
                "due={} remaining={remaining} w={least}",
                due.as_secs_f64()
            ),
        }
    }
}

impl Manner {
    /// What a request wishes for a response of `length` bytes; `background` is
    /// for those that wish nothing.
    pub(super) fn of(wish: &RequestPriority, length: u64, background: bool) -> Self {
        let Some(terms) = &wish.hint else {
            return if wish.yields || background {
                Self::Weight(MIN_WEIGHT)
            } else {
                Self::Ordinary
            };
        };
        let least = terms.w.unwrap_or(MIN_WEIGHT);
        match terms.due {
            _ if least >= 1.0 => Self::Ordinary,
            None => Self::Weight(least),
            Some(due) => Self::By {
                due,
                remaining: terms.remaining.unwrap_or(length).max(length),
                least,
            },
        }
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Pace {
    manner: Manner,
    plan: Option<Plan>,
    steering: FlowWeightController,
    /// Its least weight.
    least: f64,
}

/// A deadline and what is due by then.
#[derive(Debug, Clone, Copy)]
struct Plan {
    begun: Duration,
    deadline: Deadline,
    remaining: u64,
}

impl Pace {
    /// For a connection that has carried nothing.
    pub(super) fn new() -> Self {
        Self {
            manner: Manner::Ordinary,
            plan: None,
            steering: FlowWeightController::new(MIN_WEIGHT, None),
            least: MIN_WEIGHT,
        }
    }

    /// A response begins; `is_next` if it follows another at once, so that
    /// the time in between is part of the rate.
    pub(super) fn begin(&mut self, now: Duration, manner: Manner, is_next: bool) {
        self.manner = manner;
        if let Manner::By {
            due,
            remaining,
            least,
        } = manner
        {
            let by = now.saturating_add(due);
            let same = self
                .plan
                .filter(|plan| plan.deadline.by().abs_diff(by) < SAME);
            let begun = same.map_or(now, |plan| plan.begun);
            self.plan = Some(Plan {
                begun,
                deadline: Deadline::new(begun, by),
                remaining,
            });
            if self.least != least {
                self.steering.set_min_weight(least);
                self.least = least;
            }
            if same.is_none() {
                self.control(now);
            }
        } else {
            self.plan = None;
        }
        if !is_next {
            self.steering.begin(now);
        }
    }

    /// So many more bytes have reached the client; what follows for the
    /// connection, `None` if it is not to be held back at all.
    pub(super) fn look(&mut self, now: Duration, carried: u64) -> Option<FlowTarget> {
        self.steering.delivered(now, carried);
        if let Some(plan) = &mut self.plan {
            plan.remaining = plan.remaining.saturating_sub(carried);
        }
        if now >= self.steering.period_start() + FLOW_WEIGHT_PERIOD {
            self.control(now);
        }
        let order = self.steering.target(now);
        match self.manner {
            Manner::Ordinary => None,
            Manner::Weight(w) => Some(FlowTarget { w, ..order }),
            Manner::By { .. } => Some(order),
        }
    }

    /// Ends a period; updates the weight by its rate.
    fn control(&mut self, now: Duration) {
        match self.plan {
            Some(plan) => {
                let demand = Demand::of(now, [(plan.deadline, plan.remaining)]);
                self.steering.sample(now, demand);
            }
            None => self.steering.begin(now),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::http::priority::DeadlineHint;

    const YIELDS: RequestPriority = RequestPriority {
        yields: true,
        hint: None,
    };

    fn terms(due: Option<u64>, remaining: Option<u64>, w: Option<f64>) -> RequestPriority {
        RequestPriority {
            yields: true,
            hint: Some(DeadlineHint {
                due: due.map(Duration::from_secs),
                remaining,
                w,
            }),
        }
    }

    #[test]
    fn who_wishes_nothing_is_not_held_back() {
        let none = RequestPriority::default();
        assert_eq!(Manner::of(&none, 5, false), Manner::Ordinary);
        assert_eq!(Manner::of(&none, 5, true), Manner::Weight(MIN_WEIGHT));
        assert_eq!(Manner::of(&YIELDS, 5, false), Manner::Weight(MIN_WEIGHT));
        let half = terms(None, Some(9), Some(0.5));
        assert_eq!(Manner::of(&half, 5, true), Manner::Weight(0.5));
        let whole = terms(Some(9), Some(9), Some(1.0));
        assert_eq!(Manner::of(&whole, 5, true), Manner::Ordinary);
        let due = |remaining| Manner::By {
            due: Duration::from_secs(9),
            remaining,
            least: MIN_WEIGHT,
        };
        assert_eq!(Manner::of(&terms(Some(9), None, None), 5, false), due(5));
        assert_eq!(
            Manner::of(&terms(Some(9), Some(50), None), 5, false),
            due(50)
        );
    }

    /// A connection that gets w/(1 + w) of a link beside one other flow;
    /// returns when `bytes` were there, at most at `end` seconds, and the
    /// largest weight after the first quarter: at first nothing is known of
    /// the link, and it has to be tried.
    fn run(due: u64, bytes: u64, link: f64, end: u64) -> (f64, f64) {
        let mut pace = Pace::new();
        let manner = Manner::of(&terms(Some(due), Some(bytes), None), bytes, false);
        pace.begin(Duration::ZERO, manner, false);
        let (mut acked, mut looked, mut most) = (0.0, 0, 0.0_f64);
        for step in 0..end * 50 {
            let now = Duration::from_millis(20 * step);
            let order = pace.look(now, acked as u64 - looked).unwrap();
            looked = acked as u64;
            if now > Duration::from_secs(due) / 4 {
                most = most.max(order.w);
            }
            acked += link * order.w / (1.0 + order.w) * 0.02;
            if acked >= bytes as f64 {
                return (now.as_secs_f64(), most);
            }
        }
        (end as f64, most)
    }

    #[test]
    fn a_deadline_that_can_be_met_is_met_and_takes_no_more_than_it_needs() {
        for share in [0.1, 0.3] {
            let (link, due) = (10e6, 60);
            let (done, most) = run(due, (share * link * due as f64) as u64, link, 90);
            assert!((40.0..=60.0).contains(&done), "{share}: {done}");
            assert!(most < 1.0, "{share}: {most}");
        }
    }

    #[test]
    fn a_deadline_that_cannot_be_met_gets_one_flows_share() {
        let (_, most) = run(20, 10_000_000_000, 10e6, 40);
        assert_eq!(most, 1.0);
    }

    #[test]
    fn what_was_learnt_lasts_from_request_to_request() {
        let mut pace = Pace::new();
        let chunk = 5_000_000;
        for step in 0..100 {
            let now = Duration::from_millis(100 * step);
            if step % 20 == 0 {
                let remaining = Some(1_000_000_000 - 1_000_000 * step);
                let wish = terms(Some(30 - step / 10), remaining, None);
                pace.begin(now, Manner::of(&wish, chunk, false), true);
            }
            pace.look(now, 100_000);
        }
        let urgent = pace.look(Duration::from_secs(10), 100_000).unwrap();
        assert_eq!(urgent.w, 1.0, "far too slow");
        assert!(urgent.capacity > 500_000.0, "{urgent:?}");
        pace.begin(Duration::from_secs(10), Manner::Weight(0.5), true);
        let half = pace.look(Duration::from_secs(10), 0);
        assert_eq!(half.map(|order| order.w), Some(0.5));
        pace.begin(Duration::from_secs(10), Manner::Ordinary, true);
        assert_eq!(pace.look(Duration::from_secs(10), 0), None);
    }

    proptest! {
        #[test]
        fn the_weight_stays_within_its_bounds(
            due in 0_u64..100_000,
            remaining in any::<u64>(),
            least in 0.02_f64..1.0,
            steps in prop::collection::vec((0_u64..5_000, any::<u32>()), 1..60),
        ) {
            let mut pace = Pace::new();
            let wish = terms(Some(due), Some(remaining), Some(least));
            pace.begin(Duration::ZERO, Manner::of(&wish, 1, false), false);
            let mut now = Duration::ZERO;
            for (millis, bytes) in steps {
                now += Duration::from_millis(millis);
                let order = pace.look(now, u64::from(bytes)).unwrap();
                prop_assert!((least..=1.0).contains(&order.w), "{order:?}");
                prop_assert!(order.capacity.is_finite());
            }
        }
    }
}
