//! Uploads in parts: a file that comes in several requests, which may be under way at once.
//!
//! | request | answer |
//! |---|---|
//! | `POST FILE?parts`, `Content-Range: bytes */N` | 201 with `Location: FILE?parts=ID`: N bytes may come |
//! | `PUT FILE?parts=ID`, `Content-Range: bytes A-B/N` | 204: these bytes have come |
//! | `POST FILE?parts=ID` | as to a PUT of the whole file; 409 with the missing ranges |
//! | `DELETE FILE?parts=ID` | 204: nothing is left of it |
//!
//! Parts come in any order, any number of times. A part counts when all of it has come. Conditions
//! on the file are those of the first request. An ID that is not known is a 404: the upload is
//! complete, was given up, or belonged to a server that has ended. `Fairbat: 1;parts` in any answer
//! says that the server takes parts.
//!
//! The first request needs a field that browsers send to no other site unasked (`Content-Range`).
//! So a web page cannot begin uploads. The ID cannot be guessed.

use std::net::IpAddr;
use std::ops::Range;
use std::sync::{Arc, Weak};
use std::time::Duration;

use http::header::{CONTENT_RANGE, LOCATION};
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode};
use hyper::body::{Body, Incoming};

use super::place::file_name;
use super::put::check_coding;
use super::receive::{Receiving, stored};
use super::refusal::Refusal;
use super::uploads::{Expected, InUse, PartUpload, Unfinished, Uploads};
use crate::blocking::blocking;
use crate::clock::Clock;
use crate::http::digest::StatedDigests;
use crate::http::fields::single;
use crate::http::range::ContentRange;
use crate::serve::response::{LogNote, ResponseBody, no_content, without_content};
use crate::serve::site::Site;

/// What a query says of an upload in parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PartsQuery {
    /// One is to begin.
    New,
    /// The one of this ID.
    Of(String),
}

impl PartsQuery {
    /// `None` for a query about something else.
    pub(crate) fn of(query: Option<&str>) -> Option<Self> {
        query?.split('&').find_map(|member| match member {
            "parts" => Some(Self::New),
            member => Some(Self::Of(member.strip_prefix("parts=")?.to_owned())),
        })
    }
}

/// Answers a request about an upload in parts.
pub(crate) async fn answer(
    site: &Arc<Site>,
    uploads: &Arc<Uploads>,
    peer: IpAddr,
    (query, request): (PartsQuery, &Parts),
    body: Incoming,
) -> Result<Response<ResponseBody>, Refusal> {
    let id = match query {
        PartsQuery::New if request.method == Method::POST => {
            return begin(site, uploads, peer, request, &body).await;
        }
        PartsQuery::New => return Err(Refusal::OtherMethod),
        PartsQuery::Of(id) => id,
    };
    let name = file_name(request.uri.path())?;
    let used = uploads.parts.of(&id, &name, site.clock)?;
    match request.method {
        Method::PUT => take_part(site, &used.upload, request, body).await,
        Method::POST => complete(site, uploads, &id, used, &body).await,
        Method::DELETE => {
            uploads.parts.remove(&id);
            Ok(no_content())
        }
        _ => Err(Refusal::OtherMethod),
    }
}

/// Begins an upload.
async fn begin(
    site: &Arc<Site>,
    uploads: &Arc<Uploads>,
    peer: IpAddr,
    request: &Parts,
    body: &Incoming,
) -> Result<Response<ResponseBody>, Refusal> {
    check_empty(body)?;
    let path = request.uri.path();
    let name = file_name(path)?;
    let Some(ContentRange::Unsatisfied { total }) = content_range(request) else {
        return Err(Refusal::NoTotal);
    };
    uploads.check_size(total)?;
    let slot = uploads.slots.take(peer)?;
    let expected = Expected::by(site, &name, &request.headers).await?;
    let file = {
        let (site, uploads, name) = (Arc::clone(site), Arc::clone(uploads), name.clone());
        blocking(move || Unfinished::begin(&site, &uploads, slot, &name, total)).await??
    };
    let id = new_id()?;
    let location = format!("{path}?parts={id}");
    let location = HeaderValue::try_from(location).map_err(|_| Refusal::NoName)?;
    let upload = PartUpload::new(name, total, expected, file, site.clock.now());
    uploads.parts.add(id.clone(), upload);
    let (limit, uploads) = (site.patience.parts, Arc::downgrade(uploads));
    tokio::spawn(give_up_when_unused(uploads, id, site.clock, limit));
    Ok(without_content(StatusCode::CREATED, [(LOCATION, location)]))
}

/// Gives an upload up after it was unused for so long.
async fn give_up_when_unused(uploads: Weak<Uploads>, id: String, clock: Clock, limit: Duration) {
    loop {
        let left = match uploads.upgrade() {
            None => return,
            Some(uploads) => match uploads.parts.left(&id, clock.now(), limit) {
                None => return,
                Some(Duration::ZERO) => {
                    tracing::info!("an upload in parts was unused for {limit:?} and is given up");
                    return uploads.parts.remove(&id);
                }
                Some(left) => left,
            },
        };
        tokio::time::sleep(left).await;
    }
}

/// Takes a part.
async fn take_part(
    site: &Arc<Site>,
    upload: &Arc<PartUpload>,
    request: &Parts,
    body: Incoming,
) -> Result<Response<ResponseBody>, Refusal> {
    check_coding(&request.headers)?;
    let range = part(request, upload.total)?;
    let length = range.end - range.start;
    let is_other = |announced: u64| announced != length;
    if body.size_hint().exact().is_some_and(is_other) {
        return Err(Refusal::OtherLength(length));
    }
    let digests = StatedDigests::of_content(&request.headers).map_err(Refusal::Malformed)?;
    let file = Arc::clone(&upload.file);
    let received = Receiving::new(file, digests, range.start, length)
        .receive(site, body, |came| match came > length {
            true => Err(Refusal::OtherLength(length)),
            false => Ok(()),
        })
        .await?;
    if received.length != length {
        return Err(Refusal::OtherLength(length));
    }
    received.check_digests()?;
    let note = LogNote(format!("part={}-{}", range.start, range.end - 1));
    upload.came(range);
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
    site: &Arc<Site>,
    uploads: &Arc<Uploads>,
    id: &str,
    used: InUse,
    body: &Incoming,
) -> Result<Response<ResponseBody>, Refusal> {
    check_empty(body)?;
    if let Some(missing) = used.upload.missing() {
        return Err(Refusal::Missing(missing));
    }
    uploads.parts.remove(id);
    let length = used.upload.total;
    let arrived = {
        let (site, uploads) = (Arc::clone(site), Arc::clone(uploads));
        blocking(move || {
            let PartUpload {
                file,
                name,
                expected,
                ..
            } = &*used.upload;
            file.finish(&site, &uploads, name, *expected)
        })
        .await??
    };
    stored(site, arrived, None, length).await
}

fn check_empty(body: &Incoming) -> Result<(), Refusal> {
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
        for (query, expected) in [
            ("parts", Some(PartsQuery::New)),
            ("a=b&parts", Some(PartsQuery::New)),
            ("parts=12ab", of("12ab")),
            ("parts=", of("")),
            ("a&parts=1&b", of("1")),
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
    fn no_two_ids_are_the_same() {
        let ids: Vec<String> = (0..100).map(|_| new_id().unwrap()).collect();
        let distinct: std::collections::HashSet<&String> = ids.iter().collect();
        assert!(distinct.len() == 100 && ids.iter().all(|id| id.len() == 32));
    }
}
