//! The records of jobs and entries, and their encoding (postcard).

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::entry::{Attributes, FileState, Moment};

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
    /// Mount points below the source during that scan: the path
    /// ([`crate::entry::TreePath::as_bytes`]) and the device.
    pub mounts: Vec<(Vec<u8>, u64)>,
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

/// A record that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("a record of the state cannot be read: {0}")]
pub struct UnreadableRecord(#[from] postcard::Error);

pub(crate) fn encode<T: Serialize>(record: &T) -> Vec<u8> {
    postcard::to_stdvec(record).expect("our records can be written down")
}

pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, UnreadableRecord> {
    Ok(postcard::from_bytes(bytes)?)
}
