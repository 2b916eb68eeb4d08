//! What a request is answered. Knows nothing of sockets.

use std::path::PathBuf;
use std::sync::Arc;

use http::header::{
    ACCEPT_RANGES, ALLOW, CONNECTION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, HOST,
    LAST_MODIFIED, RETRY_AFTER, WWW_AUTHENTICATE,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Version};

use super::Site;
use super::body::FileBody;
use super::conditions::{Validators, Verdict, evaluate, range_applies};
use super::digests::{self, REPR_DIGEST};
use super::files::{Found, NotServed, name_in};
use super::flow::Flow;
use super::pace::Manner;
use super::range::Wanted;
use super::stamp::wall_clock;
use crate::http::content_range::ContentRange;
use crate::http::entity_tag::EntityTag;
use crate::http::wish::{self, Wish};

/// What may be asked for.
const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD");

/// Answers a request. Where that is with bytes of a file, `flow` is told how
/// they are to be sent.
pub(super) async fn answer<B>(
    site: &Arc<Site>,
    flow: &Flow,
    request: &Request<B>,
) -> Response<FileBody> {
    let mut response = respond(site, flow, request).await;
    response.headers_mut().insert(wish::OURS, wish::ours());
    let headers = response.headers();
    let length = headers
        .get(CONTENT_RANGE)
        .or_else(|| headers.get(CONTENT_LENGTH));
    tracing::debug!(
        // Without the query, which nobody here needs and may hold a secret.
        "{} {} {} {:?} {:?}",
        request.method(),
        request.uri().path(),
        response.status().as_u16(),
        length.unwrap_or(&HeaderValue::from_static("-")),
        response.extensions().get().unwrap_or(&Manner::Ordinary),
    );
    response
}

/// Answers any request of a peer that has too many connections, and ends this
/// one.
pub(super) fn too_many() -> Response<FileBody> {
    let close = HeaderValue::from_static("close");
    let later = HeaderValue::from_static("10");
    let fields = [(CONNECTION, close), (RETRY_AFTER, later)];
    let mut response = without_content(StatusCode::SERVICE_UNAVAILABLE, fields);
    response.headers_mut().insert(wish::OURS, wish::ours());
    response
}

async fn respond<B>(site: &Arc<Site>, flow: &Flow, request: &Request<B>) -> Response<FileBody> {
    let headers = request.headers();
    // RFC 9112, section 3.2. Which one it is does not matter here.
    if request.version() >= Version::HTTP_11 && headers.get_all(HOST).iter().count() != 1 {
        return without_content(StatusCode::BAD_REQUEST, []);
    }
    if let Some(token) = &site.token
        && !token.is_shown(headers)
    {
        let challenge = HeaderValue::from_static("Bearer realm=\"fairbat\"");
        return without_content(StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, challenge)]);
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return without_content(StatusCode::METHOD_NOT_ALLOWED, [(ALLOW, METHODS)]);
    }
    let found = match name_in(request.uri().path()) {
        Some(name) => open(site, name).await,
        None => Err(NotServed::Absent),
    };
    match found {
        Ok(found) => of_file(site, flow, request, found),
        Err(reason) => refused(&reason),
    }
}

async fn open(site: &Arc<Site>, name: PathBuf) -> Result<Found, NotServed> {
    let site = Arc::clone(site);
    let opened = tokio::task::spawn_blocking(move || site.root.file(&name)).await;
    opened.unwrap_or_else(|panicked| Err(NotServed::Broken(std::io::Error::other(panicked))))
}

fn refused(reason: &NotServed) -> Response<FileBody> {
    match reason {
        NotServed::Absent => without_content(StatusCode::NOT_FOUND, []),
        NotServed::Forbidden => without_content(StatusCode::FORBIDDEN, []),
        NotServed::Busy => {
            let soon = HeaderValue::from_static("1");
            without_content(StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, soon)])
        }
        NotServed::Broken(error) => {
            tracing::warn!("cannot open a file: {error}");
            without_content(StatusCode::INTERNAL_SERVER_ERROR, [])
        }
    }
}

/// Answers with what is wanted of a file.
fn of_file<B>(
    site: &Arc<Site>,
    flow: &Flow,
    request: &Request<B>,
    Found { file, stamp }: Found,
) -> Response<FileBody> {
    let (asked, size) = (request.headers(), stamp.size());
    let now = wall_clock();
    let is_settled = stamp.is_settled(now);
    let seen = Validators {
        tag: is_settled
            .then(|| EntityTag::from_value(&stamp.entity_tag()))
            .flatten(),
        modified: stamp.modified(now).filter(|_| is_settled),
        is_dated: stamp.is_dated(),
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
        match site.digests.of(&stamp) {
            Some(digest) => {
                headers.insert(REPR_DIGEST, digest);
            }
            None if digests::is_wanted(asked) => site.digests.want(&file, stamp),
            None => {}
        }
    }
    match evaluate(asked, &seen) {
        Verdict::Proceed => {}
        Verdict::NotModified => return with(StatusCode::NOT_MODIFIED, headers, FileBody::empty()),
        Verdict::Failed => return without_content(StatusCode::PRECONDITION_FAILED, []),
    }
    // A range means something to GET alone (RFC 9110, section 14.2).
    let wanted = match *request.method() {
        Method::GET if range_applies(asked, &seen) => Wanted::of(asked, size),
        _ => Wanted::Whole,
    };
    let (status, range) = match wanted {
        Wanted::Whole => (StatusCode::OK, 0..size),
        Wanted::Part(range) => {
            let part = ContentRange::Bytes {
                first: range.start,
                last: range.end - 1,
                total: Some(size),
            };
            headers.insert(CONTENT_RANGE, text(part));
            (StatusCode::PARTIAL_CONTENT, range)
        }
        Wanted::Unsatisfiable => {
            headers.insert(
                CONTENT_RANGE,
                text(ContentRange::Unsatisfied { total: size }),
            );
            headers.insert(CONTENT_LENGTH, 0.into());
            return with(
                StatusCode::RANGE_NOT_SATISFIABLE,
                headers,
                FileBody::empty(),
            );
        }
    };
    let length = range.end - range.start;
    // Never shown by a browser, whatever is in it.
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("application/octet-stream"),
    );
    headers.insert(CONTENT_LENGTH, length.into());
    if *request.method() == Method::HEAD || length == 0 {
        return with(status, headers, FileBody::empty());
    }
    let wish = Wish::from_headers(asked);
    let manner = Manner::of(&wish, length, site.background);
    let body = FileBody::of(file, stamp, range, flow.begin(manner));
    let mut response = with(status, headers, body);
    response.extensions_mut().insert(manner);
    response
}

fn text(range: ContentRange) -> HeaderValue {
    HeaderValue::try_from(range.to_string()).expect("a range is a field value")
}

fn with(status: StatusCode, headers: HeaderMap, body: FileBody) -> Response<FileBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

fn without_content<const N: usize>(
    status: StatusCode,
    fields: [(HeaderName, HeaderValue); N],
) -> Response<FileBody> {
    let mut headers = HeaderMap::from_iter(fields);
    headers.insert(CONTENT_LENGTH, 0.into());
    with(status, headers, FileBody::empty())
}
