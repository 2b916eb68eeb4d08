//! The socket tap: finds the TCP sockets under reqwest's connections.
//!
//! reqwest hands out no socket. But a connector layer sees every new connection,
//! and hyper-util tells the connection's two addresses ([`HttpInfo`]). Exactly
//! one socket among this process's descriptors has both. This file alone relies
//! on that, and it holds for plain, TLS and proxied connections alike.
//!
//! A duplicate of the descriptor keeps a connection open after hyper has closed
//! its own. So nobody may hold one longer than the response that it belongs to.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use dalbe::receive_window::{LeverKind, WindowLever};
use dalbe::sender::{SenderCoupling, SenderLevers};
use dalbe::socket::TcpSocket;
use hyper_util::client::legacy::connect::{Connection, HttpInfo};
use tokio::sync::mpsc::UnboundedSender;
use tower_layer::Layer;
use tower_service::Service;

use super::sending::{NewConnection, SendingEnd};

/// What is done to the receive window of every new connection, before any data
/// comes.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReceiveWindow {
    /// Largest window, bytes: the buffer is fixed at this size.
    pub max_window: Option<u32>,
    /// Whether the receive buffer is fixed from the start. The window then stays until
    /// a lever changes it. If not, the kernel tunes it until a lever fixes it.
    pub is_held: bool,
}

impl ReceiveWindow {
    /// For connections that this lever holds, for transfers that are served like this. A
    /// stream yields with one connection only, and rarely: to hold windows by hand would cost
    /// its other connections a little, so there the lever takes them when they are to yield.
    pub(crate) fn new(
        max_window: Option<u32>,
        lever: LeverKind,
        service: crate::lane::Service,
    ) -> Self {
        Self {
            max_window,
            is_held: lever.holds_window() && service != crate::lane::Service::Stream,
        }
    }

    fn apply(self, socket: &TcpSocket) {
        if let Err(error) = socket.mark_lower_effort() {
            tracing::debug!(%error, "packets not marked lower-effort");
        }
        let set = match (self.max_window, self.is_held) {
            (Some(bytes), _) => socket.receiver().lock_receive_buffer(bytes).map(drop),
            (None, true) => WindowLever::hold(socket),
            (None, false) => Ok(()),
        };
        if let Err(error) = set {
            tracing::debug!(%error, "receive buffer not set");
        }
    }
}

/// Unsent bytes that may wait in the kernel for an upload's connection. This is
/// two of the largest segments that a network card splits (64 KiB), so that no
/// segment leaves half full.
const MAX_UNSENT: u32 = 128 * 1024;

/// Puts the sender lever on every new connection before any data goes over it,
/// and sends the connection to the other end of `opened`.
#[derive(Debug, Clone)]
pub(crate) struct SendTap {
    pub(crate) levers: Arc<SenderLevers>,
    pub(crate) opened: UnboundedSender<NewConnection>,
}

impl SendTap {
    fn apply(&self, socket: TcpSocket) {
        if let Err(error) = socket.sender().limit_unsent(MAX_UNSENT) {
            tracing::debug!(%error, "unsent data not limited");
        }
        let acked_before = socket.info().ok().and_then(|info| info.bytes_acked);
        // This fails if the upload was stopped while it connected.
        let _ = self.opened.send(NewConnection {
            end: SendingEnd::Tcp {
                lever: self.levers.take(&socket, SenderCoupling::EQUAL),
                socket,
            },
            acked_before,
        });
    }
}

/// What is done to every new connection.
#[derive(Debug, Clone)]
pub(crate) enum Tap {
    Receive(ReceiveWindow),
    Send(SendTap),
}

impl<S> Layer<S> for Tap {
    type Service = Tapped<S>;

    fn layer(&self, connect: S) -> Tapped<S> {
        Tapped {
            connect,
            tap: self.clone(),
        }
    }
}

/// A connector whose connections are tapped.
#[derive(Debug, Clone)]
pub(crate) struct Tapped<S> {
    connect: S,
    tap: Tap,
}

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

impl<S, R> Service<R> for Tapped<S>
where
    S: Service<R>,
    S::Future: Send + 'static,
    S::Response: Connection,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.connect.poll_ready(context)
    }

    fn call(&mut self, destination: R) -> Self::Future {
        let connecting = self.connect.call(destination);
        let tap = self.tap.clone();
        Box::pin(async move {
            let connection = connecting.await?;
            let mut extensions = http::Extensions::new();
            connection.connected().get_extras(&mut extensions);
            if let Some(socket) = extensions.get().and_then(find) {
                match tap {
                    Tap::Receive(window) => window.apply(&socket),
                    Tap::Send(send) => send.apply(socket),
                }
            }
            Ok(connection)
        })
    }
}

/// The socket that carries a response, for as long as its body is read.
pub(crate) fn socket_of(response: &reqwest::Response) -> Option<TcpSocket> {
    response.extensions().get().and_then(find)
}

fn find(info: &HttpInfo) -> Option<TcpSocket> {
    let (local, peer) = (info.local_addr(), info.remote_addr());
    TcpSocket::find_by_addresses(local, peer).unwrap_or_else(|error| {
        tracing::debug!(%error, %local, %peer, "socket not found");
        None
    })
}
