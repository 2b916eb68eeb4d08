//! The signals that ask a process to end.
//!
//! It must not know what is ended, or how.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGINT and SIGTERM, caught from now on.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Begins to listen; needs a runtime.
    ///
    /// # Errors
    /// The system refuses.
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for the next of them.
    pub(crate) async fn next(&mut self) {
        self.which().await;
    }

    /// Waits for the next of them, and says which it is.
    pub(crate) async fn which(&mut self) -> Asked {
        tokio::select! {
            _ = self.interrupt.recv() => Asked::Interrupt,
            _ = self.terminate.recv() => Asked::Terminate,
        }
    }
}

/// The signal that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// SIGINT: a person does not want to wait.
    Interrupt,
    /// SIGTERM: whoever manages the process ends it.
    Terminate,
}
