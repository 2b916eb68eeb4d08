//! One directory by its descriptor: opened, examined and listed without following
//! links; and the status of files. Linux only.

use std::ffi::{CStr, CString, OsString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, StatxAttributes, StatxFlags};
use rustix::io::{Errno, Result};
use rustix::path::Arg;

use crate::entry::{Attributes, FileState, Moment};

/// Buffer for getdents64, bytes.
const LIST_BUFFER: usize = 64 * 1024;

/// Identifies a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DirectoryId {
    pub(super) device: u64,
    pub(super) inode: u64,
}

/// The status of an inode.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InodeStatus {
    pub(crate) kind: FileType,
    pub(super) identity: DirectoryId,
    /// Whether a file system, or another part of the same one, is mounted here.
    pub(super) is_mount: bool,
    pub(crate) attributes: Attributes,
    /// Meaningful for regular files.
    pub(crate) state: FileState,
}

/// The status of a name in a directory. Links are not followed.
pub(crate) fn look(directory: impl AsFd, name: impl Arg) -> Result<InodeStatus> {
    statx(directory, name, AtFlags::SYMLINK_NOFOLLOW)
}

/// The status of a path. Links are followed.
pub(super) fn look_followed(directory: impl AsFd, path: &CStr) -> Result<InodeStatus> {
    statx(directory, path, AtFlags::empty())
}

/// The status of an open file or directory.
pub(crate) fn look_at(directory: impl AsFd) -> Result<InodeStatus> {
    statx(directory, c"", AtFlags::EMPTY_PATH)
}

fn statx(directory: impl AsFd, name: impl Arg, flags: AtFlags) -> Result<InodeStatus> {
    let flags = flags | AtFlags::NO_AUTOMOUNT;
    let stat = rustix::fs::statx(directory, name, flags, StatxFlags::BASIC_STATS)?;
    let device = rustix::fs::makedev(stat.stx_dev_major, stat.stx_dev_minor);
    Ok(InodeStatus {
        kind: FileType::from_raw_mode(u32::from(stat.stx_mode)),
        identity: DirectoryId {
            device,
            inode: stat.stx_ino,
        },
        is_mount: stat.stx_attributes.contains(StatxAttributes::MOUNT_ROOT),
        attributes: Attributes {
            mode: u32::from(stat.stx_mode) & 0o7777,
            uid: stat.stx_uid,
            gid: stat.stx_gid,
            modified: Moment {
                seconds: stat.stx_mtime.tv_sec,
                nanoseconds: stat.stx_mtime.tv_nsec,
            },
        },
        state: FileState {
            size: stat.stx_size,
            changed: Moment {
                seconds: stat.stx_ctime.tv_sec,
                nanoseconds: stat.stx_ctime.tv_nsec,
            },
            inode: stat.stx_ino,
            device,
        },
    })
}

/// Opens a directory in another one; `..` goes up. Links are refused.
pub(super) fn open(directory: impl AsFd, name: &CStr) -> Result<OwnedFd> {
    open_with(directory, name, OFlags::NOFOLLOW)
}

/// Opens a directory by its path. Links are followed.
pub(super) fn open_followed(directory: impl AsFd, path: &CStr) -> Result<OwnedFd> {
    open_with(directory, path, OFlags::empty())
}

fn open_with(directory: impl AsFd, name: &CStr, flags: OFlags) -> Result<OwnedFd> {
    let flags = flags | OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match rustix::fs::openat(&directory, name, flags | OFlags::NOATIME, Mode::empty()) {
        // Only the owner may open it without changing its access time.
        Err(Errno::PERM) => rustix::fs::openat(&directory, name, flags, Mode::empty()),
        opened => opened,
    }
}

/// The target of a link.
pub(super) fn target(directory: impl AsFd, name: &CStr) -> Result<Box<std::ffi::OsStr>> {
    let target = rustix::fs::readlinkat(directory, name, Vec::new())?;
    Ok(OsString::from_vec(target.into_bytes()).into_boxed_os_str())
}

/// The names in a directory, sorted by their bytes.
#[derive(Debug, Default)]
pub(super) struct DirectoryNames {
    /// The names, each with a final NUL.
    bytes: Vec<u8>,
    names: Vec<Name>,
    next: usize,
}

#[derive(Debug, Clone, Copy)]
struct Name {
    start: usize,
    kind: FileType,
}

impl DirectoryNames {
    /// Reads all names except `.` and `..`.
    pub(super) fn read(directory: impl AsFd) -> Result<Self> {
        let mut buffer = vec![MaybeUninit::uninit(); LIST_BUFFER];
        let mut entries = RawDir::new(directory, &mut buffer);
        let mut all = Self::default();
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = entry.file_name();
            if name != c"." && name != c".." {
                all.push(name, entry.file_type());
            }
        }
        all.sort();
        Ok(all)
    }

    /// Adds the names of missing directories.
    pub(super) fn add_missing(&mut self, names: impl Iterator<Item = CString>) {
        let mut is_changed = false;
        for name in names {
            self.push(&name, FileType::Directory);
            is_changed = true;
        }
        if is_changed {
            self.sort();
        }
    }

    /// The next name, and its kind as far as the directory knows.
    pub(super) fn next(&mut self) -> Option<(&CStr, FileType)> {
        let name = self.names.get(self.next)?;
        self.next += 1;
        Some((at(&self.bytes, name.start), name.kind))
    }

    fn push(&mut self, name: &CStr, kind: FileType) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(name.to_bytes_with_nul());
        self.names.push(Name { start, kind });
    }

    /// Sorts and removes duplicates; the first of them stays. A directory that changes
    /// meanwhile may list a name twice.
    fn sort(&mut self) {
        let Self { bytes, names, .. } = self;
        names.sort_by(|a, b| at(bytes, a.start).cmp(at(bytes, b.start)));
        names.dedup_by(|a, b| at(bytes, a.start) == at(bytes, b.start));
    }
}

fn at(bytes: &[u8], start: usize) -> &CStr {
    CStr::from_bytes_until_nul(&bytes[start..]).expect("each name was added with its NUL")
}
