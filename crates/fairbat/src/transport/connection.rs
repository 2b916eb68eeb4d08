//! What an answer comes over: a TCP connection, or a QUIC connection that others may share.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "http3")]
use dalbe::quic::QuicReceiver;
use dalbe::receive_window::ReceivingConnection;
use dalbe::socket::{TcpInfo, TcpSocket};

use super::tap::socket_of;
use crate::event::Protocol;

/// The addresses of a connection: local, then peer.
pub(crate) type Addresses = (SocketAddr, SocketAddr);

/// A connection that brings an answer. Clones are the same connection.
#[derive(Debug, Clone)]
pub enum Connection {
    /// It brings one answer at a time. While there is a clone it stays open.
    Tcp(Arc<TcpSocket>),
    /// It brings several answers at once.
    #[cfg(feature = "http3")]
    Quic(Arc<QuicReceiver>),
}

impl Connection {
    /// The connection of a response, for as long as its body is read.
    pub(crate) fn of(response: &reqwest::Response) -> Option<Self> {
        #[cfg(feature = "http3")]
        if let Some(connection) = response.extensions().get::<QuicReceiver>() {
            return Some(Self::Quic(Arc::new(connection.clone())));
        }
        Some(Self::Tcp(Arc::new(socket_of(response)?)))
    }

    pub(crate) fn addresses(&self) -> Option<Addresses> {
        match self {
            Self::Tcp(socket) => Some((socket.local_addr().ok()?, socket.peer_addr().ok()?)),
            #[cfg(feature = "http3")]
            Self::Quic(connection) => Some(connection.addresses()),
        }
    }

    /// Its state, of QUIC in the terms of TCP.
    ///
    /// # Errors
    /// The kernel does not tell it.
    pub(crate) fn info(&self) -> io::Result<TcpInfo> {
        match self {
            Self::Tcp(socket) => socket.info(),
            #[cfg(feature = "http3")]
            Self::Quic(connection) => Ok(connection.info()),
        }
    }

    /// The round-trip time of its path, as it was last seen.
    pub(crate) fn path_rtt(&self) -> Option<Duration> {
        self.info().ok()?.path_rtt()
    }

    /// The receive window that it offers at most, bytes.
    pub(crate) fn window(&self) -> Option<u32> {
        match self {
            Self::Tcp(socket) => socket.receiver().window_clamp().ok(),
            #[cfg(feature = "http3")]
            Self::Quic(connection) => Some(connection.window()),
        }
    }

    pub(crate) fn protocol(&self) -> Protocol {
        match self {
            Self::Tcp(_) => Protocol::Http1,
            #[cfg(feature = "http3")]
            Self::Quic(_) => Protocol::Http3,
        }
    }

    /// Whether each answer has it to itself while it comes.
    pub(crate) fn is_of_one_answer(&self) -> bool {
        matches!(self, Self::Tcp(_))
    }
}

impl<'a> From<&'a Connection> for ReceivingConnection<'a> {
    fn from(connection: &'a Connection) -> Self {
        match connection {
            Connection::Tcp(socket) => Self::Tcp(socket),
            #[cfg(feature = "http3")]
            Connection::Quic(connection) => Self::Quic(connection),
        }
    }
}
