//! Where unfinished files are: a directory at the top of the one that is filled,
//! for one run at a time. Blocking.
//!
//! A lock says who is at work, and goes with its process, however that ends: what
//! is there without a lock is left over, and is removed by the next run.

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

/// Its name.
const NAME: &str = ".fairbat-unfinished";

/// Name of the lock in it.
const LOCK: &str = "lock";

/// A run that was stopped a moment ago may still have to put its last files into
/// place: so often it is looked whether it has ended, ...
const LOOKS: u32 = 50;
/// ... and so long after each look: 5 s together.
const PAUSE: Duration = Duration::from_millis(100);

/// Why nothing can be placed.
#[derive(Debug, thiserror::Error)]
pub(in crate::sync) enum OpenError {
    /// Another run is at work there, of this process or another.
    #[error("somebody is at work there")]
    Busy,
    /// This run has been stopped.
    #[error("stopped")]
    Stopped,
    /// The disk, or the rights.
    #[error(transparent)]
    Disk(#[from] io::Error),
}

/// See the module. Dropped, it is gone with all that is in it.
#[derive(Debug)]
pub(super) struct Workplace {
    root: OwnedFd,
    directory: OwnedFd,
    lock: File,
    next: AtomicU64,
}

/// A file that is being written. Dropped, it is given up, unless it was placed.
#[derive(Debug)]
pub(in crate::sync) struct Aside {
    pub(in crate::sync) file: File,
    pub(super) name: String,
    pub(super) is_placed: bool,
    workplace: Arc<Workplace>,
}

impl Workplace {
    /// That of the directory `root`, once nobody else is at work there.
    pub(super) fn open(root: OwnedFd, is_stopped: &dyn Fn() -> bool) -> Result<Self, OpenError> {
        for _ in 0..LOOKS {
            if is_stopped() {
                return Err(OpenError::Stopped);
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
            std::thread::sleep(PAUSE);
        }
        Err(OpenError::Busy)
    }

    /// A name that nothing in it has.
    pub(super) fn name(&self) -> String {
        self.next.fetch_add(1, Ordering::Relaxed).to_string()
    }

    /// The directory.
    pub(super) fn directory(&self) -> &OwnedFd {
        &self.directory
    }

    /// A new file.
    pub(super) fn begin(self: &Arc<Self>) -> io::Result<Aside> {
        let name = self.name();
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o600);
        let file = openat(&self.directory, name.as_str(), flags, mode)?;
        Ok(Aside {
            file: file.into(),
            name,
            is_placed: false,
            workplace: Arc::clone(self),
        })
    }

    /// Waits until everything that was written to this file system is on its
    /// disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        Ok(syncfs(&self.lock)?)
    }

    /// Removes what a process that was killed has left.
    fn clear(&self) -> io::Result<()> {
        for entry in Dir::read_from(&self.directory)? {
            let entry = entry?;
            let name = entry.file_name();
            if [c".", c".."].contains(&name) || name.to_bytes() == LOCK.as_bytes() {
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
        // What cannot be removed now, the next run removes.
        let _ = self.clear();
        let _ = unlinkat(&self.directory, LOCK, AtFlags::empty());
        let _ = unlinkat(&self.root, NAME, AtFlags::REMOVEDIR);
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        if !self.is_placed {
            let name = self.name.as_str();
            let _ = unlinkat(&self.workplace.directory, name, AtFlags::empty());
        }
    }
}

/// The directory and its lock; `None` while somebody else has it.
fn locked(root: impl AsFd) -> io::Result<Option<(OwnedFd, File)>> {
    match mkdirat(&root, NAME, Mode::from_raw_mode(0o700)) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    let open = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = match openat(&root, NAME, open, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(None),
        other => other?,
    };
    let open = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let lock = match openat(&directory, LOCK, open, Mode::from_raw_mode(0o600)) {
        Err(Errno::NOENT) => return Ok(None),
        other => File::from(other?),
    };
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    // Who had it may have removed it in between: then it locks nothing.
    let there = match statat(&directory, LOCK, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(None),
        other => other?,
    };
    let is_there = there.st_ino == fstat(&lock)?.st_ino;
    Ok(is_there.then_some((directory, lock)))
}

/// Whether a path is that of unfinished files.
pub(in crate::sync) fn is_unfinished(path: &TreePath) -> bool {
    path.names()
        .next()
        .is_some_and(|name| name.as_bytes() == NAME.as_bytes())
}
