//! The files below one directory, and nothing else: names from requests, and
//! what may be opened under them.
//!
//! The kernel resolves every name [beneath](crate::beneath) the directory. Symbolic
//! links that stay inside are followed. Those that lead out, and absolute ones, count
//! as missing. Only regular files are served. Others are not even opened: opening wakes
//! the writer of a FIFO and rewinds a tape.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use percent_encoding::percent_decode_str;
use rustix::fs::{OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::beneath::{Beneath, reopen};
use crate::blocking::{LostThread, blocking};
use crate::error::{ErrorKind, TransferError};
use crate::file_version::{FileVersion, Stability, StabilityCheck, TICK, wall_clock};

/// The directory for unfinished uploads, in the directory that is served. Nothing
/// is ever served out of a directory of this name, and no request stores anything
/// there.
pub(crate) const SCRATCH: &str = ".fairbat-upload";

/// The directory that is served.
#[derive(Debug)]
pub(crate) struct Root(pub(crate) Beneath);

/// An open file and its version.
#[derive(Debug)]
pub(crate) struct OpenFile {
    pub(crate) file: File,
    pub(crate) version: FileVersion,
}

impl OpenFile {
    /// The same file with its version once every later change shows as another
    /// one; `None` if somebody keeps writing to the file.
    pub(crate) async fn settled(mut self) -> Result<Option<Self>, NotServed> {
        let mut check = StabilityCheck::default();
        loop {
            match check.observe(self.version, wall_clock()) {
                Stability::Settled => return Ok(Some(self)),
                Stability::Changing => tokio::time::sleep(TICK).await,
                Stability::Unstable => return Ok(None),
            }
            self = blocking(move || {
                let version = FileVersion::of(&self.file.metadata()?);
                Ok::<_, NotServed>(Self { version, ..self })
            })
            .await??;
        }
    }
}

/// Why a name is not served.
#[derive(Debug)]
pub(crate) enum NotServed {
    /// There is no such regular file within the directory.
    Absent,
    /// This process may not read it.
    Forbidden,
    /// Not now: too many files are open, directories keep moving, or somebody
    /// keeps writing to the file.
    Busy,
    /// The disk fails.
    Broken(io::Error),
}

impl Root {
    /// Opens the directory, and checks that the kernel can confine names to it.
    ///
    /// # Errors
    /// It is no directory or cannot be read, or the kernel has no openat2.
    pub(crate) fn open(directory: &Path) -> Result<Self, TransferError> {
        let refused = |errno: Errno| {
            let message = format!("cannot serve {}: {errno}", directory.display());
            TransferError::new(ErrorKind::Disk, message).with_hint(match errno {
                Errno::ACCESS => {
                    "run as a user that may enter it and the directories above it (x) and read \
                     its files (r)"
                }
                Errno::LOOP => {
                    "another user could have made this link; name the directory that it leads to"
                }
                Errno::NOTDIR => "name a directory; a single file is served by that of it",
                _ => "name a directory that is there",
            })
        };
        let root = Self(Beneath::open(directory).map_err(refused)?);
        match root.beneath(Path::new("."), OFlags::PATH) {
            Ok(_) => Ok(root),
            Err(errno @ (Errno::NOSYS | Errno::PERM)) => {
                let message = format!(
                    "cannot confine names to {}: openat2 fails ({errno})",
                    directory.display()
                );
                Err(TransferError::new(ErrorKind::Other, message)
                    .with_hint("it takes Linux 5.6, and a container that does not forbid it"))
            }
            Err(errno) => Err(refused(errno)),
        }
    }

    /// The directory itself, for system calls that take one. It cannot be read.
    pub(crate) fn directory(&self) -> BorrowedFd<'_> {
        self.0.directory()
    }

    /// Opens a regular file.
    pub(crate) fn file(&self, name: &Path) -> Result<OpenFile, NotServed> {
        let file = reopen(self.beneath(name, OFlags::PATH)?, OFlags::RDONLY)?;
        let version = FileVersion::of(&file.metadata()?);
        Ok(OpenFile { file, version })
    }

    /// Opens a name within the directory. Links are followed.
    pub(crate) fn beneath(&self, name: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        self.0.resolve(name, flags, ResolveFlags::empty())
    }
}

impl From<io::Error> for NotServed {
    fn from(error: io::Error) -> Self {
        Self::Broken(error)
    }
}

impl From<LostThread> for NotServed {
    fn from(lost: LostThread) -> Self {
        Self::Broken(lost.into())
    }
}

impl From<Errno> for NotServed {
    fn from(errno: Errno) -> Self {
        match errno {
            // Outside the directory (XDEV), no such name, or no possible name.
            Errno::NOENT
            | Errno::NOTDIR
            | Errno::XDEV
            | Errno::LOOP
            | Errno::NAMETOOLONG
            | Errno::INVAL
            | Errno::ILSEQ
            | Errno::NXIO
            | Errno::NODEV
            | Errno::ISDIR => Self::Absent,
            Errno::ACCESS | Errno::PERM => Self::Forbidden,
            Errno::AGAIN | Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::TXTBSY => Self::Busy,
            other => Self::Broken(other.into()),
        }
    }
}

/// The name below the directory that the path of a URL stands for; `None` if it
/// stands for none.
///
/// The path is decoded once, as bytes: names need not be UTF-8. Each segment is
/// one name. `.`, `..`, empty segments, segments with an encoded slash and
/// [`SCRATCH`] are refused, wherever they would lead.
pub(crate) fn name_in(url_path: &str) -> Option<PathBuf> {
    let mut name = PathBuf::new();
    for segment in url_path.strip_prefix('/')?.split('/') {
        let segment: Vec<u8> = percent_decode_str(segment).collect();
        let is_special = matches!(segment.as_slice(), b"" | b"." | b"..")
            // Some file systems ignore case.
            || segment.eq_ignore_ascii_case(SCRATCH.as_bytes());
        if is_special || segment.iter().any(|byte| matches!(byte, b'/' | 0)) {
            return None;
        }
        name.push(OsStr::from_bytes(&segment));
    }
    Some(name)
}

/// The same for the path of a directory, which may end with a slash. `.` is the
/// directory that is served.
pub(crate) fn directory_in(url_path: &str) -> Option<PathBuf> {
    match url_path {
        "/" => Some(".".into()),
        path => name_in(path.strip_suffix('/').unwrap_or(path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_may_end_with_a_slash() {
        for (path, expected) in [
            ("/", Some(".")),
            ("/a", Some("a")),
            ("/a/b/", Some("a/b")),
            ("//", None),
            ("/a//", None),
            ("/../", None),
            ("", None),
        ] {
            assert_eq!(
                directory_in(path).as_deref(),
                expected.map(Path::new),
                "{path}"
            );
        }
    }

    #[test]
    fn names_are_decoded_once() {
        for (path, expected) in [
            ("/a", "a"),
            ("/a/b.iso", "a/b.iso"),
            ("/a%20b%2B", "a b+"),
            ("/%252e%252e", "%2e%2e"),
            ("/...", "..."),
            ("/a\\..\\b", "a\\..\\b"),
            ("/%zz%", "%zz%"),
        ] {
            assert_eq!(
                name_in(path).as_deref(),
                Some(Path::new(expected)),
                "{path}"
            );
        }
        let bytes = name_in("/%ff%e4").unwrap();
        assert_eq!(bytes.as_os_str().as_bytes(), b"\xff\xe4");
    }

    #[test]
    fn invalid_names_are_refused() {
        for path in [
            "",
            "*",
            "a",
            "/",
            "/a/",
            "//a",
            "//etc/passwd",
            "/.",
            "/a/./b",
            "/..",
            "/../a",
            "/a/..",
            "/%2e%2e/a",
            "/%2E./a",
            "/a%2fb",
            "/%2Fetc%2Fpasswd",
            "/..%2fa",
            "/a%00",
            "/.fairbat-upload/1-0",
            "/a/%2efairbat-UPLOAD",
        ] {
            assert_eq!(name_in(path), None, "{path}");
        }
    }
}
