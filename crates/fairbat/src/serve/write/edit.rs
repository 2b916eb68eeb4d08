//! DELETE, MOVE and MKCOL (RFC 9110, section 9.3.5, and RFC 4918): what changes
//! names, and no content.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::header::HOST;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response, StatusCode, Uri};
use hyper::body::{Body, Incoming};

use super::super::Site;
use super::super::answer::{aside, with, without_content};
use super::super::files::directory_in;
use super::super::payload::Payload;
use super::Writing;
use super::expected::Expected;
use super::place::{Arrival, Arrived, Arriving, Occupant, Place};
use super::put::file_name;
use super::refusal::Refusal;

/// How often the directories of a destination are made again that somebody
/// removes.
const ATTEMPTS: usize = 16;

/// Removes a file, a link or an empty directory.
pub(super) async fn delete(
    site: &Arc<Site>,
    writing: &Arc<Writing>,
    request: &Parts,
) -> Result<Response<Payload>, Refusal> {
    let name = directory_in(request.uri.path()).ok_or(Refusal::NoName)?;
    let expected = Expected::by(site, &name, &request.headers).await?;
    let (site, writing) = (Arc::clone(site), Arc::clone(writing));
    aside(move || {
        let place = source(&site, &name)?;
        let turn = writing.turn();
        expected.check(&site, &name)?;
        place.remove()?;
        drop(turn);
        Ok::<_, Refusal>(place.sync()?)
    })
    .await?;
    Ok(no_content())
}

/// Makes a directory in one that is there.
pub(super) async fn make_directory(
    site: &Arc<Site>,
    request: &Parts,
    body: &Incoming,
) -> Result<Response<Payload>, Refusal> {
    if !body.is_end_stream() {
        return Err(Refusal::Body);
    }
    let name = directory_in(request.uri.path()).ok_or(Refusal::NoName)?;
    let site = Arc::clone(site);
    aside(move || {
        let place = Place::of(&site.root, &name).map_err(|refusal| match refusal {
            // What is served is there.
            Refusal::Directory => Refusal::Exists,
            Refusal::Absent => Refusal::NoDirectory,
            refusal => refusal,
        })?;
        place.make_directory()?;
        Ok::<_, Refusal>(place.sync()?)
    })
    .await?;
    Ok(without_content(StatusCode::CREATED, []))
}

/// Gives a file another name.
pub(super) async fn rename(
    site: &Arc<Site>,
    writing: &Arc<Writing>,
    request: &Parts,
) -> Result<Response<Payload>, Refusal> {
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
    let expected = Expected::by(site, &from, headers).await?;
    let (site, writing) = (Arc::clone(site), Arc::clone(writing));
    let arrived = aside(move || {
        let source = source(&site, &from)?;
        match source.occupant()? {
            Occupant::File => {}
            Occupant::Nothing => return Err(Refusal::Absent),
            Occupant::Directory | Occupant::Link | Occupant::Special => {
                return Err(Refusal::NoFile);
            }
        }
        for _ in 0..ATTEMPTS {
            let place = Place::made(&site.root, &to)?;
            let turn = writing.turn();
            expected.check(&site, &from)?;
            let arrived = place.take(&source, arrival);
            drop(turn);
            match arrived {
                Ok(arrived) => {
                    // First where it is: nobody may find it in neither place.
                    place.sync()?;
                    source.sync()?;
                    return Ok(arrived);
                }
                Err(Arriving::Gone) if source.occupant()? == Occupant::Nothing => {
                    return Err(Refusal::Absent);
                }
                Err(Arriving::Gone) => {}
                Err(Arriving::Refused(refusal)) => return Err(refusal),
            }
        }
        Err(Refusal::Busy)
    })
    .await?;
    Ok(match arrived {
        Arrived::Created => without_content(StatusCode::CREATED, []),
        Arrived::Replaced => no_content(),
    })
}

fn no_content() -> Response<Payload> {
    with(StatusCode::NO_CONTENT, HeaderMap::new(), Payload::empty())
}

/// The place of something that has to be there.
fn source(site: &Site, name: &Path) -> Result<Place, Refusal> {
    Place::of(&site.root, name).map_err(|refusal| match refusal {
        Refusal::NoDirectory => Refusal::Absent,
        refusal => refusal,
    })
}

/// The name that `Destination` means (RFC 4918, section 10.3): a path, or a URL of
/// the host that was asked, which is all that is known of who this is.
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
