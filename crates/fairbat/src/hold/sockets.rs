//! What a socket of another program is, and freeing all that a process has.

use std::io;

use dalbe::receive_window::WindowLever;
use dalbe::sender::SenderLevers;
use dalbe::socket::TcpSocket;

use super::scope::{Processes, Scope};

/// The port of name servers.
pub(super) const DNS: u16 = 53;

/// What a socket is.
pub(super) enum Kind {
    Tcp,
    /// Of TCP, but it only accepts.
    Listener,
    Udp,
    Other,
}

pub(super) fn kind_of(socket: &TcpSocket) -> Kind {
    match socket.protocol() {
        Ok(Some(protocol)) if protocol == socket2::Protocol::TCP => match socket.is_listener() {
            Ok(true) => Kind::Listener,
            Ok(false) | Err(_) => Kind::Tcp,
        },
        Ok(Some(protocol)) if protocol == socket2::Protocol::UDP => Kind::Udp,
        Ok(_) | Err(_) => Kind::Other,
    }
}

pub(super) fn inode_of(socket: &TcpSocket) -> io::Result<u64> {
    Ok(rustix::fs::fstat(socket)?.st_ino)
}

/// Frees all connections of a scope that somebody else has held, whatever was done to them.
pub fn free(scope: Scope) {
    let mut processes = Processes::of(scope);
    if let Err(error) = processes.refresh() {
        tracing::debug!(%error, "processes not listed");
    }
    for found in processes.sockets() {
        if let Ok(socket) = found.process.socket(found.descriptor)
            && matches!(kind_of(&socket), Kind::Tcp)
        {
            WindowLever::release(&socket);
            SenderLevers::free(&socket);
        }
    }
}
