//! The disk of a local store. If it is not mounted, a push would fill the disk below.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The innermost mount point at or above an absolute path: a directory on another disk
/// than the one around it. `None` if that is the root. A directory that is mounted over
/// itself is none: sandboxes of services have such, whatever is mounted outside.
/// Blocking.
pub(crate) fn mount_point(path: &Path) -> Option<PathBuf> {
    let mut ancestors = path.ancestors();
    ancestors.find(|path| is_mounted(path)).map(Path::to_owned)
}

/// Whether a disk is mounted at a path. Blocking.
pub(crate) fn is_mounted(path: &Path) -> bool {
    // First, since the look may mount the disk around it, too.
    let here = look(path);
    match (here, path.parent().map(fs::metadata)) {
        (Ok(here), Some(Ok(around))) => here.dev() != around.dev(),
        _ => false,
    }
}

/// Opens the directory if it can: that mounts what is mounted on demand.
fn look(path: &Path) -> io::Result<Metadata> {
    let opened = File::open(path).and_then(|directory| directory.metadata());
    opened.or_else(|_| fs::metadata(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_found_from_what_is_on_it() {
        assert!(is_mounted(Path::new("/proc")));
        assert_eq!(mount_point(Path::new("/proc/self")), Some("/proc".into()));
        assert_eq!(mount_point(Path::new("/proc")), Some("/proc".into()));
        assert_eq!(mount_point(Path::new("/")), None);
        assert!(!is_mounted(Path::new("/proc/self/none")));
    }
}
