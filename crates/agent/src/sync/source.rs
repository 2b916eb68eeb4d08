//! A regular file of a source, read as one version. Blocking.
//!
//! It is opened name by name from the root, and no link is followed. So users who may
//! write into the source cannot make the agent read files outside of it.
//!
//! The version is checked before the first read and after each read. A change within
//! the clock tick of the last change would not show, so that tick has to be over.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

use crate::compare::SETTLE_TIME_S;
use crate::entry::{Attributes, FileState, Moment, TreePath};
use crate::scan::look_at;

/// Twice the longest tick of the clock that stamps files. Linux stamps by jiffies, at
/// most 10 ms (CONFIG_HZ=100).
const CLOCK_TICK: Duration = Duration::from_millis(20);

/// How often the version of a changing file is read.
const MAX_VERSION_CHECKS: usize = 8;

/// Why a file cannot be read as one version.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// It is gone, or is no regular file any more.
    #[error("it is gone")]
    Gone,
    /// It is being written.
    #[error("it changed while it was read")]
    Changed,
    /// The disk failed, or permission is missing.
    #[error("it cannot be read: {0}")]
    Disk(io::Error),
}

impl From<Errno> for ReadError {
    fn from(error: Errno) -> Self {
        match error {
            Errno::NOENT | Errno::NOTDIR | Errno::LOOP => Self::Gone,
            other => Self::Disk(other.into()),
        }
    }
}

/// An open file of a source.
#[derive(Debug)]
pub(crate) struct SourceFile {
    file: File,
    state: FileState,
    attributes: Attributes,
}

impl SourceFile {
    pub(crate) fn open(root: &Path, path: &TreePath) -> Result<Self, ReadError> {
        let file = open_below(root, path)?;
        let (state, attributes) = status(&file)?;
        let mut source = Self {
            file,
            state,
            attributes,
        };
        for _ in 0..MAX_VERSION_CHECKS {
            if tick_is_over(source.state.changed) {
                return Ok(source);
            }
            std::thread::sleep(CLOCK_TICK);
            (source.state, source.attributes) = status(&source.file)?;
        }
        Err(ReadError::Changed)
    }

    /// The version.
    pub(crate) fn state(&self) -> FileState {
        self.state
    }

    /// The attributes of the version.
    pub(crate) fn attributes(&self) -> Attributes {
        self.attributes
    }

    /// Reads `length` bytes of the version from `offset` on.
    pub(crate) fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>, ReadError> {
        let mut content = vec![0; length];
        let read = self.file.read_exact_at(&mut content, offset);
        // Checked first: a file that has become shorter has changed.
        self.check()?;
        read.map_err(ReadError::Disk)?;
        Ok(content)
    }

    /// Checks that the file is still that version.
    pub(crate) fn check(&self) -> Result<(), ReadError> {
        let (state, attributes) = status(&self.file)?;
        if (state, attributes.modified) == (self.state, self.attributes.modified) {
            Ok(())
        } else {
            Err(ReadError::Changed)
        }
    }
}

fn open_below(root: &Path, path: &TreePath) -> Result<File, ReadError> {
    let directory = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut here = openat(CWD, root, directory, Mode::empty())?;
    let names: Vec<_> = path.names().collect();
    let Some((last, parents)) = names.split_last() else {
        return Err(ReadError::Gone);
    };
    for name in parents {
        let flags = directory | OFlags::NOFOLLOW;
        here = openat(&here, *name, flags, Mode::empty())?;
    }
    // Non-blocking, in case a FIFO has taken its place.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let quiet = openat(&here, *last, flags | OFlags::NOATIME, Mode::empty());
    let opened = match quiet {
        // Only the owner may open a file without changing its access time.
        Err(Errno::PERM) => openat(&here, *last, flags, Mode::empty()),
        other => other,
    };
    Ok(opened?.into())
}

fn status(file: &File) -> Result<(FileState, Attributes), ReadError> {
    let status = look_at(file)?;
    match status.kind {
        FileType::RegularFile => Ok((status.state, status.attributes)),
        _ => Err(ReadError::Gone),
    }
}

/// The current time of the clock that stamps files.
pub(crate) fn now() -> Moment {
    let now = clock_gettime(ClockId::RealtimeCoarse);
    Moment {
        seconds: now.tv_sec,
        nanoseconds: now.tv_nsec as u32,
    }
}

/// Whether a change is so old that no later change can have the same time.
pub(crate) fn is_settled(changed: Moment) -> bool {
    changed.seconds < now().seconds - SETTLE_TIME_S
}

/// Whether the tick of a change is over. Waiting does not help with times in the
/// future, so those count as over.
fn tick_is_over(changed: Moment) -> bool {
    let now = now();
    if changed.seconds > now.seconds + 1 {
        return true;
    }
    let since = (now.seconds - changed.seconds) * 1_000_000_000 + i64::from(now.nanoseconds)
        - i64::from(changed.nanoseconds);
    since >= CLOCK_TICK.as_nanos() as i64
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn path(name: &str) -> TreePath {
        TreePath::from_bytes(name.as_bytes()).unwrap()
    }

    #[test]
    fn a_file_is_read_as_one_version() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("d")).unwrap();
        let file = root.path().join("d/f");
        fs::write(&file, b"0123456789").unwrap();
        let source = SourceFile::open(root.path(), &path("d\0f")).unwrap();
        assert_eq!(source.state().size, 10);
        assert_eq!(source.read(3, 4).unwrap(), b"3456");
        fs::write(&file, b"9876543210").unwrap();
        assert!(matches!(source.read(0, 10), Err(ReadError::Changed)));
        let source = SourceFile::open(root.path(), &path("d\0f")).unwrap();
        fs::write(&file, b"012").unwrap();
        assert!(matches!(source.read(0, 10), Err(ReadError::Changed)));
    }

    #[test]
    fn no_link_is_followed_but_the_root_itself() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret"), b"x").unwrap();
        let root = tempfile::tempdir().unwrap();
        symlink(outside.path(), root.path().join("d")).unwrap();
        symlink(outside.path().join("secret"), root.path().join("f")).unwrap();
        for name in ["d\0secret", "f", "missing", "d"] {
            let opened = SourceFile::open(root.path(), &path(name));
            assert!(matches!(opened, Err(ReadError::Gone)), "{name}: {opened:?}");
        }
        let link = root.path().join("link");
        symlink(outside.path(), &link).unwrap();
        assert!(SourceFile::open(&link, &path("secret")).is_ok());
    }
}
