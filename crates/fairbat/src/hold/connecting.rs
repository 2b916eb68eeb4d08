//! Sockets that may connect.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use dalbe::socket::TcpSocket;

use super::handle::Handle;
use super::scope::FoundSocket;

/// A socket that has not connected by then is found by the usual looks.
const CONNECT_TIME: Duration = Duration::from_secs(150);

/// A socket that may connect.
#[derive(Debug)]
pub(super) struct Connecting {
    pub(super) handle: Handle,
    /// The number of its group.
    pub(super) group: usize,
    since: Duration,
    /// Whether it was told that it connects.
    pub(super) is_told: bool,
}

impl Connecting {
    /// This socket, which was found there. If it was told that it connects, its group is known.
    ///
    /// # Errors
    /// Not a socket.
    pub(super) fn new(
        now: Duration,
        found: &FoundSocket,
        socket: &TcpSocket,
        group: Option<usize>,
    ) -> io::Result<Self> {
        Ok(Self {
            handle: Handle::new(found, socket.cookie()?),
            group: group.unwrap_or(0),
            since: now,
            is_told: group.is_some(),
        })
    }

    /// The address of this end and of the other one, once it has connected; `None` if it is not
    /// where it was.
    pub(super) fn addresses(&mut self, now: Duration) -> Option<Option<(IpAddr, IpAddr)>> {
        let Some(socket) = self.handle.socket() else {
            self.is_told = false;
            return None;
        };
        self.is_told &= now < self.since + CONNECT_TIME;
        let ends = socket.local_addr().ok().zip(socket.peer_addr().ok());
        Some(ends.map(|(local, peer)| (local.ip().to_canonical(), peer.ip().to_canonical())))
    }
}
