//! The connections under `object_store`: those of a carrier, so that every
//! socket has its lever.

use async_trait::async_trait;
use bytes::Bytes;
use fairbat::http::retry_after_of;
use fairbat::transport::{LaneClient, Received};
use http::Response;
use http::header::CONTENT_TYPE;
use http_body_util::{BodyExt, Collected, Full, Limited};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService,
};

use super::answer::Answer;
use super::call::Call;
use super::error::StoreError;

/// Of an answer that is no success so much is read, bytes.
const DOCUMENT_MOST: usize = 64 * 1024;

/// See the module.
#[derive(Debug, Clone)]
pub(super) struct Connector(pub(super) LaneClient);

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

#[async_trait]
impl HttpService for Connector {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let call = Call::current();
        let response = match self.0.carry(request, call.passage()).await {
            Ok(response) => response,
            Err(failure) => {
                let error = StoreError::from(failure);
                call.failed(error.clone());
                // Whether it is tried again is not the library's business.
                return Err(HttpError::new(HttpErrorKind::Unknown, error));
            }
        };
        let status = response.status();
        if status.is_success() || status.is_informational() {
            return Ok(response.map(|body| {
                HttpResponseBody::new(body.map_err(|error| {
                    HttpError::new(HttpErrorKind::Unknown, StoreError::from_broken(error))
                }))
            }));
        }
        let (response, answer) = read(response).await;
        call.refused(answer);
        Ok(response
            .map(|body| HttpResponseBody::new(Full::new(body).map_err(|never| match never {}))))
    }
}

impl StoreError {
    pub(super) fn from_broken(error: fairbat::transport::BrokenOff) -> Self {
        fairbat::http::Failure::from(error).into()
    }
}

/// An answer that is no success, read to its end.
pub(super) async fn read(response: Response<Received>) -> (Response<Bytes>, Answer) {
    let (parts, body) = response.into_parts();
    let body = Limited::new(body, DOCUMENT_MOST).collect().await;
    let body = body.map(Collected::to_bytes).unwrap_or_default();
    let mut answer = Answer::new(parts.status, retry_after_of(&parts.headers), &body);
    let form = parts.headers.get(CONTENT_TYPE);
    if form.is_some_and(|form| form.as_bytes().starts_with(b"text/plain")) {
        answer = answer.with_text(&body);
    }
    (Response::from_parts(parts, body), answer)
}
