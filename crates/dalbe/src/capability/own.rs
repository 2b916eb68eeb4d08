//! Whether a congestion control of our own can be chosen.

use super::Refusal;
use crate::ebpf::EbpfUnavailable;
use crate::ebpf::{CongestionLaw, CongestionParameters, WeightedCongestion};
use crate::socket::TcpSocket;
use crate::weight::MIN_WEIGHT;

/// Has this socket, which is not connected, follow one of our laws.
pub(super) fn choose_ours(
    socket: &TcpSocket,
    ours: Result<&WeightedCongestion, &EbpfUnavailable>,
) -> Result<String, Refusal> {
    let ours = ours.map_err(|reason| Refusal(reason.to_string()))?;
    let law = CongestionLaw::Vegas;
    let parameters = CongestionParameters {
        law,
        w: MIN_WEIGHT,
        phi: 1.0,
        g_ms: None,
        capacity: 0.0,
    };
    ours.set(socket, &parameters)?;
    let chosen = socket.sender().congestion()?;
    if chosen == ours.name(law) {
        Ok(format!("{chosen}, with a weight for each upload"))
    } else {
        Err(Refusal::not_kept(ours.name(law), chosen))
    }
}
