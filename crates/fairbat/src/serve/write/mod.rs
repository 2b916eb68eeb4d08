//! Requests that change what is below the directory: PUT, DELETE, MOVE and MKCOL.
//!
//! Everything is checked here that has to be, whatever the rest of the server has
//! seen of the request; but who asks has shown the token, if there is one.
//! Uploads pass no lever: it is the client that holds them back.

mod edit;
mod expected;
mod place;
mod put;
mod refusal;
mod scratch;

use std::net::IpAddr;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::header::HOST;
use http::request::Parts;
use http::{HeaderMap, Method, Response};
use hyper::body::Incoming;
use rustix::fs::{Access, AtFlags, accessat};
use tokio::sync::Semaphore;

use self::refusal::Refusal;
use super::files::{Root, SCRATCH};
use super::flow::Flow;
use super::pace::Manner;
use super::payload::Payload;
use super::{Site, UploadTerms};
use crate::error::{ErrorKind, TransferError};

/// Uploads at once: more than these would only wait for the same disk.
const MOST_UPLOADS: usize = 64;

/// Descriptors of an upload beyond those that a response with a file has: the
/// directory it is gathered in, that it comes into, and one more for a moment.
const DESCRIPTORS_EACH: u64 = 3;

/// Descriptors that uploads take together, beyond those of their connections.
pub(super) const DESCRIPTORS: u64 = MOST_UPLOADS as u64 * DESCRIPTORS_EACH;

/// What all requests share that change something.
#[derive(Debug)]
pub(super) struct Writing {
    /// Bytes.
    max_upload: Option<u64>,
    uploads: Semaphore,
    /// Number of the next unfinished file.
    next: AtomicU64,
    /// Held from the last look at what is there to the change of it.
    turn: Mutex<()>,
}

/// How many bytes an upload had; the extension of a response that stands for it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stored(u64);

impl std::fmt::Display for Stored {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "stored={}", self.0)
    }
}

impl Writing {
    /// Makes sure that there can be uploads, and removes what earlier ones have
    /// left.
    ///
    /// # Errors
    /// This process may not write to the directory.
    pub(super) fn begin(root: &Root, terms: &UploadTerms) -> Result<Self, TransferError> {
        let is_allowed = accessat(root.directory(), ".", Access::WRITE_OK, AtFlags::empty());
        is_allowed.map_err(|errno| {
            let message = format!("cannot take uploads: the directory cannot be written: {errno}");
            TransferError::new(ErrorKind::Disk, message)
                .with_hint("run as a user that may write to it, or without --writable")
        })?;
        let removed = scratch::sweep(root)?;
        if removed > 0 {
            tracing::info!("removed {removed} unfinished uploads from {SCRATCH}");
        }
        Ok(Self {
            max_upload: terms.max_size,
            uploads: Semaphore::new(MOST_UPLOADS),
            next: AtomicU64::new(0),
            turn: Mutex::new(()),
        })
    }

    fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Answers a request of any other method than GET and HEAD.
pub(super) async fn answer(
    site: &Arc<Site>,
    writing: &Arc<Writing>,
    flow: &Flow,
    request: &Parts,
    body: Incoming,
) -> Response<Payload> {
    // For as long as it takes the connection is not idle.
    let _busy = flow.begin(Manner::Ordinary);
    let changed = change(site, writing, request, body).await;
    changed.unwrap_or_else(|refusal| {
        if let Refusal::Disk(_) | Refusal::Full = refusal {
            let name = request.uri.path().as_ref();
            site.warn_of(name, format_args!("{}: {refusal}", request.method));
        }
        refusal.response()
    })
}

async fn change(
    site: &Arc<Site>,
    writing: &Arc<Writing>,
    request: &Parts,
    body: Incoming,
) -> Result<Response<Payload>, Refusal> {
    if site.token.is_none() && !names_this_machine(&request.headers) {
        return Err(Refusal::OtherHost);
    }
    match request.method {
        Method::PUT => put::put(site, writing, request, body).await,
        Method::DELETE => edit::delete(site, writing, request).await,
        _ => match request.method.as_str() {
            "MOVE" => edit::rename(site, writing, request).await,
            "MKCOL" => edit::make_directory(site, request, &body).await,
            _ => Err(Refusal::OtherMethod),
        },
    }
}

/// Whether the host that is asked for is certainly this machine. Without a token
/// any web page could otherwise have a browser here write files, under a name of
/// its own that leads to a loopback address (DNS rebinding).
fn names_this_machine(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(HOST) else {
        // Older than browsers that could be abused so.
        return true;
    };
    let Ok(authority) = http::uri::Authority::try_from(host.as_bytes()) else {
        return false;
    };
    let name = authority.host().trim_matches(['[', ']']);
    let is_loopback = |address: IpAddr| address.to_canonical().is_loopback();
    name.eq_ignore_ascii_case("localhost") || name.parse().is_ok_and(is_loopback)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn without_a_token_only_loopback_names_are_taken() {
        for (host, expected) in [
            ("127.0.0.1", true),
            ("127.0.0.2:8080", true),
            ("[::1]:8080", true),
            ("[::ffff:127.0.0.1]", true),
            ("localhost:8080", true),
            ("LocalHost", true),
            ("192.0.2.1", false),
            ("example.org:8080", false),
            ("localhost.example.org", false),
            ("127.0.0.1.example.org", false),
            ("", false),
        ] {
            let headers = HeaderMap::from_iter([(HOST, HeaderValue::from_static(host))]);
            assert_eq!(names_this_machine(&headers), expected, "{host}");
        }
    }
}
