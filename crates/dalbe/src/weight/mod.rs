//! w, the weight of a flow: 1 is as aggressive as one best-effort flow.

mod capacity;
mod controller;
mod flow;
mod target;

pub use self::capacity::CapacityEstimate;
pub use self::controller::{DEMAND_HEADROOM, WeightController, WeightObservation};
pub use self::flow::{FLOW_WEIGHT_PERIOD, FlowWeightController, MAX_SAMPLE_GAP};
pub use self::target::{FlowTarget, MIN_WEIGHT};
