//! The tables of the state database, their records (postcard), and its errors.

use std::io::ErrorKind;

use redb::TableDefinition;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::entry::{Attributes, FileState, InvalidPath, Moment};
use crate::scan::MountPoint;

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
/// Entries whose object a check has found missing or damaged. The root stands for the
/// manifests.
pub(crate) const DAMAGED: TableDefinition<(u32, &[u8]), ()> = TableDefinition::new("damaged");
/// How far the checks of a job are.
pub(crate) const CHECKS: TableDefinition<u32, &[u8]> = TableDefinition::new("checks");
/// Keys that may have an upload of unknown name.
pub(crate) const BEGINNING: TableDefinition<(u32, &str), ()> = TableDefinition::new("beginning");
/// Keys of abandoned uploads, by job and name.
pub(crate) const LEFT: TableDefinition<(u32, &str), &str> = TableDefinition::new("left");
/// Mount points that local stores lie on, by the path of the store.
pub(crate) const STORE_MOUNTS: TableDefinition<&[u8], &[u8]> = TableDefinition::new("store mounts");
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
    #[error("a record of the state cannot be read: {0}")]
    Record(#[from] postcard::Error),
    /// A path is invalid.
    #[error("the state names a path that is none: {0}")]
    Path(#[from] InvalidPath),
    /// A later version wrote it.
    #[error("the state was written by a later version of fairbat-agent (form {0})")]
    Later(u64),
    /// An earlier, unreleased version wrote it.
    #[error("the state was written by an earlier version of fairbat-agent (form {0})")]
    Earlier(u64),
    /// A change could not be written, for this reason.
    #[error("the state cannot be written: {0}")]
    Unwritten(String),
    /// The writing thread has ended.
    #[error("the state cannot be written any more")]
    Closed,
}

impl StateError {
    /// Whether the file belongs to another user.
    pub(crate) fn is_access(&self) -> bool {
        matches!(
            self,
            Self::Database(redb::Error::Io(error)) if error.kind() == ErrorKind::PermissionDenied
        )
    }

    /// Whether the file is not a state that this version can read. Then a new one has to
    /// take its place.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Record(_) | Self::Path(_) | Self::Later(_) | Self::Earlier(_) => true,
            Self::Unwritten(_) | Self::Closed => false,
            // How `redb` reports a file that is not its own, and one that is cut off.
            Self::Database(redb::Error::Io(error)) => {
                matches!(
                    error.kind(),
                    ErrorKind::InvalidData | ErrorKind::UnexpectedEof
                )
            }
            Self::Database(error) => matches!(
                error,
                redb::Error::Corrupted(_)
                    | redb::Error::UpgradeRequired(_)
                    | redb::Error::TableTypeMismatch { .. }
                    | redb::Error::TableIsMultimap(_)
                    | redb::Error::TableDoesNotExist(_)
                    | redb::Error::TypeDefinitionChanged { .. }
            ),
        }
    }
}

/// What to do about a file that is not a state of this version.
pub(crate) const DAMAGED_HINT: &str = "move it away and start the agent: the next run of each job \
    takes over what its store has, and does not send it again. Pauses, and downloads and \
    restores that are not done, have to be given again";

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

/// An entry as it was at its last sync.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Synced {
    /// Its attributes.
    pub attributes: Attributes,
    /// Its kind.
    pub kind: SyncedKind,
}

/// The kind of a synced entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SyncedKind {
    /// A regular file.
    File {
        /// Its state when it was read.
        state: FileState,
        /// SHA-256 of its content.
        sha256: [u8; 32],
    },
    /// A directory.
    Directory,
    /// A symbolic link, with its target.
    Symlink(Box<[u8]>),
}

/// An upload in parts that was begun and is not complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UploadRecord {
    /// The store's name for it.
    pub name: String,
    /// Its key.
    pub key: String,
    /// Length of its parts except the last one, bytes.
    pub part_size: u64,
    /// State of the file when the upload began.
    pub state: FileState,
    /// Time of the last change of the file's content.
    pub modified: Moment,
}

/// A part of an upload that the store has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UploadedPart {
    /// The store's name for it.
    pub name: String,
    /// SHA-256 of its content.
    pub sha256: [u8; 32],
}

/// The state of a job between its runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobRecord {
    /// When the last synced scan began, by the clock that stamps files.
    pub scanned: Option<Moment>,
    /// Mount points below the source during that scan.
    pub mounts: Vec<MountPoint>,
    /// The manifest in the store.
    pub manifest: ManifestRecord,
    /// When the last successful run ended, s since 1970.
    pub succeeded: Option<i64>,
    /// The place that the rest of the state is about. `None` before the first run.
    pub place: Option<PlaceRecord>,
}

/// A place that a job writes to, whatever its name in the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlaceRecord {
    /// Address of the store, without credentials.
    pub store: String,
    /// Path in the store; may be empty.
    pub path: String,
}

/// The manifest in the store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestRecord {
    /// The agent that wrote it; 0 if there is none.
    pub writer: u64,
    /// Sequence number of the base; 0 if there is none.
    pub base: u64,
    /// Entries in the base.
    pub base_entries: u64,
    /// Sequence number of the last delta, or of the base.
    pub last: u64,
    /// Entries in all deltas.
    pub delta_entries: u64,
    /// Whether no run has completed since the base. Then missing entries may still
    /// have to be sent.
    pub is_partial: bool,
}

/// How far the checks of a job have read contents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckRecord {
    /// The next file to read, as a position in the order of the checks.
    pub cursor: u64,
    /// When the last complete check began, s since 1970.
    pub checked_at: Option<i64>,
}

pub(crate) fn encode<T: Serialize>(record: &T) -> Vec<u8> {
    postcard::to_stdvec(record).expect("our records can be written down")
}

pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, StateError> {
    Ok(postcard::from_bytes(bytes)?)
}
