//! What goes wrong with a store, sorted by what is done about it.

use std::time::Duration;

use fairbat::error::ErrorKind;
use fairbat::http::Failure;

/// The closed set of reasons for which a store does not do what it is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreErrorKind {
    /// The network or the name service: may pass.
    Network,
    /// The store fails for now: may pass.
    Server,
    /// The store wants fewer requests (429, 503, `SlowDown`): passes.
    Busy,
    /// There is no such object.
    Missing,
    /// There is an object already, and it is not to be replaced.
    Exists,
    /// An upload in parts that was begun is not known any more.
    UploadGone,
    /// What was sent is not what arrived, or what is there is not what was
    /// stored.
    Integrity,
    /// Credentials that are wrong or have expired.
    Credentials,
    /// The clock of this machine differs too much from that of the store.
    Clock,
    /// There is no room.
    Full,
    /// Anything else that will not pass.
    Refused,
}

/// Why a store did not do what it was asked: what, and what to do about it.
/// Names no credentials.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct StoreError {
    /// What can be done depends on this.
    pub kind: StoreErrorKind,
    /// One sentence: what failed.
    pub message: String,
    /// One sentence: what to do; empty when there is nothing to advise.
    pub hint: String,
    /// The store's own wish (Retry-After): a minimum.
    pub retry_after: Option<Duration>,
}

impl StoreError {
    /// An error of this kind that says what failed.
    pub fn new(kind: StoreErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            hint: String::new(),
            retry_after: None,
        }
    }

    /// The same error with a piece of advice.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }

    /// Whether the same may go well later.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self.kind {
            StoreErrorKind::Network
            | StoreErrorKind::Server
            | StoreErrorKind::Busy
            | StoreErrorKind::Integrity => true,
            StoreErrorKind::Missing
            | StoreErrorKind::Exists
            | StoreErrorKind::UploadGone
            | StoreErrorKind::Credentials
            | StoreErrorKind::Clock
            | StoreErrorKind::Full
            | StoreErrorKind::Refused => false,
        }
    }

    /// Whether the whole store is concerned, and not one object: nothing else
    /// of a job will go well.
    #[must_use]
    pub fn is_of_store(&self) -> bool {
        matches!(
            self.kind,
            StoreErrorKind::Network
                | StoreErrorKind::Credentials
                | StoreErrorKind::Clock
                | StoreErrorKind::Full
        )
    }
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        let of = |kind| match kind {
            ErrorKind::Network => StoreErrorKind::Network,
            ErrorKind::Server => StoreErrorKind::Server,
            _ => StoreErrorKind::Refused,
        };
        match failure {
            Failure::Transient(transient) => Self {
                kind: if transient.push_back && transient.kind != ErrorKind::Network {
                    StoreErrorKind::Busy
                } else {
                    of(transient.kind)
                },
                message: transient.reason,
                hint: transient.hint.to_owned(),
                retry_after: transient.retry_after,
            },
            Failure::Fatal(error) | Failure::Expired(error) => {
                Self::new(of(error.kind), error.message).with_hint(error.hint)
            }
            Failure::Changed(reason) => Self::new(StoreErrorKind::Integrity, reason),
            Failure::WholeFile => Self::new(
                StoreErrorKind::Server,
                "the store answered a request for a part with the whole",
            ),
        }
    }
}
