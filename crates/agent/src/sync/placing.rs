//! Makes entries of a tree below a directory: each aside first, then renamed into
//! its place, with its attributes. Blocking.
//!
//! It goes name by name from the root, and follows no link: what a manifest says
//! cannot lead elsewhere, whatever is in the directory already. What a file had is
//! on the disk before the file has its name, so that after a loss of power there
//! is the file of before, or the new one, and never a half. Files are placed
//! many at once, for what is to be on the disk is waited for once for all of
//! them.

mod attributes;
mod way;
mod workplace;

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, mkdirat, openat, readlinkat, renameat, statat, symlinkat,
    unlinkat,
};
use rustix::io::Errno;

use self::attributes::Owned;
pub(super) use self::way::Way;
use self::workplace::Workplace;
pub(super) use self::workplace::{Aside, OpenError, is_unfinished};
use crate::entry::{Attributes, TreePath};

/// Up to so many files are synced one by one. For more, the whole file system is:
/// that is one commit of its journal instead of one for each, though it waits for
/// what others have written as well.
const FEW: usize = 4;

/// See the module.
#[derive(Debug)]
pub(super) struct Placing {
    root: OwnedFd,
    workplace: Arc<Workplace>,
    /// Entries whose owner could not be set.
    unowned: AtomicU64,
}

/// A file that has its content and its attributes, and not yet its name.
#[derive(Debug)]
pub(super) struct Finished {
    aside: Aside,
    pub(super) path: TreePath,
}

/// What is at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    Nothing,
    File {
        size: u64,
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
    pub(super) fn new(root: &Path, is_stopped: &dyn Fn() -> bool) -> Result<Self, OpenError> {
        std::fs::create_dir_all(root)?;
        // Held open: what is mounted over it, or instead of it, is another.
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = openat(CWD, root, flags, Mode::empty()).map_err(io::Error::from)?;
        let workplace = Workplace::open(root.try_clone()?, is_stopped)?;
        Ok(Self {
            root,
            workplace: Arc::new(workplace),
            unowned: AtomicU64::new(0),
        })
    }

    /// A way, for many paths.
    pub(super) fn way(&self) -> Way<'_> {
        Way::from(&self.root)
    }

    /// What is there now.
    pub(super) fn look(&self, way: &mut Way<'_>, path: &TreePath) -> io::Result<Found> {
        let (parent, name) = match way.parent(path, false) {
            Ok(found) => found,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(Found::Nothing),
            Err(error) => return Err(error.into()),
        };
        let stat = match statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(Found::Nothing),
            Err(error) => return Err(error.into()),
        };
        Ok(match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Found::File {
                size: stat.st_size as u64,
                attributes: attributes::of(&stat),
            },
            FileType::Directory => Found::Directory,
            FileType::Symlink => Found::Symlink,
            _ => Found::Other,
        })
    }

    /// Opens a file to read it.
    pub(super) fn open(&self, way: &mut Way<'_>, path: &TreePath) -> io::Result<File> {
        let (parent, name) = way.parent(path, false)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(openat(parent, name, flags, Mode::empty())?.into())
    }

    /// A new file aside.
    pub(super) fn begin(&self) -> io::Result<Aside> {
        self.workplace.begin()
    }

    /// Gives a file that has been written its attributes.
    pub(super) fn finish(
        &self,
        aside: Aside,
        path: TreePath,
        attributes: &Attributes,
    ) -> io::Result<Finished> {
        self.count(attributes::give(&aside.file, attributes)?);
        Ok(Finished { aside, path })
    }

    /// Puts files that are finished into their places, once they are on the disk,
    /// until `is_stopped`. Returns what became of each.
    ///
    /// # Errors
    /// They do not come to the disk; then none is placed.
    pub(super) fn place(
        &self,
        mut files: Vec<Finished>,
        is_stopped: &dyn Fn() -> bool,
    ) -> io::Result<Vec<(TreePath, io::Result<()>)>> {
        if files.len() > FEW {
            self.workplace.sync()?;
        } else {
            files
                .iter()
                .try_for_each(|file| file.aside.file.sync_all())?;
        }
        // So that one is beside the other.
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let mut way = self.way();
        let files = files.into_iter().take_while(|_| !is_stopped());
        let placed = files.map(|file| {
            let done = self.rename(&mut way, file.aside, &file.path);
            (file.path, done)
        });
        Ok(placed.collect())
    }

    fn rename(&self, way: &mut Way<'_>, mut aside: Aside, path: &TreePath) -> io::Result<()> {
        let (parent, last) = clear(way, path, FileType::RegularFile)?;
        let from = self.workplace.directory();
        renameat(from, aside.name.as_str(), parent, last)?;
        aside.is_placed = true;
        Ok(())
    }

    /// Makes a directory. Its attributes come when all is in it.
    pub(super) fn directory(&self, way: &mut Way<'_>, path: &TreePath) -> io::Result<()> {
        let (parent, name) = clear(way, path, FileType::Directory)?;
        match mkdirat(parent, name, Mode::from_raw_mode(0o700)) {
            Ok(()) => Ok(()),
            Err(Errno::EXIST) => attributes::open_up(parent, name),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes a symbolic link, unless it is there.
    pub(super) fn link(
        &self,
        way: &mut Way<'_>,
        path: &TreePath,
        target: &OsStr,
        attributes: &Attributes,
    ) -> io::Result<()> {
        let (parent, last) = clear(way, path, FileType::Symlink)?;
        let is_there = readlinkat(parent, last, Vec::new())
            .is_ok_and(|there| there.as_bytes() == target.as_bytes());
        if is_there {
            self.count(attributes::give_link(parent, last, attributes)?);
            return Ok(());
        }
        let aside = self.workplace.directory().as_fd();
        let name = self.workplace.name();
        symlinkat(target, aside, name.as_str())?;
        let placed = attributes::give_link(aside, OsStr::new(&name), attributes)
            .map(|owned| self.count(owned))
            .and_then(|()| Ok(renameat(aside, name.as_str(), parent, last)?));
        if placed.is_err() {
            let _ = unlinkat(aside, name.as_str(), AtFlags::empty());
        }
        placed
    }

    /// Gives a file or a directory the attributes that it does not have.
    pub(super) fn dress(
        &self,
        way: &mut Way<'_>,
        path: &TreePath,
        attributes: &Attributes,
    ) -> io::Result<()> {
        let (parent, name) = way.parent(path, false)?;
        self.count(attributes::correct(parent, name, attributes)?);
        Ok(())
    }

    /// Removes a file, a link, or an empty directory; one that is not there is
    /// fine. Returns whether something was removed.
    pub(super) fn remove(&self, way: &mut Way<'_>, path: &TreePath) -> io::Result<bool> {
        let (parent, name) = match way.parent(path, false) {
            Ok(found) => found,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let removed = match unlinkat(parent, name, AtFlags::empty()) {
            Err(Errno::ISDIR) => unlinkat(parent, name, AtFlags::REMOVEDIR),
            other => other,
        };
        match removed {
            Ok(()) => Ok(true),
            Err(Errno::NOENT | Errno::NOTEMPTY) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits until everything that was placed is on the disk, names and attributes
    /// as well.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.workplace.sync()
    }

    /// How many entries have another owner than they should, since this was last
    /// asked.
    pub(super) fn take_unowned(&self) -> u64 {
        self.unowned.swap(0, Ordering::Relaxed)
    }

    fn count(&self, owned: Owned) {
        if !owned.is_fully() {
            self.unowned.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The parent of a path, and its last name, once nothing of another kind is in its
/// place. Parents that are not there are made.
fn clear<'w, 'p>(
    way: &'w mut Way<'_>,
    path: &'p TreePath,
    kind: FileType,
) -> io::Result<(BorrowedFd<'w>, &'p OsStr)> {
    let (parent, name) = way.parent(path, true)?;
    let found = match statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => FileType::from_raw_mode(stat.st_mode),
        Err(Errno::NOENT) => return Ok((parent, name)),
        Err(error) => return Err(error.into()),
    };
    match (found, kind) {
        (FileType::Directory, FileType::Directory) => {}
        (FileType::Directory, _) => unlinkat(parent, name, AtFlags::REMOVEDIR)?,
        (_, FileType::Directory) => unlinkat(parent, name, AtFlags::empty())?,
        // A rename replaces it.
        _ => {}
    }
    Ok((parent, name))
}

/// Whether an error is one of the disk as a whole: then nothing else will go well
/// either.
pub(super) fn is_of_disk(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(
        errno,
        Some(
            Errno::NOSPC
                | Errno::DQUOT
                | Errno::ROFS
                | Errno::IO
                | Errno::NODEV
                | Errno::NXIO
                | Errno::STALE
                | Errno::MFILE
                | Errno::NFILE
                | Errno::NOMEM
        )
    )
}
