//! The loop under every HTTP server of the workspace: `fairbat serve`, the
//! agent's API on a Unix socket, and the agent's metrics and page.
//!
//! [`accept_until`] accepts connections up to a limit, backs off when the system
//! has no descriptors left, gives each connection a task of its own, and ends
//! gracefully. [`serve_until`] does the same for the HTTP/1.1 connection inside
//! such a task. What a request means, and how a peer is limited, is the
//! server's own business.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::{Body, Incoming};
use hyper::rt::{Read, Write};
use hyper::server::conn::http1;
use hyper::service::HttpService;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

use crate::clock::Clock;

/// Pause after a failed accept. Descriptors or memory are missing then, and
/// that seldom changes within a moment.
const ACCEPT_BACK_OFF: Duration = Duration::from_millis(200);

/// A socket that accepts connections.
pub trait Acceptor: Send {
    /// One connection.
    type Stream: Send;
    /// The address of the other end.
    type Peer: Debug + Send;

    /// Waits for the next connection. Dropping the future loses none.
    ///
    /// # Errors
    /// The error of accept(2).
    fn accept(&self) -> impl Future<Output = io::Result<(Self::Stream, Self::Peer)>> + Send;
}

impl Acceptor for TcpListener {
    type Stream = TcpStream;
    type Peer = SocketAddr;

    async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        Self::accept(self).await
    }
}

impl Acceptor for UnixListener {
    type Stream = UnixStream;
    type Peer = tokio::net::unix::SocketAddr;

    async fn accept(&self) -> io::Result<(UnixStream, Self::Peer)> {
        Self::accept(self).await
    }
}

/// What an accept loop keeps to.
#[derive(Debug, Clone, Copy)]
pub struct AcceptLimits {
    /// The server's name in warnings: "NAME cannot accept connections".
    pub server: &'static str,
    /// Number of [`Accepted::permit`]s, at least 1. While all are taken, further
    /// connections wait in the kernel's queue. A server that answers too many
    /// connections instead of making them wait sets
    /// [`Semaphore::MAX_PERMITS`] here and counts for itself.
    pub max_connections: usize,
    /// Time that connections may still take when the loop has stopped. Those
    /// left after that are broken off.
    pub grace: Duration,
}

/// A new connection.
#[derive(Debug)]
pub struct Accepted<L: Acceptor> {
    /// The connection.
    pub stream: L::Stream,
    /// The address of the other end.
    pub peer: L::Peer,
    /// Counts the connection against [`AcceptLimits::max_connections`] until it
    /// is dropped. The server holds it for as long as the connection counts.
    pub permit: OwnedSemaphorePermit,
    /// Tells when the server stops.
    pub stopping: Stopping,
}

/// Tells connections that their server stops.
#[derive(Debug, Clone)]
pub struct Stopping(watch::Receiver<bool>);

impl Stopping {
    /// Completes when the server stops; at once if it has stopped already.
    pub async fn wait(&mut self) {
        // An error means that the loop is gone, which is a stop as well.
        let _ = self.0.wait_for(|is_stopping| *is_stopping).await;
    }
}

/// Accepts connections until `stop` completes, and returns its output.
///
/// `begin` gets each connection and returns the future that serves it, which
/// runs as a task of its own, or `None` to close the connection unanswered.
/// After `stop` the listener is closed at once, every [`Stopping`] completes,
/// and the tasks have [`AcceptLimits::grace`] to end. Dropping the returned
/// future breaks off all connections.
pub async fn accept_until<L, T, F>(
    listener: L,
    limits: AcceptLimits,
    stop: impl Future<Output = T>,
    mut begin: impl FnMut(Accepted<L>) -> Option<F>,
) -> T
where
    L: Acceptor,
    F: Future<Output = ()> + Send + 'static,
{
    let AcceptLimits { server, grace, .. } = limits;
    let permits = Arc::new(Semaphore::new(limits.max_connections));
    let (stopper, stopping) = watch::channel(false);
    let mut connections = JoinSet::new();
    let mut stop = pin!(stop);
    let (clock, mut warnings) = (Clock::start(), WarningThrottle::default());
    let output = loop {
        let accepting = async {
            let Ok(permit) = Arc::clone(&permits).acquire_owned().await else {
                unreachable!("the semaphore is never closed");
            };
            (permit, listener.accept().await)
        };
        let (permit, accepted) = tokio::select! {
            output = &mut stop => break output,
            Some(_) = connections.join_next() => continue,
            accepted = accepting => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                let stopping = Stopping(stopping.clone());
                let connection = begin(Accepted {
                    stream,
                    peer,
                    permit,
                    stopping,
                });
                if let Some(connection) = connection {
                    connections.spawn(connection);
                }
            }
            // The peer left before its connection was accepted.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => {
                if warnings.is_due(clock.now(), ()) {
                    tracing::warn!("{server} cannot accept connections: {error}; trying again");
                }
                tokio::time::sleep(ACCEPT_BACK_OFF).await;
            }
        }
    };
    drop(listener);
    stopper.send_replace(true);
    let all_ended = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(grace, all_ended).await.is_err() {
        tracing::debug!("{server} breaks off its last connections");
    }
    output
}

/// Serves an HTTP/1.1 connection to its end. When `end` completes first, the
/// response under way may take `grace` more, and the connection is closed.
///
/// # Errors
/// The connection broke, or the peer does not speak HTTP/1.1.
pub async fn serve_until<I, B, S>(
    connection: http1::Connection<I, S>,
    end: impl Future<Output = ()>,
    grace: Duration,
) -> hyper::Result<()>
where
    I: Read + Write + Unpin,
    B: Body + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    S: HttpService<Incoming, ResBody = B>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let mut connection = pin!(connection);
    tokio::select! {
        served = connection.as_mut() => return served,
        () = end => connection.as_mut().graceful_shutdown(),
    }
    match tokio::time::timeout(grace, connection).await {
        Ok(served) => served,
        Err(_) => {
            tracing::debug!("a client takes too long over the last response");
            Ok(())
        }
    }
}

/// Time after which the same warning may be given again.
const WARNING_INTERVAL: Duration = Duration::from_secs(600);

/// Warnings of one kind within [`WARNING_INTERVAL`].
const MAX_WARNINGS: usize = 16;

/// Keeps clients from filling the log: decides which warnings of one kind are
/// given. Each subject has one warning per interval, and all subjects together
/// have [`MAX_WARNINGS`]. Pure.
#[derive(Debug)]
pub(crate) struct WarningThrottle<T> {
    /// Time and subject of the warnings given, the oldest first.
    given: VecDeque<(Duration, T)>,
}

impl<T> Default for WarningThrottle<T> {
    fn default() -> Self {
        Self {
            given: VecDeque::new(),
        }
    }
}

impl<T: PartialEq> WarningThrottle<T> {
    /// Whether to warn of this subject now. If so, the warning counts as given.
    pub(crate) fn is_due(&mut self, now: Duration, subject: T) -> bool {
        self.given
            .retain(|(given, _)| now < *given + WARNING_INTERVAL);
        let is_due =
            self.given.len() < MAX_WARNINGS && self.given.iter().all(|(_, it)| *it != subject);
        if is_due {
            self.given.push_back((now, subject));
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Gives these results, one after the other, and then nothing more.
    struct Script(Mutex<VecDeque<io::Result<u32>>>);

    impl Acceptor for Script {
        type Stream = u32;
        type Peer = ();

        async fn accept(&self) -> io::Result<(u32, ())> {
            let next = self.0.lock().unwrap().pop_front();
            match next {
                Some(result) => result.map(|number| (number, ())),
                None => std::future::pending().await,
            }
        }
    }

    fn script(results: impl IntoIterator<Item = io::Result<u32>>) -> Script {
        Script(Mutex::new(results.into_iter().collect()))
    }

    const LIMITS: AcceptLimits = AcceptLimits {
        server: "a test",
        max_connections: 2,
        grace: Duration::from_millis(50),
    };

    #[tokio::test]
    async fn errors_of_accept_do_not_end_the_loop() {
        let listener = script([
            Err(io::ErrorKind::ConnectionAborted.into()),
            Err(io::Error::from_raw_os_error(24)),
            Ok(7),
        ]);
        let (served, mut was_served) = tokio::sync::mpsc::unbounded_channel();
        let begin = |accepted: Accepted<Script>| {
            served.send(accepted.stream).unwrap();
            None::<std::future::Ready<()>>
        };
        let number = accept_until(listener, LIMITS, was_served.recv(), begin).await;
        assert_eq!(number, Some(7));
    }

    #[tokio::test]
    async fn connections_beyond_the_limit_wait_for_a_permit() {
        let (begun, mut was_begun) = tokio::sync::mpsc::unbounded_channel();
        let begin = |accepted: Accepted<Script>| {
            begun.send(accepted.stream).unwrap();
            Some(async move {
                // The first one ends and frees its permit; the others stay.
                if accepted.stream > 0 {
                    std::future::pending::<()>().await;
                }
                drop(accepted.permit);
            })
        };
        let stop = tokio::time::sleep(Duration::from_secs(1));
        accept_until(script((0..9).map(Ok)), LIMITS, stop, begin).await;
        let numbers: Vec<u32> = std::iter::from_fn(|| was_begun.try_recv().ok()).collect();
        assert_eq!(numbers, [0, 1, 2]);
    }

    #[tokio::test]
    async fn a_stop_is_told_to_connections_and_waits_for_them_a_while() {
        let ended = Arc::new(Mutex::new(Vec::new()));
        let begin = |accepted: Accepted<Script>| {
            let (ended, mut stopping) = (Arc::clone(&ended), accepted.stopping);
            Some(async move {
                stopping.wait().await;
                if accepted.stream == 1 {
                    std::future::pending::<()>().await;
                }
                ended.lock().unwrap().push(accepted.stream);
            })
        };
        let stop = tokio::time::sleep(Duration::from_secs(1));
        accept_until(script((0..2).map(Ok)), LIMITS, stop, begin).await;
        assert_eq!(*ended.lock().unwrap(), [0]);
    }

    #[test]
    fn each_subject_has_one_warning_per_interval() {
        let mut throttle = WarningThrottle::default();
        let at = Duration::from_secs;
        assert!(throttle.is_due(at(0), "one"));
        assert!(throttle.is_due(at(1), "other"));
        assert!(!throttle.is_due(at(1), "one") && !throttle.is_due(at(599), "one"));
        assert!(throttle.is_due(at(600), "one"));
        assert!(!throttle.is_due(at(600), "other"));
    }

    #[test]
    fn many_subjects_have_some_warnings_together() {
        let mut throttle = WarningThrottle::default();
        let given = |throttle: &mut WarningThrottle<u32>, now| {
            let now = Duration::from_secs(now);
            (0..1000).filter(|n| throttle.is_due(now, *n)).count()
        };
        assert_eq!(given(&mut throttle, 0), MAX_WARNINGS);
        assert_eq!(given(&mut throttle, 599), 0);
        assert_eq!(given(&mut throttle, 600), MAX_WARNINGS);
    }
}
