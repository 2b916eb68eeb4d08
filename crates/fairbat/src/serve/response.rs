//! Responses and their bodies: a few bytes, the bytes of a file, or a listing.
//! Files and listings are read piece by piece on a thread that may block.
//!
//! After each read the file is checked. If it has changed, the body breaks off,
//! and the client sees that it is too short. All bytes sent until then were read
//! before the change showed, so they belong to one version.

use std::fs::File;
use std::future::Future;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use hyper::body::{Body, Frame, SizeHint};
use tokio::task::JoinHandle;

use super::controller::ResponseGuard;
use super::files::{Found, NotServed};
use super::listing::Listing;
use super::site::Site;
use crate::file_version::FileVersion;

/// Bytes of a file that are read at once, and so held for each connection. This
/// keeps a fast connection busy, and is little for hundreds of them.
pub(crate) const MAX_PIECE: u64 = 64 * 1024;

/// An extension of a response: how it is sent, or how much was stored. Goes into
/// the log.
#[derive(Debug, Clone)]
pub(crate) struct LogNote(pub(crate) String);

/// A response with these headers and this body.
pub(crate) fn with(
    status: StatusCode,
    headers: HeaderMap,
    body: ResponseBody,
) -> Response<ResponseBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// A response with these fields and an empty body.
pub(crate) fn without_content<const N: usize>(
    status: StatusCode,
    fields: [(HeaderName, HeaderValue); N],
) -> Response<ResponseBody> {
    let mut headers = HeaderMap::from_iter(fields);
    headers.insert(CONTENT_LENGTH, 0.into());
    with(status, headers, ResponseBody::empty())
}

/// The response for a name that is not served.
pub(crate) fn not_served(site: &Site, name: &Path, reason: &NotServed) -> Response<ResponseBody> {
    match reason {
        NotServed::Absent => without_content(StatusCode::NOT_FOUND, []),
        NotServed::Forbidden => without_content(StatusCode::FORBIDDEN, []),
        NotServed::Busy => {
            let soon = HeaderValue::from_static("1");
            without_content(StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, soon)])
        }
        NotServed::Broken(error) => {
            site.warn_of(name, format_args!("cannot be opened: {error}"));
            without_content(StatusCode::INTERNAL_SERVER_ERROR, [])
        }
    }
}

/// The body of any response.
#[derive(Debug)]
pub(crate) enum ResponseBody {
    /// These bytes; `None` once they are sent.
    Whole(Option<Bytes>),
    /// Pieces that are read while they are sent.
    Pieces {
        state: PieceState,
        /// Bytes that still come; `None` if only the end will tell.
        left: Option<u64>,
        /// The response is under way until the body is dropped.
        _guard: ResponseGuard,
    },
}

/// What a body reads its pieces from. Blocking.
#[derive(Debug)]
pub(crate) enum PieceSource {
    File(FileReader),
    Listing(Listing),
}

#[derive(Debug)]
pub(crate) enum PieceState {
    /// Between two reads; `None` at the end.
    Waiting(Option<Box<PieceSource>>),
    Reading(JoinHandle<(Box<PieceSource>, io::Result<Bytes>)>),
}

/// A file, and the version of it that is sent.
#[derive(Debug)]
pub(crate) struct FileReader {
    file: File,
    version: FileVersion,
    /// Below the directory that is served.
    name: PathBuf,
    left: Range<u64>,
    /// Takes the warnings.
    site: Arc<Site>,
}

impl ResponseBody {
    /// No bytes.
    pub(crate) fn empty() -> Self {
        Self::Whole(None)
    }

    /// One line of text.
    pub(crate) fn line(text: &str) -> Self {
        Self::Whole(Some(format!("{text}\n").into()))
    }

    /// The bytes `range` of a file.
    pub(crate) fn file(
        site: &Arc<Site>,
        name: &Path,
        found: Found,
        range: Range<u64>,
        guard: ResponseGuard,
    ) -> Self {
        let reader = FileReader {
            file: found.file,
            version: found.version,
            name: name.to_owned(),
            left: range,
            site: Arc::clone(site),
        };
        Self::pieces(PieceSource::File(reader), guard)
    }

    /// The text of a listing.
    pub(crate) fn listing(listing: Listing, guard: ResponseGuard) -> Self {
        Self::pieces(PieceSource::Listing(listing), guard)
    }

    fn pieces(source: PieceSource, guard: ResponseGuard) -> Self {
        Self::Pieces {
            left: source.left(),
            state: PieceState::Waiting(Some(Box::new(source)).filter(|source| !source.is_over())),
            _guard: guard,
        }
    }
}

impl PieceSource {
    fn next_piece(&mut self) -> io::Result<Bytes> {
        match self {
            Self::File(reader) => reader.next_piece(),
            Self::Listing(listing) => listing.next_piece(),
        }
    }

    fn is_over(&self) -> bool {
        match self {
            Self::File(reader) => reader.left.is_empty(),
            Self::Listing(listing) => listing.is_over(),
        }
    }

    fn left(&self) -> Option<u64> {
        match self {
            Self::File(reader) => Some(reader.left.end - reader.left.start),
            Self::Listing(_) => None,
        }
    }
}

impl FileReader {
    fn next_piece(&mut self) -> io::Result<Bytes> {
        let length = (self.left.end - self.left.start).min(MAX_PIECE);
        let mut piece = vec![0; length as usize];
        let read = self.file.read_exact_at(&mut piece, self.left.start);
        if FileVersion::of(&self.file.metadata()?) != self.version {
            return Err(io::Error::other("the file has changed"));
        }
        if let Err(error) = &read {
            // The client sees only that the body is short.
            let trouble = format_args!("cannot be read, a response is broken off: {error}");
            self.site.warn_of(&self.name, trouble);
        }
        self.left.start += length;
        read.map(|()| piece.into())
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let (state, left) = match self.get_mut() {
            Self::Whole(bytes) => {
                return Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes))));
            }
            Self::Pieces { state, left, .. } => (state, left),
        };
        if let PieceState::Waiting(source) = state {
            let Some(mut source) = source.take() else {
                return Poll::Ready(None);
            };
            *state = PieceState::Reading(tokio::task::spawn_blocking(move || {
                let piece = source.next_piece();
                (source, piece)
            }));
        }
        let PieceState::Reading(reading) = state else {
            return Poll::Ready(None);
        };
        let (source, piece) = match ready!(Pin::new(reading).poll(context)) {
            Ok((source, piece)) => (Some(source), piece),
            Err(lost) => (None, Err(io::Error::other(lost))),
        };
        let rest = source.filter(|source| piece.is_ok() && !source.is_over());
        *left = rest.as_ref().map_or(Some(0), |source| source.left());
        *state = PieceState::Waiting(rest);
        Poll::Ready(Some(piece.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_none(),
            Self::Pieces { state, .. } => matches!(state, PieceState::Waiting(None)),
        }
    }

    fn size_hint(&self) -> SizeHint {
        let exact = match self {
            Self::Whole(bytes) => Some(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Pieces { left, .. } => *left,
        };
        exact.map_or_else(SizeHint::new, SizeHint::with_exact)
    }
}
