//! Sets the owner, mode and time of files, directories and links, as far as the process
//! may. Blocking.
//!
//! Only root may change an owner. If owner or group is wrong, nobody but the agent's user
//! gets any right: the others' rights were meant for another owner and group.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, OFlags, Timespec, Timestamps, Uid, chmodat, chownat, fchmod,
    fchown, futimens, openat, utimensat,
};
use rustix::io::Errno;

use crate::entry::Attributes;
use crate::scan::{look, look_at};

/// The set-user-ID and the set-group-ID bit.
pub(crate) const SET_ID: u32 = 0o6000;

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

/// Corrects the attributes of an existing file or directory.
pub(crate) fn correct(
    parent: BorrowedFd<'_>,
    name: &OsStr,
    wanted: &Attributes,
) -> io::Result<Owned> {
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    let status = look(parent, name)?;
    if status.kind == FileType::Symlink {
        return Err(Errno::LOOP.into());
    }
    let has = status.attributes;
    let owned = own(&has, wanted, |uid, gid| {
        chownat(parent, name, uid, gid, flags)
    })?;
    let mode = owned.mode(wanted);
    // Changing the owner clears these bits.
    let is_taken = (has.uid, has.gid) != (wanted.uid, wanted.gid) && mode & SET_ID != 0;
    if has.mode != mode || is_taken {
        change_mode(parent, name, mode)?;
    }
    if has.modified != wanted.modified {
        utimensat(parent, name, &times(wanted), flags)?;
    }
    Ok(owned)
}

/// Makes sure that the owner of a directory may write in it.
pub(crate) fn open_up(parent: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
    let status = look(parent, name)?;
    let mode = status.attributes.mode;
    if status.kind != FileType::Directory || mode & 0o700 == 0o700 {
        return Ok(());
    }
    match change_mode(parent, name, mode | 0o700) {
        // It is another user's directory. Whether that matters will show.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        other => other,
    }
}

fn change_mode(parent: BorrowedFd<'_>, name: &OsStr, mode: u32) -> io::Result<()> {
    let mode = Mode::from_raw_mode(mode);
    // Opened first, so that no link in its place is followed.
    let open = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match openat(parent, name, open | OFlags::RDONLY, Mode::empty()) {
        Ok(opened) => fchmod(&opened, mode)?,
        Err(Errno::ACCESS) => {
            let opened = openat(parent, name, open | OFlags::PATH, Mode::empty())?;
            if look_at(&opened)?.kind == FileType::Symlink {
                return Err(Errno::LOOP.into());
            }
            // fchmod(2) takes no descriptor that may not read.
            let by_descriptor = format!("/proc/self/fd/{}", opened.as_raw_fd());
            chmodat(CWD, by_descriptor, mode, AtFlags::empty())?;
        }
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
