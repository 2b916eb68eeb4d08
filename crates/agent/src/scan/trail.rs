//! The directories around the current position of a scan, from the root to the
//! innermost. The inner ones are open; the others are opened again on the way back.

use std::ffi::{CStr, CString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::CWD;
use rustix::io::{Errno, Result};

use super::directory::{self, DirectoryId, DirectoryNames, InodeStatus};
use crate::entry::TreePath;
use crate::filter::FilterVerdict;

/// Most open directories besides the root: the innermost ones.
pub(super) const MAX_OPEN: usize = 32;

/// The directories around the current position.
#[derive(Debug)]
pub(super) struct Trail {
    /// The path of the root.
    root: CString,
    /// Path of the innermost directory, in the form of [`TreePath`].
    path: Vec<u8>,
    levels: Vec<Level>,
}

/// A directory of the trail.
#[derive(Debug)]
pub(super) struct Level {
    /// `None` while the scan is far below.
    descriptor: Option<OwnedFd>,
    pub(super) identity: DirectoryId,
    /// Where its path ends in the path of the innermost directory.
    end: usize,
    pub(super) verdict: FilterVerdict,
    /// `None` until it has been listed.
    pub(super) names: Option<DirectoryNames>,
}

impl Trail {
    /// A trail of the root only, with the status of the root and of its parent.
    pub(super) fn open(
        root: &Path,
        verdict: FilterVerdict,
    ) -> Result<(Self, InodeStatus, InodeStatus)> {
        let root = CString::new(root.as_os_str().as_bytes()).map_err(|_| Errno::INVAL)?;
        let descriptor = directory::open_followed(CWD, &root)?;
        let here = directory::look_at(&descriptor)?;
        let around = directory::look_followed(&descriptor, c"..")?;
        let mut trail = Self {
            root,
            path: Vec::new(),
            levels: Vec::new(),
        };
        trail.push(&TreePath::root(), descriptor, here.identity, verdict);
        Ok((trail, here, around))
    }

    /// The number of directories, including the root.
    pub(super) fn depth(&self) -> usize {
        self.levels.len()
    }

    /// The number of open directories.
    #[cfg(test)]
    pub(super) fn open_count(&self) -> usize {
        let open = self.levels.iter();
        open.filter(|level| level.descriptor.is_some()).count()
    }

    /// The device of the root.
    pub(super) fn root_device(&self) -> u64 {
        self.levels[0].identity.device
    }

    /// The innermost directory.
    pub(super) fn innermost(&mut self) -> Option<&mut Level> {
        self.levels.last_mut()
    }

    /// The directory of this depth, 1 for the root.
    pub(super) fn at_depth(&mut self, depth: usize) -> &mut Level {
        &mut self.levels[depth - 1]
    }

    /// The descriptor of the innermost directory.
    pub(super) fn descriptor(&self) -> &OwnedFd {
        let innermost = self.levels.last();
        let descriptor = innermost.and_then(|level| level.descriptor.as_ref());
        descriptor.expect("the innermost directory is open")
    }

    /// The path of the innermost directory.
    pub(super) fn path(&self) -> TreePath {
        TreePath::from_bytes(&self.path).expect("it was one before")
    }

    /// The path of a name in the innermost directory. `None` if the name is invalid.
    pub(super) fn path_of(&self, name: &CStr) -> Option<TreePath> {
        let mut path = Vec::with_capacity(self.path.len() + 1 + name.count_bytes());
        path.extend_from_slice(&self.path);
        if !path.is_empty() {
            path.push(0);
        }
        path.extend_from_slice(name.to_bytes());
        TreePath::from_bytes(&path).ok()
    }

    /// Enters a directory in the innermost one.
    pub(super) fn push(
        &mut self,
        path: &TreePath,
        descriptor: OwnedFd,
        identity: DirectoryId,
        verdict: FilterVerdict,
    ) {
        self.path.clear();
        self.path.extend_from_slice(path.as_bytes());
        self.levels.push(Level {
            descriptor: Some(descriptor),
            identity,
            end: self.path.len(),
            verdict,
            names: None,
        });
        let innermost = self.levels.len() - 1;
        if let Some(outer @ 1..) = innermost.checked_sub(MAX_OPEN + 1) {
            self.levels[outer].descriptor = None;
        }
    }

    /// Leaves the innermost directory.
    pub(super) fn pop(&mut self) {
        self.levels.pop();
        let end = self.levels.last().map_or(0, |level| level.end);
        self.path.truncate(end);
    }

    /// Whether the innermost directory is still in its place.
    pub(super) fn is_in_place(&self) -> bool {
        let innermost = self.levels.len() - 1;
        let found = match innermost.checked_sub(1) {
            None => directory::look_followed(CWD, &self.root),
            Some(around) => match &self.levels[around].descriptor {
                Some(around) => directory::look(around, self.name(innermost)),
                None => return false,
            },
        };
        found.is_ok_and(|look| look.identity == self.levels[innermost].identity)
    }

    /// Opens the directory around the innermost one again if possible.
    pub(super) fn reopen_outer(&mut self) {
        if let Some(outer) = self.levels.len().checked_sub(2) {
            self.reopen(outer);
        }
    }

    /// Opens the innermost directory again if needed. Returns whether it is open.
    pub(super) fn reopen_innermost(&mut self) -> bool {
        let innermost = self.levels.len() - 1;
        self.reopen(innermost);
        self.levels[innermost].descriptor.is_some()
    }

    fn reopen(&mut self, level: usize) {
        if self.levels[level].descriptor.is_none() {
            let found = self.find_up(level).or_else(|| self.find_down(level));
            self.levels[level].descriptor = found;
        }
    }

    /// Finds a directory from its open member, which may have been moved.
    fn find_up(&self, level: usize) -> Option<OwnedFd> {
        let inner = self.levels.get(level + 1)?.descriptor.as_ref()?;
        let found = directory::open(inner, c"..").ok()?;
        self.is_level(&found, level).then_some(found)
    }

    /// Finds a directory by its path from the root.
    fn find_down(&self, level: usize) -> Option<OwnedFd> {
        let mut found: Option<OwnedFd> = None;
        for inner in 1..=level {
            let outer = found.as_ref().or(self.levels[0].descriptor.as_ref())?;
            let next = directory::open(outer, &self.name(inner)).ok()?;
            found = Some(next).filter(|next| self.is_level(next, inner));
            found.as_ref()?;
        }
        found
    }

    fn is_level(&self, found: &OwnedFd, level: usize) -> bool {
        let identity = self.levels[level].identity;
        directory::look_at(found).is_ok_and(|look| look.identity == identity)
    }

    /// The name of a directory in its parent; not for the root.
    fn name(&self, level: usize) -> CString {
        let start = self.levels[level - 1].end;
        let name = &self.path[start..self.levels[level].end];
        let name = name.strip_prefix(b"\0").unwrap_or(name);
        CString::new(name).expect("a name has no NUL")
    }
}
