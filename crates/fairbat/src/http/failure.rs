//! The meaning of failed requests, sorted by the reaction of the transfer.

use std::error::Error as StdError;
use std::io;
use std::time::Duration;

use http::header::WWW_AUTHENTICATE;
use http::{HeaderMap, StatusCode};
use rustls::CertificateError;

use super::credentials::Identification;
use super::fields::retry_after_of;
use crate::error::{ErrorKind, TransferError};

/// Advice for most failures that may pass.
const TRY_LATER: &str = "try again later";

/// Advice for a host that cannot be found or reached.
const CHECK_HOST: &str = "check the host name and the network, or try again later";

/// The text of hyper-util's error for a failed name resolution.
const DNS_ERROR: &str = "dns error";

/// The text of hyper's error for a response that does not begin with `HTTP/1`.
/// In most cases the response is a TLS alert.
const INVALID_HTTP_VERSION: &str = "invalid HTTP version";

/// The verifier's text for a server certificate that was made as the
/// certificate of an authority. rustls does not export the error's type.
const CA_USED_AS_END_ENTITY: &str = "CaUsedAsEndEntity";

/// Why a request did not bring its bytes.
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
    /// The URL that an earlier redirect gave no longer serves the file. Signed
    /// URLs expire; a new redirect may lead to the file.
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
    /// Advice to the user if the failure does not pass.
    pub hint: &'static str,
    /// The least wait before the next try (`Retry-After`).
    pub retry_after: Option<Duration>,
    /// The server refused the load (429, 503, refused connection): use fewer
    /// connections to this host.
    pub push_back: bool,
}

/// Advice of a response on another try, besides its status.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Remarks {
    /// The least wait before the next try (`Retry-After`).
    pub(crate) retry_after: Option<Duration>,
    /// The server takes a bearer token (RFC 6750) in place of user name and
    /// password.
    pub(crate) wants_token: bool,
}

impl Remarks {
    /// Reads the headers of a response.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        // One challenge for each scheme (RFC 9110, section 11.6.1).
        let challenges = headers.get_all(WWW_AUTHENTICATE).iter();
        let wants_token = challenges
            .filter_map(|challenges| challenges.to_str().ok())
            .flat_map(|challenges| challenges.split(','))
            .filter_map(|challenge| challenge.split_whitespace().next())
            .any(|scheme| scheme.eq_ignore_ascii_case("Bearer"));
        Self {
            retry_after: retry_after_of(headers),
            wants_token,
        }
    }
}

impl Failure {
    /// The error of a request that is not tried again. `on_whole_file` is the advice where the
    /// server serves no ranges.
    pub(crate) fn into_error(self, on_whole_file: &str) -> TransferError {
        match self {
            Self::Fatal(error) | Self::Expired(error) => error,
            Self::Transient(transient) => {
                let hint = match transient.retry_after {
                    Some(wait) => format!("try again in {} s", wait.as_secs()),
                    None => transient.hint.to_owned(),
                };
                TransferError::new(transient.kind, transient.reason).with_hint(hint)
            }
            Self::Changed(reason) => {
                TransferError::new(ErrorKind::Server, reason).with_hint("try again")
            }
            Self::WholeFile => TransferError::new(
                ErrorKind::Server,
                "the server sent the whole file instead of a range",
            )
            .with_hint(on_whole_file),
        }
    }
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

    /// The error that ends a transfer after this many failures in a row.
    /// `has_begun` says whether a later run can continue from a part file.
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

    /// The server refused for good.
    pub fn refused(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Fatal(TransferError::new(ErrorKind::Refused, message).with_hint(hint))
    }

    /// The meaning of a status that brings no bytes (RFC 9110, section 15).
    pub(crate) fn of_status(status: StatusCode, remarks: Remarks, user: &Identification) -> Self {
        let reason = format!("{} answered {status}", user.server());
        let hint = match status {
            StatusCode::UNAUTHORIZED => user.advice_at_401(remarks.wants_token),
            StatusCode::FORBIDDEN => user.advice_at_403("this URL needs permission"),
            StatusCode::PROXY_AUTHENTICATION_REQUIRED => {
                "put the proxy's user name and password into the proxy URL".to_owned()
            }
            StatusCode::NOT_FOUND | StatusCode::GONE => {
                "check the URL; the file is not there".to_owned()
            }
            StatusCode::MISDIRECTED_REQUEST => {
                "the server does not answer under this host name; use its address, or allow the \
                 name there (fairbat serve --allow-host)"
                    .to_owned()
            }
            _ => "check the URL".to_owned(),
        };
        let may_pass = status.is_server_error()
            && !matches!(
                status,
                StatusCode::NOT_IMPLEMENTED | StatusCode::HTTP_VERSION_NOT_SUPPORTED
            )
            || matches!(
                status,
                StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS
            );
        if !may_pass {
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

    /// The meaning of a request's error. Certificates were checked against
    /// `anchors`.
    pub(crate) fn of_request(error: reqwest::Error, anchors: TrustAnchors) -> Self {
        let is_plain = error.url().is_some_and(|url| url.scheme() == "http");
        let error = error.without_url();
        if let Some(tls) = find_tls_error(&error) {
            let (reason, hint) = explain_tls(tls, anchors);
            return Self::refused(reason, hint);
        }
        if error.is_builder() {
            return Self::Fatal(TransferError::new(ErrorKind::Other, describe(&error)));
        }
        let io_kind = causes(&error).find_map(|cause| cause.downcast_ref().map(io::Error::kind));
        // A server answered at that address, and the connection broke later.
        let is_broken = matches!(
            io_kind,
            Some(
                io::ErrorKind::ConnectionReset
                    | io::ErrorKind::ConnectionAborted
                    | io::ErrorKind::BrokenPipe
                    | io::ErrorKind::UnexpectedEof
            )
        );
        let is_no_http =
            || causes(&error).any(|cause| cause.to_string().contains(INVALID_HTTP_VERSION));
        let (reason, hint) = if error.is_timeout() && error.is_connect() {
            let reason = "the connection did not open in time".to_owned();
            (reason, CHECK_HOST)
        } else if error.is_timeout() {
            ("the server fell silent".to_owned(), TRY_LATER)
        } else if let Some(why) = dns_error(&error) {
            let reason = format!("the host name cannot be resolved: {why}");
            (reason, CHECK_HOST)
        } else if is_plain && is_no_http() {
            let reason = "the server does not answer in plain HTTP; is it https? (invalid HTTP \
                          version)";
            let hint = "if the server speaks TLS at this port, write https:// in the URL";
            (reason.to_owned(), hint)
        } else if error.is_connect() && !is_broken {
            (describe(&error), CHECK_HOST)
        } else {
            (describe(&error), TRY_LATER)
        };
        Self::Transient(Transient {
            kind: ErrorKind::Network,
            hint,
            push_back: io_kind == Some(io::ErrorKind::ConnectionRefused),
            ..Transient::server(reason)
        })
    }
}

/// An error in the middle of a response, long after certificates were checked.
impl From<reqwest::Error> for Failure {
    fn from(error: reqwest::Error) -> Self {
        Self::of_request(error, TrustAnchors::System)
    }
}

/// The chain of causes in one line, without repetitions.
fn describe(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    for cause in std::iter::successors(error.source(), |&cause| cause.source()) {
        let more = cause.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
    }
    text
}

/// The resolver's own error, if name resolution failed.
fn dns_error(error: &reqwest::Error) -> Option<String> {
    let mut below = causes(error).skip_while(|cause| cause.to_string() != DNS_ERROR);
    let named = below.next()?;
    Some(below.last().unwrap_or(named).to_string())
}

type Cause<'a> = &'a (dyn StdError + 'static);

/// The causes of an error, including those that an [`io::Error`] wraps.
fn causes(error: &reqwest::Error) -> impl Iterator<Item = Cause<'_>> {
    std::iter::successors(error.source(), |&error| {
        let wrapped = error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        wrapped.map_or_else(|| error.source(), |wrapped| Some(wrapped as Cause<'_>))
    })
}

/// The authorities that the system trusts could not be read.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct NoAuthorities(pub(crate) rustls::Error);

fn find_tls_error(error: &reqwest::Error) -> Option<&rustls::Error> {
    causes(error).find_map(|cause| match cause.downcast_ref() {
        Some(
            tls @ (rustls::Error::InvalidCertificate(_)
            | rustls::Error::NoCertificatesPresented
            | rustls::Error::PeerIncompatible(_)),
        ) => Some(tls),
        Some(tls) if is_without_authorities(tls) => Some(tls),
        _ => None,
    })
}

fn is_without_authorities(error: &rustls::Error) -> bool {
    matches!(error, rustls::Error::Other(other) if other.0.is::<NoAuthorities>())
}

/// The authorities that a server's certificate is checked against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrustAnchors {
    /// Those that the system trusts.
    System,
    /// The same, and the user has no flag to name others.
    SystemOnly,
    /// Those that the user named with `--cacert`, and no others.
    Named,
}

/// The reason why a TLS connection failed, and advice.
fn explain_tls(error: &rustls::Error, anchors: TrustAnchors) -> (String, &'static str) {
    let reason = format!("no secure connection: {error}");
    if is_without_authorities(error) {
        return (
            reason,
            "install the authorities that the system trusts: on Debian, the package ca-certificates",
        );
    }
    let rustls::Error::InvalidCertificate(why) = error else {
        return (
            reason,
            "server and client have no way in common to secure a connection; only the server's \
             owner can change that",
        );
    };
    if matches!(why, CertificateError::Other(other) if other.to_string() == CA_USED_AS_END_ENTITY) {
        return (
            format!(
                "no secure connection: the server's certificate is that of an authority \
                 ({CA_USED_AS_END_ENTITY})"
            ),
            "a certificate made as a CA cannot be a server's own; make one with `-addext \
             basicConstraints=critical,CA:FALSE`",
        );
    }
    let hint = match (why, anchors) {
        (
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            _,
        ) => {
            "ask for the server by a name that its certificate has, or get it a certificate with \
             this one (as a subjectAltName)"
        }
        (
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. },
            _,
        ) => "the server needs a new certificate, unless the clock of this machine is wrong",
        (
            CertificateError::UnknownIssuer | CertificateError::BadSignature,
            TrustAnchors::System,
        ) => {
            "self-signed, or signed by a private certificate authority? then name the file of that \
             certificate, or authority, with --cacert"
        }
        (_, TrustAnchors::SystemOnly) => {
            "if the server uses a private certificate authority, add it to those of the system; a \
             store can name its file as cacert"
        }
        (CertificateError::UnknownIssuer | CertificateError::BadSignature, TrustAnchors::Named) => {
            "no authority in the file that was given has signed it; one that is self-signed has to \
             be in there itself"
        }
        (_, TrustAnchors::System) => {
            "if the server uses a private certificate authority, name its file with --cacert"
        }
        (_, TrustAnchors::Named) => "the server needs another certificate",
    };
    (reason, hint)
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
            assert_eq!(
                Remarks::of(&headers).wants_token,
                expected,
                "{challenges:?}"
            );
        }
    }
}
