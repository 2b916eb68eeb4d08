//! Manifests: what a store needs besides content so that a tree can be restored. A
//! *base* has all entries. *Deltas*, numbered from the base on, have what changed since.
//!
//! A manifest is gzip of JSON lines: a header, the entries ordered by [`TreePath`], and
//! a last line with their number and the SHA-256 of all lines before it. Without the
//! last line a manifest is cut off.
//!
//! ```text
//! {"fairbat_manifest":1,"kind":"delta","sequence":8,"created":"2026-01-02T03:04:05Z"}
//! {"path":"docs","type":"dir","mode":"0755","uid":0,"gid":0,"mtime":"1767322800.000000000"}
//! {"path":"docs/100%25","type":"file","mode":"0644", ... ,"size":4,"sha256":"..."}
//! {"path":"docs/old","removed":true}
//! {"end":{"entries":3,"sha256":"..."}}
//! ```
//!
//! Names are text: `%` and bytes that are not UTF-8 are written `%XX`. Unknown members
//! are ignored.
//!
//! A manifest may come from an attacker. So no path leads out of the root or below a
//! link or file, and memory is bounded.

mod digest;
mod key;
mod line;
mod pointer;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

use std::ffi::OsStr;
use std::io;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::entry::{Attributes, TreePath};
pub(crate) use digest::Digest256;
pub use key::{DAMAGED_KEY_HINT, JobKey};
pub(crate) use pointer::{Authenticity, MAX_DELTAS, MAX_POINTER};
pub use pointer::{ManifestPointer, PointerError};
pub use reader::{ManifestReader, MergeError, MergedManifests};
pub use writer::{ManifestWriteError, ManifestWriter};

/// The version of the format.
const VERSION: u32 = 1;

/// Longest line with its end, bytes. Paths may be somewhat longer than PATH_MAX (4096).
const MAX_LINE: usize = 64 * 1024;

/// Most bytes of the lines of a manifest: those of about 100 million entries. A small
/// file may unpack to a thousand times its size.
const MAX_LINES: u64 = 32 * 1024 * 1024 * 1024;

/// The header of a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ManifestHeader {
    /// Base or delta.
    pub kind: ManifestKind,
    /// Its number. The deltas follow the number of their base.
    pub sequence: u64,
    /// When its writing began.
    pub created: Timestamp,
}

/// The kind of a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ManifestKind {
    /// All entries.
    Base,
    /// The changes since the manifest before it.
    Delta,
}

/// One line of a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ManifestLine {
    /// The entry exists.
    Item(ManifestItem),
    /// The entry is gone; only in a delta. Its members have lines of their own.
    Removed(TreePath),
}

impl ManifestLine {
    /// Its path.
    #[must_use]
    pub fn path(&self) -> &TreePath {
        match self {
            Self::Item(item) => &item.path,
            Self::Removed(path) => path,
        }
    }
}

/// An entry to restore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestItem {
    /// Its path; never the root.
    pub path: TreePath,
    /// Its attributes.
    pub attributes: Attributes,
    /// Its kind and content.
    pub content: ItemContent,
}

/// The kind and content of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ItemContent {
    /// A regular file. The store has its content.
    File {
        /// Length, bytes.
        size: u64,
        /// SHA-256 of the content.
        sha256: [u8; 32],
    },
    /// A directory.
    Directory,
    /// A symbolic link, with its target.
    Symlink(Box<OsStr>),
}

/// What is wrong with a line.
#[derive(Debug, thiserror::Error)]
pub enum LineProblem {
    /// The line is not the expected JSON.
    #[error("not as it should be: {0}")]
    Json(serde_json::Error),
    /// The path is invalid or not in canonical form.
    #[error("the path is none below a root")]
    Path,
    /// A member is missing, invalid or misplaced.
    #[error("{0:?} is missing, has no such value or does not belong there")]
    Member(&'static str),
    /// The path is out of order or repeated.
    #[error("the path is not after the one before")]
    Order,
    /// The entry is below a link or a file.
    #[error("the path is below something that is no directory")]
    BelowNoDirectory,
    /// A base has a removed entry.
    #[error("a base has nothing that is removed")]
    RemovedFromBase,
    /// The line is too long.
    #[error("longer than {MAX_LINE} bytes")]
    TooLong,
}

/// Checks that entries are ordered by path, and that none is below a link or file.
#[derive(Debug, Default)]
pub(crate) struct PathOrder {
    last: TreePath,
    /// The last link or file.
    leaf: Option<TreePath>,
}

impl PathOrder {
    /// Checks the next entry. A refused entry changes nothing.
    pub(crate) fn take(&mut self, record: &ManifestLine) -> Result<(), LineProblem> {
        // The root, which is no entry, sorts before all entries.
        if *record.path() <= self.last {
            return Err(LineProblem::Order);
        }
        if let ManifestLine::Item(item) = record {
            let is_below = |leaf: &TreePath| item.path.is_at_or_below(leaf);
            if self.leaf.as_ref().is_some_and(is_below) {
                return Err(LineProblem::BelowNoDirectory);
            }
            if item.content != ItemContent::Directory {
                self.leaf = Some(item.path.clone());
            }
        }
        self.last = record.path().clone();
        Ok(())
    }
}

/// Why a manifest cannot be read. Entries read before the error are not trustworthy.
#[derive(Debug, thiserror::Error)]
pub enum ManifestReadError {
    /// It is no intact gzip, or reading failed.
    #[error("cannot be read: {0}")]
    Read(io::Error),
    /// It ends before its last line.
    #[error("is cut off")]
    CutOff,
    /// It has too many entries.
    #[error("has more than {} GiB when it is unpacked", MAX_LINES >> 30)]
    TooLarge,
    /// Its version is unknown.
    #[error("is of version {0}, and only {VERSION} is known")]
    Version(u32),
    /// A line is wrong.
    #[error("line {line}: {problem}")]
    Line {
        /// Its number, from 1.
        line: u64,
        /// What is wrong.
        problem: LineProblem,
    },
    /// It has another number of entries than it says.
    #[error("says that it has {announced} entries, and has {found}")]
    Count {
        /// The stated number.
        announced: u64,
        /// Entries that were read.
        found: u64,
    },
    /// Its digest does not match its lines.
    #[error("is damaged: the SHA-256 of its lines is another")]
    Digest,
    /// Something follows its last line.
    #[error("has something after its end")]
    Trailing,
}
