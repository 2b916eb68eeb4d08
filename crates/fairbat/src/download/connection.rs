//! A connection in use, as the run sees it.

use std::net::SocketAddr;

use tokio::sync::watch;
use url::Origin;

use super::pace::Pace;
use super::pieces::LeaseId;
use super::ways::WayId;
use super::worker::TransferId;
use crate::lane::Permit;
use crate::transport::{Connection, RemoteFile};

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
    /// How its bytes come.
    pub(crate) pace: Pace,
    /// Tells it to give its rest back.
    pub(crate) cut: watch::Sender<bool>,
    pub(crate) connection: Option<Connection>,
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
    pub(crate) fn of(connection: &Connection, remote: &RemoteFile) -> Option<Self> {
        let (_, peer) = connection.addresses()?;
        let origin = remote.url.origin();
        Some(Self { peer, origin })
    }
}
