//! A connection in use, as the run sees it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use dalbe::socket::TcpSocket;
use tokio::sync::watch;
use url::Origin;

use super::pieces::LeaseId;
use super::ways::WayId;
use super::worker::TransferId;
use crate::lane::Permit;
use crate::transport::RemoteFile;

/// A connection in use.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) permit: Permit,
    pub(crate) transfer: TransferId,
    pub(crate) way: WayId,
    pub(crate) lease: Option<LeaseId>,
    /// Where its lease begins.
    pub(crate) begun_at: u64,
    /// Everything of its lease before this offset is on disk.
    pub(crate) written: u64,
    /// When it began.
    pub(crate) started: Duration,
    /// When it last brought bytes, or began.
    pub(crate) moved: Duration,
    /// Tells it to give its rest back.
    pub(crate) cut: watch::Sender<bool>,
    pub(crate) socket: Option<Arc<TcpSocket>>,
    /// Whether it has brought any bytes.
    pub(crate) has_moved: bool,
}

/// A connection that has brought nothing for this long brings nothing.
const SILENCE: Duration = Duration::from_millis(700);

impl Worker {
    /// Whether nothing has come for some time.
    pub(crate) fn is_silent(&self, now: Duration) -> bool {
        now > self.moved + SILENCE
    }

    /// The mean rate at which its bytes have come, byte/s; 0 of a server that has fallen silent.
    pub(crate) fn rate(&self, now: Duration) -> f64 {
        let elapsed = now.saturating_sub(self.started).as_secs_f64();
        if self.is_silent(now) || elapsed <= 0.0 {
            return 0.0;
        }
        (self.written - self.begun_at) as f64 / elapsed
    }
}

/// What a connection can be used for again: transfers whose connections have the same.
#[derive(Debug, PartialEq)]
pub(crate) struct Destination {
    /// The server, or the proxy before it.
    peer: SocketAddr,
    origin: Origin,
}

impl Destination {
    /// That of a connection of this transfer, while there is one.
    pub(crate) fn of(socket: &TcpSocket, remote: &RemoteFile) -> Option<Self> {
        let peer = socket.peer_addr().ok()?;
        let origin = remote.url.origin();
        Some(Self { peer, origin })
    }
}
