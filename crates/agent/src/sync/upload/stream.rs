//! A large file to a store that takes no parts: one request, and the permit is held
//! for all of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::super::push::Job;
use super::super::source::Source;
use super::pieces::{Outcome, Pieces};
use super::{FileError, Had, check};
use crate::entry::TreePath;

impl Job {
    /// Sends a file, and puts it into its place when it still is the version that
    /// was sent.
    pub(super) async fn send_stream(
        &self,
        path: &TreePath,
        source: &Arc<Source>,
        had: Had,
        credited: &AtomicU64,
    ) -> Result<[u8; 32], FileError> {
        let (key, size) = (self.key(path), source.state().size);
        self.replacing(path, had).await?;
        let mut tries = self.attempts.tries();
        let (mut arrived, sha256) = loop {
            let permit = self.member.admit().await;
            let flight = self.ledger.take_off(size, &self.settings.rate_limits);
            let (pieces, end) = Pieces::of(source);
            let put = self.store.put_stream(&key, size, pieces, flight.passage());
            let error = match (put.await, end.outcome()) {
                (_, Outcome::Failed(error)) => return Err(error.into()),
                (Ok(arrived), Outcome::Read(sha256)) => {
                    flight.landed();
                    credited.fetch_add(size, Ordering::Relaxed);
                    break (arrived, sha256);
                }
                (Ok(_), Outcome::Unread) => return Err(FileError::Lost),
                (Err(error), Outcome::Read(_) | Outcome::Unread) => error,
            };
            drop((flight, permit));
            tries.after(&self.member, error).await?;
        };
        check(source).await?;
        let mut tries = self.attempts.tries();
        loop {
            let permit = self.member.admit().await;
            let Err(error) = self.store.place(&mut arrived).await else {
                return Ok(sha256);
            };
            drop(permit);
            tries.after(&self.member, error).await?;
        }
    }
}
