//! What all connections of a proxy share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::access::{Access, Refused};
use super::upstream::{Upstream, UpstreamError};

/// A client says what it wants within this time.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// What all connections share.
#[derive(Debug)]
pub(super) struct ProxySite {
    pub(super) access: Access,
    pub(super) upstream: Upstream,
    pub(super) refusals: Refusals,
}

/// How many requests had no connection to a server, by reason.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    network: AtomicU64,
    token: AtomicU64,
    private: AtomicU64,
    failed: AtomicU64,
}

impl Refusals {
    /// The client may not use the proxy.
    pub(super) fn refused(&self, why: Refused) {
        let count = match why {
            Refused::Network => &self.network,
            Refused::Token => &self.token,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// The server was not reached.
    pub(super) fn not_connected(&self, why: &UpstreamError) {
        let count = match why {
            UpstreamError::Private(_) => &self.private,
            UpstreamError::Unknown(..) | UpstreamError::Silent(_) | UpstreamError::Refused(..) => {
                &self.failed
            }
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// All of them, by the name of the reason.
    pub(super) fn by_reason(&self) -> [(&'static str, u64); 4] {
        let of = |name, count: &AtomicU64| (name, count.load(Ordering::Relaxed));
        [
            of("network", &self.network),
            of("token", &self.token),
            of("private", &self.private),
            of("server", &self.failed),
        ]
    }
}
