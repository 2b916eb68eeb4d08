//! Whose part file it is, and which file a finished one was: owners, locks, inode
//! checks and the extended attribute `user.fairbat`.
//!
//! A name can come to stand for another file while one is open. So everything here acts on
//! the open file, and names are only compared with it.
//!
//! In a directory that several users share, such as `/tmp`, anybody can put a file under a
//! name that this run is going to use. So a file counts only if this process's user owns it.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::{AtFlags, OFlags, StatxFlags, XattrFlags, fgetxattr, fsetxattr, statx};
use rustix::process::geteuid;

use super::paths::{PartError, Paths, remove_if_there};
use crate::checksum::sha256_hex;

/// The attribute that marks our files.
const ATTRIBUTE: &str = "user.fairbat";

/// Its value on a part file.
const PART: &str = "part";

/// STATX_MNT_ID_UNIQUE (Linux 6.8): like STATX_MNT_ID, but never reused.
const MNT_ID_UNIQUE: StatxFlags = StatxFlags::from_bits_retain(0x4000);

/// Opens only the file of this very name, and does not wait for the other end of a pipe.
const PLAIN: i32 = OFlags::NOFOLLOW
    .union(OFlags::NONBLOCK)
    .bits()
    .cast_signed();

/// Fails if another user owns one of the transfer's working files, so that none of them is
/// touched.
pub(crate) fn check_working_files(paths: &Paths) -> Result<(), PartError> {
    for path in [&paths.part, &paths.journal, &paths.new_journal()] {
        if let Ok(meta) = std::fs::symlink_metadata(path) {
            check(&meta, path, paths)?;
        }
    }
    Ok(())
}

/// Fails if the finished file would replace one of another user where everybody may write:
/// nobody asked that user. In a directory with the sticky bit, only root could replace it.
pub(crate) fn check_target(paths: &Paths) -> Result<(), PartError> {
    const STICKY_OR_WRITABLE_BY_ALL: u32 = 0o1002;
    let target = &paths.target;
    let failed = |error| PartError::io("look at", target, error);
    let meta = match std::fs::symlink_metadata(target) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found.map_err(failed)?,
    };
    let directory = std::fs::metadata(paths.directory()).map_err(failed)?;
    let is_shared = directory.mode() & STICKY_OR_WRITABLE_BY_ALL != 0;
    match is_shared.then(|| check(&meta, target, paths)) {
        Some(Err(PartError::NotOwn(target))) => Err(PartError::TargetNotOwn(target)),
        checked => checked.unwrap_or(Ok(())),
    }
}

/// Fails if another user owns the file at `path`.
fn check(meta: &Metadata, path: &Path, paths: &Paths) -> Result<(), PartError> {
    let failed = |error| PartError::io("make", &paths.sample(), error);
    match is_own(meta, paths).map_err(failed)? {
        true => Ok(()),
        false => Err(PartError::NotOwn(path.to_owned())),
    }
}

/// Whether this process's user owns a file beside the part file. Some file systems give
/// files to another user than the one who makes them: FAT gives all files to one, and NFS
/// gives those of root to nobody. There, the owner of a new file is the one that counts.
fn is_own(meta: &Metadata, paths: &Paths) -> io::Result<bool> {
    if meta.uid() == geteuid().as_raw() {
        return Ok(true);
    }
    let path = paths.sample();
    // A killed process with this number may have left one.
    remove_if_there(&path)?;
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&path)?;
    let new = file.metadata();
    remove_if_there(&path)?;
    Ok(meta.uid() == new?.uid())
}

/// Whether a symbolic link may say where a file goes: it is this user's or root's.
pub(crate) fn may_follow(link: &Metadata) -> bool {
    link.uid() == geteuid().as_raw() || link.uid() == 0
}

/// Opens the part file, makes it if there is none, and takes the lock that
/// makes this process its owner. `None`: another process is.
pub(crate) fn lock(paths: &Paths) -> Result<Option<File>, PartError> {
    let failed = |error| PartError::io("open", &paths.part, error);
    loop {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .custom_flags(PLAIN)
            .open(&paths.part)
            .map_err(|error| match std::fs::symlink_metadata(&paths.part) {
                Ok(meta) if !meta.is_file() => PartError::NotAFile(paths.part.clone()),
                _ => failed(error),
            })?;
        let meta = file.metadata().map_err(failed)?;
        if !meta.is_file() {
            return Err(PartError::NotAFile(paths.part.clone()));
        }
        check(&meta, &paths.part, paths)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => return Ok(None),
            // Some network file systems have no locks: go on without.
            Err(std::fs::TryLockError::Error(error)) => {
                tracing::warn!(%error, "the part file cannot be locked");
            }
        }
        // The owner before us may have renamed it between open and lock.
        if is_at(&file, &paths.part).map_err(failed)? {
            return Ok(Some(file));
        }
    }
}

/// Reads the journal; `None` if there is none. Anything but a regular file counts as empty.
pub(crate) fn read_journal(paths: &Paths) -> Result<Option<Vec<u8>>, PartError> {
    let path = &paths.journal;
    let failed = |error| PartError::io("read", path, error);
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Ok(meta) if !meta.is_file() => return Ok(Some(Vec::new())),
        Ok(_) | Err(_) => {}
    }
    let open = OpenOptions::new().read(true).custom_flags(PLAIN).open(path);
    let mut file = open.map_err(failed)?;
    check(&file.metadata().map_err(failed)?, path, paths)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(failed)?;
    Ok(Some(bytes))
}

/// Whether `path` names this very file.
pub(crate) fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let here = file.metadata()?;
    match std::fs::symlink_metadata(path) {
        Ok(there) => Ok(there.ino() == here.ino() && there.dev() == here.dev()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Marks a part file as ours, so that it is known even when a power loss took
/// the journal. Best effort: not every file system has attributes.
pub(crate) fn mark_part(file: &File) {
    set(file, PART);
}

/// Whether a part file is marked.
pub(crate) fn is_marked_part(file: &File) -> bool {
    get(file).as_deref() == Some(PART.as_bytes())
}

/// Notes on a finished file which version of which resource it is.
pub(crate) fn label(file: &File, identity: Option<&str>) -> io::Result<()> {
    let value = match identity {
        Some(identity) => label_of(identity, &file.metadata()?),
        None => String::new(),
    };
    set(file, &value);
    Ok(())
}

/// Whether the finished file is this user's, carries the label of `identity` and has not
/// been changed since. Others can write any label on files of their own.
pub(crate) fn has_label(paths: &Paths, identity: &str) -> bool {
    own_label(paths).is_some_and(|(label, meta)| label == label_of(identity, &meta).as_bytes())
}

/// The label of the finished file, if it is this user's: empty if nothing identified its
/// version.
pub(crate) fn own_label(paths: &Paths) -> Option<(Vec<u8>, Metadata)> {
    let mut open = OpenOptions::new();
    let open = open.read(true).custom_flags(PLAIN).open(&paths.target);
    let file = open.ok()?;
    let meta = file.metadata().ok()?;
    let label = get(&file)?;
    is_own(&meta, paths).ok()?.then_some((label, meta))
}

fn label_of(identity: &str, meta: &Metadata) -> String {
    let (size, seconds, nanoseconds) = (meta.size(), meta.mtime(), meta.mtime_nsec());
    sha256_hex(format!("{identity}\n{size} {seconds}.{nanoseconds}").as_bytes())
}

fn set(file: &File, value: &str) {
    if let Err(error) = fsetxattr(file, ATTRIBUTE, value.as_bytes(), XattrFlags::empty()) {
        tracing::debug!(%error, "attribute not set");
    }
}

fn get(file: &File) -> Option<Vec<u8>> {
    let mut value = vec![0; 128];
    let length = fgetxattr(file, ATTRIBUTE, value.as_mut_slice()).ok()?;
    value.truncate(length);
    Some(value)
}

/// Identifies the boot, the mount and the file. Bytes that were written but not synced
/// still exist only where all three are the same. Empty when the kernel does not tell; then
/// nothing is the same.
pub(crate) fn instance(file: &File) -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    let stat = statx(file, c"", AtFlags::EMPTY_PATH, MNT_ID_UNIQUE)
        .ok()
        .filter(|stat| stat.stx_mask & MNT_ID_UNIQUE.bits() != 0)
        .or_else(|| statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID).ok());
    match (boot, stat, file.metadata()) {
        (Ok(boot), Some(stat), Ok(meta)) => {
            format!("{} {} {}", boot.trim(), stat.stx_mnt_id, meta.ino())
        }
        _ => String::new(),
    }
}
