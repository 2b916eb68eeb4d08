//! Opens the directories of a path, name by name, without following links. They stay
//! open, because the next path mostly has the same ones.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, mkdirat, openat};
use rustix::io::Errno;

use crate::entry::TreePath;

/// Most directories that stay open. Deeper ones are opened again for each path.
const MAX_OPEN_DIRECTORIES: usize = 32;

/// The open directories of the last path. Valid as long as nothing moves directories:
/// for a pass, or a batch of files.
#[derive(Debug)]
pub(crate) struct DirectoryCache<'r> {
    root: &'r OwnedFd,
    kept: Vec<(OsString, OwnedFd)>,
    beyond: Option<OwnedFd>,
}

impl<'r> DirectoryCache<'r> {
    pub(crate) fn new(root: &'r OwnedFd) -> Self {
        Self {
            root,
            kept: Vec::new(),
            beyond: None,
        }
    }

    /// The directory of an entry, and its name there. Makes missing directories if
    /// `is_made`.
    pub(crate) fn parent<'p>(
        &mut self,
        path: &'p TreePath,
        is_made: bool,
    ) -> Result<(BorrowedFd<'_>, &'p OsStr), Errno> {
        let names: Vec<_> = path.names().collect();
        let (last, parents) = names.split_last().ok_or(Errno::INVAL)?;
        let known = self.kept.iter().zip(parents);
        let known = known
            .take_while(|((known, _), name)| known == *name)
            .count();
        self.kept.truncate(known);
        self.beyond = None;
        for name in &parents[known..] {
            let opened = open(self.here(), name, is_made)?;
            if self.kept.len() < MAX_OPEN_DIRECTORIES {
                self.kept.push(((*name).to_owned(), opened));
            } else {
                self.beyond = Some(opened);
            }
        }
        Ok((self.here(), last))
    }

    fn here(&self) -> BorrowedFd<'_> {
        let kept = self.kept.last().map(|(_, directory)| directory);
        self.beyond.as_ref().or(kept).unwrap_or(self.root).as_fd()
    }
}

fn open(parent: BorrowedFd<'_>, name: &OsStr, is_made: bool) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(parent, name, flags, Mode::empty()) {
        Err(Errno::NOENT) if is_made => {
            mkdirat(parent, name, Mode::from_raw_mode(0o700))?;
            openat(parent, name, flags, Mode::empty())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rustix::fs::CWD;

    use super::*;

    #[test]
    fn every_path_is_found_in_whatever_order_they_come_and_however_deep_they_are() {
        let root = tempfile::tempdir().unwrap();
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let opened = openat(CWD, root.path(), flags, Mode::empty()).unwrap();
        let mut cache = DirectoryCache::new(&opened);
        let deep = vec!["d"; MAX_OPEN_DIRECTORIES + 10].join("\0");
        let paths = ["a\0b\0f", "a\0c\0f", "f", &format!("{deep}\0f"), "a\0b\0g"];
        for path in paths.iter().chain(paths.iter().rev()) {
            let path = TreePath::from_bytes(path.as_bytes()).unwrap();
            let (parent, name) = cache.parent(&path, true).unwrap();
            let flags = OFlags::WRONLY | OFlags::CREATE;
            openat(parent, name, flags, Mode::from_raw_mode(0o600)).unwrap();
            assert!(path.under(root.path()).is_file(), "{path}");
        }
        fs::remove_dir_all(root.path()).unwrap();
    }
}
