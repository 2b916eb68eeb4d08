//! Unfinished uploads: the files that bodies are written to until they are
//! complete and on the disk. Blocking.
//!
//! They lie in one directory of the served file system, so that a rename finishes
//! an upload. A process holds a lock on each file that it writes (flock(2)), and
//! the lock ends with the process. So a file without a lock is left over from a
//! process that died. The next server removes it when it starts.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{
    AtFlags, Dir, FallocateFlags, FlockOperation, Mode, OFlags, ResolveFlags, fallocate, fchmod,
    flock, fstatvfs, mkdirat, openat, unlinkat,
};
use rustix::io::Errno;
use tokio::runtime::Handle;

use super::refusal::Refusal;
use super::slots::MAX_UPLOADS;
use crate::error::{ErrorKind, TransferError};
use crate::serve::files::{Root, SCRATCH};

/// Tries to make a file whose name is taken, or whose directory somebody removes.
const ATTEMPTS: usize = 1000;

/// Descriptors of an upload beyond those of a response with a file: the scratch
/// directory, the directory of its place, and one more for a moment.
const DESCRIPTORS_PER_UPLOAD: u64 = 3;

/// Descriptors of all uploads together, beyond those of their connections.
pub(crate) const UPLOAD_DESCRIPTORS: u64 = MAX_UPLOADS as u64 * DESCRIPTORS_PER_UPLOAD;

/// The mode of the scratch directory: nobody else may look into it.
const PRIVATE: Mode = Mode::RWXU;

/// The mode of the finished file, before the umask. The directory hides the file
/// until then.
const MODE: Mode = Mode::from_raw_mode(0o666);

/// An unfinished file. It is removed when this is dropped, unless it is kept.
#[derive(Debug)]
pub(crate) struct Scratch {
    pub(crate) file: File,
    /// The directory that it is in.
    pub(crate) directory: File,
    pub(crate) name: String,
    is_kept: bool,
}

impl Scratch {
    /// Makes a new file. `next` is the number of this process's next file.
    pub(crate) fn make(root: &Root, next: &AtomicU64) -> Result<Self, Refusal> {
        for _ in 0..ATTEMPTS {
            let directory = open_or_make(root)?;
            let number = next.fetch_add(1, Ordering::Relaxed);
            let name = format!("{}-{number}", std::process::id());
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let file: File = match openat(&directory, &name, flags, MODE) {
                Ok(file) => file.into(),
                // The name is taken, or the directory is gone.
                Err(Errno::EXIST | Errno::NOENT) => continue,
                Err(errno) => return Err(errno.into()),
            };
            let scratch = Self {
                file,
                directory,
                name,
                is_kept: false,
            };
            if scratch.lock()? {
                return Ok(scratch);
            }
        }
        Err(Refusal::Busy)
    }

    /// Whether the file is locked now. Another server that starts may have taken
    /// it for a leftover, and removes it then.
    fn lock(&self) -> io::Result<bool> {
        match flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(std::os::unix::fs::MetadataExt::nlink(&self.file.metadata()?) > 0),
            Err(Errno::AGAIN) => Ok(false),
            // On a file system without locks no server removes anything.
            Err(_) => Ok(true),
        }
    }

    /// Checks that the file system has room for so many bytes now, where it tells.
    /// Takes nothing: a client may announce more than it ever sends.
    pub(crate) fn check_room(&self, bytes: u64) -> Result<(), Refusal> {
        match fstatvfs(&self.file) {
            Ok(disk) if disk.f_blocks > 0 && disk.f_bfree.saturating_mul(disk.f_frsize) < bytes => {
                Err(Refusal::Full)
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Reserves disk space for these bytes of the file, where the file system can.
    pub(crate) fn reserve(&self, bytes: Range<u64>) -> Result<(), Refusal> {
        if bytes.is_empty() {
            return Ok(());
        }
        let length = bytes.end - bytes.start;
        match fallocate(&self.file, FallocateFlags::KEEP_SIZE, bytes.start, length) {
            Err(errno @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) => Err(errno.into()),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Keeps the file: it has its final name now.
    pub(crate) fn keep(&mut self) {
        self.is_kept = true;
    }

    /// Whether the file has its final name.
    pub(crate) fn is_kept(&self) -> bool {
        self.is_kept
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.is_kept {
            // Closing the last descriptor frees the disk space. For a large file
            // that takes a while, and other requests would wait here.
            if let (Ok(runtime), Ok(last)) = (Handle::try_current(), self.file.try_clone()) {
                runtime.spawn_blocking(move || drop(last));
            }
            // If this fails, the next server removes the file.
            let _ = unlinkat(&self.directory, &self.name, AtFlags::empty());
        }
    }
}

fn open(root: &Root) -> Result<File, Errno> {
    let restrictions = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    root.0.subdirectory(Path::new(SCRATCH), restrictions)
}

fn open_or_make(root: &Root) -> Result<File, Refusal> {
    let made = match open(root) {
        Err(Errno::NOENT) => {
            match mkdirat(root.directory(), SCRATCH, PRIVATE) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno.into()),
            }
            open(root)?
        }
        opened => opened?,
    };
    // Somebody may have opened the directory to other users.
    if std::os::unix::fs::PermissionsExt::mode(&made.metadata()?.permissions()) & 0o077 != 0 {
        fchmod(&made, PRIVATE)?;
    }
    Ok(made)
}

/// Removes the unfinished files of processes that ended. Returns their number.
///
/// # Errors
/// The directory exists, but cannot be used.
pub(crate) fn sweep(root: &Root) -> Result<usize, TransferError> {
    let unusable = |errno: Errno| {
        let message = format!("cannot take uploads: {SCRATCH} cannot be used: {errno}");
        TransferError::new(ErrorKind::Disk, message).with_hint(
            "it has to be a directory in the one that is served, of the user who serves; when no \
             server runs it can be removed",
        )
    };
    let directory = match open(root) {
        Ok(directory) => directory,
        Err(Errno::NOENT) => return Ok(0),
        Err(errno) => return Err(unusable(errno)),
    };
    let mut removed = 0;
    for entry in Dir::read_from(&directory).map_err(unusable)? {
        let entry = entry.map_err(unusable)?;
        let name = entry.file_name();
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(file) = openat(&directory, name, flags, Mode::empty()) else {
            continue;
        };
        let is_free = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
        if is_free && unlinkat(&directory, name, AtFlags::empty()).is_ok() {
            removed += 1;
        }
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn an_unfinished_file_is_removed_and_its_directory_is_private() {
        let temporary = tempfile::tempdir().unwrap();
        let root = Root::open(temporary.path()).unwrap();
        let next = AtomicU64::new(0);
        let one = Scratch::make(&root, &next).unwrap();
        let other = Scratch::make(&root, &next).unwrap();
        let scratch = temporary.path().join(SCRATCH);
        let mode = scratch.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        assert!(one.name != other.name && scratch.join(&one.name).exists());
        let name = one.name.clone();
        drop(one);
        assert!(!scratch.join(name).exists() && scratch.join(&other.name).exists());
    }

    #[test]
    fn only_unlocked_files_are_swept() {
        let temporary = tempfile::tempdir().unwrap();
        let root = Root::open(temporary.path()).unwrap();
        assert_eq!(sweep(&root).unwrap(), 0);
        assert!(!temporary.path().join(SCRATCH).exists(), "made for nothing");
        let next = AtomicU64::new(0);
        let held = Scratch::make(&root, &next).unwrap();
        let scratch = temporary.path().join(SCRATCH);
        // As it is after a kill.
        std::fs::write(scratch.join("1-0"), "left over").unwrap();
        assert_eq!(sweep(&root).unwrap(), 1);
        assert!(scratch.join(&held.name).exists() && !scratch.join("1-0").exists());
    }

    #[test]
    fn a_name_in_use_is_skipped() {
        let temporary = tempfile::tempdir().unwrap();
        let root = Root::open(temporary.path()).unwrap();
        let scratch = temporary.path().join(SCRATCH);
        std::fs::create_dir(&scratch).unwrap();
        let taken = scratch.join(format!("{}-0", std::process::id()));
        std::fs::write(&taken, "another's").unwrap();
        let made = Scratch::make(&root, &AtomicU64::new(0)).unwrap();
        assert!(made.name.ends_with("-1"), "{}", made.name);
        assert_eq!(std::fs::read(taken).unwrap(), b"another's");
    }

    #[test]
    fn a_link_in_place_of_the_directory_is_not_followed() {
        let temporary = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let root = Root::open(temporary.path()).unwrap();
        for target in [Path::new("inner"), elsewhere.path()] {
            let link = temporary.path().join(SCRATCH);
            std::os::unix::fs::symlink(target, &link).unwrap();
            assert!(Scratch::make(&root, &AtomicU64::new(0)).is_err());
            assert!(sweep(&root).is_err());
            std::fs::remove_file(link).unwrap();
        }
    }
}
