//! What a caller of the holder chooses, and what follows from a size that was planned.

use dalbe::receive_window::ReceiverPolicy;
use dalbe::sender::SenderPolicy;
use dalbe::weight::ControllerPolicy;
use jiff::Timestamp;

/// What a caller chooses.
#[derive(Debug, Clone)]
pub struct HoldSettings {
    /// w_min: all connections together have at least this weight, 0.02 to 1.
    pub weight: f64,
    /// The law for the receive window of a flow that yields.
    pub receiver: ReceiverPolicy,
    /// The congestion control for what they send, where root has set it up.
    pub sender: SenderPolicy,
    /// What raises the weight for the deadline.
    pub controller: ControllerPolicy,
    /// What the connections are expected to move in all, bytes; `None` if that is unknown.
    pub bytes: Option<u64>,
    /// The soft deadline.
    pub deadline: Option<Timestamp>,
    /// Whether connections to this machine's own addresses are held as well.
    pub include_local: bool,
}

impl HoldSettings {
    /// What is still to come when so much is done, bytes; 0 if nothing is planned.
    pub(super) fn remaining(&self, done: u64) -> u64 {
        self.bytes.map_or(0, |planned| {
            let least = (done as f64 * MIN_REMAINING_SHARE) as u64;
            planned.saturating_sub(done).max(least)
        })
    }
}

/// However much was planned, at least this share of what is done is still to come: a plan may
/// be too small, and the end tells by itself.
const MIN_REMAINING_SHARE: f64 = 0.05;
