//! In place of `http3` in a build without it: all requests go over TCP.

use reqwest::Response;
use rustls::ClientConfig;
use url::Url;

use super::tap::Tap;
use crate::http::Failure;
use crate::settings::{Http3Policy, HttpSettings};

/// Speaks no HTTP/3.
#[derive(Debug, Clone)]
pub(crate) struct Http3 {
    policy: Http3Policy,
}

/// There is nobody to tell.
#[allow(clippy::unused_async, reason = "as the one with HTTP/3")]
pub async fn say_goodbye() {}

/// How a request goes on.
pub(crate) enum Sent {
    /// It was answered, which never happens.
    #[allow(dead_code, reason = "who sends a request has to be ready for it")]
    Answered(Response),
    /// It has not been sent: send it over TCP.
    OverTcp(reqwest::Request),
}

impl Http3 {
    pub(crate) fn new(
        settings: &HttpSettings,
        _tls: &ClientConfig,
        _connections: u32,
        _tap: &Tap,
    ) -> Self {
        let policy = settings.http3;
        Self { policy }
    }

    pub(crate) fn with_connections(&self, _connections: u32, _tap: &Tap) -> Self {
        self.clone()
    }

    /// # Errors
    /// TCP is no choice.
    #[allow(clippy::unused_async, reason = "as the one with HTTP/3")]
    pub(crate) async fn send(&self, request: reqwest::Request) -> Result<Sent, Failure> {
        match self.policy {
            Http3Policy::Only => Err(Failure::refused(
                "this build speaks no HTTP/3",
                "leave out --http3 only, or build it with the feature http3",
            )),
            Http3Policy::Auto | Http3Policy::Never => Ok(Sent::OverTcp(request)),
        }
    }

    pub(crate) fn heed(&self, _url: &Url, _response: &Response) {}
}
