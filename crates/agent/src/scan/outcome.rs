//! What a walk says besides the entries: what it could not read, what it left
//! out, and where other file systems were mounted.

use std::io;
use std::path::PathBuf;

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::entry::TreePath;

/// How many devices, sockets and pipes are named.
const NAMED: usize = 10;

/// Something of which is not known what it is, nor what is below it: nothing
/// there may count as removed.
#[derive(Debug, thiserror::Error)]
#[error("{path} {cause}")]
pub struct Unreadable {
    /// Where it is.
    pub path: TreePath,
    /// Why it is not known.
    pub cause: UnreadableCause,
}

/// Why something is not known.
#[derive(Debug, thiserror::Error)]
pub enum UnreadableCause {
    /// Its directory named it, and then it was gone.
    #[error("vanished while its directory was read")]
    Vanished,
    /// What it is cannot be told.
    #[error("cannot be examined: {0}")]
    Examine(io::Error),
    /// A directory that cannot be opened.
    #[error("cannot be opened: {0}")]
    Open(io::Error),
    /// A directory whose names cannot be read to the end.
    #[error("cannot be listed: {0}")]
    List(io::Error),
    /// A directory that was moved, replaced or unmounted while it was walked.
    #[error("was moved, replaced or unmounted while it was read")]
    Replaced,
    /// A file system was mounted there (or below it, when it is gone), and is
    /// not now.
    #[error("is no longer mounted")]
    Unmounted,
}

impl UnreadableCause {
    /// Why something that its directory has named could not be examined.
    pub(super) fn of_look(error: Errno) -> Self {
        match error {
            Errno::NOENT => Self::Vanished,
            other => Self::Examine(other.into()),
        }
    }

    /// Why something that has just been a directory could not be opened.
    pub(super) fn of_open(error: Errno) -> Self {
        match error {
            Errno::NOENT => Self::Vanished,
            Errno::NOTDIR | Errno::LOOP => Self::Replaced,
            other => Self::Open(other.into()),
        }
    }
}

/// Why a walk cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    /// The root cannot be opened as a directory.
    #[error("{} cannot be opened: {error}", root.display())]
    Open {
        /// The root.
        root: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// A file system was mounted at the root last time, and is not now.
    #[error("nothing is mounted at {}, as there was before", root.display())]
    Unmounted {
        /// The root.
        root: PathBuf,
    },
}

/// A directory at which another file system begins than that of its parent, or
/// another part of the same one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountPoint {
    /// Where it is; the root of the tree may be one.
    pub path: TreePath,
    /// `st_dev` of what is mounted. It says nothing after a restart.
    pub device: u64,
}

/// Devices, sockets and pipes: they are no entries.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SpecialFiles {
    /// How many there are.
    pub count: u64,
    /// The first few of them.
    pub first: Vec<TreePath>,
}

impl SpecialFiles {
    pub(super) fn add(&mut self, path: TreePath) {
        self.count += 1;
        if self.first.len() < NAMED {
            self.first.push(path);
        }
    }
}

/// What is known at the end of a walk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanOutcome {
    /// Whether the walk came to its end. If not, what it did not come to is not
    /// known either.
    pub complete: bool,
    /// What was left out because of what it is.
    pub specials: SpecialFiles,
    /// What is not known, with everything below it: the paths of all
    /// [`Unreadable`]s, sorted, none below another.
    pub unknown: Vec<TreePath>,
    /// The mount points, sorted, which the next walk is to be told
    /// ([`super::ScanOptions::mounted`]): those that were seen, and those of before
    /// that may still be.
    pub mounts: Vec<MountPoint>,
}
