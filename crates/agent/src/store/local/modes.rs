//! Who may read what a local store has: the modes of files and directories, and the
//! repair of stores that an earlier version has left open to others. Blocking.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use fairbat::beneath::{Beneath, NO_LINKS};
use rustix::fs::{
    AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, Stat, fchmod, flock, fstat, openat,
    statat,
};
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
struct Repaired {
    /// Files and directories with fewer rights than before.
    changed: u64,
    /// Those that could not be changed, or not be looked into.
    failed: u64,
    /// Those that were left alone, because no store makes such ones.
    foreign: u64,
    /// One that failed, or else one that was left alone.
    example: Option<PathBuf>,
    /// The first error.
    error: Option<Errno>,
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
    /// have pushed to, and logs what it has done. The store has this path.
    pub(crate) fn repair(self, root: &Beneath, path: &Path) {
        let store = path.display();
        let done = match self.repaired(root, path) {
            Ok(done) => done,
            // A store that cannot be written serves those who read.
            Err(Errno::ROFS) => return,
            Err(error) => {
                let hint = format!("take the rights away: chmod -R go= {store}");
                let what = "other users may read files in the store: it cannot be looked through";
                return tracing::warn!(%store, %error, hint, "{what}");
            }
        };
        if done.changed + done.failed > 0 {
            let hint = match done.failed {
                0 => format!(
                    "to share the store with a group, set file_mode = \"0640\" for it, and then: \
                     chmod -R u=rwX,g=rX {store}"
                ),
                _ => format!("change those that failed: chmod -R go= {store}"),
            };
            tracing::warn!(
                %store,
                corrected = done.changed,
                failed = done.failed,
                left_alone = done.foreign,
                example = done.example.map(|path| path.display().to_string()),
                error = done.error.map(|error| error.to_string()),
                hint,
                "other users could read files in the store: their modes are corrected"
            );
        }
    }

    /// Our own directory at the top is changed last, and only if nothing has failed. So its
    /// mode tells whether this has been done. A file with a foreign bit or a second name is
    /// not from a store.
    ///
    /// # Errors
    /// Nothing can be changed.
    fn repaired(self, root: &Beneath, path: &Path) -> Result<Repaired, Errno> {
        let mut repaired = Repaired::default();
        let own = match root.subdirectory(Path::new(OWN), NO_LINKS) {
            Err(Errno::NOENT) => return Ok(repaired),
            own => own?,
        };
        if !exceeds(&fstat(&own)?, self.directory) {
            return Ok(repaired);
        }
        // One run at a time does this. Without locks, two do no harm.
        if flock(&own, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
            return Ok(repaired);
        }
        let probe = self.make_directory(root, Path::new(UNFINISHED))?;
        repaired.changed += u64::from(reduce(&probe, self.directory)?);
        if exceeds(&fstat(&probe)?, self.directory) {
            // The file system keeps no modes.
            return Ok(Repaired::default());
        }
        let store = path.display();
        tracing::info!(%store, "looks for files that other users can read; this may last");
        self.repair_all(root, &mut repaired)?;
        if repaired.failed == 0 {
            repaired.note(Path::new(OWN), reduce(&own, self.directory));
        }
        Ok(repaired)
    }

    /// Repairs all but our own directory at the top.
    fn repair_all(self, root: &Beneath, repaired: &mut Repaired) -> Result<(), Errno> {
        let device = fstat(root.directory())?.st_dev;
        let top = PathBuf::from(".");
        let own = top.join(OWN);
        let mut left = vec![(top.clone(), false)];
        while let Some((path, is_in_job)) = left.pop() {
            let is_job = || {
                let manifests = root.subdirectory(&path.join(MANIFESTS), NO_LINKS);
                manifests.is_ok_and(is_own)
            };
            let is_in_job = is_in_job || path == own || is_job();
            let looked = root.subdirectory(&path, NO_LINKS).and_then(|directory| {
                let mut inner = self.repair_members(&directory, &path, is_in_job, repaired)?;
                inner.retain(|(_, inner)| *inner == device);
                left.extend(inner.into_iter().map(|(path, _)| (path, is_in_job)));
                match is_in_job && path != top && path != own {
                    true => reduce(&directory, self.directory),
                    false => Ok(false),
                }
            });
            let look = OFlags::PATH | OFlags::DIRECTORY;
            let is_other = || !root.resolve(&path, look, NO_LINKS).is_ok_and(is_own);
            match looked {
                Err(Errno::ACCESS) if is_other() => repaired.leave(&path),
                Err(_) if !is_in_job => {}
                looked => repaired.note(&path, looked),
            }
        }
        Ok(())
    }

    /// Repairs the files of a directory. Returns the directories in it with the devices
    /// that they are on.
    fn repair_members(
        self,
        directory: &File,
        path: &Path,
        is_in_job: bool,
        repaired: &mut Repaired,
    ) -> Result<Vec<(PathBuf, u64)>, Errno> {
        let mut directories = Vec::new();
        for entry in Dir::read_from(directory)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            let status = match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
                // Deleted meanwhile.
                Err(Errno::NOENT) => continue,
                status => status?,
            };
            let inner = path.join(name);
            match FileType::from_raw_mode(status.st_mode) {
                FileType::Directory => directories.push((inner, status.st_dev)),
                FileType::RegularFile if is_in_job && is_open(&status, self.file) => {
                    repaired.note(&inner, self.repair_file(directory, name));
                }
                FileType::RegularFile if is_in_job && exceeds(&status, self.file) => {
                    repaired.leave(&inner);
                }
                _ => {}
            }
        }
        Ok(directories)
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
    fn note(&mut self, path: &Path, changed: Result<bool, Errno>) {
        match changed {
            Ok(changed) => self.changed += u64::from(changed),
            // Deleted meanwhile.
            Err(Errno::NOENT) => {}
            Err(error) => {
                self.failed += 1;
                if self.error.replace(error).is_none() {
                    self.example = Some(path.to_owned());
                }
            }
        }
    }

    fn leave(&mut self, path: &Path) {
        self.foreign += 1;
        self.example.get_or_insert_with(|| path.to_owned());
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
        let kept = status.st_mode & 0o7777 & !(RIGHTS & !allowed);
        fchmod(file, Mode::from_raw_mode(kept))?;
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

fn is_own(file: impl AsFd) -> bool {
    fstat(file).is_ok_and(|status| status.st_uid == geteuid().as_raw())
}
