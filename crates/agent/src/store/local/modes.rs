//! Who may read what a local store has: the modes of files and directories, and the
//! repair of stores that an earlier version has left open to others. Blocking.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use fairbat::beneath::{Beneath, NO_LINKS};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fchmod, fstat, openat, statat};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::object_name::OWN;
use crate::store::unfinished::UNFINISHED;

/// Read, write and execute, for all.
const RIGHTS: u32 = 0o777;

/// Bits that no file of a store ever had: execute, set-user-ID, set-group-ID and sticky.
const FOREIGN_BITS: u32 = 0o7111;

/// The directory of the manifests of a job, in the directory that it pushes to.
const MANIFESTS: &str = ".fairbat/manifest";

/// The modes of the files and directories that a store writes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoreModes {
    file: u32,
    directory: u32,
}

/// What a repair has done.
#[derive(Debug, Default)]
pub(crate) struct Repaired {
    /// Files and directories with fewer rights than before.
    pub(crate) changed: u64,
    /// Those that could not be changed, or not be looked into.
    pub(crate) failed: u64,
}

impl StoreModes {
    /// Files have this mode. Whoever may read a file may enter its directory.
    pub(crate) fn of(file: u32) -> Self {
        Self {
            file,
            directory: file | (file & 0o444) >> 2,
        }
    }

    /// Opens a directory. Missing ones are made, and are on the disk then.
    pub(crate) fn make_directory(self, root: &Beneath, name: &Path) -> Result<File, Errno> {
        let mode = Mode::from_raw_mode(self.directory);
        root.make_subdirectory(name, NO_LINKS, mode, |made| give(made, self.directory))
    }

    /// Gives a written file its mode.
    pub(crate) fn finish(self, file: &File) -> Result<(), Errno> {
        give(file, self.file)
    }

    /// Takes rights beyond these modes from files and directories of this user, where jobs
    /// have pushed to.
    ///
    /// Our own directory at the top is changed last. So its mode tells whether this has
    /// been done. A file with a foreign bit or a second name is not from a store.
    ///
    /// # Errors
    /// Nothing can be changed.
    pub(crate) fn repair(self, root: &Beneath) -> Result<Repaired, Errno> {
        let mut repaired = Repaired::default();
        let own = match root.subdirectory(Path::new(OWN), NO_LINKS) {
            Err(Errno::NOENT) => return Ok(repaired),
            own => own?,
        };
        if !exceeds(&fstat(&own)?, self.directory) {
            return Ok(repaired);
        }
        let probe = self.make_directory(root, Path::new(UNFINISHED))?;
        repaired.changed += u64::from(reduce(&probe, self.directory)?);
        if exceeds(&fstat(&probe)?, self.directory) {
            // The file system keeps no modes.
            return Ok(Repaired::default());
        }
        self.repair_all(root, &mut repaired)?;
        repaired.note(reduce(&own, self.directory));
        Ok(repaired)
    }

    /// Repairs all but our own directory at the top.
    fn repair_all(self, root: &Beneath, repaired: &mut Repaired) -> Result<(), Errno> {
        let device = fstat(root.directory())?.st_dev;
        let top = PathBuf::from(".");
        let own = top.join(OWN);
        let mut left = vec![(top.clone(), false)];
        while let Some((path, is_in_job)) = left.pop() {
            let listed = root.subdirectory(&path, NO_LINKS);
            let listed = listed.and_then(|opened| Ok((Dir::read_from(&opened)?, opened)));
            let Ok((entries, directory)) = listed else {
                repaired.failed += u64::from(is_in_job);
                continue;
            };
            let manifests = root.subdirectory(&path.join(MANIFESTS), NO_LINKS);
            let is_in_job = is_in_job || path == own || manifests.is_ok_and(|found| is_own(&found));
            for entry in entries.flatten() {
                let name = OsStr::from_bytes(entry.file_name().to_bytes());
                if name == "." || name == ".." {
                    continue;
                }
                let status = statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW);
                let Ok(status) = status else { continue };
                match FileType::from_raw_mode(status.st_mode) {
                    FileType::Directory if status.st_dev == device => {
                        left.push((path.join(name), is_in_job));
                    }
                    FileType::RegularFile if is_in_job && is_open(&status, self.file) => {
                        repaired.note(self.repair_file(&directory, name));
                    }
                    _ => {}
                }
            }
            if is_in_job && path != top && path != own {
                repaired.note(reduce(&directory, self.directory));
            }
        }
        Ok(())
    }

    fn repair_file(self, directory: &File, name: &OsStr) -> Result<bool, Errno> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(directory, name, flags, Mode::empty())?.into();
        // Another file may have the name by now.
        match is_open(&fstat(&file)?, self.file) {
            true => reduce(&file, self.file),
            false => Ok(false),
        }
    }
}

impl Repaired {
    fn note(&mut self, changed: Result<bool, Errno>) {
        match changed {
            Ok(changed) => self.changed += u64::from(changed),
            Err(_) => self.failed += 1,
        }
    }
}

/// Sets the rights. The set-group-ID bit stays that a new directory inherits.
fn give(file: &File, rights: u32) -> Result<(), Errno> {
    let has = fstat(file)?.st_mode & 0o7777;
    if has & RIGHTS == rights {
        return Ok(());
    }
    match fchmod(file, Mode::from_raw_mode(has & !RIGHTS | rights)) {
        // The file system keeps no modes, or a filter of the service refuses that bit.
        Err(Errno::PERM | Errno::OPNOTSUPP) => Ok(()),
        done => done,
    }
}

/// Takes away all rights but the allowed ones. Returns whether there were others.
fn reduce(file: &File, allowed: u32) -> Result<bool, Errno> {
    let status = fstat(file)?;
    let is_reduced = exceeds(&status, allowed);
    if is_reduced {
        fchmod(file, Mode::from_raw_mode(status.st_mode & RIGHTS & allowed))?;
    }
    Ok(is_reduced)
}

/// Whether this user's file or directory has other rights than the allowed ones.
fn exceeds(status: &Stat, allowed: u32) -> bool {
    status.st_mode & RIGHTS & !allowed != 0 && status.st_uid == geteuid().as_raw()
}

/// Whether a file, as stores have them, has other rights than the allowed ones.
fn is_open(status: &Stat, allowed: u32) -> bool {
    exceeds(status, allowed) && status.st_mode & FOREIGN_BITS == 0 && status.st_nlink == 1
}

fn is_own(file: &File) -> bool {
    fstat(file).is_ok_and(|status| status.st_uid == geteuid().as_raw())
}
