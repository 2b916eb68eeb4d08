//! HTTP/3 (RFC 9114): the requests of a client go over one QUIC connection to each host that offers
//! it, and over TCP wherever that does not work.
//!
//! | file | what |
//! |---|---|
//! | `connection` | a QUIC connection: opens, closes |
//! | `exchange` | one request and its answer |
//!
//! A host offers it by `Alt-Svc`. If no connection opens within [`PATIENCE`], the request goes over
//! TCP, and so do all others for a while.

mod connection;
mod exchange;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dalbe::quic::FREE_WINDOW;
use http::Request;
use reqwest::Response;
use rustls::ClientConfig;
use tokio::sync::mpsc::UnboundedSender;
use url::{Origin, Url};

use self::connection::{Connection, DialError, Dialer, InUse, Server};
use self::exchange::Broken;
use super::sending::{NewConnection, SendingEnd};
use super::tap::{ReceiveWindow, Tap};
use crate::clock::Clock;
use crate::error::ErrorKind;
use crate::http::alternative::Offer;
use crate::http::urgency::Urgency;
use crate::http::{Failure, Transient};
use crate::settings::{Http3Policy, HttpSettings};

/// A connection that has not opened by then does not keep a request from TCP.
const PATIENCE: Duration = Duration::from_millis(800);

/// The same where TCP is no choice, and the user has set no limit.
const PATIENCE_WITHOUT_TCP: Duration = Duration::from_secs(30);

/// After a failure, TCP is used for so long.
const SHUNNED: Duration = Duration::from_secs(5 * 60);

/// The receive window to begin with where it is held, bytes: as that of TCP.
const HELD_WINDOW: u32 = 64 * 1024;

/// The connections of a client that speak HTTP/3. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Http3 {
    clock: Clock,
    policy: Http3Policy,
    dialer: Dialer,
    patience: Duration,
    max_silence: Option<Duration>,
    /// Who hears of connections that send.
    opened: Option<UnboundedSender<NewConnection>>,
    /// Whether a connection carries more than one request.
    keeps_connections: bool,
    hosts: Arc<Mutex<HashMap<Origin, Host>>>,
}

/// What is known of a host.
#[derive(Debug, Default)]
struct Host {
    /// Where it offers HTTP/3, and until when that holds.
    offer: Option<(Server, Duration)>,
    shunned_until: Option<Duration>,
    connection: Slot,
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
            clock: Clock::start(),
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
            hosts: Arc::default(),
        }
    }

    /// Sends a request, if its host offers HTTP/3.
    ///
    /// # Errors
    /// It has been sent, or TCP is no choice.
    pub(crate) async fn send(&self, request: reqwest::Request) -> Result<Sent, Failure> {
        let url = request.url().clone();
        let Some((server, slot)) = self.server_of(&url)? else {
            return Ok(Sent::OverTcp(request));
        };
        let connection = match self.connection(&server, &slot).await {
            Ok(connection) => connection,
            Err(error) if self.policy == Http3Policy::Only => return Err(not_open(&error)),
            Err(error) => {
                tracing::info!("{server}: no HTTP/3, going on over TCP: {error}");
                self.shun(&url);
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
        let known = match offer {
            Offer::Withdrawn => None,
            Offer::At(alternative) => server(url).map(|origin| {
                let until = self.clock.now() + alternative.age;
                let host = alternative.host.unwrap_or(origin.host);
                let port = alternative.port;
                (
                    Server {
                        host,
                        port,
                        ..origin
                    },
                    until,
                )
            }),
        };
        self.hosts().entry(url.origin()).or_default().offer = known;
    }

    /// Where HTTP/3 is spoken for this URL, and the place for the connection; `None` where the
    /// request goes over TCP.
    fn server_of(&self, url: &Url) -> Result<Option<(Server, Slot)>, Failure> {
        if self.policy == Http3Policy::Never {
            return Ok(None);
        }
        let is_only = self.policy == Http3Policy::Only;
        let Some(origin) = server(url).filter(|_| url.scheme() == "https") else {
            let hint = "give an https URL, or leave out --http3 only";
            let refused = || Failure::refused("HTTP/3 is spoken over TLS only", hint);
            return is_only.then(refused).map_or(Ok(None), Err);
        };
        let now = self.clock.now();
        let mut hosts = self.hosts();
        if is_only {
            let host = hosts.entry(url.origin()).or_default();
            return Ok(Some((origin, Arc::clone(&host.connection))));
        }
        let known = hosts.get(&url.origin());
        let known = known.filter(|host| host.shunned_until.is_none_or(|until| until <= now));
        Ok(known.and_then(|host| {
            let (server, until) = host.offer.as_ref()?;
            (*until > now).then(|| (server.clone(), Arc::clone(&host.connection)))
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

    fn shun(&self, url: &Url) {
        let until = self.clock.now() + SHUNNED;
        let mut hosts = self.hosts();
        hosts.entry(url.origin()).or_default().shunned_until = Some(until);
    }

    fn hosts(&self) -> MutexGuard<'_, HashMap<Origin, Host>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
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
