//! A file as the body of one request: read in order, and each piece when it is
//! asked for.
//!
//! After each piece the source has been looked at once more, so whoever has the last
//! one has them all of one version.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::Stream;
use sha2::{Digest, Sha256};
use tokio::task::JoinHandle;

use super::super::source::{ReadError, Source};

/// Bytes of a piece: two of them are in memory at most.
const PIECE: u64 = 1024 * 1024;

/// What came of a file that was read to its end, or not.
#[derive(Debug, Default)]
pub(super) enum Outcome {
    /// Somebody broke off.
    #[default]
    Unread,
    /// All of it was read: its SHA-256.
    Read([u8; 32]),
    /// It cannot be read, or not as one version.
    Failed(ReadError),
}

/// The file cannot be read on: [`Outcome`] says why.
#[derive(Debug, thiserror::Error)]
#[error("the file cannot be read on")]
pub(super) struct BrokenOff;

/// See the module.
#[derive(Debug)]
pub(super) struct Pieces {
    source: Arc<Source>,
    /// Where the next piece begins, bytes.
    offset: u64,
    state: PieceState,
    end: End,
}

/// Where it will be said what has come of a file.
#[derive(Debug, Clone, Default)]
pub(super) struct End(Arc<Mutex<Outcome>>);

impl End {
    /// What has come of it, once.
    pub(super) fn outcome(&self) -> Outcome {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Outcome> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
enum PieceState {
    /// Until the next piece is asked for.
    Waiting(Sha256),
    Reading(JoinHandle<Result<(Bytes, Sha256), ReadError>>),
    /// There is no next one.
    Over,
}

impl Pieces {
    /// All of a file, and where to look for what has come of it.
    pub(super) fn of(source: &Arc<Source>) -> (Self, End) {
        let end = End::default();
        let pieces = Self {
            source: Arc::clone(source),
            offset: 0,
            state: PieceState::Waiting(Sha256::new()),
            end: end.clone(),
        };
        (pieces, end)
    }

    fn end(&mut self, outcome: Outcome) {
        self.state = PieceState::Over;
        *self.end.lock() = outcome;
    }

    /// Begins to read the next piece; `None` if there is none.
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

impl Stream for Pieces {
    type Item = Result<Bytes, BrokenOff>;

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
                    self.end(Outcome::Read(whole.finalize().into()));
                } else {
                    self.state = PieceState::Waiting(whole);
                }
                Poll::Ready(Some(Ok(piece)))
            }
            Err(error) => {
                self.end(Outcome::Failed(error));
                Poll::Ready(Some(Err(BrokenOff)))
            }
        }
    }
}
