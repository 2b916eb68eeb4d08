//! `fairbat proxy`: a proxy for what cannot be wrapped (containers, other machines). All
//! connections that it makes yield together as one flow.
//!
//! It is an HTTP proxy (CONNECT for everything, and plain HTTP: RFC 9110 sections 7.6 and 9.3.6) and
//! a SOCKS5 proxy (RFC 1928) on the same port: the first byte tells.
//!
//! | file | what |
//! |---|---|
//! | `access` | who may use it, and for which destinations |
//! | `site` | what all connections share |
//! | `connection` | one client's connection: which protocol |
//! | `http` | HTTP: tunnels and requests |
//! | `socks` | SOCKS5 |
//! | `upstream` | connections to servers, which are held |
//! | `rule` | what weighs more, and what is due |
//! | `metrics` | what it tells Prometheus |

mod access;
mod connection;
mod http;
mod metrics;
mod rule;
mod site;
mod socks;
mod upstream;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dalbe::receive_window::LeverKind;
use dalbe::sender::SenderLeverKind;
use tokio::net::TcpListener;

use self::access::Access;
pub use self::access::{Network, NetworkError};
use self::connection::serve;
pub use self::metrics::{NAMES, OTHERS};
pub use self::rule::ProxyRule;
use self::site::{ProxySite, Refusals};
use self::upstream::Upstream;
use crate::accept::{AcceptLimits, Accepted, accept_until};
use crate::error::{ErrorKind, TransferError};
use crate::hold::{HoldPlan, HoldSettings};
use crate::serve::Token;

/// The settings of a proxy.
#[derive(Debug, Clone)]
pub struct ProxySettings {
    /// Address to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// How the connections to servers are held, all together.
    pub hold: HoldSettings,
    /// Their weight where no rule counts, 0.02 to 1.
    pub weight: f64,
    /// What weighs more, and what is due. The first rule that matches a connection counts.
    pub rules: Vec<ProxyRule>,
    /// The token that every client must show, if any.
    pub token: Option<PathBuf>,
    /// Clients beyond this machine that may use the proxy.
    pub allowed: Vec<Network>,
    /// Connections of clients at once, at least 1. Others wait to be accepted.
    pub max_connections: u32,
    /// How long a server may take to accept a connection.
    pub connect_timeout: Duration,
}

/// A proxy that listens.
#[derive(Debug)]
pub struct Proxy {
    listener: TcpListener,
    address: SocketAddr,
    max_connections: u32,
    site: Arc<ProxySite>,
}

impl Proxy {
    /// Checks the settings and begins to listen. Needs a tokio runtime.
    ///
    /// # Errors
    /// The token cannot be used, or the address is in use or not of this machine.
    pub async fn bind(settings: ProxySettings) -> Result<Self, TransferError> {
        let token = settings.token.as_deref().map(Token::read).transpose()?;
        let cannot_listen = |error: io::Error| {
            let message = format!("cannot listen on {}: {error}", settings.listen);
            let hint = "--listen takes a free address and port of this machine, as 127.0.0.1:3128";
            TransferError::new(ErrorKind::Other, message).with_hint(hint)
        };
        let listener = TcpListener::bind(settings.listen)
            .await
            .map_err(cannot_listen)?;
        Ok(Self {
            address: listener.local_addr().map_err(cannot_listen)?,
            listener,
            max_connections: settings.max_connections,
            site: Arc::new(ProxySite {
                access: Access {
                    token,
                    allowed: settings.allowed,
                },
                refusals: Refusals::default(),
                upstream: Upstream::start(
                    settings.hold,
                    HoldPlan {
                        weight: settings.weight,
                        floor: settings.weight,
                        bytes: None,
                        deadline: None,
                    },
                    settings.rules,
                    settings.connect_timeout,
                )?,
            }),
        })
    }

    /// The address that the proxy listens on, with its port.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The levers on what is received from servers, and on what is sent to them.
    #[must_use]
    pub fn levers(&self) -> (LeverKind, SenderLeverKind) {
        self.site.upstream.levers()
    }

    /// Serves clients until this is dropped.
    pub async fn run(self) -> Infallible {
        let limits = AcceptLimits {
            server: "fairbat proxy",
            max_connections: self.max_connections as usize,
            grace: Duration::ZERO,
        };
        let site = self.site;
        let begin = |accepted: Accepted<TcpListener>| {
            let site = Arc::clone(&site);
            Some(async move {
                let Accepted {
                    stream,
                    peer,
                    permit,
                    ..
                } = accepted;
                serve(stream, peer, site).await;
                drop(permit);
            })
        };
        accept_until(self.listener, limits, std::future::pending(), begin).await
    }
}
