//! One setup at a time.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, mkdirat, openat};
use rustix::io::retry_on_intr;

use super::{SetupError, failed};

/// The name of what is locked. It is there as long as the lock is held: who
/// can open a directory can lock it, so one that everybody may look into would
/// let anybody keep root waiting.
const NAME: &str = "fairbat-lock";

/// The owner's alone.
const CLOSED: u32 = 0o700;

/// Held until it is dropped.
#[derive(Debug)]
pub(super) struct Lock {
    path: PathBuf,
    /// Closing it is what lets the next one in.
    file: File,
}

impl Lock {
    /// Waits for it. Who was killed while it was held is not waited for.
    /// `None` if the directory is not there, or went while this waited.
    pub(super) fn of(directory: &Path) -> Result<Option<Self>, SetupError> {
        let path = directory.join(NAME);
        let doing = || format!("lock {}", directory.display());
        loop {
            match DirBuilder::new().mode(CLOSED).create(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(failed(doing(), error));
                }
                _ => {}
            }
            let file = match File::open(&path) {
                // Whose it was has just removed it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                result => result.map_err(|error| failed(doing(), error))?,
            };
            wait(&file).map_err(|error| failed(doing(), error))?;
            let lock = Self {
                path: path.clone(),
                file,
            };
            if lock.is_there() {
                return Ok(Some(lock));
            }
        }
    }

    /// That of a file system which nobody else knows of yet, and which is going
    /// to be this directory.
    pub(super) fn first(file_system: BorrowedFd<'_>, directory: &Path) -> Result<Self, SetupError> {
        let made = || {
            mkdirat(file_system, NAME, Mode::from_raw_mode(CLOSED))?;
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let file = File::from(openat(file_system, NAME, flags, Mode::empty())?);
            wait(&file)?;
            Ok(file)
        };
        let file = made().map_err(|error: rustix::io::Errno| {
            failed(format!("lock {}", directory.display()), error)
        })?;
        Ok(Self {
            path: directory.join(NAME),
            file,
        })
    }

    /// What is locked, in the file system that it is in.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Whether it is what others would lock: whose it was may have removed it,
    /// or all of the file system.
    fn is_there(&self) -> bool {
        let (Ok(held), Ok(there)) = (self.file.metadata(), fs::symlink_metadata(&self.path)) else {
            return false;
        };
        (there.dev(), there.ino()) == (held.dev(), held.ino())
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // If the file system is gone it is somebody else's that is there.
        if self.is_there() {
            let _ = fs::remove_dir(&self.path);
        }
    }
}

fn wait(file: &File) -> rustix::io::Result<()> {
    // A signal that is handled interrupts it.
    retry_on_intr(|| flock(file, FlockOperation::LockExclusive))
}

/// Whether an entry of a directory is nothing but a lock.
pub(super) fn is_lock(name: &std::ffi::OsStr) -> bool {
    name == NAME
}

/// Removes the lock that is held, or that a killed process has left, from an
/// otherwise empty directory, which is about to be removed.
pub(super) fn clear(directory: &Path) {
    let _ = fs::remove_dir(directory.join(NAME));
}
