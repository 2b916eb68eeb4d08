//! What a connection carries now: told by those who answer requests, watched
//! by those who hold it back. Knows nothing of either.

use tokio::sync::watch;

use super::pace::Manner;

/// The response under way on a connection, if there is one.
#[derive(Debug, Clone)]
pub(super) struct Flow {
    now: watch::Sender<Option<Manner>>,
}

/// A response is under way for as long as this lives.
#[derive(Debug)]
pub(super) struct Sending {
    flow: Flow,
}

impl Flow {
    /// For a new connection, and how to watch it.
    pub(super) fn new() -> (Self, watch::Receiver<Option<Manner>>) {
        let (now, watched) = watch::channel(None);
        (Self { now }, watched)
    }

    /// A response begins.
    pub(super) fn begin(&self, manner: Manner) -> Sending {
        self.now.send_replace(Some(manner));
        Sending { flow: self.clone() }
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.flow.now.send_replace(None);
    }
}
