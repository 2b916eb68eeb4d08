//! The way from the root to what is placed, name by name, following no link. The
//! directories on it stay open for the next path, which mostly has the same.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, mkdirat, openat};
use rustix::io::Errno;

use crate::entry::TreePath;

/// So many directories are kept open; what is deeper is opened anew each time.
const KEPT: usize = 32;

/// See the module. For as long as nothing else moves directories about: a pass, or
/// a batch of files.
#[derive(Debug)]
pub(in crate::sync) struct Way<'r> {
    root: &'r OwnedFd,
    kept: Vec<(OsString, OwnedFd)>,
    beyond: Option<OwnedFd>,
}

impl<'r> Way<'r> {
    pub(super) fn from(root: &'r OwnedFd) -> Self {
        Self {
            root,
            kept: Vec::new(),
            beyond: None,
        }
    }

    /// The directory that an entry is in, and its name there. Directories that
    /// are not there are made, if they may be.
    pub(super) fn parent<'p>(
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
            if self.kept.len() < KEPT {
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
        let mut way = Way::from(&opened);
        let deep = vec!["d"; KEPT + 10].join("\0");
        let paths = ["a\0b\0f", "a\0c\0f", "f", &format!("{deep}\0f"), "a\0b\0g"];
        for path in paths.iter().chain(paths.iter().rev()) {
            let path = TreePath::from_bytes(path.as_bytes()).unwrap();
            let (parent, name) = way.parent(&path, true).unwrap();
            let flags = OFlags::WRONLY | OFlags::CREATE;
            openat(parent, name, flags, Mode::from_raw_mode(0o600)).unwrap();
            assert!(path.under(root.path()).is_file(), "{path}");
        }
        fs::remove_dir_all(root.path()).unwrap();
    }
}
