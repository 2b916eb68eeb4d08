//! What a store says when it refuses: its error document, if it has one, and what
//! that means.

use std::time::Duration;

use http::StatusCode;
use serde::Deserialize;

use super::error::{StoreError, StoreErrorKind};

/// An answer that is no success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) retry_after: Option<Duration>,
    /// The code of the error document, if there is one.
    pub(super) code: Option<String>,
    /// Its message.
    pub(super) message: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Document {
    code: Option<String>,
    // As S3 has it, and as servers of WebDAV do that are made with SabreDAV.
    #[serde(alias = "message")]
    message: Option<String>,
}

impl Answer {
    pub(super) fn new(status: StatusCode, retry_after: Option<Duration>, body: &[u8]) -> Self {
        let document = std::str::from_utf8(body).ok();
        let document = document.and_then(|text| quick_xml::de::from_str::<Document>(text).ok());
        let (code, message) = document.map_or((None, None), |it| (it.code, it.message));
        Self {
            status,
            retry_after,
            code,
            message,
        }
    }

    /// With these words, if there was no document.
    pub(super) fn with_text(mut self, text: &[u8]) -> Self {
        let text = String::from_utf8_lossy(text);
        let line = text.lines().next().unwrap_or_default().trim();
        let is_told = self.message.is_some() || line.is_empty();
        if !is_told {
            self.message = Some(line.to_owned());
        }
        self
    }

    /// What it means; `doing` is what was asked.
    pub(super) fn error(&self, doing: &str) -> StoreError {
        let (kind, hint) = self.meaning();
        let mut message = format!("{doing}: the store answered {}", self.status);
        if let Some(code) = &self.code {
            message.push_str(&format!(", {code}"));
        }
        if let Some(said) = self.message.as_deref().filter(|said| !said.is_empty()) {
            message.push_str(&format!(" ({})", printable(said)));
        }
        StoreError {
            retry_after: self.retry_after,
            ..StoreError::new(kind, message).with_hint(hint)
        }
    }

    fn meaning(&self) -> (StoreErrorKind, &'static str) {
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
            Some("NoSuchBucket") => (Kind::Refused, "make the bucket first, or check its name"),
            Some("NoSuchUpload") => (Kind::UploadGone, ""),
            Some("NoSuchKey") => (Kind::Missing, ""),
            Some("PreconditionFailed") => (Kind::Exists, ""),
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
            _ => self.status_means(),
        }
    }

    fn status_means(&self) -> (StoreErrorKind, &'static str) {
        use StoreErrorKind as Kind;
        match self.status {
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => (Kind::Busy, ""),
            StatusCode::NOT_FOUND | StatusCode::GONE => (Kind::Missing, ""),
            StatusCode::PRECONDITION_FAILED => (Kind::Exists, ""),
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

/// At most a line of a server's words.
fn printable(text: &str) -> String {
    const MOST: usize = 200;
    let clean = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    clean.take(MOST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(status: u16, body: &str) -> StoreError {
        let status = StatusCode::from_u16(status).unwrap();
        Answer::new(status, None, body.as_bytes()).error("storing a/b")
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
            (412, Kind::Exists),
            (401, Kind::Credentials),
            (507, Kind::Full),
            (301, Kind::Refused),
            (400, Kind::Refused),
            (501, Kind::Refused),
            (403, Kind::Credentials),
            (405, Kind::Refused),
            (409, Kind::Refused),
            (413, Kind::Refused),
            (423, Kind::Server),
            (412, Kind::Exists),
            (502, Kind::Server),
        ] {
            assert_eq!(error(status, "<html>no").kind, kind, "{status}");
        }
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
        let answer = Answer::new(status, None, b"full\n").with_text(b"full\nvery");
        assert!(answer.error("x").message.ends_with("(full)"));
    }
}
