//! Errors of a store, sorted by what can be done about them, and what a store's
//! refusal means.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use fairbat::error::ErrorKind;
use fairbat::http::{Failure, retry_after_of};
use fairbat::printable::is_unsafe;
use fairbat::transport::{BrokenOff, Received};
use http::header::CONTENT_TYPE;
use http::{Response, StatusCode};
use http_body_util::{BodyExt, Collected, Limited};
use serde::Deserialize;

/// Longest error document that is read, bytes. S3's are below 1 KiB.
const MAX_DOCUMENT: usize = 64 * 1024;

/// Longest message of a server that is passed on, characters.
const MAX_MESSAGE_CHARS: usize = 200;

/// Why a store did not do what it was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreErrorKind {
    /// The network or the name service failed. Worth retrying.
    Network,
    /// The store failed. Worth retrying.
    Server,
    /// The store wants fewer requests (429, 503, `SlowDown`). Worth retrying.
    Busy,
    /// The object does not exist.
    Missing,
    /// The store does not know the upload any more.
    UploadGone,
    /// The content that arrived, or that is stored, is not the content that was
    /// sent.
    Integrity,
    /// The credentials are wrong or have expired.
    Credentials,
    /// The clocks of this machine and the store differ too much.
    Clock,
    /// The store is full.
    Full,
    /// Any other error that a retry cannot cure.
    Refused,
}

impl StoreErrorKind {
    /// The reason in a few words, for everybody.
    pub(crate) fn summary(self) -> &'static str {
        match self {
            Self::Network => "the network or the name service failed",
            Self::Server => "the server failed",
            Self::Busy => "the server is busy",
            Self::Missing => "something is missing on the server",
            Self::UploadGone => "the server has lost an upload",
            Self::Integrity => "content was damaged",
            Self::Credentials => "the credentials are wrong or have expired",
            Self::Clock => "the clocks of this machine and the server differ too much",
            Self::Full => "the server is full",
            Self::Refused => "a request was refused",
        }
    }
}

/// A failed request to a store: what failed, and what to do about it. Contains no
/// credentials.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct StoreError {
    /// The reason, for code.
    pub kind: StoreErrorKind,
    /// What failed, in one sentence.
    pub message: String,
    /// What to do, in one sentence; may be empty.
    pub hint: String,
    /// How long the store asks to wait at least (Retry-After).
    pub retry_after: Option<Duration>,
}

impl StoreError {
    /// An error without a hint.
    pub fn new(kind: StoreErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            hint: String::new(),
            retry_after: None,
        }
    }

    /// The same error with a hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }

    /// An answer that the store should not give.
    pub(crate) fn senseless(doing: &str, why: impl fmt::Display) -> Self {
        let why = on_one_line(&why.to_string());
        let message = format!("{doing}: the answer of the store makes no sense: {why}");
        Self::new(StoreErrorKind::Server, message)
    }

    /// The same error; the message says first what was asked.
    #[must_use]
    pub(crate) fn while_doing(self, doing: &str) -> Self {
        Self {
            message: format!("{doing}: {}", self.message),
            ..self
        }
    }

    /// Whether a retry may succeed.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self.kind {
            StoreErrorKind::Network
            | StoreErrorKind::Server
            | StoreErrorKind::Busy
            | StoreErrorKind::Integrity => true,
            StoreErrorKind::Missing
            | StoreErrorKind::UploadGone
            | StoreErrorKind::Credentials
            | StoreErrorKind::Clock
            | StoreErrorKind::Full
            | StoreErrorKind::Refused => false,
        }
    }

    /// Whether the error concerns the whole store instead of one object. Then
    /// nothing else of a job can succeed.
    #[must_use]
    pub fn is_of_store(&self) -> bool {
        matches!(
            self.kind,
            StoreErrorKind::Network
                | StoreErrorKind::Credentials
                | StoreErrorKind::Clock
                | StoreErrorKind::Full
        )
    }
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        let of = |kind| match kind {
            ErrorKind::Network => StoreErrorKind::Network,
            ErrorKind::Server => StoreErrorKind::Server,
            _ => StoreErrorKind::Refused,
        };
        match failure {
            Failure::Transient(transient) => Self {
                kind: if transient.push_back && transient.kind != ErrorKind::Network {
                    StoreErrorKind::Busy
                } else {
                    of(transient.kind)
                },
                message: transient.reason,
                hint: transient.hint.to_owned(),
                retry_after: transient.retry_after,
            },
            Failure::Fatal(error) | Failure::Expired(error) => {
                Self::new(of(error.kind), error.message).with_hint(error.hint)
            }
            Failure::Changed(reason) => Self::new(StoreErrorKind::Integrity, reason),
            Failure::WholeFile => Self::new(
                StoreErrorKind::Server,
                "the store answered a request for a part with the whole",
            ),
        }
    }
}

impl From<BrokenOff> for StoreError {
    fn from(error: BrokenOff) -> Self {
        Failure::from(error).into()
    }
}

/// Why a request to a server got no successful answer.
#[derive(Debug)]
pub(crate) enum RequestError {
    /// The server refused.
    Refused(StoreRefusal),
    /// The request was not sent, or no answer came.
    Failed(StoreError),
}

impl RequestError {
    /// The status of the answer, if one came.
    pub(crate) fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Refused(refusal) => Some(refusal.status),
            Self::Failed(_) => None,
        }
    }

    /// The error as users see it; `doing` says what was asked.
    pub(crate) fn error(self, doing: &str) -> StoreError {
        match self {
            Self::Refused(refusal) => refusal.error(doing),
            Self::Failed(error) => error.while_doing(doing),
        }
    }
}

impl From<StoreError> for RequestError {
    fn from(error: StoreError) -> Self {
        Self::Failed(error)
    }
}

/// A store's answer with a status other than success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoreRefusal {
    pub(crate) status: StatusCode,
    pub(crate) retry_after: Option<Duration>,
    /// Code of the error document.
    pub(crate) code: Option<String>,
    /// Message of the error document.
    pub(crate) message: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ErrorDocument {
    code: Option<String>,
    // S3 writes `Message`; WebDAV servers built on SabreDAV write `message`.
    #[serde(alias = "message")]
    message: Option<String>,
}

impl StoreRefusal {
    pub(crate) fn new(status: StatusCode, retry_after: Option<Duration>, body: &[u8]) -> Self {
        let document = std::str::from_utf8(body).ok();
        let document =
            document.and_then(|text| quick_xml::de::from_str::<ErrorDocument>(text).ok());
        let (code, message) = document.map_or((None, None), |it| (it.code, it.message));
        Self {
            status,
            retry_after,
            code,
            message,
        }
    }

    /// Reads the answer to its end, up to [`MAX_DOCUMENT`].
    pub(crate) async fn read(response: Response<Received>) -> (Response<Bytes>, Self) {
        let (parts, body) = response.into_parts();
        let body = Limited::new(body, MAX_DOCUMENT).collect().await;
        let body = body.map(Collected::to_bytes).unwrap_or_default();
        let mut refusal = Self::new(parts.status, retry_after_of(&parts.headers), &body);
        let form = parts.headers.get(CONTENT_TYPE);
        if form.is_some_and(|form| form.as_bytes().starts_with(b"text/plain")) {
            refusal = refusal.with_text(&body);
        }
        (Response::from_parts(parts, body), refusal)
    }

    /// Takes the first line of `text` as the message if there is none yet.
    fn with_text(mut self, text: &[u8]) -> Self {
        let text = String::from_utf8_lossy(text);
        let line = text.lines().next().unwrap_or_default().trim();
        let has_message = self.message.is_some() || line.is_empty();
        if !has_message {
            self.message = Some(line.to_owned());
        }
        self
    }

    /// The refusal as an error; `doing` says what was asked.
    pub(crate) fn error(&self, doing: &str) -> StoreError {
        let (kind, hint) = self.kind_and_hint();
        let mut message = format!("{doing}: the store answered {}", self.status);
        if let Some(code) = &self.code {
            message.push_str(&format!(", {}", on_one_line(code)));
        }
        if let Some(said) = self.message.as_deref().filter(|said| !said.is_empty()) {
            message.push_str(&format!(" ({})", on_one_line(said)));
        }
        StoreError {
            retry_after: self.retry_after,
            ..StoreError::new(kind, message).with_hint(hint)
        }
    }

    fn kind_and_hint(&self) -> (StoreErrorKind, &'static str) {
        use StoreErrorKind as Kind;
        match self.code.as_deref() {
            Some("SlowDown" | "ServiceUnavailable" | "TooManyRequests" | "Throttling") => {
                (Kind::Busy, "")
            }
            Some("RequestTimeTooSkewed") => (
                Kind::Clock,
                "set the clock of this machine (timedatectl set-ntp true)",
            ),
            Some("ExpiredToken" | "TokenRefreshRequired" | "InvalidToken") => (
                Kind::Credentials,
                "the session token has expired: renew the credentials of this store",
            ),
            Some(
                "InvalidAccessKeyId" | "SignatureDoesNotMatch" | "AuthorizationHeaderMalformed",
            ) => (
                Kind::Credentials,
                "check the access key, the secret key and the region of this store",
            ),
            Some("AccessDenied") => (
                Kind::Credentials,
                "these credentials may not do that: check the rights of the key, and the bucket",
            ),
            Some("NoSuchBucket" | "InvalidBucketName") => {
                (Kind::Refused, "make the bucket first, or check its name")
            }
            Some("NoSuchUpload") => (Kind::UploadGone, ""),
            Some("NoSuchKey") => (Kind::Missing, ""),
            Some("QuotaExceeded" | "XMinioStorageFull" | "InsufficientCapacity" | "DiskFull") => {
                (Kind::Full, "make room in the store, or raise its quota")
            }
            Some(
                "BadDigest"
                | "InvalidDigest"
                | "XAmzContentSHA256Mismatch"
                | "InvalidPart"
                | "InvalidPartOrder"
                | "XAmzContentChecksumMismatch",
            ) => (Kind::Integrity, ""),
            _ => self.kind_and_hint_of_status(),
        }
    }

    fn kind_and_hint_of_status(&self) -> (StoreErrorKind, &'static str) {
        use StoreErrorKind as Kind;
        match self.status {
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => (Kind::Busy, ""),
            StatusCode::NOT_FOUND | StatusCode::GONE => (Kind::Missing, ""),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => (
                Kind::Credentials,
                "check the credentials of this store, and what they may do",
            ),
            StatusCode::INSUFFICIENT_STORAGE => {
                (Kind::Full, "make room in the store, or raise its quota")
            }
            StatusCode::NOT_IMPLEMENTED => (
                Kind::Refused,
                "this store does not know how to do that; is its type right?",
            ),
            StatusCode::METHOD_NOT_ALLOWED => (
                Kind::Refused,
                "this store does not take that request; are its type and its URL right?",
            ),
            StatusCode::MISDIRECTED_REQUEST => (
                Kind::Refused,
                "the server does not answer under this host name: serve with --allow-host NAME, or \
                 use its address",
            ),
            StatusCode::PAYLOAD_TOO_LARGE => (
                Kind::Refused,
                "raise the largest size of a file that the store takes",
            ),
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::LOCKED => {
                (Kind::Server, "")
            }
            status if status.is_server_error() => (Kind::Server, "try again later"),
            status if status.is_redirection() => (
                Kind::Refused,
                "the store redirects: check its URL, or its endpoint and region",
            ),
            _ => (Kind::Refused, ""),
        }
    }
}

/// A server's message on one line, cut to [`MAX_MESSAGE_CHARS`].
fn on_one_line(text: &str) -> String {
    let clean = text.chars().map(|c| if is_unsafe(c) { ' ' } else { c });
    clean.take(MAX_MESSAGE_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(status: u16, body: &str) -> StoreError {
        let status = StatusCode::from_u16(status).unwrap();
        StoreRefusal::new(status, None, body.as_bytes()).error("storing a/b")
    }

    fn document(code: &str) -> String {
        format!(
            "<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>Some\nwords</Message>\
             <Resource>/x</Resource></Error>"
        )
    }

    #[test]
    fn the_document_says_more_than_the_status() {
        use StoreErrorKind as Kind;
        for (status, code, kind) in [
            (503, "SlowDown", Kind::Busy),
            (403, "RequestTimeTooSkewed", Kind::Clock),
            (400, "ExpiredToken", Kind::Credentials),
            (403, "SignatureDoesNotMatch", Kind::Credentials),
            (404, "NoSuchUpload", Kind::UploadGone),
            (404, "NoSuchKey", Kind::Missing),
            (404, "NoSuchBucket", Kind::Refused),
            (400, "BadDigest", Kind::Integrity),
            (500, "InternalError", Kind::Server),
            (507, "XMinioStorageFull", Kind::Full),
        ] {
            let error = error(status, &document(code));
            assert_eq!(error.kind, kind, "{code}");
            assert!(error.message.contains(code), "{error}");
            assert!(error.message.ends_with("(Some words)"), "{error}");
        }
    }

    #[test]
    fn without_a_document_the_status_counts() {
        use StoreErrorKind as Kind;
        for (status, kind) in [
            (429, Kind::Busy),
            (503, Kind::Busy),
            (500, Kind::Server),
            (404, Kind::Missing),
            (412, Kind::Refused),
            (401, Kind::Credentials),
            (507, Kind::Full),
            (301, Kind::Refused),
            (400, Kind::Refused),
            (501, Kind::Refused),
            (403, Kind::Credentials),
            (405, Kind::Refused),
            (409, Kind::Refused),
            (413, Kind::Refused),
            (421, Kind::Refused),
            (423, Kind::Server),
            (412, Kind::Refused),
            (502, Kind::Server),
        ] {
            assert_eq!(error(status, "<html>no").kind, kind, "{status}");
        }
    }

    #[test]
    fn a_host_that_is_refused_is_told_with_what_to_do() {
        let error = error(421, "the host \"nas.example\" is not known");
        assert!(error.hint.contains("--allow-host NAME"), "{error:?}");
    }

    #[test]
    fn words_are_passed_on_in_any_form() {
        let sabre = "<?xml version=\"1.0\"?><d:error xmlns:d=\"DAV:\" \
             xmlns:s=\"http://sabredav.org/ns\"><s:exception>X</s:exception>\
             <s:message>Parent node does not exist</s:message></d:error>";
        let told = error(409, sabre);
        assert!(
            told.message.ends_with("(Parent node does not exist)"),
            "{told}"
        );
        let status = StatusCode::INSUFFICIENT_STORAGE;
        let refusal = StoreRefusal::new(status, None, b"full\n").with_text(b"full\nvery");
        assert!(refusal.error("x").message.ends_with("(full)"));
    }
}
