//! Responses and their bodies: a few bytes, the bytes of a file, or a listing.
//! Files and listings are read piece by piece on a thread that may block.
//!
//! After each read the file is checked. If it has changed, the body breaks off,
//! and the client sees that it is too short. All bytes sent until then were read
//! before the change showed, so they belong to one version.

use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::combinators::{BoxBody, UnsyncBoxBody};
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;

use super::controller::ResponseGuard;
use super::files::{NotServed, OpenFile};
use super::site::ServedSite;
use crate::blocking::blocking;
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
    with(status, headers, empty())
}

/// A response that is one line of text.
pub(crate) fn plain(status: StatusCode, text: &str) -> Response<ResponseBody> {
    let text = format!("{text}\n");
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    let headers = [(CONTENT_TYPE, kind), (CONTENT_LENGTH, text.len().into())];
    with(status, HeaderMap::from_iter(headers), whole(text.into()))
}

/// The response for a name that is not served.
pub(crate) fn not_served(
    site: &ServedSite,
    name: &Path,
    reason: &NotServed,
) -> Response<ResponseBody> {
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

/// A response with the status 204, which has neither a body nor its length.
pub(crate) fn no_content() -> Response<ResponseBody> {
    with(StatusCode::NO_CONTENT, HeaderMap::new(), empty())
}

/// The body of any response.
pub(crate) type ResponseBody = UnsyncBoxBody<Bytes, io::Error>;

/// The body of any request.
pub(crate) type RequestBody = BoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>;

/// A body of no bytes.
pub(crate) fn empty() -> ResponseBody {
    whole(Bytes::new())
}

fn whole(bytes: Bytes) -> ResponseBody {
    let body = Full::new(bytes);
    body.map_err(|never| match never {}).boxed_unsync()
}

/// A body of the bytes `left` of a file.
pub(crate) fn file_bytes(
    site: &Arc<ServedSite>,
    name: &Path,
    OpenFile { file, version }: OpenFile,
    mut left: Range<u64>,
    guard: ResponseGuard,
) -> ResponseBody {
    let (site, name) = (Arc::clone(site), name.to_owned());
    pieces(guard, move || {
        if left.is_empty() {
            return Ok(None);
        }
        let length = (left.end - left.start).min(MAX_PIECE);
        let mut piece = vec![0; length as usize];
        let read = file.read_exact_at(&mut piece, left.start);
        if FileVersion::of(&file.metadata()?) != version {
            return Err(io::Error::other("the file has changed"));
        }
        if let Err(error) = &read {
            // The client sees only that the body is short.
            let trouble = format_args!("cannot be read, a response is broken off: {error}");
            site.warn_of(&name, trouble);
        }
        left.start += length;
        read.map(|()| Some(piece.into()))
    })
}

/// A body of pieces. `next` reads the next one on a thread that may block. The
/// response is under way until the body is dropped.
pub(crate) fn pieces(
    guard: ResponseGuard,
    next: impl FnMut() -> io::Result<Option<Bytes>> + Send + 'static,
) -> ResponseBody {
    let pieces = stream::try_unfold((next, guard), |(mut next, guard)| async move {
        let read = move || (next(), next);
        let (piece, next) = blocking(read).await.map_err(io::Error::from)?;
        Ok(piece?.map(|piece| (Frame::data(piece), (next, guard))))
    });
    StreamBody::new(pieces).boxed_unsync()
}
