//! Places below the directory that is served, what is done in them, and what a
//! request expects there (RFC 9110, section 13).
//!
//! A place is an open directory and a name in it. The kernel resolves the way
//! there as it does for reading (see `files`). The way also stays within one file
//! system, because rename(2) cannot leave it. A link under the name itself is not
//! followed: it is replaced, renamed or removed itself.
//!
//! The conditions of a request are evaluated once, before its body is taken.
//! When the change is made, the version found then must still be there. The
//! server makes one change at a time, so of two requests that expect the same
//! version one is refused. Everything but [`ExpectedContent::by`] blocks.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::{HeaderMap, Response, StatusCode};
use rustix::fs::{
    Access, AtFlags, FileType, Mode, RenameFlags, ResolveFlags, accessat, linkat, mkdirat,
    renameat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;

use super::refusal::Refusal;
use super::scratch::Scratch;
use super::unfinished::{Arrived, ExpectedContent};
use super::uploads::Uploads;
use crate::beneath::parent;
use crate::blocking::blocking;
use crate::file_version::wall_clock;
use crate::serve::conditions::{Validators, is_conditional, permits_change};
use crate::serve::files::{NotServed, Root, directory_in, name_in};
use crate::serve::response::{ResponseBody, no_content, without_content};
use crate::serve::site::ServedSite;

/// The way to a place stays within one file system.
const WAY: ResolveFlags = ResolveFlags::NO_XDEV;

/// The mode of new directories, before the umask.
const MODE: Mode = Mode::from_raw_mode(0o777);

/// An open directory and a name in it.
#[derive(Debug)]
pub(crate) struct FilePlace {
    directory: File,
    name: OsString,
}

/// The content of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Occupant {
    Nothing,
    File,
    Directory,
    Link,
    /// A device, a pipe or a socket.
    Special,
}

/// Whether a file may replace what is in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// Only an empty place is taken.
    Create,
    /// Files and links are replaced, directories and special files are not.
    Replace,
}

impl Arrived {
    /// The answer to a request whose file has arrived.
    pub(crate) fn response(self) -> Response<ResponseBody> {
        match self {
            Self::Created => without_content(StatusCode::CREATED, []),
            Self::Replaced => no_content(),
        }
    }
}

/// Tries to make the directories of a file that somebody else removes.
const ATTEMPTS: usize = 16;

/// Has a file arrive under this name. Missing directories are made. No other
/// request changes anything while `check_and_move` runs. It is called again if
/// somebody removes a directory. Returns when the name is on the disk.
pub(crate) fn arrive(
    site: &ServedSite,
    uploads: &Uploads,
    name: &Path,
    mut check_and_move: impl FnMut(&FilePlace) -> Result<Arrived, NotArrived>,
) -> Result<Arrived, Refusal> {
    for _ in 0..ATTEMPTS {
        let place = FilePlace::made(&site.root, name)?;
        let turn = uploads.turn();
        let arrived = check_and_move(&place);
        drop(turn);
        match arrived {
            Ok(arrived) => {
                place.sync()?;
                return Ok(arrived);
            }
            Err(NotArrived::Gone) => {}
            Err(NotArrived::Refused(refusal)) => return Err(refusal),
        }
    }
    Err(Refusal::Busy)
}

impl FilePlace {
    /// The place of a name whose directory exists. The directory that is served has no name,
    /// and must not be changed.
    pub(crate) fn of(root: &Root, name: &Path) -> Result<Self, Refusal> {
        Ok(Self {
            directory: root.0.subdirectory(parent(name), WAY)?,
            name: name.file_name().ok_or(Refusal::Directory)?.to_owned(),
        })
    }

    /// The same. Missing directories are made.
    pub(crate) fn made(root: &Root, name: &Path) -> Result<Self, Refusal> {
        let directory = root
            .0
            .make_subdirectory(parent(name), WAY, MODE, |_| Ok(()));
        let directory = directory.map_err(|errno| match errno.into() {
            // A link on the way leads to nothing.
            Refusal::Absent => Refusal::NoDirectory,
            refusal => refusal,
        })?;
        Ok(Self {
            directory,
            name: name.file_name().ok_or(Refusal::Directory)?.to_owned(),
        })
    }

    pub(crate) fn occupant(&self) -> Result<Occupant, Refusal> {
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

    /// Checks that a file may come here, and replace what is there.
    fn check_replaceable(&self) -> Result<(), Refusal> {
        match self.occupant()? {
            Occupant::Nothing | Occupant::File | Occupant::Link => Ok(()),
            Occupant::Directory => Err(Refusal::Directory),
            Occupant::Special => Err(Refusal::Special),
        }
    }

    /// Puts a finished file here.
    pub(crate) fn receive(
        &self,
        scratch: &mut Scratch,
        arrival: Arrival,
    ) -> Result<Arrived, NotArrived> {
        let arrived = self.rename_here(&scratch.directory, scratch.name.as_ref(), arrival)?;
        scratch.keep();
        Ok(arrived)
    }

    /// Moves the file of another place here.
    pub(crate) fn take(&self, from: &Self, arrival: Arrival) -> Result<Arrived, NotArrived> {
        // rename(2) keeps both names of one file.
        if arrival == Arrival::Replace && self.is_same_file(from) {
            unlinkat(&from.directory, &from.name, AtFlags::empty()).map_err(NotArrived::from)?;
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

    /// Renames a file to here. The kernel ensures that nothing else is replaced,
    /// whatever other processes do.
    fn rename_here(
        &self,
        directory: &File,
        name: &OsStr,
        arrival: Arrival,
    ) -> Result<Arrived, NotArrived> {
        let flags = RenameFlags::NOREPLACE;
        let created = match renameat_with(directory, name, &self.directory, &self.name, flags) {
            // Some file systems support links, but not this flag.
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
                self.check_replaceable()?;
                renameat(directory, name, &self.directory, &self.name)?;
                Ok(Arrived::Replaced)
            }
            (Err(errno), _) => Err(errno.into()),
        }
    }

    /// Removes the content of the place. A directory has to be empty.
    pub(crate) fn remove(&self) -> Result<(), Refusal> {
        let flags = match self.occupant()? {
            Occupant::Nothing => return Err(Refusal::Absent),
            Occupant::File | Occupant::Link => AtFlags::empty(),
            Occupant::Directory => AtFlags::REMOVEDIR,
            Occupant::Special => return Err(Refusal::Special),
        };
        Ok(unlinkat(&self.directory, &self.name, flags)?)
    }

    /// Makes a directory here.
    pub(crate) fn make_directory(&self) -> Result<(), Refusal> {
        mkdirat(&self.directory, &self.name, MODE).map_err(|errno| match errno {
            Errno::EXIST => Refusal::Exists,
            errno => errno.into(),
        })
    }

    /// Returns when the changes here are on the disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.directory.sync_all()
    }
}

/// Why a file has not arrived in its place.
#[derive(Debug)]
pub(crate) enum NotArrived {
    /// The directory was removed since it was opened, or the file is gone.
    Gone,
    Refused(Refusal),
}

impl From<Refusal> for NotArrived {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Errno> for NotArrived {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOENT => Self::Gone,
            // Two subvolumes of one file system.
            errno @ Errno::XDEV => Refusal::Disk(errno.into()).into(),
            errno => Refusal::from(errno).into(),
        }
    }
}

/// Checks most of what could refuse a file under this name in the end. Makes
/// nothing.
pub(crate) fn check_ahead(root: &Root, name: &Path) -> Result<(), Refusal> {
    match FilePlace::of(root, name) {
        // The directory will be made.
        Err(Refusal::Absent) => Ok(()),
        place => {
            let place = place?;
            place.check_replaceable()?;
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

/// The name of a file in the path of a URL.
///
/// # Errors
/// The path is that of a directory, or of nothing.
pub(crate) fn file_name(url_path: &str) -> Result<PathBuf, Refusal> {
    name_in(url_path).ok_or_else(|| match directory_in(url_path) {
        Some(_) => Refusal::Directory,
        None => Refusal::NoName,
    })
}

impl ExpectedContent {
    /// Evaluates the conditions of a request for the file that is there now.
    ///
    /// # Errors
    /// The conditions do not hold, or the version cannot be told.
    pub(crate) async fn by(
        site: &Arc<ServedSite>,
        name: &Path,
        headers: &HeaderMap,
    ) -> Result<Self, Refusal> {
        if !is_conditional(headers) {
            return Ok(Self::Anything);
        }
        let (shared, owned) = (Arc::clone(site), name.to_owned());
        let version = match blocking(move || shared.root.file(&owned)).await? {
            Ok(found) => Some(found.settled().await?.ok_or(Refusal::Busy)?.version),
            Err(NotServed::Absent) => None,
            Err(reason) => return Err(reason.into()),
        };
        let validators = version.map(|version| Validators::of(&version, wall_clock()));
        if !permits_change(headers, validators.as_ref()) {
            return Err(Refusal::Failed);
        }
        Ok(version.map_or(Self::Nothing, Self::Version))
    }

    /// Checks that the place has the expected content. Blocking.
    pub(crate) fn check(&self, site: &ServedSite, name: &Path) -> Result<(), Refusal> {
        // For a file that arrives, `Self::arrival` has the kernel check `Self::Nothing`.
        let Self::Version(expected) = self else {
            return Ok(());
        };
        match site.root.file(name) {
            Ok(found) if found.version == *expected => Ok(()),
            Ok(_) | Err(NotServed::Absent) => Err(Refusal::Failed),
            Err(reason) => Err(reason.into()),
        }
    }

    /// How a file arrives where this is expected.
    pub(crate) fn arrival(self) -> Arrival {
        match self {
            Self::Nothing => Arrival::Create,
            Self::Anything | Self::Version(_) => Arrival::Replace,
        }
    }
}
