//! What a request is answered. Knows nothing of sockets.

use std::convert::Infallible;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Incoming;
use serde::Serialize;
use tokio::sync::watch;

use super::hiding::Hiding;
use super::refusal::Refusal;
use super::route::{Order, Route};
use super::{Patience, ask, body, watching};
use crate::daemon::handle::{CommandAccepted, Handle};

/// The body of an answer.
pub(super) type Payload = UnsyncBoxBody<Bytes, Infallible>;

/// What answers the requests of a connection.
#[derive(Debug)]
pub(super) struct Answering {
    handle: Handle,
    patience: Patience,
    /// Whether the agent stops.
    end: watch::Receiver<bool>,
}

/// A new task, or one that was named.
#[derive(Debug, Serialize)]
struct Done {
    id: String,
}

impl Answering {
    pub(super) fn new(handle: Handle, patience: Patience, end: watch::Receiver<bool>) -> Self {
        Self {
            handle,
            patience,
            end,
        }
    }

    /// Answers a request.
    pub(super) async fn answer(&self, head: &Parts, body: Incoming) -> Response<Payload> {
        let answered = self.answered(head, body).await;
        answered.unwrap_or_else(|refusal| refused(&refusal))
    }

    async fn answered(&self, head: &Parts, body: Incoming) -> Result<Response<Payload>, Refusal> {
        let route = Route::of(head.uri.path()).ok_or_else(Refusal::no_such_path)?;
        if head.method != route.method() {
            return Err(Refusal::method(route.method()));
        }
        match (route, head.uri.query()) {
            (Route::Status, None) => Ok(ok(&*self.handle.status())),
            (Route::Status, Some("watch")) => {
                let (status, end) = (self.handle.watch(), self.end.clone());
                let lines = watching::lines(status, end, self.patience.lines);
                let lines = StreamBody::new(lines).boxed_unsync();
                Ok(with(StatusCode::OK, "application/x-ndjson", lines))
            }
            (Route::History(direction), None) => Ok(ok(&self.handle.history(direction))),
            (Route::Order(order), None) => {
                let body = body::whole(body, self.patience.idle).await?;
                let accepted = self.order(order, &body).await?;
                Ok(ok(&Done { id: accepted.id }))
            }
            (_, Some(_)) => Err(Refusal::malformed("this query means nothing here")
                .with_hint("/v1/status takes ?watch, and nothing else takes any")),
        }
    }

    async fn order(&self, order: Order, body: &[u8]) -> Result<CommandAccepted, Refusal> {
        let command = ask::command(order, body)?;
        let hiding = Hiding::of(&command);
        let done = self.handle.command(command).await;
        done.map_err(|refused| hiding.of_refused(refused).into())
    }
}

/// Answers any request of a connection that is one too many.
pub(super) fn too_many() -> Response<Payload> {
    refused(&Refusal::too_many())
}

fn refused(refusal: &Refusal) -> Response<Payload> {
    let mut response = document(refusal.status, &refusal.document);
    let allow = refusal.allow.as_ref().map(http::Method::as_str);
    if let Some(Ok(allow)) = allow.map(HeaderValue::from_str) {
        response.headers_mut().insert(ALLOW, allow);
    }
    response
}

fn ok(value: &impl Serialize) -> Response<Payload> {
    document(StatusCode::OK, value)
}

fn document(status: StatusCode, value: &impl Serialize) -> Response<Payload> {
    let body = Full::new(json(value)).boxed_unsync();
    with(status, "application/json", body)
}

fn with(status: StatusCode, media_type: &'static str, body: Payload) -> Response<Payload> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let media_type = HeaderValue::from_static(media_type);
    response.headers_mut().insert(CONTENT_TYPE, media_type);
    response
}

/// A value as one line of JSON.
pub(super) fn json(value: &impl Serialize) -> Bytes {
    let mut line = serde_json::to_vec(value).expect("texts, numbers and lists only");
    line.push(b'\n');
    line.into()
}
