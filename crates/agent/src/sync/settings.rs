//! What a run works with, whichever way it moves files.

use std::path::PathBuf;
use std::sync::Arc;

use fairbat::lane::{Lane, Service};
use fairbat::transport::RateLimit;

use crate::config::{Delete, Detect};
use crate::filter::EntryFilter;
use crate::store::Store;

/// What a run does.
#[derive(Debug, Clone)]
pub struct RunSettings {
    /// Path in the store; may be empty.
    pub prefix: String,
    /// File with the key that authenticates the manifests, even if it does not exist yet;
    /// `None` if they are not authenticated.
    pub key_file: Option<PathBuf>,
    /// Which entries are moved. A pull neither fetches nor deletes the others.
    pub filter: EntryFilter,
    /// How a changed file is recognised.
    pub detect: Detect,
    /// What happens to files that the origin does not have.
    pub delete: Delete,
    /// How it is served.
    pub service: Service,
    /// Least weight of the connections (w_min), 0.02 to 1.
    pub weight: f64,
    /// Limits on the rate.
    pub rate_limits: Vec<Arc<RateLimit>>,
    /// Most connections.
    pub connections: u32,
    /// Seed of the delays between attempts.
    pub seed: u64,
}

/// A store, and the lane that leads to it.
#[derive(Debug, Clone)]
pub struct LaneStore {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The store's host, as the lane knows it.
    pub host: String,
    /// The lane, shared with other jobs.
    pub lane: Lane,
}
