//! How the thread of a contender learns that the run is over.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

/// How often it is looked whether a transfer has ended: how exactly the
/// moment of its end is known.
const INTERVAL: Duration = Duration::from_millis(10);

/// Held by whoever ends the run, by dropping it.
#[derive(Debug)]
pub(super) struct End {
    _sender: Sender<()>,
}

/// Held by the thread of the contender.
#[derive(Debug)]
pub(super) struct Over {
    receiver: Receiver<()>,
}

impl Over {
    pub(super) fn pair() -> (End, Self) {
        let (sender, receiver) = mpsc::channel();
        (End { _sender: sender }, Self { receiver })
    }

    /// Waits for so long; true as soon as the run is over.
    pub(super) fn within(&self, time: Duration) -> bool {
        self.receiver.recv_timeout(time) != Err(RecvTimeoutError::Timeout)
    }

    /// Waits until the run is over (true), or until `is_done` (false).
    pub(super) fn comes_before(&self, mut is_done: impl FnMut() -> bool) -> bool {
        loop {
            if is_done() {
                return false;
            }
            if self.within(INTERVAL) {
                return true;
            }
        }
    }
}
