//! w, the weight of a flow: 1 is as aggressive as one best-effort flow,
//! [`MIN_WEIGHT`] yields to everybody.
//!
//! - [`WeightController`]: from the demand of the deadlines and the measured
//!   rate to w, for all flows of a lane.
//! - [`FlowWeightController`]: the same for one connection that this end sends.
//! - [`CapacityEstimate`]: the highest rate seen on a path.
//! - [`FlowTarget`]: what the levers are asked for, w and the path's capacity.

mod capacity;
mod controller;
mod flow;

pub use self::capacity::CapacityEstimate;
pub use self::controller::{DEMAND_HEADROOM, WeightController, WeightObservation};
pub use self::flow::{FLOW_WEIGHT_PERIOD, FlowWeightController, MAX_SAMPLE_GAP};

/// w_min: the least weight. Flows that have it yield to anybody.
pub const MIN_WEIGHT: f64 = 0.02;

/// 1 − w at which a weight begins to be good for more than its share. The
/// wider this range, the smaller the steps that a controller has to make in
/// it.
const OPENING_FROM: f64 = 0.2;

/// What a flow is to do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FlowTarget {
    /// Weight, [`MIN_WEIGHT`] to 1; 1 = one best-effort flow.
    pub w: f64,
    /// What the path carries when nobody else uses it, byte/s; 0 while
    /// nothing is known of it.
    pub capacity: f64,
}

impl FlowTarget {
    /// Yield to anybody.
    pub const YIELD: Self = Self {
        w: MIN_WEIGHT,
        capacity: 0.0,
    };

    /// No brake: one best-effort flow.
    pub const FREE: Self = Self {
        w: 1.0,
        capacity: 0.0,
    };

    /// The rate that this weight is good for whatever the others do, byte/s:
    /// a share w/(1 + w) of the capacity, and from four fifths of a flow on
    /// increasingly more, up to no limit at w = 1, where the sender's
    /// congestion control alone decides. If the capacity is the most that was
    /// seen, that is too little beside others: then an active test of the
    /// bottleneck says more.
    #[must_use]
    pub fn share(&self) -> f64 {
        if self.w <= MIN_WEIGHT {
            return 0.0;
        }
        let opening = (OPENING_FROM / (1.0 - self.w).max(f64::EPSILON)).max(1.0);
        self.capacity * self.w / (1.0 + self.w) * opening
    }
}
