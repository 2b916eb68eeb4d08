//! What a request is part of: the ceilings that it keeps to, and where its bytes
//! are counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::RateLimit;
use crate::lane::Lane;

/// What one request is part of.
#[derive(Debug, Clone, Default)]
pub struct RequestContext {
    /// Ceilings that its body, of the direction of the carrier, keeps to.
    pub ceilings: Vec<Arc<RateLimit>>,
    /// Bytes of that body so far: handed to the connection, or taken from it.
    pub moved: Arc<AtomicU64>,
    /// Bytes of all such bodies of the same job, what has to be moved again
    /// included. `None` for what is no content of a job's files, as a listing:
    /// the lane does not count that either.
    pub job: Option<Arc<AtomicU64>>,
}

impl RequestContext {
    /// Waits until the ceilings let so many bytes go: for what no carrier
    /// carries.
    pub async fn wait(&self, bytes: usize) {
        tokio::time::sleep(self.reserve(bytes)).await;
    }

    /// So many bytes have been moved, of the job and of its lane.
    pub fn count(&self, bytes: u64, lane: &Lane) {
        self.moved.fetch_add(bytes, Ordering::Relaxed);
        if let Some(job) = &self.job {
            job.fetch_add(bytes, Ordering::Relaxed);
            lane.carried(bytes);
        }
    }

    /// How long to wait after so many bytes.
    pub(crate) fn reserve(&self, bytes: usize) -> Duration {
        let ceilings = self.ceilings.iter();
        let waits = ceilings.map(|ceiling| ceiling.reserve(bytes));
        waits.max().unwrap_or_default()
    }
}
