//! The answers to requests, without the sockets that they come from.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fairbat::accept::Stopping;
use fairbat::machine::LaneDirection;
use futures_util::stream::{Stream, unfold};
use http::header::ALLOW;
use http::request::Parts;
use http::{HeaderValue, Method, StatusCode};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, LengthLimitError, Limited, StreamBody};
use hyper::body::Incoming;
use serde::Serialize;
use tokio::sync::watch;

use super::command::{CommandReader, HiddenCredentials, read_command, read_host, reader};
use super::refusal::{ApiRefusal, MAX_BODY};
use crate::daemon::handle::{CommandAccepted, DaemonHandle, TaskCommand};
use crate::fleet::SiteHandle;
use crate::response::{AgentResponse, JSON, json, response};
use crate::status::AgentStatus;

/// How long the API waits for its peers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ApiTimeouts {
    /// Until a request with its body has arrived, and until the peer takes some of an
    /// answer.
    pub(crate) idle: Duration,
    /// The same for a connection that is one too many.
    pub(crate) refused: Duration,
    /// Between two lines of a watched status.
    pub(crate) lines: Duration,
}

impl Default for ApiTimeouts {
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(60),
            refused: Duration::from_secs(5),
            lines: Duration::from_secs(1),
        }
    }
}

/// What a path of the API is about.
#[derive(Debug, Clone, Copy)]
enum Route {
    Status,
    /// The last hour of a lane.
    History(LaneDirection),
    /// The site.
    Fleet,
    /// A host of the site is held (true) or released.
    Hold(bool),
    Command(CommandReader),
}

impl Route {
    fn of(path: &str) -> Option<Self> {
        Some(match path {
            "/v1/status" => Self::Status,
            "/v1/fleet" => Self::Fleet,
            "/v1/fleet/hold" => Self::Hold(true),
            "/v1/fleet/release" => Self::Hold(false),
            "/v1/history/push" => Self::History(LaneDirection::Push),
            "/v1/history/pull" => Self::History(LaneDirection::Pull),
            _ => Self::Command(reader(path)?),
        })
    }

    /// The one method that the path takes.
    fn method(self) -> Method {
        match self {
            Self::Status | Self::History(_) | Self::Fleet => Method::GET,
            Self::Command(_) | Self::Hold(_) => Method::POST,
        }
    }
}

/// Answers the requests of a connection.
#[derive(Debug)]
pub(crate) struct Responder {
    pub(crate) handle: DaemonHandle,
    pub(crate) timeouts: ApiTimeouts,
    pub(crate) stopping: Stopping,
    /// The group that the peer would have to be in to restore; `None` if it may.
    pub(crate) denied_to_restore: Option<String>,
    /// Whether a restore for the peer may set the bits of other users.
    pub(crate) may_set_ids: bool,
}

impl Responder {
    /// Answers a request.
    pub(crate) async fn answer(&self, head: &Parts, body: Incoming) -> AgentResponse {
        let answer = self.accept(head, body).await;
        answer.unwrap_or_else(|refusal| refuse(&refusal))
    }

    async fn accept(&self, head: &Parts, body: Incoming) -> Result<AgentResponse, ApiRefusal> {
        let route = Route::of(head.uri.path()).ok_or_else(ApiRefusal::no_such_path)?;
        if head.method != route.method() {
            return Err(ApiRefusal::method(route.method()));
        }
        match (route, head.uri.query()) {
            (Route::Status, None) => Ok(ok(&*self.handle.status())),
            (Route::Status, Some("watch")) => Ok(self.watch()),
            (Route::History(direction), None) => Ok(ok(&self.handle.history(direction))),
            (Route::Fleet, None) => Ok(ok(&self.site()?.status().await?)),
            (Route::Hold(held), None) => {
                let body = whole_body(body, self.timeouts.idle).await?;
                let host = read_host(&body)?;
                Ok(ok(&self.site()?.hold(host, held).await?))
            }
            (Route::Command(read), None) => {
                let body = whole_body(body, self.timeouts.idle).await?;
                Ok(ok(&self.command(read, &body).await?))
            }
            (_, Some(_)) => Err(ApiRefusal::malformed("this query means nothing here")
                .with_hint("/v1/status takes ?watch, and nothing else takes any")),
        }
    }

    fn site(&self) -> Result<&SiteHandle, ApiRefusal> {
        self.handle.site().ok_or_else(ApiRefusal::no_site)
    }

    async fn command(
        &self,
        read: CommandReader,
        body: &[u8],
    ) -> Result<CommandAccepted, ApiRefusal> {
        let command = read_command(read, body)?;
        if let TaskCommand::Restore { setuid: true, .. } = &command
            && !self.may_set_ids
        {
            return Err(ApiRefusal::no_setuid());
        }
        if let (TaskCommand::Restore { .. }, Some(group)) = (&command, &self.denied_to_restore) {
            return Err(ApiRefusal::denied(group));
        }
        let hidden = HiddenCredentials::of(&command);
        let done = self.handle.command(command).await;
        done.map_err(|error| hidden.remove_from(error).into())
    }

    /// JSON lines: the status now, and each change of it.
    fn watch(&self) -> AgentResponse {
        let lines = status_lines(
            self.handle.watch(),
            self.stopping.clone(),
            self.timeouts.lines,
        );
        let lines = StreamBody::new(lines).boxed_unsync();
        response(StatusCode::OK, "application/x-ndjson", Bytes::new()).map(|_| lines)
    }
}

pub(crate) fn refuse(refusal: &ApiRefusal) -> AgentResponse {
    let mut response = response(refusal.status, JSON, json(refusal));
    let allow = refusal.allow.as_ref().map(Method::as_str);
    if let Some(Ok(allow)) = allow.map(HeaderValue::from_str) {
        response.headers_mut().insert(ALLOW, allow);
    }
    response
}

fn ok(value: &impl Serialize) -> AgentResponse {
    response(StatusCode::OK, JSON, json(value))
}

/// So much of a body is read, although it is too long: a client that is still sending when its
/// connection ends may lose the answer.
const MAX_READ: usize = 1024 * 1024;

/// Reads a body of at most [`MAX_BODY`] bytes, within `timeout`.
///
/// # Errors
/// The body is too long, does not arrive in time, or breaks off.
async fn whole_body(body: Incoming, timeout: Duration) -> Result<Bytes, ApiRefusal> {
    if body.size_hint().lower() > MAX_READ as u64 {
        return Err(ApiRefusal::too_large());
    }
    let collected = Limited::new(body, MAX_READ).collect();
    match tokio::time::timeout(timeout, collected).await {
        Ok(Ok(whole)) => Some(whole.to_bytes())
            .filter(|whole| whole.len() <= MAX_BODY)
            .ok_or_else(ApiRefusal::too_large),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(ApiRefusal::too_large()),
        Ok(Err(_)) => Err(ApiRefusal::malformed("the body breaks off")),
        Err(_) => Err(ApiRefusal::malformed("the body does not come")),
    }
}

/// The status now, and then each change, with at least `pause` between two lines. If it
/// changes more often, the last change counts. The stream ends with the daemon or the
/// API.
fn status_lines(
    status: watch::Receiver<Arc<AgentStatus>>,
    stopping: Stopping,
    pause: Duration,
) -> impl Stream<Item = Result<Frame<Bytes>, Infallible>> {
    let first = true;
    unfold(
        (status, stopping, first),
        move |(mut status, mut stopping, first)| async move {
            if !first {
                let change = async {
                    tokio::time::sleep(pause).await;
                    status.changed().await.ok()
                };
                tokio::select! {
                    change = change => change?,
                    () = stopping.wait() => return None,
                }
            }
            let latest = Arc::clone(&status.borrow_and_update());
            Some((Ok(Frame::data(json(&*latest))), (status, stopping, false)))
        },
    )
}
