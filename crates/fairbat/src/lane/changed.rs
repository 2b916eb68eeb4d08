//! Tells those outside of a lane that something has changed in it.

use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, PoisonError};

use tokio::sync::watch;

/// Tells of changes in a lane: to tasks, and to a thread that waits for a descriptor.
#[derive(Debug, Default)]
pub(super) struct Changed {
    pub(super) tasks: watch::Sender<()>,
    pub(super) thread: Mutex<Option<UnixStream>>,
}

impl Changed {
    pub(super) fn tell(&self) {
        self.tasks.send_replace(());
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mut stream) = thread.as_ref() {
            // If it is full, there is something to hear already.
            let _ = stream.write(&[0]);
        }
    }
}
