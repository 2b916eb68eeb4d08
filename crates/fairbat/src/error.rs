//! What can go wrong with one transfer, sorted by what the user can do.

use serde::Serialize;

/// The reasons for which a transfer ends without its file.
///
/// The kind decides the exit code of `fairbat` and the `kind` of the `error`
/// event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The server said no for good (404, 403, 401, a redirect that may not be
    /// followed): asking again will not help.
    Refused,
    /// The network or the name service failed; worth trying again.
    Network,
    /// The server failed for now (5xx, 429) or broke the protocol; worth
    /// trying again.
    Server,
    /// The bytes are not what was promised: wrong checksum, or content that
    /// kept changing while it was read.
    Integrity,
    /// The local disk: full, read-only, missing directory, no permission.
    Disk,
    /// The file is larger than the user allows, or grows without measure.
    TooLarge,
    /// Stopped by the hard time limit; the part file can be resumed.
    MaxTime,
    /// Stopped by the user; the part file can be resumed.
    Interrupted,
    /// Anything else.
    Other,
}

/// Why a transfer ended without its file: what, where, after how many tries,
/// and what to do about it.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct TransferError {
    /// What the user can do depends on this.
    pub kind: ErrorKind,
    /// One sentence: what failed, where, and after how many tries.
    pub message: String,
    /// One sentence: what to do next; empty when there is nothing to advise.
    pub hint: String,
}

impl TransferError {
    /// An error of this kind that says what failed.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            hint: String::new(),
        }
    }

    /// The same error with a piece of advice.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }
}
