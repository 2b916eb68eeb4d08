//! The HTTP client: sends one request over a connection that the socket tap has
//! prepared, and follows redirects. It decides which hosts see the user's
//! credentials and which redirects are followed.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::header::{ACCEPT_ENCODING, AUTHORIZATION, IF_RANGE, LOCATION, RANGE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, Response};
use rustls::ClientConfig;
use url::{Position, Url};

use super::authorities;
use super::http3::{Http3, Sent};
use super::tap::Tap;
use crate::error::{ErrorKind, TransferError};
use crate::http::credentials::{credentials_in, is_same_host};
use crate::http::digest::repr_digest;
use crate::http::link::Links;
use crate::http::netrc::Netrc;
use crate::http::priority::{self, DeadlineHint};
use crate::http::{CredentialSource, Failure, Identification, TrustAnchors, without_credentials};
use crate::interfaces::device_of;
use crate::settings::{Checksum, Credentials, HttpSettings, LocalEnd};

/// Redirects in a row that are followed. RFC 9110, section 15.4, asks clients to
/// detect loops; browsers stop at 20.
pub(crate) const MAX_REDIRECTS: usize = 20;

/// Bytes of a redirect's body that are read, so that its connection can be used
/// again.
const MAX_DRAINED: u64 = 64 * 1024;

/// Sends requests. Clones share their connections.
#[derive(Debug, Clone)]
pub struct HttpClient {
    pub(crate) client: Client,
    http3: Http3,
    settings: HttpSettings,
    tls: ClientConfig,
    connections: u32,
    tap: Tap,
    netrc: Option<Netrc>,
    /// Whether requests say that their responses may yield.
    yields: bool,
    /// Origins whose responses had the mark of a FAIRBAT server.
    fairbat_servers: Arc<Mutex<HashSet<String>>>,
}

/// Where a file is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceUrl {
    /// The URL that is asked.
    pub url: Url,
    /// The URL that the user named. Only its host sees the user's credentials; none does without
    /// one.
    pub named: Option<Url>,
}

impl SourceUrl {
    /// A URL that the user named.
    #[must_use]
    pub fn named(url: Url) -> Self {
        Self {
            named: Some(url.clone()),
            url,
        }
    }
}

/// A GET request, or one for its head.
#[derive(Debug, Clone)]
pub(crate) struct Get<'a> {
    /// GET or HEAD.
    pub(crate) method: Method,
    /// The URL that the user named. Only its host sees the user's credentials.
    pub(crate) named: Option<&'a Url>,
    /// The URL to ask first: the named one, or where an earlier redirect led.
    pub(crate) url: &'a Url,
    /// The bytes to ask for; `None` for all.
    pub(crate) range: Option<Range<u64>>,
    /// Makes the range conditional (RFC 9110, section 13.1.5).
    pub(crate) if_range: Option<HeaderValue>,
    /// When the bytes are needed. Only FAIRBAT servers are told.
    pub(crate) hint: Option<&'a DeadlineHint>,
}

impl<'a> Get<'a> {
    /// A request for the whole file.
    pub(crate) fn of(asked: &'a SourceUrl) -> Self {
        Self {
            method: Method::GET,
            named: asked.named.as_ref(),
            url: &asked.url,
            range: None,
            if_range: None,
            hint: None,
        }
    }
}

/// What redirects have said of the file that they lead to. Servers that send each client to a
/// mirror near it say there where else the file is.
#[derive(Debug, Clone, Default)]
pub(crate) struct OnTheWay {
    pub(crate) links: Links,
    pub(crate) digest: Option<Checksum>,
}

impl OnTheWay {
    fn add(&mut self, headers: &HeaderMap, url: &Url) {
        let Links {
            duplicates,
            metalink,
        } = Links::of(headers, url);
        self.links.duplicates.extend(duplicates);
        self.links.metalink = self.links.metalink.take().or(metalink);
        // The digest of a redirect is of the redirect, but for servers of RFC 6249.
        let is_of_file = headers.contains_key("digest") && !self.links.duplicates.is_empty();
        let digest = || repr_digest(headers).filter(|_| is_of_file);
        self.digest = self.digest.take().or_else(digest);
    }
}

impl HttpClient {
    /// A client with up to `connections` idle connections to each host, each of which
    /// `tap` prepares. Without idle ones each connection carries one request.
    ///
    /// # Errors
    /// The certificate or netrc file cannot be read.
    pub(crate) fn new(
        settings: &HttpSettings,
        connections: u32,
        tap: Tap,
    ) -> Result<Self, TransferError> {
        let netrc = match &settings.netrc {
            // curl treats a missing netrc file as an empty one, too.
            Some(path) if !path.exists() => {
                tracing::warn!(path = %path.display(), "there is no netrc file");
                None
            }
            Some(path) => Some(Netrc::load(path).map_err(|error| {
                let path = path.display();
                setup_error(format!("cannot use the netrc file {path}: {error}"))
            })?),
            None => None,
        };
        let tls = authorities::tls(settings.cacert.as_deref())?;
        Ok(Self {
            client: open(settings, &tls, connections, &tap)?,
            http3: Http3::new(settings, &tls, connections, &tap),
            settings: settings.clone(),
            tls,
            connections,
            tap,
            netrc,
            yields: false,
            fairbat_servers: Arc::default(),
        })
    }

    /// The same client with connections of its own: up to so many idle ones to each host, each of
    /// which `tap` prepares.
    ///
    /// # Errors
    /// The system refuses what connections need.
    pub(crate) fn with_connections(
        &self,
        connections: u32,
        tap: Tap,
    ) -> Result<Self, TransferError> {
        Ok(Self {
            client: open(&self.settings, &self.tls, connections, &tap)?,
            http3: self.http3.with_connections(connections, &tap),
            connections,
            tap,
            ..self.clone()
        })
    }

    /// Uses none of the connections any more that it has: they have lost their local end, or nobody
    /// watches them.
    pub(crate) fn leave_connections(&mut self) {
        match self.with_connections(self.connections, self.tap.clone()) {
            Ok(client) => *self = client,
            Err(error) => tracing::warn!(%error, "old connections may be used again"),
        }
    }

    /// The same client. With `yields`, each request says that its response may
    /// yield to all other traffic ([`priority`]).
    #[must_use]
    pub fn yielding(self, yields: bool) -> Self {
        Self { yields, ..self }
    }

    /// Whether any response came from a FAIRBAT server.
    pub(crate) fn knows_fairbat_server(&self) -> bool {
        !self.fairbat_servers().is_empty()
    }

    /// Sends a GET and follows redirects. Returns a response that is no redirect, and the
    /// URL that it came from.
    pub(crate) async fn get(&self, get: Get<'_>) -> Result<(Response, Url), Failure> {
        let mut url = get.url.clone();
        let mut on_the_way = OnTheWay::default();
        for _ in 0..=MAX_REDIRECTS {
            let mut response = self.send(self.hop(&get, &url)).await?;
            if priority::is_fairbat_server(response.headers()) {
                let origin = url.origin().ascii_serialization();
                self.fairbat_servers().insert(origin);
            }
            let location = response.headers().get(LOCATION);
            let Some(location) = location.filter(|_| is_redirect(response.status())) else {
                response.extensions_mut().insert(on_the_way);
                return Ok((response, url));
            };
            let next = next_url(&url, location)?;
            on_the_way.add(response.headers(), &url);
            url = next;
            drain(response).await;
        }
        Err(Failure::refused(
            format!("more than {MAX_REDIRECTS} redirects"),
            "the server redirects in a circle; check the URL",
        ))
    }

    /// Sends one request without following redirects.
    pub(crate) async fn send(&self, request: RequestBuilder) -> Result<Response, Failure> {
        let anchors = match self.settings.cacert {
            Some(_) => TrustAnchors::Named,
            None if self.settings.has_flags => TrustAnchors::System,
            None => TrustAnchors::SystemOnly,
        };
        let request = request.build().map_err(Failure::from)?;
        let request = match self.http3.send(request).await? {
            Sent::Answered(response) => return Ok(response),
            Sent::OverTcp(request) => request,
        };
        let url = request.url().clone();
        let sent = self.client.execute(request).await;
        let response = sent.map_err(|error| Failure::of_request(error, anchors))?;
        self.http3.heed(&url, &response);
        Ok(response)
    }

    /// The request to one of the URLs on the way of `get`.
    fn hop(&self, get: &Get<'_>, url: &Url) -> RequestBuilder {
        let mut request = self
            .client
            .request(get.method.clone(), without_credentials(url))
            .header(ACCEPT_ENCODING, "identity");
        if let Some(range) = &get.range {
            let value = format!("bytes={}-{}", range.start, range.end - 1);
            request = request.header(RANGE, value);
        }
        if let Some(if_range) = &get.if_range {
            request = request.header(IF_RANGE, if_range);
        }
        for (name, value) in self.priority_fields(get.hint, url) {
            request = request.header(name, value);
        }
        self.identify(request, get.named, url)
    }

    /// Adds the user's headers and credentials. They go only to the host that
    /// the user named. A server must not choose, by a redirect, whose password is sent.
    pub(crate) fn identify(
        &self,
        mut request: RequestBuilder,
        named: Option<&Url>,
        url: &Url,
    ) -> RequestBuilder {
        let own = if named.is_some_and(|named| is_same_host(named, url)) {
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
        match self.credentials(named, url).1 {
            Some(user) => request.basic_auth(user.user, Some(user.password)),
            None => request,
        }
    }

    /// What the server of `url` is told of the user.
    pub(crate) fn identification(&self, named: Option<&Url>, url: &Url) -> Identification {
        Identification {
            source: self.credentials(named, url).0,
            has_flags: self.settings.has_flags,
        }
    }

    /// The fields of [`priority`] for `url`, except those that the user sets.
    fn priority_fields(
        &self,
        hint: Option<&DeadlineHint>,
        url: &Url,
    ) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        let is_fairbat_server = || {
            let origin = url.origin().ascii_serialization();
            self.fairbat_servers().contains(&origin)
        };
        let urgency = match hint.and_then(|hint| hint.due) {
            Some(_) => priority::BACKGROUND_DUE,
            None => priority::BACKGROUND,
        };
        let hint = hint.filter(|_| self.yields && is_fairbat_server());
        let own = &self.settings.headers;
        [
            (priority::PRIORITY, self.yields.then_some(urgency)),
            (priority::DEADLINE, hint.and_then(DeadlineHint::to_value)),
        ]
        .into_iter()
        .filter(|(name, _)| !own.iter().any(|(own, _)| own == name))
        .filter_map(|(name, value)| Some((name, value?)))
    }

    fn fairbat_servers(&self) -> MutexGuard<'_, HashSet<String>> {
        self.fairbat_servers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The credentials for `url`, and where they come from: if it is at the host that the
    /// user named, from a header, `-u`, the named URL, or netrc, in this order. A header is
    /// sent as it is.
    fn credentials(
        &self,
        named: Option<&Url>,
        url: &Url,
    ) -> (CredentialSource, Option<Credentials>) {
        let Some(named) = named else {
            return (CredentialSource::Nothing, None);
        };
        let authority = |url: &Url| url[Position::BeforeHost..Position::AfterPort].to_owned();
        if !is_same_host(named, url) {
            let (named, server) = (authority(named), authority(url));
            return (CredentialSource::Redirected { named, server }, None);
        }
        let mut headers = self.settings.headers.iter();
        if headers.any(|(name, _)| name == AUTHORIZATION) {
            return (CredentialSource::Header, None);
        }
        if let Some(user) = self.settings.user.clone() {
            return (CredentialSource::User, Some(user));
        }
        if let Some(user) = credentials_in(named) {
            return (CredentialSource::Url, Some(user));
        }
        let Some(path) = self.settings.netrc.clone() else {
            return (CredentialSource::Nothing, None);
        };
        let host = named.host_str().unwrap_or_default();
        let why = match self.netrc.as_ref().map(|netrc| netrc.lookup(host)) {
            Some(Ok(Some(user))) => return (CredentialSource::Netrc(path), Some(user)),
            Some(Ok(None)) => format!("has no entry for {host}"),
            Some(Err(error)) => format!("cannot be used for {host}: it {error}"),
            None => "does not exist".to_owned(),
        };
        (CredentialSource::NotInNetrc { path, why }, None)
    }
}

/// The connections of a client, none of them open yet.
fn open(
    settings: &HttpSettings,
    tls: &ClientConfig,
    connections: u32,
    tap: &Tap,
) -> Result<Client, TransferError> {
    let mut builder = Client::builder()
        .tls_backend_preconfigured(tls.clone())
        .pool_max_idle_per_host(connections as usize)
        .http1_only()
        .redirect(Policy::none())
        .referer(false);
    if let Some(limit) = settings.stall_timeout {
        builder = match tap {
            Tap::Receive(_) => builder.read_timeout(limit),
            // The kernel gives up on sent bytes that nobody acknowledges.
            Tap::Send(_) => builder.tcp_user_timeout(limit),
        };
    }
    builder = builder.connector_layer(tap.clone());
    builder = match &settings.local_end {
        Some(LocalEnd::Interface(name)) => builder.interface(name),
        Some(LocalEnd::Address(address)) => {
            let builder = builder.local_address(*address);
            match device_of(*address) {
                Some(name) => builder.interface(&name),
                None => builder,
            }
        }
        None => builder,
    };
    if let Some(timeout) = settings.connect_timeout {
        builder = builder.connect_timeout(timeout);
    }
    builder
        .build()
        .map_err(|error| setup_error(format!("cannot set up HTTP: {error:?}")))
}

/// Reads a short body to its end, so that its connection can be used again.
pub(crate) async fn drain(mut response: Response) {
    let length = response.content_length();
    if length.is_some_and(|length| length <= MAX_DRAINED) {
        while let Ok(Some(_)) = response.chunk().await {}
    }
}

fn setup_error(message: String) -> TransferError {
    TransferError::new(ErrorKind::Other, message)
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// The URL that a redirect leads to, without credentials.
///
/// # Errors
/// The URL is malformed, is not http or https, or leads from https to http.
pub(crate) fn next_url(from: &Url, location: &HeaderValue) -> Result<Url, Failure> {
    let location = String::from_utf8_lossy(location.as_bytes());
    let next = from
        .join(&location)
        .map_err(|error| Failure::server(format!("redirect to an impossible URL: {error}")))?;
    match (from.scheme(), next.scheme()) {
        ("http", "http" | "https") | ("https", "https") => Ok(without_credentials(&next)),
        ("https", "http") => Err(Failure::refused(
            format!(
                "redirect from https to plain http ({}) not followed",
                next.host_str().unwrap_or_default()
            ),
            "give the http URL itself if an insecure transfer is what you want",
        )),
        (_, scheme) => Err(Failure::refused(
            format!("redirect to a {scheme}: URL not followed"),
            "only http and https are spoken",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
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
