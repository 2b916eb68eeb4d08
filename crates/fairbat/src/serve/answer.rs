//! What a request is answered. Knows nothing of sockets.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::header::{
    ACCEPT_RANGES, ALLOW, CONNECTION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, HOST,
    LAST_MODIFIED, RETRY_AFTER, WWW_AUTHENTICATE,
};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, Version};
use hyper::body::Incoming;

use super::Site;
use super::body::FileBody;
use super::conditions::{Validators, Verdict, evaluate, range_applies};
use super::digests::{self, REPR_DIGEST};
use super::files::{Found, NotServed, name_in};
use super::flow::Flow;
use super::listing;
use super::pace::Manner;
use super::payload::Payload;
use super::write;
use crate::file_version::{Look, Looks, TICK, wall_clock};
use crate::http::priority::{self, RequestPriority};
use crate::http::range::ContentRange;
use crate::http::range::RequestedRange;
use crate::http::validator::EntityTag;

/// What may be asked of those who change nothing.
const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD");

/// Answers a request. Where that is with bytes of a file, `flow` is told how
/// they are to be sent.
pub(super) async fn answer(
    site: &Arc<Site>,
    flow: &Flow,
    request: &Parts,
    body: Incoming,
) -> Response<Payload> {
    let mut response = respond(site, flow, request, body).await;
    response
        .headers_mut()
        .insert(priority::FAIRBAT_SERVER, priority::fairbat_server_mark());
    response
}

/// Answers any request of a peer that has too many connections, and ends this
/// one.
pub(super) fn too_many() -> Response<Payload> {
    let close = HeaderValue::from_static("close");
    let later = HeaderValue::from_static("10");
    let fields = [(CONNECTION, close), (RETRY_AFTER, later)];
    let mut response = without_content(StatusCode::SERVICE_UNAVAILABLE, fields);
    response
        .headers_mut()
        .insert(priority::FAIRBAT_SERVER, priority::fairbat_server_mark());
    response
}

async fn respond(
    site: &Arc<Site>,
    flow: &Flow,
    request: &Parts,
    body: Incoming,
) -> Response<Payload> {
    let headers = &request.headers;
    // RFC 9112, section 3.2. Which one it is does not matter here.
    if request.version >= Version::HTTP_11 && headers.get_all(HOST).iter().count() != 1 {
        return without_content(StatusCode::BAD_REQUEST, []);
    }
    if let Some(token) = &site.token
        && !token.is_shown(headers)
    {
        let challenge = HeaderValue::from_static("Bearer realm=\"fairbat\"");
        return without_content(StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, challenge)]);
    }
    if !matches!(request.method, Method::GET | Method::HEAD) {
        return match &site.writing {
            Some(writing) => write::answer(site, writing, flow, request, body).await,
            None => without_content(StatusCode::METHOD_NOT_ALLOWED, [(ALLOW, METHODS)]),
        };
    }
    let name = name_in(request.uri.path());
    let found = match &name {
        Some(name) => found(site, flow, request, name).await,
        None => Err(NotServed::Absent),
    };
    match found {
        Ok(response) => response,
        Err(NotServed::Absent) if site.writing.is_some() && listing::is_wanted(headers) => {
            listing::answer(site, flow, request).await
        }
        Err(reason) => refused(site, &name.unwrap_or_default(), &reason),
    }
}

/// Answers with what is wanted of the file of this name.
///
/// Bytes are sent only of a version that counts, so a file that is being
/// written is waited for, and the answer is that for the version it then is.
/// Nothing else is worth a wait.
async fn found(
    site: &Arc<Site>,
    flow: &Flow,
    request: &Parts,
    name: &Path,
) -> Result<Response<Payload>, NotServed> {
    let mut found = open(site, name.to_owned()).await?;
    let mut looks = Looks::default();
    loop {
        let Reply {
            status,
            headers,
            range,
        } = reply(site, request, &found);
        let Some(range) = range else {
            return Ok(with(status, headers, Payload::empty()));
        };
        match looks.look(found.version, wall_clock()) {
            Look::Counts => {
                let wish = RequestPriority::from_headers(&request.headers);
                let manner = Manner::of(&wish, range.end - range.start, site.background);
                let body = FileBody::of(site, name, found, range, flow.begin(manner));
                let mut response = with(status, headers, Payload::File(body));
                response.extensions_mut().insert(manner);
                return Ok(response);
            }
            Look::Again => tokio::time::sleep(TICK).await,
            Look::Restless => return Err(NotServed::Busy),
        }
        found = aside(move || found.again()).await?;
    }
}

async fn open(site: &Arc<Site>, name: PathBuf) -> Result<Found, NotServed> {
    let site = Arc::clone(site);
    aside(move || site.root.file(&name)).await
}

/// Has this done by a thread that may block.
pub(super) async fn aside<T, E>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, E>
where
    T: Send + 'static,
    E: From<std::io::Error> + Send + 'static,
{
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|panicked| Err(std::io::Error::other(panicked).into()))
}

pub(super) fn refused(site: &Site, name: &Path, reason: &NotServed) -> Response<Payload> {
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

/// What is answered of a version of a file.
struct Reply {
    status: StatusCode,
    headers: HeaderMap,
    /// The bytes that go with it, if any.
    range: Option<Range<u64>>,
}

impl Reply {
    /// Without any.
    fn bare(status: StatusCode, headers: HeaderMap) -> Self {
        Self {
            status,
            headers,
            range: None,
        }
    }
}

fn reply(site: &Site, request: &Parts, Found { file, version }: &Found) -> Reply {
    let (asked, size) = (&request.headers, version.size);
    let now = wall_clock();
    let is_settled = version.is_settled(now);
    let seen = Validators {
        tag: is_settled
            .then(|| EntityTag::from_value(&version.entity_tag()))
            .flatten(),
        modified: version.last_modified(now).filter(|_| is_settled),
        is_dated: version.is_dated(),
    };
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    if let Some(tag) = &seen.tag {
        headers.insert(ETAG, tag.to_value());
    }
    if let Some(modified) = seen.modified {
        let date = httpdate::fmt_http_date(modified);
        headers.extend(
            HeaderValue::try_from(date)
                .ok()
                .map(|date| (LAST_MODIFIED, date)),
        );
    }
    if is_settled {
        match site.digests.of(version) {
            Some(digest) => {
                headers.insert(REPR_DIGEST, digest);
            }
            None if digests::is_wanted(asked) => site.digests.want(file, *version),
            None => {}
        }
    }
    match evaluate(asked, &seen) {
        Verdict::Proceed => {}
        Verdict::NotModified => return Reply::bare(StatusCode::NOT_MODIFIED, headers),
        Verdict::Failed => return Reply::bare(StatusCode::PRECONDITION_FAILED, no_content([])),
    }
    // A range means something to GET alone (RFC 9110, section 14.2).
    let wanted = match request.method {
        Method::GET if range_applies(asked, &seen) => RequestedRange::from_headers(asked, size),
        _ => RequestedRange::Whole,
    };
    let (status, range) = match wanted {
        RequestedRange::Whole => (StatusCode::OK, 0..size),
        RequestedRange::Part(range) => {
            let part = ContentRange::Bytes {
                first: range.start,
                last: range.end - 1,
                total: Some(size),
            };
            headers.insert(CONTENT_RANGE, text(part));
            (StatusCode::PARTIAL_CONTENT, range)
        }
        RequestedRange::Unsatisfiable => {
            headers.insert(
                CONTENT_RANGE,
                text(ContentRange::Unsatisfied { total: size }),
            );
            headers.insert(CONTENT_LENGTH, 0.into());
            return Reply::bare(StatusCode::RANGE_NOT_SATISFIABLE, headers);
        }
    };
    let length = range.end - range.start;
    // Never shown by a browser, whatever is in it.
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("application/octet-stream"),
    );
    headers.insert(CONTENT_LENGTH, length.into());
    let is_sent = request.method != Method::HEAD && length > 0;
    Reply {
        status,
        headers,
        range: is_sent.then_some(range),
    }
}

fn text(range: ContentRange) -> HeaderValue {
    HeaderValue::try_from(range.to_string()).expect("a range is a field value")
}

pub(super) fn with(status: StatusCode, headers: HeaderMap, body: Payload) -> Response<Payload> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

pub(super) fn without_content<const N: usize>(
    status: StatusCode,
    fields: [(HeaderName, HeaderValue); N],
) -> Response<Payload> {
    with(status, no_content(fields), Payload::empty())
}

/// These fields, and that there is nothing behind them.
fn no_content<const N: usize>(fields: [(HeaderName, HeaderValue); N]) -> HeaderMap {
    let mut headers = HeaderMap::from_iter(fields);
    headers.insert(CONTENT_LENGTH, 0.into());
    headers
}
