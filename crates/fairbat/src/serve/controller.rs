//! The weight of one connection: the controller that sets it, and the response
//! under way that it is for.
//!
//! A deadline is met as a lane of downloads meets one: every T_w the controller
//! compares the connection's rate with the rate that the deadline asks for. Each
//! connection has a controller of its own. It moves as many bytes as its client
//! says are left. The first of several connections that begin together is asked
//! for all of them until its next request, which errs on the side of the
//! deadline.

use std::collections::BTreeMap;
use std::time::Duration;

use dalbe::deadline::{Deadline, Demand};
use dalbe::sender::SenderCoupling;
use dalbe::weight::{
    ControllerPolicy, FLOW_WEIGHT_PERIOD, FlowTarget, FlowWeightController, MIN_WEIGHT,
};
use tokio::sync::watch;

use crate::http::priority::RequestPriority;

/// Two deadlines of one connection that differ by less than this are the same
/// one, stated twice: requests take some time to come.
const SAME_DEADLINE: Duration = Duration::from_secs(1);

/// How a response is sent.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) enum ResponseMode {
    /// As by any other server: not held back.
    #[default]
    Ordinary,
    /// With this weight, below 1.
    Weight(f64),
    /// With the weight that a deadline needs.
    By {
        /// Time until the deadline.
        due: Duration,
        /// Bytes to move until then.
        remaining: u64,
        /// Least weight.
        min_weight: f64,
    },
}

impl std::fmt::Display for ResponseMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ordinary => f.write_str("ordinary"),
            Self::Weight(w) => write!(f, "w={w}"),
            Self::By {
                due,
                remaining,
                min_weight,
            } => write!(
                f,
                "due={} remaining={remaining} w={min_weight}",
                due.as_secs_f64()
            ),
        }
    }
}

impl ResponseMode {
    /// The one of two that asks for more: the earlier deadline, or the larger weight. One with a
    /// deadline may need any weight.
    fn or_more_pressing(self, other: Self) -> Self {
        match (self, other) {
            (Self::Ordinary, _) | (_, Self::Ordinary) => Self::Ordinary,
            (Self::Weight(a), Self::Weight(b)) => Self::Weight(a.max(b)),
            (Self::By { due, .. }, Self::By { due: first, .. }) if first < due => other,
            (Self::By { .. }, _) => self,
            (Self::Weight(_), Self::By { .. }) => other,
        }
    }

    /// The mode for a response of `length` bytes. `background` decides if the
    /// request states no priority.
    pub(crate) fn of(priority: &RequestPriority, length: u64, background: bool) -> Self {
        let Some(hint) = &priority.hint else {
            return if priority.yields || background {
                Self::Weight(MIN_WEIGHT)
            } else {
                Self::Ordinary
            };
        };
        let min_weight = hint.w.unwrap_or(MIN_WEIGHT);
        match hint.due {
            _ if min_weight >= 1.0 => Self::Ordinary,
            None => Self::Weight(min_weight),
            Some(due) => Self::By {
                due,
                remaining: hint.remaining.unwrap_or(length).max(length),
                min_weight,
            },
        }
    }
}

/// The responses of a connection: those that answer requests tell it, and the
/// task that holds the connection back watches it.
#[derive(Debug, Clone)]
pub(crate) struct ResponseTracker(watch::Sender<ResponseState>);

/// The responses on a connection. Over HTTP/1.1 there is one at a time.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct ResponseState {
    /// How the most pressing of those that are under way is sent, or the last one. This outlasts
    /// the response: its end, or all of a short one, still waits in the kernel then.
    pub(crate) mode: ResponseMode,
    /// With which other connections it yields.
    pub(crate) coupling: SenderCoupling,
    /// Whether a response is under way.
    pub(crate) is_sending: bool,
    /// Changes of the mode so far, and responses begun.
    pub(crate) begun: u64,
    /// The responses under way, by their number.
    under_way: BTreeMap<u64, ResponseMode>,
}

impl ResponseState {
    /// Takes the mode of the most pressing response under way; returns whether that is another one.
    fn choose(&mut self) -> bool {
        self.is_sending = !self.under_way.is_empty();
        let modes = self.under_way.values().copied();
        let mode = modes.reduce(ResponseMode::or_more_pressing);
        let mode = mode.unwrap_or(self.mode);
        std::mem::replace(&mut self.mode, mode) != mode
    }
}

/// A response is under way until this is dropped.
#[derive(Debug)]
pub(crate) struct ResponseGuard {
    tracker: ResponseTracker,
    number: u64,
}

impl ResponseTracker {
    /// A tracker for a new connection, and the receiver that watches it.
    pub(crate) fn new() -> (Self, watch::Receiver<ResponseState>) {
        let (state, watched) = watch::channel(ResponseState::default());
        (Self(state), watched)
    }

    /// A response begins.
    pub(crate) fn begin(&self, mode: ResponseMode, coupling: SenderCoupling) -> ResponseGuard {
        let mut number = 0;
        self.0.send_modify(|state| {
            state.begun += 1;
            number = state.begun;
            state.coupling = coupling;
            state.under_way.insert(number, mode);
            state.choose();
        });
        ResponseGuard {
            tracker: self.clone(),
            number,
        }
    }
}

impl Drop for ResponseGuard {
    fn drop(&mut self) {
        self.tracker.0.send_modify(|state| {
            state.under_way.remove(&self.number);
            state.begun += u64::from(state.choose());
        });
    }
}

/// Sets the weight of one connection. Pure.
#[derive(Debug)]
pub(crate) struct ConnectionController {
    mode: ResponseMode,
    plan: Option<Plan>,
    weight: FlowWeightController,
    min_weight: f64,
}

/// A deadline and the bytes that are due by then.
#[derive(Debug, Clone, Copy)]
struct Plan {
    begun: Duration,
    deadline: Deadline,
    remaining: u64,
}

impl ConnectionController {
    /// A controller for a connection that has delivered nothing.
    pub(crate) fn new() -> Self {
        Self {
            mode: ResponseMode::Ordinary,
            plan: None,
            weight: FlowWeightController::new(ControllerPolicy::default(), MIN_WEIGHT, None),
            min_weight: MIN_WEIGHT,
        }
    }

    /// A response begins. `is_next` says that it follows another one at once, so
    /// that the time between them is part of the rate.
    pub(crate) fn begin(&mut self, now: Duration, mode: ResponseMode, is_next: bool) {
        self.mode = mode;
        if let ResponseMode::By {
            due,
            remaining,
            min_weight,
        } = mode
        {
            let by = now.saturating_add(due);
            let same = self
                .plan
                .filter(|plan| plan.deadline.by().abs_diff(by) < SAME_DEADLINE);
            let begun = same.map_or(now, |plan| plan.begun);
            self.plan = Some(Plan {
                begun,
                deadline: Deadline::new(begun, by),
                remaining,
            });
            if self.min_weight != min_weight {
                self.weight.set_min_weight(min_weight);
                self.min_weight = min_weight;
            }
            if same.is_none() {
                self.end_period(now);
            }
        } else {
            self.plan = None;
        }
        if !is_next {
            self.weight.begin(now);
        }
    }

    /// Counts bytes that have reached the client since the last call. Returns the
    /// connection's target; `None` if it is not held back.
    pub(crate) fn update(&mut self, now: Duration, delivered: u64) -> Option<FlowTarget> {
        self.weight.delivered(now, delivered);
        if let Some(plan) = &mut self.plan {
            plan.remaining = plan.remaining.saturating_sub(delivered);
        }
        if now >= self.weight.period_start() + FLOW_WEIGHT_PERIOD {
            self.end_period(now);
        }
        let target = self.weight.target(now);
        match self.mode {
            ResponseMode::Ordinary => None,
            ResponseMode::Weight(w) => Some(FlowTarget { w, ..target }),
            ResponseMode::By { .. } => Some(target),
        }
    }

    /// Ends a period, and sets the weight by its rate.
    fn end_period(&mut self, now: Duration) {
        match self.plan {
            Some(plan) => {
                let demand = Demand::of(now, [(plan.deadline, plan.remaining)]);
                self.weight.sample(now, demand);
            }
            None => self.weight.begin(now),
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

    fn hint(due: Option<u64>, remaining: Option<u64>, w: Option<f64>) -> RequestPriority {
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
    fn an_ordinary_client_is_not_held_back() {
        let none = RequestPriority::default();
        assert_eq!(ResponseMode::of(&none, 5, false), ResponseMode::Ordinary);
        assert_eq!(
            ResponseMode::of(&none, 5, true),
            ResponseMode::Weight(MIN_WEIGHT)
        );
        assert_eq!(
            ResponseMode::of(&YIELDS, 5, false),
            ResponseMode::Weight(MIN_WEIGHT)
        );
        let half = hint(None, Some(9), Some(0.5));
        assert_eq!(ResponseMode::of(&half, 5, true), ResponseMode::Weight(0.5));
        let whole = hint(Some(9), Some(9), Some(1.0));
        assert_eq!(ResponseMode::of(&whole, 5, true), ResponseMode::Ordinary);
        let due = |remaining| ResponseMode::By {
            due: Duration::from_secs(9),
            remaining,
            min_weight: MIN_WEIGHT,
        };
        assert_eq!(
            ResponseMode::of(&hint(Some(9), None, None), 5, false),
            due(5)
        );
        assert_eq!(
            ResponseMode::of(&hint(Some(9), Some(50), None), 5, false),
            due(50)
        );
    }

    /// A connection that gets w/(1 + w) of a link beside one other flow;
    /// returns when `bytes` were there, at most at `end` seconds, and the
    /// largest weight after the first quarter: at first nothing is known of
    /// the link, and it has to be tried.
    fn run(due: u64, bytes: u64, link: f64, end: u64) -> (f64, f64) {
        let mut controller = ConnectionController::new();
        let mode = ResponseMode::of(&hint(Some(due), Some(bytes), None), bytes, false);
        controller.begin(Duration::ZERO, mode, false);
        let (mut acked, mut looked, mut most) = (0.0, 0, 0.0_f64);
        for step in 0..end * 50 {
            let now = Duration::from_millis(20 * step);
            let target = controller.update(now, acked as u64 - looked).unwrap();
            looked = acked as u64;
            if now > Duration::from_secs(due) / 4 {
                most = most.max(target.w);
            }
            acked += link * target.w / (1.0 + target.w) * 0.02;
            if acked >= bytes as f64 {
                return (now.as_secs_f64(), most);
            }
        }
        (end as f64, most)
    }

    #[test]
    fn a_feasible_deadline_is_met_with_the_smallest_weight_needed() {
        for share in [0.1, 0.3] {
            let (link, due) = (10e6, 60);
            let (done, most) = run(due, (share * link * due as f64) as u64, link, 90);
            assert!((40.0..=60.0).contains(&done), "{share}: {done}");
            assert!(most < 1.0, "{share}: {most}");
        }
    }

    #[test]
    fn an_impossible_deadline_gets_the_share_of_one_flow() {
        let (_, most) = run(20, 10_000_000_000, 10e6, 40);
        assert_eq!(most, 1.0);
    }

    #[test]
    fn the_controller_keeps_its_estimate_between_requests() {
        let mut controller = ConnectionController::new();
        let chunk = 5_000_000;
        for step in 0..100 {
            let now = Duration::from_millis(100 * step);
            if step % 20 == 0 {
                let remaining = Some(1_000_000_000 - 1_000_000 * step);
                let priority = hint(Some(30 - step / 10), remaining, None);
                controller.begin(now, ResponseMode::of(&priority, chunk, false), true);
            }
            controller.update(now, 100_000);
        }
        let urgent = controller.update(Duration::from_secs(10), 100_000).unwrap();
        assert_eq!(urgent.w, 1.0, "far too slow");
        assert!(urgent.capacity > 500_000.0, "{urgent:?}");
        controller.begin(Duration::from_secs(10), ResponseMode::Weight(0.5), true);
        let half = controller.update(Duration::from_secs(10), 0);
        assert_eq!(half.map(|target| target.w), Some(0.5));
        controller.begin(Duration::from_secs(10), ResponseMode::Ordinary, true);
        assert_eq!(controller.update(Duration::from_secs(10), 0), None);
    }

    proptest! {
        #[test]
        fn the_weight_stays_within_its_bounds(
            due in 0_u64..100_000,
            remaining in any::<u64>(),
            min_weight in 0.02_f64..1.0,
            steps in prop::collection::vec((0_u64..5_000, any::<u32>()), 1..60),
        ) {
            let mut controller = ConnectionController::new();
            let priority = hint(Some(due), Some(remaining), Some(min_weight));
            controller.begin(Duration::ZERO, ResponseMode::of(&priority, 1, false), false);
            let mut now = Duration::ZERO;
            for (millis, bytes) in steps {
                now += Duration::from_millis(millis);
                let target = controller.update(now, u64::from(bytes)).unwrap();
                prop_assert!((min_weight..=1.0).contains(&target.w), "{target:?}");
                prop_assert!(target.capacity.is_finite());
            }
        }
    }
}

#[cfg(test)]
mod tracker_tests {
    use super::*;

    #[test]
    fn the_end_of_a_response_does_not_end_the_next() {
        let (tracker, watched) = ResponseTracker::new();
        assert!(!watched.borrow().is_sending);
        let first = tracker.begin(ResponseMode::Ordinary, SenderCoupling::EQUAL);
        let second = tracker.begin(ResponseMode::Weight(0.5), SenderCoupling::Apart);
        drop(first);
        assert!(watched.borrow().is_sending);
        drop(second);
        assert!(!watched.borrow().is_sending);
    }

    #[test]
    fn the_most_pressing_of_several_responses_counts() {
        let (tracker, watched) = ResponseTracker::new();
        let mode = || watched.borrow().mode;
        let by = |due| ResponseMode::By {
            due: Duration::from_secs(due),
            remaining: 1,
            min_weight: MIN_WEIGHT,
        };
        let begin = |mode| tracker.begin(mode, SenderCoupling::EQUAL);
        let _background = begin(ResponseMode::Weight(MIN_WEIGHT));
        let late = begin(by(60));
        let early = begin(by(5));
        assert_eq!(mode(), by(5));
        let ordinary = begin(ResponseMode::Ordinary);
        assert_eq!(mode(), ResponseMode::Ordinary);
        let begun = watched.borrow().begun;
        drop(ordinary);
        assert_eq!(mode(), by(5));
        assert!(watched.borrow().begun > begun, "the controller begins anew");
        drop((early, late));
        assert_eq!(mode(), ResponseMode::Weight(MIN_WEIGHT));
    }

    #[test]
    fn a_response_that_ends_at_once_is_noticed() {
        let (tracker, mut watched) = ResponseTracker::new();
        drop(tracker.begin(ResponseMode::Weight(0.5), SenderCoupling::Apart));
        assert!(watched.has_changed().expect("the tracker is there"));
        let expected = ResponseState {
            mode: ResponseMode::Weight(0.5),
            coupling: SenderCoupling::Apart,
            is_sending: false,
            begun: 1,
            under_way: BTreeMap::new(),
        };
        assert_eq!(*watched.borrow_and_update(), expected);
    }
}
