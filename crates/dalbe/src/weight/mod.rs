//! w, the weight of a flow: 1 is as aggressive as one best-effort flow,
//! [`MIN_WEIGHT`] yields to everybody.
//!
//! - [`WeightController`]: from the demand of the deadlines and the measured
//!   rate to w, for all flows of a lane, by a [`ControllerPolicy`].
//! - [`FlowWeightController`]: the same for one connection that this end sends.
//! - [`CapacityEstimate`]: the highest rate seen on a path.
//! - [`FlowTarget`]: the target of the levers, w and the path's capacity.

mod capacity;
mod controller;
mod flow;
mod published;
mod share;

use std::time::Duration;

pub use self::capacity::CapacityEstimate;
pub use self::controller::{ControllerPolicy, WeightController};
pub use self::flow::{FLOW_WEIGHT_PERIOD, FlowWeightController, MAX_SAMPLE_GAP};
pub use self::share::DEMAND_HEADROOM;

/// w_min, the smallest weight. Flows with this weight yield to all other
/// traffic.
pub const MIN_WEIGHT: f64 = 0.02;

/// Below this distance 1 − w, a weight gets more than its share. A
/// wide range needs only small steps of a controller.
const MAX_OPENING_DISTANCE: f64 = 0.2;

/// The measurements of a period, and the demand for the next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WeightObservation {
    /// T_w: time since the last observation.
    pub period: Duration,
    /// The lowest rate that meets the deadlines, byte/s; 0 without any.
    pub zeta: f64,
    /// Mean rate of all flows together, byte/s, those that yield among them.
    pub rate: f64,
    /// How many flows carry the weight.
    pub flows: f64,
    /// Highest rate seen of all flows together, byte/s; 0 while nothing is
    /// known ([`crate::weight`]).
    pub capacity: f64,
}

/// The target of the controller for one flow or one coupled group of flows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FlowTarget {
    /// Weight, [`MIN_WEIGHT`] to 1; 1 = one best-effort flow.
    pub w: f64,
    /// Capacity of the path without other traffic, byte/s; 0 while it is unknown.
    pub capacity: f64,
}

impl FlowTarget {
    /// Yields to all other traffic.
    pub const YIELD: Self = Self {
        w: MIN_WEIGHT,
        capacity: 0.0,
    };

    /// One best-effort flow: nothing holds it back.
    pub const FREE: Self = Self {
        w: 1.0,
        capacity: 0.0,
    };

    /// The rate of this weight beside any other traffic, byte/s: a share w/(1 + w) of the
    /// capacity (Kelly, Maulloo and Tan 1998).
    /// From w = 0.8 on it grows beyond that, up to no limit at w = 1, where the
    /// sender's congestion control alone decides. If the capacity is the
    /// highest rate seen beside other traffic, the share is too small; then an
    /// active test of the bottleneck tells more.
    #[must_use]
    pub fn share(&self) -> f64 {
        if self.w <= MIN_WEIGHT {
            return 0.0;
        }
        let opening = (MAX_OPENING_DISTANCE / (1.0 - self.w).max(f64::EPSILON)).max(1.0);
        self.capacity * self.w / (1.0 + self.w) * opening
    }
}
