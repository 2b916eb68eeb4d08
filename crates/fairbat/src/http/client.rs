//! One GET, redirects included: whom credentials are shown to, and which
//! redirects are followed, is decided here. Knows nothing of files or queue.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use http::header::{
    ACCEPT_ENCODING, AUTHORIZATION, IF_RANGE, LOCATION, RANGE, RETRY_AFTER, USER_AGENT,
};
use http::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, ClientBuilder, RequestBuilder, Response, StatusCode};
use url::Url;

use super::failure::{Authorities, Failure};
use super::netrc::Netrc;
use super::priority::{self, DeadlineHint};
use super::retry_after::parse_retry_after;
use super::tap::{ReceiveWindow, Tap};
use crate::error::{ErrorKind, TransferError};
use crate::settings::{Credentials, HttpSettings};

/// Redirects that are followed in a row (RFC 9110 section 15.4 wants loops
/// detected; browsers stop at 20).
pub(crate) const MAX_REDIRECTS: usize = 20;

/// A redirect's body is read up to this size, so that its connection can be
/// used again.
const DRAIN_LIMIT: u64 = 64 * 1024;

/// Sends requests; cheap to clone, connections are shared.
#[derive(Debug, Clone)]
pub struct HttpClient {
    pub(super) client: Client,
    settings: HttpSettings,
    netrc: Option<Netrc>,
    /// Whether servers are told that their responses may yield.
    yields: bool,
    /// Origins that have shown to be servers of ours.
    ours: Arc<Mutex<HashSet<String>>>,
}

/// A request, as far as callers choose it.
#[derive(Debug, Clone)]
pub(super) struct Get<'a> {
    /// The URL the user named: only its host sees the user's credentials.
    pub(super) named: &'a Url,
    /// Where to ask first; where an earlier redirect led, perhaps.
    pub(super) url: &'a Url,
    /// Bytes to ask for; `None` for all.
    pub(super) range: Option<Range<u64>>,
    /// Makes the range conditional (RFC 9110 section 13.1.5).
    pub(super) if_range: Option<HeaderValue>,
    /// By when it is needed: only servers of ours are told.
    pub(super) terms: Option<&'a DeadlineHint>,
}

/// A response that is not a redirect, and where it came from.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) response: Response,
    pub(super) url: Url,
}

impl HttpClient {
    /// A client for up to `connections` connections to one host.
    ///
    /// # Errors
    /// When the certificate or netrc file cannot be read.
    pub fn new(
        settings: &HttpSettings,
        connections: u32,
        window: ReceiveWindow,
    ) -> Result<Self, TransferError> {
        let pool = Client::builder().pool_max_idle_per_host(connections as usize);
        let builder = match settings.stall_timeout {
            Some(timeout) => pool.read_timeout(timeout),
            None => pool,
        };
        Self::built(builder, settings, Tap::Receive(window))
    }

    /// A client as `builder` has it, with what all of them have in common.
    pub(super) fn built(
        builder: ClientBuilder,
        settings: &HttpSettings,
        tap: Tap,
    ) -> Result<Self, TransferError> {
        // A provider may be installed already by whoever embeds this library.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = builder
            .http1_only()
            .redirect(Policy::none())
            .referer(false)
            .connector_layer(tap);
        if let Some(timeout) = settings.connect_timeout {
            builder = builder.connect_timeout(timeout);
        }
        if let Some(path) = &settings.cacert {
            builder = builder.tls_certs_only(read_certificates(path)?);
        }
        let netrc = match &settings.netrc {
            // As curl has it: no netrc file is an empty one.
            Some(path) if !path.exists() => {
                tracing::warn!(path = %path.display(), "there is no netrc file");
                None
            }
            Some(path) => Some(Netrc::load(path).map_err(|error| {
                setup_error(format!(
                    "cannot use the netrc file {}: {error}",
                    path.display()
                ))
            })?),
            None => None,
        };
        Ok(Self {
            client: builder
                .build()
                .map_err(|error| setup_error(format!("cannot set up HTTPS: {error:?}")))?,
            settings: settings.clone(),
            netrc,
            yields: false,
            ours: Arc::default(),
        })
    }

    /// The same client, which tells servers with each request whether the
    /// response may yield to everybody else ([`wish`]).
    #[must_use]
    pub fn yielding(self, yields: bool) -> Self {
        Self { yields, ..self }
    }

    /// Whether any server has shown itself to be ours.
    pub(crate) fn knows_fairbat_server(&self) -> bool {
        !self.ours().is_empty()
    }

    /// Sends a GET and follows redirects.
    pub(super) async fn get(&self, get: Get<'_>) -> Result<Reply, Failure> {
        let mut url = get.url.clone();
        for _ in 0..=MAX_REDIRECTS {
            let response = self.send(self.request(&get, &url)).await?;
            if priority::is_ours(response.headers()) {
                self.ours().insert(url.origin().ascii_serialization());
            }
            if !is_redirect(response.status()) {
                return Ok(Reply { response, url });
            }
            let Some(location) = response.headers().get(LOCATION) else {
                return Ok(Reply { response, url });
            };
            let next = next_url(&url, location)?;
            drain(response).await;
            url = next;
        }
        Err(Failure::refused(
            format!("more than {MAX_REDIRECTS} redirects"),
            "the server redirects in a circle; check the URL",
        ))
    }

    /// Sends one request; redirects are not followed.
    pub(super) async fn send(&self, request: RequestBuilder) -> Result<Response, Failure> {
        let authorities = match self.settings.cacert {
            Some(_) => Authorities::Named,
            None => Authorities::System,
        };
        let sent = request.send().await;
        sent.map_err(|error| Failure::of_request(error, authorities))
    }

    /// One hop.
    fn request(&self, get: &Get<'_>, url: &Url) -> RequestBuilder {
        let mut request = self
            .client
            .get(without_credentials(url))
            .header(ACCEPT_ENCODING, "identity");
        if let Some(range) = &get.range {
            let value = format!("bytes={}-{}", range.start, range.end - 1);
            request = request.header(RANGE, value);
        }
        if let Some(if_range) = &get.if_range {
            request = request.header(IF_RANGE, if_range);
        }
        for (name, value) in self.wishes(get.terms, url) {
            request = request.header(name, value);
        }
        self.introduced(request, get.named, url)
    }

    /// The request with what says who asks. What identifies the user goes only
    /// to the host they named; other hosts get what the netrc file has for
    /// them.
    pub(super) fn introduced(
        &self,
        mut request: RequestBuilder,
        named: &Url,
        url: &Url,
    ) -> RequestBuilder {
        let is_named = is_same_host(named, url);
        let own = if is_named {
            self.settings.headers.as_slice()
        } else {
            &[]
        };
        if !own.iter().any(|(name, _)| name == USER_AGENT) {
            request = request.header(USER_AGENT, concat!("fairbat/", env!("CARGO_PKG_VERSION")));
        }
        for (name, value) in own {
            request = request.header(name, value);
        }
        let has_own = own.iter().any(|(name, _)| name == AUTHORIZATION);
        match self.credentials(is_named.then_some(named), url) {
            Some(user) if !has_own => request.basic_auth(user.user, Some(user.password)),
            _ => request,
        }
    }

    /// What is wished of the server at `url`, but for what the user says by
    /// headers of their own.
    fn wishes(
        &self,
        terms: Option<&DeadlineHint>,
        url: &Url,
    ) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        let is_ours = || self.ours().contains(&url.origin().ascii_serialization());
        let terms = terms.filter(|_| self.yields && is_ours());
        let own = &self.settings.headers;
        [
            (priority::PRIORITY, self.yields.then(priority::background)),
            (priority::DEADLINE, terms.and_then(DeadlineHint::to_value)),
        ]
        .into_iter()
        .filter(|(name, _)| !own.iter().any(|(own, _)| own == name))
        .filter_map(|(name, value)| Some((name, value?)))
    }

    fn ours(&self) -> MutexGuard<'_, HashSet<String>> {
        self.ours.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `-u`, then the URL's own, then netrc.
    fn credentials(&self, named: Option<&Url>, url: &Url) -> Option<Credentials> {
        named
            .and_then(|named| self.settings.user.clone().or_else(|| credentials_in(named)))
            .or_else(|| self.netrc.as_ref()?.lookup(url.host_str()?))
    }
}

/// What the server wants us to wait (RFC 9110 section 10.2.3).
#[allow(
    clippy::disallowed_methods,
    reason = "Retry-After may be a date, and only the wall clock can tell how far off it is"
)]
#[must_use]
pub fn retry_after_of(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?;
    parse_retry_after(value.as_bytes(), SystemTime::now())
}

/// Reads a short body to its end, so that the connection can be used again.
pub(super) async fn drain(mut response: Response) {
    if response
        .content_length()
        .is_none_or(|length| length > DRAIN_LIMIT)
    {
        return;
    }
    while let Ok(Some(_)) = response.chunk().await {}
}

/// The URL without user name, password and fragment.
#[must_use]
pub fn without_credentials(url: &Url) -> Url {
    let mut url = url.clone();
    // Both fail only for URLs that cannot have a host, which http(s) has.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_fragment(None);
    url
}

fn credentials_in(url: &Url) -> Option<Credentials> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let decode = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    Some(Credentials {
        user: decode(url.username()),
        password: decode(url.password().unwrap_or_default()),
    })
}

fn read_certificates(path: &std::path::Path) -> Result<Vec<Certificate>, TransferError> {
    let failed = |error: &dyn std::fmt::Display| {
        setup_error(format!(
            "cannot use the certificates in {}: {error}",
            path.display()
        ))
    };
    let pem = std::fs::read(path).map_err(|error| failed(&error))?;
    let certificates = Certificate::from_pem_bundle(&pem).map_err(|error| failed(&error))?;
    if certificates.is_empty() {
        return Err(failed(&"there is no PEM certificate in it"));
    }
    Ok(certificates)
}

fn setup_error(message: String) -> TransferError {
    TransferError::new(ErrorKind::Other, message)
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

pub(super) fn next_url(from: &Url, location: &HeaderValue) -> Result<Url, Failure> {
    let location = String::from_utf8_lossy(location.as_bytes());
    let next = from
        .join(&location)
        .map_err(|error| Failure::server(format!("redirect to an impossible URL: {error}")))?;
    match (from.scheme(), next.scheme()) {
        ("http", "http" | "https") | ("https", "https") => Ok(without_credentials(&next)),
        ("https", "http") => Err(Failure::refused(
            format!(
                "redirect from https to plain http ({}) not followed",
                host(&next)
            ),
            "give the http URL itself if an insecure transfer is what you want",
        )),
        (_, scheme) => Err(Failure::refused(
            format!("redirect to a {scheme}: URL not followed"),
            "only http and https are spoken",
        )),
    }
}

fn host(url: &Url) -> &str {
    url.host_str().unwrap_or_default()
}

/// Same host and port, or the same host moved from http to https on the
/// standard ports.
fn is_same_host(named: &Url, url: &Url) -> bool {
    let is_upgrade = named.scheme() == "http"
        && url.scheme() == "https"
        && named.port().is_none()
        && url.port().is_none()
        && named.host() == url.host();
    is_upgrade || named.origin() == url.origin()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn credentials_stay_with_the_named_host() {
        let named = url("http://example.org/a");
        for same in [
            "http://example.org/b",
            "https://example.org/b",
            "http://example.org:80/",
        ] {
            assert!(is_same_host(&named, &url(same)), "{same}");
        }
        for other in [
            "http://example.org:8080/a",
            "https://example.org:8443/a",
            "http://www.example.org/a",
            "http://example.com/a",
        ] {
            assert!(!is_same_host(&named, &url(other)), "{other}");
        }
        // The way back down is never the same host, whatever the redirect
        // rules say.
        assert!(!is_same_host(
            &url("https://example.org/"),
            &url("http://example.org/")
        ));
    }

    #[test]
    fn https_never_becomes_http() {
        let location = HeaderValue::from_static("http://example.org/x");
        let refused = next_url(&url("https://example.org/"), &location);
        assert!(matches!(refused, Err(Failure::Fatal(_))));
        let relative = HeaderValue::from_static("../y?z#f");
        let next = next_url(&url("https://example.org/a/b"), &relative).unwrap();
        assert_eq!(next.as_str(), "https://example.org/y?z");
    }

    #[test]
    fn a_redirect_cannot_bring_credentials() {
        let location = HeaderValue::from_static("http://u:p@example.org/x");
        let next = next_url(&url("http://example.org/"), &location).unwrap();
        assert_eq!(next.as_str(), "http://example.org/x");
    }
}
