//! The body of a PUT that comes from a stream: of the length that was said, or an
//! error.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::Stream;
use http_body::{Body, Frame, SizeHint};

/// See the module.
#[derive(Debug)]
pub(super) struct Outgoing<S> {
    pieces: S,
    /// Bytes still to come.
    left: u64,
}

impl<S> Outgoing<S> {
    /// A body of so many bytes.
    pub(super) fn new(pieces: S, size: u64) -> Self {
        Self { pieces, left: size }
    }
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl<S, E> Body for Outgoing<S>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin,
    E: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let piece = match ready!(Pin::new(&mut self.pieces).poll_next(context)) {
            Some(piece) => piece.map_err(Into::into),
            None if self.left == 0 => return Poll::Ready(None),
            None => Err("the pieces are fewer than their size".into()),
        };
        let piece = piece.and_then(|piece| {
            let left = self.left.checked_sub(piece.len() as u64);
            self.left = left.ok_or("the pieces are more than their size")?;
            Ok(Frame::data(piece))
        });
        Poll::Ready(Some(piece))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
