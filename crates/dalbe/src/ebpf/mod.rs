//! What runs in the kernel.

pub(crate) mod congestion;
pub(crate) mod observer;
pub mod setup;

pub use self::congestion::{
    CONGESTION_VERSION, CongestionLaw, CongestionParameters, CongestionState, WeightedCongestion,
};
pub use self::observer::{
    DelayStatistics, OBSERVER_INTERVALS, ObservedInterval, Observer, PivCounts,
};
pub use self::setup::{EbpfPart, EbpfUnavailable, PIN_DIRECTORY};
