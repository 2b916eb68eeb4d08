//! A file server for bulk data, whose responses can be held back at this end:
//! they yield to other traffic as far as the client's deadline allows.
//!
//! [`Server`] answers GET and HEAD for the regular files below one directory,
//! whole or in single ranges, over HTTP/1.1: one request on a connection at a
//! time is one flow. Clients say how they want it ([`crate::http::wish`]); those
//! that say nothing get what any server gives, unless the server is told to
//! keep to the background. There are no listings: a directory is 404.
//!
//! Where that is wanted it also takes uploads by PUT, changes names (DELETE, MOVE,
//! MKCOL), and lists directories to programs.
//!
//! It must not know how a flow is held back: that is `dalbe::sender`'s business.

mod access;
mod answer;
mod body;
mod conditions;
mod connection;
mod digests;
mod files;
mod flow;
mod linger;
mod listing;
mod pace;
mod payload;
mod peers;
mod room;
mod validators;
mod write;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dalbe::sender::{SenderLeverKind, SenderLevers, SenderPolicy};
use serde::Serialize;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

pub use self::access::Token;
use self::digests::Digests;
use self::files::Root;
use self::peers::Peers;
use self::room::Room;
use self::write::Writing;
use crate::accept::{AcceptLimits, Accepted, WarningThrottle, accept_until};
use crate::clock::Clock;
use crate::error::{ErrorKind, TransferError};

/// What is served, and to whom.
#[derive(Debug, Clone)]
pub struct ServeSettings {
    /// The directory whose files are served.
    pub directory: PathBuf,
    /// Address to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Whether responses yield whose requests say nothing of it.
    pub background: bool,
    /// Which congestion control of our own, where there is any.
    pub sender: SenderPolicy,
    /// Connections at once, at least 1; others wait to be accepted.
    pub max_connections: u32,
    /// Connections of one peer at once, at least 1, and never all that there may
    /// be; some more are answered 503, others are closed. A peer is an IPv4
    /// address or an IPv6 network of 64 bits.
    pub max_per_peer: u32,
    /// What every request must show, if anything.
    pub token: Option<Token>,
    /// Serve HTTPS by these.
    pub tls: Option<TlsFiles>,
    /// When a silent peer is given up.
    pub patience: Patience,
    /// Whether files may be changed, and how: on other addresses than loopback
    /// only with a token.
    pub uploads: Option<UploadTerms>,
}

/// What uploads have to keep to.
#[derive(Debug, Clone, Copy, Default)]
pub struct UploadTerms {
    /// Size that each may have, bytes.
    pub max_size: Option<u64>,
}

/// Where certificate and key are.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// PEM file with the certificate and those that lead to its authority.
    pub certificate: PathBuf,
    /// PEM file with the private key.
    pub key: PathBuf,
}

/// How long a peer may acknowledge nothing before its connection is closed.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// While a response is under way.
    pub sending: Duration,
    /// Otherwise: before a request has been received, and between two.
    pub idle: Duration,
    /// How long a peer may also be silent that does not close its side behind
    /// the last answer.
    pub closing: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            sending: Duration::from_secs(60),
            idle: Duration::from_secs(30),
            closing: Duration::from_secs(5),
        }
    }
}

impl Patience {
    /// With a peer that has too many connections already: for each of them as
    /// long as for the end of another.
    fn with_refused(self) -> Self {
        Self {
            sending: self.sending.min(self.closing),
            idle: self.idle.min(self.closing),
            closing: self.closing,
        }
    }
}

/// What a server tells of itself: the `--json` interface of `fairbat serve`.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum ServeEvent {
    /// Connections are accepted from now on.
    Listening {
        /// IP address and port.
        address: SocketAddr,
        /// Where the files are: `http://ADDRESS/` or `https://ADDRESS/`.
        url: String,
        /// What holds back the responses that yield ([`SenderLeverKind::name`]).
        lever: &'static str,
        /// Which congestion control of our own; `None` under another lever.
        sender: Option<SenderPolicy>,
        /// Whether it takes uploads.
        writable: bool,
    },
}

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    max_connections: u32,
    max_per_peer: u32,
    site: Arc<Site>,
}

/// What all connections share.
struct Site {
    root: Root,
    digests: Digests,
    token: Option<Token>,
    tls: Option<TlsAcceptor>,
    background: bool,
    levers: SenderLevers,
    clock: Clock,
    patience: Patience,
    /// Files that could not be read.
    warned: Mutex<WarningThrottle<PathBuf>>,
    /// `None` if nothing is to be changed.
    writing: Option<Arc<Writing>>,
}

impl Site {
    /// Tells people what is wrong with a file. Its name comes from a client, and
    /// is quoted.
    fn warn_of(&self, name: &Path, trouble: std::fmt::Arguments<'_>) {
        // Right whoever panicked.
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        if warned.is_due(self.clock.now(), name.to_owned()) {
            tracing::warn!("{name:?} {trouble}; not said again of this file for a while");
        }
    }
}

impl std::fmt::Debug for Site {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Site")
            .field("root", &self.root)
            .field("levers", &self.levers)
            .finish_non_exhaustive()
    }
}

impl Server {
    /// Checks everything and begins to listen; needs a tokio runtime.
    ///
    /// # Errors
    /// The directory or the certificate cannot be used, the address is in use
    /// or not of this machine, the kernel is too old, or anybody could change the
    /// files.
    pub async fn bind(settings: &ServeSettings) -> Result<Self, TransferError> {
        check_terms(settings)?;
        let root = Root::open(&settings.directory)?;
        let tls = settings.tls.as_ref().map(access::tls).transpose()?;
        let digests = Digests::start().map_err(|error| {
            TransferError::new(ErrorKind::Other, format!("cannot start a thread: {error}"))
        })?;
        let cannot_listen = |error: io::Error| {
            let message = format!("cannot listen on {}: {error}", settings.listen);
            let hint = match error.kind() {
                io::ErrorKind::AddrInUse => {
                    "end the other server, or choose another port with --listen; port 0 takes \
                     a free one"
                }
                io::ErrorKind::PermissionDenied => "ports below 1024 are root's; choose another",
                _ => "--listen takes an address of this machine, as 127.0.0.1:8080 or [::]:8080",
            };
            TransferError::new(ErrorKind::Other, message).with_hint(hint)
        };
        let listener = TcpListener::bind(settings.listen)
            .await
            .map_err(cannot_listen)?;
        let address = listener.local_addr().map_err(cannot_listen)?;
        let begin = |terms| Writing::begin(&root, terms).map(Arc::new);
        let writing = settings.uploads.as_ref().map(begin).transpose()?;
        Ok(Self {
            listener,
            address,
            max_connections: settings.max_connections,
            max_per_peer: settings.max_per_peer,
            site: Arc::new(Site {
                root,
                digests,
                token: settings.token.clone(),
                tls,
                background: settings.background,
                levers: SenderLevers::open(settings.sender),
                clock: Clock::start(),
                patience: settings.patience,
                warned: Mutex::default(),
                writing,
            }),
        })
    }

    /// The address it listens on, with the port that it got.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where the files are.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = match self.site.tls {
            None => "http",
            Some(_) => "https",
        };
        format!("{scheme}://{}/", self.address)
    }

    /// What holds back the responses that yield.
    #[must_use]
    pub fn rung(&self) -> SenderLeverKind {
        self.site.levers.kind()
    }

    /// How it says that it listens.
    #[must_use]
    pub fn listening(&self) -> ServeEvent {
        ServeEvent::Listening {
            address: self.address,
            url: self.url(),
            lever: self.rung().name(),
            sender: self.site.levers.policy(),
            writable: self.site.writing.is_some(),
        }
    }

    /// Serves until it is dropped. When there are as many connections as may
    /// be, others wait in the kernel's queue.
    pub async fn run(self) -> Infallible {
        let room = Room::make(
            self.max_connections,
            self.site.writing.as_ref().map_or(0, |_| write::DESCRIPTORS),
        );
        let peers = Peers::new(room.of_one_peer(self.max_per_peer), room.refused);
        let limits = AcceptLimits {
            server: "the server",
            max_connections: room.served as usize,
            grace: Duration::ZERO,
        };
        let site = self.site;
        let begin = |accepted: Accepted<TcpListener>| {
            let Accepted {
                stream,
                peer,
                permit,
                ..
            } = accepted;
            let visit = peers.enter(peer.ip(), site.clock.now())?;
            // A refused connection takes no place from the others.
            let permit = visit.is_welcome().then_some(permit);
            let site = Arc::clone(&site);
            Some(async move {
                connection::serve(&site, stream, peer, visit.is_welcome()).await;
                drop((visit, permit));
            })
        };
        accept_until(self.listener, limits, std::future::pending(), begin).await
    }
}

/// Whoever can write files can fill the disk and change what others fetch: not
/// everybody on a network is to be able to.
fn check_terms(settings: &ServeSettings) -> Result<(), TransferError> {
    let is_open = settings.token.is_none() && !settings.listen.ip().to_canonical().is_loopback();
    if settings.uploads.is_none() || !is_open {
        return Ok(());
    }
    let message = format!(
        "--writable without --token-file: whoever reaches {} could change all files there",
        settings.listen
    );
    let hint = "add --token-file FILE (openssl rand -hex 32 > FILE), or listen on a loopback \
                address, as 127.0.0.1:8080";
    Err(TransferError::new(ErrorKind::Other, message).with_hint(hint))
}
