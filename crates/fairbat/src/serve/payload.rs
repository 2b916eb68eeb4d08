//! The body of any response: one of those that there are.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use super::body::FileBody;
use super::listing::ListingBody;

/// See the module.
#[derive(Debug)]
pub(super) enum Payload {
    /// These bytes; `None` once they are sent.
    Whole(Option<Bytes>),
    /// Bytes of a file.
    File(FileBody),
    /// The names in a directory.
    Listing(ListingBody),
}

impl Payload {
    /// No bytes.
    pub(super) fn empty() -> Self {
        Self::Whole(None)
    }

    /// A line for people.
    pub(super) fn line(text: &str) -> Self {
        Self::Whole(Some(format!("{text}\n").into()))
    }
}

impl Body for Payload {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::File(body) => Pin::new(body).poll_frame(context),
            Self::Listing(body) => Pin::new(body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_none(),
            Self::File(body) => body.is_end_stream(),
            Self::Listing(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Self::File(body) => body.size_hint(),
            Self::Listing(body) => body.size_hint(),
        }
    }
}
