//! The same server over QUIC: several requests at once on a connection, each answered as over TCP.
//!
//! A connection counts as one of its peer's, and so does each request on it; of all peers together,
//! there are no more of both than over TCP. The responses of a
//! connection are one flow, held back as the most pressing of them asks. Among them, what is more
//! urgent is sent first ([`Urgency`]).

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use dalbe::quic::{ArrivalRuntime, ArrivalSocket, INITIAL_RTT, QuicSender, RECEIVE_BUFFER, Seen};
use dalbe::sender::SenderPolicy;
use h3::error::{Code, StreamError};
use h3::server::{RequestResolver, RequestStream};
use http::header::{CONNECTION, HOST};
use http::request::Parts;
use http::{HeaderValue, Method};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{Endpoint, EndpointConfig, ServerConfig, TransportConfig, VarInt};
use rustls::ServerConfig as ServerTls;
use socket2::SockRef;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

use super::answer::{answer, too_many_connections};
use super::connection::{TAIL, TakenBytes, log};
use super::controller::{ConnectionController, ResponseState, ResponseTracker};
use super::limits::{PeerPlace, Peers};
use super::site::ServedSite;
use crate::http::urgency::Urgency;
use crate::quic::{BodyLength, Priorities, Receiving, Sending, Streams, code};

/// Requests at once on a connection.
const MAX_REQUESTS: u32 = 100;

/// The other streams that HTTP/3 has: control, and those of field compression (RFC 9114, section
/// 6.2).
const MAX_OTHER_STREAMS: u32 = 8;

/// A peer with so many connections has to show that its address is its own before it gets another:
/// somebody else may have made it up.
const MANY_CONNECTIONS: u32 = 4;

/// The receive window of a connection and of a stream, bytes: what an upload may have under way.
const UPLOAD_WINDOW: u32 = 16 << 20;

/// The same where nothing is taken: for the fields of requests.
const REQUEST_WINDOW: u32 = 64 << 10;

/// Bytes that wait to be sent beyond the congestion window: more would be sent in the order of
/// before when something more urgent comes.
const MAX_UNSENT: u64 = 128 * 1024;

/// Interval at which a connection that carries something is looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// The same of one that rests.
const REST_INTERVAL: Duration = Duration::from_secs(1);

/// The server's UDP socket.
pub(crate) struct Http3Listener {
    endpoint: Endpoint,
    /// By its socket.
    seen: Seen,
    tls: Arc<QuicServerConfig>,
    sender: SenderPolicy,
}

impl fmt::Debug for Http3Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.endpoint.fmt(f)
    }
}

impl Http3Listener {
    /// Listens on this address.
    pub(crate) fn bind(
        address: SocketAddr,
        tls: &ServerTls,
        sender: SenderPolicy,
    ) -> io::Result<Self> {
        let mut tls = tls.clone();
        tls.alpn_protocols = vec![b"h3".to_vec()];
        let tls = QuicServerConfig::try_from(tls).map_err(io::Error::other)?;
        let tls = Arc::new(tls);
        let config = ServerConfig::with_crypto(Arc::clone(&tls) as Arc<_>);
        let socket = std::net::UdpSocket::bind(address)?;
        // The kernel cuts it to its limit.
        SockRef::from(&socket).set_recv_buffer_size(RECEIVE_BUFFER)?;
        let seen = Seen::default();
        let endpoint = Endpoint::new_with_abstract_socket(
            EndpointConfig::default(),
            Some(config),
            Arc::new(ArrivalSocket::new(socket, seen.clone())?),
            Arc::new(ArrivalRuntime),
        )?;
        Ok(Self {
            endpoint,
            seen,
            tls,
            sender,
        })
    }

    /// Serves until the future is dropped, up to so many connections and requests at once, and so
    /// many of each of `peers`.
    pub(crate) async fn run(self, site: Arc<ServedSite>, peers: Peers, most: u32) -> Infallible {
        let permits = Arc::new(Semaphore::new(most as usize));
        let connections_of = peers.alike();
        let window = match site.uploads {
            Some(_) => UPLOAD_WINDOW,
            None => REQUEST_WINDOW,
        };
        let mut connections = JoinSet::new();
        loop {
            let incoming = tokio::select! {
                Some(_) = connections.join_next() => continue,
                incoming = self.endpoint.accept() => incoming,
            };
            let Some(incoming) = incoming else {
                tracing::error!("the UDP socket has failed, no more HTTP/3 is served");
                return std::future::pending().await;
            };
            let peer = incoming.remote_address();
            let is_crowded = permits.available_permits() < most.div_ceil(2) as usize
                || connections_of.served(peer.ip()) >= MANY_CONNECTIONS;
            if is_crowded && !incoming.remote_address_validated() {
                let _ = incoming.retry();
                continue;
            }
            let place = connections_of.enter(peer.ip(), site.clock.now());
            let place = place.filter(|place| place.is_served);
            let Some((place, permit)) = place.zip(Arc::clone(&permits).try_acquire_owned().ok())
            else {
                incoming.refuse();
                continue;
            };
            let sender = QuicSender::default();
            let accepted = incoming.accept_with(Arc::new(self.config(&sender, window)));
            let limits = Limits {
                peers: peers.clone(),
                permits: Arc::clone(&permits),
            };
            let site = Arc::clone(&site);
            connections.spawn(async move {
                let opened = async { accepted?.await };
                match tokio::time::timeout(site.patience.idle, opened).await {
                    Ok(Ok(connection)) => serve(&site, connection, peer, limits, &sender).await,
                    Ok(Err(error)) => tracing::debug!("{peer}: no QUIC: {error}"),
                    Err(_elapsed) => tracing::debug!("{peer}: no QUIC in time"),
                }
                drop((place, permit));
            });
        }
    }

    fn config(&self, sender: &QuicSender, window: u32) -> ServerConfig {
        let mut transport = TransportConfig::default();
        transport
            .initial_rtt(INITIAL_RTT)
            .max_concurrent_bidi_streams(VarInt::from_u32(MAX_REQUESTS))
            .max_concurrent_uni_streams(VarInt::from_u32(MAX_OTHER_STREAMS))
            .stream_receive_window(VarInt::from_u32(window))
            .receive_window(VarInt::from_u32(window))
            .send_window(MAX_UNSENT)
            .datagram_receive_buffer_size(None);
        sender.configure(&mut transport, self.sender.law(), &self.seen);
        let mut config = ServerConfig::with_crypto(Arc::clone(&self.tls) as Arc<_>);
        config.transport_config(Arc::new(transport));
        config
    }
}

/// How many requests there may be.
#[derive(Clone)]
struct Limits {
    /// Of each peer.
    peers: Peers,
    /// Of all of them, and of their connections.
    permits: Arc<Semaphore>,
}

impl Limits {
    /// Counts a request of this peer until it is dropped; `None` for one too many.
    fn enter(&self, peer: SocketAddr, now: Duration) -> Option<(PeerPlace, OwnedSemaphorePermit)> {
        let place = self.peers.enter(peer.ip(), now);
        let permit = Arc::clone(&self.permits).try_acquire_owned().ok();
        place.filter(|place| place.is_served).zip(permit)
    }
}

/// Serves a connection until it ends.
async fn serve(
    site: &Arc<ServedSite>,
    connection: quinn::Connection,
    peer: SocketAddr,
    limits: Limits,
    sender: &QuicSender,
) {
    let (tracker, responses) = ResponseTracker::new();
    let writing = Arc::new(AtomicUsize::new(0));
    let answered = async {
        let requests = Requests {
            site: Arc::clone(site),
            peer,
            limits,
            tracker,
            priorities: Priorities::default(),
            writing: Arc::clone(&writing),
        };
        if let Err(error) = requests.answer_all(connection.clone()).await
            && !error.is_h3_no_error()
        {
            tracing::debug!("{peer}: a connection broke: {error}");
        }
    };
    tokio::select! {
        () = answered => {}
        silence = hold(site, &connection, sender, responses, &writing) => {
            tracing::debug!("{peer}: {silence} for too long, closed");
        }
    }
    connection.close(code(Code::H3_NO_ERROR), b"");
}

/// The requests of a connection.
#[derive(Clone)]
struct Requests {
    site: Arc<ServedSite>,
    peer: SocketAddr,
    limits: Limits,
    tracker: ResponseTracker,
    priorities: Priorities,
    /// Responses that wait for room in the connection's buffer.
    writing: Arc<AtomicUsize>,
}

impl Requests {
    /// Answers requests until the client has no more.
    async fn answer_all(
        &self,
        connection: quinn::Connection,
    ) -> Result<(), h3::error::ConnectionError> {
        let streams = Streams::new(connection, self.priorities.clone(), None);
        let mut requests = h3::server::Connection::new(streams).await?;
        let mut answers = JoinSet::new();
        loop {
            let request = tokio::select! {
                Some(_) = answers.join_next() => continue,
                request = requests.accept() => request?,
            };
            let Some(request) = request else {
                while answers.join_next().await.is_some() {}
                return Ok(());
            };
            let this = self.clone();
            answers.spawn(async move {
                let peer = this.peer;
                if let Err(error) = this.answer_one(request).await {
                    tracing::debug!("{peer}: a request broke: {error}");
                }
            });
        }
    }

    async fn answer_one(self, request: RequestResolver<Streams, Bytes>) -> Result<(), StreamError> {
        let (request, stream) = request.resolve_request().await?;
        let id = stream.id();
        let (mut sending, receiving) = stream.split();
        let (mut parts, ()) = request.into_parts();
        // Over HTTP/1.1 the host is in a field, which may be there too.
        if let Some(authority) = parts.uri.authority()
            && let Ok(host) = HeaderValue::from_str(authority.as_str())
        {
            parts.headers.entry(HOST).or_insert(host);
        }
        let urgency = Urgency::of(&parts.headers);
        self.priorities.set(id, urgency.to_priority());
        let place = self.limits.enter(self.peer, self.site.clock.now());
        let response = match &place {
            Some(_) => {
                let body = Http3RequestBody::begin(receiving, &parts).await?.boxed();
                answer(&self.site, self.peer.ip(), &self.tracker, &parts, body).await
            }
            None => too_many_connections(),
        };
        log(self.peer, &parts, &response);
        let (mut head, mut body) = response.into_parts();
        head.headers.remove(CONNECTION);
        sending
            .send_response(http::Response::from_parts(head, ()))
            .await?;
        self.send_body(&mut sending, &mut body).await?;
        sending.finish().await
    }

    async fn send_body<B>(
        &self,
        sending: &mut RequestStream<Sending, Bytes>,
        body: &mut B,
    ) -> Result<(), StreamError>
    where
        B: Body<Data = Bytes, Error = io::Error> + Unpin,
    {
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else {
                sending.stop_stream(Code::H3_INTERNAL_ERROR);
                return Ok(());
            };
            if let Ok(data) = frame.into_data() {
                let _waits = WaitingCount::begin(&self.writing);
                sending.send_data(data).await?;
            }
        }
        Ok(())
    }
}

/// Counts as long as it is there.
struct WaitingCount<'a>(&'a AtomicUsize);

impl<'a> WaitingCount<'a> {
    fn begin(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for WaitingCount<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The body of a request.
struct Http3RequestBody {
    receiving: RequestStream<Receiving, Bytes>,
    length: BodyLength,
    /// What has come of it before it was asked for.
    first: Option<Bytes>,
    has_ended: bool,
}

impl Http3RequestBody {
    /// Of a request with this head. One that announces no body, but may have one, is awaited until
    /// it shows which.
    async fn begin(
        receiving: RequestStream<Receiving, Bytes>,
        head: &Parts,
    ) -> Result<Self, StreamError> {
        let mut upload = Self {
            receiving,
            length: BodyLength::announced(&head.headers),
            first: None,
            has_ended: false,
        };
        upload.has_ended = match upload.length.left() {
            Some(left) => left == 0,
            None if head.method == Method::GET || head.method == Method::HEAD => true,
            None => {
                let first = upload.receiving.recv_data().await?;
                upload.first = first.map(|mut data| data.copy_to_bytes(data.remaining()));
                upload.first.is_none()
            }
        };
        Ok(upload)
    }
}

impl Body for Http3RequestBody {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = &mut *self;
        if this.has_ended {
            return Poll::Ready(None);
        }
        let data = match this.first.take() {
            Some(first) => Ok(Some(first)),
            None => ready!(this.receiving.poll_recv_data(context))
                .map(|data| data.map(|mut data| data.copy_to_bytes(data.remaining()))),
        };
        let frame = this.length.frame(data);
        this.has_ended = !matches!(frame, Some(Ok(_)));
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.has_ended
    }

    fn size_hint(&self) -> SizeHint {
        self.length.hint()
    }
}

/// Holds a connection back as its responses ask. Returns why it is closed: a peer takes too little
/// of what waits for it, or asks for nothing.
async fn hold(
    site: &ServedSite,
    connection: &quinn::Connection,
    sender: &QuicSender,
    mut responses: watch::Receiver<ResponseState>,
    writing: &AtomicUsize,
) -> &'static str {
    let mut controller = ConnectionController::new();
    let (mut begun, mut is_sending) = (0, false);
    let mut before = 0;
    let mut heard = site.clock.now();
    let mut progress = TakenBytes::begin(heard);
    let mut wait = Duration::ZERO;
    loop {
        let is_news = tokio::select! {
            changed = responses.changed() => changed.is_ok(),
            () = tokio::time::sleep(wait) => false,
        };
        let now = site.clock.now();
        if is_news {
            let response = responses.borrow_and_update().clone();
            if response.begun > begun {
                controller.begin(now, response.mode, now < heard + TAIL);
                (begun, heard) = (response.begun, now);
                progress.since = now;
            }
            is_sending = response.is_sending;
        }
        let delivered = sender.delivered();
        let moved = delivered - std::mem::replace(&mut before, delivered);
        if moved > 0 || is_sending {
            heard = now;
        }
        progress.update(now, delivered, writing.load(Ordering::Relaxed) > 0);
        if now >= progress.since + site.patience.sending {
            return "it took too little";
        }
        if now >= heard + site.patience.idle {
            return "it was idle";
        }
        let is_active = is_sending || now < heard + TAIL;
        sender.set_target(controller.update(now, moved).filter(|_| is_active));
        connection.set_send_window(sender.window() + MAX_UNSENT);
        wait = if is_active {
            LOOK_INTERVAL
        } else {
            REST_INTERVAL
        };
    }
}
