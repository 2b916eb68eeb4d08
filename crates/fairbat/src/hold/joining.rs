//! When a lane that holds connections takes part in that of the machine.

use super::event::HoldReport;
use crate::lane::Lane;
use crate::machine::{LaneDirection, MachineLane};

/// So many bytes tell whether more is received or sent.
const KNOWN_DIRECTION: u64 = 1 << 20;

/// The lane of the machine, until this one takes part in it.
#[derive(Debug, Default)]
pub(super) struct Joining(pub(super) Option<MachineLane>);

impl Joining {
    /// So much has been moved. Both directions are one lane here, which takes part where most is
    /// moved.
    pub(super) fn see(&mut self, lane: &Lane, report: &HoldReport) {
        let (received, sent) = (report.bytes_received, report.bytes_sent);
        if let Some(machine) = self.0.take_if(|_| received + sent >= KNOWN_DIRECTION) {
            let direction = if received >= sent {
                LaneDirection::Pull
            } else {
                LaneDirection::Push
            };
            machine.join(lane, direction);
        }
    }
}
