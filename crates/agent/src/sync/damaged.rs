//! What the store of a job lacks or has damaged, as far as checks have found.

use jiff::Timestamp;

use crate::entry::TreePath;
use crate::object_name::OWN;
use crate::state::{JobId, StateDatabase, StateError};

/// How many files are named.
const MAX_NAMED: usize = 20;

/// Files that a store lacks or has damaged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DamagedFiles {
    /// How many.
    pub count: u64,
    /// The first of them by name, at most 20.
    pub first: Vec<String>,
    /// When the last complete check began.
    pub checked: Option<Timestamp>,
}

impl DamagedFiles {
    /// What the state says. Blocking.
    ///
    /// # Errors
    /// See [`StateError`].
    pub(crate) fn of(state: &StateDatabase, job: JobId) -> Result<Self, StateError> {
        let damaged = state.damaged(job)?;
        let checked = state.check_record(job)?.checked_at;
        let mut first: Vec<_> = damaged.iter().collect();
        first.sort_unstable();
        first.truncate(MAX_NAMED);
        Ok(Self {
            count: damaged.len() as u64,
            first: first.into_iter().map(Self::name).collect(),
            checked: checked.and_then(|seconds| Timestamp::from_second(seconds).ok()),
        })
    }

    /// The name of an entry that is damaged. The root stands for the manifests.
    pub(crate) fn name(path: &TreePath) -> String {
        match path.as_bytes() {
            b"" => format!("{OWN}/manifest"),
            _ => path.to_string(),
        }
    }
}
