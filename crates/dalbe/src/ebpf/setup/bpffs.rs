//! Makes, checks, locks and removes the BPF file system that holds the pins.

use std::fs::{self, DirBuilder, DirEntry, File, Permissions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{
    CWD, FlockOperation, Mode, OFlags, StatFs, flock, fstatfs, mkdirat, openat, statfs,
};
use rustix::io::{Errno, retry_on_intr};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, UnmountFlags, fsconfig_create,
    fsconfig_set_string, fsmount, fsopen, move_mount, unmount,
};
use rustix::process::geteuid;

use super::{SetupError, failed_to};
use crate::ebpf::PIN_DIRECTORY;

/// `BPF_FS_MAGIC` of the kernel's `linux/magic.h`.
const MAGIC: u64 = 0xcafe_4a11;

/// All users may read, the owner may write.
pub(crate) const PUBLIC_MODE: u32 = 0o755;

/// Makes this directory a BPF file system and locks it. All users can enter it, and
/// only this user can write to it. It starts again if another process removes the
/// directory in the meantime. On an error, the rollback comes before the unlock.
pub(crate) fn make(directory: &Path) -> Result<(SetupLock, Rollback), SetupError> {
    let above = directory.parent().and_then(Path::parent);
    let mut undo = Rollback::default();
    loop {
        match make_once(directory, &mut undo) {
            Ok(Some(lock)) => return Ok((lock, undo)),
            Ok(None) => {}
            // Without a directory above, there is nothing to start from.
            Err(error) if error.is_gone() && above.is_some_and(Path::exists) => {}
            Err(error) => return Err(error),
        }
    }
}

/// One attempt of [`make`]; `None` if another attempt is needed.
fn make_once(directory: &Path, undo: &mut Rollback) -> Result<Option<SetupLock>, SetupError> {
    if let Some(parent) = directory.parent() {
        make_directory(parent, undo)?;
        check(parent)?;
    }
    make_directory(directory, undo)?;
    check(directory)?;
    if is_bpffs(directory)? {
        return lock(directory);
    }
    // Two processes at once would mount one file system on the other.
    let Some(_above) = SetupLock::of(directory.parent().unwrap_or(directory))? else {
        return Ok(None);
    };
    if is_bpffs(directory)? {
        // This does not take its lock: a process that removes the file system
        // holds that lock and waits for ours.
        return Ok(None);
    }
    if !is_empty(directory)? {
        return Err(SetupError::NotOurs {
            path: directory.to_owned(),
            why: "it is no BPF file system and not empty",
        });
    }
    let made = file_system().map_err(failed_to("mount", directory))?;
    // The lock comes before the mount. If a step fails, the file system goes with
    // its last descriptor.
    let lock = SetupLock::first(made.as_fd(), directory)?;
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    move_mount(made, "", CWD, directory, flags).map_err(failed_to("mount", directory))?;
    let mounted = directory.to_owned();
    undo.note(move || drop(unmount_if_empty(&mounted)));
    Ok(Some(lock))
}

/// A new BPF file system that is not mounted yet.
fn file_system() -> rustix::io::Result<OwnedFd> {
    let new = fsopen("bpf", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&new, "source", "fairbat")?;
    fsconfig_set_string(&new, "mode", format!("{PUBLIC_MODE:04o}"))?;
    fsconfig_create(&new)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    fsmount(&new, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

/// Unmounts the file system and with it the lock, if it is empty.
pub(crate) fn unmount_if_empty(directory: &Path) -> Result<(), SetupError> {
    if !is_bpffs(directory)? || !is_empty(directory)? {
        return Ok(());
    }
    unmount(directory, UnmountFlags::DETACH).map_err(failed_to("unmount", directory))
}

/// Locks the BPF file system in this directory; `None` if there is none, or it was
/// removed while this waited.
pub(crate) fn lock(directory: &Path) -> Result<Option<SetupLock>, SetupError> {
    let Some(lock) = SetupLock::of(directory)? else {
        return Ok(None);
    };
    // The lock tells which file system was locked. Another one may have been
    // mounted over it just now.
    let found = fstatfs(&lock.file).map_err(failed_to("look at", directory))?;
    Ok(has_magic(&found).then_some(lock))
}

/// Unmounts the file system and removes the directories, if they are empty. The
/// lock goes with them. A file system that is mounted further above stays. So does
/// one that this process may not unmount, such as a mount unit of systemd.
pub(crate) fn remove_if_empty(directory: &Path) -> Result<(), SetupError> {
    let Some(parent) = directory.parent() else {
        return Ok(());
    };
    // With this lock, no other process mounts one in the meantime.
    let _above = match SetupLock::of(parent) {
        Ok(Some(lock)) => lock,
        Ok(None) => return Ok(()),
        Err(error) if error.is_refusal() => return Ok(()),
        Err(error) => return Err(error),
    };
    if directory.exists() {
        if !is_empty(directory)? {
            return Ok(());
        }
        let is_mounted = is_mount_point(directory)?;
        if is_mounted {
            // If a process stands in it, the file system ends with that process.
            match unmount(directory, UnmountFlags::DETACH) {
                Err(Errno::PERM) => return Ok(()),
                result => result.map_err(failed_to("unmount", directory))?,
            }
        }
        match check(directory) {
            // The directory below the mount may belong to another user.
            Err(_) if is_mounted => return Ok(()),
            result => result?,
        }
        loop {
            clear(directory);
            match fs::remove_dir(directory) {
                // One that has waited for the lock of the file system takes that of the directory
                // below, sees what it is, and lets go of it again.
                Err(error)
                    if error.kind() == io::ErrorKind::DirectoryNotEmpty && is_empty(directory)? => {
                }
                result => break result.map_err(failed_to("remove", directory))?,
            }
        }
    }
    // The directory above is ours only for this path. A killed removal may have
    // left it, and others may have put something there.
    if directory == Path::new(PIN_DIRECTORY) && is_empty(parent)? {
        clear(parent);
        let _ = fs::remove_dir(parent);
    }
    Ok(())
}

/// Whether this directory is a BPF file system.
pub(crate) fn is_bpffs(directory: &Path) -> Result<bool, SetupError> {
    match statfs(directory) {
        Ok(found) => Ok(has_magic(&found)),
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(failed_to("look at", directory)(error)),
    }
}

fn has_magic(found: &StatFs) -> bool {
    u64::try_from(found.f_type).is_ok_and(|kind| kind & 0xffff_ffff == MAGIC)
}

/// Makes a directory that all users may read, if there is none.
pub(crate) fn make_directory(path: &Path, undo: &mut Rollback) -> Result<(), SetupError> {
    match DirBuilder::new().mode(PUBLIC_MODE).create(path) {
        Ok(()) => {
            let made = path.to_owned();
            undo.note(move || drop(fs::remove_dir(made)));
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        Err(error) => return Err(failed_to("make", path)(error)),
    }
    // The umask may have removed some rights.
    fs::set_permissions(path, Permissions::from_mode(PUBLIC_MODE)).map_err(failed_to("make", path))
}

/// Refuses a directory that other users could change or could not enter.
fn check(path: &Path) -> Result<(), SetupError> {
    let found = fs::symlink_metadata(path).map_err(failed_to("look at", path))?;
    if found.uid() == 0 && !geteuid().is_root() {
        let refused = io::Error::from_raw_os_error(libc::EACCES);
        return Err(failed_to("write to", path)(refused));
    }
    let why = if !found.is_dir() {
        "it is no directory"
    } else if found.uid() != geteuid().as_raw() {
        "it belongs to another user"
    } else if found.mode() & 0o022 != 0 {
        "other users may write to it"
    } else if found.mode() & 0o005 != 0o005 {
        "other users may not look into it"
    } else {
        return Ok(());
    };
    Err(SetupError::NotOurs {
        path: path.to_owned(),
        why,
    })
}

/// Whether a directory holds at most a lock. In a BPF file system, names with a dot
/// are the kernel's own (`maps.debug`) and do not count.
fn is_empty(path: &Path) -> Result<bool, SetupError> {
    let is_bpffs = is_bpffs(path)?;
    let entries = fs::read_dir(path).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let entries = entries.map_err(failed_to("read", path))?;
    let is_kernels =
        |entry: &DirEntry| is_bpffs && entry.file_name().as_encoded_bytes().contains(&b'.');
    let counts = |entry: &&DirEntry| entry.file_name() != LOCK_NAME;
    Ok(entries.iter().filter(counts).all(is_kernels))
}

fn is_mount_point(path: &Path) -> Result<bool, SetupError> {
    let device = |path: &Path| match fs::symlink_metadata(path) {
        Ok(found) => Ok(found.dev()),
        Err(error) => Err(failed_to("look at", path)(error)),
    };
    match path.parent() {
        Some(parent) => Ok(device(path)? != device(parent)?),
        None => Ok(true),
    }
}

/// The name of the directory that is locked. It exists only while the lock is held.
/// Any process that can open a directory can lock it. So a public directory would
/// let any user block root.
const LOCK_NAME: &str = "fairbat-lock";

/// Only the owner may enter.
const PRIVATE_MODE: u32 = 0o700;

/// The lock on a directory: one setup at a time. Held until it is dropped.
#[derive(Debug)]
pub(crate) struct SetupLock {
    path: PathBuf,
    /// Closing this file releases the lock.
    file: File,
}

impl SetupLock {
    /// Waits for the lock. The lock of a killed process is free. `None` if the
    /// directory does not exist or was removed while this waited.
    pub(crate) fn of(directory: &Path) -> Result<Option<Self>, SetupError> {
        let path = directory.join(LOCK_NAME);
        loop {
            match DirBuilder::new().mode(PRIVATE_MODE).create(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(failed_to("lock", directory)(error));
                }
                _ => {}
            }
            let file = match File::open(&path) {
                // The former holder has just removed it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                result => result.map_err(failed_to("lock", directory))?,
            };
            wait(&file).map_err(failed_to("lock", directory))?;
            let lock = Self {
                path: path.clone(),
                file,
            };
            if lock.is_there() {
                return Ok(Some(lock));
            }
        }
    }

    /// The lock of a file system that is not mounted yet, at the path where it
    /// will be mounted.
    pub(crate) fn first(file_system: BorrowedFd<'_>, directory: &Path) -> Result<Self, SetupError> {
        let made = || {
            mkdirat(file_system, LOCK_NAME, Mode::from_raw_mode(PRIVATE_MODE))?;
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let file = File::from(openat(file_system, LOCK_NAME, flags, Mode::empty())?);
            wait(&file)?;
            Ok(file)
        };
        let file = made().map_err(failed_to::<Errno>("lock", directory))?;
        Ok(Self {
            path: directory.join(LOCK_NAME),
            file,
        })
    }

    /// Whether other processes would lock the same directory. The former holder may
    /// have removed it, or the whole file system.
    fn is_there(&self) -> bool {
        let (Ok(held), Ok(there)) = (self.file.metadata(), fs::symlink_metadata(&self.path)) else {
            return false;
        };
        (there.dev(), there.ino()) == (held.dev(), held.ino())
    }
}

impl Drop for SetupLock {
    fn drop(&mut self) {
        // If the file system is gone, the lock there belongs to another process.
        if self.is_there() {
            let _ = fs::remove_dir(&self.path);
        }
    }
}

fn wait(file: &File) -> rustix::io::Result<()> {
    // A signal with a handler interrupts the call.
    retry_on_intr(|| flock(file, FlockOperation::LockExclusive))
}

/// Removes the lock from an otherwise empty directory, before the directory itself
/// is removed. This process holds the lock, or a killed process has left it.
pub(crate) fn clear(directory: &Path) {
    let _ = fs::remove_dir(directory.join(LOCK_NAME));
}

/// The actions so far. Dropping this undoes them, the latest first, unless
/// [`Rollback::keep`] was called. The caller holds the lock until then, because the
/// next holder may begin the same actions.
#[derive(Default)]
pub(crate) struct Rollback(Vec<Box<dyn FnOnce()>>);

impl Rollback {
    /// Adds the way to undo the last action.
    pub(crate) fn note(&mut self, take_back: impl FnOnce() + 'static) {
        self.0.push(Box::new(take_back));
    }

    /// Keeps everything.
    pub(crate) fn keep(&mut self) {
        self.0.clear();
    }
}

impl Drop for Rollback {
    fn drop(&mut self) {
        // The user learns the first error. Errors of the rollback do not matter.
        while let Some(take_back) = self.0.pop() {
            take_back();
        }
    }
}
