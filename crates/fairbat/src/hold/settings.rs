//! What a caller of the holder chooses for all connections.

use dalbe::receive_window::ReceiverPolicy;
use dalbe::sender::SenderPolicy;
use dalbe::weight::ControllerPolicy;

use crate::lane::LaneSettings;

/// What a caller chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HoldSettings {
    /// The law for the receive window of a flow that yields.
    pub receiver: ReceiverPolicy,
    /// The congestion control for what they send, where root has set it up.
    pub sender: SenderPolicy,
    /// What raises the weight for the deadline.
    pub controller: ControllerPolicy,
    /// Whether connections to this machine's own addresses are held as well.
    pub include_local: bool,
}

impl HoldSettings {
    /// Those of the lane, with this least weight.
    pub(super) fn lane(self, weight: f64) -> LaneSettings {
        LaneSettings {
            weight,
            is_held: true,
            controller: self.controller,
            ..LaneSettings::new(1)
        }
    }
}
