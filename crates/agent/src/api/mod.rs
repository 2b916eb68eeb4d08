//! The API of the agent: HTTP/1.1 over a Unix socket, as `docs/agent-api.md`
//! describes it. Whoever may open the socket may use all of it.
//!
//! It must not know how anything is done: that is the daemon's business, behind its
//! [`Handle`].

mod answer;
mod ask;
mod body;
mod connection;
mod hiding;
mod listen;
mod patient;
mod refusal;
mod route;
#[cfg(test)]
mod tests;
mod watching;

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::UnixListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use self::answer::Answering;
use self::connection::Visit;
pub use self::listen::listen;
use crate::daemon::handle::Handle;

/// Connections that are served at once.
const SERVED: usize = 32;

/// Connections beyond these that are told so at once; what comes on top is closed
/// without an answer.
const REFUSED: usize = 8;

/// Pause after a failed accept: what is missing (descriptors, memory) is seldom
/// there a moment later.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// For so long answers that are under way may go on when the agent stops.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// How long others are waited for.
#[derive(Debug, Clone, Copy)]
struct Patience {
    /// Until a request has come, its body included, and until some of an answer
    /// is taken.
    idle: Duration,
    /// The same of those who are only told that there are too many.
    refused: Duration,
    /// Between two lines for those who watch.
    lines: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(60),
            refused: Duration::from_secs(5),
            lines: Duration::from_secs(1),
        }
    }
}

/// Answers requests until `stop` completes. Of what is under way then, answers are
/// given to their end, for a short while, and those who watch are told that it was
/// the last line.
pub async fn serve(listener: UnixListener, handle: Handle, stop: impl Future<Output = ()>) {
    serve_with(Patience::default(), listener, handle, stop).await;
}

async fn serve_with(
    patience: Patience,
    listener: UnixListener,
    handle: Handle,
    stop: impl Future<Output = ()>,
) {
    let served = Arc::new(Semaphore::new(SERVED));
    let refused = Arc::new(Semaphore::new(REFUSED));
    let (ending, end) = watch::channel(false);
    let mut connections = JoinSet::new();
    let mut stop = pin!(stop);
    let mut is_failing = false;
    loop {
        let accepted = tokio::select! {
            () = &mut stop => break,
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                is_failing = false;
                let (place, answering, idle) = match Arc::clone(&served).try_acquire_owned() {
                    Ok(place) => {
                        let answering = Answering::new(handle.clone(), patience, end.clone());
                        (place, Some(answering), patience.idle)
                    }
                    Err(_) => match Arc::clone(&refused).try_acquire_owned() {
                        Ok(place) => (place, None, patience.refused),
                        Err(_) => continue,
                    },
                };
                let visit = Visit {
                    stream,
                    answering,
                    idle,
                    end: end.clone(),
                };
                connections.spawn(async move {
                    visit.serve().await;
                    drop(place);
                });
            }
            // Gone before it was accepted.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => {
                if !is_failing {
                    tracing::warn!("the API cannot accept connections: {error}; trying again");
                }
                is_failing = true;
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    ending.send_replace(true);
    let all = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(LAST_ANSWERS, all).await.is_err() {
        tracing::debug!("some connections of the API are broken off");
    }
}

/// Completes when the API stops.
async fn over(end: &mut watch::Receiver<bool>) {
    // An error is that nobody is there any more to say so.
    let _ = end.wait_for(|is_ending| *is_ending).await;
}
