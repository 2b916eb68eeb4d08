//! The directory of temporary files, at the top of the directory that is filled. One
//! run at a time uses it. Blocking.
//!
//! The run holds a lock, which ends with its process in any case. Files without a
//! lock are left over, and the next run removes them.

use std::fs::{File, TryLockError};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::fs::{AtFlags, Dir, Mode, OFlags, fstat, mkdirat, openat, statat, syncfs, unlinkat};
use rustix::io::Errno;

use crate::entry::TreePath;

/// Name of the directory.
const DIRECTORY_NAME: &str = ".fairbat-unfinished";

/// Name of the lock file.
const LOCK_NAME: &str = "lock";

/// How often the lock is tried: a run that was just stopped may still be installing
/// its last files. ...
const MAX_LOCK_ATTEMPTS: u32 = 50;
/// ... The pause after each attempt; 5 s in all.
const LOCK_PAUSE: Duration = Duration::from_millis(100);

/// Why nothing can be installed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InstallError {
    /// Another run is filling the directory.
    #[error("somebody is at work there")]
    Busy,
    /// This run was stopped.
    #[error("stopped")]
    Stopped,
    /// The disk failed, or permission is missing.
    #[error(transparent)]
    Disk(#[from] io::Error),
}

/// The directory of temporary files. Removed when dropped.
#[derive(Debug)]
pub(crate) struct Workplace {
    root: OwnedFd,
    directory: OwnedFd,
    lock: File,
    next: AtomicU64,
}

/// A file that is being written. Deleted when dropped, unless it was installed.
#[derive(Debug)]
pub(crate) struct TemporaryFile {
    pub(crate) file: File,
    pub(crate) name: String,
    pub(crate) is_installed: bool,
    workplace: Arc<Workplace>,
}

impl Workplace {
    /// Opens the directory below `root` once no other run uses it.
    pub(crate) fn open(root: OwnedFd, is_stopped: &dyn Fn() -> bool) -> Result<Self, InstallError> {
        for _ in 0..MAX_LOCK_ATTEMPTS {
            if is_stopped() {
                return Err(InstallError::Stopped);
            }
            if let Some((directory, lock)) = locked(&root)? {
                let workplace = Self {
                    root,
                    directory,
                    lock,
                    next: AtomicU64::new(0),
                };
                workplace.clear()?;
                return Ok(workplace);
            }
            std::thread::sleep(LOCK_PAUSE);
        }
        Err(InstallError::Busy)
    }

    /// An unused name.
    pub(crate) fn name(&self) -> String {
        self.next.fetch_add(1, Ordering::Relaxed).to_string()
    }

    /// Its descriptor.
    pub(crate) fn directory(&self) -> &OwnedFd {
        &self.directory
    }

    /// Makes a file.
    pub(crate) fn begin(self: &Arc<Self>) -> io::Result<TemporaryFile> {
        let name = self.name();
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o600);
        let file = openat(&self.directory, name.as_str(), flags, mode)?;
        Ok(TemporaryFile {
            file: file.into(),
            name,
            is_installed: false,
            workplace: Arc::clone(self),
        })
    }

    /// Waits until all writes to this file system are on its disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        Ok(syncfs(&self.lock)?)
    }

    /// Removes the files of a killed process.
    fn clear(&self) -> io::Result<()> {
        for entry in Dir::read_from(&self.directory)? {
            let entry = entry?;
            let name = entry.file_name();
            if [c".", c".."].contains(&name) || name.to_bytes() == LOCK_NAME.as_bytes() {
                continue;
            }
            match unlinkat(&self.directory, name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

impl Drop for Workplace {
    fn drop(&mut self) {
        // The next run removes what cannot be removed now.
        let _ = self.clear();
        let _ = unlinkat(&self.directory, LOCK_NAME, AtFlags::empty());
        let _ = unlinkat(&self.root, DIRECTORY_NAME, AtFlags::REMOVEDIR);
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if !self.is_installed {
            let name = self.name.as_str();
            let _ = unlinkat(&self.workplace.directory, name, AtFlags::empty());
        }
    }
}

/// The directory and its lock. `None` while another run holds the lock.
fn locked(root: impl AsFd) -> io::Result<Option<(OwnedFd, File)>> {
    match mkdirat(&root, DIRECTORY_NAME, Mode::from_raw_mode(0o700)) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    let open = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = match openat(&root, DIRECTORY_NAME, open, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(None),
        other => other?,
    };
    let open = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let lock = match openat(&directory, LOCK_NAME, open, Mode::from_raw_mode(0o600)) {
        Err(Errno::NOENT) => return Ok(None),
        other => File::from(other?),
    };
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    // The last holder may have removed the file. Then the lock is void.
    let there = match statat(&directory, LOCK_NAME, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(None),
        other => other?,
    };
    let is_there = there.st_ino == fstat(&lock)?.st_ino;
    Ok(is_there.then_some((directory, lock)))
}

/// Whether a path is that of temporary files.
pub(crate) fn is_temporary(path: &TreePath) -> bool {
    path.names()
        .next()
        .is_some_and(|name| name.as_bytes() == DIRECTORY_NAME.as_bytes())
}
