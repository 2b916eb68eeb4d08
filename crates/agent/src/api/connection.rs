//! One connection of the API. Requests on it are answered one after the other, until
//! the peer leaves or is idle for too long.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use fairbat::accept::{Stopping, serve_until};
use http::{Method, Request};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tokio::time::Sleep;

use super::answer::{Responder, refuse};
use super::refusal::ApiRefusal;

/// Size of the buffers for the head of a request and for an answer, bytes.
const BUFFER: usize = 64 * 1024;

/// Time for the answers that are under way when the agent stops.
pub(crate) const GRACE: Duration = Duration::from_secs(2);

/// Serves a connection of a user until it ends. There is no responder for a connection
/// that is one too many. The peer may be idle for `idle`.
pub(crate) async fn serve_connection(
    stream: UnixStream,
    user: Option<u32>,
    responder: Option<Responder>,
    idle: Duration,
    mut stopping: Stopping,
) {
    let service = service_fn(async |request: Request<Incoming>| {
        let (head, body) = request.into_parts();
        let response = match &responder {
            Some(responder) => responder.answer(&head, body).await,
            None => refuse(&ApiRefusal::too_many()),
        };
        let (method, path) = (&head.method, head.uri.path());
        let status = response.status().as_u16();
        // The log names every command and the user who gave it.
        if *method == Method::POST {
            tracing::info!(user, "{method} {path}: {status}");
        } else {
            tracing::debug!(user, "{method} {path}: {status}");
        }
        Ok::<_, Infallible>(response)
    });
    let stream = TokioIo::new(WriteTimeout::new(stream, idle));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(idle)
        .keep_alive(responder.is_some())
        .max_buf_size(BUFFER)
        .serve_connection(stream, service);
    if let Err(error) = serve_until(connection, stopping.wait(), GRACE).await {
        tracing::debug!(user, "a connection of the API broke: {error}");
    }
}

/// A stream on which a write fails when the peer takes nothing for too long. hyper has
/// a timeout for reading a request, but none for writing an answer.
#[derive(Debug)]
struct WriteTimeout {
    stream: UnixStream,
    timeout: Duration,
    /// Runs since the last write that had to wait.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl WriteTimeout {
    fn new(stream: UnixStream, timeout: Duration) -> Self {
        Self {
            stream,
            timeout,
            waiting: None,
        }
    }

    fn within_time<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waiting = None;
            return written;
        }
        let timeout = self.timeout;
        let waiting = self
            .waiting
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
        let over = waiting.as_mut().poll(context);
        over.map(|()| Err(io::Error::from(io::ErrorKind::TimedOut)))
    }
}

impl AsyncRead for WriteTimeout {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for WriteTimeout {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.within_time(context, written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write_vectored(context, slices);
        this.within_time(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
