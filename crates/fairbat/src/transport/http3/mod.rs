//! HTTP/3 (RFC 9114): the requests of a client go over one QUIC connection to each host that offers
//! it, and over TCP wherever that does not work.
//!
//! | file | what |
//! |---|---|
//! | `address` | the address of this machine, and its changes |
//! | `connection` | a QUIC connection: opens, closes |
//! | `exchange` | one request and its answer |
//! | `leave` | the end of a connection, which its server is told of |
//! | `memory` | what is remembered from one run to the next |
//! | `records` | what the DNS says |
//!
//! A host offers it by `Alt-Svc`, or by a record in the DNS. If no connection opens within [`PATIENCE`], the request goes over
//! TCP, and so do all others in the same network for a while.

mod address;
mod connection;
mod exchange;
mod leave;
mod memory;
mod records;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dalbe::ebpf::CongestionLaw;
use dalbe::quic::FREE_WINDOW;
use http::{Request, StatusCode, Uri};
use hyper_util::client::proxy::matcher::Matcher;
use reqwest::Response;
use rustls::ClientConfig;
use rustls::client::Resumption;
use tokio::sync::OnceCell;
use tokio::sync::mpsc::UnboundedSender;
use url::{Origin, Url};

use self::connection::{ConnectionUse, DialError, Dialer, Http3Connection, ServerAddress};
use self::exchange::Broken;
pub use self::leave::say_goodbye;
use self::memory::Memory;
use super::sending::{NewConnection, SendingEnd};
use super::tap::{ReceiveWindow, Tap};
use crate::error::ErrorKind;
use crate::http::alternative::{Alternative, Offer};
use crate::http::host::without_brackets;
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
    /// The proxies of the environment.
    proxies: Arc<Matcher>,
    /// The connections, by the origin that they are for.
    connections: Arc<Mutex<HashMap<Origin, ConnectionSlot>>>,
    /// Origins whose records have been looked up, or are being.
    looked_up: Arc<Mutex<HashMap<Origin, Arc<OnceCell<()>>>>>,
}

/// The place for a connection. A request that opens it keeps others waiting that want the same.
type ConnectionSlot = Arc<tokio::sync::Mutex<Option<Arc<Http3Connection>>>>;

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
        tls.enable_early_data = settings.early_data;
        // A store of its own: tickets of TLS over TCP are no good here.
        tls.resumption = Resumption::default();
        let patience = match settings.http3 {
            Http3Policy::Only => settings.connect_timeout.unwrap_or(PATIENCE_WITHOUT_TCP),
            Http3Policy::Auto | Http3Policy::Never => PATIENCE,
        };
        Self {
            policy: settings.http3,
            dialer: Dialer {
                local_end: settings.local_end.clone(),
                window: first_window(tap),
                law: law(tap),
                early_data: Arc::new(AtomicBool::new(settings.early_data)),
                tls,
            },
            patience,
            max_silence: settings.stall_timeout,
            opened: opened(tap),
            keeps_connections: connections > 0,
            memory: Memory::load(settings.http3_memory.clone()),
            proxies: Arc::new(Matcher::from_system()),
            connections: Arc::default(),
            looked_up: Arc::default(),
        }
    }

    /// The same with connections of its own.
    pub(crate) fn with_connections(&self, connections: u32, tap: &Tap) -> Self {
        Self {
            dialer: Dialer {
                window: first_window(tap),
                law: law(tap),
                ..self.dialer.clone()
            },
            opened: opened(tap),
            keeps_connections: connections > 0,
            connections: Arc::default(),
            ..self.clone()
        }
    }

    /// Sends a request, if its host offers HTTP/3.
    ///
    /// # Errors
    /// It has been sent, or TCP is no choice.
    pub(crate) async fn send(&self, request: reqwest::Request) -> Result<Sent, Failure> {
        let url = request.url().clone();
        let connection = match self.may_be_spoken(&url)? {
            true => self.connection(&url).await?,
            false => None,
        };
        let Some(connection) = connection else {
            return Ok(Sent::OverTcp(request));
        };
        let receiver = connection.receiver.clone();
        let urgency = Urgency::of(request.headers());
        let again = request.try_clone();
        let is_early = connection.is_early();
        let request = Request::<reqwest::Body>::try_from(request).map_err(Failure::from)?;
        let answer = exchange::exchange(
            connection.requests(),
            request,
            urgency.to_priority(),
            ConnectionUse::of(Arc::clone(&connection)),
            self.max_silence,
        );
        let answer = answer.await;
        let was_too_early = is_early
            && match &answer {
                Ok(response) => response.status() == StatusCode::TOO_EARLY,
                Err(_) => connection.was_too_early().await,
            };
        let is_refused = answer.as_ref().is_err_and(Broken::is_refused);
        // A server that refuses everything does not get it again and again.
        let is_again = was_too_early || is_refused && !connection.is_unproven();
        if let Some(again) = again.filter(|_| is_again) {
            connection.spend();
            if was_too_early {
                self.dialer.early_data.store(false, Ordering::Relaxed);
            }
            return Box::pin(self.send(again)).await;
        }
        let mut response = match answer {
            Ok(response) => response,
            Err(broken) => {
                if is_refused || connection.is_unproven() {
                    connection.spend();
                }
                if connection.is_unproven() && !is_refused && !connection.was_closed_here() {
                    self.note_failure(&url);
                }
                return Err(broken.into());
            }
        };
        connection.note_answer();
        if response.status() == StatusCode::MISDIRECTED_REQUEST && self.policy == Http3Policy::Auto
        {
            // The alternative does not answer for this origin (RFC 7838, section 6).
            self.note_failure(&url);
            return Err(Failure::network(
                "the server offers HTTP/3 where it is not spoken",
            ));
        }
        response.extensions_mut().insert(receiver);
        let response = Response::from(response);
        self.heed(&url, &response);
        Ok(Sent::Answered(response))
    }

    /// The next requests to this origin go over TCP, as long as this machine is in this network.
    fn note_failure(&self, url: &Url) {
        self.memory.note_failure(&url.origin(), &self.network());
    }

    /// The network that connections leave by now.
    fn network(&self) -> String {
        memory::network(self.dialer.local_end.as_ref())
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

    /// Where this URL's host offers HTTP/3, unless that has failed here. The DNS is asked once.
    async fn offered(&self, url: &Url) -> Option<ServerAddress> {
        let origin = url.origin();
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
        if !cell.initialized() && !self.memory.knows(&origin, &self.network()) {
            cell.get_or_init(look_up).await;
        }
        self.memory.offer(&origin, || self.network())
    }

    fn is_proxied(&self, url: &Url) -> bool {
        let uri = url.as_str().parse().ok();
        uri.is_some_and(|uri: Uri| self.proxies.intercept(&uri).is_some())
    }

    /// Whether a request to this URL may go over HTTP/3.
    ///
    /// # Errors
    /// It may not, and TCP is no choice.
    fn may_be_spoken(&self, url: &Url) -> Result<bool, Failure> {
        let refused = |why: &str, hint: &str| match self.policy {
            Http3Policy::Only => Err(Failure::refused(why, hint)),
            Http3Policy::Auto | Http3Policy::Never => Ok(false),
        };
        if self.policy == Http3Policy::Never {
            return Ok(false);
        }
        if url.scheme() != "https" || url.host_str().is_none() {
            let hint = "give an https URL, or leave out --http3 only";
            return refused("HTTP/3 is spoken over TLS only", hint);
        }
        if self.is_proxied(url) {
            let hint = "except the host from the proxy with NO_PROXY, or leave out --http3 only";
            return refused("HTTP/3 does not go through a proxy", hint);
        }
        Ok(true)
    }

    /// The connection for this URL, which is opened if there is none; `None` where requests go over
    /// TCP.
    async fn connection(&self, url: &Url) -> Result<Option<Arc<Http3Connection>>, Failure> {
        let slot = {
            let connections = self.connections.lock();
            let mut connections = connections.unwrap_or_else(PoisonError::into_inner);
            Arc::clone(connections.entry(url.origin()).or_default())
        };
        let mut slot = slot.lock().await;
        let open = slot.as_ref().filter(|connection| connection.is_open());
        if let Some(open) = open.filter(|_| self.keeps_connections) {
            return Ok(Some(Arc::clone(open)));
        }
        // It may have failed while this request waited.
        let server = match self.policy {
            Http3Policy::Only => server(url),
            Http3Policy::Auto | Http3Policy::Never => self.offered(url).await,
        };
        let Some((server, host)) = server.zip(url.host_str()) else {
            return Ok(None);
        };
        let name = without_brackets(host);
        let connection = match self.dialer.dial(&server, name, self.patience).await {
            Ok(connection) => Arc::new(connection),
            Err(error) if self.policy == Http3Policy::Only => return Err(not_open(&error)),
            Err(error) => {
                tracing::info!("{server}: no HTTP/3, going on over TCP: {error}");
                if error.is_of_server() {
                    self.note_failure(url);
                }
                return Ok(None);
            }
        };
        if let Some(opened) = &self.opened {
            let sender = connection.sender.clone();
            // This fails if the upload was stopped while it connected.
            let _ = opened.send(NewConnection {
                acked_before: Some(sender.delivered()),
                end: SendingEnd::Quic(sender),
            });
        }
        tokio::spawn(Http3Connection::close_after_rest(Arc::downgrade(
            &connection,
        )));
        *slot = Some(Arc::clone(&connection));
        Ok(Some(connection))
    }
}

/// The law of a connection that sends.
fn law(tap: &Tap) -> Option<CongestionLaw> {
    match tap {
        Tap::Receive(_) => None,
        Tap::Send(tap) => Some(tap.levers.wanted().law()),
    }
}

/// Who hears of connections that send.
fn opened(tap: &Tap) -> Option<UnboundedSender<NewConnection>> {
    match tap {
        Tap::Receive(_) => None,
        Tap::Send(tap) => Some(tap.opened.clone()),
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
fn at(url: &Url, alternative: Alternative) -> Option<(ServerAddress, Duration)> {
    let origin = server(url)?;
    let server = ServerAddress {
        host: alternative.host.unwrap_or(origin.host),
        port: alternative.port,
    };
    Some((server, alternative.age))
}

/// Where the origin of a URL itself would be spoken to.
fn server(url: &Url) -> Option<ServerAddress> {
    Some(ServerAddress {
        host: url.host_str()?.to_owned(),
        port: url.port_or_known_default()?,
    })
}

fn not_open(error: &DialError) -> Failure {
    if let Some(reason) = error.insecure() {
        return Failure::refused(
            format!("no secure connection: {reason}"),
            "a private authority, or a self-signed certificate, is named with --cacert; with --http3 \
             never, the error says more",
        );
    }
    if error.is_refused() {
        return Failure::Transient(Transient {
            push_back: true,
            ..Transient::server("the server takes no more connections now")
        });
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
