//! Whose part file it is, and which file a finished one was: locks, inode
//! checks and the extended attribute `user.fairbat`.
//!
//! A name can come to stand for another file while one is open. So everything here acts on
//! the open file, and names are only compared with it.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::{AtFlags, OFlags, StatxFlags, XattrFlags, fgetxattr, fsetxattr, statx};

use super::paths::{PartError, Paths};
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
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(PartError::NotAFile(paths.part.clone()));
        }
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

/// Reads a whole file; anything but a regular file counts as empty.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if std::fs::symlink_metadata(path)?.is_file() {
        let mut file = OpenOptions::new()
            .read(true)
            .custom_flags(PLAIN)
            .open(path)?;
        file.read_to_end(&mut bytes)?;
    }
    Ok(bytes)
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

/// Whether a finished file carries the label of `identity` and has not been
/// changed since.
pub(crate) fn has_label(path: &Path, identity: &str) -> bool {
    let open = OpenOptions::new().read(true).custom_flags(PLAIN).open(path);
    open.and_then(|file| {
        let label = label_of(identity, &file.metadata()?);
        Ok(get(&file).as_deref() == Some(label.as_bytes()))
    })
    .unwrap_or(false)
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
