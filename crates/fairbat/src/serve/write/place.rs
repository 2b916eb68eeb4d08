//! Places below the directory that is served, and what is done in them. Blocking.
//!
//! A place is a directory that is open, and a name in it. The kernel resolves the
//! way there as it does for reading (`super::super::files`), and besides it stays
//! within one file system, for nothing can be renamed into another. What is under
//! the name itself is never followed: a link there is replaced, renamed or removed
//! as what it is.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{
    Access, AtFlags, FileType, Mode, OFlags, RenameFlags, ResolveFlags, accessat, linkat, mkdirat,
    renameat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;

use super::super::files::Root;
use super::refusal::Refusal;
use super::scratch::Scratch;

/// As the umask has it.
const MODE: Mode = Mode::from_raw_mode(0o777);

/// See the module.
#[derive(Debug)]
pub(super) struct Place {
    directory: File,
    name: OsString,
}

/// What is in a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Occupant {
    Nothing,
    File,
    Directory,
    Link,
    /// A device, a pipe or a socket.
    Special,
}

/// Whether something new may take the place of something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    /// Only where there is nothing.
    Create,
    /// Of whatever it was, unless it is a directory or special.
    Replace,
}

/// What something new has found in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrived {
    Created,
    Replaced,
}

impl Place {
    /// That of a name whose directory is there.
    pub(super) fn of(root: &Root, name: &Path) -> Result<Self, Refusal> {
        Ok(Self {
            directory: directory(root, parent(name))?,
            name: last(name)?.to_owned(),
        })
    }

    /// The same, with the directories made that are missing.
    pub(super) fn made(root: &Root, name: &Path) -> Result<Self, Refusal> {
        match Self::of(root, name) {
            Err(Refusal::Absent) => {
                make_directories(root, parent(name))?;
                match Self::of(root, name) {
                    // A link to nothing.
                    Err(Refusal::Absent) => Err(Refusal::NoDirectory),
                    place => place,
                }
            }
            place => place,
        }
    }

    pub(super) fn occupant(&self) -> Result<Occupant, Refusal> {
        let found = match statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => found,
            Err(Errno::NOENT) => return Ok(Occupant::Nothing),
            Err(errno) => return Err(errno.into()),
        };
        Ok(match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile => Occupant::File,
            FileType::Directory => Occupant::Directory,
            FileType::Symlink => Occupant::Link,
            _ => Occupant::Special,
        })
    }

    /// Whether a file may come here, replacing what is there if need be.
    pub(super) fn is_fit(&self) -> Result<(), Refusal> {
        match self.occupant()? {
            Occupant::Nothing | Occupant::File | Occupant::Link => Ok(()),
            Occupant::Directory => Err(Refusal::Directory),
            Occupant::Special => Err(Refusal::Special),
        }
    }

    /// Puts a finished file here.
    pub(super) fn receive(
        &self,
        scratch: &mut Scratch,
        arrival: Arrival,
    ) -> Result<Arrived, Arriving> {
        let arrived = self.rename_here(&scratch.directory, scratch.name.as_ref(), arrival)?;
        scratch.keep();
        Ok(arrived)
    }

    /// Moves what is in another place here; it has to be a file.
    pub(super) fn take(&self, from: &Self, arrival: Arrival) -> Result<Arrived, Arriving> {
        // Of one file under two names rename(2) would leave both.
        if arrival == Arrival::Replace && self.is_same_file(from) {
            unlinkat(&from.directory, &from.name, AtFlags::empty()).map_err(Arriving::from)?;
            return Ok(Arrived::Replaced);
        }
        self.rename_here(&from.directory, &from.name, arrival)
    }

    fn is_same_file(&self, other: &Self) -> bool {
        let number = |place: &Self| {
            let found = statat(&place.directory, &place.name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
            Some((found.st_dev, found.st_ino))
        };
        number(self).is_some_and(|own| number(other) == Some(own))
    }

    /// The kernel sees to it that nothing is replaced that is not to be, whoever
    /// else is at work.
    fn rename_here(
        &self,
        directory: &File,
        name: &OsStr,
        arrival: Arrival,
    ) -> Result<Arrived, Arriving> {
        let flags = RenameFlags::NOREPLACE;
        let created = match renameat_with(directory, name, &self.directory, &self.name, flags) {
            // There are file systems that do not know it, but links.
            Err(Errno::INVAL) => {
                let flags = AtFlags::empty();
                linkat(directory, name, &self.directory, &self.name, flags)
                    .and_then(|()| unlinkat(directory, name, flags))
            }
            created => created,
        };
        match (created, arrival) {
            (Ok(()), _) => Ok(Arrived::Created),
            (Err(Errno::EXIST), Arrival::Create) => Err(Refusal::Failed.into()),
            (Err(Errno::EXIST), Arrival::Replace) => {
                self.is_fit()?;
                renameat(directory, name, &self.directory, &self.name)?;
                Ok(Arrived::Replaced)
            }
            (Err(errno), _) => Err(errno.into()),
        }
    }

    /// Removes what is here; a directory has to be empty.
    pub(super) fn remove(&self) -> Result<(), Refusal> {
        let flags = match self.occupant()? {
            Occupant::Nothing => return Err(Refusal::Absent),
            Occupant::File | Occupant::Link => AtFlags::empty(),
            Occupant::Directory => AtFlags::REMOVEDIR,
            Occupant::Special => return Err(Refusal::Special),
        };
        Ok(unlinkat(&self.directory, &self.name, flags)?)
    }

    /// Makes a directory here.
    pub(super) fn make_directory(&self) -> Result<(), Refusal> {
        mkdirat(&self.directory, &self.name, MODE).map_err(|errno| match errno {
            Errno::EXIST => Refusal::Exists,
            errno => errno.into(),
        })
    }

    /// Returns when the disk has what was done here.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.directory.sync_all()
    }
}

/// Why nothing has come into a place.
#[derive(Debug)]
pub(super) enum Arriving {
    /// Somebody has removed the directory since it was opened, or what was to come.
    Gone,
    Refused(Refusal),
}

impl From<Refusal> for Arriving {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Errno> for Arriving {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOENT => Self::Gone,
            // Parts of one file system that do not know each other: its subvolumes.
            errno @ Errno::XDEV => Refusal::Disk(errno.into()).into(),
            errno => Refusal::from(errno).into(),
        }
    }
}

/// What has to be there before a file can come under this name: makes nothing, and
/// finds most of what would refuse it in the end.
pub(super) fn look_ahead(root: &Root, name: &Path) -> Result<(), Refusal> {
    match Place::of(root, name) {
        // It will be made.
        Err(Refusal::Absent) => Ok(()),
        place => {
            let place = place?;
            place.is_fit()?;
            let here = Path::new(".");
            Ok(accessat(
                &place.directory,
                here,
                Access::WRITE_OK,
                AtFlags::empty(),
            )?)
        }
    }
}

fn make_directories(root: &Root, path: &Path) -> Result<(), Refusal> {
    let mut at = directory(root, Path::new("."))?;
    let mut reached = PathBuf::new();
    for name in path {
        reached.push(name);
        at = match directory(root, &reached) {
            Err(Refusal::Absent) => {
                match mkdirat(&at, name, MODE) {
                    Ok(()) | Err(Errno::EXIST) => at.sync_all()?,
                    Err(errno) => return Err(errno.into()),
                }
                directory(root, &reached)?
            }
            there => there?,
        };
    }
    Ok(())
}

fn directory(root: &Root, path: &Path) -> Result<File, Refusal> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    Ok(root.resolve(path, flags, ResolveFlags::NO_XDEV)?.into())
}

fn parent(name: &Path) -> &Path {
    match name.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// The last name of a path; that of the directory that is served has none, and is
/// not to be changed.
fn last(name: &Path) -> Result<&OsStr, Refusal> {
    name.file_name().ok_or(Refusal::Directory)
}
