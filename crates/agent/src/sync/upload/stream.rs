//! A large file to a store that takes no parts: one request, which holds its permit
//! throughout.
//!
//! The file is read in order, each piece when it is asked for. After each piece the
//! source is checked, so all pieces are of one version.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::Stream;
use sha2::{Digest, Sha256};
use tokio::task::JoinHandle;

use super::{KnownObject, UploadError, check};
use crate::entry::TreePath;
use crate::sync::job::PushJob;
use crate::sync::source::{ReadError, SourceFile};

/// Length of a piece, bytes. At most two pieces are in memory.
const PIECE: u64 = 1024 * 1024;

impl PushJob {
    /// Sends a file, and places it if it is still the version that was sent.
    pub(super) async fn send_stream(
        &self,
        path: &TreePath,
        source: &Arc<SourceFile>,
        known: KnownObject,
        credited: &AtomicU64,
    ) -> Result<[u8; 32], UploadError> {
        let (key, size) = (&self.key(path), source.state().size);
        self.replacing(path, known).await?;
        let sent = self.store.with_retry(|| async move {
            let request = self.store.begin_request(size);
            let (pieces, end) = FilePieces::of(source);
            let put = self.store.put_stream(key, size, pieces, request.context());
            match (put.await, end.outcome()) {
                (_, ReadOutcome::Failed(error)) => Err(error.into()),
                (Ok(staged), ReadOutcome::Read(sha256)) => {
                    request.finish();
                    credited.fetch_add(size, Ordering::Relaxed);
                    Ok((staged, sha256))
                }
                (Ok(_), ReadOutcome::Unread) => Err(UploadError::Lost),
                (Err(error), _) => Err(error.into()),
            }
        });
        let (mut staged, sha256) = sent.await?;
        check(source).await?;
        let mut retries = self.store.retries();
        loop {
            let admission = self.store.admit(0).await;
            let Err(error) = self.store.place(&mut staged).await else {
                return Ok(sha256);
            };
            admission.failed(&error);
            retries.after(error).await?;
        }
    }
}

/// How the reading of a file ended.
#[derive(Debug, Default)]
enum ReadOutcome {
    /// The request broke off first.
    #[default]
    Unread,
    /// The whole file was read; its SHA-256.
    Read([u8; 32]),
    /// The file could not be read as one version.
    Failed(ReadError),
}

/// The file cannot be read any further; [`ReadOutcome`] says why.
#[derive(Debug, thiserror::Error)]
#[error("the file cannot be read on")]
struct ReadBrokenOff;

/// The pieces of a file, as a stream.
#[derive(Debug)]
struct FilePieces {
    source: Arc<SourceFile>,
    /// Where the next piece begins, bytes.
    offset: u64,
    state: PieceState,
    end: OutcomeSlot,
}

/// Where a [`FilePieces`] leaves its outcome.
#[derive(Debug, Clone, Default)]
struct OutcomeSlot(Arc<Mutex<ReadOutcome>>);

impl OutcomeSlot {
    /// Takes the outcome.
    fn outcome(&self) -> ReadOutcome {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, ReadOutcome> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
enum PieceState {
    /// No piece is being read.
    Waiting(Sha256),
    Reading(JoinHandle<Result<(Bytes, Sha256), ReadError>>),
    /// There is no next piece.
    Over,
}

impl FilePieces {
    /// All pieces of a file, and the place of the outcome.
    fn of(source: &Arc<SourceFile>) -> (Self, OutcomeSlot) {
        let end = OutcomeSlot::default();
        let pieces = Self {
            source: Arc::clone(source),
            offset: 0,
            state: PieceState::Waiting(Sha256::new()),
            end: end.clone(),
        };
        (pieces, end)
    }

    fn end(&mut self, outcome: ReadOutcome) {
        self.state = PieceState::Over;
        *self.end.lock() = outcome;
    }

    /// Begins to read the next piece. `None` at the end.
    fn read(&self, mut whole: Sha256) -> Option<PieceState> {
        let length = (self.source.state().size - self.offset).min(PIECE);
        let (source, offset) = (Arc::clone(&self.source), self.offset);
        (length > 0).then(|| {
            PieceState::Reading(tokio::task::spawn_blocking(move || {
                let piece = source.read(offset, length as usize)?;
                whole.update(&piece);
                Ok((piece.into(), whole))
            }))
        })
    }
}

impl Stream for FilePieces {
    type Item = Result<Bytes, ReadBrokenOff>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let PieceState::Waiting(whole) = &self.state {
            match self.read(whole.clone()) {
                Some(reading) => self.state = reading,
                None => self.state = PieceState::Over,
            }
        }
        let PieceState::Reading(reading) = &mut self.state else {
            return Poll::Ready(None);
        };
        let read = ready!(Pin::new(reading).poll(context));
        match read
            .map_err(|lost| ReadError::Disk(std::io::Error::other(lost)))
            .flatten()
        {
            Ok((piece, whole)) => {
                self.offset += piece.len() as u64;
                if self.offset == self.source.state().size {
                    self.end(ReadOutcome::Read(whole.finalize().into()));
                } else {
                    self.state = PieceState::Waiting(whole);
                }
                Poll::Ready(Some(Ok(piece)))
            }
            Err(error) => {
                self.end(ReadOutcome::Failed(error));
                Poll::Ready(Some(Err(ReadBrokenOff)))
            }
        }
    }
}
