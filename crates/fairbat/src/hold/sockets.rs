//! What a socket of another program is, and freeing all that a process has.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use dalbe::receive_window::WindowLever;
use dalbe::sender::SenderLevers;
use dalbe::socket::TcpSocket;

use super::scope::{Processes, Scope};

/// The port of name servers.
const DNS: u16 = 53;

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

/// Connected UDP sockets, and whether each has been counted as a flow.
#[derive(Debug, Default)]
pub(super) struct UdpFlows(BTreeMap<u64, bool>);

impl UdpFlows {
    /// A socket is there at a look. Returns whether it counts as a flow from now on: at its second
    /// look, for resolvers have some for moments.
    pub(super) fn see(&mut self, inode: u64, socket: &TcpSocket) -> bool {
        if let Some(is_counted) = self.0.get_mut(&inode) {
            return !std::mem::replace(is_counted, true);
        }
        // A resolver's questions are no flow.
        let peer = socket.peer_addr().ok();
        if peer.is_some_and(|peer| peer.port() != DNS && !peer.ip().is_loopback()) {
            self.0.insert(inode, false);
        }
        false
    }

    /// Only these are there still.
    pub(super) fn retain(&mut self, inodes: &BTreeSet<u64>) {
        self.0.retain(|inode, _| inodes.contains(inode));
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
