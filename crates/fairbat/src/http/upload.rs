//! One PUT, without its redirects: what is sent, and what came back. What the
//! answer means for the upload is not decided here.
//!
//! The body begins at once: reqwest cannot wait for `100 Continue` (RFC 9110
//! section 10.1.1). A server that does not want the body says so while it
//! comes, and that answer is the one that counts.

use http::header::{ALLOW, CONTENT_LENGTH, IF_NONE_MATCH, LOCATION};
use http::{HeaderMap, HeaderValue};
use reqwest::{Client, StatusCode};
use url::Url;

use super::client::{HttpClient, next_url, without_credentials};
use super::failure::{Failure, Remarks};
use super::tap::{SendTap, Tap};
use crate::error::TransferError;
use crate::settings::HttpSettings;

/// A request that stores a file.
#[derive(Debug)]
pub(crate) struct Put<'a> {
    /// The URL the user named: only its host sees the user's credentials.
    pub(crate) named: &'a Url,
    /// Where to send it; where a redirect led, perhaps.
    pub(crate) url: &'a Url,
    /// Size of the body, bytes.
    pub(crate) length: u64,
    /// Only if there is nothing yet (RFC 9110 section 13.1.2).
    pub(crate) create_only: bool,
}

/// What a server said.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) remarks: Remarks,
    /// Where it says that the file belongs.
    pub(crate) location: Option<HeaderValue>,
    /// The methods it takes there.
    pub(crate) allow: Option<HeaderValue>,
}

impl Answer {
    pub(super) fn new(status: StatusCode, headers: &HeaderMap) -> Self {
        let header = |name| headers.get(name).cloned();
        Self {
            status,
            remarks: Remarks::of(headers),
            location: header(LOCATION),
            allow: header(ALLOW),
        }
    }

    /// The URL of a redirect from `from`.
    ///
    /// # Errors
    /// There is none, or none that may be followed.
    pub(crate) fn next(&self, from: &Url) -> Result<Url, Failure> {
        match &self.location {
            Some(location) => next_url(from, location),
            None => Err(Failure::server("the server redirects, but not where to")),
        }
    }
}

impl HttpClient {
    /// A client whose connections are under the sender lever. Each carries one
    /// request, so that what it acknowledges is of that request.
    ///
    /// Who sends a body hears nothing for as long as that takes, so silence is
    /// no reason to give a connection up: whoever waits for the answer has to
    /// see whether the body moves.
    ///
    /// # Errors
    /// When the certificate or netrc file cannot be read.
    pub(crate) fn for_uploads(
        settings: &HttpSettings,
        tap: SendTap,
    ) -> Result<Self, TransferError> {
        let builder = Client::builder().pool_max_idle_per_host(0);
        Self::built(builder, settings, Tap::Send(tap))
    }

    /// The same, but a connection carries one request after the other; up to
    /// `connections` to one host are kept open.
    ///
    /// # Errors
    /// When the certificate or netrc file cannot be read.
    pub(crate) fn for_many_uploads(
        settings: &HttpSettings,
        tap: SendTap,
        connections: u32,
    ) -> Result<Self, TransferError> {
        let pool = Client::builder().pool_max_idle_per_host(connections as usize);
        let builder = match settings.stall_timeout {
            // The kernel sees what is sent and not acknowledged.
            Some(limit) => pool.tcp_user_timeout(limit),
            None => pool,
        };
        Self::built(builder, settings, Tap::Send(tap))
    }

    /// Sends a request as it is.
    pub(crate) async fn carried(
        &self,
        request: http::Request<reqwest::Body>,
    ) -> Result<reqwest::Response, Failure> {
        let request = reqwest::Request::try_from(request).map_err(Failure::from)?;
        let request = reqwest::RequestBuilder::from_parts(self.client.clone(), request);
        self.send(request).await
    }

    /// Sends a PUT with this body. The answer may come before all of the body
    /// has been taken.
    pub(crate) async fn put<B>(&self, put: &Put<'_>, body: B) -> Result<Answer, Failure>
    where
        B: http_body::Body<Data = bytes::Bytes> + Send + Sync + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let mut request = self
            .client
            .put(without_credentials(put.url))
            .header(CONTENT_LENGTH, put.length)
            .body(reqwest::Body::wrap(body));
        if put.create_only {
            request = request.header(IF_NONE_MATCH, "*");
        }
        let request = self.introduced(request, put.named, put.url);
        let response = self.send(request).await?;
        Ok(Answer::new(response.status(), response.headers()))
    }

    /// Asks whether there is something at a URL.
    pub(crate) async fn head(&self, named: &Url, url: &Url) -> Result<Answer, Failure> {
        let request = self.client.head(without_credentials(url));
        let request = self.introduced(request, named, url);
        let response = self.send(request).await?;
        Ok(Answer::new(response.status(), response.headers()))
    }
}
