//! The body of a request: pieces of the file, read when the connection takes
//! them, and no faster than the user's ceiling.
//!
//! The reader and the request are two ends of a channel. When the reader ends
//! before the last byte, whatever the reason, so does the connection: a
//! server sees a body that is too short and keeps nothing of it.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::watch;

use super::source::Source;
use crate::clock::Clock;
use crate::error::{ErrorKind, TransferError};
use crate::limiter::RateLimiter;

/// Bytes read at once.
const PIECE: u64 = 128 * 1024;

/// Under a ceiling on the rate a piece is no more than this part of a second,
/// so that the rate is even, ...
const PIECES_PER_SECOND: u64 = 20;
/// ... and no less than this, bytes.
const PIECE_LEAST: u64 = 1024;

/// A body of known length whose bytes come out of a channel.
#[derive(Debug)]
pub(crate) struct FileBody {
    pieces: Receiver<Bytes>,
    left: u64,
}

/// The body ended before its last byte.
#[derive(Debug)]
pub(crate) struct BrokenOff;

impl fmt::Display for BrokenOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the upload was broken off")
    }
}

impl std::error::Error for BrokenOff {}

impl Body for FileBody {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let piece = ready!(self.pieces.poll_recv(context));
        Poll::Ready(Some(piece.ok_or(BrokenOff).map(|piece| {
            self.left = self.left.saturating_sub(piece.len() as u64);
            Frame::data(piece)
        })))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

/// What reads the file into a body.
#[derive(Debug)]
pub(crate) struct Reader {
    source: Arc<Source>,
    pieces: Sender<Bytes>,
    /// Bytes that have been handed on.
    handed: watch::Sender<u64>,
}

/// The body of `source`, its reader, and how far that is.
pub(crate) fn body(source: Arc<Source>) -> (FileBody, Reader, watch::Receiver<u64>) {
    // One piece waits while the next is being read.
    let (sender, pieces) = channel(1);
    let (handed, seen) = watch::channel(0);
    let body = FileBody {
        pieces,
        left: source.version().size,
    };
    let reader = Reader {
        source,
        pieces: sender,
        handed,
    };
    (body, reader, seen)
}

impl Reader {
    /// Reads to the end of the file, or until nobody wants more.
    ///
    /// # Errors
    /// The file cannot be read, or has changed; its last byte is not handed
    /// on before that is sure.
    pub(crate) async fn run(
        self,
        clock: Clock,
        limiter: Option<Arc<RateLimiter>>,
    ) -> Result<(), TransferError> {
        let size = self.source.version().size;
        let most = limiter.as_ref().map_or(PIECE, |limiter| {
            (limiter.rate() / PIECES_PER_SECOND).clamp(PIECE_LEAST, PIECE)
        });
        let mut offset = 0;
        while offset < size {
            let length = (size - offset).min(most) as usize;
            let source = Arc::clone(&self.source);
            let read = tokio::task::spawn_blocking(move || source.read(offset, length));
            let piece = read.await.unwrap_or_else(|_| Err(lost()))?;
            if let Some(limiter) = &limiter {
                tokio::time::sleep(limiter.reserve(clock.now(), length)).await;
            }
            if self.pieces.send(piece).await.is_err() {
                return Ok(());
            }
            offset += length as u64;
            self.handed.send_replace(offset);
        }
        Ok(())
    }
}

fn lost() -> TransferError {
    TransferError::new(ErrorKind::Other, "reading the file ended without a result")
        .with_hint("this is a defect of fairbat; run the same command again")
}
