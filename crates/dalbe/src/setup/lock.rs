//! One setup at a time.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

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
    _file: File,
}

impl Lock {
    /// Waits for it. Who was killed while it was held is not waited for.
    pub(super) fn of(directory: &Path) -> Result<Self, SetupError> {
        let path = directory.join(NAME);
        let doing = || format!("lock {}", directory.display());
        loop {
            match DirBuilder::new().mode(CLOSED).create(&path) {
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
            flock(&file, FlockOperation::LockExclusive).map_err(|error| failed(doing(), error))?;
            let held = file.metadata().map_err(|error| failed(doing(), error))?;
            let there = fs::symlink_metadata(&path);
            if there.is_ok_and(|there| (there.dev(), there.ino()) == (held.dev(), held.ino())) {
                return Ok(Self { path, _file: file });
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Gone already, if the file system is.
        let _ = fs::remove_dir(&self.path);
    }
}

/// Whether an entry of a directory is nothing but a lock.
pub(super) fn is_lock(name: &std::ffi::OsStr) -> bool {
    name == NAME
}

/// Removes what a killed process may have left in an otherwise empty
/// directory, which is about to be removed.
pub(super) fn clear(directory: &Path) {
    let _ = fs::remove_dir(directory.join(NAME));
}
