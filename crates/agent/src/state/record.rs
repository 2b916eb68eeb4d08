//! What is kept of jobs and entries, and how it is written down.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::entry::{Attributes, EntryKind, FileState, Moment};

/// An entry as it was when it was synced last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Synced {
    /// What else is kept of it.
    pub attributes: Attributes,
    /// What it was.
    pub kind: SyncedKind,
}

/// What a synced entry was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SyncedKind {
    /// A regular file.
    File {
        /// As it was when it was read.
        state: FileState,
        /// SHA-256 of what was read.
        sha256: [u8; 32],
    },
    /// A directory.
    Directory,
    /// A symbolic link, and where it led.
    Symlink(Box<[u8]>),
}

impl Synced {
    /// Whether an entry is of the same kind.
    #[must_use]
    pub fn is_kind_of(&self, kind: &EntryKind) -> bool {
        matches!(
            (&self.kind, kind),
            (SyncedKind::File { .. }, EntryKind::File(_))
                | (SyncedKind::Directory, EntryKind::Directory)
                | (SyncedKind::Symlink(_), EntryKind::Symlink(_))
        )
    }
}

/// An upload in parts that was begun and is not complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UploadRecord {
    /// What the store calls it.
    pub name: String,
    /// The key it is for.
    pub key: String,
    /// The length of its parts but for the last, bytes.
    pub part_size: u64,
    /// The file that it sends, as it was when it was begun.
    pub state: FileState,
    /// Last change of that file's content.
    pub modified: Moment,
}

/// A part of such an upload, that the store has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UploadedPart {
    /// What the store calls it.
    pub name: String,
    /// SHA-256 of its content.
    pub sha256: [u8; 32],
}

/// What is known of a job between its runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobRecord {
    /// When the last scan that was synced began, by the clock that stamps files.
    pub scanned: Option<Moment>,
    /// Where other file systems were mounted below the source then: each path,
    /// as [`crate::entry::TreePath::as_bytes`] has it, and device.
    pub mounts: Vec<(Vec<u8>, u64)>,
    /// The manifest at the store.
    pub manifest: ManifestRecord,
    /// When the last run ended that went well, s since 1970.
    pub succeeded: Option<i64>,
    /// Where the job wrote: all that is known of it, and all that is in step, is so
    /// there and nowhere else. `None` before its first run.
    pub place: Option<PlaceRecord>,
}

/// A place that a job writes to, told from every other whatever the configuration
/// calls it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlaceRecord {
    /// The store, by what it is reached at; without credentials.
    pub store: String,
    /// Where in it; may be empty.
    pub path: String,
}

/// What of the manifest is at the store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestRecord {
    /// Names this job's manifest, so that nobody else's is continued; 0 before
    /// there is one.
    pub writer: u64,
    /// Sequence number of the base; 0 before there is one.
    pub base: u64,
    /// Entries in the base.
    pub base_entries: u64,
    /// Sequence number of the last delta, or of the base.
    pub last: u64,
    /// Entries in all deltas.
    pub delta_entries: u64,
    /// Whether no run has got through since the first of them: what they do not
    /// have may still have to be sent.
    pub is_partial: bool,
}

/// A record that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("a record of the state cannot be read: {0}")]
pub struct UnreadableRecord(#[from] postcard::Error);

pub(super) fn encode<T: Serialize>(record: &T) -> Vec<u8> {
    postcard::to_stdvec(record).expect("our records can be written down")
}

pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, UnreadableRecord> {
    Ok(postcard::from_bytes(bytes)?)
}
