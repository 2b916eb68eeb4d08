//! Uploads in parts: a file that comes in several requests, which may be under way at once.
//!
//! | request | answer |
//! |---|---|
//! | `POST FILE?parts`, `Content-Range: bytes */N` | 201 with `Location: ?parts=ID`: N bytes may come |
//! | `PUT FILE?parts=ID`, `Content-Range: bytes A-B/N` | 204: these bytes have come |
//! | `POST FILE?parts=ID` | as to a PUT of the whole file; 409 with the missing ranges |
//! | `POST FILE?parts=ID&give-up` | 204: the upload is forgotten |
//!
//! `Location` keeps the other members of the query, and leaves the path out, because a proxy may
//! have changed it.
//!
//! Parts come in any order, any number of times. A part counts when all of it has come. From its
//! first byte on, bytes that came there before do not count. Of two parts that overlap while they
//! come, the newer one counts, and the older one is answered 409. Conditions on the file are those
//! of the first request.
//!
//! An upload is complete when its file has its name. If that fails, the upload stays as it is, and
//! may be completed again. A request to complete it once more gets the same answer for a while: the
//! client may have lost the first one. An ID that is not known is a 404: the upload was given up,
//! was completed long ago, or belonged to a server that has ended.
//!
//! No request of these does harm at a server that knows nothing of parts: it refuses POST, and PUT
//! with `Content-Range`. So DELETE is not one of them. `Fairbat: 1;parts` in an answer says that the
//! server takes parts.
//!
//! The first request needs a field that browsers send to no other site unasked (`Content-Range`).
//! So a web page cannot begin uploads. The ID cannot be guessed.

use std::net::IpAddr;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use http::header::{CONTENT_RANGE, LOCATION};
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode};
use http_body::Body;

use super::part_uploads::{Named, PartUnderWay, PartUpload, UploadUse};
use super::place::file_name;
use super::put::check_coding;
use super::receive::{ReceivedBody, stored};
use super::refusal::Refusal;
use super::unfinished::{ExpectedContent, UnfinishedFile};
use super::uploads::Uploads;
use crate::blocking::blocking;
use crate::clock::Clock;
use crate::http::digest::{REPR_DIGEST, StatedDigests};
use crate::http::fields::single;
use crate::http::range::ContentRange;
use crate::serve::response::{LogNote, RequestBody, ResponseBody, no_content, without_content};
use crate::serve::site::ServedSite;

/// The member of a query that is about uploads in parts.
const PARTS: &str = "parts";

/// The member that gives one up.
const GIVE_UP: &str = "give-up";

/// What a query says of an upload in parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PartsQuery {
    /// One is to begin.
    New,
    /// The one of this ID.
    Of(String),
    /// The one of this ID is given up.
    GivenUp(String),
}

impl PartsQuery {
    /// `None` for a query about something else.
    pub(crate) fn of(query: Option<&str>) -> Option<Self> {
        let members = || query.unwrap_or_default().split('&');
        let is_given_up = members().any(|member| member == GIVE_UP);
        members().find_map(|member| match member {
            PARTS => Some(Self::New),
            member => {
                let id = member.strip_prefix(PARTS)?.strip_prefix('=')?.to_owned();
                Some(match is_given_up {
                    true => Self::GivenUp(id),
                    false => Self::Of(id),
                })
            }
        })
    }
}

/// Where the parts go, as seen from where the upload began with this query (RFC 3986, section
/// 5.3: without a path, that of the base stays).
fn place(query: &str, id: &str) -> String {
    let members = query.split('&').map(|member| match member {
        PARTS => format!("{PARTS}={id}"),
        member => member.to_owned(),
    });
    format!("?{}", members.collect::<Vec<_>>().join("&"))
}

/// Answers a request about an upload in parts.
pub(crate) async fn answer(
    site: &Arc<ServedSite>,
    uploads: &Arc<Uploads>,
    peer: IpAddr,
    (query, request): (PartsQuery, &Parts),
    body: RequestBody,
) -> Result<Response<ResponseBody>, Refusal> {
    let name = file_name(request.uri.path())?;
    let named = |id: &str| uploads.parts.of(id, &name, site.clock);
    match (query, &request.method) {
        (PartsQuery::New, &Method::POST) => {
            begin(site, uploads, peer, (name, request), &body).await
        }
        (PartsQuery::Of(id), &Method::PUT) => {
            let used = unfinished(named(&id)?)?;
            take_part(site, &used.upload, request, body).await
        }
        (PartsQuery::Of(id), &Method::POST) => {
            check_empty(request, &body)?;
            match named(&id)? {
                Named::Unfinished(used) => complete(site, uploads, id, used).await,
                Named::Complete(arrived) => Ok(arrived.response()),
            }
        }
        (PartsQuery::GivenUp(id), &Method::POST) => {
            check_empty(request, &body)?;
            give_up(uploads, &id, &unfinished(named(&id)?)?.upload).await
        }
        _ => Err(Refusal::OtherMethod),
    }
}

/// One that is not complete.
fn unfinished(named: Named) -> Result<UploadUse, Refusal> {
    match named {
        Named::Unfinished(used) => Ok(used),
        Named::Complete(_) => Err(Refusal::UnknownUpload),
    }
}

/// Begins an upload.
async fn begin(
    site: &Arc<ServedSite>,
    uploads: &Arc<Uploads>,
    peer: IpAddr,
    (name, request): (PathBuf, &Parts),
    body: &RequestBody,
) -> Result<Response<ResponseBody>, Refusal> {
    check_empty(request, body)?;
    let Some(ContentRange::Unsatisfied { total }) = content_range(request) else {
        return Err(Refusal::NoTotal);
    };
    uploads.check_size(total)?;
    let slot = uploads.slots.take(peer)?;
    let expected = ExpectedContent::by(site, &name, &request.headers).await?;
    let file = {
        let (site, uploads, name) = (Arc::clone(site), Arc::clone(uploads), name.clone());
        blocking(move || UnfinishedFile::begin(&site, &uploads, slot, &name, total)).await??
    };
    let id = new_id()?;
    let location = place(request.uri.query().unwrap_or_default(), &id);
    let location = HeaderValue::try_from(location).map_err(|_| Refusal::NoName)?;
    let upload = PartUpload::new(name, total, expected, file, site.clock.now());
    if uploads.parts.add(id, upload) {
        let (limit, uploads) = (site.patience.parts, Arc::downgrade(uploads));
        tokio::spawn(sweep(uploads, site.clock, limit));
    }
    Ok(without_content(StatusCode::CREATED, [(LOCATION, location)]))
}

/// Forgets uploads that were unused for so long, while there are any.
async fn sweep(uploads: Weak<Uploads>, clock: Clock, limit: Duration) {
    let next = || uploads.upgrade()?.parts.sweep(clock.now(), limit);
    while let Some(left) = next() {
        tokio::time::sleep(left).await;
    }
}

/// Gives an upload up.
async fn give_up(
    uploads: &Uploads,
    id: &str,
    upload: &PartUpload,
) -> Result<Response<ResponseBody>, Refusal> {
    // A request that completes it goes first.
    let outcome = upload.outcome.lock().await;
    if outcome.is_some() {
        return Err(Refusal::UnknownUpload);
    }
    upload.close_for_ever();
    uploads.parts.remove(id);
    Ok(no_content())
}

/// Takes a part.
async fn take_part(
    site: &Arc<ServedSite>,
    upload: &Arc<PartUpload>,
    request: &Parts,
    body: RequestBody,
) -> Result<Response<ResponseBody>, Refusal> {
    check_coding(&request.headers)?;
    let range = part(request, upload.total)?;
    let length = range.end - range.start;
    let is_other = |announced: u64| announced != length;
    if body.size_hint().exact().is_some_and(is_other) {
        return Err(Refusal::OtherLength(length));
    }
    let digests = StatedDigests::of_content(&request.headers).map_err(Refusal::Malformed)?;
    let part = {
        let (upload, range) = (Arc::clone(upload), range.clone());
        blocking(move || upload.begin_part(range)).await??
    };
    let file = Arc::clone(&upload.file);
    let mut received = ReceivedBody::new(file, digests, range.start, length)
        .of_part(part)
        .receive(site, body, |came| match came > length {
            true => Err(Refusal::OtherLength(length)),
            false => Ok(()),
        })
        .await?;
    if received.length != length {
        return Err(Refusal::OtherLength(length));
    }
    let part = received.part.take();
    received.check_digests()?;
    part.map_or(Ok(()), PartUnderWay::has_come)?;
    let note = LogNote(format!("part={}-{}", range.start, range.end - 1));
    let mut response = no_content();
    response.extensions_mut().insert(note);
    Ok(response)
}

/// The bytes of a file of `total` bytes that a request sends.
fn part(request: &Parts, total: u64) -> Result<Range<u64>, Refusal> {
    match content_range(request) {
        Some(ContentRange::Bytes {
            first,
            last,
            total: Some(of),
        }) if of == total => Ok(first..last + 1),
        _ => Err(Refusal::NotOfFile(total)),
    }
}

/// Gives the file its name, if all of it is there.
async fn complete(
    site: &Arc<ServedSite>,
    uploads: &Arc<Uploads>,
    id: String,
    used: UploadUse,
) -> Result<Response<ResponseBody>, Refusal> {
    let mut outcome = Arc::clone(&used.upload.outcome).lock_owned().await;
    if let Some(arrived) = *outcome {
        return Ok(arrived.response());
    }
    let length = used.upload.total;
    let arrived = {
        let (site, uploads) = (Arc::clone(site), Arc::clone(uploads));
        // To the end, even if the client goes away: it may ask again.
        blocking(move || {
            let upload = &used.upload;
            upload.close()?;
            let (file, name) = (&upload.file, &upload.name);
            let finished = file.finish(&site, &uploads, name, upload.expected);
            match &finished {
                Ok((arrived, _)) => {
                    *outcome = Some(*arrived);
                    let now = site.clock.now();
                    uploads.parts.complete(id, name.clone(), *arrived, now);
                }
                Err(_) if file.alone().is_some() => upload.reopen(),
                Err(_) => uploads.parts.remove(&id),
            }
            finished
        })
        .await??
    };
    stored(site, arrived, None, length).await
}

/// Checks that a request without a body states nothing of one.
fn check_empty(request: &Parts, body: &RequestBody) -> Result<(), Refusal> {
    let headers = &request.headers;
    if headers.contains_key(REPR_DIGEST) || headers.contains_key("digest") {
        return Err(Refusal::WholeDigest);
    }
    match body.is_end_stream() {
        true => Ok(()),
        false => Err(Refusal::Body),
    }
}

fn content_range(request: &Parts) -> Option<ContentRange> {
    ContentRange::parse(single(&request.headers, &CONTENT_RANGE)?.as_bytes())
}

/// 128 random bits, in hexadecimal digits.
fn new_id() -> Result<String, Refusal> {
    let mut bits = [0; 16];
    let random = rustls::crypto::ring::default_provider().secure_random;
    random.fill(&mut bits).map_err(|_| Refusal::Busy)?;
    Ok(format!("{:032x}", u128::from_be_bytes(bits)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_names_an_upload_or_none() {
        let of = |id: &str| Some(PartsQuery::Of(id.to_owned()));
        let given_up = |id: &str| Some(PartsQuery::GivenUp(id.to_owned()));
        for (query, expected) in [
            ("parts", Some(PartsQuery::New)),
            ("a=b&parts", Some(PartsQuery::New)),
            ("parts=12ab", of("12ab")),
            ("parts=", of("")),
            ("a&parts=1&b", of("1")),
            ("parts=1&give-up", given_up("1")),
            ("give-up&parts=1", given_up("1")),
            ("parts=1&give-up=", of("1")),
            ("give-up", None),
            ("", None),
            ("part", None),
            ("xparts=1", None),
            ("a=parts", None),
        ] {
            assert_eq!(PartsQuery::of(Some(query)), expected, "{query}");
        }
        assert_eq!(PartsQuery::of(None), None);
    }

    #[test]
    fn parts_go_where_the_upload_began() {
        for (query, expected) in [("parts", "?parts=1a"), ("k=v&parts&x", "?k=v&parts=1a&x")] {
            assert_eq!(place(query, "1a"), expected);
        }
    }

    #[test]
    fn no_two_ids_are_the_same() {
        let ids: Vec<String> = (0..100).map(|_| new_id().unwrap()).collect();
        let distinct: std::collections::HashSet<&String> = ids.iter().collect();
        assert!(distinct.len() == 100 && ids.iter().all(|id| id.len() == 32));
    }
}
