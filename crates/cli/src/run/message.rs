//! What the worker tells the front, one JSON object per line.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

use rustix::process::WaitStatus;
use serde::{Deserialize, Serialize};

/// The exit code if fairbat itself fails, as of `env` and `nice`.
pub(super) const FAILED: i32 = 125;

/// A message of the worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "snake_case")]
pub(super) enum WorkerMessage {
    /// The command runs.
    Started {
        /// Its process.
        pid: i32,
    },
    /// Nobody writes to the stream that passes through, or nobody reads it.
    Closed,
    /// All is over for the front, which ends like this.
    Ended(Ending),
}

/// How the command has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Ending {
    /// With this exit status.
    Exit(i32),
    /// By this signal.
    Signal(i32),
}

impl Ending {
    /// As the kernel tells it; `None` while the process goes on.
    pub(super) fn of(status: WaitStatus) -> Option<Self> {
        let exit = status.exit_status().map(Self::Exit);
        exit.or_else(|| status.terminating_signal().map(Self::Signal))
    }
}

/// Sends a message; one that cannot be sent is of no use to anybody.
pub(super) fn send(mut channel: &UnixStream, message: WorkerMessage) {
    if let Ok(text) = serde_json::to_string(&message) {
        let _ = channel.write_all((text + "\n").as_bytes());
    }
}

/// The messages that come, until the other end is gone.
pub(super) fn received(channel: UnixStream) -> impl Iterator<Item = WorkerMessage> {
    let lines = BufReader::new(channel).lines().map_while(io::Result::ok);
    lines.filter_map(|line| serde_json::from_str(&line).ok())
}
