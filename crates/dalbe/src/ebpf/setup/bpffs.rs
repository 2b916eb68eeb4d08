//! The BPF file system that all is pinned in: made, checked, removed.

use std::fs::{self, DirBuilder, DirEntry, Permissions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{CWD, StatFs, fstatfs, statfs};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, UnmountFlags, fsconfig_create,
    fsconfig_set_string, fsmount, fsopen, move_mount, unmount,
};
use rustix::process::geteuid;

use super::lock::{Lock, clear, is_lock};
use super::undo::{Done, Rollback};
use super::{PIN_DIRECTORY, SetupError, failed};

/// `BPF_FS_MAGIC` of the kernel's `linux/magic.h`.
const MAGIC: u64 = 0xcafe_4a11;

/// Everybody may look, the owner may write.
pub(super) const OPEN: u32 = 0o755;

/// Makes sure that this directory is a BPF file system which everybody can
/// enter and nobody else can write to, and locks it; what was made is undone
/// before the lock is let go. Begins anew when somebody removes it meanwhile.
pub(super) fn make(directory: &Path) -> Result<(Lock, Rollback), SetupError> {
    let above = directory.parent().and_then(Path::parent);
    let mut undo = Rollback::default();
    loop {
        match make_once(directory, &mut undo) {
            Ok(Some(lock)) => return Ok((lock, undo)),
            Ok(None) => {}
            // There must be something to begin with.
            Err(error) if error.is_gone() && above.is_some_and(Path::exists) => {}
            Err(error) => return Err(error),
        }
    }
}

/// `None` if it is to be looked for again.
fn make_once(directory: &Path, undo: &mut Rollback) -> Result<Option<Lock>, SetupError> {
    if let Some(parent) = directory.parent() {
        make_directory(parent, undo)?;
        check(parent)?;
    }
    make_directory(directory, undo)?;
    check(directory)?;
    if is_bpffs(directory)? {
        return lock(directory);
    }
    // Two at once would mount one on the other.
    let Some(_above) = Lock::of(directory.parent().unwrap_or(directory))? else {
        return Ok(None);
    };
    if is_bpffs(directory)? {
        // Its lock not now: who removes it has that one and waits for this.
        return Ok(None);
    }
    if !is_empty(directory)? {
        return Err(SetupError::NotOurs {
            path: directory.to_owned(),
            why: "it is no BPF file system and not empty",
        });
    }
    let doing = |error| failed(format!("mount {}", directory.display()), error);
    let made = file_system().map_err(doing)?;
    // Before anybody can be in it: when something fails it just goes, with the
    // last descriptor of it.
    let lock = Lock::first(made.as_fd(), directory)?;
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    move_mount(made, "", CWD, directory, flags).map_err(doing)?;
    undo.note(Done::Mount(directory.to_owned()));
    Ok(Some(lock))
}

/// A BPF file system that is mounted nowhere yet.
fn file_system() -> rustix::io::Result<OwnedFd> {
    let new = fsopen("bpf", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&new, "source", "fairbat")?;
    fsconfig_set_string(&new, "mode", format!("{OPEN:04o}"))?;
    fsconfig_create(&new)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    fsmount(&new, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

/// Takes a mount back, unless somebody has put something there meanwhile; takes
/// the lock.
pub(super) fn unmount_if_empty(directory: &Path) -> Result<(), SetupError> {
    if !is_bpffs(directory)? || !is_empty(directory)? {
        return Ok(());
    }
    unmount(directory, UnmountFlags::DETACH)
        .map_err(|error| failed(format!("unmount {}", directory.display()), error))
}

/// Locks the BPF file system that is there; `None` if there is none, or it
/// went while this waited.
pub(super) fn lock(directory: &Path) -> Result<Option<Lock>, SetupError> {
    let Some(lock) = Lock::of(directory)? else {
        return Ok(None);
    };
    // By the lock, for one may have been mounted over it just now.
    let found = fstatfs(lock.file())
        .map_err(|error| failed(format!("look at {}", directory.display()), error))?;
    Ok(has_magic(&found).then_some(lock))
}

/// Unmounts it and removes the directories, if nothing is left in it; takes
/// the lock, if it is one. A file system that was mounted elsewhere, above,
/// stays; so does one that this process may not unmount, because somebody else
/// has mounted it (a mount unit of systemd).
pub(super) fn remove_if_empty(directory: &Path) -> Result<(), SetupError> {
    let Some(parent) = directory.parent() else {
        return Ok(());
    };
    // Nobody is to mount another meanwhile.
    let _above = match Lock::of(parent) {
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
            // A process may stand in it; it then goes when that does.
            match unmount(directory, UnmountFlags::DETACH) {
                Err(Errno::PERM) => return Ok(()),
                result => {
                    let doing = || format!("unmount {}", directory.display());
                    result.map_err(|error| failed(doing(), error))?;
                }
            }
        }
        match check(directory) {
            // What it was mounted on is who knows whose.
            Err(_) if is_mounted => return Ok(()),
            result => result?,
        }
        clear(directory);
        fs::remove_dir(directory)
            .map_err(|error| failed(format!("remove {}", directory.display()), error))?;
    }
    // Of any other path the one above is not ours. A removal that was killed
    // may have left it; others may have put something there.
    if directory == Path::new(PIN_DIRECTORY) && is_empty(parent)? {
        clear(parent);
        let _ = fs::remove_dir(parent);
    }
    Ok(())
}

/// Whether there is a BPF file system.
pub(super) fn is_bpffs(directory: &Path) -> Result<bool, SetupError> {
    match statfs(directory) {
        Ok(found) => Ok(has_magic(&found)),
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(failed(format!("look at {}", directory.display()), error)),
    }
}

fn has_magic(found: &StatFs) -> bool {
    u64::try_from(found.f_type).is_ok_and(|kind| kind & 0xffff_ffff == MAGIC)
}

/// Makes a directory that everybody may look into, if there is none.
pub(super) fn make_directory(path: &Path, undo: &mut Rollback) -> Result<(), SetupError> {
    let doing = || format!("make {}", path.display());
    match DirBuilder::new().mode(OPEN).create(path) {
        Ok(()) => undo.note(Done::Directory(path.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        Err(error) => return Err(failed(doing(), error)),
    }
    // The process's mask may have taken something away.
    fs::set_permissions(path, Permissions::from_mode(OPEN)).map_err(|error| failed(doing(), error))
}

/// Refuses what another user could change, or could not enter.
fn check(path: &Path) -> Result<(), SetupError> {
    let found = fs::symlink_metadata(path)
        .map_err(|error| failed(format!("look at {}", path.display()), error))?;
    if found.uid() == 0 && !geteuid().is_root() {
        let refused = io::Error::from_raw_os_error(libc::EACCES);
        return Err(failed(format!("write to {}", path.display()), refused));
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

/// Whether nothing is in it, but perhaps a lock. In a BPF file system the names
/// with a dot are the kernel's own (`maps.debug`), and nobody else may have
/// such.
fn is_empty(path: &Path) -> Result<bool, SetupError> {
    let is_bpffs = is_bpffs(path)?;
    let entries = fs::read_dir(path).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let entries = entries.map_err(|error| failed(format!("read {}", path.display()), error))?;
    let is_kernels =
        |entry: &DirEntry| is_bpffs && entry.file_name().as_encoded_bytes().contains(&b'.');
    let counts = |entry: &&DirEntry| !is_lock(&entry.file_name());
    Ok(entries.iter().filter(counts).all(is_kernels))
}

fn is_mount_point(path: &Path) -> Result<bool, SetupError> {
    let device = |path: &Path| {
        let found = fs::symlink_metadata(path);
        found
            .map(|found| found.dev())
            .map_err(|error| failed(format!("look at {}", path.display()), error))
    };
    match path.parent() {
        Some(parent) => Ok(device(path)? != device(parent)?),
        None => Ok(true),
    }
}
