//! Sets the owner, mode and time of files, directories and links, as far as the process
//! may. Blocking.
//!
//! Only root may change an owner. If owner or group is wrong, nobody but the agent's user
//! gets any right: the others' rights were meant for another owner and group.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use fairbat::beneath::by_descriptor;
use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, OFlags, Timespec, Timestamps, Uid, chmodat, chownat, fchmod,
    fchown, futimens, openat, utimensat,
};
use rustix::io::Errno;

use crate::entry::Attributes;
use crate::scan::{InodeStatus, look, look_at};

/// The set-user-ID and the set-group-ID bit.
pub(crate) const SET_ID: u32 = 0o6000;

/// The former of them.
pub(crate) const SET_USER_ID: u32 = 0o4000;

/// The rights of the owner.
const OWNER_RIGHTS: u32 = 0o700;

/// Whether owner and group are those of the manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owned {
    user: bool,
    group: bool,
}

impl Owned {
    const FULLY: Self = Self {
        user: true,
        group: true,
    };

    pub(crate) fn is_fully(self) -> bool {
        self == Self::FULLY
    }

    /// The mode that the entry may have.
    fn mode(self, wanted: &Attributes) -> u32 {
        match self.is_fully() {
            true => wanted.mode,
            false => wanted.mode & OWNER_RIGHTS,
        }
    }
}

/// Sets the attributes of a file that has just been written.
pub(crate) fn give(file: &File, wanted: &Attributes) -> io::Result<Owned> {
    let has = look_at(file)?.attributes;
    // The owner comes first: changing it clears the set-user-ID bit.
    let owned = own(&has, wanted, |uid, gid| fchown(file, uid, gid))?;
    fchmod(file, Mode::from_raw_mode(owned.mode(wanted)))?;
    futimens(file, &times(wanted))?;
    Ok(owned)
}

/// Sets the attributes of a symbolic link. Links have no mode.
pub(crate) fn give_link(
    parent: BorrowedFd<'_>,
    name: &OsStr,
    wanted: &Attributes,
) -> io::Result<Owned> {
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    let has = look(parent, name)?.attributes;
    let owned = own(&has, wanted, |uid, gid| {
        chownat(parent, name, uid, gid, flags)
    })?;
    if has.modified != wanted.modified {
        utimensat(parent, name, &times(wanted), flags)?;
    }
    Ok(owned)
}

/// Corrects the attributes of an existing file or directory. All of it concerns what has
/// the name at the beginning.
pub(crate) fn correct(
    parent: BorrowedFd<'_>,
    name: &OsStr,
    wanted: &Attributes,
) -> io::Result<Owned> {
    let (opened, status) = open_to_look(parent, name)?;
    let has = status.attributes;
    let mut mode = has.mode;
    if (has.uid, has.gid) != (wanted.uid, wanted.gid) {
        // Neither the old owner's others nor the new one's get more than both may have.
        // And changing the owner clears the bits of SET_ID.
        mode &= wanted.mode & OWNER_RIGHTS;
        if mode != has.mode {
            change_mode(&opened, mode)?;
        }
    }
    let owned = own(&has, wanted, |uid, gid| {
        chownat(&opened, c"", uid, gid, AtFlags::EMPTY_PATH)
    })?;
    if mode != owned.mode(wanted) {
        change_mode(&opened, owned.mode(wanted))?;
    }
    if has.modified != wanted.modified {
        let path = by_descriptor(&opened);
        utimensat(CWD, path, &times(wanted), AtFlags::empty())?;
    }
    Ok(owned)
}

/// Makes sure that the owner of a directory may write in it.
pub(crate) fn open_up(parent: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
    let (opened, status) = open_to_look(parent, name)?;
    let mode = status.attributes.mode;
    if status.kind != FileType::Directory || mode & OWNER_RIGHTS == OWNER_RIGHTS {
        return Ok(());
    }
    match change_mode(&opened, mode | OWNER_RIGHTS) {
        // It is another user's directory. Whether that matters will show.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        other => other,
    }
}

/// Opens a file or a directory, only to look at it and to change its attributes.
fn open_to_look(parent: BorrowedFd<'_>, name: &OsStr) -> io::Result<(OwnedFd, InodeStatus)> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = openat(parent, name, flags, Mode::empty())?;
    let status = look_at(&opened)?;
    match status.kind {
        FileType::Symlink => Err(Errno::LOOP.into()),
        _ => Ok((opened, status)),
    }
}

fn change_mode(opened: &OwnedFd, mode: u32) -> io::Result<()> {
    let mode = Mode::from_raw_mode(mode);
    Ok(chmodat(CWD, by_descriptor(opened), mode, AtFlags::empty())?)
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
    // An owner that the user namespace does not know is invalid.
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
