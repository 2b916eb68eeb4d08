//! The outside's way to end a run early.

use std::sync::Arc;

use tokio::sync::watch;

/// Ends a run from outside; clones act on the same run.
#[derive(Debug, Clone)]
pub struct Stop {
    interrupted: Arc<watch::Sender<bool>>,
}

impl Stop {
    /// A stop that has not been asked for.
    #[must_use]
    pub fn new() -> Self {
        Self {
            interrupted: Arc::new(watch::Sender::new(false)),
        }
    }

    /// Asks the run to end soon, leaving every transfer resumable.
    pub fn interrupt(&self) {
        self.interrupted.send_replace(true);
    }

    /// Resolves when [`Stop::interrupt`] is called, or has been.
    pub(super) async fn interrupted(&self) {
        // The sender lives in `self`, so waiting cannot fail.
        let _ = self.interrupted.subscribe().wait_for(|stop| *stop).await;
    }
}

impl Default for Stop {
    fn default() -> Self {
        Self::new()
    }
}
