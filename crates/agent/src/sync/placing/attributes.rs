//! Gives files, directories and links their owner, their mode and their time, as
//! far as the process may. Blocking.
//!
//! Who is no root cannot give files away. Then what would run with the rights of
//! the owner does not get the bits that say so: it would run with ours.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, Stat, Timespec, Timestamps, Uid, chmodat, chownat,
    fchmod, fchown, fstat, futimens, openat, statat, utimensat,
};
use rustix::io::Errno;

use crate::entry::{Attributes, Moment};

/// Run with the rights of the owner.
const SET_USER: u32 = 0o4000;
/// Run with the rights of the group.
const SET_GROUP: u32 = 0o2000;

/// Whether somebody has what the manifest says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Owned {
    user: bool,
    group: bool,
}

impl Owned {
    const FULLY: Self = Self {
        user: true,
        group: true,
    };

    pub(super) fn is_fully(self) -> bool {
        self == Self::FULLY
    }

    /// The mode that something may have.
    fn mode(self, wanted: &Attributes) -> u32 {
        let mut mode = wanted.mode;
        if !self.user {
            mode &= !SET_USER;
        }
        if !self.group {
            mode &= !SET_GROUP;
        }
        mode
    }
}

/// What something has.
pub(super) fn of(stat: &Stat) -> Attributes {
    Attributes {
        mode: stat.st_mode & 0o7777,
        uid: stat.st_uid,
        gid: stat.st_gid,
        modified: Moment {
            seconds: stat.st_mtime,
            nanoseconds: stat.st_mtime_nsec as u32,
        },
    }
}

/// Gives a file that has just been written its attributes.
pub(super) fn give(file: &File, wanted: &Attributes) -> io::Result<Owned> {
    let has = of(&fstat(file)?);
    // Giving a file away takes its set-user-ID bit: first the owner.
    let owned = own(&has, wanted, |uid, gid| fchown(file, uid, gid))?;
    fchmod(file, Mode::from_raw_mode(owned.mode(wanted)))?;
    futimens(file, &times(wanted))?;
    Ok(owned)
}

/// Gives a symbolic link its attributes: it has no mode.
pub(super) fn give_link(
    parent: BorrowedFd<'_>,
    name: &OsStr,
    wanted: &Attributes,
) -> io::Result<Owned> {
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    let has = of(&statat(parent, name, flags)?);
    let owned = own(&has, wanted, |uid, gid| {
        chownat(parent, name, uid, gid, flags)
    })?;
    if has.modified != wanted.modified {
        utimensat(parent, name, &times(wanted), flags)?;
    }
    Ok(owned)
}

/// Gives what is there, a file or a directory, the attributes that it does not
/// have.
pub(super) fn correct(
    parent: BorrowedFd<'_>,
    name: &OsStr,
    wanted: &Attributes,
) -> io::Result<Owned> {
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    let stat = statat(parent, name, flags)?;
    if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
        return Err(Errno::LOOP.into());
    }
    let has = of(&stat);
    let owned = own(&has, wanted, |uid, gid| {
        chownat(parent, name, uid, gid, flags)
    })?;
    let mode = owned.mode(wanted);
    // Giving something away takes these bits.
    let is_taken =
        (has.uid, has.gid) != (wanted.uid, wanted.gid) && mode & (SET_USER | SET_GROUP) != 0;
    if has.mode != mode || is_taken {
        change_mode(parent, name, mode)?;
    }
    if has.modified != wanted.modified {
        utimensat(parent, name, &times(wanted), flags)?;
    }
    Ok(owned)
}

/// Lets the owner of a directory work in it.
pub(super) fn open_up(parent: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
    let stat = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    let mode = stat.st_mode & 0o7777;
    if !is_directory || mode & 0o700 == 0o700 {
        return Ok(());
    }
    match change_mode(parent, name, mode | 0o700) {
        // Somebody else's; whether it matters will show.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        other => other,
    }
}

fn change_mode(parent: BorrowedFd<'_>, name: &OsStr, mode: u32) -> io::Result<()> {
    let mode = Mode::from_raw_mode(mode);
    // Opened, so that no link that takes its place is followed.
    let open = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match openat(parent, name, open, Mode::empty()) {
        Ok(opened) => fchmod(&opened, mode)?,
        Err(Errno::ACCESS) => chmodat(parent, name, mode, AtFlags::empty())?,
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

fn own(
    has: &Attributes,
    wanted: &Attributes,
    chown: impl Fn(Option<Uid>, Option<Gid>) -> Result<(), Errno>,
) -> Result<Owned, Errno> {
    let (is_user, is_group) = (has.uid == wanted.uid, has.gid == wanted.gid);
    if is_user && is_group {
        return Ok(Owned::FULLY);
    }
    // An owner that a user namespace does not know is an invalid one.
    let given = |result| match result {
        Ok(()) => Ok(true),
        Err(Errno::PERM | Errno::INVAL) => Ok(false),
        Err(error) => Err(error),
    };
    let (uid, gid) = (Uid::from_raw(wanted.uid), Gid::from_raw(wanted.gid));
    if given(chown(Some(uid), Some(gid)))? {
        return Ok(Owned::FULLY);
    }
    Ok(Owned {
        user: is_user,
        group: is_group || given(chown(None, Some(gid)))?,
    })
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
