//! Makes entries of a tree below a directory: each aside first, then renamed into
//! its place, with its attributes. Blocking.
//!
//! It goes name by name from the root, and follows no link: what a manifest says
//! cannot lead elsewhere, whatever is in the directory already.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, OFlags, Timespec, Timestamps, Uid, chmodat, chownat, fchmod,
    fchown, futimens, mkdirat, openat, renameat, statat, symlinkat, unlinkat, utimensat,
};
use rustix::io::Errno;

use crate::entry::{Attributes, Moment, TreePath};

/// Where unfinished files are, at the top of the directory.
const UNFINISHED: &str = ".fairbat-unfinished";

/// See the module.
#[derive(Debug)]
pub(super) struct Placing {
    root: PathBuf,
    /// Whether owners can be given.
    is_root: bool,
    next: AtomicU64,
}

/// A file that is being written aside.
#[derive(Debug)]
pub(super) struct Aside {
    pub(super) file: File,
    name: String,
}

/// What is at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    Nothing,
    File {
        size: u64,
        modified: Moment,
        attributes: Attributes,
    },
    Directory,
    Symlink,
    /// A device, a socket or a pipe.
    Other,
}

impl Placing {
    /// Places entries below `root`, which is made if it is not there. What an
    /// earlier process left unfinished is removed.
    pub(super) fn new(root: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(root)?;
        let unfinished = root.join(UNFINISHED);
        match std::fs::remove_dir_all(&unfinished) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        Ok(Self {
            root: root.to_owned(),
            is_root: rustix::process::geteuid().is_root(),
            next: AtomicU64::new(0),
        })
    }

    /// What is there now.
    pub(super) fn look(&self, path: &TreePath) -> io::Result<Found> {
        let (parent, name) = match self.parent(path, false) {
            Ok(found) => found,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(Found::Nothing),
            Err(error) => return Err(error.into()),
        };
        let stat = match statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(Found::Nothing),
            Err(error) => return Err(error.into()),
        };
        let modified = Moment {
            seconds: stat.st_mtime,
            nanoseconds: stat.st_mtime_nsec as u32,
        };
        Ok(match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Found::File {
                size: stat.st_size as u64,
                modified,
                attributes: Attributes {
                    mode: stat.st_mode & 0o7777,
                    uid: stat.st_uid,
                    gid: stat.st_gid,
                    modified,
                },
            },
            FileType::Directory => Found::Directory,
            FileType::Symlink => Found::Symlink,
            _ => Found::Other,
        })
    }

    /// A new file aside.
    pub(super) fn begin(&self) -> io::Result<Aside> {
        let unfinished = self.unfinished()?;
        let name = self.next.fetch_add(1, Ordering::Relaxed).to_string();
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = openat(
            &unfinished,
            name.as_str(),
            flags,
            Mode::from_raw_mode(0o600),
        )?;
        Ok(Aside {
            file: file.into(),
            name,
        })
    }

    /// Puts a file that has been written into its place.
    pub(super) fn place(
        &self,
        aside: Aside,
        path: &TreePath,
        attributes: &Attributes,
    ) -> io::Result<()> {
        let Aside { mut file, name } = aside;
        file.flush()?;
        // Giving a file away takes its set-user-ID bit: first the owner.
        if self.is_root {
            fchown(&file, uid(attributes), gid(attributes))?;
        }
        fchmod(&file, Mode::from_raw_mode(attributes.mode))?;
        futimens(&file, &times(attributes))?;
        file.sync_all()?;
        let (parent, last) = self.clear(path, FileType::RegularFile)?;
        renameat(self.unfinished()?, name.as_str(), &parent, last)?;
        Ok(())
    }

    /// Gives up what has been written.
    pub(super) fn abandon(&self, aside: &Aside) {
        if let Ok(unfinished) = self.unfinished() {
            let _ = unlinkat(&unfinished, aside.name.as_str(), AtFlags::empty());
        }
    }

    /// Makes a directory. Its attributes come when all is in it.
    pub(super) fn directory(&self, path: &TreePath) -> io::Result<()> {
        let (parent, name) = self.clear(path, FileType::Directory)?;
        match mkdirat(&parent, name, Mode::from_raw_mode(0o700)) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes a symbolic link.
    pub(super) fn link(
        &self,
        path: &TreePath,
        target: &OsStr,
        attributes: &Attributes,
    ) -> io::Result<()> {
        let unfinished = self.unfinished()?;
        let name = self.next.fetch_add(1, Ordering::Relaxed).to_string();
        symlinkat(target, &unfinished, name.as_str())?;
        let (parent, last) = self.clear(path, FileType::Symlink)?;
        renameat(&unfinished, name.as_str(), &parent, last)?;
        if self.is_root {
            let flags = AtFlags::SYMLINK_NOFOLLOW;
            chownat(&parent, last, uid(attributes), gid(attributes), flags)?;
        }
        utimensat(&parent, last, &times(attributes), AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(())
    }

    /// Gives a file or a directory its attributes.
    pub(super) fn dress(&self, path: &TreePath, attributes: &Attributes) -> io::Result<()> {
        let (parent, name) = self.parent(path, false)?;
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let stat = statat(&parent, name, flags)?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
            return Err(Errno::LOOP.into());
        }
        if self.is_root {
            chownat(&parent, name, uid(attributes), gid(attributes), flags)?;
        }
        let mode = Mode::from_raw_mode(attributes.mode);
        // Opened, so that no link that takes its place is followed.
        let open = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match openat(&parent, name, open, Mode::empty()) {
            Ok(opened) => fchmod(&opened, mode)?,
            Err(Errno::ACCESS) => chmodat(&parent, name, mode, AtFlags::empty())?,
            Err(error) => return Err(error.into()),
        }
        utimensat(&parent, name, &times(attributes), flags)?;
        Ok(())
    }

    /// Removes a file, a link, or an empty directory; one that is not there is
    /// fine. Returns whether something was removed.
    pub(super) fn remove(&self, path: &TreePath) -> io::Result<bool> {
        let (parent, name) = match self.parent(path, false) {
            Ok(found) => found,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let removed = match unlinkat(&parent, name, AtFlags::empty()) {
            Err(Errno::ISDIR) => unlinkat(&parent, name, AtFlags::REMOVEDIR),
            other => other,
        };
        match removed {
            Ok(()) => Ok(true),
            Err(Errno::NOENT | Errno::NOTEMPTY) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes what is left of unfinished files.
    pub(super) fn finish(&self) {
        let _ = std::fs::remove_dir_all(self.root.join(UNFINISHED));
    }

    /// The parent of a path, and its last name, once nothing of another kind is
    /// in its place. Parents that are not there are made.
    fn clear<'a>(&self, path: &'a TreePath, kind: FileType) -> io::Result<(OwnedFd, &'a OsStr)> {
        let (parent, name) = self.parent(path, true)?;
        let found = match statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => FileType::from_raw_mode(stat.st_mode),
            Err(Errno::NOENT) => return Ok((parent, name)),
            Err(error) => return Err(error.into()),
        };
        match (found, kind) {
            (FileType::Directory, FileType::Directory) => {}
            (FileType::Directory, _) => unlinkat(&parent, name, AtFlags::REMOVEDIR)?,
            (_, FileType::Directory) => unlinkat(&parent, name, AtFlags::empty())?,
            // A rename replaces it.
            _ => {}
        }
        Ok((parent, name))
    }

    fn parent<'a>(&self, path: &'a TreePath, is_made: bool) -> Result<(OwnedFd, &'a OsStr), Errno> {
        let open = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut here = openat(CWD, &self.root, open, Mode::empty())?;
        let names: Vec<_> = path.names().collect();
        let (last, parents) = names.split_last().ok_or(Errno::INVAL)?;
        for name in parents {
            let flags = open | OFlags::NOFOLLOW;
            here = match openat(&here, *name, flags, Mode::empty()) {
                Err(Errno::NOENT) if is_made => {
                    mkdirat(&here, *name, Mode::from_raw_mode(0o700))?;
                    openat(&here, *name, flags, Mode::empty())?
                }
                other => other?,
            };
        }
        Ok((here, last))
    }

    fn unfinished(&self) -> io::Result<OwnedFd> {
        let open = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let path = self.root.join(UNFINISHED);
        match openat(CWD, &path, open, Mode::empty()) {
            Err(Errno::NOENT) => {
                match mkdirat(CWD, &path, Mode::from_raw_mode(0o700)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
                Ok(openat(CWD, &path, open, Mode::empty())?)
            }
            other => Ok(other?),
        }
    }
}

/// Whether a path is that of unfinished files.
pub(super) fn is_unfinished(path: &TreePath) -> bool {
    path.names()
        .next()
        .is_some_and(|name| name.as_bytes() == UNFINISHED.as_bytes())
}

fn uid(attributes: &Attributes) -> Option<Uid> {
    Some(Uid::from_raw(attributes.uid))
}

fn gid(attributes: &Attributes) -> Option<Gid> {
    Some(Gid::from_raw(attributes.gid))
}

fn times(attributes: &Attributes) -> Timestamps {
    let modified = Timespec {
        tv_sec: attributes.modified.seconds,
        tv_nsec: i64::from(attributes.modified.nanoseconds),
    };
    Timestamps {
        last_access: modified,
        last_modification: modified,
    }
}
