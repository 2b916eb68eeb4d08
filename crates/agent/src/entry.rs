//! The entries of a directory tree. The scan, the state and the manifest share these
//! types.

use std::ffi::OsStr;
use std::fmt::{self, Write as _};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use fairbat::printable::is_unsafe;
use serde::{Deserialize, Serialize};

/// Path of an entry below the root of its tree: its names, joined by NUL, which no name
/// contains. So the byte order is that of a depth-first walk with sorted names: the
/// members of a directory follow it directly.
///
/// The root is the empty path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct TreePath(Box<[u8]>);

/// The bytes are no [`TreePath`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a path below a root: a name in it is empty, `.` or `..`, or has a slash")]
pub struct InvalidPath;

impl TreePath {
    /// The root of the tree.
    #[must_use]
    pub fn root() -> Self {
        Self::default()
    }

    /// The path of [`TreePath::as_bytes`].
    ///
    /// # Errors
    /// [`InvalidPath`] if the bytes name nothing below a root. So untrusted bytes cannot
    /// lead out of it.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, InvalidPath> {
        let is_name = |name: &[u8]| {
            !name.is_empty() && name != b"." && name != b".." && !name.contains(&b'/')
        };
        if bytes.is_empty() || bytes.split(|&byte| byte == 0).all(is_name) {
            Ok(Self(bytes.into()))
        } else {
            Err(InvalidPath)
        }
    }

    /// The path of a member of this directory.
    ///
    /// # Errors
    /// [`InvalidPath`] if the name is invalid.
    pub fn join(&self, name: &OsStr) -> Result<Self, InvalidPath> {
        if name.is_empty() {
            return Err(InvalidPath);
        }
        let mut bytes = self.0.to_vec();
        if !bytes.is_empty() {
            bytes.push(0);
        }
        bytes.extend_from_slice(name.as_bytes());
        Self::from_bytes(&bytes)
    }

    /// The names, joined by NUL; empty for the root.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether the path is `ancestor` or below it.
    #[must_use]
    pub fn is_at_or_below(&self, ancestor: &Self) -> bool {
        match self.0.strip_prefix(&*ancestor.0) {
            Some(rest) => ancestor.0.is_empty() || rest.is_empty() || rest[0] == 0,
            None => false,
        }
    }

    /// The names, from the root down.
    pub fn names(&self) -> impl Iterator<Item = &OsStr> {
        let names = self.0.split(|&byte| byte == 0);
        names.filter(|name| !name.is_empty()).map(OsStr::from_bytes)
    }

    /// The path on a disk, below `root`.
    #[must_use]
    pub fn under(&self, root: &Path) -> std::path::PathBuf {
        let mut path = root.to_owned();
        path.extend(self.names());
        path
    }
}

impl fmt::Display for TreePath {
    /// With slashes, for people. Invalid UTF-8 is replaced, and what acts on a
    /// terminal is escaped.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str(".");
        }
        let characters = String::from_utf8_lossy(&self.0);
        characters
            .chars()
            .try_for_each(|character| match character {
                '\0' => f.write_char('/'),
                other if is_unsafe(other) => write!(f, "{}", other.escape_default()),
                other => f.write_char(other),
            })
    }
}

/// A time as file systems store it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Moment {
    /// Seconds since 1970; negative before.
    pub seconds: i64,
    /// Nanoseconds, 0 to 999,999,999.
    pub nanoseconds: u32,
}

/// An entry of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeEntry {
    /// Its path.
    pub path: TreePath,
    /// Its kind.
    pub kind: EntryKind,
    /// Its attributes.
    pub attributes: Attributes,
}

/// The attributes of an entry of any kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attributes {
    /// Permissions, set-user-ID, set-group-ID and sticky bit: the lower twelve bits of
    /// `st_mode`. Meaningless for a symbolic link.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Last change of the content.
    pub modified: Moment,
}

/// The kinds that are synced. Devices, sockets and pipes are not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File(FileState),
    /// A directory.
    Directory,
    /// A symbolic link, with its target.
    Symlink(Box<OsStr>),
}

/// What shows a change of a regular file without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileState {
    /// Length, bytes.
    pub size: u64,
    /// Last change of content, name or attributes. Users cannot set it.
    pub changed: Moment,
    /// Inode number.
    pub inode: u64,
    /// Device number of its file system.
    pub device: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(bytes: &[u8]) -> TreePath {
        TreePath::from_bytes(bytes).unwrap()
    }

    #[test]
    fn what_is_in_a_directory_follows_it_before_anything_else() {
        let mut paths = [
            path(b"a\0b"),
            path(b"a.b"),
            path(b"a"),
            path(b""),
            path(b"a\0b\0c"),
            path(b"a!"),
        ];
        paths.sort();
        let sorted = ["", "a", "a\0b", "a\0b\0c", "a!", "a.b"];
        assert_eq!(paths, sorted.map(|bytes| path(bytes.as_bytes())));
    }

    #[test]
    fn nothing_leads_out_of_the_root() {
        for bytes in [
            &b".."[..],
            b"a\0..\0b",
            b".",
            b"a\0",
            b"\0a",
            b"a\0\0b",
            b"/etc",
            b"a/b",
        ] {
            assert_eq!(TreePath::from_bytes(bytes), Err(InvalidPath), "{bytes:?}");
        }
        for name in ["", ".", "..", "a/b"] {
            assert_eq!(
                path(b"a").join(OsStr::new(name)),
                Err(InvalidPath),
                "{name}"
            );
        }
    }

    #[test]
    fn below_is_by_whole_names() {
        let is_below = |path_of: &[u8], ancestor| path(path_of).is_at_or_below(&path(ancestor));
        assert!(is_below(b"a\0b", b"a"));
        assert!(is_below(b"a", b"a"));
        assert!(is_below(b"a", b""));
        assert!(is_below(b"", b""));
        assert!(!is_below(b"ab", b"a"));
        assert!(!is_below(b"a", b"a\0b"));
        assert!(!is_below(b"", b"a"));
    }

    #[test]
    fn a_path_is_found_on_a_disk_and_shown_to_people() {
        let odd = TreePath::root()
            .join(OsStr::new("a b"))
            .and_then(|path| path.join(OsStr::from_bytes(b"\xff\nc")))
            .unwrap();
        let on_disk = odd.under(Path::new("/r"));
        assert_eq!(on_disk.as_os_str().as_bytes(), b"/r/a b/\xff\nc");
        assert_eq!(odd.to_string(), "a b/\u{fffd}\\nc");
        assert_eq!(TreePath::root().to_string(), ".");
        assert_eq!(TreePath::root().under(Path::new("/r")), Path::new("/r"));
    }
}
