//! Why a request failed, sorted by what the engine does about it.

use std::error::Error as _;
use std::io;
use std::time::Duration;

use reqwest::StatusCode;

use crate::error::{ErrorKind, TransferError};

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
    /// The server's own wish (Retry-After): a minimum.
    pub retry_after: Option<Duration>,
    /// The server refused the load (429, 503, refused connection): use fewer
    /// connections to this host.
    pub push_back: bool,
}

impl Transient {
    /// The server failed or broke the protocol.
    pub fn server(reason: impl Into<String>) -> Self {
        Self {
            kind: ErrorKind::Server,
            reason: reason.into(),
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
        let hint = match (has_begun, self.kind) {
            (true, _) => "try again later: the same command resumes where this one stopped",
            (false, ErrorKind::Network) => {
                "check the host name and the network, or try again later"
            }
            (false, _) => "try again later",
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
    pub(crate) fn of_status(status: StatusCode, retry_after: Option<Duration>) -> Self {
        let reason = format!("the server answered {status}");
        let hint = match status {
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
            kind: ErrorKind::Server,
            reason,
            retry_after,
            push_back: matches!(
                status,
                StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
            ),
        })
    }
}

impl From<reqwest::Error> for Failure {
    fn from(error: reqwest::Error) -> Self {
        let error = error.without_url();
        if let Some(tls) = find_tls_error(&error) {
            return Self::refused(
                format!("no secure connection: {tls}"),
                "if the server uses a private certificate authority, name its file with --cacert",
            );
        }
        if error.is_builder() {
            return Self::Fatal(TransferError::new(ErrorKind::Other, describe(&error)));
        }
        if error.is_timeout() {
            let what = if error.is_connect() {
                "the connection did not open in time"
            } else {
                "the server fell silent"
            };
            return Self::network(what);
        }
        let refused = find_io_kind(&error) == Some(io::ErrorKind::ConnectionRefused);
        Self::Transient(Transient {
            kind: ErrorKind::Network,
            reason: describe(&error),
            retry_after: None,
            push_back: refused,
        })
    }
}

/// The chain of causes, each said once.
fn describe(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}

/// The causes of an error, the ones that an `io::Error` wraps included.
fn causes(error: &reqwest::Error) -> impl Iterator<Item = Cause<'_>> {
    std::iter::successors(error.source(), |&error| cause_of(error))
}

type Cause<'a> = &'a (dyn std::error::Error + 'static);

fn cause_of(error: Cause<'_>) -> Option<Cause<'_>> {
    let wrapped = error
        .downcast_ref::<io::Error>()
        .and_then(io::Error::get_ref);
    match wrapped {
        Some(wrapped) => Some(wrapped),
        None => error.source(),
    }
}

fn find_tls_error(error: &reqwest::Error) -> Option<&rustls::Error> {
    causes(error).find_map(|cause| match cause.downcast_ref() {
        Some(
            tls @ (rustls::Error::InvalidCertificate(_)
            | rustls::Error::NoCertificatesPresented
            | rustls::Error::PeerIncompatible(_)),
        ) => Some(tls),
        _ => None,
    })
}

fn find_io_kind(error: &reqwest::Error) -> Option<io::ErrorKind> {
    causes(error).find_map(|cause| cause.downcast_ref().map(io::Error::kind))
}
