//! What a store needs to know besides contents, so that a tree can be made again
//! from it: a *base*, which has every entry, and *deltas*, numbered on from it,
//! each with what has changed since.
//!
//! A manifest is gzip of lines of JSON: a header, the entries in the order of
//! [`TreePath`], and a last line with their count and the SHA-256 of all lines
//! before it, without which a manifest counts as cut off.
//!
//! ```text
//! {"fairbat_manifest":1,"kind":"delta","sequence":8,"created":"2026-01-02T03:04:05Z"}
//! {"path":"docs","type":"dir","mode":"0755","uid":0,"gid":0,"mtime":"1767322800.000000000"}
//! {"path":"docs/100%25","type":"file","mode":"0644", ... ,"size":4,"sha256":"..."}
//! {"path":"docs/old","removed":true}
//! {"end":{"entries":3,"sha256":"..."}}
//! ```
//!
//! Names in it are text: `%` and the bytes that are no UTF-8 are `%XX`. Members
//! that are not known are passed over.
//!
//! What comes from a store may come from an enemy: nothing in it leads out of the
//! root, nothing is below a link or a file, and what is in memory has a limit.
//! Knows no store, and no disk but through what it is given to read and write.

mod line;
mod merged;
mod order;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

use std::ffi::OsStr;
use std::io;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::entry::{Attributes, TreePath};
pub use merged::{MergeError, MergedManifests};
pub use reader::ManifestReader;
pub use writer::{ManifestWriteError, ManifestWriter};

/// The version of the format.
const VERSION: u32 = 1;

/// Longest line, bytes, with its end. Paths may be longer than Linux takes at
/// once (4096), but not much.
const LONGEST_LINE: usize = 64 * 1024;

/// What a manifest says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ManifestHeader {
    /// What it has.
    pub kind: ManifestKind,
    /// Its number. The deltas of a base have the numbers after its own.
    pub sequence: u64,
    /// When it was begun.
    pub created: Timestamp,
    /// How many entries it has, those that are removed included, if that was
    /// known when it was begun.
    pub entries: Option<u64>,
}

/// What a manifest has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ManifestKind {
    /// Every entry.
    Base,
    /// What has changed since the manifest of the number before.
    Delta,
}

/// One line of a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// It is there, and like this.
    Item(ManifestItem),
    /// It is gone; only in a delta. What was below it has lines of its own.
    Removed(TreePath),
}

impl Record {
    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &TreePath {
        match self {
            Self::Item(item) => &item.path,
            Self::Removed(path) => path,
        }
    }
}

/// An entry as it is to be made again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestItem {
    /// Where it is; never the root.
    pub path: TreePath,
    /// What is kept of an entry of any kind.
    pub attributes: Attributes,
    /// What it is.
    pub content: ItemContent,
}

/// What an entry of a manifest is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ItemContent {
    /// A regular file, whose content the store has.
    File {
        /// Length, bytes.
        size: u64,
        /// SHA-256 of the content.
        sha256: [u8; 32],
    },
    /// A directory.
    Directory,
    /// A symbolic link, and where it leads.
    Symlink(Box<OsStr>),
}

/// What is wrong with one line.
#[derive(Debug, thiserror::Error)]
pub enum LineProblem {
    /// No JSON, or not what belongs there.
    #[error("not as it should be: {0}")]
    Json(serde_json::Error),
    /// A path that names nothing below a root, or in another form.
    #[error("the path is none below a root")]
    Path,
    /// A member that is missing, of no meaning there, or no such value.
    #[error("{0:?} is missing, has no such value or does not belong there")]
    Member(&'static str),
    /// Not in the order of paths, or twice.
    #[error("the path is not after the one before")]
    Order,
    /// An entry below a link or a file.
    #[error("the path is below something that is no directory")]
    BelowNoDirectory,
    /// Something removed, in a base.
    #[error("a base has nothing that is removed")]
    RemovedFromBase,
    /// Longer than a line may be.
    #[error("longer than {LONGEST_LINE} bytes")]
    TooLong,
}

/// Why a manifest cannot be read. What came before is not to be trusted either.
#[derive(Debug, thiserror::Error)]
pub enum ManifestReadError {
    /// It is no gzip, damaged, or the source failed.
    #[error("cannot be read: {0}")]
    Read(io::Error),
    /// It ends before its last line.
    #[error("is cut off")]
    CutOff,
    /// It is of a version that is not known.
    #[error("is of version {0}, and only {VERSION} is known")]
    Version(u32),
    /// A line of it is wrong.
    #[error("line {line}: {problem}")]
    Line {
        /// Its number, from 1.
        line: u64,
        /// What is wrong.
        problem: LineProblem,
    },
    /// It has more or less entries than it says.
    #[error("says that it has {announced} entries, and has {found}, or more")]
    Count {
        /// What it says.
        announced: u64,
        /// Entries that were read.
        found: u64,
    },
    /// Its lines are not those that it was written with.
    #[error("is damaged: the SHA-256 of its lines is another")]
    Digest,
    /// Something follows its last line.
    #[error("has something after its end")]
    Trailing,
}
