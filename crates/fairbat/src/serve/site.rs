//! What all connections of a server share.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dalbe::sender::SenderLevers;
use http::HeaderValue;
use rustls::ServerConfig;

use super::access::Token;
use super::digests::Digests;
use super::files::Root;
use super::write::uploads::Uploads;
use crate::accept::WarningThrottle;
use crate::clock::Clock;
use crate::http::host::HostRule;

/// Bytes that a peer has to take of a response, or send of an upload, in each
/// [`Patience::sending`]. A peer that yields as far as it can still moves two
/// segments of 536 bytes or more in a round trip (RFC 9840, section 4.2.2, and RFC
/// 9293, section 3.7.1), and a round trip as long as the patience ends its
/// connection anyway.
pub(crate) const MIN_PROGRESS: u64 = 1024;

/// How long a peer may do nothing before its connection is closed.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// For each KiB of a response or an upload under way.
    pub sending: Duration,
    /// Before a request has been received, and between two requests.
    pub idle: Duration,
    /// After the last answer, until the peer closes its side.
    pub closing: Duration,
    /// Between two requests of an upload in parts, before it is given up.
    pub parts: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            sending: Duration::from_secs(60),
            idle: Duration::from_secs(30),
            closing: Duration::from_secs(5),
            // Longer than a client waits between two tries, unless it is told to.
            parts: Duration::from_secs(300),
        }
    }
}

impl Patience {
    /// The patience with connections that are refused: never longer than
    /// [`Patience::closing`].
    pub(crate) fn for_refused(self) -> Self {
        Self {
            sending: self.sending.min(self.closing),
            idle: self.idle.min(self.closing),
            ..self
        }
    }
}

/// What all connections share.
#[derive(Debug)]
pub(crate) struct ServedSite {
    pub(crate) root: Root,
    pub(crate) digests: Digests,
    pub(crate) hosts: HostRule,
    pub(crate) token: Option<Token>,
    pub(crate) tls: Option<Arc<ServerConfig>>,
    /// Whether responses yield if their requests state no priority.
    pub(crate) background: bool,
    /// What responses say of HTTP/3, if it is spoken.
    pub(crate) offer: Option<HeaderValue>,
    pub(crate) levers: SenderLevers,
    pub(crate) clock: Clock,
    pub(crate) patience: Patience,
    /// Warnings of files that could not be read.
    pub(crate) warnings: Mutex<WarningThrottle<PathBuf>>,
    /// Warnings of hosts that requests may not name. They have no subject: a client can
    /// make up any number of hosts.
    pub(crate) host_warnings: Mutex<WarningThrottle<()>>,
    /// `None` if nothing may be changed.
    pub(crate) uploads: Option<Arc<Uploads>>,
}

impl ServedSite {
    /// Warns of a file. Its name comes from a client, so the log quotes it.
    pub(crate) fn warn_of(&self, name: &Path, trouble: std::fmt::Arguments<'_>) {
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        if warnings.is_due(self.clock.now(), name.to_owned()) {
            tracing::warn!("{name:?} {trouble}; not said again of this file for a while");
        }
    }
    /// Warns that requests under this host are refused. It is quoted.
    pub(crate) fn warn_of_host(&self, host: &str) {
        let warnings = self.host_warnings.lock();
        let mut warnings = warnings.unwrap_or_else(PoisonError::into_inner);
        if warnings.is_due(self.clock.now(), ()) {
            tracing::warn!(
                "refused a request under the host {host}; if that is a name of this server, \
                 add --allow-host NAME; not said again for a while"
            );
        }
    }
}
