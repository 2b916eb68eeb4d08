//! Things in a directory that are no plain files.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixListener;
use std::path::Path;

use crate::netns::{may, run};

/// A kind of thing that is neither a file nor a directory nor a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Special {
    /// A character device that swallows everything, as `/dev/null` does.
    Device,
    /// A named pipe.
    Pipe,
    /// A socket.
    Socket,
}

impl Special {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Device, Self::Pipe, Self::Socket];

    /// Makes one at `path`. A device needs root: without it, says so and
    /// returns false.
    #[must_use]
    pub fn make(self, path: &Path) -> bool {
        let name = path.to_str().expect("temp paths are UTF-8");
        match self {
            Self::Device => return may("mknod", &["-m", "666", name, "c", "1", "3"]),
            Self::Pipe => run("mkfifo", &[name]).unwrap_or_else(|error| panic!("{error}")),
            Self::Socket => drop(UnixListener::bind(path).expect("bind a socket")),
        }
        true
    }

    /// Panics unless this is still what is at `path`.
    #[track_caller]
    pub fn assert_at(self, path: &Path) {
        let found = std::fs::symlink_metadata(path).expect("it is there");
        let kind = found.file_type();
        let is_same = match self {
            Self::Device => kind.is_char_device() && found.rdev() == rustix::fs::makedev(1, 3),
            Self::Pipe => kind.is_fifo(),
            Self::Socket => kind.is_socket(),
        };
        assert!(
            is_same,
            "{} is no {self:?} any more: {kind:?}",
            path.display()
        );
    }
}
