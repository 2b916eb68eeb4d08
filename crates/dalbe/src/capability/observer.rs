//! Whether the observer can be used.

use std::time::Duration;

use super::Refusal;
use crate::ebpf::EbpfUnavailable;
use crate::ebpf::Observer;
use crate::socket::TcpSocket;

/// Has this socket observed.
pub(super) fn observe(
    socket: &TcpSocket,
    observer: Result<&Observer, &EbpfUnavailable>,
) -> Result<String, Refusal> {
    /// A usual length; the socket is never connected, so nothing arrives.
    const INTERVAL: Duration = Duration::from_millis(20);
    let observer = observer.map_err(|reason| Refusal(reason.to_string()))?;
    observer.watch(socket, INTERVAL)?;
    Ok("tells when each packet was sent and when it arrived".to_owned())
}
