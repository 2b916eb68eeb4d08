//! Why a request failed, sorted by what the engine does about it.

mod request;
mod tls;

use std::time::Duration;

use http::HeaderMap;
use http::header::WWW_AUTHENTICATE;
use reqwest::StatusCode;

use super::client::retry_after_of;
use crate::error::{ErrorKind, TransferError};

pub(super) use self::tls::Authorities;

/// What to do about most that may pass.
const TRY_LATER: &str = "try again later";

/// How to show a token.
const TOKEN_HINT: &str = "this server wants a token: -H 'Authorization: Bearer TOKEN', or, because \
     other users can see command lines, the same header in the variable FAIRBAT_HEADER";

/// What became of a request that did not bring its bytes.
#[derive(Debug)]
pub enum Failure {
    /// May pass: try the same again later.
    Transient(Transient),
    /// The server now has another version, or no longer answers as it did
    /// when it was probed: probe again and see what may be kept.
    Changed(String),
    /// The server answered a range request with the whole file, though it
    /// served a range when it was probed.
    WholeFile,
    /// Where an earlier redirect led, the file is no longer to be had; perhaps
    /// a new redirect leads to it (signed URLs expire).
    Expired(TransferError),
    /// Will not pass.
    Fatal(TransferError),
}

/// A failure that may pass.
#[derive(Debug)]
pub struct Transient {
    /// [`ErrorKind::Network`] or [`ErrorKind::Server`].
    pub kind: ErrorKind,
    /// What failed.
    pub reason: String,
    /// What to do about it in the end.
    pub hint: &'static str,
    /// The server's own wish (Retry-After): a minimum.
    pub retry_after: Option<Duration>,
    /// The server refused the load (429, 503, refused connection): use fewer
    /// connections to this host.
    pub push_back: bool,
}

/// What an answer says besides its status.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Remarks {
    /// The server's own wish (Retry-After): a minimum.
    pub(crate) retry_after: Option<Duration>,
    /// It takes a bearer token (RFC 6750) in place of user name and password.
    pub(crate) wants_token: bool,
}

impl Remarks {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        Self {
            retry_after: retry_after_of(headers),
            wants_token: wants_token(headers),
        }
    }
}

/// Whether one of the challenges (RFC 9110 section 11.6.1) is for a token.
fn wants_token(headers: &HeaderMap) -> bool {
    let challenges = headers.get_all(WWW_AUTHENTICATE).iter();
    challenges
        .filter_map(|challenges| challenges.to_str().ok())
        .flat_map(|challenges| challenges.split(','))
        .filter_map(|challenge| challenge.split_whitespace().next())
        .any(|scheme| scheme.eq_ignore_ascii_case("Bearer"))
}

impl Transient {
    /// The server failed or broke the protocol.
    pub fn server(reason: impl Into<String>) -> Self {
        Self {
            kind: ErrorKind::Server,
            reason: reason.into(),
            hint: TRY_LATER,
            retry_after: None,
            push_back: false,
        }
    }

    /// What it means when nothing is tried any more after so many failures in
    /// a row; `has_begun` says whether there is something to continue from.
    pub(crate) fn given_up(&self, attempts: u32, has_begun: bool) -> TransferError {
        let tries = match attempts {
            1 => "once".to_owned(),
            attempts => format!("{attempts} times"),
        };
        let hint = if has_begun {
            "try again later: the same command resumes where this one stopped"
        } else {
            self.hint
        };
        TransferError::new(self.kind, format!("{} (tried {tries})", self.reason)).with_hint(hint)
    }
}

impl Failure {
    /// The server failed or broke the protocol.
    pub fn server(reason: impl Into<String>) -> Self {
        Self::Transient(Transient::server(reason))
    }

    /// The network failed.
    pub fn network(reason: impl Into<String>) -> Self {
        Self::Transient(Transient {
            kind: ErrorKind::Network,
            ..Transient::server(reason)
        })
    }

    /// The server said no for good.
    pub fn refused(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Fatal(TransferError::new(ErrorKind::Refused, message).with_hint(hint))
    }

    /// What a status that brings no bytes means (RFC 9110 section 15).
    pub(crate) fn of_status(status: StatusCode, remarks: Remarks) -> Self {
        let reason = format!("the server answered {status}");
        let hint = match status {
            StatusCode::UNAUTHORIZED if remarks.wants_token => TOKEN_HINT,
            StatusCode::UNAUTHORIZED => "give a user name and password with -u, or -n for netrc",
            StatusCode::PROXY_AUTHENTICATION_REQUIRED => {
                "put the proxy's user name and password into the proxy URL"
            }
            StatusCode::FORBIDDEN => "this URL needs permission; credentials go with -u, -n or -H",
            StatusCode::NOT_FOUND | StatusCode::GONE => "check the URL; the file is not there",
            _ => "check the URL",
        };
        let passes = status.is_server_error()
            && !matches!(
                status,
                StatusCode::NOT_IMPLEMENTED | StatusCode::HTTP_VERSION_NOT_SUPPORTED
            )
            || matches!(
                status,
                StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS
            );
        if !passes {
            return Self::refused(reason, hint);
        }
        Self::Transient(Transient {
            retry_after: remarks.retry_after,
            push_back: matches!(
                status,
                StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
            ),
            ..Transient::server(reason)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_asked_for_by_the_name_of_its_scheme() {
        for (challenges, expected) in [
            (&["Bearer"][..], true),
            (&["bearer realm=\"x\""], true),
            (&["Basic realm=\"x\", Bearer realm=\"y\""], true),
            (&["Basic realm=\"x\"", "Bearer"], true),
            (&["Basic realm=\"Bearer\""], false),
            (&["Bearers"], false),
            (&[], false),
        ] {
            let mut headers = HeaderMap::new();
            for challenge in challenges {
                headers.append(WWW_AUTHENTICATE, challenge.parse().unwrap());
            }
            assert_eq!(wants_token(&headers), expected, "{challenges:?}");
        }
    }
}
