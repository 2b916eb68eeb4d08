//! What a scan reports besides entries: unreadable and left out entries, and mount
//! points.

use std::io;
use std::path::PathBuf;

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::entry::TreePath;

/// How many devices, sockets and pipes are named.
const MAX_NAMED: usize = 10;

/// An entry that is unknown, with everything below it. Nothing there counts as
/// removed.
#[derive(Debug, thiserror::Error)]
#[error("{path} {cause}")]
pub struct Unreadable {
    /// Its path.
    pub path: TreePath,
    /// The cause.
    pub cause: UnreadableCause,
}

/// Why an entry is unreadable.
#[derive(Debug, thiserror::Error)]
pub enum UnreadableCause {
    /// It vanished after its directory was listed.
    #[error("vanished while its directory was read")]
    Vanished,
    /// It cannot be examined.
    #[error("cannot be examined: {0}")]
    Examine(io::Error),
    /// The directory cannot be opened.
    #[error("cannot be opened: {0}")]
    Open(io::Error),
    /// The directory cannot be listed to the end.
    #[error("cannot be listed: {0}")]
    List(io::Error),
    /// The directory was moved, replaced or unmounted meanwhile.
    #[error("was moved, replaced or unmounted while it was read")]
    Replaced,
    /// It is a former mount point, or is gone and contained one.
    #[error("is no longer mounted")]
    Unmounted,
}

impl UnreadableCause {
    /// The cause of a failed examination.
    pub(super) fn of_look(error: Errno) -> Self {
        match error {
            Errno::NOENT => Self::Vanished,
            other => Self::Examine(other.into()),
        }
    }

    /// The cause of a failed open.
    pub(super) fn of_open(error: Errno) -> Self {
        match error {
            Errno::NOENT => Self::Vanished,
            Errno::NOTDIR | Errno::LOOP => Self::Replaced,
            other => Self::Open(other.into()),
        }
    }
}

/// Why a scan cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    /// The root cannot be opened as a directory.
    #[error("{} cannot be opened: {error}", root.display())]
    Open {
        /// The root.
        root: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// The root is a former mount point.
    #[error("nothing is mounted at {}, as there was before", root.display())]
    Unmounted {
        /// The root.
        root: PathBuf,
    },
}

/// A directory where another file system, or another part of the same one, begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountPoint {
    /// Its path; may be the root.
    pub path: TreePath,
    /// `st_dev` of the mounted file system. Changes with a restart.
    pub device: u64,
}

/// Devices, sockets and pipes, which are no entries.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SpecialFiles {
    /// Their number.
    pub count: u64,
    /// The first of them.
    pub first: Vec<TreePath>,
}

impl SpecialFiles {
    pub(super) fn add(&mut self, path: TreePath) {
        self.count += 1;
        if self.first.len() < MAX_NAMED {
            self.first.push(path);
        }
    }
}

/// The result of a scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanOutcome {
    /// Whether the scan reached its end. If not, the rest is unknown.
    pub complete: bool,
    /// Entries that were left out because of their kind.
    pub specials: SpecialFiles,
    /// The paths of all [`Unreadable`]s, sorted, none below another.
    pub unknown: Vec<TreePath>,
    /// Mount points, sorted, for the next scan ([`super::ScanOptions::mounted`]): those
    /// found, and earlier ones that may still exist.
    pub mounts: Vec<MountPoint>,
}
