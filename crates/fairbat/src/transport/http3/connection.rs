//! A QUIC connection that speaks HTTP/3: it opens, carries all requests to its host, and closes
//! when it has had nothing to do for long.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use dalbe::ebpf::CongestionLaw;
use dalbe::quic::{ArrivalRuntime, INITIAL_RTT, QuicReceiver, QuicSender, Seen, WatchedFactory};
use futures_util::future::{FutureExt, Shared};
use futures_util::stream::{FuturesUnordered, StreamExt};
use h3::client::SendRequest;
use quinn::congestion::CubicConfig;
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{
    ClientConfig, Endpoint, EndpointConfig, TransportConfig, TransportErrorCode, VarInt,
    ZeroRttAccepted,
};
use rustls::ClientConfig as ClientTls;
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use super::address::{Mover, open_socket};
use super::leave::{Closing, close};
use crate::http::host::without_brackets;
use crate::quic::{Priorities, Streams};
use crate::settings::LocalEnd;

/// The next address of a host is tried after this time, beside those before it (RFC 8305,
/// section 5).
const NEXT_ADDRESS_AFTER: Duration = Duration::from_millis(250);

/// Nothing comes on a connection for so long: its other end, or the path, is gone.
const MAX_SILENCE: Duration = Duration::from_secs(15);

/// A packet keeps the path open after so long a rest.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// A connection without requests is closed after this time, as reqwest does it.
const MAX_REST: Duration = Duration::from_secs(90);

/// The window of one stream, bytes: more than any path holds, for that of the connection is what
/// holds the sender.
const STREAM_WINDOW: u32 = 1 << 30;

/// Unsent and unacknowledged bytes of a connection that sends.
const SEND_WINDOW: u64 = 64 << 20;

/// Where a connection leads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ServerAddress {
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl std::fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// What connections are opened with.
#[derive(Debug, Clone)]
pub(crate) struct Dialer {
    pub(crate) tls: ClientTls,
    pub(crate) local_end: Option<LocalEnd>,
    /// The receive window of a new connection, bytes.
    pub(crate) window: u32,
    /// The law of a connection that sends, while it is held back; `None` leaves it to CUBIC.
    pub(crate) law: Option<CongestionLaw>,
    /// Whether requests leave before a connection has opened (0-RTT, RFC 9001, section 4.6), where
    /// its server had one before; not if it sends, for whoever records an upload could repeat it.
    /// Clones share it.
    pub(crate) early_data: Arc<AtomicBool>,
}

/// Why a connection does not open.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DialError {
    #[error("the host name cannot be resolved: {0}")]
    Name(#[source] io::Error),
    #[error("nobody answers")]
    Silent,
    #[error("no UDP socket: {0}")]
    Socket(#[from] io::Error),
    #[error("QUIC: {0}")]
    Refused(#[from] quinn::ConnectError),
    #[error("QUIC: {0}")]
    Connection(#[from] quinn::ConnectionError),
    #[error("HTTP/3: {0}")]
    Http(#[from] h3::error::ConnectionError),
}

impl DialError {
    /// Whether HTTP/3 does not work with the server, or on the way to it.
    pub(crate) fn is_of_server(&self) -> bool {
        !matches!(self, Self::Name(_) | Self::Socket(_)) && !self.is_refused()
    }

    /// Whether the server speaks QUIC, and takes no more connections now.
    pub(crate) fn is_refused(&self) -> bool {
        matches!(
            self,
            Self::Connection(quinn::ConnectionError::ConnectionClosed(close))
                if close.error_code == TransportErrorCode::CONNECTION_REFUSED
        )
    }

    /// What is wrong with the certificate of the server, or with how it wants to be secured.
    pub(crate) fn insecure(&self) -> Option<&str> {
        match self {
            Self::Connection(quinn::ConnectionError::TransportError(error))
                if (0x100..0x200).contains(&u64::from(error.code)) =>
            {
                Some(&error.reason)
            }
            _ => None,
        }
    }
}

impl Dialer {
    fn transport(&self, seen: &Seen, sender: &QuicSender) -> TransportConfig {
        let mut config = TransportConfig::default();
        let silence = MAX_SILENCE.try_into().expect("it is far below the largest");
        config
            .initial_rtt(INITIAL_RTT)
            .max_idle_timeout(Some(silence))
            .keep_alive_interval(Some(KEEP_ALIVE))
            .max_concurrent_bidi_streams(VarInt::from_u32(0))
            .stream_receive_window(VarInt::from_u32(STREAM_WINDOW))
            .receive_window(VarInt::from_u32(self.window))
            .send_window(SEND_WINDOW)
            .datagram_receive_buffer_size(None);
        match self.law {
            Some(law) => sender.configure(&mut config, law, seen),
            None => {
                let cubic = WatchedFactory::new(CubicConfig::default(), seen.clone());
                config.congestion_controller_factory(Arc::new(cubic));
            }
        }
        config
    }

    /// Opens a connection to the first address of a server that answers within this time. The
    /// server shows that it is the one of this name. Its addresses are looked up before, for no
    /// longer than that either.
    pub(crate) async fn dial(
        &self,
        server: &ServerAddress,
        name: &str,
        patience: Duration,
    ) -> Result<Http3Connection, DialError> {
        let host = without_brackets(&server.host);
        let found = tokio::net::lookup_host((host, server.port));
        let found = tokio::time::timeout(patience, found).await;
        let found = found.unwrap_or_else(|elapsed| Err(elapsed.into()));
        let found: Vec<_> = found.map_err(DialError::Name)?.collect();
        let opened = tokio::time::timeout(patience, self.dial_any(&found, name, patience));
        opened.await.unwrap_or(Err(DialError::Silent))
    }

    async fn dial_any(
        &self,
        found: &[SocketAddr],
        name: &str,
        patience: Duration,
    ) -> Result<Http3Connection, DialError> {
        let mut attempts: FuturesUnordered<_> = interleaved(found)
            .into_iter()
            .zip(0..)
            .map(|(address, turn)| async move {
                tokio::time::sleep(NEXT_ADDRESS_AFTER * turn).await;
                self.connect(name, address).await
            })
            .collect();
        let mut last = None;
        while let Some(attempt) = attempts.next().await {
            match attempt {
                Ok(connection) => return Http3Connection::begin(connection, patience).await,
                Err(error) => last = Some(error),
            }
        }
        let none = || DialError::Name(io::Error::other("it has no address"));
        Err(last.unwrap_or_else(none))
    }

    async fn connect(&self, name: &str, address: SocketAddr) -> Result<Dialed, DialError> {
        let (seen, sender) = (Seen::default(), QuicSender::default());
        let runtime = Arc::new(ArrivalRuntime);
        let socket = open_socket(address, self.local_end.as_ref(), &seen)?;
        let endpoint =
            Endpoint::new_with_abstract_socket(EndpointConfig::default(), None, socket, runtime)?;
        let tls = QuicClientConfig::try_from(self.tls.clone()).map_err(io::Error::other)?;
        let mut config = ClientConfig::new(Arc::new(tls));
        config.transport_config(Arc::new(self.transport(&seen, &sender)));
        let connecting = endpoint.connect_with(config, address, name)?;
        // The first connection of a run has no ticket of its server.
        let early = match self.law {
            None if self.early_data.load(Ordering::Relaxed) => connecting.into_0rtt(),
            _ => Err(connecting),
        };
        let (connection, accepted) = match early {
            Ok((connection, accepted)) => (connection, Some(accepted.shared())),
            Err(connecting) => (connecting.await?, None),
        };
        Ok(Dialed {
            closing: Closing::new(connection.clone(), sender.clone()),
            accepted,
            receiver: QuicReceiver::new(connection.clone(), &endpoint, seen.clone(), self.window)?,
            sender,
            mover: Mover {
                endpoint,
                connection,
                local_end: self.local_end.clone(),
                seen,
            },
        })
    }
}

/// Addresses of both families in turn, the first of each first (RFC 8305, section 4).
fn interleaved(addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let is_like_first = |address: &SocketAddr| address.is_ipv4() == addresses[0].is_ipv4();
    let (first, second): (Vec<_>, Vec<_>) = addresses.iter().copied().partition(is_like_first);
    let longest = first.len().max(second.len());
    (0..longest)
        .flat_map(|at| [first.get(at).copied(), second.get(at).copied()])
        .flatten()
        .collect()
}

/// A connection on which nothing was said yet.
struct Dialed {
    closing: Closing,
    /// Whether the server takes what is sent before the connection has opened; `None` if it has.
    accepted: Option<Shared<ZeroRttAccepted>>,
    receiver: QuicReceiver,
    sender: QuicSender,
    mover: Mover,
}

/// An open connection.
#[derive(Debug)]
pub(crate) struct Http3Connection {
    /// The first that is dropped: h3 closes a connection whose last request is gone.
    _closing: Closing,
    pub(crate) receiver: QuicReceiver,
    pub(crate) sender: QuicSender,
    pub(crate) priorities: Priorities,
    requests: RequestSender,
    /// Requests that are under way.
    active: AtomicUsize,
    /// Requests that have begun.
    begun: AtomicUsize,
    /// Whether a request was answered.
    has_answered: AtomicBool,
    /// Whether it takes no more requests, as far as the server or its answers go.
    is_spent: AtomicBool,
    /// Whether the server has taken the requests that left before it had opened; `None` for one
    /// that had.
    accepted: Option<Shared<ZeroRttAccepted>>,
    /// Ends with the connection.
    _tasks: JoinSet<()>,
}

struct RequestSender(SendRequest<Streams, Bytes>);

impl std::fmt::Debug for RequestSender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RequestSender")
    }
}

impl Http3Connection {
    /// One that has not opened within this time is closed.
    async fn begin(dialed: Dialed, patience: Duration) -> Result<Self, DialError> {
        let Dialed {
            closing,
            accepted,
            receiver,
            sender,
            mover,
        } = dialed;
        let priorities = Priorities::default();
        let streams = Streams::new(
            receiver.connection().clone(),
            priorities.clone(),
            Some(receiver.clone()),
        );
        let (mut control, requests) = h3::client::new(streams).await?;
        let endpoint = mover.endpoint.clone();
        let mut tasks = JoinSet::new();
        if let Some(accepted) = accepted.clone() {
            let connection = receiver.connection().clone();
            tasks.spawn(async move {
                if tokio::time::timeout(patience, accepted).await.is_err() {
                    close(&connection);
                }
            });
        }
        tasks.spawn(mover.follow());
        tasks.spawn(async move {
            let closed = std::future::poll_fn(|context| control.poll_close(context)).await;
            tracing::debug!(%closed, "a connection has ended");
            endpoint.wait_idle().await;
        });
        Ok(Self {
            _closing: closing,
            receiver,
            sender,
            priorities,
            requests: RequestSender(requests),
            active: AtomicUsize::new(0),
            begun: AtomicUsize::new(0),
            has_answered: AtomicBool::new(false),
            is_spent: AtomicBool::new(false),
            accepted,
            _tasks: tasks,
        })
    }

    /// Whether it takes another request.
    pub(crate) fn is_open(&self) -> bool {
        let is_closed = self.receiver.connection().close_reason().is_some();
        !is_closed && !self.receiver.has_lost() && !self.is_spent.load(Ordering::Relaxed)
    }

    /// Whether requests leave before it has opened, or may be lost with what has.
    pub(crate) fn is_early(&self) -> bool {
        let accepted = self.accepted.as_ref();
        accepted.is_some_and(|accepted| accepted.peek() != Some(&true))
    }

    /// Whether the server has dropped what it was sent before the connection had opened, or has
    /// not opened it.
    pub(crate) async fn was_too_early(&self) -> bool {
        match self.accepted.clone() {
            Some(accepted) => !accepted.await,
            None => false,
        }
    }

    /// Whether this end has closed it: no fault of the server.
    pub(crate) fn was_closed_here(&self) -> bool {
        let reason = self.receiver.connection().close_reason();
        matches!(reason, Some(quinn::ConnectionError::LocallyClosed))
    }

    /// A request was answered.
    pub(crate) fn note_answer(&self) {
        self.has_answered.store(true, Ordering::Relaxed);
    }

    /// Takes no more requests.
    pub(crate) fn spend(&self) {
        self.is_spent.store(true, Ordering::Relaxed);
    }

    /// Whether no request was ever answered.
    pub(crate) fn is_unproven(&self) -> bool {
        !self.has_answered.load(Ordering::Relaxed)
    }

    pub(crate) fn requests(&self) -> SendRequest<Streams, Bytes> {
        self.requests.0.clone()
    }

    /// Closes the connection when it has had no request for long.
    pub(crate) async fn close_after_rest(connection: Weak<Self>) {
        let (mut rest, mut begun) = (Duration::ZERO, 0);
        while rest < MAX_REST {
            tokio::time::sleep(KEEP_ALIVE).await;
            let Some(connection) = connection.upgrade() else {
                return;
            };
            let before = std::mem::replace(&mut begun, connection.begun.load(Ordering::Relaxed));
            let is_used = connection.active.load(Ordering::Relaxed) > 0;
            rest = match is_used || begun > before {
                false => rest + KEEP_ALIVE,
                true => Duration::ZERO,
            };
        }
        if let Some(connection) = connection.upgrade() {
            connection.spend();
        }
        // A request may have taken it just before. Then it closes when another one takes its place.
        tokio::time::sleep(KEEP_ALIVE).await;
        let rests = |it: &Arc<Self>| it.active.load(Ordering::Relaxed) == 0;
        if let Some(connection) = connection.upgrade().filter(rests) {
            close(connection.receiver.connection());
        }
    }
}

/// The use of a connection by one request, until it is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionUse(Arc<Http3Connection>);

impl ConnectionUse {
    pub(crate) fn of(connection: Arc<Http3Connection>) -> Self {
        connection.active.fetch_add(1, Ordering::Relaxed);
        connection.begun.fetch_add(1, Ordering::Relaxed);
        Self(connection)
    }

    pub(crate) fn connection(&self) -> &Arc<Http3Connection> {
        &self.0
    }
}

impl Drop for ConnectionUse {
    fn drop(&mut self) {
        self.0.active.fetch_sub(1, Ordering::Relaxed);
    }
}
