//! Files that are not finished: where an upload is gathered until all of it is on
//! the disk. Blocking.
//!
//! They are in one directory of the file system that is served, so that finishing
//! one is a rename. Whoever writes one holds a lock on it (flock(2)), which ends
//! with the process whatever ends that: so what nobody holds is left over from one
//! that died, and is removed when the next one starts.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{
    AtFlags, Dir, FallocateFlags, FlockOperation, Mode, OFlags, ResolveFlags, fallocate, fchmod,
    flock, mkdirat, openat, unlinkat,
};
use rustix::io::Errno;
use tokio::runtime::Handle;

use super::super::files::{Root, SCRATCH};
use super::refusal::Refusal;
use crate::error::{ErrorKind, TransferError};

/// How often a name, or the directory, is tried that somebody else took away.
const ATTEMPTS: usize = 1000;

/// Nobody else looks into the directory.
const PRIVATE: Mode = Mode::RWXU;

/// As the umask has it: it is the directory that hides what is unfinished, and
/// the mode is that of the finished file.
const MODE: Mode = Mode::from_raw_mode(0o666);

/// A file that goes away with this, unless it is kept.
#[derive(Debug)]
pub(super) struct Scratch {
    pub(super) file: File,
    /// The directory that it is in.
    pub(super) directory: File,
    pub(super) name: String,
    is_kept: bool,
}

impl Scratch {
    /// A new one; `next` counts those of this process.
    pub(super) fn make(root: &Root, next: &AtomicU64) -> Result<Self, Refusal> {
        for _ in 0..ATTEMPTS {
            let directory = open_or_make(root)?;
            let number = next.fetch_add(1, Ordering::Relaxed);
            let name = format!("{}-{number}", std::process::id());
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let file: File = match openat(&directory, &name, flags, MODE) {
                Ok(file) => file.into(),
                // Another process has it; or the directory went away.
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

    /// Whether it is ours now: one that starts may have taken it for a remainder,
    /// and removes it then.
    fn lock(&self) -> io::Result<bool> {
        match flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(std::os::unix::fs::MetadataExt::nlink(&self.file.metadata()?) > 0),
            Err(Errno::AGAIN) => Ok(false),
            // There are file systems without locks: nothing is removed there.
            Err(_) => Ok(true),
        }
    }

    /// Makes sure that there is room for a file of this size, where the file
    /// system can.
    pub(super) fn reserve(&self, size: u64) -> Result<(), Refusal> {
        if size == 0 {
            return Ok(());
        }
        match fallocate(&self.file, FallocateFlags::KEEP_SIZE, 0, size) {
            Err(errno @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) => Err(errno.into()),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// It has another name, and is no longer to be removed.
    pub(super) fn keep(&mut self) {
        self.is_kept = true;
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.is_kept {
            // With the last descriptor goes what is on the disk, which takes a while
            // for large files: not here, where others wait.
            if let (Ok(runtime), Ok(last)) = (Handle::try_current(), self.file.try_clone()) {
                runtime.spawn_blocking(move || drop(last));
            }
            // The next start removes what cannot be removed now.
            let _ = unlinkat(&self.directory, &self.name, AtFlags::empty());
        }
    }
}

fn open(root: &Root) -> Result<File, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let restrictions = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    root.resolve(Path::new(SCRATCH), flags, restrictions)
        .map(File::from)
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
    // Somebody may have opened it to others, who would see what is unfinished.
    if std::os::unix::fs::PermissionsExt::mode(&made.metadata()?.permissions()) & 0o077 != 0 {
        fchmod(&made, PRIVATE)?;
    }
    Ok(made)
}

/// Removes what processes have left that are no more; returns how many files that
/// were.
///
/// # Errors
/// The directory is there, but cannot be used.
pub(super) fn sweep(root: &Root) -> Result<usize, TransferError> {
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
    fn what_is_not_kept_goes_away_and_the_directory_is_private() {
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
    fn only_what_nobody_holds_is_swept() {
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
    fn a_name_that_is_taken_is_passed_over() {
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
