//! The names of one transfer's files, the steps that make changes to them atomic and
//! durable, and what the disk can refuse.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::journal::{self, JournalRecord};
use crate::error::{ErrorKind, TransferError};
use crate::file_name::{JOURNAL_SUFFIX, PART_SUFFIX};
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
            part: with_suffix(&target, PART_SUFFIX),
            journal: with_suffix(&target, JOURNAL_SUFFIX),
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

    /// The name under which the next journal is written.
    pub(crate) fn new_journal(&self) -> PathBuf {
        with_suffix(&self.journal, ".new")
    }

    /// The name of an empty file that shows who owns what this process makes.
    pub(crate) fn sample(&self) -> PathBuf {
        with_suffix(&self.part, &format!(".{}.own", std::process::id()))
    }

    /// Replaces the journal atomically by this record with `tail` behind it
    /// and returns it open for appending.
    pub(crate) fn write_journal(
        &self,
        record: &JournalRecord,
        tail: &RangeSet,
        durability: Durability,
    ) -> io::Result<File> {
        let mut bytes = record.encode();
        for range in tail.iter() {
            bytes.extend_from_slice(journal::tail_line(&range).as_bytes());
        }
        let fresh = self.new_journal();
        // Never writes through an existing file of this name: it may be a link.
        remove_if_there(&fresh)?;
        let replaced = OpenOptions::new()
            .write(true)
            .create_new(true)
            // Whoever can write to it decides which bytes are trusted.
            .mode(0o600)
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
        sync_directory(self.directory())
    }

    /// Removes the journal, unless it belongs to a new part file that has taken the place of
    /// this one.
    pub(crate) fn remove_journal(&self) -> io::Result<()> {
        match std::fs::symlink_metadata(&self.part) {
            Ok(_) => Ok(()),
            Err(_) => remove_if_there(&self.journal),
        }
    }
}

/// Makes renames and removals in a directory durable.
fn sync_directory(path: &Path) -> io::Result<()> {
    match File::open(path)?.sync_all() {
        // Some network and FUSE file systems cannot sync a directory.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        result => result,
    }
}

/// Makes a directory with its parents, if it is missing, and makes that durable.
pub(crate) fn make_directory(path: &Path) -> Result<(), PartError> {
    // The working directory has an empty path, and exists.
    let ancestors = path.ancestors().filter(|it| !it.as_os_str().is_empty());
    let missing: Vec<_> = ancestors.take_while(|it| !it.exists()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    if let Some(link) = missing.iter().find(|it| it.is_symlink()) {
        return Err(PartError::DanglingLink(link.to_path_buf()));
    }
    let failed = |error| PartError::io("make the directory", path, error);
    std::fs::create_dir_all(path).map_err(failed)?;
    let mut parents = missing.into_iter().filter_map(Path::parent);
    let synced = parents.try_for_each(|parent| match parent.as_os_str().is_empty() {
        true => sync_directory(Path::new(".")),
        false => sync_directory(parent),
    });
    synced.map_err(failed)
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

/// Why a part file could not be opened, written or finished.
#[derive(Debug, thiserror::Error)]
pub enum PartError {
    /// The operating system said no.
    #[error("cannot {action} {}: {error}", path.display())]
    Io {
        /// What was being done, as a verb.
        action: &'static str,
        /// To which file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The disk is full.
    #[error("the disk is full: {} needs {missing} more bytes in {}", path.display(), directory.display())]
    Full {
        /// The part file.
        path: PathBuf,
        /// The directory it is in.
        directory: PathBuf,
        /// Bytes that would have to be freed.
        missing: u64,
    },
    /// Another process has the part file locked.
    #[error("another process is already downloading {}", .0.display())]
    Busy(PathBuf),
    /// The part file has no journal: another program made it.
    #[error("{} exists and was not made by fairbat", .0.display())]
    ForeignPart(PathBuf),
    /// A working file is another user's.
    #[error("{} belongs to another user", .0.display())]
    NotOwn(PathBuf),
    /// The file to be replaced is another user's, in a directory where everybody may write.
    #[error("{} belongs to another user, and everybody may write to its directory", .0.display())]
    TargetNotOwn(PathBuf),
    /// A link is another user's.
    #[error("{} is a link that belongs to another user", .0.display())]
    LinkNotOwn(PathBuf),
    /// A name stands for something that no file can be written to.
    #[error("{} is not a regular file", .0.display())]
    NotAFile(PathBuf),
    /// The part file was removed or replaced while it was being written.
    #[error("{} is no longer the file this download was written to", .0.display())]
    Stolen(PathBuf),
    /// The file system lost bytes that it had taken.
    #[error("{} could not be written to the disk", .0.display())]
    SyncFailed(PathBuf),
    /// Bytes are missing that were reported as written; a defect.
    #[error("{} is not complete", .0.display())]
    Incomplete(PathBuf),
    /// The path given for a file is a directory.
    #[error("{} is a directory", .0.display())]
    IsDirectory(PathBuf),
    /// A directory on the way to the file is a link that leads nowhere.
    #[error("{} is a link to a place that does not exist", .0.display())]
    DanglingLink(PathBuf),
    /// Every numbered variant of a name is taken.
    #[error("no free name beside {}", .0.display())]
    NoFreeName(PathBuf),
}

impl PartError {
    /// An error of the operating system.
    pub fn io(action: &'static str, path: &Path, error: io::Error) -> Self {
        Self::Io {
            action,
            path: path.to_owned(),
            error,
        }
    }

    /// An error of writing a part file or its journal; `remaining` is how many
    /// bytes were still to come.
    pub(crate) fn write(paths: &Paths, remaining: u64, error: io::Error) -> Self {
        if !matches!(
            error.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
        ) {
            return Self::io("write", &paths.part, error);
        }
        let directory = paths.directory();
        let free = rustix::fs::statvfs(directory).map_or(0, |fs| fs.f_bavail * fs.f_frsize);
        Self::Full {
            path: paths.part.clone(),
            directory: directory.to_owned(),
            // At least one, even when the journal was what did not fit.
            missing: remaining.saturating_sub(free).max(1),
        }
    }

    /// What the user can do about it.
    fn hint(&self) -> String {
        match self {
            Self::Io { error, path, .. } => match error.kind() {
                io::ErrorKind::NotFound => match path.parent() {
                    Some(directory) if !directory.as_os_str().is_empty() && !directory.exists() => {
                        format!("create the directory first: mkdir -p {}", directory.display())
                    }
                    _ => String::new(),
                },
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    "choose a directory you can write to with -d or -o".to_owned()
                }
                io::ErrorKind::NotADirectory => "the directory given is a file".to_owned(),
                io::ErrorKind::AlreadyExists => {
                    "the complete download is kept beside it; move the file away and run the same command again"
                        .to_owned()
                }
                _ => String::new(),
            },
            Self::Full { missing, .. } => format!(
                "free {missing} bytes or choose another directory, then run the same command again: what is there is kept"
            ),
            Self::Busy(_) => "wait for it, or choose another name with -o".to_owned(),
            Self::ForeignPart(path) => {
                format!("move {} away, or choose another name with -o", path.display())
            }
            Self::NotOwn(path) => format!(
                "it could hold anything, so it is left alone: continue it as its owner, or, if you \
                 trust it, chown NAME.part and NAME.part.fairbat to yourself; else remove {}, or \
                 choose another name or directory with -o or -d",
                path.display()
            ),
            Self::TargetNotOwn(path) => format!(
                "it is not replaced: choose another name or directory with -o or -d, or move {} \
                 away",
                path.display()
            ),
            Self::LinkNotOwn(path) => format!(
                "it could lead anywhere, so it is not followed: choose another name or directory \
                 with -o or -d, or remove {}",
                path.display()
            ),
            Self::NotAFile(_) => "choose another name with -o".to_owned(),
            Self::Stolen(_) => {
                "somebody removed or renamed it; run the same command again".to_owned()
            }
            Self::SyncFailed(_) => {
                "check the disk; the same command fetches again what was lost".to_owned()
            }
            Self::Incomplete(_) => "run the same command again".to_owned(),
            Self::IsDirectory(path) => format!("use -d {} or name a file in it", path.display()),
            Self::DanglingLink(_) => {
                "make the directory it leads to, or choose another one with -d".to_owned()
            }
            Self::NoFreeName(_) => "choose a name with -o".to_owned(),
        }
    }
}

impl From<PartError> for TransferError {
    fn from(error: PartError) -> Self {
        Self::new(ErrorKind::Disk, error.to_string()).with_hint(error.hint())
    }
}
