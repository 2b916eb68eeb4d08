//! The names below one directory, and nothing outside of it.
//!
//! The kernel resolves every name beneath the open directory (openat2(2),
//! `RESOLVE_BENEATH`). Whatever others rename or link meanwhile changes nothing about
//! that. A filter of system calls may refuse openat2 with ENOSYS, as that of
//! `RestrictSUIDSGID=` does in a unit of systemd. Then names are opened one by one, if
//! no link is to be followed.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, fsync, mkdirat, openat,
    openat2, readlinkat, statat,
};
use rustix::io::Errno;
use rustix::process::geteuid;

/// Tries to resolve a name while somebody renames directories on its way. The
/// kernel asks for another try by `EAGAIN` (openat2(2)).
const ATTEMPTS: usize = 8;

/// Every restriction of a tree in which no symbolic link is followed.
pub const NO_LINKS: ResolveFlags = ResolveFlags::NO_SYMLINKS;

/// An open directory below which names are resolved.
#[derive(Debug)]
pub struct Beneath {
    directory: OwnedFd,
}

impl Beneath {
    /// Opens the directory. Links on the way to it are followed, and it may be a link
    /// itself, unless another user than root has made that link where others may write.
    ///
    /// # Errors
    /// It does not exist, is no directory, or may not be entered. `LOOP` for a link that
    /// is not followed.
    pub fn open(directory: &Path) -> Result<Self, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let follow = |at: BorrowedFd<'_>, path: &Path| openat(at, path, flags, Mode::empty());
        let Some(name) = directory.file_name() else {
            let directory = follow(CWD, directory)?;
            return Ok(Self { directory });
        };
        let at = follow(CWD, parent(directory))?;
        let directory = match enter(&at, name) {
            Err(Errno::LOOP) => {
                let link = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let link = openat(&at, name, link, Mode::empty())?;
                if !is_trusted(&fstat(&at)?, &fstat(&link)?) {
                    return Err(Errno::LOOP);
                }
                let target = readlinkat(&link, c"", Vec::new())?;
                follow(at.as_fd(), Path::new(OsStr::from_bytes(target.as_bytes())))?
            }
            opened => opened?,
        };
        Ok(Self { directory })
    }

    /// The directory itself, for system calls that take one. It cannot be read.
    #[must_use]
    pub fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// Opens a name. `.` is the directory itself. Links that stay inside are followed,
    /// unless `restrictions` say otherwise.
    ///
    /// # Errors
    /// `XDEV` for a name that leads out, `LOOP` for a link that is not followed.
    pub fn resolve(
        &self,
        name: &Path,
        flags: OFlags,
        restrictions: ResolveFlags,
    ) -> Result<OwnedFd, Errno> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | restrictions;
        let flags = flags | OFlags::CLOEXEC;
        let mut result = Err(Errno::AGAIN);
        for _ in 0..ATTEMPTS {
            result = openat2(&self.directory, name, flags, Mode::empty(), resolve);
            if !matches!(result, Err(Errno::AGAIN | Errno::INTR)) {
                break;
            }
        }
        match result {
            Err(Errno::NOSYS | Errno::PERM) if restrictions == NO_LINKS => self.walk(name, flags),
            result => result,
        }
    }

    /// Opens a name without following links, one directory after another.
    fn walk(&self, name: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let mut names = Vec::new();
        for component in name.components() {
            match component {
                Component::Normal(name) => names.push(name),
                Component::CurDir => {}
                Component::Prefix(_) | Component::RootDir | Component::ParentDir => {
                    return Err(Errno::XDEV);
                }
            }
        }
        let last = names.pop().unwrap_or(OsStr::new("."));
        let mut at = None;
        for name in names {
            at = Some(enter(at.as_ref().unwrap_or(&self.directory), name)?);
        }
        let at = at.as_ref().unwrap_or(&self.directory);
        let opened = openat(at, last, flags | OFlags::NOFOLLOW, Mode::empty())
            .map_err(|errno| link_or(errno, at, last))?;
        // With this flag a link itself is opened.
        if flags.contains(OFlags::PATH) && kind(&fstat(&opened)?) == FileType::Symlink {
            return Err(Errno::LOOP);
        }
        Ok(opened)
    }

    /// Opens a directory to read it.
    ///
    /// # Errors
    /// Those of [`Self::resolve`].
    pub fn subdirectory(&self, name: &Path, restrictions: ResolveFlags) -> Result<File, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        Ok(self.resolve(name, flags, restrictions)?.into())
    }

    /// The same. Missing directories are made, and are on the disk then. Each has `mode`,
    /// before the umask, until `made` gets it.
    ///
    /// # Errors
    /// Those of [`Self::resolve`], mkdirat(2) and `made`.
    pub fn make_subdirectory(
        &self,
        name: &Path,
        restrictions: ResolveFlags,
        mode: Mode,
        made: impl Fn(&File) -> Result<(), Errno>,
    ) -> Result<File, Errno> {
        match self.subdirectory(name, restrictions) {
            Err(Errno::NOENT) => {}
            opened => return opened,
        }
        let mut at = self.subdirectory(Path::new("."), restrictions)?;
        let mut reached = PathBuf::new();
        for name in name {
            reached.push(name);
            at = match self.subdirectory(&reached, restrictions) {
                Err(Errno::NOENT) => {
                    let is_made = match mkdirat(&at, name, mode) {
                        Ok(()) => true,
                        Err(Errno::EXIST) => false,
                        Err(errno) => return Err(errno),
                    };
                    fsync(&at)?;
                    let inner = self.subdirectory(&reached, restrictions)?;
                    if is_made {
                        made(&inner)?;
                    }
                    inner
                }
                there => there?,
            };
        }
        Ok(at)
    }
}

/// Opens a directory in another one, to enter it. Links are refused.
///
/// # Errors
/// `LOOP` for a link, and those of openat(2).
pub fn enter(directory: impl AsFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(&directory, name, flags, Mode::empty()).map_err(|errno| link_or(errno, directory, name))
}

/// Opens what a descriptor stands for that was opened with `O_PATH`, if it is a regular
/// file. Nothing else is opened, because that may have effects on a device or a FIFO.
///
/// # Errors
/// `ISDIR` for a directory, `LOOP` for a link, `NXIO` for all else that is no file, and
/// those of openat(2).
pub fn reopen(found: impl AsFd, flags: OFlags) -> Result<File, Errno> {
    match kind(&fstat(&found)?) {
        FileType::RegularFile => {}
        FileType::Directory => return Err(Errno::ISDIR),
        FileType::Symlink => return Err(Errno::LOOP),
        _ => return Err(Errno::NXIO),
    }
    let flags = flags | OFlags::CLOEXEC;
    Ok(openat(CWD, by_descriptor(&found), flags, Mode::empty())?.into())
}

/// A path of what a descriptor stands for, for system calls that take no descriptor that
/// was opened with `O_PATH` (proc_pid_fd(5)).
pub fn by_descriptor(found: &impl AsFd) -> String {
    format!("/proc/self/fd/{}", found.as_fd().as_raw_fd())
}

fn kind(status: &Stat) -> FileType {
    FileType::from_raw_mode(status.st_mode)
}

/// Whether a link is from root or from this user, or at least from a directory in which
/// nobody else may write.
fn is_trusted(directory: &Stat, link: &Stat) -> bool {
    let is_ours = |status: &Stat| [0, geteuid().as_raw()].contains(&status.st_uid);
    let others = Mode::WGRP | Mode::WOTH;
    let is_closed = !Mode::from_raw_mode(directory.st_mode).intersects(others);
    is_ours(link) || is_ours(directory) && is_closed
}

/// Tells a link from a file where a directory was expected.
fn link_or(errno: Errno, directory: impl AsFd, name: &OsStr) -> Errno {
    let is_link = || {
        let status = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
        status.is_ok_and(|status| kind(&status) == FileType::Symlink)
    };
    match errno {
        Errno::NOTDIR if is_link() => Errno::LOOP,
        errno => errno,
    }
}

impl From<Beneath> for OwnedFd {
    fn from(beneath: Beneath) -> Self {
        beneath.directory
    }
}

/// The directory that a name is in; `.` for one without slashes.
#[must_use]
pub fn parent(name: &Path) -> &Path {
    match name.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicBool, Ordering};

    use rustix::fs::{RenameFlags, renameat_with};

    use super::*;

    /// Opens while somebody exchanges a directory and a link.
    const RACES: usize = 20_000;

    /// Most of them. Each way has to have won one.
    const MAX_RACES: usize = 50 * RACES;

    /// Ends the other thread, also after a failed assertion.
    struct SetOnDrop<'a>(&'a AtomicBool);

    impl Drop for SetOnDrop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    type Way = fn(&Beneath, &Path) -> Result<OwnedFd, Errno>;

    /// By openat2, and where there is none.
    const WAYS: [Way; 2] = [
        |root, name| root.resolve(name, OFlags::RDONLY, NO_LINKS),
        |root, name| root.walk(name, OFlags::RDONLY),
    ];

    /// The same, to look only.
    const LOOKS: [Way; 2] = [
        |root, name| root.resolve(name, OFlags::PATH, NO_LINKS),
        |root, name| root.walk(name, OFlags::PATH),
    ];

    /// A directory with `in/f`, and beside it `link`, which leads to another `f`.
    fn scene() -> (tempfile::TempDir, tempfile::TempDir, Beneath) {
        let (inside, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir(inside.path().join("in")).unwrap();
        fs::write(inside.path().join("in/f"), "inside").unwrap();
        fs::write(outside.path().join("f"), "outside").unwrap();
        symlink(outside.path(), inside.path().join("link")).unwrap();
        symlink("in", inside.path().join("near")).unwrap();
        symlink("f", inside.path().join("in/last")).unwrap();
        let root = Beneath::open(inside.path()).unwrap();
        (inside, outside, root)
    }

    #[test]
    fn both_ways_open_and_refuse_the_same() {
        let (inside, _outside, root) = scene();
        let absolute = inside.path().join("in/f");
        for way in WAYS.into_iter().chain(LOOKS) {
            for (name, expected) in [
                ("in/f", None),
                ("./in/./f", None),
                (".", None),
                ("link/f", Some(Errno::LOOP)),
                ("near/f", Some(Errno::LOOP)),
                ("in/last", Some(Errno::LOOP)),
                ("in/f/g", Some(Errno::NOTDIR)),
                ("in/g", Some(Errno::NOENT)),
                ("../x", Some(Errno::XDEV)),
                (absolute.to_str().unwrap(), Some(Errno::XDEV)),
            ] {
                assert_eq!(way(&root, Path::new(name)).err(), expected, "{name}");
            }
            let up = way(&root, Path::new("in/../../x")).unwrap_err();
            assert!([Errno::XDEV, Errno::NOENT].contains(&up), "{up}");
        }
    }

    #[test]
    fn a_link_that_comes_and_goes_leads_nowhere() {
        let (_inside, _outside, root) = scene();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (root, flags) = (root.directory(), RenameFlags::EXCHANGE);
                while !is_over.load(Ordering::Relaxed) {
                    renameat_with(root, "in", root, "link", flags).unwrap();
                }
            });
            let _end = SetOnDrop(&is_over);
            let (mut race, mut inside, mut outside) = (0, [0, 0], 0);
            while race < RACES || inside.contains(&0) {
                assert!(race < MAX_RACES, "{inside:?} of {race} races were won");
                let way = race % WAYS.len();
                race += 1;
                if let Ok(file) = WAYS[way](&root, Path::new("in/f")) {
                    let mut content = String::new();
                    File::from(file).read_to_string(&mut content).unwrap();
                    match content.as_str() {
                        "inside" => inside[way] += 1,
                        _ => outside += 1,
                    }
                }
            }
            assert_eq!(outside, 0, "of {race} races");
        });
    }

    #[test]
    fn directories_are_made_but_not_behind_links() {
        let (inside, outside, root) = scene();
        let make = |name: &str| {
            let mode = Mode::from_raw_mode(0o700);
            root.make_subdirectory(Path::new(name), NO_LINKS, mode, |_| Ok(()))
        };
        make("in/a/b").unwrap();
        assert!(inside.path().join("in/a/b").is_dir());
        for name in ["link/a", "near/c"] {
            assert_eq!(make(name).unwrap_err(), Errno::LOOP, "{name}");
        }
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
    }
}
