//! Files by their names in directories that are open.
//!
//! So whoever owns the disk cannot exchange the directory between two steps.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use fairbat::beneath::{Beneath, NO_LINKS, reopen};
use rustix::fs::{AtFlags, Mode, OFlags, openat, renameat, unlinkat};
use rustix::io::Errno;

/// A file by its name in an open directory.
pub(crate) struct OpenPlace {
    directory: OwnedFd,
    pub(crate) name: String,
}

impl OpenPlace {
    /// The place of a key whose directory exists.
    pub(crate) fn of(root: &Beneath, key: &str) -> Result<Self, Errno> {
        let (directory, name) = split(key);
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        Ok(Self {
            directory: root.resolve(directory, flags, NO_LINKS)?,
            name: name.to_owned(),
        })
    }

    /// Makes a file that is not there yet.
    pub(crate) fn create(directory: OwnedFd, name: String) -> io::Result<(Self, File)> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let file = openat(&directory, name.as_str(), flags, mode)?;
        Ok((Self { directory, name }, file.into()))
    }

    /// Opens the file. No link is followed, and nothing but a file is opened.
    pub(crate) fn open(&self, flags: OFlags) -> Result<File, Errno> {
        reopen(self.look()?, flags)
    }

    /// Opens what has the name, only to look at it.
    pub(crate) fn look(&self) -> Result<OwnedFd, Errno> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(&self.directory, self.name.as_str(), flags, Mode::empty())
    }

    /// Renames the file into another open directory.
    pub(crate) fn rename(&self, directory: &File, name: &str) -> Result<(), Errno> {
        renameat(&self.directory, self.name.as_str(), directory, name)
    }

    pub(crate) fn remove(&self, flags: AtFlags) -> Result<(), Errno> {
        unlinkat(&self.directory, self.name.as_str(), flags)
    }
}

/// Deletes an unfinished file when dropped; a renamed file is not affected.
pub(crate) struct DeleteOnDrop(pub(crate) OpenPlace);

impl Drop for DeleteOnDrop {
    fn drop(&mut self) {
        // An earlier error counts; this one does not.
        let _ = self.0.remove(AtFlags::empty());
    }
}

/// The directory of a key, and its name there.
pub(crate) fn split(key: &str) -> (&Path, &str) {
    match key.rsplit_once('/') {
        Some((directory, name)) => (Path::new(directory), name),
        None => (Path::new("."), key),
    }
}
