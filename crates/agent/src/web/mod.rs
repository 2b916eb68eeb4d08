//! What the agent shows over HTTP: metrics for Prometheus, a page for people, and
//! what the page's script reads. Nothing can be changed here.
//!
//! Everybody who reaches the address may look: there is neither password nor TLS,
//! which is why the address is one of this machine unless somebody says otherwise.
//! Pages of others, which a browser of this machine may have open, see nothing:
//! names that lead here are refused (see `host`), and no other origin is allowed.

mod answer;
mod history;
mod host;
mod page;
mod series;

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use jiff::tz::TimeZone;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use self::answer::answer;
use crate::daemon::handle::Handle;
use crate::metrics::Metrics;

/// Connections at once; others wait in the kernel's queue.
const CONNECTIONS: usize = 64;

/// How long a client may take for the head of a request, and be idle before the
/// next: more than the usual 15 s between two scrapes.
const HEAD: Duration = Duration::from_secs(30);

/// How long a connection lasts at most; then it ends after the response that is
/// under way.
const LIFE: Duration = Duration::from_secs(120);

/// How long that response may still take, and those at the end of the agent.
const GRACE: Duration = Duration::from_secs(5);

/// Bytes that are gathered of a request: a head that makes sense.
const BUFFER: usize = 16 * 1024;

/// Pause after a failed accept: what is missing (descriptors, memory) is
/// seldom there a moment later.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// What all connections share.
#[derive(Debug)]
struct Site {
    handle: Handle,
    metrics: Metrics,
    /// In which the page tells the time.
    zone: TimeZone,
}

/// Answers until `stop` resolves, and then lets go of everybody within seconds.
/// Times of day are those of `zone`.
pub async fn serve(
    listener: TcpListener,
    handle: Handle,
    zone: TimeZone,
    stop: impl Future<Output = ()>,
) {
    let site = Arc::new(Site {
        handle,
        metrics: Metrics::new(),
        zone,
    });
    let free = Arc::new(Semaphore::new(CONNECTIONS));
    let stopping = Arc::new(Semaphore::new(0));
    let mut visits = JoinSet::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        let entered = async {
            let place = Arc::clone(&free).acquire_owned().await;
            (place, listener.accept().await)
        };
        tokio::select! {
            () = &mut stop => break,
            Some(_) = visits.join_next() => {}
            (place, accepted) = entered => match accepted {
                Ok((stream, _)) => {
                    let (site, stopping) = (Arc::clone(&site), Arc::clone(&stopping));
                    visits.spawn(async move {
                        visit(site, stream, &stopping).await;
                        drop(place);
                    });
                }
                // Gone before it was accepted.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => {
                    tracing::warn!("metrics and page: cannot accept a connection: {error}");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    stopping.close();
    while visits.join_next().await.is_some() {}
}

/// Serves one connection, until it ends or has lasted long enough, or `stopping`
/// is closed.
async fn visit(site: Arc<Site>, stream: TcpStream, stopping: &Semaphore) {
    let service = service_fn(async |request: Request<Incoming>| {
        let (request, _) = request.into_parts();
        Ok::<_, Infallible>(answer(&site, &request))
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = &mut connection => Some(ended),
        () = tokio::time::sleep(LIFE) => None,
        _ = stopping.acquire() => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            connection.as_mut().graceful_shutdown();
            match tokio::time::timeout(GRACE, connection).await {
                Ok(ended) => ended,
                Err(_) => return tracing::debug!("metrics and page: a client takes too long"),
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!("metrics and page: a connection broke: {error}");
    }
}
