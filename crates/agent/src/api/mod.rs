//! The API of the agent: HTTP/1.1 over a Unix socket, as `docs/agent-api.md` describes
//! it. Everybody who may open the socket may use all of it, perhaps except for restoring.
//!
//! - `listen`: the socket.
//! - `restorers`: the users who may restore.
//! - `connection`: one connection, and a limit on how long its peer may be idle.
//! - `answer`: the paths, and the answers to requests.
//! - `command`: from the body of a request to a command for the daemon.
//! - `refusal`: the answers that refuse a request.

mod answer;
mod command;
mod connection;
mod listen;
mod refusal;
mod restorers;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use fairbat::accept::{AcceptLimits, Accepted, accept_until};
use tokio::net::UnixListener;
use tokio::sync::Semaphore;

use self::answer::{ApiTimeouts, Responder};
use self::connection::{GRACE, serve_connection};
pub use self::listen::{SocketAccess, listen};
pub use self::restorers::Restorers;
use self::restorers::is_trusted;
use crate::connections::Connections;
use crate::daemon::handle::DaemonHandle;

/// Connections of one user that are served at once. So one that watches the status many
/// times does not lock out the others.
const MAX_OF_USER: usize = 32;

/// Connections that are served at once.
const MAX_SERVED: usize = 512;

/// Connections beyond these that are answered with 503. Any further connection is
/// closed without an answer.
const MAX_REFUSED: usize = 8;

/// Answers requests until `stop` completes. Answers under way then may still be
/// completed for a short time, and every watched status ends after its last line.
/// Only `restorers` may restore.
pub async fn serve(
    listener: UnixListener,
    handle: DaemonHandle,
    restorers: Restorers,
    stop: impl Future<Output = ()>,
) {
    serve_with(ApiTimeouts::default(), listener, handle, restorers, stop).await;
}

async fn serve_with(
    timeouts: ApiTimeouts,
    listener: UnixListener,
    handle: DaemonHandle,
    restorers: Restorers,
    stop: impl Future<Output = ()>,
) {
    let connections = Connections::at_most(MAX_OF_USER, MAX_SERVED);
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
            let (stream, stopping) = (accepted.stream, accepted.stopping);
            let (user, permit) = connections.admit(&stream);
            let (permit, responder, idle) = match permit {
                Some(permit) => {
                    let responder = Responder {
                        handle: handle.clone(),
                        timeouts,
                        stopping: stopping.clone(),
                        denied_to_restore: restorers.deny(&stream),
                        may_set_ids: user.is_some_and(is_trusted),
                    };
                    ((Some(permit), None), Some(responder), timeouts.idle)
                }
                None => {
                    let permit = Arc::clone(&refused).try_acquire_owned().ok()?;
                    ((None, Some(permit)), None, timeouts.refused)
                }
            };
            Some(async move {
                serve_connection(stream, user, responder, idle, stopping).await;
                drop(permit);
            })
        },
    )
    .await;
}
