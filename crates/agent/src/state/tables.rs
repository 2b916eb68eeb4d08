//! The tables of the state database, and its errors.

use redb::TableDefinition;

use super::record::UnreadableRecord;
use crate::entry::InvalidPath;

/// Numbers by name: the format, the identity, and the last ad-hoc task.
pub(crate) const META: TableDefinition<&str, u64> = TableDefinition::new("meta");
/// Number and record of each job, by name.
pub(crate) const JOBS: TableDefinition<&str, (u32, &[u8])> = TableDefinition::new("jobs");
/// Entries in step, by job and path.
pub(crate) const ENTRIES: TableDefinition<(u32, &[u8]), &[u8]> = TableDefinition::new("entries");
/// Entries that have changed since the last manifest.
pub(crate) const UNTOLD: TableDefinition<(u32, &[u8]), ()> = TableDefinition::new("untold");
/// Uploads that continue, by job and path.
pub(crate) const UPLOADS: TableDefinition<(u32, &[u8]), &[u8]> = TableDefinition::new("uploads");
/// Parts of these uploads, by job, path and number.
pub(crate) const PARTS: TableDefinition<(u32, &[u8], u32), &[u8]> = TableDefinition::new("parts");
/// Entries whose object may have been replaced.
pub(crate) const REPLACING: TableDefinition<(u32, &[u8]), ()> = TableDefinition::new("replacing");
/// Keys that may have an upload of unknown name.
pub(crate) const BEGINNING: TableDefinition<(u32, &str), ()> = TableDefinition::new("beginning");
/// Keys of abandoned uploads, by job and name.
pub(crate) const LEFT: TableDefinition<(u32, &str), &str> = TableDefinition::new("left");
/// Ad-hoc tasks, by number.
pub(crate) const AD_HOC_TASKS: TableDefinition<u64, &[u8]> = TableDefinition::new("extras");
/// State of a job's task, by the name of the job. The daemon defines the content.
pub(crate) const TASK_STATES: TableDefinition<&str, &[u8]> = TableDefinition::new("standings");

/// Why the state cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The database failed.
    #[error("the state cannot be used: {0}")]
    Database(#[from] redb::Error),
    /// A record is unreadable.
    #[error(transparent)]
    Record(#[from] UnreadableRecord),
    /// A path is invalid.
    #[error("the state names a path that is none: {0}")]
    Path(#[from] InvalidPath),
    /// A later version wrote it.
    #[error("the state was written by a later version of fairbat-agent (form {0})")]
    Later(u64),
    /// An earlier, unreleased version wrote it.
    #[error(
        "the state was written by an earlier version of fairbat-agent (form {0}): move it away, \
         and what stores have is taken over"
    )]
    Earlier(u64),
    /// The writing thread has ended.
    #[error("the state cannot be written any more")]
    Closed,
}

macro_rules! from_redb {
    ($($error:ident),*) => {$(
        impl From<redb::$error> for StateError {
            fn from(error: redb::$error) -> Self {
                Self::Database(error.into())
            }
        }
    )*};
}
from_redb!(
    DatabaseError,
    TransactionError,
    TableError,
    StorageError,
    CommitError
);

/// Number of a job in the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub(crate) u32);

/// All keys of a job in a table by job and path.
pub(crate) fn paths_of(job: u32) -> std::ops::Range<(u32, &'static [u8])> {
    (job, &[][..])..(job + 1, &[][..])
}

/// All keys of a job in a table by job and text.
pub(crate) fn texts_of(job: u32) -> std::ops::Range<(u32, &'static str)> {
    (job, "")..(job + 1, "")
}
