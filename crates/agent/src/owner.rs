//! Files that root makes for the agent. A command that root has run once must not leave
//! files that the agent's user cannot open.

use std::fs::File;
use std::io;
use std::os::unix::fs::{MetadataExt as _, fchown};
use std::path::Path;

/// Gives a new file to the owner of its directory, if root has made it.
///
/// # Errors
/// Of the system.
pub(crate) fn give_to_owner_of_directory(path: &Path, file: &File) -> io::Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let directory = path.parent().unwrap_or(Path::new(".")).metadata()?;
    let made = file.metadata()?;
    if (made.uid(), made.gid()) == (directory.uid(), directory.gid()) {
        return Ok(());
    }
    match fchown(file, Some(directory.uid()), Some(directory.gid())) {
        // Confined, root may not.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        done => done,
    }
}
