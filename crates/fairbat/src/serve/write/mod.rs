//! Requests that change something: PUT in `put`, uploads in several requests in `parts`, and
//! here DELETE, MOVE and MKCOL (RFC 9110, section 9.3.5, and RFC 4918), which change names and
//! no content.
//!
//! The checks here do not rely on those in the rest of the server, except that
//! the client has shown the token if there is one. Uploads have no lever: the
//! client holds them back.

pub(crate) mod part_uploads;
mod parts;
mod place;
mod put;
mod receive;
mod refusal;
pub(crate) mod scratch;
mod slots;
mod unfinished;
pub(crate) mod uploads;

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dalbe::sender::SenderCoupling;
use http::header::{ALLOW, HOST, RETRY_AFTER};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Uri};
use http_body::Body;

use self::parts::PartsQuery;
use self::place::{Arrival, FilePlace, NotArrived, Occupant, arrive, file_name};
use self::refusal::Refusal;
use self::unfinished::ExpectedContent;
use self::uploads::Uploads;
use super::controller::{ResponseMode, ResponseTracker};
use super::files::directory_in;
use super::response::{RequestBody, ResponseBody, no_content, plain, without_content};
use super::site::ServedSite;
use crate::blocking::blocking;

/// The methods of a server that takes changes.
const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, PUT, POST, DELETE, MOVE, MKCOL");

/// Answers a request with any other method than GET and HEAD.
pub(crate) async fn answer(
    site: &Arc<ServedSite>,
    uploads: &Arc<Uploads>,
    peer: IpAddr,
    tracker: &ResponseTracker,
    request: &Parts,
    body: RequestBody,
) -> Response<ResponseBody> {
    // The connection is not idle until the answer is there.
    let _guard = tracker.begin(ResponseMode::Ordinary, SenderCoupling::EQUAL);
    let changed = change(site, uploads, peer, request, body).await;
    changed.unwrap_or_else(|refusal| {
        if let Refusal::Disk(_) | Refusal::Full = refusal {
            let name = request.uri.path().as_ref();
            site.warn_of(name, format_args!("{}: {refusal}", request.method));
        }
        refuse(&refusal)
    })
}

fn refuse(refusal: &Refusal) -> Response<ResponseBody> {
    let mut response = plain(refusal.status(), &refusal.to_string());
    let more = match refusal {
        Refusal::Crowded => Some((RETRY_AFTER, HeaderValue::from_static("10"))),
        Refusal::Busy | Refusal::ManyParts => Some((RETRY_AFTER, HeaderValue::from_static("1"))),
        Refusal::OtherMethod | Refusal::Exists => Some((ALLOW, METHODS)),
        _ => None,
    };
    response.headers_mut().extend(more);
    response
}

async fn change(
    site: &Arc<ServedSite>,
    uploads: &Arc<Uploads>,
    peer: IpAddr,
    request: &Parts,
    body: RequestBody,
) -> Result<Response<ResponseBody>, Refusal> {
    if let Some(query) = PartsQuery::of(request.uri.query()) {
        return parts::answer(site, uploads, peer, (query, request), body).await;
    }
    match request.method {
        Method::PUT => put::put(site, uploads, peer, request, body).await,
        Method::DELETE => delete(site, uploads, request).await,
        _ => match request.method.as_str() {
            "MOVE" => rename(site, uploads, request).await,
            "MKCOL" => make_directory(site, request, &body).await,
            _ => Err(Refusal::OtherMethod),
        },
    }
}

/// Removes a file, a link or an empty directory.
async fn delete(
    site: &Arc<ServedSite>,
    uploads: &Arc<Uploads>,
    request: &Parts,
) -> Result<Response<ResponseBody>, Refusal> {
    let name = directory_in(request.uri.path()).ok_or(Refusal::NoName)?;
    let expected = ExpectedContent::by(site, &name, &request.headers).await?;
    let (site, uploads) = (Arc::clone(site), Arc::clone(uploads));
    blocking(move || {
        let place = existing(&site, &name)?;
        let turn = uploads.turn();
        expected.check(&site, &name)?;
        place.remove()?;
        drop(turn);
        Ok::<_, Refusal>(place.sync()?)
    })
    .await??;
    Ok(no_content())
}

/// Makes a directory in one that exists.
async fn make_directory(
    site: &Arc<ServedSite>,
    request: &Parts,
    body: &RequestBody,
) -> Result<Response<ResponseBody>, Refusal> {
    if !body.is_end_stream() {
        return Err(Refusal::Body);
    }
    let name = directory_in(request.uri.path()).ok_or(Refusal::NoName)?;
    let site = Arc::clone(site);
    blocking(move || {
        let place = FilePlace::of(&site.root, &name).map_err(|refusal| match refusal {
            // The name is that of the served directory itself.
            Refusal::Directory => Refusal::Exists,
            Refusal::Absent => Refusal::NoDirectory,
            refusal => refusal,
        })?;
        place.make_directory()?;
        Ok::<_, Refusal>(place.sync()?)
    })
    .await??;
    Ok(without_content(StatusCode::CREATED, []))
}

/// Gives a file another name.
async fn rename(
    site: &Arc<ServedSite>,
    uploads: &Arc<Uploads>,
    request: &Parts,
) -> Result<Response<ResponseBody>, Refusal> {
    let headers = &request.headers;
    let from = file_name(request.uri.path())?;
    let to = destination(headers)?;
    if from == to {
        return Err(Refusal::Same);
    }
    let arrival = match headers.get("overwrite").map(HeaderValue::as_bytes) {
        None | Some(b"T" | b"t") => Arrival::Replace,
        Some(b"F" | b"f") => Arrival::Create,
        Some(_) => return Err(Refusal::Malformed("Overwrite")),
    };
    let expected = ExpectedContent::by(site, &from, headers).await?;
    let (site, uploads) = (Arc::clone(site), Arc::clone(uploads));
    let arrived = blocking(move || {
        let source = existing(&site, &from)?;
        match source.occupant()? {
            Occupant::File => {}
            Occupant::Nothing => return Err(Refusal::Absent),
            Occupant::Directory | Occupant::Link | Occupant::Special => {
                return Err(Refusal::NoFile);
            }
        }
        let arrived = arrive(&site, &uploads, &to, |place| {
            expected.check(&site, &from)?;
            match place.take(&source, arrival) {
                Err(NotArrived::Gone) if source.occupant()? == Occupant::Nothing => {
                    Err(Refusal::Absent.into())
                }
                arrived => arrived,
            }
        })?;
        // After the new name: a crash must not lose both.
        source.sync()?;
        Ok(arrived)
    })
    .await??;
    Ok(arrived.response())
}

/// The place of something that has to exist.
fn existing(site: &ServedSite, name: &Path) -> Result<FilePlace, Refusal> {
    FilePlace::of(&site.root, name).map_err(|refusal| match refusal {
        Refusal::NoDirectory => Refusal::Absent,
        refusal => refusal,
    })
}

/// The name in `Destination` (RFC 4918, section 10.3): a path, or a URL of the
/// requested host. The server does not know its other host names.
fn destination(headers: &HeaderMap) -> Result<PathBuf, Refusal> {
    let value = headers.get("destination").ok_or(Refusal::NoDestination)?;
    let url = Uri::try_from(value.as_bytes()).map_err(|_| Refusal::NoDestination)?;
    if let Some(authority) = url.authority() {
        let host = headers.get(HOST).map(HeaderValue::as_bytes);
        let is_own =
            host.is_some_and(|host| host.eq_ignore_ascii_case(authority.as_str().as_bytes()));
        if !is_own {
            return Err(Refusal::Elsewhere);
        }
    }
    file_name(url.path())
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;

    #[test]
    fn a_destination_is_a_name_of_this_server() {
        let of = |value: &'static str| {
            destination(&HeaderMap::from_iter([
                (HOST, HeaderValue::from_static("h:8080")),
                (
                    HeaderName::from_static("destination"),
                    HeaderValue::from_static(value),
                ),
            ]))
        };
        for (value, expected) in [
            ("/a/b%20c", "a/b c"),
            ("http://h:8080/a", "a"),
            ("https://H:8080/a?x", "a"),
        ] {
            assert_eq!(of(value).unwrap(), Path::new(expected), "{value}");
        }
        for value in ["http://h/a", "http://other:8080/a", "http://u@h:8080/a"] {
            assert!(matches!(of(value), Err(Refusal::Elsewhere)), "{value}");
        }
        for value in ["", "a", "/../a", "/a%2fb", "http://h:8080", "/a/", "*"] {
            assert!(of(value).is_err(), "{value}");
        }
    }
}
