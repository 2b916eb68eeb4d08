//! `fairbat serve`: a file server for bulk data. Its responses are held back at
//! this end: they yield to other traffic as far as the client's deadline allows.
//!
//! [`Server`] answers GET and HEAD for the regular files below one directory,
//! whole or in single ranges. It speaks HTTP/1.1: one request on a connection at
//! a time is one flow. Clients state their priority and deadline
//! ([`crate::http::priority`]). Other clients get an ordinary response, unless
//! the server is set to the background. Where uploads are allowed, it also takes
//! PUT, DELETE, MOVE and MKCOL, uploads in parts, and lists directories to programs; otherwise a
//! directory is a 404.
//!
//! | file | what |
//! |---|---|
//! | `site` | what all connections share |
//! | `limits` | how many connections there may be, in all and for each peer |
//! | `connection` | one connection: requests, lever, silence, end |
//! | `http3` | the same over QUIC |
//! | `controller` | the weight of one connection |
//! | `answer` | the answer to a request |
//! | `conditions` | validators of a file, and the conditions on them |
//! | `response` | responses and their bodies |
//! | `files` | which names are served, and what may be opened under them |
//! | `listing` | directories as JSON |
//! | `digests` | digests of whole files, computed in the background |
//! | `access` | bearer token and TLS |
//! | `write` | requests that change something |

mod access;
mod answer;
mod conditions;
mod connection;
mod controller;
mod digests;
mod files;
#[cfg(feature = "http3")]
mod http3;
mod limits;
mod listing;
mod response;
mod site;
mod write;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dalbe::sender::{SenderLeverKind, SenderLevers, SenderPolicy};
use http::HeaderValue;
use serde::Serialize;
use tokio::net::TcpListener;

pub use self::access::{TlsFiles, Token};
use self::digests::Digests;
use self::files::Root;
#[cfg(feature = "http3")]
use self::http3::Http3Listener;
use self::limits::{ConnectionLimits, Peers};
pub use self::site::Patience;
use self::site::ServedSite;
use self::write::scratch::UPLOAD_DESCRIPTORS;
use self::write::uploads::Uploads;
use crate::accept::{AcceptLimits, Accepted, accept_until};
use crate::clock::Clock;
use crate::error::{ErrorKind, TransferError};
use crate::http::host::{HostPattern, HostRule, own_names};

/// The settings of a server.
#[derive(Debug, Clone)]
pub struct ServeSettings {
    /// The directory whose files are served.
    pub directory: PathBuf,
    /// Address to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Whether responses yield if their requests state no priority.
    pub background: bool,
    /// The congestion control to use where FAIRBAT's own are set up.
    pub sender: SenderPolicy,
    /// Connections at once, at least 1. Others wait to be accepted.
    pub max_connections: u32,
    /// Connections of one peer at once, at least 1. One place is always left to
    /// other peers. A few more connections are answered 503, the rest are closed.
    /// A peer is an IPv4 address or an IPv6 network of 64 bits.
    pub max_per_peer: u32,
    /// Names of the server beyond its addresses and `localhost`. Requests with another
    /// host are refused. A server on another address than loopback also has the names
    /// that the kernel has for the machine when it starts.
    pub allowed_hosts: Vec<HostPattern>,
    /// The token that every request must show, if any.
    pub token: Option<Token>,
    /// The files for HTTPS; `None` serves plain HTTP.
    pub tls: Option<TlsFiles>,
    /// Whether HTTP/3 is spoken as well, over UDP on the same port. This needs `tls`.
    pub http3: bool,
    /// How long peers may be silent.
    pub patience: Patience,
    /// Whether files may be changed, and within which limits. On other addresses
    /// than loopback this needs a token.
    pub uploads: Option<UploadLimits>,
}

/// The limits on uploads.
#[derive(Debug, Clone, Copy, Default)]
pub struct UploadLimits {
    /// Largest size of a file, bytes.
    pub max_size: Option<u64>,
}

/// The events of a server: the `--json` interface of `fairbat serve`.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum ServeEvent {
    /// Connections are accepted from now on.
    Listening {
        /// IP address and port.
        address: SocketAddr,
        /// Where the files are: `http://ADDRESS/` or `https://ADDRESS/`.
        url: String,
        /// The lever on responses that yield ([`SenderLeverKind::name`]).
        lever: &'static str,
        /// FAIRBAT's congestion control in use; `None` under another lever.
        sender: Option<SenderPolicy>,
        /// Whether the server takes uploads.
        writable: bool,
        /// Whether it speaks HTTP/3.
        http3: bool,
    },
}

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    #[cfg(feature = "http3")]
    http3: Option<Http3Listener>,
    address: SocketAddr,
    max_connections: u32,
    max_per_peer: u32,
    site: Arc<ServedSite>,
}

impl Server {
    /// Checks the settings and begins to listen. Needs a tokio runtime.
    ///
    /// # Errors
    /// The directory or the certificate cannot be used, the address is in use
    /// or not of this machine, the kernel is too old, or everybody on the network
    /// could change the files.
    pub async fn bind(settings: &ServeSettings) -> Result<Self, TransferError> {
        check_uploads(settings)?;
        check_http3(settings)?;
        let root = Root::open(&settings.directory)?;
        let tls = settings.tls.as_ref().map(access::tls).transpose()?;
        let digests = Digests::start().map_err(|error| {
            TransferError::new(ErrorKind::Other, format!("cannot start a thread: {error}"))
        })?;
        let cannot_listen = |over: &'static str| {
            move |error: io::Error| {
                let message = format!("cannot listen on {}{over}: {error}", settings.listen);
                let hint = match error.kind() {
                    io::ErrorKind::AddrInUse => {
                        "end the other server, or choose another port with --listen; port 0 takes \
                     a free one"
                    }
                    io::ErrorKind::PermissionDenied => {
                        "ports below 1024 are root's; choose another"
                    }
                    _ => {
                        "--listen takes an address of this machine, as 127.0.0.1:8080 or [::]:8080"
                    }
                };
                TransferError::new(ErrorKind::Other, message).with_hint(hint)
            }
        };
        let listener = TcpListener::bind(settings.listen)
            .await
            .map_err(cannot_listen(""))?;
        let address = listener.local_addr().map_err(cannot_listen(""))?;
        #[cfg(feature = "http3")]
        let http3 = match &tls {
            Some(tls) if settings.http3 => {
                let bound = Http3Listener::bind(address, tls, settings.sender);
                Some(bound.map_err(cannot_listen(" over UDP"))?)
            }
            _ => None,
        };
        let begin = |limits: &UploadLimits| Uploads::begin(&root, limits.max_size).map(Arc::new);
        let uploads = settings.uploads.as_ref().map(begin).transpose()?;
        let mut allowed = settings.allowed_hosts.clone();
        if !is_loopback(settings) {
            allowed.extend(own_names());
        }
        Ok(Self {
            listener,
            #[cfg(feature = "http3")]
            http3,
            address,
            max_connections: settings.max_connections,
            max_per_peer: settings.max_per_peer,
            site: Arc::new(ServedSite {
                root,
                digests,
                hosts: HostRule {
                    without_host: true,
                    allowed,
                },
                token: settings.token.clone(),
                tls,
                background: settings.background,
                offer: settings.http3.then(|| offer(address)),
                levers: SenderLevers::open(settings.sender),
                clock: Clock::start(),
                patience: settings.patience,
                warnings: Mutex::default(),
                host_warnings: Mutex::default(),
                uploads,
            }),
        })
    }

    /// The address that the server listens on, with its port.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of the directory.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = match self.site.tls {
            None => "http",
            Some(_) => "https",
        };
        format!("{scheme}://{}/", self.address)
    }

    /// The lever on responses that yield.
    #[must_use]
    pub fn lever(&self) -> SenderLeverKind {
        self.site.levers.kind()
    }

    /// The event of a server that listens.
    #[must_use]
    pub fn listening(&self) -> ServeEvent {
        ServeEvent::Listening {
            address: self.address,
            url: self.url(),
            lever: self.lever().name(),
            sender: self.site.levers.policy(),
            writable: self.site.uploads.is_some(),
            http3: self.site.offer.is_some(),
        }
    }

    /// Serves until the future is dropped, which breaks off all connections.
    pub async fn run(self) -> Infallible {
        let site = self.site;
        let limits = ConnectionLimits::within_open_files(
            self.max_connections,
            site.uploads.as_ref().map_or(0, |_| UPLOAD_DESCRIPTORS),
        );
        let peers = Peers::new(limits.for_one_peer(self.max_per_peer), limits.refused);
        let accept_limits = AcceptLimits {
            server: "the server",
            max_connections: limits.served as usize,
            grace: Duration::ZERO,
        };
        let begin = |accepted: Accepted<TcpListener>| {
            let (stream, peer) = (accepted.stream, accepted.peer);
            let place = peers.enter(peer.ip(), site.clock.now())?;
            // A refused connection takes no permit from the others.
            let permit = place.is_served.then_some(accepted.permit);
            let site = Arc::clone(&site);
            Some(async move {
                connection::serve(&site, stream, peer, place.is_served).await;
                drop((place, permit));
            })
        };
        let over_tcp = accept_until(self.listener, accept_limits, std::future::pending(), begin);
        #[cfg(feature = "http3")]
        if let Some(http3) = self.http3 {
            let over_quic = http3.run(Arc::clone(&site), peers.clone(), limits.served);
            return tokio::select! {
                never = over_tcp => never,
                never = over_quic => never,
            };
        }
        over_tcp.await
    }
}

/// Refuses HTTP/3 where it cannot be spoken.
fn check_http3(settings: &ServeSettings) -> Result<(), TransferError> {
    if !settings.http3 {
        return Ok(());
    }
    if cfg!(not(feature = "http3")) {
        let message = "this build speaks no HTTP/3; build it with the feature http3";
        return Err(TransferError::new(ErrorKind::Other, message));
    }
    if settings.tls.is_none() {
        let message = "HTTP/3 is spoken over TLS only";
        return Err(
            TransferError::new(ErrorKind::Other, message).with_hint("add --tls-cert and --tls-key")
        );
    }
    Ok(())
}

/// What responses over TCP say of HTTP/3 (RFC 7838).
fn offer(address: SocketAddr) -> HeaderValue {
    let offer = format!("h3=\":{}\"; ma=86400", address.port());
    HeaderValue::try_from(offer).expect("these characters are allowed")
}

/// Whether only this machine reaches the server.
fn is_loopback(settings: &ServeSettings) -> bool {
    settings.listen.ip().to_canonical().is_loopback()
}

/// Refuses uploads from a network without a token: everybody there could fill the
/// disk and change what others fetch.
fn check_uploads(settings: &ServeSettings) -> Result<(), TransferError> {
    let is_open = settings.token.is_none() && !is_loopback(settings);
    if settings.uploads.is_none() || !is_open {
        return Ok(());
    }
    let message = format!(
        "--writable without --token-file: whoever reaches {} could change all files there",
        settings.listen
    );
    let hint = "add --token-file FILE ((umask 077; openssl rand -hex 32 > FILE) makes one), or \
                listen on a loopback address, as 127.0.0.1:8080";
    Err(TransferError::new(ErrorKind::Other, message).with_hint(hint))
}
