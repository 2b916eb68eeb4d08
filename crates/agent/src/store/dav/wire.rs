//! Requests to a store behind a URL, and what it says when it refuses.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use fairbat::transport::{LaneClient, Received, RequestContext};
use http::header::{ACCEPT_ENCODING, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode, request};
use http_body_util::{BodyExt, Empty, Limited};

use super::super::answer::Answer;
use super::super::connector::read;
use super::super::error::{StoreError, StoreErrorKind};
use super::settings::Login;

/// Of an answer whose content does not matter so much is read, bytes, so that its
/// connection can be used again.
const PASSED_OVER: usize = 64 * 1024;

/// Longest listing of one collection, or page of one, bytes: some 100,000 names.
const LISTING_MOST: usize = 64 * 1024 * 1024;

/// See the module.
#[derive(Debug)]
pub(super) struct Wire {
    carrier: LaneClient,
    authorization: Option<HeaderValue>,
}

/// Why a request was not answered as it was meant to be.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The server refused.
    Refused(Answer),
    /// It was not asked, or did not answer.
    Failed(StoreError),
}

impl Trouble {
    /// What the server said, if it said anything.
    pub(super) fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Refused(answer) => Some(answer.status),
            Self::Failed(_) => None,
        }
    }

    /// What it means; `doing` is what was asked.
    pub(super) fn error(self, doing: &str) -> StoreError {
        match self {
            Self::Refused(answer) => answer.error(doing),
            Self::Failed(error) => StoreError {
                message: format!("{doing}: {}", error.message),
                ..error
            },
        }
    }

    /// The same, where it was asked to change what is under one key. That it may not
    /// says nothing of others: servers forbid single names, and directories.
    pub(super) fn error_of_key(self, doing: &str) -> StoreError {
        let is_forbidden = self.status() == Some(StatusCode::FORBIDDEN);
        let error = self.error(doing);
        match is_forbidden {
            true => StoreError {
                kind: StoreErrorKind::Refused,
                hint: "check whether the server may write there, and takes that name".to_owned(),
                ..error
            },
            false => error,
        }
    }
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Self::Failed(error)
    }
}

impl Wire {
    /// # Errors
    /// Who asks cannot be said in a header.
    pub(super) fn new(carrier: LaneClient, login: &Login) -> Result<Self, StoreError> {
        let authorization = match login {
            Login::Anonymous => None,
            Login::Password { user, password } => {
                let both = BASE64_STANDARD.encode(format!("{user}:{password}"));
                Some(format!("Basic {both}"))
            }
            Login::Token(token) => Some(format!("Bearer {token}")),
        };
        let authorization = authorization.map(|text| {
            let mut value = HeaderValue::try_from(text).map_err(|_| {
                let message = "the token of this store has characters that no token has";
                StoreError::new(StoreErrorKind::Credentials, message)
            })?;
            value.set_sensitive(true);
            Ok::<_, StoreError>(value)
        });
        Ok(Self {
            carrier,
            authorization: authorization.transpose()?,
        })
    }

    /// A request as all are.
    pub(super) fn request(&self, method: Method, url: &str) -> request::Builder {
        let request = Request::builder()
            .method(method)
            .uri(url)
            .header(ACCEPT_ENCODING, "identity");
        match &self.authorization {
            Some(value) => request.header(AUTHORIZATION, value),
            None => request,
        }
    }

    /// A request that stores so many bytes. The length is said of an empty file too:
    /// there are servers that take none without.
    pub(super) fn put(&self, url: &str, length: Option<u64>) -> request::Builder {
        let request = self
            .request(Method::PUT, url)
            .header(CONTENT_TYPE, "application/octet-stream");
        match length {
            Some(length) => request.header(CONTENT_LENGTH, length),
            None => request,
        }
    }

    /// Sends a request, and returns the head of an answer that is a success.
    pub(super) async fn send<B>(
        &self,
        request: request::Builder,
        body: B,
        passage: RequestContext,
    ) -> Result<Response<Received>, Trouble>
    where
        B: http_body::Body<Data = Bytes> + Send + Sync + Unpin + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let request = request
            .body(body)
            .map_err(|error| StoreError::new(StoreErrorKind::Refused, error.to_string()))?;
        let response = self.carrier.carry(request, passage).await;
        let response = response.map_err(StoreError::from)?;
        if response.status().is_success() {
            Ok(response)
        } else {
            Err(Trouble::Refused(read(response).await.1))
        }
    }

    /// Sends a request, and passes over what is in a successful answer.
    pub(super) async fn done<B>(
        &self,
        request: request::Builder,
        body: B,
        passage: RequestContext,
    ) -> Result<Response<()>, Trouble>
    where
        B: http_body::Body<Data = Bytes> + Send + Sync + Unpin + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (head, body) = self.send(request, body, passage).await?.into_parts();
        if head.status == StatusCode::MULTI_STATUS {
            // Of several resources, some of which were refused (RFC 4918, section
            // 13); we never mean more than one.
            let answer = Answer::new(head.status, None, b"");
            return Err(Trouble::Refused(answer));
        }
        // However it ends: what was asked has been done.
        let _ = Limited::new(body, PASSED_OVER).collect().await;
        Ok(Response::from_parts(head, ()))
    }

    /// The same without a body, nor ceilings.
    pub(super) async fn ask(&self, request: request::Builder) -> Result<Response<()>, Trouble> {
        let nothing = Empty::<Bytes>::new();
        self.done(request, nothing, RequestContext::default()).await
    }

    /// Sends a small request, and reads what is in the answer.
    pub(super) async fn listing(
        &self,
        request: request::Builder,
        body: impl Into<Bytes>,
    ) -> Result<(StatusCode, Bytes), Trouble> {
        let body = http_body_util::Full::new(body.into());
        let response = self.send(request, body, RequestContext::default()).await?;
        let status = response.status();
        let body = Limited::new(response.into_body(), LISTING_MOST);
        let read = body.collect().await.map_err(|error| {
            let kind = match error.is::<http_body_util::LengthLimitError>() {
                true => StoreErrorKind::Refused,
                false => StoreErrorKind::Network,
            };
            StoreError::new(kind, error.to_string())
        });
        Ok((status, read?.to_bytes()))
    }
}

/// That an answer was no answer.
pub(super) fn makes_no_sense(doing: &str, why: impl std::fmt::Display) -> StoreError {
    StoreError::new(
        StoreErrorKind::Server,
        format!("{doing}: the answer of the store makes no sense: {why}"),
    )
}
