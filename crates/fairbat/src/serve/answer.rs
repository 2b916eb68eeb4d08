//! The answer to a request. Knows nothing of sockets.

use std::net::IpAddr;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use dalbe::sender::SenderCoupling;
use http::header::{
    ACCEPT, ACCEPT_RANGES, ALLOW, ALT_SVC, CACHE_CONTROL, CONNECTION, CONTENT_LENGTH,
    CONTENT_RANGE, CONTENT_TYPE, ETAG, LAST_MODIFIED, RETRY_AFTER, VARY, WWW_AUTHENTICATE,
    X_CONTENT_TYPE_OPTIONS,
};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};

use super::conditions::{ConditionOutcome, Validators, evaluate, range_applies};
use super::controller::{ResponseGuard, ResponseMode, ResponseTracker};
use super::files::{NotServed, OpenFile, directory_in, name_in};
use super::listing::{Listing, ListingPage};
use super::response::{
    LogNote, RequestBody, ResponseBody, empty, file_bytes, not_served, pieces, plain, with,
    without_content,
};
use super::site::ServedSite;
use super::write;
use crate::blocking::blocking;
use crate::file_version::wall_clock;
use crate::http::digest::{REPR_DIGEST, wants_sha256};
use crate::http::host::HostRefusal;
use crate::http::priority::{self, RequestPriority};
use crate::http::range::{ContentRange, RequestedRange};

/// The methods of a server that takes no changes.
const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD");

/// Answers a request of `peer`. `tracker` hears how a response with a body is sent.
pub(crate) async fn answer(
    site: &Arc<ServedSite>,
    peer: IpAddr,
    tracker: &ResponseTracker,
    request: &Parts,
    body: RequestBody,
) -> Response<ResponseBody> {
    let mark = match site.uploads {
        Some(_) => priority::WRITABLE_SERVER_MARK,
        None => priority::FAIRBAT_SERVER_MARK,
    };
    let mut response = marked(respond(site, peer, tracker, request, body).await, mark);
    let offer = site.offer.clone().map(|offer| (ALT_SVC, offer));
    response.headers_mut().extend(offer);
    response
}

/// Answers any request of a peer with too many connections, and ends the
/// connection.
pub(crate) fn too_many_connections() -> Response<ResponseBody> {
    let close = HeaderValue::from_static("close");
    let later = HeaderValue::from_static("10");
    let fields = [(CONNECTION, close), (RETRY_AFTER, later)];
    let response = without_content(StatusCode::SERVICE_UNAVAILABLE, fields);
    marked(response, priority::FAIRBAT_SERVER_MARK)
}

/// The response with the mark of a FAIRBAT server, for clients. For browsers, it says
/// that no page of another site may embed the content, and that its type is not to be
/// guessed (both in the Fetch Standard).
fn marked(mut response: Response<ResponseBody>, mark: HeaderValue) -> Response<ResponseBody> {
    response.headers_mut().extend([
        (priority::FAIRBAT_SERVER, mark),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            HeaderValue::from_static("same-origin"),
        ),
    ]);
    response
}

async fn respond(
    site: &Arc<ServedSite>,
    peer: IpAddr,
    tracker: &ResponseTracker,
    request: &Parts,
    body: RequestBody,
) -> Response<ResponseBody> {
    let headers = &request.headers;
    if let Err(refusal) = site.hosts.check(request) {
        let text = match &refusal {
            HostRefusal::Malformed => "one Host is needed",
            HostRefusal::Foreign(host) => {
                site.warn_of_host(host);
                &format!(
                    "the host {host} is not known to be this server's, and a page of another site \
                     could read the files under it: ask by an address or localhost, or serve with \
                     --allow-host NAME"
                )
            }
        };
        return plain(refusal.status(), text);
    }
    if let Some(token) = &site.token
        && !token.is_shown(headers)
    {
        let challenge = HeaderValue::from_static("Bearer realm=\"fairbat\"");
        return without_content(StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, challenge)]);
    }
    if !matches!(request.method, Method::GET | Method::HEAD) {
        return match &site.uploads {
            Some(uploads) => write::answer(site, uploads, peer, tracker, request, body).await,
            None => without_content(StatusCode::METHOD_NOT_ALLOWED, [(ALLOW, METHODS)]),
        };
    }
    let name = name_in(request.uri.path());
    let answered = match &name {
        Some(name) => file(site, tracker, request, name).await,
        None => Err(NotServed::Absent),
    };
    match answered {
        Ok(response) => response,
        Err(NotServed::Absent) if site.uploads.is_some() && wants_listing(headers) => {
            listing(site, tracker, request).await
        }
        Err(reason) => not_served(site, &name.unwrap_or_default(), &reason),
    }
}

/// A response whose body is under way in the mode that the request asks for.
fn with_body(
    site: &ServedSite,
    tracker: &ResponseTracker,
    request: &Parts,
    head: (StatusCode, HeaderMap),
    length: u64,
    body: impl FnOnce(ResponseGuard) -> ResponseBody,
) -> Response<ResponseBody> {
    let priority = RequestPriority::from_headers(&request.headers);
    let mode = ResponseMode::of(&priority, length, site.background);
    // A client that says how urgent the response is may hold back all of its connections
    // together.
    let coupling = if priority == RequestPriority::default() {
        SenderCoupling::EQUAL
    } else {
        SenderCoupling::Apart
    };
    let mut response = with(head.0, head.1, body(tracker.begin(mode, coupling)));
    response.extensions_mut().insert(LogNote(mode.to_string()));
    response
}

/// Answers with the file of this name.
///
/// Bytes are sent only of a settled version. So if bytes are wanted of a file
/// that is being written, the answer waits, and is the answer for the version
/// that the file then has. Nothing else waits.
async fn file(
    site: &Arc<ServedSite>,
    tracker: &ResponseTracker,
    request: &Parts,
    name: &Path,
) -> Result<Response<ResponseBody>, NotServed> {
    let (shared, owned) = (Arc::clone(site), name.to_owned());
    let mut found = blocking(move || shared.root.file(&owned)).await??;
    let (mut status, mut headers, mut range) = file_head(site, request, &found);
    if !range.is_empty() {
        let version = found.version;
        found = found.settled().await?.ok_or(NotServed::Busy)?;
        if found.version != version {
            (status, headers, range) = file_head(site, request, &found);
        }
    }
    if range.is_empty() {
        return Ok(with(status, headers, empty()));
    }
    let length = range.end - range.start;
    let body = |guard| file_bytes(site, name, found, range, guard);
    Ok(with_body(
        site,
        tracker,
        request,
        (status, headers),
        length,
        body,
    ))
}

/// The head of the answer for one version of a file, and the bytes in the body, if any.
fn file_head(
    site: &ServedSite,
    request: &Parts,
    OpenFile { file, version }: &OpenFile,
) -> (StatusCode, HeaderMap, Range<u64>) {
    let (asked, size, now) = (&request.headers, version.size, wall_clock());
    let validators = Validators::told(version, now);
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    if let Some(tag) = &validators.tag {
        headers.insert(ETAG, tag.to_value());
    }
    if let Some(modified) = validators.modified {
        let date = HeaderValue::try_from(httpdate::fmt_http_date(modified)).ok();
        headers.extend(date.map(|date| (LAST_MODIFIED, date)));
    }
    if version.is_settled(now) {
        match site.digests.of(version) {
            Some(digest) => drop(headers.insert(REPR_DIGEST, digest)),
            None if wants_sha256(asked) => site.digests.want(file, *version),
            None => {}
        }
    }
    match evaluate(asked, &validators) {
        ConditionOutcome::Proceed => {}
        ConditionOutcome::NotModified => return (StatusCode::NOT_MODIFIED, headers, 0..0),
        ConditionOutcome::Failed => {
            let headers = HeaderMap::from_iter([(CONTENT_LENGTH, 0.into())]);
            return (StatusCode::PRECONDITION_FAILED, headers, 0..0);
        }
    }
    // A range means something only to GET (RFC 9110, section 14.2).
    let wanted = match request.method {
        Method::GET if range_applies(asked, &validators) => {
            RequestedRange::from_headers(asked, size)
        }
        _ => RequestedRange::Whole,
    };
    let (status, range, content_range) = match wanted {
        RequestedRange::Whole => (StatusCode::OK, 0..size, None),
        RequestedRange::Part(range) => {
            let part = ContentRange::Bytes {
                first: range.start,
                last: range.end - 1,
                total: Some(size),
            };
            (StatusCode::PARTIAL_CONTENT, range, Some(part))
        }
        RequestedRange::Unsatisfiable => {
            let none = ContentRange::Unsatisfied { total: size };
            (StatusCode::RANGE_NOT_SATISFIABLE, 0..0, Some(none))
        }
    };
    if let Some(range) = content_range {
        let value = HeaderValue::try_from(range.to_string()).expect("a range is a field value");
        headers.insert(CONTENT_RANGE, value);
    }
    let length = range.end - range.start;
    headers.insert(CONTENT_LENGTH, length.into());
    if status != StatusCode::RANGE_NOT_SATISFIABLE {
        // A browser never shows such a file, whatever is in it.
        let kind = HeaderValue::from_static("application/octet-stream");
        headers.insert(CONTENT_TYPE, kind);
    }
    let sent = if request.method == Method::HEAD {
        0..0
    } else {
        range
    };
    (status, headers, sent)
}

/// Whether a request asks for a listing. It must name the media type: every
/// client sends `*/*`.
fn wants_listing(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(ACCEPT).iter();
    let ranges = lines.filter_map(|line| line.to_str().ok());
    ranges.flat_map(|line| line.split(',')).any(|range| {
        let mut words = range.split(';').map(str::trim);
        let is_json = words
            .next()
            .is_some_and(|media| media.eq_ignore_ascii_case("application/json"));
        let is_refused = |word: &str| {
            let weight = word.strip_prefix("q=").or_else(|| word.strip_prefix("Q="));
            weight.is_some_and(|weight| weight.parse() == Ok(0.0))
        };
        is_json && !words.any(is_refused)
    })
}

/// Answers with the listing of a directory.
async fn listing(
    site: &Arc<ServedSite>,
    tracker: &ResponseTracker,
    request: &Parts,
) -> Response<ResponseBody> {
    let Some(name) = directory_in(request.uri.path()) else {
        return without_content(StatusCode::NOT_FOUND, []);
    };
    let Some(page) = ListingPage::of(request.uri.query().unwrap_or_default()) else {
        let text = "after is a name, percent-encoded, and limit a number above 0";
        return plain(StatusCode::BAD_REQUEST, text);
    };
    let (shared, owned) = (Arc::clone(site), name.clone());
    let begun = blocking(move || Listing::begin(shared, owned, page)).await;
    let mut listing = match begun.unwrap_or_else(|lost| Err(lost.into())) {
        Ok(listing) => listing,
        Err(reason) => return not_served(site, &name, &reason),
    };
    let headers = HeaderMap::from_iter([
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (VARY, HeaderValue::from_static("accept")),
    ]);
    if request.method == Method::HEAD {
        return with(StatusCode::OK, headers, empty());
    }
    let body = |guard| pieces(guard, move || listing.next_piece());
    with_body(site, tracker, request, (StatusCode::OK, headers), 0, body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_clients_that_name_the_type_get_a_listing() {
        for (accept, expected) in [
            ("application/json", true),
            ("text/html, Application/JSON;q=0.5", true),
            ("application/json;q=0", false),
            ("application/json; q=0.0, */*", false),
            ("*/*", false),
            ("application/*", false),
            ("application/jsonx", false),
        ] {
            let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(accept))]);
            assert_eq!(wants_listing(&headers), expected, "{accept}");
        }
        assert!(!wants_listing(&HeaderMap::new()));
    }
}
