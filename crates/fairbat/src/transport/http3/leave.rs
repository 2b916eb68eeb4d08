//! The end of a connection. The packet that tells the server of it leaves some time after the
//! connection was closed: a process that ends before leaves the server waiting.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use dalbe::quic::QuicSender;
use h3::error::Code;
use tokio::runtime::Handle;

use crate::quic::code;

/// A last packet takes microseconds, or waits for the one before it, or for a processor: with 16
/// programs on two of them, that may take 0.1 s. One that does not leave keeps no process from ending.
const PATIENCE: Duration = Duration::from_secs(1);

const LOOK_INTERVAL: Duration = Duration::from_millis(1);

/// Connections whose last packet has not left.
static PRESENT: AtomicUsize = AtomicUsize::new(0);

/// One of the connections that [`say_goodbye`] waits for.
#[derive(Debug)]
struct Presence;

impl Presence {
    fn begin() -> Self {
        PRESENT.fetch_add(1, Ordering::Relaxed);
        Self
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        PRESENT.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Closes a connection when it is dropped.
#[derive(Debug)]
pub(super) struct Closing {
    connection: quinn::Connection,
    sender: QuicSender,
    /// None once it is being dropped.
    presence: Option<Presence>,
}

impl Closing {
    pub(super) fn new(connection: quinn::Connection, sender: QuicSender) -> Self {
        Self {
            connection,
            sender,
            presence: Some(Presence::begin()),
        }
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        let is_over = self.connection.close_reason().is_some();
        let sent = |connection: &quinn::Connection| connection.stats().udp_tx.datagrams;
        let before = sent(&self.connection);
        self.sender.leave();
        close(&self.connection);
        let (connection, presence) = (self.connection.clone(), self.presence.take());
        if let Ok(runtime) = Handle::try_current()
            && !is_over
        {
            runtime.spawn(async move {
                let left = async {
                    loop {
                        // Another packet may have left just before it was closed.
                        tokio::time::sleep(LOOK_INTERVAL).await;
                        if sent(&connection) > before {
                            break;
                        }
                    }
                };
                let _ = tokio::time::timeout(PATIENCE, left).await;
                drop(presence);
            });
        }
    }
}

/// Closes a connection with which nothing is wrong.
pub(super) fn close(connection: &quinn::Connection) {
    connection.close(code(Code::H3_NO_ERROR), b"");
}

/// Waits until the servers have been told of the QUIC connections that this process has left, for a
/// second at most. Without this, a process that ends leaves them to wait for more.
pub async fn say_goodbye() {
    let all = async {
        while PRESENT.load(Ordering::Relaxed) > 0 {
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    };
    let _ = tokio::time::timeout(PATIENCE, all).await;
}
