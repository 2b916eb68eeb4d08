//! Installs entries below a directory. A file is written under a temporary name, gets
//! its attributes, and is renamed into its place. Blocking.
//!
//! Paths are opened name by name from the root, and no link is followed, so a manifest
//! cannot lead outside, whatever the directory contains. A file is on the disk before
//! it has its name: after a power loss the old file or the new one is there. Files
//! are installed in batches, because one wait for the disk serves a whole batch.

mod attributes;
mod workplace;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fairbat::beneath::{Beneath, enter};
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, mkdirat, openat, readlinkat, renameat, symlinkat, unlinkat,
};
use rustix::io::Errno;

use self::attributes::Owned;
pub(crate) use self::attributes::{SET_ID, SET_USER_ID};
use self::workplace::Workplace;
pub(crate) use self::workplace::{InstallError, TemporaryFile, is_temporary};
use crate::entry::{Attributes, TreePath};
use crate::scan::look;

/// Most files that are synced one by one. Larger batches sync the whole file system:
/// one commit of its journal instead of one per file, though that also waits for
/// other programs' writes.
const MAX_SINGLE_SYNCS: usize = 4;

/// Most directories that stay open. Deeper ones are opened again for each path.
const MAX_OPEN_DIRECTORIES: usize = 32;

/// Installs entries below a directory.
#[derive(Debug)]
pub(crate) struct Installer {
    root: OwnedFd,
    workplace: Arc<Workplace>,
    /// Number of entries whose owner could not be set.
    unowned: AtomicU64,
}

/// A file with its content and attributes, but without its name.
#[derive(Debug)]
pub(crate) struct UnnamedFile {
    aside: TemporaryFile,
    pub(crate) path: TreePath,
}

/// What is at a path now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Existing {
    Nothing,
    File {
        size: u64,
        attributes: Attributes,
    },
    Directory,
    /// Something else.
    Other,
}

impl Installer {
    /// Opens `root`, and makes it if needed. Removes the temporary files of earlier
    /// processes.
    pub(crate) fn new(root: &Path, is_stopped: &dyn Fn() -> bool) -> Result<Self, InstallError> {
        std::fs::create_dir_all(root)?;
        // Held open: later mounts over this path do not matter then.
        let root = Beneath::open(root).map_err(|errno| match errno {
            Errno::LOOP => io::Error::other(format!(
                "{} is a symbolic link that another user has made; name the directory that it \
                 leads to",
                root.display()
            )),
            errno => errno.into(),
        })?;
        let root = OwnedFd::from(root);
        let workplace = Workplace::open(root.try_clone()?, is_stopped)?;
        Ok(Self {
            root,
            workplace: Arc::new(workplace),
            unowned: AtomicU64::new(0),
        })
    }

    /// A directory cache, for many paths.
    pub(crate) fn cache(&self) -> DirectoryCache<'_> {
        DirectoryCache::new(&self.root)
    }

    /// Looks at a path.
    pub(crate) fn status(
        &self,
        cache: &mut DirectoryCache<'_>,
        path: &TreePath,
    ) -> io::Result<Existing> {
        let (parent, name) = match cache.parent(path, false) {
            Ok(found) => found,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(Existing::Nothing),
            Err(error) => return Err(error.into()),
        };
        let status = match look(parent, name) {
            Ok(status) => status,
            Err(Errno::NOENT) => return Ok(Existing::Nothing),
            Err(error) => return Err(error.into()),
        };
        Ok(match status.kind {
            FileType::RegularFile => Existing::File {
                size: status.state.size,
                attributes: status.attributes,
            },
            FileType::Directory => Existing::Directory,
            _ => Existing::Other,
        })
    }

    /// Opens a file to read it.
    pub(crate) fn open(&self, cache: &mut DirectoryCache<'_>, path: &TreePath) -> io::Result<File> {
        let (parent, name) = cache.parent(path, false)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(openat(parent, name, flags, Mode::empty())?.into())
    }

    /// Makes a temporary file.
    pub(crate) fn begin(&self) -> io::Result<TemporaryFile> {
        self.workplace.begin()
    }

    /// Sets the attributes of a written file.
    pub(crate) fn finish(
        &self,
        aside: TemporaryFile,
        path: TreePath,
        attributes: &Attributes,
    ) -> io::Result<UnnamedFile> {
        self.count(attributes::give(&aside.file, attributes)?);
        Ok(UnnamedFile { aside, path })
    }

    /// Waits until files are on the disk and renames them into their places, until
    /// `is_stopped`. Returns the result of each.
    ///
    /// # Errors
    /// The files cannot be synced. Then none is installed.
    pub(crate) fn install(
        &self,
        mut files: Vec<UnnamedFile>,
        is_stopped: &dyn Fn() -> bool,
    ) -> io::Result<Vec<(TreePath, io::Result<()>)>> {
        if files.len() > MAX_SINGLE_SYNCS {
            self.workplace.sync()?;
        } else {
            files
                .iter()
                .try_for_each(|file| file.aside.file.sync_all())?;
        }
        // Neighbours share cached directories.
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let mut cache = self.cache();
        let files = files.into_iter().take_while(|_| !is_stopped());
        let placed = files.map(|file| {
            let done = self.rename(&mut cache, file.aside, &file.path);
            (file.path, done)
        });
        Ok(placed.collect())
    }

    fn rename(
        &self,
        cache: &mut DirectoryCache<'_>,
        mut aside: TemporaryFile,
        path: &TreePath,
    ) -> io::Result<()> {
        let (parent, last) = make_room(cache, path, FileType::RegularFile)?;
        let from = self.workplace.directory();
        renameat(from, aside.name.as_str(), parent, last)?;
        aside.is_installed = true;
        Ok(())
    }

    /// Makes a directory. Its attributes are set when its members are installed.
    pub(crate) fn directory(
        &self,
        cache: &mut DirectoryCache<'_>,
        path: &TreePath,
    ) -> io::Result<()> {
        let (parent, name) = make_room(cache, path, FileType::Directory)?;
        match mkdirat(parent, name, Mode::from_raw_mode(0o700)) {
            Ok(()) => Ok(()),
            Err(Errno::EXIST) => attributes::open_up(parent, name),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes a symbolic link unless it exists.
    pub(crate) fn link(
        &self,
        cache: &mut DirectoryCache<'_>,
        path: &TreePath,
        target: &OsStr,
        attributes: &Attributes,
    ) -> io::Result<()> {
        let (parent, last) = make_room(cache, path, FileType::Symlink)?;
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

    /// Corrects the attributes of a file or a directory.
    pub(crate) fn set_attributes(
        &self,
        cache: &mut DirectoryCache<'_>,
        path: &TreePath,
        attributes: &Attributes,
    ) -> io::Result<()> {
        let (parent, name) = cache.parent(path, false)?;
        self.count(attributes::correct(parent, name, attributes)?);
        Ok(())
    }

    /// Removes a file, a link, or an empty directory, if it is there.
    pub(crate) fn remove(&self, cache: &mut DirectoryCache<'_>, path: &TreePath) -> io::Result<()> {
        let (parent, name) = match cache.parent(path, false) {
            Ok(found) => found,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let removed = match unlinkat(parent, name, AtFlags::empty()) {
            Err(Errno::ISDIR) => unlinkat(parent, name, AtFlags::REMOVEDIR),
            other => other,
        };
        match removed {
            Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits until all that was installed is on the disk, with names and attributes.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.workplace.sync()
    }

    /// The number of entries with a wrong owner since the last call.
    pub(crate) fn take_unowned(&self) -> u64 {
        self.unowned.swap(0, Ordering::Relaxed)
    }

    fn count(&self, owned: Owned) {
        if !owned.is_fully() {
            self.unowned.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Removes an entry of another kind from a path. Returns the parent and the last name
/// of the path. Makes missing parents.
fn make_room<'w, 'p>(
    cache: &'w mut DirectoryCache<'_>,
    path: &'p TreePath,
    kind: FileType,
) -> io::Result<(BorrowedFd<'w>, &'p OsStr)> {
    let (parent, name) = cache.parent(path, true)?;
    let found = match look(parent, name) {
        Ok(status) => status.kind,
        Err(Errno::NOENT) => return Ok((parent, name)),
        Err(error) => return Err(error.into()),
    };
    match (found, kind) {
        (FileType::Directory, FileType::Directory) => {}
        (FileType::Directory, _) => unlinkat(parent, name, AtFlags::REMOVEDIR)?,
        (_, FileType::Directory) => unlinkat(parent, name, AtFlags::empty())?,
        // A rename replaces the others.
        _ => {}
    }
    Ok((parent, name))
}

/// Whether an error concerns the whole disk. Then nothing else can succeed.
pub(crate) fn is_of_disk(error: &io::Error) -> bool {
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

/// Opens the directories of a path, name by name, without following links. They stay
/// open, because the next path mostly has the same ones. Valid as long as nothing moves
/// directories: for a pass, or a batch of files.
#[derive(Debug)]
pub(crate) struct DirectoryCache<'r> {
    root: &'r OwnedFd,
    kept: Vec<(OsString, OwnedFd)>,
    beyond: Option<OwnedFd>,
}

impl<'r> DirectoryCache<'r> {
    pub(crate) fn new(root: &'r OwnedFd) -> Self {
        Self {
            root,
            kept: Vec::new(),
            beyond: None,
        }
    }

    /// The directory of an entry, and its name there. Makes missing directories if
    /// `is_made`.
    pub(crate) fn parent<'p>(
        &mut self,
        path: &'p TreePath,
        is_made: bool,
    ) -> Result<(BorrowedFd<'_>, &'p OsStr), Errno> {
        let names: Vec<_> = path.names().collect();
        let (last, parents) = names.split_last().ok_or(Errno::INVAL)?;
        let known = self.kept.iter().zip(parents);
        let known = known
            .take_while(|((known, _), name)| known == *name)
            .count();
        self.kept.truncate(known);
        self.beyond = None;
        for name in &parents[known..] {
            let opened = open_directory(self.here(), name, is_made)?;
            if self.kept.len() < MAX_OPEN_DIRECTORIES {
                self.kept.push(((*name).to_owned(), opened));
            } else {
                self.beyond = Some(opened);
            }
        }
        Ok((self.here(), last))
    }

    fn here(&self) -> BorrowedFd<'_> {
        let kept = self.kept.last().map(|(_, directory)| directory);
        self.beyond.as_ref().or(kept).unwrap_or(self.root).as_fd()
    }
}

fn open_directory(parent: BorrowedFd<'_>, name: &OsStr, is_made: bool) -> Result<OwnedFd, Errno> {
    match enter(parent, name) {
        Err(Errno::NOENT) if is_made => {
            mkdirat(parent, name, Mode::from_raw_mode(0o700))?;
            enter(parent, name)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rustix::fs::CWD;

    use super::*;

    #[test]
    fn every_path_is_found_in_whatever_order_they_come_and_however_deep_they_are() {
        let root = tempfile::tempdir().unwrap();
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let opened = openat(CWD, root.path(), flags, Mode::empty()).unwrap();
        let mut cache = DirectoryCache::new(&opened);
        let deep = vec!["d"; MAX_OPEN_DIRECTORIES + 10].join("\0");
        let paths = ["a\0b\0f", "a\0c\0f", "f", &format!("{deep}\0f"), "a\0b\0g"];
        for path in paths.iter().chain(paths.iter().rev()) {
            let path = TreePath::from_bytes(path.as_bytes()).unwrap();
            let (parent, name) = cache.parent(&path, true).unwrap();
            let flags = OFlags::WRONLY | OFlags::CREATE;
            openat(parent, name, flags, Mode::from_raw_mode(0o600)).unwrap();
            assert!(path.under(root.path()).is_file(), "{path}");
        }
        fs::remove_dir_all(root.path()).unwrap();
    }
}
