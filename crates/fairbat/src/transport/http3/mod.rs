//! HTTP/3 (RFC 9114): the requests of a client go over one QUIC connection to each host that offers
//! it, and over TCP wherever that does not work.
//!
//! | file | what |
//! |---|---|
//! | `address` | the address of this machine, and its changes |
//! | `connection` | a QUIC connection: opens, closes |
//! | `exchange` | one request and its answer |
//! | `memory` | what is remembered from one run to the next |
//! | `records` | what the DNS says |
//!
//! A host offers it by `Alt-Svc`, or by a record in the DNS. If no connection opens within [`PATIENCE`], the request goes over
//! TCP, and so do all others in the same network for a while.

mod address;
mod connection;
mod exchange;
mod memory;
mod records;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dalbe::quic::FREE_WINDOW;
use http::{Request, Uri};
use hyper_util::client::proxy::matcher::Matcher;
use reqwest::Response;
use rustls::ClientConfig;
use tokio::sync::OnceCell;
use tokio::sync::mpsc::UnboundedSender;
use url::{Origin, Url};

use self::connection::{Connection, DialError, Dialer, InUse, Server};
use self::exchange::Broken;
use self::memory::Memory;
use super::sending::{NewConnection, SendingEnd};
use super::tap::{ReceiveWindow, Tap};
use crate::error::ErrorKind;
use crate::http::alternative::{Alternative, Offer};
use crate::http::urgency::Urgency;
use crate::http::{Failure, Transient};
use crate::settings::{Http3Policy, HttpSettings};

/// A connection that has not opened by then does not keep a request from TCP.
const PATIENCE: Duration = Duration::from_millis(800);

/// The same where TCP is no choice, and the user has set no limit.
const PATIENCE_WITHOUT_TCP: Duration = Duration::from_secs(30);

/// So long the first request to a host waits for the DNS to say whether it speaks HTTP/3.
const RECORD_PATIENCE: Duration = Duration::from_millis(200);

/// The receive window to begin with where it is held, bytes: as that of TCP.
const HELD_WINDOW: u32 = 64 * 1024;

/// The connections of a client that speak HTTP/3. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Http3 {
    policy: Http3Policy,
    dialer: Dialer,
    patience: Duration,
    max_silence: Option<Duration>,
    /// Who hears of connections that send.
    opened: Option<UnboundedSender<NewConnection>>,
    /// Whether a connection carries more than one request.
    keeps_connections: bool,
    memory: Memory,
    /// The network that connections leave by.
    network: String,
    /// The proxies of the environment.
    proxies: Arc<Matcher>,
    /// The connections, by the origin that they are for.
    connections: Arc<Mutex<HashMap<Origin, Slot>>>,
    /// Origins whose records have been looked up, or are being.
    looked_up: Arc<Mutex<HashMap<Origin, Arc<OnceCell<()>>>>>,
}

/// The place for a connection. Whoever opens it keeps others waiting, who want the same.
type Slot = Arc<tokio::sync::Mutex<Option<Arc<Connection>>>>;

/// How a request goes on.
pub(crate) enum Sent {
    /// It was answered.
    Answered(Response),
    /// It has not been sent: send it over TCP.
    OverTcp(reqwest::Request),
}

impl Http3 {
    /// None of its connections is open yet.
    pub(crate) fn new(
        settings: &HttpSettings,
        tls: &ClientConfig,
        connections: u32,
        tap: &Tap,
    ) -> Self {
        let mut tls = tls.clone();
        tls.alpn_protocols = vec![b"h3".to_vec()];
        let patience = match settings.http3 {
            Http3Policy::Only => settings.connect_timeout.unwrap_or(PATIENCE_WITHOUT_TCP),
            Http3Policy::Auto | Http3Policy::Never => PATIENCE,
        };
        Self {
            policy: settings.http3,
            dialer: Dialer {
                tls,
                local_end: settings.local_end.clone(),
                window: first_window(tap),
                law: match tap {
                    Tap::Receive(_) => None,
                    Tap::Send(tap) => Some(tap.levers.wanted().law()),
                },
            },
            patience,
            max_silence: settings.stall_timeout,
            opened: match tap {
                Tap::Receive(_) => None,
                Tap::Send(tap) => Some(tap.opened.clone()),
            },
            keeps_connections: connections > 0,
            memory: Memory::load(settings.http3_memory.clone()),
            network: memory::network(settings.local_end.as_ref()),
            proxies: Arc::new(Matcher::from_system()),
            connections: Arc::default(),
            looked_up: Arc::default(),
        }
    }

    /// Sends a request, if its host offers HTTP/3.
    ///
    /// # Errors
    /// It has been sent, or TCP is no choice.
    pub(crate) async fn send(&self, request: reqwest::Request) -> Result<Sent, Failure> {
        let url = request.url().clone();
        self.look_up(&url).await;
        let Some((server, slot)) = self.server_of(&url)? else {
            return Ok(Sent::OverTcp(request));
        };
        let connection = match self.connection(&server, &slot).await {
            Ok(connection) => connection,
            Err(error) if self.policy == Http3Policy::Only => return Err(not_open(&error)),
            Err(error) => {
                tracing::info!("{server}: no HTTP/3, going on over TCP: {error}");
                self.memory
                    .note_success(&url.origin(), &self.network, false);
                return Ok(Sent::OverTcp(request));
            }
        };
        let receiver = connection.receiver.clone();
        let urgency = Urgency::of(request.headers());
        let request = Request::<reqwest::Body>::try_from(request).map_err(Failure::from)?;
        let answer = exchange::exchange(
            connection.requests(),
            request,
            urgency.to_priority(),
            InUse::of(connection),
            self.max_silence,
        );
        let mut response = answer.await.map_err(Failure::from)?;
        response.extensions_mut().insert(receiver);
        Ok(Sent::Answered(Response::from(response)))
    }

    /// Notes what a response from this URL says of HTTP/3.
    pub(crate) fn heed(&self, url: &Url, response: &Response) {
        let offer = Offer::of(response.headers()).filter(|_| url.scheme() == "https");
        let (Http3Policy::Auto, Some(offer)) = (self.policy, offer) else {
            return;
        };
        let offer = match offer {
            Offer::Withdrawn => None,
            Offer::At(alternative) => at(url, alternative),
        };
        self.memory.note_offer(&url.origin(), offer);
    }

    /// Asks the DNS once what it says of HTTP/3 for this URL, and notes it.
    async fn look_up(&self, url: &Url) {
        let origin = url.origin();
        let is_wanted = self.policy == Http3Policy::Auto && url.scheme() == "https";
        if !is_wanted || self.is_proxied(url) || self.memory.knows(&origin, &self.network) {
            return;
        }
        let cell = {
            let looked_up = self.looked_up.lock();
            let mut looked_up = looked_up.unwrap_or_else(PoisonError::into_inner);
            Arc::clone(looked_up.entry(origin.clone()).or_default())
        };
        let look_up = || async {
            let found = tokio::time::timeout(RECORD_PATIENCE, records::look_up(url)).await;
            if let Some(offer) = found.ok().flatten().and_then(|found| at(url, found)) {
                self.memory.note_offer(&origin, Some(offer));
            }
        };
        cell.get_or_init(look_up).await;
    }

    fn is_proxied(&self, url: &Url) -> bool {
        let uri = url.as_str().parse().ok();
        uri.is_some_and(|uri: Uri| self.proxies.intercept(&uri).is_some())
    }

    /// Where HTTP/3 is spoken for this URL, and the place for the connection; `None` where the
    /// request goes over TCP.
    fn server_of(&self, url: &Url) -> Result<Option<(Server, Slot)>, Failure> {
        if self.policy == Http3Policy::Never {
            return Ok(None);
        }
        let is_only = self.policy == Http3Policy::Only;
        let refused = |why: &str, hint: &str| match is_only {
            true => Err(Failure::refused(why, hint)),
            false => Ok(None),
        };
        let Some(origin) = server(url).filter(|_| url.scheme() == "https") else {
            let hint = "give an https URL, or leave out --http3 only";
            return refused("HTTP/3 is spoken over TLS only", hint);
        };
        if self.is_proxied(url) {
            let hint = "except the host from the proxy with NO_PROXY, or leave out --http3 only";
            return refused("HTTP/3 does not go through a proxy", hint);
        }
        let server = match is_only {
            true => Some(origin),
            false => self.memory.offer(&url.origin(), &self.network),
        };
        Ok(server.map(|server| {
            let connections = self.connections.lock();
            let mut connections = connections.unwrap_or_else(PoisonError::into_inner);
            let slot = connections.entry(url.origin()).or_default();
            (server, Arc::clone(slot))
        }))
    }

    /// The connection to a server, which is opened if there is none.
    async fn connection(&self, server: &Server, slot: &Slot) -> Result<Arc<Connection>, DialError> {
        let mut slot = slot.lock().await;
        let open = slot.as_ref().filter(|connection| connection.is_open());
        if let Some(open) = open.filter(|_| self.keeps_connections) {
            return Ok(Arc::clone(open));
        }
        let dialed = tokio::time::timeout(self.patience, self.dialer.dial(server)).await;
        let dialed =
            dialed.unwrap_or(Err(DialError::Connection(quinn::ConnectionError::TimedOut)))?;
        let connection = Arc::new(dialed);
        if let Some(opened) = &self.opened {
            let sender = connection.sender.clone();
            // This fails if the upload was stopped while it connected.
            let _ = opened.send(NewConnection {
                acked_before: Some(sender.delivered()),
                end: SendingEnd::Quic(sender),
            });
        }
        tokio::spawn(Connection::close_after_rest(Arc::downgrade(&connection)));
        *slot = Some(Arc::clone(&connection));
        Ok(connection)
    }
}

/// The receive window of a new connection, bytes.
fn first_window(tap: &Tap) -> u32 {
    match tap {
        Tap::Receive(ReceiveWindow {
            max_window: Some(bytes),
            ..
        }) => *bytes,
        Tap::Receive(ReceiveWindow { is_held: true, .. }) => HELD_WINDOW,
        Tap::Receive(_) | Tap::Send(_) => FREE_WINDOW,
    }
}

/// Where an alternative of the origin of this URL is, and for how long.
fn at(url: &Url, alternative: Alternative) -> Option<(Server, Duration)> {
    let origin = server(url)?;
    let server = Server {
        host: alternative.host.unwrap_or(origin.host),
        port: alternative.port,
        name: origin.name,
    };
    Some((server, alternative.age))
}

/// Where the origin of a URL itself would be spoken to.
fn server(url: &Url) -> Option<Server> {
    let host = url.host_str()?.to_owned();
    Some(Server {
        name: host
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned(),
        host,
        port: url.port_or_known_default()?,
    })
}

fn not_open(error: &DialError) -> Failure {
    if let Some(reason) = error.insecure() {
        return Failure::refused(
            format!("no secure connection: {reason}"),
            "without --http3 only, the error over TCP says more",
        );
    }
    Failure::Transient(Transient {
        hint: "the server may not speak HTTP/3, or UDP may be blocked: leave out --http3 only",
        kind: ErrorKind::Network,
        ..Transient::server(error.to_string())
    })
}

impl From<Broken> for Failure {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::Silent(_) => Self::network("the server fell silent"),
            other => Self::network(other.to_string()),
        }
    }
}
