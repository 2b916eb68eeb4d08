//! What all connections of a proxy share.

use std::time::Duration;

use super::access::Access;
use super::upstream::Upstream;

/// A client says what it wants within this time.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// What all connections share.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) access: Access,
    pub(super) upstream: Upstream,
}
