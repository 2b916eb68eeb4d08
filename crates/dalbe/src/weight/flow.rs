//! The weight of one connection that this end sends, from the demand of its
//! deadline and the bytes that have reached the other end.
//!
//! It is the controller of a lane for one connection. There is no m, because
//! one request is one connection. Pure.

use std::time::Duration;

use crate::deadline::Demand;
use crate::weight::CapacityEstimate;
use crate::weight::FlowTarget;
use crate::weight::{ControllerPolicy, WeightController, WeightObservation};

/// T_w: a lever at this end acts within a few round trips, and a shorter mean
/// is noise.
pub const FLOW_WEIGHT_PERIOD: Duration = Duration::from_secs(1);

/// After a longer gap between two samples, the machine has slept, or nothing
/// was under way. The rate over that time says nothing of the path.
pub const MAX_SAMPLE_GAP: Duration = Duration::from_secs(10);

/// The weight of one connection.
#[derive(Debug)]
pub struct FlowWeightController {
    weight: WeightController,
    capacity: CapacityEstimate,
    /// The user's limit on the rate, byte/s.
    max_rate: Option<f64>,
    /// Since the last sample.
    since: Duration,
    /// When bytes were last counted.
    counted: Duration,
    bytes: u64,
    /// Those of them that are for no deadline.
    besides: u64,
}

impl FlowWeightController {
    /// The connection has the weight `w_min` until a deadline asks for more.
    /// `max_rate` is the user's limit on the rate, byte/s.
    #[must_use]
    pub fn new(policy: ControllerPolicy, w_min: f64, max_rate: Option<f64>) -> Self {
        Self {
            weight: WeightController::new(policy, w_min),
            capacity: CapacityEstimate::default(),
            max_rate,
            since: Duration::ZERO,
            counted: Duration::ZERO,
            bytes: 0,
            besides: 0,
        }
    }

    /// Sets another smallest weight. What was learnt of the path stays.
    pub fn set_min_weight(&mut self, w_min: f64) {
        self.weight.set_min_weight(w_min);
    }

    /// When the present period began.
    #[must_use]
    pub fn period_start(&self) -> Duration {
        self.since
    }

    /// Begins a period for a new connection.
    pub fn begin(&mut self, now: Duration) {
        self.since = now;
        (self.bytes, self.besides) = (0, 0);
    }

    /// `bytes` more have reached the other end.
    pub fn delivered(&mut self, now: Duration, bytes: u64) {
        if bytes > 0 {
            // They have come since the last call, and not just now.
            self.capacity
                .record_since(self.counted.max(self.since), now, bytes);
            self.bytes += bytes;
        }
        self.counted = now;
    }

    /// `bytes` more have reached the other end, for no deadline: they show what the path carries, and
    /// nothing about how the deadline stands.
    pub fn delivered_besides(&mut self, now: Duration, bytes: u64) {
        self.delivered(now, bytes);
        self.besides += bytes;
    }

    /// The flow target of the connection.
    #[must_use]
    pub fn target(&self, now: Duration) -> FlowTarget {
        FlowTarget {
            w: self.weight.w(),
            capacity: self.capacity.rate(now),
        }
    }

    /// Ends a period and sets the weight; returns the mean rate of the period,
    /// byte/s.
    pub fn sample(&mut self, now: Duration, demand: Option<Demand>) -> f64 {
        let period = now.saturating_sub(self.since);
        let seconds = period.as_secs_f64();
        let mean = |bytes: u64| {
            if seconds > 0.0 {
                bytes as f64 / seconds
            } else {
                0.0
            }
        };
        let (all, rate) = (mean(self.bytes), mean(self.bytes - self.besides));
        self.begin(now);
        let ends_in_time =
            demand.is_some_and(|demand| demand.is_nearly_over(rate, FLOW_WEIGHT_PERIOD));
        if seconds > 0.0 && period < MAX_SAMPLE_GAP && !ends_in_time {
            if self.weight.w() >= 1.0 {
                self.capacity.lower_if_implausible(all);
            }
            let zeta = demand.map_or(0.0, |demand| demand.zeta);
            self.weight.update(&WeightObservation {
                period,
                zeta: self.max_rate.map_or(zeta, |most| zeta.min(most)),
                rate,
                flows: 1.0,
                capacity: self.capacity.rate(now),
            });
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use crate::deadline::Deadline;
    use crate::weight::MIN_WEIGHT;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn bytes_for_no_deadline_do_not_make_it_safe() {
        let steer = |besides: bool| {
            let mut steering = FlowWeightController::new(ControllerPolicy::Share, MIN_WEIGHT, None);
            let deadline = Deadline::new(Duration::ZERO, SECOND * 100);
            for second in 1..=20 {
                let now = SECOND * second;
                if besides {
                    steering.delivered_besides(now, 10_000_000);
                } else {
                    steering.delivered(now, 10_000_000);
                }
                let demand = Demand::of(now, std::iter::once((deadline, 100_000_000)));
                assert_eq!(steering.sample(now, demand), 1e7, "all of it is the rate");
            }
            steering.target(SECOND * 20).w
        };
        assert!(steer(false) < 0.5);
        assert!(steer(true) > 0.5, "nothing was moved for the deadline");
    }

    /// Moves `rate` bytes a second for `seconds`, of `remaining`, due at
    /// `by`; returns the weights.
    fn drive(
        steering: &mut FlowWeightController,
        seconds: std::ops::Range<u32>,
        rate: u64,
        by: Option<u64>,
        remaining: u64,
    ) -> Vec<f64> {
        let deadline = by.map(|by| Deadline::new(Duration::ZERO, SECOND * by as u32));
        seconds
            .map(|second| {
                for tenth in 1..=10 {
                    steering.delivered(SECOND * second + SECOND * tenth / 10, rate / 10);
                }
                let now = SECOND * (second + 1);
                let demand = Demand::of(now, deadline.map(|deadline| (deadline, remaining)));
                steering.sample(now, demand);
                steering.target(now).w
            })
            .collect()
    }

    #[test]
    fn the_weight_is_the_smallest_without_a_deadline() {
        for least in [MIN_WEIGHT, 0.3, 1.0] {
            let mut steering = FlowWeightController::new(ControllerPolicy::Share, least, None);
            let weights = drive(&mut steering, 0..30, 1_000_000, None, 0);
            assert!(weights.iter().all(|&w| w == least), "{weights:?}");
        }
    }

    #[test]
    fn an_urgent_deadline_raises_the_weight_to_1() {
        let mut steering = FlowWeightController::new(ControllerPolicy::Share, MIN_WEIGHT, None);
        // Ten megabytes in ten seconds are needed at least, one comes.
        let weights = drive(&mut steering, 0..60, 1_000_000, Some(100), 1_000_000_000);
        assert_eq!(weights.last(), Some(&1.0), "{weights:?}");
    }

    #[test]
    fn a_transfer_far_ahead_of_its_deadline_yields() {
        let mut steering = FlowWeightController::new(ControllerPolicy::Share, MIN_WEIGHT, None);
        let weights = drive(&mut steering, 0..60, 10_000_000, Some(1000), 100_000_000);
        assert_eq!(weights.last(), Some(&MIN_WEIGHT), "{weights:?}");
    }

    #[test]
    fn the_weight_does_not_rise_against_the_users_limit() {
        let mut steering =
            FlowWeightController::new(ControllerPolicy::Share, MIN_WEIGHT, Some(100_000.0));
        drive(&mut steering, 0..5, 1_000_000, None, 0);
        // What may be had comes and surplus besides: nothing to press for.
        let weights = drive(&mut steering, 5..60, 200_000, Some(100), 1_000_000_000);
        assert_eq!(weights.last(), Some(&MIN_WEIGHT), "{weights:?}");
    }

    #[test]
    fn a_sleep_does_not_change_the_weight() {
        let mut steering = FlowWeightController::new(ControllerPolicy::Share, MIN_WEIGHT, None);
        let weights = drive(&mut steering, 0..60, 1_000_000, Some(1000), 1_000_000_000);
        let before = weights.last().copied().unwrap();
        let deadline = Deadline::new(Duration::ZERO, SECOND * 1000);
        let demand = Demand::of(SECOND * 360, [(deadline, 1_000_000_000)]);
        steering.sample(SECOND * 360, demand);
        assert_eq!(steering.target(SECOND * 360).w, before);
    }
}
