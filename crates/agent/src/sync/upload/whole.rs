//! A small file, in one request.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::super::push::Job;
use super::super::source::Source;
use super::{FileError, Had, Hashed, read};
use crate::entry::TreePath;
use crate::store::PutMode;

impl Job {
    /// Sends a file, and returns its SHA-256. What was read of it already may be
    /// `ready`.
    pub(super) async fn send_whole(
        &self,
        path: &TreePath,
        source: &Arc<Source>,
        mut ready: Option<Hashed>,
        had: Had,
        credited: &AtomicU64,
    ) -> Result<[u8; 32], FileError> {
        let key = self.key(path);
        let size = source.state().size;
        self.replacing(path, had).await?;
        let mut tries = self.attempts.tries();
        loop {
            let place = self.window.enter(size).await;
            let permit = self.member.admit().await;
            // Read once it has a permit: what waits is not in memory.
            let (content, sha256) = match ready.take() {
                Some(ready) => ready,
                None => read(source, 0, size).await?,
            };
            let flight = self.ledger.take_off(size, &self.settings.rate_limits);
            let put = self
                .store
                .put(&key, content, PutMode::Replace, flight.passage());
            let Err(error) = put.await else {
                flight.landed();
                credited.fetch_add(size, Ordering::Relaxed);
                return Ok(sha256);
            };
            drop((flight, permit, place));
            tries.after(&self.member, error).await?;
        }
    }
}
