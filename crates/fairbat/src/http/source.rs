//! A remote file: what a probe learnt of it, and ranges of it that are
//! certain to belong to the same version.
//!
//! Every peer we tried mixes two versions when the file changes between two
//! runs. Here each 206 must prove itself: range, total and validator have to
//! be those of the version the part file holds.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use dalbe::socket::TcpSocket;
use http::header::{CONTENT_DISPOSITION, CONTENT_RANGE, HeaderMap};
use reqwest::{Response, StatusCode};
use url::Url;

use super::client::{Get, HttpClient, Reply, drain};
use super::coding::{Coding, Decoder};
use super::content_range::ContentRange;
use super::failure::{Failure, Remarks};
use super::priority::DeadlineHint;
use super::tap;
use super::validator::{Validator, Version, last_modified};
use super::{content_disposition, digest};
use crate::settings::Checksum;

/// A remote file as it was when it was probed.
#[derive(Debug)]
pub struct Source {
    /// The URL the user named.
    pub named: Url,
    /// Where redirects led.
    pub url: Url,
    /// Size in bytes, if the server told it.
    pub total: Option<u64>,
    /// What tells this version from others, if anything does.
    pub validator: Option<Validator>,
    /// What ranges are checked against; `None` when the file has to be
    /// fetched as one stream, because the server serves no ranges or nothing
    /// that identifies a version.
    pub version: Option<Version>,
    /// Modification time at the server.
    pub modified: Option<SystemTime>,
    /// File name that the server suggests, as sent.
    pub suggested_name: Option<String>,
    /// Digest of the whole file (RFC 9530).
    pub digest: Option<Checksum>,
    /// Cleared once the server has answered 200 to a conditional range of an
    /// unchanged file, as some content networks do.
    conditional: AtomicBool,
}

/// A probe's result.
#[derive(Debug)]
pub struct Probe {
    /// The remote file.
    pub source: Source,
    /// The answer itself, when it already carries the whole file.
    pub body: Option<Body>,
}

/// A response body that has been checked to be the bytes asked for.
#[derive(Debug)]
pub struct Body {
    response: Response,
    /// Undoes a content coding that was not asked for.
    decoder: Option<Box<Decoder>>,
    /// The connection's socket, if it could be found.
    pub socket: Option<TcpSocket>,
    /// How many bytes are to come; `None` when only the end will tell.
    pub expected: Option<u64>,
}

impl Body {
    fn new(response: Response, expected: Option<u64>) -> Self {
        Self {
            socket: tap::socket_of(&response),
            response,
            decoder: None,
            expected,
        }
    }

    /// The next piece; `None` at the end. Cancelling loses nothing.
    ///
    /// # Errors
    /// When the connection breaks, falls silent, or ends too early.
    pub async fn next(&mut self) -> Result<Option<bytes::Bytes>, Failure> {
        let Some(decoder) = &mut self.decoder else {
            return Ok(self.response.chunk().await?);
        };
        loop {
            if let Some(decoded) = decoder.next().map_err(|error| damaged(&error))? {
                return Ok(Some(decoded));
            }
            match self.response.chunk().await? {
                Some(encoded) => decoder.push(encoded),
                None => return decoder.finish().map_err(|error| damaged(&error)),
            }
        }
    }
}

fn damaged(error: &io::Error) -> Failure {
    Failure::server(format!("the compressed answer is damaged: {error}"))
}

impl HttpClient {
    /// Asks for the first byte, to learn size, version and range support. When
    /// there are no ranges, a server of ours is asked by [`DeadlineHint`] for the whole.
    ///
    /// # Errors
    /// [`Failure::Changed`] never; the others as the server has it.
    pub async fn probe(&self, named: &Url, terms: Option<DeadlineHint>) -> Result<Probe, Failure> {
        let first_byte = Get {
            named,
            url: named,
            range: Some(0..1),
            if_range: None,
            terms: None,
        };
        let Reply { response, url } = self.get(first_byte).await?;
        match response.status() {
            StatusCode::PARTIAL_CONTENT => {
                if let Some(source) = of_partial(named, &url, response.headers()) {
                    drain(response).await;
                    return Ok(Probe { source, body: None });
                }
            }
            // An empty file has no first byte.
            StatusCode::RANGE_NOT_SATISFIABLE => {
                let headers = response.headers();
                if content_range(headers) == Some(ContentRange::Unsatisfied { total: 0 }) {
                    let source = Source::new(named, &url, headers, Some(0), false);
                    return Ok(Probe { source, body: None });
                }
            }
            StatusCode::OK => return whole(named, Reply { response, url }),
            status => {
                return Err(Failure::of_status(status, Remarks::of(response.headers())));
            }
        }
        // A range answer that cannot be used: ask without.
        self.whole(named, terms).await
    }

    /// Asks for the whole file as one stream, and a server of ours, by
    /// [`DeadlineHint`], to send it so.
    ///
    /// # Errors
    /// As the server has it.
    pub async fn whole(&self, named: &Url, terms: Option<DeadlineHint>) -> Result<Probe, Failure> {
        let reply = self
            .get(Get {
                named,
                url: named,
                range: None,
                if_range: None,
                terms: terms.as_ref(),
            })
            .await?;
        match reply.response.status() {
            StatusCode::OK => whole(named, reply),
            status => Err(Failure::of_status(
                status,
                Remarks::of(reply.response.headers()),
            )),
        }
    }

    /// Asks for `range` of the very version that was probed, and a server of
    /// ours, by [`DeadlineHint`], to send it so.
    ///
    /// # Errors
    /// [`Failure::Changed`] when the answer belongs to another version or
    /// cannot be shown to belong to this one; [`Failure::WholeFile`].
    /// [`Body::expected`] may be less than was asked for.
    pub async fn range(
        &self,
        source: &Source,
        range: Range<u64>,
        terms: Option<DeadlineHint>,
    ) -> Result<Body, Failure> {
        let Some(version) = &source.version else {
            return Err(Failure::WholeFile);
        };
        let condition = version
            .validator
            .if_range()
            .filter(|_| source.conditional.load(Ordering::Relaxed));
        let mut get = Get {
            named: &source.named,
            url: &source.url,
            range: Some(range.clone()),
            if_range: condition,
            terms: terms.as_ref(),
        };
        let mut reply = self.get(get.clone()).await?;
        if reply.response.status() == StatusCode::OK && get.if_range.is_some() {
            // Either the file has changed, or something on the way cannot do
            // If-Range. An unconditional range tells which.
            get.if_range = None;
            reply = self.get(get.clone()).await?;
            if reply.response.status() == StatusCode::PARTIAL_CONTENT {
                source.conditional.store(false, Ordering::Relaxed);
            }
        }
        let response = reply.response;
        match response.status() {
            StatusCode::PARTIAL_CONTENT => {}
            StatusCode::OK => return Err(Failure::WholeFile),
            StatusCode::RANGE_NOT_SATISFIABLE => {
                return Err(Failure::Changed(
                    "the file became shorter on the server".into(),
                ));
            }
            // A signed URL that a redirect gave us may have expired.
            status if status.is_client_error() && source.url != source.named => {
                let failure = Failure::of_status(status, Remarks::of(response.headers()));
                return Err(match failure {
                    Failure::Fatal(error) => Failure::Expired(error),
                    other => other,
                });
            }
            status => {
                return Err(Failure::of_status(status, Remarks::of(response.headers())));
            }
        }
        let was_conditional = get.if_range.is_some();
        let length = check_partial(response.headers(), source, version, &range, was_conditional)?;
        Ok(Body::new(response, Some(length)))
    }
}

impl Source {
    fn new(named: &Url, url: &Url, headers: &HeaderMap, total: Option<u64>, ranges: bool) -> Self {
        let validator = Validator::from_headers(headers);
        let version = total.filter(|_| ranges).and_then(|total| {
            let validator = validator.clone()?;
            Some(Version { total, validator })
        });
        Self {
            named: named.clone(),
            url: url.clone(),
            total,
            validator,
            version,
            modified: last_modified(headers),
            suggested_name: suggested_name(headers),
            digest: digest::repr_digest(headers),
            conditional: AtomicBool::new(true),
        }
    }
}

fn suggested_name(headers: &HeaderMap) -> Option<String> {
    content_disposition::suggested_name(headers.get(CONTENT_DISPOSITION)?.as_bytes())
}

/// Reads a 206 to the probe; `None` when it cannot be used.
fn of_partial(named: &Url, url: &Url, headers: &HeaderMap) -> Option<Source> {
    let Some(ContentRange::Bytes {
        first: 0,
        last: 0,
        total: Some(total),
    }) = content_range(headers)
    else {
        return None;
    };
    let is_identity =
        Coding::of(headers, url, suggested_name(headers).as_deref()) == Coding::Identity;
    let source = Source::new(named, url, headers, Some(total), is_identity);
    // Without a version there is nothing to compare ranges with, so the file
    // has to come as one stream.
    source.version.is_some().then_some(source)
}

/// Reads an answer that carries the whole file.
fn whole(named: &Url, reply: Reply) -> Result<Probe, Failure> {
    let Reply { response, url } = reply;
    let headers = response.headers();
    let coding = Coding::of(headers, &url, suggested_name(headers).as_deref());
    if let Coding::Unknown(coding) = coding {
        return Err(Failure::refused(
            format!("the server sends the file in the coding {coding}, though it was asked not to"),
            "look for a URL that serves the file as it is",
        ));
    }
    let is_encoded = coding == Coding::Gzip;
    // What is announced is the length of what is sent.
    let total = response.content_length().filter(|_| !is_encoded);
    let mut source = Source::new(named, &url, headers, total, false);
    // Repr-Digest is of the coded bytes (RFC 9530 section 3), which are not
    // kept.
    source.digest = source.digest.filter(|_| !is_encoded);
    let mut body = Body::new(response, total);
    body.decoder = is_encoded.then(Box::default);
    Ok(Probe {
        source,
        body: Some(body),
    })
}

/// Checks that a 206 carries `range` of this version, from its start and not
/// beyond its end, and returns how many bytes it announces: a server may send
/// fewer than it was asked for (RFC 9110 section 15.3.7).
fn check_partial(
    headers: &HeaderMap,
    source: &Source,
    version: &Version,
    range: &Range<u64>,
    was_conditional: bool,
) -> Result<u64, Failure> {
    let (first, last) = match content_range(headers) {
        Some(ContentRange::Bytes {
            total: Some(total), ..
        }) if total != version.total => {
            return Err(Failure::Changed(format!(
                "the file has {total} bytes now instead of {}",
                version.total
            )));
        }
        Some(ContentRange::Bytes { first, last, .. }) => (first, last),
        Some(ContentRange::Unsatisfied { .. }) | None => {
            return Err(Failure::server(
                "the server sent a range without saying which",
            ));
        }
    };
    if first != range.start || last >= range.end {
        return Err(Failure::server(format!(
            "the server sent bytes {first}-{last} instead of {}-{}",
            range.start,
            range.end - 1
        )));
    }
    if Coding::of(headers, &source.url, source.suggested_name.as_deref()) != Coding::Identity {
        return Err(Failure::server("the server sent an encoded range"));
    }
    if !version.validator.matches_partial(headers, was_conditional) {
        return Err(Failure::Changed(
            "the file has changed on the server".into(),
        ));
    }
    Ok(last - first + 1)
}

fn content_range(headers: &HeaderMap) -> Option<ContentRange> {
    ContentRange::parse(headers.get(CONTENT_RANGE)?.as_bytes()).ok()
}
