//! One connection of the API: requests on it are answered one after the other, for
//! as long as somebody is there. Knows nothing of what is asked.

use std::convert::Infallible;
use std::pin::pin;
use std::time::Duration;

use http::{Method, Request};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::UnixStream;
use tokio::sync::watch;

use super::answer::{self, Answering};
use super::over;
use super::patient::Patient;

/// Bytes that are gathered of a request's head, and of an answer.
const BUFFER: usize = 64 * 1024;

/// See the module.
#[derive(Debug)]
pub(super) struct Visit {
    /// The connection.
    pub(super) stream: UnixStream,
    /// `None` if all that it is told is that there are too many connections.
    pub(super) answering: Option<Answering>,
    /// How long it may be silent.
    pub(super) idle: Duration,
    /// Whether the agent stops.
    pub(super) end: watch::Receiver<bool>,
}

impl Visit {
    /// Serves it until it ends.
    pub(super) async fn serve(self) {
        let Self {
            stream,
            answering,
            idle,
            mut end,
        } = self;
        let user = stream.peer_cred().map(|peer| peer.uid()).ok();
        let service = service_fn(async |request: Request<Incoming>| {
            let (head, body) = request.into_parts();
            let response = match &answering {
                Some(answering) => answering.answer(&head, body).await,
                None => answer::too_many(),
            };
            let (method, path) = (&head.method, head.uri.path());
            let status = response.status().as_u16();
            // What changes something is worth a line, by whom included.
            if *method == Method::POST {
                tracing::info!(user, "{method} {path}: {status}");
            } else {
                tracing::debug!(user, "{method} {path}: {status}");
            }
            Ok::<_, Infallible>(response)
        });
        let stream = TokioIo::new(Patient::new(stream, idle));
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(idle)
            .keep_alive(answering.is_some())
            .max_buf_size(BUFFER)
            .serve_connection(stream, service);
        let mut connection = pin!(connection);
        let served = tokio::select! {
            served = connection.as_mut() => served,
            () = over(&mut end) => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = served {
            tracing::debug!(user, "a connection of the API broke: {error}");
        }
    }
}
