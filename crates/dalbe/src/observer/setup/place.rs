//! What is where in the directory of the observer:
//!
//! ```text
//! /run/fairbat/bpf            a BPF file system, open to all users
//!   observer/v1/watch         0666: who asked for what
//!   observer/v1/statistics    0444: what arrived
//!   observer/v1/link          0600: the attachment, which ends with it
//! ```
//!
//! Other eBPF programs of FAIRBAT would stand beside `observer`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The map that users write.
pub(in crate::observer) const WATCH: &str = "watch";
/// The map that the kernel's side writes.
pub(in crate::observer) const STATISTICS: &str = "statistics";
/// The attachment of the program.
pub(super) const LINK: &str = "link";

/// A directory, and the paths in it.
#[derive(Debug)]
pub(in crate::observer) struct Place {
    directory: PathBuf,
}

impl Place {
    pub(in crate::observer) fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
        }
    }

    /// All versions of the observer.
    pub(super) fn observer(&self) -> PathBuf {
        self.directory.join("observer")
    }

    /// One version of the observer.
    pub(in crate::observer) fn version(&self, version: u32) -> PathBuf {
        self.observer().join(format!("v{version}"))
    }

    /// Where it is put together. A BPF file system takes no names with dots.
    pub(super) fn unfinished(&self) -> PathBuf {
        self.observer().join(UNFINISHED)
    }

    /// A version that is complete and is not this one: the newest.
    pub(in crate::observer) fn other_version(&self, ours: u32) -> Option<u32> {
        let versions = self.versions().unwrap_or_default();
        let others = versions.into_iter().filter(|&v| v != ours);
        others.filter(|&v| self.is_complete(v)).max()
    }

    /// Whether this version is there and attached.
    pub(super) fn is_complete(&self, version: u32) -> bool {
        fs::symlink_metadata(self.version(version).join(LINK)).is_ok()
    }

    /// The versions that are there, complete or not.
    pub(super) fn versions(&self) -> io::Result<Vec<u32>> {
        let entries = match fs::read_dir(self.observer()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut versions = Vec::new();
        for entry in entries {
            versions.extend(entry?.file_name().to_str().and_then(version_of));
        }
        Ok(versions)
    }
}

/// A name that no version has.
const UNFINISHED: &str = "unfinished";

/// The version in the name of its directory.
fn version_of(name: &str) -> Option<u32> {
    name.strip_prefix('v')?.parse().ok()
}

/// Whether an entry of [`Place::observer`] is ours.
pub(super) fn is_ours(name: &str) -> bool {
    name == UNFINISHED || version_of(name).is_some()
}
