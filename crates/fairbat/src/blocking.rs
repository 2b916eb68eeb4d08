//! Work that would block an async thread, on a thread that may block.

use crate::error::{ErrorKind, TransferError};

/// The thread ended without a result, because the work panicked or the runtime
/// shuts down.
#[derive(Debug, thiserror::Error)]
#[error("a background thread ended without a result: {0}")]
pub struct LostThread(#[from] tokio::task::JoinError);

impl From<LostThread> for std::io::Error {
    fn from(lost: LostThread) -> Self {
        Self::other(lost)
    }
}

impl From<LostThread> for TransferError {
    fn from(lost: LostThread) -> Self {
        Self::new(ErrorKind::Other, lost.to_string())
            .with_hint("this is a defect of fairbat; run the same command again")
    }
}

/// Runs `work` on a thread that may block, and returns its result. The work
/// goes on to its end even if the returned future is dropped.
///
/// # Errors
/// [`LostThread`]: there is no result.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, LostThread> {
    Ok(tokio::task::spawn_blocking(work).await?)
}
