//! Requests to a server that takes whole files.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use fairbat::transport::{LaneClient, Received, RequestContext};
use futures_util::StreamExt;
use http::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE,
};
use http::{HeaderValue, Method, Request, Response, StatusCode, request};
use http_body::{Body, Frame, SizeHint};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};

use super::location::RootUrl;
use crate::config::Http;
use crate::config::credentials::StoreCredentials;
use crate::store::backend::{BoxError, ContentStream, PieceStream};
use crate::store::error::{RequestError, StoreError, StoreErrorKind, StoreRefusal};

/// How much of an unneeded body is read, bytes. A connection whose answer is read to
/// its end can be used again.
const MAX_DRAINED: usize = 64 * 1024;

/// Longest listing of one collection, or one page of it, bytes: about 100,000 names.
const MAX_LISTING: usize = 64 * 1024 * 1024;

/// The body of a request.
pub(crate) type RequestContent = BoxBody<Bytes, BoxError>;

/// A server, with the credentials for it.
#[derive(Debug)]
pub(crate) struct DavClient {
    client: LaneClient,
    /// The collection of all objects.
    pub(crate) root: RootUrl,
    authorization: Option<HeaderValue>,
}

impl DavClient {
    /// # Errors
    /// The URL is invalid, or the credentials do not fit into a header.
    pub(crate) fn new(
        http: &Http,
        credentials: &StoreCredentials,
        client: LaneClient,
    ) -> Result<Self, StoreError> {
        let authorization = match credentials {
            StoreCredentials::Anonymous | StoreCredentials::Keys { .. } => None,
            StoreCredentials::Password { user, password } => {
                let both = BASE64_STANDARD.encode(format!("{user}:{}", password.expose()));
                Some(format!("Basic {both}"))
            }
            StoreCredentials::Token(token) => Some(format!("Bearer {}", token.expose())),
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
            client,
            root: RootUrl::new(&http.url)?,
            authorization: authorization.transpose()?,
        })
    }

    /// Begins a request, with the headers that all requests have.
    pub(crate) fn request(&self, method: Method, url: &str) -> request::Builder {
        let request = Request::builder()
            .method(method)
            .uri(url)
            .header(ACCEPT_ENCODING, "identity");
        match &self.authorization {
            Some(value) => request.header(AUTHORIZATION, value),
            None => request,
        }
    }

    /// Begins a request about the file under a key.
    ///
    /// # Errors
    /// The key is invalid.
    pub(crate) fn file(&self, method: Method, key: &str) -> Result<request::Builder, StoreError> {
        Ok(self.request(method, &self.root.file(key)?))
    }

    /// Begins a PUT of `content`. The header also states a length of 0: some servers
    /// demand it.
    ///
    /// # Errors
    /// The key is invalid.
    pub(crate) fn put(
        &self,
        key: &str,
        content: &RequestContent,
    ) -> Result<request::Builder, StoreError> {
        let request = self
            .file(Method::PUT, key)?
            .header(CONTENT_TYPE, "application/octet-stream");
        Ok(match content.size_hint().exact() {
            Some(length) => request.header(CONTENT_LENGTH, length),
            None => request,
        })
    }

    /// Sends a request and returns a successful answer.
    async fn send(
        &self,
        request: request::Builder,
        body: RequestContent,
        context: RequestContext,
    ) -> Result<Response<Received>, RequestError> {
        let request = request
            .body(body)
            .map_err(|error| StoreError::new(StoreErrorKind::Refused, error.to_string()))?;
        let response = self.client.send(request, context).await;
        let response = response.map_err(StoreError::from)?;
        if response.status().is_success() {
            Ok(response)
        } else {
            Err(RequestError::Refused(StoreRefusal::read(response).await.1))
        }
    }

    /// Sends a request and drains the body of a successful answer.
    pub(crate) async fn done(
        &self,
        request: request::Builder,
        body: RequestContent,
        context: RequestContext,
    ) -> Result<(), RequestError> {
        let (head, body) = self.send(request, body, context).await?.into_parts();
        if head.status == StatusCode::MULTI_STATUS {
            // Some of several resources were refused (RFC 4918, section 13). All
            // requests here are about one.
            let refusal = StoreRefusal::new(head.status, None, b"");
            return Err(RequestError::Refused(refusal));
        }
        // Errors do not matter here: the server has done what it was asked.
        let _ = Limited::new(body, MAX_DRAINED).collect().await;
        Ok(())
    }

    /// Sends a request without a body and without rate limits.
    pub(crate) async fn ask(&self, request: request::Builder) -> Result<(), RequestError> {
        self.done(request, whole(Bytes::new()), RequestContext::default())
            .await
    }

    /// Fetches a file.
    pub(crate) async fn get(
        &self,
        key: &str,
        context: RequestContext,
    ) -> Result<ContentStream, StoreError> {
        let doing = format!("fetching {key}");
        let request = self.file(Method::GET, key)?;
        let response = self.send(request, whole(Bytes::new()), context).await;
        let response = response.map_err(|error| error.error(&doing))?;
        let encoding = response.headers().get(CONTENT_ENCODING);
        if encoding.is_some_and(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity")) {
            return Err(StoreError::senseless(&doing, "it is encoded"));
        }
        if response.status() != StatusCode::OK {
            return Err(StoreError::senseless(&doing, response.status()));
        }
        let pieces = response.into_body().into_data_stream();
        let pieces = pieces
            .map(move |piece| piece.map_err(|error| StoreError::from(error).while_doing(&doing)));
        Ok(pieces.boxed())
    }

    /// Sends a small request and reads the body of the answer.
    pub(crate) async fn listing(
        &self,
        request: request::Builder,
        body: &'static str,
    ) -> Result<(StatusCode, Bytes), RequestError> {
        let body = whole(body.into());
        let response = self.send(request, body, RequestContext::default()).await?;
        let status = response.status();
        let body = Limited::new(response.into_body(), MAX_LISTING);
        let read = body.collect().await.map_err(|error| {
            let kind = match error.is::<LengthLimitError>() {
                true => StoreErrorKind::Refused,
                false => StoreErrorKind::Network,
            };
            StoreError::new(kind, error.to_string())
        });
        Ok((status, read?.to_bytes()))
    }
}

/// The error of a refused change under one key. That the server forbids it says
/// nothing about other keys: servers forbid single names, and directories.
pub(crate) fn error_of_key(error: RequestError, doing: &str) -> StoreError {
    let is_forbidden = error.status() == Some(StatusCode::FORBIDDEN);
    let error = error.error(doing);
    match is_forbidden {
        true => StoreError {
            kind: StoreErrorKind::Refused,
            hint: "check whether the server may write there, and takes that name".to_owned(),
            ..error
        },
        false => error,
    }
}

/// Whether the server has nothing under the key.
pub(crate) fn is_absent(error: &RequestError) -> bool {
    matches!(
        error.status(),
        Some(StatusCode::NOT_FOUND | StatusCode::GONE)
    )
}

/// A body of content that is in memory.
pub(crate) fn whole(content: Bytes) -> RequestContent {
    Full::new(content).map_err(|never| match never {}).boxed()
}

/// A body of `size` bytes from a stream. A stream of another length is an error.
pub(crate) fn streamed(pieces: PieceStream, size: u64) -> RequestContent {
    StreamBody { pieces, left: size }.boxed()
}

struct StreamBody {
    pieces: PieceStream,
    /// Remaining bytes.
    left: u64,
}

impl Body for StreamBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let piece = match ready!(self.pieces.poll_next_unpin(context)) {
            Some(piece) => piece,
            None if self.left == 0 => return Poll::Ready(None),
            None => Err("the pieces are fewer than their size".into()),
        };
        let piece = piece.and_then(|piece| {
            let left = self.left.checked_sub(piece.len() as u64);
            self.left = left.ok_or("the pieces are more than their size")?;
            Ok(Frame::data(piece))
        });
        Poll::Ready(Some(piece))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
