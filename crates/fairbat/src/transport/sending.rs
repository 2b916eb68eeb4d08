//! A connection that sends a request with a body: over TCP or QUIC, under its lever.

use std::time::Duration;

#[cfg(feature = "http3")]
use dalbe::quic::QuicSender;
use dalbe::sender::SenderLever;
use dalbe::socket::{TcpInfo, TcpSocket};
use dalbe::weight::FlowTarget;

use crate::event::Protocol;

/// A new connection for uploads.
#[derive(Debug)]
pub(crate) struct NewConnection {
    pub(crate) end: SendingEnd,
    /// Bytes that the peer acknowledged before the request: those of TLS, of a proxy, and of
    /// earlier requests. `None` where the kernel does not count them.
    pub(crate) acked_before: Option<u64>,
}

/// What a connection sends by.
#[derive(Debug)]
pub(crate) enum SendingEnd {
    /// A socket, and the lever on it.
    Tcp {
        socket: TcpSocket,
        lever: SenderLever,
    },
    /// A congestion control of this process.
    #[cfg(feature = "http3")]
    Quic(QuicSender),
}

/// Shortest time between two updates of a sender lever.
const MIN_UPDATE_INTERVAL: Duration = Duration::from_millis(1);

/// Time between two updates of a congestion control of this process. Flow targets change every
/// second.
#[cfg(feature = "http3")]
const QUIC_UPDATE_INTERVAL: Duration = Duration::from_millis(200);

/// Updates a lever towards `target`. Returns when the next update is due, or `None` after
/// the lever has failed.
pub(crate) fn update_lever(
    lever: &mut SenderLever,
    now: Duration,
    socket: &TcpSocket,
    target: FlowTarget,
) -> Option<Duration> {
    match lever.update(now, socket, target) {
        Ok(after) => Some(now + after.max(MIN_UPDATE_INTERVAL)),
        Err(error) => {
            tracing::debug!(%error, "the lever does not act any more");
            None
        }
    }
}

impl SendingEnd {
    /// Its state, of QUIC in the terms of TCP; `None` if the kernel does not tell it.
    pub(crate) fn info(&self) -> Option<TcpInfo> {
        match self {
            Self::Tcp { socket, .. } => socket.info().ok(),
            #[cfg(feature = "http3")]
            Self::Quic(sender) => Some(sender.info()),
        }
    }

    pub(crate) fn protocol(&self) -> Protocol {
        match self {
            Self::Tcp { .. } => Protocol::Http1,
            #[cfg(feature = "http3")]
            Self::Quic(_) => Protocol::Http3,
        }
    }

    /// Updates the lever towards `target`, as [`update_lever`].
    pub(crate) fn follow(&mut self, now: Duration, target: FlowTarget) -> Option<Duration> {
        match self {
            Self::Tcp { socket, lever } => update_lever(lever, now, socket, target),
            #[cfg(feature = "http3")]
            Self::Quic(sender) => {
                sender.set_target(Some(target).filter(|target| target.w < 1.0));
                Some(now + QUIC_UPDATE_INTERVAL)
            }
        }
    }

    /// Whether the flow yields to other traffic; `None` where nobody can tell.
    pub(crate) fn is_yielding(&self) -> Option<bool> {
        match self {
            Self::Tcp { lever, .. } => lever.is_yielding(),
            #[cfg(feature = "http3")]
            Self::Quic(sender) => Some(sender.told()?.is_yielding),
        }
    }

    /// CDG's back-off scale, s.
    pub(crate) fn g(&self) -> Option<f64> {
        match self {
            Self::Tcp { lever, .. } => lever.g(),
            #[cfg(feature = "http3")]
            Self::Quic(sender) => sender.told()?.g,
        }
    }

    /// Nothing more is sent of a request that was given up. Over QUIC, its stream is reset.
    pub(crate) fn discard_unsent(&self) {
        match self {
            Self::Tcp { socket, .. } => {
                if let Err(error) = socket.discard_on_close() {
                    tracing::debug!(%error, "the rest of a request may still be sent");
                }
            }
            #[cfg(feature = "http3")]
            Self::Quic(_) => {}
        }
    }

    /// Its socket, of TCP.
    pub(crate) fn socket(&self) -> Option<&TcpSocket> {
        match self {
            Self::Tcp { socket, .. } => Some(socket),
            #[cfg(feature = "http3")]
            Self::Quic(_) => None,
        }
    }
}
