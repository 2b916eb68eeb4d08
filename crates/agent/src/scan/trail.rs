//! The directories that a walk is in, from the root to the innermost: open as far
//! as descriptors should be spent on them, and the way back to the others.
//!
//! Knows nothing of what a walk is for.

use std::ffi::{CStr, CString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::CWD;
use rustix::io::{Errno, Result};

use super::directory::{self, DirectoryNames, Identity, InodeStatus};
use crate::entry::TreePath;
use crate::filter::FilterVerdict;

/// How many directories are open at once, besides the root: the innermost. The
/// others are opened again on the way back.
pub(super) const OPEN: usize = 32;

/// See the module.
#[derive(Debug)]
pub(super) struct Trail {
    /// Where the root was found.
    root: CString,
    /// Path of the innermost, as a [`TreePath`] has it.
    path: Vec<u8>,
    levels: Vec<Level>,
}

/// A directory on the way.
#[derive(Debug)]
pub(super) struct Level {
    /// `None` while the walk is far below.
    descriptor: Option<OwnedFd>,
    pub(super) identity: Identity,
    /// Where its path ends in that of the innermost.
    end: usize,
    pub(super) verdict: FilterVerdict,
    /// `None` until it has been listed.
    pub(super) names: Option<DirectoryNames>,
}

impl Trail {
    /// The root alone; with what it is, and what it is in.
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

    /// How many directories there are, with the root.
    pub(super) fn depth(&self) -> usize {
        self.levels.len()
    }

    /// How many of them are open.
    #[cfg(test)]
    pub(super) fn open_count(&self) -> usize {
        let open = self.levels.iter();
        open.filter(|level| level.descriptor.is_some()).count()
    }

    /// The file system that the root is on.
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

    /// The path of a name in the innermost directory; `None` if it is no name.
    pub(super) fn path_of(&self, name: &CStr) -> Option<TreePath> {
        let mut path = Vec::with_capacity(self.path.len() + 1 + name.count_bytes());
        path.extend_from_slice(&self.path);
        if !path.is_empty() {
            path.push(0);
        }
        path.extend_from_slice(name.to_bytes());
        TreePath::from_bytes(&path).ok()
    }

    /// Goes into a directory of the innermost.
    pub(super) fn push(
        &mut self,
        path: &TreePath,
        descriptor: OwnedFd,
        identity: Identity,
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
        if let Some(outer @ 1..) = innermost.checked_sub(OPEN + 1) {
            self.levels[outer].descriptor = None;
        }
    }

    /// Goes out of the innermost directory.
    pub(super) fn pop(&mut self) {
        self.levels.pop();
        let end = self.levels.last().map_or(0, |level| level.end);
        self.path.truncate(end);
    }

    /// Whether the innermost directory is where it was found.
    pub(super) fn is_in_place(&self) -> bool {
        let innermost = self.levels.len() - 1;
        let found = match innermost.checked_sub(1) {
            None => directory::look_followed(CWD, &self.root),
            Some(around) => match &self.levels[around].descriptor {
                Some(around) => directory::look(around, &self.name(innermost)),
                None => return false,
            },
        };
        found.is_ok_and(|look| look.identity == self.levels[innermost].identity)
    }

    /// Opens the directory around the innermost again, if it is not open and can
    /// be.
    pub(super) fn reopen_outer(&mut self) {
        if let Some(outer) = self.levels.len().checked_sub(2) {
            self.reopen(outer);
        }
    }

    /// Opens the innermost directory again, if it is not open. Whether it is then.
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

    /// A directory, found from the one in it: that may be somewhere else by now.
    fn find_up(&self, level: usize) -> Option<OwnedFd> {
        let inner = self.levels.get(level + 1)?.descriptor.as_ref()?;
        let found = directory::open(inner, c"..").ok()?;
        self.is_level(&found, level).then_some(found)
    }

    /// A directory, found by the names of all those around it.
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

    /// The name of a directory in the one around it; not of the root.
    fn name(&self, level: usize) -> CString {
        let start = self.levels[level - 1].end;
        let name = &self.path[start..self.levels[level].end];
        let name = name.strip_prefix(b"\0").unwrap_or(name);
        CString::new(name).expect("a name has no NUL")
    }
}
