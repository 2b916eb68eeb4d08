//! What became of a request that got no answer, or not all of one.

use std::error::Error as _;
use std::io;

use super::tls::{Authorities, explain};
use super::{Failure, TRY_LATER, Transient};
use crate::error::{ErrorKind, TransferError};

/// What to do about a host that is not to be found or reached.
const CHECK_HOST: &str = "check the host name and the network, or try again later";

/// How the HTTP library names a failure of the name service, ...
const NO_NAME: &str = "dns error";
/// ... and an answer that begins with something else than `HTTP/1`: most often
/// a complaint of TLS.
const NO_HTTP: &str = "invalid HTTP version";

impl Failure {
    /// What the error of a request means; certificates were checked against
    /// these authorities.
    pub(crate) fn of_request(error: reqwest::Error, authorities: Authorities) -> Self {
        let is_plain = error.url().is_some_and(|url| url.scheme() == "http");
        let error = error.without_url();
        if let Some(tls) = find_tls_error(&error) {
            let (reason, hint) = explain(tls, authorities);
            return Self::refused(reason, hint);
        }
        if error.is_builder() {
            return Self::Fatal(TransferError::new(ErrorKind::Other, describe(&error)));
        }
        let (reason, hint) = if error.is_timeout() && error.is_connect() {
            let reason = "the connection did not open in time".to_owned();
            (reason, CHECK_HOST)
        } else if error.is_timeout() {
            ("the server fell silent".to_owned(), TRY_LATER)
        } else if let Some(why) = unresolved(&error) {
            let reason = format!("the host name cannot be resolved: {why}");
            (reason, CHECK_HOST)
        } else if is_plain && causes(&error).any(|cause| cause.to_string().contains(NO_HTTP)) {
            let reason = "the server does not answer in plain HTTP; is it https? (invalid HTTP \
                          version)";
            let hint = "if the server speaks TLS at this port, write https:// in the URL";
            (reason.to_owned(), hint)
        } else if error.is_connect() && !is_broken(&error) {
            (describe(&error), CHECK_HOST)
        } else {
            (describe(&error), TRY_LATER)
        };
        Self::Transient(Transient {
            kind: ErrorKind::Network,
            hint,
            push_back: find_io_kind(&error) == Some(io::ErrorKind::ConnectionRefused),
            ..Transient::server(reason)
        })
    }
}

/// In the middle of a response, when certificates have long been checked.
impl From<reqwest::Error> for Failure {
    fn from(error: reqwest::Error) -> Self {
        Self::of_request(error, Authorities::System)
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

/// What the name service said, if it is what failed.
fn unresolved(error: &reqwest::Error) -> Option<String> {
    let mut below = causes(error).skip_while(|cause| cause.to_string() != NO_NAME);
    let named = below.next()?;
    Some(below.last().unwrap_or(named).to_string())
}

/// Whether somebody was there and broke off.
fn is_broken(error: &reqwest::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(
        find_io_kind(error),
        Some(ConnectionReset | ConnectionAborted | BrokenPipe | UnexpectedEof)
    )
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
