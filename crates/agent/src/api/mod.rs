//! The API of the agent: HTTP/1.1 over a Unix socket, as `docs/agent-api.md` describes
//! it. Everybody who may open the socket may use all of it.
//!
//! - `listen`: the socket.
//! - `connection`: one connection, and a limit on how long its peer may be idle.
//! - `answer`: the paths, and the answers to requests.
//! - `command`: from the body of a request to a command for the daemon.
//! - `refusal`: the answers that refuse a request.

mod answer;
mod command;
mod connection;
mod listen;
mod refusal;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use fairbat::accept::{AcceptLimits, Accepted, accept_until};
use tokio::net::UnixListener;
use tokio::sync::Semaphore;

use self::answer::{ApiTimeouts, Responder};
use self::connection::{GRACE, serve_connection};
pub use self::listen::listen;
use crate::daemon::handle::Handle;

/// Connections that are served at once.
const MAX_SERVED: usize = 32;

/// Connections beyond these that are answered with 503. Any further connection is
/// closed without an answer.
const MAX_REFUSED: usize = 8;

/// Answers requests until `stop` completes. Answers under way then may still be
/// completed for a short time, and every watched status ends after its last line.
pub async fn serve(listener: UnixListener, handle: Handle, stop: impl Future<Output = ()>) {
    serve_with(ApiTimeouts::default(), listener, handle, stop).await;
}

async fn serve_with(
    timeouts: ApiTimeouts,
    listener: UnixListener,
    handle: Handle,
    stop: impl Future<Output = ()>,
) {
    let served = Arc::new(Semaphore::new(MAX_SERVED));
    let refused = Arc::new(Semaphore::new(MAX_REFUSED));
    let limits = AcceptLimits {
        server: "the API",
        max_connections: Semaphore::MAX_PERMITS,
        grace: GRACE,
    };
    accept_until(
        listener,
        limits,
        stop,
        |accepted: Accepted<UnixListener>| {
            let stopping = accepted.stopping;
            let (permit, responder, idle) = match Arc::clone(&served).try_acquire_owned() {
                Ok(permit) => {
                    let responder = Responder {
                        handle: handle.clone(),
                        timeouts,
                        stopping: stopping.clone(),
                    };
                    (permit, Some(responder), timeouts.idle)
                }
                Err(_) => {
                    let permit = Arc::clone(&refused).try_acquire_owned().ok()?;
                    (permit, None, timeouts.refused)
                }
            };
            Some(async move {
                serve_connection(accepted.stream, responder, idle, stopping).await;
                drop(permit);
            })
        },
    )
    .await;
}
