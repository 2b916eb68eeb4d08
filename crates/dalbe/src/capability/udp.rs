//! What QUIC needs of UDP.

use std::io;

use quinn::udp::{UdpSockRef, UdpSocketState};
use socket2::{Domain, Protocol, Socket, Type};

use crate::quic::RECEIVE_BUFFER;

fn socket() -> io::Result<Socket> {
    Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))
}

fn refused(error: &io::Error) -> String {
    format!("the kernel refuses it: {error}")
}

/// Whether the kernel cuts what is sent into packets, and joins what comes: its use, or else what
/// is missing, in plain words.
pub(super) fn offload() -> Result<String, String> {
    let socket = socket().map_err(|error| refused(&error))?;
    let state = UdpSocketState::new(UdpSockRef::from(&socket)).map_err(|error| refused(&error))?;
    let (sent, received) = (state.max_gso_segments(), state.gro_segments());
    match (sent > 1, received > 1) {
        (true, true) => Ok(format!(
            "HTTP/3 sends up to {sent} packets at once, and receives up to {received}"
        )),
        (false, true) => Err("HTTP/3 sends packet by packet".to_owned()),
        (true, false) => Err("HTTP/3 receives packet by packet".to_owned()),
        (false, false) => {
            Err("HTTP/3 sends and receives packet by packet: needs Linux 5.0".to_owned())
        }
    }
}

/// Whether the kernel keeps enough packets until they are read; the same in plain words.
pub(super) fn buffer() -> Result<String, String> {
    let socket = socket().map_err(|error| refused(&error))?;
    let set = socket.set_recv_buffer_size(RECEIVE_BUFFER);
    set.map_err(|error| refused(&error))?;
    // The kernel doubles it, for what it needs itself (socket(7)).
    let bytes = socket.recv_buffer_size().map_err(|error| refused(&error))? / 2;
    let kib = bytes / 1024;
    match bytes >= RECEIVE_BUFFER {
        true => Ok(format!("{kib} KiB for what comes over HTTP/3")),
        false => Err(format!(
            "{kib} KiB for what comes over HTTP/3, which may lose packets above 100 Mbit/s; root \
             can allow more: sysctl net.core.rmem_max={RECEIVE_BUFFER}"
        )),
    }
}
