//! A regular file below a source, read as one version of itself. Blocking.
//!
//! It is opened name by name from the root, and no link is followed: whoever may
//! write into the source cannot make the agent read what is outside of it.
//!
//! Which version it is, is asked before the first read and after each: what is
//! handed on is of one version. A change within the tick of the last one would
//! not show, so that tick is waited for.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::time::{ClockId, clock_gettime};

use crate::compare::WHOLE_AFTER_S;
use crate::entry::{Attributes, FileState, Moment, TreePath};

/// Longest step of the clock by which Linux stamps files: a jiffy, 10 ms at
/// most; here twice that.
const TICK: Duration = Duration::from_millis(20);

/// How often a file is looked at that keeps changing.
const LOOKS: usize = 8;

/// Why a file cannot be read as one version.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    /// It is there no more, or is no regular file any more.
    #[error("it is gone")]
    Gone,
    /// It is being written.
    #[error("it changed while it was read")]
    Changed,
    /// The disk, or the rights.
    #[error("it cannot be read: {0}")]
    Disk(io::Error),
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        match error
            .raw_os_error()
            .map(rustix::io::Errno::from_raw_os_error)
        {
            Some(
                rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR | rustix::io::Errno::LOOP,
            ) => Self::Gone,
            _ => Self::Disk(error),
        }
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Source {
    file: File,
    state: FileState,
    attributes: Attributes,
}

impl Source {
    pub(super) fn open(root: &Path, path: &TreePath) -> Result<Self, ReadError> {
        let file = open_below(root, path)?;
        let (state, attributes) = look(&file)?;
        let mut source = Self {
            file,
            state,
            attributes,
        };
        for _ in 0..LOOKS {
            if is_past(source.state.changed) {
                return Ok(source);
            }
            std::thread::sleep(TICK);
            (source.state, source.attributes) = look(&source.file)?;
        }
        Err(ReadError::Changed)
    }

    /// Which version it is.
    pub(super) fn state(&self) -> FileState {
        self.state
    }

    /// Its attributes in that version.
    pub(super) fn attributes(&self) -> Attributes {
        self.attributes
    }

    /// So many bytes of that version, from `offset` on.
    pub(super) fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>, ReadError> {
        let mut content = vec![0; length];
        let read = self.file.read_exact_at(&mut content, offset);
        // First: what has become shorter has changed.
        self.check()?;
        read.map_err(ReadError::Disk)?;
        Ok(content)
    }

    /// Whether it still is that version.
    pub(super) fn check(&self) -> Result<(), ReadError> {
        let (state, attributes) = look(&self.file)?;
        if (state, attributes.modified) == (self.state, self.attributes.modified) {
            Ok(())
        } else {
            Err(ReadError::Changed)
        }
    }
}

fn open_below(root: &Path, path: &TreePath) -> Result<File, ReadError> {
    let directory = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let os = |error: rustix::io::Errno| ReadError::from(io::Error::from(error));
    let mut here = openat(CWD, root, directory, Mode::empty()).map_err(os)?;
    let names: Vec<_> = path.names().collect();
    let Some((last, parents)) = names.split_last() else {
        return Err(ReadError::Gone);
    };
    for name in parents {
        let flags = directory | OFlags::NOFOLLOW;
        here = openat(&here, *name, flags, Mode::empty()).map_err(os)?;
    }
    // Nor may a FIFO that took its place keep us waiting.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let quiet = openat(&here, *last, flags | OFlags::NOATIME, Mode::empty());
    let opened = match quiet {
        // Only who owns a file may read it without a trace.
        Err(rustix::io::Errno::PERM) => openat(&here, *last, flags, Mode::empty()),
        other => other,
    };
    Ok(opened.map_err(os)?.into())
}

fn look(file: &File) -> Result<(FileState, Attributes), ReadError> {
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(ReadError::Gone);
    }
    // Nanoseconds are 0 to 999,999,999.
    let moment = |seconds, nanoseconds: i64| Moment {
        seconds,
        nanoseconds: nanoseconds as u32,
    };
    let state = FileState {
        size: metadata.len(),
        changed: moment(metadata.ctime(), metadata.ctime_nsec()),
        inode: metadata.ino(),
        device: metadata.dev(),
    };
    let attributes = Attributes {
        mode: metadata.mode() & 0o7777,
        uid: metadata.uid(),
        gid: metadata.gid(),
        modified: moment(metadata.mtime(), metadata.mtime_nsec()),
    };
    Ok((state, attributes))
}

/// The moment now, by the clock that stamps files.
pub(super) fn now() -> Moment {
    let now = clock_gettime(ClockId::RealtimeCoarse);
    Moment {
        seconds: now.tv_sec,
        nanoseconds: now.tv_nsec as u32,
    }
}

/// Whether the last change of a file is so old that no other can have had the same
/// time.
pub(super) fn is_settled(changed: Moment) -> bool {
    changed.seconds < now().seconds - WHOLE_AFTER_S
}

/// Whether the tick of a change is over. A file from the future is as past as it
/// will be for long.
fn is_past(changed: Moment) -> bool {
    let now = now();
    if changed.seconds > now.seconds + 1 {
        return true;
    }
    let since = (now.seconds - changed.seconds) * 1_000_000_000 + i64::from(now.nanoseconds)
        - i64::from(changed.nanoseconds);
    since >= TICK.as_nanos() as i64
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
        let source = Source::open(root.path(), &path("d\0f")).unwrap();
        assert_eq!(source.state().size, 10);
        assert_eq!(source.read(3, 4).unwrap(), b"3456");
        fs::write(&file, b"9876543210").unwrap();
        assert!(matches!(source.read(0, 10), Err(ReadError::Changed)));
        let source = Source::open(root.path(), &path("d\0f")).unwrap();
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
            let opened = Source::open(root.path(), &path(name));
            assert!(matches!(opened, Err(ReadError::Gone)), "{name}: {opened:?}");
        }
        let link = root.path().join("link");
        symlink(outside.path(), &link).unwrap();
        assert!(Source::open(&link, &path("secret")).is_ok());
    }
}
