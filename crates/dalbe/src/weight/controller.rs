//! The deadline controller of a lane: the weight of its flows, from the demand
//! of the deadlines and the measured rate. Pure.

use serde::{Deserialize, Serialize};

use super::published::{PublishedMbc, PublishedPid};
use super::share::{DEMAND_HEADROOM, ShareController};
use super::{MIN_WEIGHT, WeightObservation};

/// The rule that sets w from the demand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ControllerPolicy {
    /// The project's own: model-based control with a price that is learnt.
    #[default]
    Share,
    /// DA-LBE's PID, eqs (7) to (10).
    Pid,
    /// Model-based control as in DA-LBE's fig. 7 and eq. (19), with the project's
    /// model and phi estimated from the rate.
    Mbc,
}

impl ControllerPolicy {
    /// All of them, the default first.
    pub const ALL: [Self; 3] = [Self::Share, Self::Pid, Self::Mbc];

    /// As it is written in flags and events.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Share => "share",
            Self::Pid => "pid",
            Self::Mbc => "mbc",
        }
    }

    /// How many times zeta the flows aim at.
    #[must_use]
    pub fn headroom(self) -> f64 {
        match self {
            Self::Share => DEMAND_HEADROOM,
            Self::Pid | Self::Mbc => 1.0,
        }
    }
}

/// The deadline controller of a lane.
#[derive(Debug, Clone)]
pub struct WeightController {
    policy: ControllerPolicy,
    law: Law,
    w_min: f64,
    w: f64,
    /// Whether a rate was wanted of the last period.
    had_demand: bool,
}

#[derive(Debug, Clone)]
enum Law {
    Share(ShareController),
    Pid(PublishedPid),
    Mbc(PublishedMbc),
}

impl WeightController {
    /// Flows weigh `w_min`, [`MIN_WEIGHT`] to 1, until a deadline asks for
    /// more.
    #[must_use]
    pub fn new(policy: ControllerPolicy, w_min: f64) -> Self {
        let w_min = w_min.clamp(MIN_WEIGHT, 1.0);
        Self {
            policy,
            law: match policy {
                ControllerPolicy::Share => Law::Share(ShareController::new(w_min)),
                ControllerPolicy::Pid => Law::Pid(PublishedPid::new(w_min)),
                ControllerPolicy::Mbc => Law::Mbc(PublishedMbc::new(w_min)),
            },
            w_min,
            w: w_min,
            had_demand: false,
        }
    }

    /// How many times zeta the flows aim at.
    #[must_use]
    pub fn headroom(&self) -> f64 {
        self.policy.headroom()
    }

    /// The weight now, w_min to 1.
    #[must_use]
    pub fn w(&self) -> f64 {
        self.w
    }

    /// Begins anew with another smallest weight.
    pub fn set_min_weight(&mut self, w_min: f64) {
        *self = Self::new(self.policy, w_min);
    }

    /// The weight for the next period.
    pub fn update(&mut self, seen: &WeightObservation) -> f64 {
        let flows = seen.flows.max(1.0);
        // Before a period in which a rate was wanted, and before anything has come, the
        // published controllers would take it for a rate that is far too low.
        let had_demand = std::mem::replace(&mut self.had_demand, seen.zeta > 0.0);
        let has_begun = seen.capacity > 0.0 && (had_demand || !self.had_demand);
        self.w = match &mut self.law {
            Law::Share(law) => law.update(seen, flows),
            Law::Pid(law) if has_begun => law.update(seen),
            Law::Mbc(law) if has_begun => law.update(seen, flows),
            Law::Pid(_) | Law::Mbc(_) => self.w,
        };
        self.w
    }

    /// There are `flows` flows now instead of `before`. Together they keep
    /// their weight.
    pub fn redistribute(&mut self, before: f64, flows: f64) -> f64 {
        if before == flows {
            return self.w;
        }
        self.w = (self.w * before / flows).clamp(self.w_min, 1.0);
        match &mut self.law {
            Law::Share(law) => law.set_w(self.w),
            Law::Pid(law) => law.set_w(self.w),
            Law::Mbc(law) => law.set_w(self.w),
        }
        self.w
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_event_names_a_policy_as_a_flag_does() {
        for policy in ControllerPolicy::ALL {
            let written = serde_json::to_value(policy).unwrap();
            assert_eq!(written, policy.name());
        }
    }

    /// A link of 100 with so many best-effort flows; returns the weights and the
    /// rates.
    fn closed_loop(
        controller: &mut WeightController,
        zeta: f64,
        others: f64,
        periods: usize,
    ) -> Vec<(f64, f64)> {
        let mut rate = 100.0 * controller.w() / (others + controller.w());
        (0..periods)
            .map(|_| {
                let w = controller.update(&WeightObservation {
                    period: Duration::from_secs(1),
                    zeta,
                    rate,
                    flows: 1.0,
                    capacity: 100.0,
                });
                rate = 100.0 * w / (others + w);
                (w, rate)
            })
            .collect()
    }

    #[test]
    fn each_controller_settles_at_the_rate_that_is_wanted() {
        for policy in ControllerPolicy::ALL {
            for others in [1.0, 3.0] {
                let mut controller = WeightController::new(policy, MIN_WEIGHT);
                let all = closed_loop(&mut controller, 15.0, others, 200);
                for (w, rate) in &all[150..] {
                    // 15 percent of headroom of the project's own.
                    assert!(
                        (14.0..=18.0).contains(rate),
                        "{policy:?} beside {others}: {rate} at {w}"
                    );
                }
            }
        }
    }

    #[test]
    fn each_controller_yields_where_nothing_is_due_and_goes_to_1_where_it_is_not_enough() {
        for policy in ControllerPolicy::ALL {
            let mut controller = WeightController::new(policy, MIN_WEIGHT);
            let (w, _) = *closed_loop(&mut controller, 60.0, 1.0, 200).last().unwrap();
            assert_eq!(w, 1.0, "{policy:?}");
            let (w, _) = *closed_loop(&mut controller, 0.0, 1.0, 200).last().unwrap();
            assert!(w < MIN_WEIGHT + 1e-9, "{policy:?}: {w}");
        }
    }

    #[test]
    fn fewer_flows_have_more_weight_each() {
        for policy in ControllerPolicy::ALL {
            let mut controller = WeightController::new(policy, MIN_WEIGHT);
            closed_loop(&mut controller, 20.0, 1.0, 100);
            let w = controller.w();
            assert!(w < 0.5, "{policy:?}");
            assert!((controller.redistribute(2.0, 1.0) - 2.0 * w).abs() < 1e-12);
            let wanted = 100.0 * 2.0 * w / (1.0 + 2.0 * w) / policy.headroom();
            for (next, _) in closed_loop(&mut controller, wanted, 1.0, 20) {
                let range = 1.5 * w..2.5 * w;
                assert!(range.contains(&next), "{policy:?}: {next} after {w}");
            }
            controller.redistribute(1.0, 2.0);
            assert_eq!(controller.redistribute(8.0, 1.0), 1.0);
        }
    }

    #[test]
    fn as_many_flows_as_before_change_nothing() {
        for policy in ControllerPolicy::ALL {
            let new = || WeightController::new(policy, MIN_WEIGHT);
            let (mut told, mut alone) = (new(), new());
            for _ in 0..30 {
                let of = |one: &mut _| closed_loop(one, 20.0, 1.0, 1);
                assert_eq!(of(&mut told), of(&mut alone), "{policy:?}");
                told.redistribute(1.0, 1.0);
            }
        }
    }

    #[test]
    fn a_demand_that_has_just_come_is_compared_with_no_rate_from_before() {
        for policy in [ControllerPolicy::Pid, ControllerPolicy::Mbc] {
            let mut controller = WeightController::new(policy, MIN_WEIGHT);
            let mut seen = WeightObservation {
                period: Duration::from_secs(1),
                zeta: 0.0,
                rate: 0.0,
                flows: 1.0,
                capacity: 100.0,
            };
            controller.update(&seen);
            seen.zeta = 1.0;
            assert_eq!(controller.update(&seen), MIN_WEIGHT, "{policy:?}");
            seen.rate = 1.0;
            assert!(controller.update(&seen) < 0.1, "{policy:?}");
        }
    }

    proptest! {
        #[test]
        fn w_stays_within_its_range_after_any_input(
            policy in prop::sample::select(ControllerPolicy::ALL.to_vec()),
            w_min in MIN_WEIGHT..=1.0,
            seen in prop::collection::vec(
                (any::<u32>(), any::<f64>(), any::<f64>(), any::<f64>(), any::<f64>()),
                1..100,
            ),
        ) {
            let mut one = WeightController::new(policy, w_min);
            let mut other = WeightController::new(policy, w_min);
            for (ms, zeta, rate, flows, capacity) in seen {
                let seen = WeightObservation {
                    period: Duration::from_millis(u64::from(ms)),
                    zeta,
                    rate,
                    flows,
                    capacity,
                };
                let w = one.update(&seen);
                prop_assert!((w_min..=1.0).contains(&w), "{w}");
                prop_assert_eq!(w.to_bits(), other.update(&seen).to_bits(), "deterministic");
            }
        }
    }
}
