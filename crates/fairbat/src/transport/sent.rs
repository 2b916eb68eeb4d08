//! The body of a request on its way out: in pieces, within ceilings, counted.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::Sleep;

use super::RequestContext;
use crate::lane::Lane;

/// What is handed on in one piece, bytes: the next one is asked for when there
/// is room, so what is counted is what has left, but for two or three of them.
const PIECE: usize = 64 * 1024;

/// See the module.
#[derive(Debug)]
pub(super) struct Sent<B> {
    body: B,
    rest: Bytes,
    passage: RequestContext,
    lane: Lane,
    /// Whether it waits for its ceilings, for whoever waits for the answer.
    paused: Arc<AtomicBool>,
    /// Until the ceilings let the next piece go.
    pause: Option<Pin<Box<Sleep>>>,
}

impl<B> Sent<B> {
    pub(super) fn new(
        body: B,
        passage: RequestContext,
        lane: Lane,
        paused: Arc<AtomicBool>,
    ) -> Self {
        Self {
            body,
            rest: Bytes::new(),
            passage,
            lane,
            paused,
            pause: None,
        }
    }

    fn piece(&mut self) -> Frame<Bytes> {
        let piece = self.rest.split_to(self.rest.len().min(PIECE));
        self.passage.count(piece.len() as u64, &self.lane);
        let wait = self.passage.reserve(piece.len());
        self.pause = (!wait.is_zero()).then(|| Box::pin(tokio::time::sleep(wait)));
        Frame::data(piece)
    }
}

impl<B> Drop for Sent<B> {
    fn drop(&mut self) {
        self.paused.store(false, Ordering::Relaxed);
    }
}

impl<B> Body for Sent<B>
where
    B: Body<Data = Bytes> + Unpin,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        if let Some(pause) = &mut self.pause {
            let is_over = pause.as_mut().poll(context).is_ready();
            self.paused.store(!is_over, Ordering::Relaxed);
            if !is_over {
                return Poll::Pending;
            }
            self.pause = None;
        }
        if self.rest.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(other) => return Poll::Ready(Some(Ok(other))),
                },
                other => return Poll::Ready(other),
            }
        }
        Poll::Ready(Some(Ok(self.piece())))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.rest.len() as u64;
        let body = self.body.size_hint();
        match body.exact() {
            Some(bytes) => SizeHint::with_exact(bytes + rest),
            None => SizeHint::new(),
        }
    }
}
