//! Whether a congestion control of our own can be chosen.

use super::Refusal;
use crate::congestion::{Congestion, Law, Parameters};
use crate::receive_window::MIN_WEIGHT;
use crate::setup::Unavailable;
use crate::socket::TcpSocket;

/// Has this socket, which is not connected, follow one of our laws.
pub(super) fn choose_ours(
    socket: &TcpSocket,
    ours: Result<&Congestion, &Unavailable>,
) -> Result<String, Refusal> {
    let ours = ours.map_err(|reason| Refusal(reason.to_string()))?;
    let law = Law::Vegas;
    let parameters = Parameters {
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
