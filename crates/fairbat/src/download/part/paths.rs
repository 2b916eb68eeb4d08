//! The names of one transfer's files, and the steps that make changes to them
//! atomic and durable.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::journal::{self, Record};
use crate::ranges::RangeSet;

/// The three names of one transfer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Paths {
    /// The finished file.
    pub(crate) target: PathBuf,
    /// The part file beside it.
    pub(crate) part: PathBuf,
    /// The journal beside it.
    pub(crate) journal: PathBuf,
}

/// Whether a change has to survive a power loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    Volatile,
    Durable,
}

impl Paths {
    /// The names that go with this finished file.
    pub(crate) fn of(target: PathBuf) -> Self {
        Self {
            part: with_suffix(&target, ".part"),
            journal: with_suffix(&target, ".part.fairbat"),
            target,
        }
    }

    /// The directory all three stand in.
    pub(crate) fn directory(&self) -> &Path {
        match self.target.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        }
    }

    /// Replaces the journal atomically by this record with `tail` behind it
    /// and returns it open for appending.
    pub(crate) fn write_journal(
        &self,
        record: &Record,
        tail: &RangeSet,
        durability: Durability,
    ) -> io::Result<File> {
        let mut bytes = record.encode();
        for range in tail.iter() {
            bytes.extend_from_slice(journal::tail_line(&range).as_bytes());
        }
        let fresh = with_suffix(&self.journal, ".new");
        // Whatever has this name, perhaps a link to elsewhere, is not written
        // to.
        remove_if_there(&fresh)?;
        let replaced = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&fresh)
            .and_then(|mut file| {
                file.write_all(&bytes)?;
                if durability == Durability::Durable {
                    file.sync_all()?;
                }
                std::fs::rename(&fresh, &self.journal)?;
                Ok(file)
            });
        if replaced.is_err() {
            // Best effort: on a full disk the half-written copy is in the way.
            let _ = remove_if_there(&fresh);
        }
        let file = replaced?;
        if durability == Durability::Durable {
            self.sync_directory()?;
        }
        Ok(file)
    }

    /// Makes renames and removals durable.
    pub(crate) fn sync_directory(&self) -> io::Result<()> {
        match File::open(self.directory())?.sync_all() {
            // Some network and FUSE file systems cannot sync a directory.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
            result => result,
        }
    }

    /// Removes the journal, unless a new part file has taken the place of
    /// ours: then it is that one's.
    pub(crate) fn remove_journal(&self) -> io::Result<()> {
        match std::fs::symlink_metadata(&self.part) {
            Ok(_) => Ok(()),
            Err(_) => remove_if_there(&self.journal),
        }
    }
}

/// `path` with `suffix` behind its last component.
fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Removes a file; it is fine if there is none.
pub(crate) fn remove_if_there(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}
