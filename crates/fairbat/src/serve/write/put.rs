//! PUT: creates or replaces a file as a whole.
//!
//! The body goes to a file of its own ([`UnfinishedFile`]). That file is synced to the
//! disk, then renamed, then the directory is synced. So the name never shows a
//! part of the file, whatever ends the process or the machine, and a file that is
//! reported as stored is there after a crash. Refusals come before the body is
//! asked for (`100 Continue`) wherever they can.

use std::net::IpAddr;
use std::sync::Arc;

use http::header::{CONTENT_ENCODING, CONTENT_RANGE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response};
use http_body::Body;

use super::place::file_name;
use super::receive::{ReceivedBody, stored};
use super::refusal::Refusal;
use super::unfinished::{ExpectedContent, UnfinishedFile};
use super::uploads::Uploads;
use crate::blocking::blocking;
use crate::http::digest::StatedDigests;
use crate::serve::response::{RequestBody, ResponseBody};
use crate::serve::site::ServedSite;

/// Takes a file.
pub(crate) async fn put(
    site: &Arc<ServedSite>,
    uploads: &Arc<Uploads>,
    peer: IpAddr,
    request: &Parts,
    body: RequestBody,
) -> Result<Response<ResponseBody>, Refusal> {
    let name = file_name(request.uri.path())?;
    let headers = &request.headers;
    if headers.contains_key(CONTENT_RANGE) {
        return Err(Refusal::Part);
    }
    check_coding(headers)?;
    let digests = StatedDigests::of_whole(headers).map_err(Refusal::Malformed)?;
    let announced = body.size_hint().exact().unwrap_or_default();
    uploads.check_size(announced)?;
    let slot = uploads.slots.take(peer)?;
    let expected = ExpectedContent::by(site, &name, headers).await?;
    let file = {
        let (site, uploads, name) = (Arc::clone(site), Arc::clone(uploads), name.clone());
        blocking(move || UnfinishedFile::begin(&site, &uploads, slot, &name, announced)).await??
    };
    let file = Arc::new(file);
    let received = ReceivedBody::new(Arc::clone(&file), digests, 0, announced)
        .receive(site, body, |length| uploads.check_size(length))
        .await?;
    let length = received.length;
    let (arrived, sha256) = {
        let (site, uploads) = (Arc::clone(site), Arc::clone(uploads));
        blocking(move || {
            let sha256 = received.check_digests()?;
            let arrived = file.finish(&site, &uploads, &name, expected)?;
            Ok::<_, Refusal>((arrived, sha256))
        })
        .await??
    };
    stored(site, arrived, sha256, length).await
}

/// Checks that the body has no coding (RFC 9110, section 8.4).
pub(crate) fn check_coding(headers: &HeaderMap) -> Result<(), Refusal> {
    let is_identity = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"identity");
    match headers.get_all(CONTENT_ENCODING).iter().all(is_identity) {
        true => Ok(()),
        false => Err(Refusal::Encoded),
    }
}
