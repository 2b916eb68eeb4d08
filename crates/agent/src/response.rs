//! The HTTP response that the API and the web server share.

use std::convert::Infallible;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use serde::Serialize;

/// A response with a body of one piece or of many.
pub(crate) type AgentResponse = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// Media type of JSON (RFC 8259).
pub(crate) const JSON: &str = "application/json";

/// A response with a body of one piece.
pub(crate) fn response(
    status: StatusCode,
    media_type: &'static str,
    body: impl Into<Bytes>,
) -> AgentResponse {
    let mut response = Response::new(Full::new(body.into()).boxed_unsync());
    *response.status_mut() = status;
    let media_type = HeaderValue::from_static(media_type);
    response.headers_mut().insert(CONTENT_TYPE, media_type);
    response
}

/// A value as one line of JSON.
pub(crate) fn json(value: &impl Serialize) -> Bytes {
    let mut line = serde_json::to_vec(value).expect("texts, numbers and lists only");
    line.push(b'\n');
    line.into()
}
