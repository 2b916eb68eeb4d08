//! A remote file: what a probe learns of it, and ranges that certainly belong to the same
//! version.
//!
//! The other download tools that we tried mix two versions when the file changes between
//! two runs. Here each 206 must prove itself: range, total length and validator have to
//! be those of the version in the part file.
//!
//! Every request asks for the file itself (`Accept-Encoding: identity`). Some servers
//! compress all the same (RFC 9110, section 8.4), so gzip is undone.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, HeaderMap};
use http::{Method, StatusCode};
use reqwest::Response;
use url::Url;

use super::client::{Get, HttpClient, OnTheWay, SourceUrl, drain};
use super::coding::{Coding, Decoder};
use super::connection::Connection;
use crate::http::content_disposition;
use crate::http::digest::repr_digest;
use crate::http::fields::{digits, single};
use crate::http::link::Links;
use crate::http::priority::DeadlineHint;
use crate::http::range::ContentRange;
use crate::http::validator::{Validator, Version, last_modified};
use crate::http::{Failure, Remarks};
use crate::settings::Checksum;

/// A remote file as it was when it was probed.
#[derive(Debug)]
pub struct RemoteFile {
    /// Where it was asked for.
    pub asked: SourceUrl,
    /// The URL that redirects led to.
    pub url: Url,
    /// Size in bytes, if the server told it.
    pub total: Option<u64>,
    /// What tells this version from others, if anything does.
    pub validator: Option<Validator>,
    /// What ranges are checked against. `None` if the file has to be fetched as one
    /// stream, because the server serves no ranges or nothing identifies the version.
    pub version: Option<Version>,
    /// Modification time at the server.
    pub modified: Option<SystemTime>,
    /// File name that the server suggests, as sent.
    pub suggested_name: Option<String>,
    /// Digest of the whole file (RFC 9530).
    pub digest: Option<Checksum>,
    /// Where else the file is, as the server says.
    pub links: Links,
    /// Whether range requests carry `If-Range`. Cleared once the server has answered 200
    /// to such a request for an unchanged file, as some content delivery networks do.
    is_conditional: AtomicBool,
}

/// What a server says of a file without sending it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnnouncedSize {
    /// Its size, bytes.
    Known(u64),
    /// It does not exist.
    Absent,
    /// Nothing that can be used.
    Unknown,
}

/// The result of a probe.
#[derive(Debug)]
pub struct Probe {
    /// The remote file.
    pub source: RemoteFile,
    /// The round-trip time of the connection that the answer came over.
    pub rtt: Option<Duration>,
    /// The answer itself, if it carries the whole file, or more than one byte from its start.
    pub body: Option<Body>,
}

/// A response body that has been checked to be the requested bytes.
#[derive(Debug)]
pub struct Body {
    response: Response,
    /// Undoes a content coding.
    decoder: Option<Box<Decoder>>,
    /// The connection that it comes over, if it could be found.
    pub connection: Option<Connection>,
    /// Bytes in the body; `None` if only its end will tell.
    pub expected: Option<u64>,
}

impl Body {
    fn new(response: Response, expected: Option<u64>) -> Self {
        Self {
            connection: Connection::of(&response),
            response,
            decoder: None,
            expected,
        }
    }

    /// How many bytes may have come out of the coded ones so far; `None` without a coding.
    pub(crate) fn decoded_limit(&self) -> Option<u64> {
        Some(self.decoder.as_ref()?.limit())
    }

    /// The next bytes; `None` at the end. Dropping the future loses nothing.
    ///
    /// # Errors
    /// The connection breaks, falls silent, or ends too early.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        let Some(decoder) = &mut self.decoder else {
            return Ok(self.response.chunk().await?);
        };
        let damaged = |error: io::Error| {
            Failure::server(format!("the compressed answer is damaged: {error}"))
        };
        loop {
            if let Some(decoded) = decoder.next().map_err(damaged)? {
                return Ok(Some(decoded));
            }
            match self.response.chunk().await? {
                Some(encoded) => decoder.waiting = encoded,
                None => return decoder.finish().map_err(damaged),
            }
        }
    }
}

impl HttpClient {
    /// The failure that a response of `url` without the requested bytes stands for.
    fn refusal(&self, response: &Response, asked: &SourceUrl, url: &Url) -> Failure {
        let user = self.identification(asked.named.as_ref(), url);
        Failure::of_status(response.status(), Remarks::of(response.headers()), &user)
    }

    /// Asks for the first `length` bytes, at least one, to learn size, version and range
    /// support. If the server serves no ranges, the answer carries the whole file. A FAIRBAT
    /// server gets `hint` with a request for the whole file.
    ///
    /// # Errors
    /// Every [`Failure`] except [`Failure::Changed`].
    pub async fn probe(
        &self,
        asked: &SourceUrl,
        length: u64,
        hint: Option<DeadlineHint>,
    ) -> Result<Probe, Failure> {
        let first_bytes = Get {
            range: Some(0..length),
            ..Get::of(asked)
        };
        let (response, url) = self.get(first_bytes).await?;
        match response.status() {
            StatusCode::PARTIAL_CONTENT => {
                let found = RemoteFile::of_first_bytes(asked, &url, response.headers(), length);
                if let Some((source, sent)) = found {
                    let source = source.told_on_the_way(&response);
                    let rtt = rtt_of(&response);
                    let body = if length > 1 {
                        Some(Body::new(response, Some(sent)))
                    } else {
                        drain(response).await;
                        None
                    };
                    return Ok(Probe { source, rtt, body });
                }
            }
            // An empty file has no first byte.
            StatusCode::RANGE_NOT_SATISFIABLE => {
                let headers = response.headers();
                let empty = ContentRange::Unsatisfied { total: 0 };
                if ContentRange::from_headers(headers) == Some(empty) {
                    let source = RemoteFile::new(asked, &url, headers, Some(0), false);
                    return Ok(Probe {
                        source,
                        rtt: rtt_of(&response),
                        body: None,
                    });
                }
            }
            StatusCode::OK => return whole_file(asked, &url, response),
            _ => return Err(self.refusal(&response, asked, &url)),
        }
        // The answer to the range request is of no use: ask without a range.
        drop(response);
        self.whole(asked, hint).await
    }

    /// Asks for the size of a file, without its bytes.
    pub(crate) async fn size(&self, asked: &SourceUrl) -> AnnouncedSize {
        let head = Get {
            method: Method::HEAD,
            ..Get::of(asked)
        };
        let Ok((response, url)) = self.get(head).await else {
            return AnnouncedSize::Unknown;
        };
        let headers = response.headers();
        let name = suggested_name(headers);
        let is_identity = Coding::of(headers, &url, name.as_deref()) == Coding::Identity;
        match response.status() {
            StatusCode::OK if is_identity => {
                let length = single(headers, &CONTENT_LENGTH);
                let length = length.and_then(|value| digits(value.to_str().ok()?)?.parse().ok());
                length.map_or(AnnouncedSize::Unknown, AnnouncedSize::Known)
            }
            StatusCode::NOT_FOUND | StatusCode::GONE => AnnouncedSize::Absent,
            _ => AnnouncedSize::Unknown,
        }
    }

    /// Asks for the whole file as one stream. A FAIRBAT server gets `hint`.
    ///
    /// # Errors
    /// Every [`Failure`] except [`Failure::Changed`].
    pub async fn whole(
        &self,
        asked: &SourceUrl,
        hint: Option<DeadlineHint>,
    ) -> Result<Probe, Failure> {
        let whole = Get {
            hint: hint.as_ref(),
            ..Get::of(asked)
        };
        let (response, url) = self.get(whole).await?;
        match response.status() {
            StatusCode::OK => whole_file(asked, &url, response),
            _ => Err(self.refusal(&response, asked, &url)),
        }
    }

    /// Asks for `range` of the version that was probed. A FAIRBAT server gets `hint`.
    /// [`Body::expected`] may be less than the length of the range.
    ///
    /// # Errors
    /// [`Failure::Changed`] if the answer belongs to another version or cannot be shown
    /// to belong to this one; [`Failure::WholeFile`].
    pub async fn range(
        &self,
        source: &RemoteFile,
        range: Range<u64>,
        hint: Option<DeadlineHint>,
    ) -> Result<Body, Failure> {
        let Some(version) = &source.version else {
            return Err(Failure::WholeFile);
        };
        let if_range = version.validator.if_range();
        let is_conditional = source.is_conditional.load(Ordering::Relaxed);
        let mut get = Get {
            url: &source.url,
            range: Some(range.clone()),
            if_range: if_range.filter(|_| is_conditional),
            hint: hint.as_ref(),
            ..Get::of(&source.asked)
        };
        let (mut response, mut url) = self.get(get.clone()).await?;
        if response.status() == StatusCode::OK && get.if_range.is_some() {
            // Either the file has changed, or something on the way does not support
            // If-Range. A range request without it tells which. What comes of the first answer
            // would be in its way, if they share a connection.
            drop(response);
            get.if_range = None;
            (response, url) = self.get(get.clone()).await?;
            if response.status() == StatusCode::PARTIAL_CONTENT {
                source.is_conditional.store(false, Ordering::Relaxed);
            }
        }
        match response.status() {
            StatusCode::PARTIAL_CONTENT => {
                let was_conditional = get.if_range.is_some();
                let headers = response.headers();
                let length = check_partial(headers, source, version, &range, was_conditional)?;
                Ok(Body::new(response, Some(length)))
            }
            StatusCode::OK => Err(Failure::WholeFile),
            StatusCode::RANGE_NOT_SATISFIABLE => Err(Failure::Changed(
                "the file became shorter on the server".into(),
            )),
            // A signed URL that a redirect gave may have expired.
            status if status.is_client_error() && source.url != source.asked.url => {
                Err(match self.refusal(&response, &source.asked, &url) {
                    Failure::Fatal(error) => Failure::Expired(error),
                    other => other,
                })
            }
            _ => Err(self.refusal(&response, &source.asked, &url)),
        }
    }
}

impl RemoteFile {
    fn new(
        asked: &SourceUrl,
        url: &Url,
        headers: &HeaderMap,
        total: Option<u64>,
        serves_ranges: bool,
    ) -> Self {
        let validator = Validator::from_headers(headers);
        let version = total.filter(|_| serves_ranges).zip(validator.clone());
        let version = version.map(|(total, validator)| Version { total, validator });
        Self {
            asked: asked.clone(),
            url: url.clone(),
            total,
            validator,
            version,
            modified: last_modified(headers),
            suggested_name: suggested_name(headers),
            digest: repr_digest(headers),
            links: Links::of(headers, url),
            is_conditional: AtomicBool::new(true),
        }
    }

    /// Adds what redirects have said of the file. What its own server says counts for more.
    fn told_on_the_way(mut self, response: &Response) -> Self {
        if let Some(told) = response.extensions().get::<OnTheWay>() {
            self.links
                .duplicates
                .extend(told.links.duplicates.iter().cloned());
            self.links.metalink = self.links.metalink.or_else(|| told.links.metalink.clone());
            self.digest = self.digest.or_else(|| told.digest.clone());
        }
        self
    }

    /// Reads a 206 response with at most the first `length` bytes, and says how many of them it
    /// has; `None` if it is of no use.
    fn of_first_bytes(
        asked: &SourceUrl,
        url: &Url,
        headers: &HeaderMap,
        length: u64,
    ) -> Option<(Self, u64)> {
        let (last, total) = match ContentRange::from_headers(headers)? {
            ContentRange::Bytes {
                first: 0,
                last,
                total,
            } if last < length => (last, total?),
            _ => return None,
        };
        let name = suggested_name(headers);
        let is_identity = Coding::of(headers, url, name.as_deref()) == Coding::Identity;
        let source = Self::new(asked, url, headers, Some(total), is_identity);
        // Without a version to compare ranges with, the file has to come as one stream.
        source.version.is_some().then_some((source, last + 1))
    }
}

/// The round-trip time of the connection that an answer comes over, without the time that data
/// waits in queues, as far as that is known.
fn rtt_of(response: &Response) -> Option<Duration> {
    let info = Connection::of(response)?.info().ok()?;
    info.min_rtt.or(info.rtt)
}

fn suggested_name(headers: &HeaderMap) -> Option<String> {
    content_disposition::suggested_name(headers.get(CONTENT_DISPOSITION)?.as_bytes())
}

/// Reads a 200 response, which carries the whole file.
fn whole_file(asked: &SourceUrl, url: &Url, response: Response) -> Result<Probe, Failure> {
    let headers = response.headers();
    let decoder = match Coding::of(headers, url, suggested_name(headers).as_deref()) {
        Coding::Identity => None,
        Coding::Gzip => Some(Box::new(Decoder::new())),
        Coding::Unknown(coding) => {
            let message = format!(
                "the server sends the file in the coding {coding}, though it was asked not to"
            );
            let hint = "look for a URL that serves the file as it is";
            return Err(Failure::refused(message, hint));
        }
    };
    // Content-Length and Repr-Digest (RFC 9530, section 3) are of the coded bytes, which
    // are not kept.
    let total = response.content_length().filter(|_| decoder.is_none());
    let mut source = RemoteFile::new(asked, url, headers, total, false);
    source.digest = source.digest.filter(|_| decoder.is_none());
    let rtt = rtt_of(&response);
    let source = source.told_on_the_way(&response);
    let body = Some(Body {
        decoder,
        ..Body::new(response, total)
    });
    Ok(Probe { source, rtt, body })
}

/// Checks that a 206 response carries `range` of this version, from its start and not
/// beyond its end. Returns the number of bytes in the response. A server may send fewer
/// than requested (RFC 9110, section 15.3.7).
fn check_partial(
    headers: &HeaderMap,
    source: &RemoteFile,
    version: &Version,
    range: &Range<u64>,
    was_conditional: bool,
) -> Result<u64, Failure> {
    let (first, last) = match ContentRange::from_headers(headers) {
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
