//! A scan of a directory tree: all entries that a filter keeps, ordered by
//! [`TreePath`]. Blocking.
//!
//! The scan uses descriptors instead of paths, so a link that replaces a directory leads
//! nowhere else, and a tree may be deeper than the longest path. Memory holds the names
//! of one directory per level. Each directory is looked up again, by its name, after it
//! is listed and when the scan leaves it. If it was moved or unmounted meanwhile, it is
//! *unknown* ([`Unreadable`]) instead of empty. The same holds for a former mount point:
//! an unmounted disk looks like an empty directory.

mod directory;
#[cfg(test)]
mod tests;
mod trail;

use std::collections::VecDeque;
use std::ffi::{CStr, CString};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::entry::{EntryKind, TreeEntry, TreePath};
use crate::filter::{EntryFilter, FilterVerdict};
use directory::DirectoryNames;
pub(crate) use directory::InodeStatus;
pub(crate) use directory::{look, look_at};
use trail::Trail;

/// How a tree is scanned.
#[derive(Debug, Clone, Default)]
pub struct ScanOptions {
    /// Whether the members of directories on other file systems are left out.
    pub one_file_system: bool,
    /// [`ScanOutcome::mounts`] of the last scan. Former mount points are unknown, unless
    /// the caller leaves them out here.
    pub mounted: Vec<MountPoint>,
}

/// An entry that is unknown, with everything below it. Nothing there counts as
/// removed.
#[derive(Debug, thiserror::Error)]
#[error("{path} {cause}")]
pub struct Unreadable {
    /// Its path.
    pub path: TreePath,
    /// The cause.
    pub cause: UnreadableCause,
}

/// Why an entry is unreadable.
#[derive(Debug, thiserror::Error)]
pub enum UnreadableCause {
    /// It vanished after its directory was listed.
    #[error("vanished while its directory was read")]
    Vanished,
    /// It cannot be examined.
    #[error("cannot be examined: {0}")]
    Examine(io::Error),
    /// The directory cannot be opened.
    #[error("cannot be opened: {0}")]
    Open(io::Error),
    /// The directory cannot be listed to the end.
    #[error("cannot be listed: {0}")]
    List(io::Error),
    /// The directory was moved, replaced or unmounted meanwhile.
    #[error("was moved, replaced or unmounted while it was read")]
    Replaced,
    /// It is a former mount point, or is gone and contained one.
    #[error("is no longer mounted")]
    Unmounted,
}

impl UnreadableCause {
    /// The cause of a failed examination.
    fn of_look(error: Errno) -> Self {
        match error {
            Errno::NOENT => Self::Vanished,
            other => Self::Examine(other.into()),
        }
    }

    /// The cause of a failed open.
    fn of_open(error: Errno) -> Self {
        match error {
            Errno::NOENT => Self::Vanished,
            Errno::NOTDIR | Errno::LOOP => Self::Replaced,
            other => Self::Open(other.into()),
        }
    }
}

/// Why a scan cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    /// The root cannot be opened as a directory.
    #[error("{} cannot be opened: {error}", root.display())]
    Open {
        /// The root.
        root: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// The root is a former mount point.
    #[error("nothing is mounted at {}, as there was before", root.display())]
    Unmounted {
        /// The root.
        root: PathBuf,
    },
}

/// A directory where another file system, or another part of the same one, begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountPoint {
    /// Its path; may be the root.
    pub path: TreePath,
    /// `st_dev` of the mounted file system. Changes with a restart.
    pub device: u64,
}

/// The result of a scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanOutcome {
    /// Whether the scan reached its end. If not, the rest is unknown.
    pub complete: bool,
    /// Number of devices, sockets and pipes, which are no entries.
    pub specials: u64,
    /// The paths of all [`Unreadable`]s, sorted, none below another.
    pub unknown: Vec<TreePath>,
    /// Mount points, sorted, for the next scan ([`ScanOptions::mounted`]): those
    /// found, and earlier ones that may still exist.
    pub mounts: Vec<MountPoint>,
}

/// A running scan: an iterator of entries.
#[derive(Debug)]
pub struct Scan {
    filter: EntryFilter,
    options: ScanOptions,
    trail: Trail,
    /// Directories on the trail that are entries only if a member is, with their
    /// depths.
    waiting: Vec<(usize, TreeEntry)>,
    ready: VecDeque<Result<TreeEntry, Unreadable>>,
    specials: u64,
    unknown: Vec<TreePath>,
    mounts: Vec<MountPoint>,
}

impl Scan {
    /// Begins a scan of a directory. The root itself is no entry.
    ///
    /// # Errors
    /// [`ScanError`]: the root cannot be opened, or is a former mount point.
    pub fn open(root: &Path, filter: EntryFilter, options: ScanOptions) -> Result<Self, ScanError> {
        let refused = |error: Errno| ScanError::Open {
            root: root.to_owned(),
            error: error.into(),
        };
        let (trail, here, around) = Trail::open(root, filter.of_root()).map_err(refused)?;
        let mut scan = Self {
            trail,
            waiting: Vec::new(),
            ready: VecDeque::new(),
            specials: 0,
            unknown: Vec::new(),
            mounts: Vec::new(),
            filter,
            options,
        };
        if here.is_mount || here.identity.device != around.identity.device {
            scan.mounts.push(MountPoint {
                path: TreePath::root(),
                device: here.identity.device,
            });
        } else if scan.is_mount_of_before(&TreePath::root()) {
            let root = root.to_owned();
            return Err(ScanError::Unmounted { root });
        }
        Ok(scan)
    }

    /// Ends the scan at any point.
    #[must_use]
    pub fn finish(self) -> ScanOutcome {
        let complete = self.trail.depth() == 0 && self.ready.is_empty();
        let mut mounts = self.mounts;
        for before in self.options.mounted {
            let is_seen = mounts.iter().any(|mount| mount.path == before.path);
            let may_be = |unknown| before.path.is_at_or_below(unknown);
            if !is_seen && (!complete || self.unknown.iter().any(may_be)) {
                mounts.push(before);
            }
        }
        mounts.sort_by(|a, b| a.path.cmp(&b.path));
        ScanOutcome {
            complete,
            specials: self.specials,
            unknown: self.unknown,
            mounts,
        }
    }

    /// Takes one step. `None` at the end.
    fn step(&mut self) -> Option<()> {
        let depth = self.trail.depth();
        match self.trail.innermost()?.names.take() {
            None => self.list(),
            Some(mut names) => match names.next() {
                Some((name, kind)) => {
                    self.visit(name, kind);
                    self.trail.at_depth(depth).names = Some(names);
                }
                None => self.leave(),
            },
        }
        Some(())
    }

    /// Lists the innermost directory.
    fn list(&mut self) {
        // Looked up again before its members count: if it was replaced or unmounted
        // while it was listed, names may be missing.
        let listed = match DirectoryNames::read(self.trail.descriptor()) {
            Err(error) => Err(UnreadableCause::List(error.into())),
            Ok(_) if !self.trail.is_in_place() => Err(UnreadableCause::Replaced),
            Ok(names) => Ok(names),
        };
        match listed {
            Ok(mut names) => {
                if !self.options.mounted.is_empty() {
                    names.add_missing(self.mounts_of_before());
                }
                if let Some(level) = self.trail.innermost() {
                    level.names = Some(names);
                }
            }
            Err(cause) => {
                self.fail(self.trail.path(), cause);
                self.pop();
            }
        }
    }

    /// The names in this directory that are former mount points or lead to one.
    fn mounts_of_before(&self) -> impl Iterator<Item = CString> {
        let here = self.trail.path();
        let start = here.as_bytes().len() + usize::from(!here.as_bytes().is_empty());
        let mounted = self.options.mounted.iter();
        mounted
            .filter(move |mount| mount.path != here && mount.path.is_at_or_below(&here))
            .filter_map(move |mount| {
                let below = &mount.path.as_bytes()[start..];
                CString::new(below.split(|&byte| byte == 0).next()?).ok()
            })
    }

    /// Visits a name in the innermost directory.
    fn visit(&mut self, name: &CStr, kind: FileType) {
        let Some(path) = self.trail.path_of(name) else {
            return self.fail(
                self.trail.path(),
                UnreadableCause::List(Errno::ILSEQ.into()),
            );
        };
        let looked = match kind {
            FileType::Unknown => Some(look(self.trail.descriptor(), name)),
            _ => None,
        };
        let kind = match &looked {
            Some(Ok(look)) => look.kind,
            Some(Err(_)) | None => kind,
        };
        // Judged before it is examined: a file server may not answer.
        let parent = self.trail.at_depth(self.trail.depth()).verdict;
        let verdict = self
            .filter
            .judge(&path, kind == FileType::Directory, parent);
        if verdict == FilterVerdict::Out {
            return;
        }
        match looked.unwrap_or_else(|| look(self.trail.descriptor(), name)) {
            Ok(look) => self.found(name, path, &look, verdict),
            Err(Errno::NOENT) if self.was_mounted(&path) => {
                self.fail(path, UnreadableCause::Unmounted);
            }
            Err(error) => self.fail(path, UnreadableCause::of_look(error)),
        }
    }

    /// Handles an examined name.
    fn found(&mut self, name: &CStr, path: TreePath, look: &InodeStatus, verdict: FilterVerdict) {
        let kind = match look.kind {
            FileType::Directory => return self.enter(name, path, look, verdict),
            _ if verdict != FilterVerdict::In => return,
            FileType::RegularFile => EntryKind::File(look.state),
            FileType::Symlink => match directory::target(self.trail.descriptor(), name) {
                Ok(target) => EntryKind::Symlink(target),
                Err(error) => return self.fail(path, UnreadableCause::of_look(error)),
            },
            _ => {
                self.specials += 1;
                return;
            }
        };
        let was_mounted = self.was_mounted(&path).then(|| path.clone());
        self.emit(TreeEntry {
            path,
            kind,
            attributes: look.attributes,
        });
        if let Some(path) = was_mounted {
            self.fail(path, UnreadableCause::Unmounted);
        }
    }

    /// Enters a directory if it is to be scanned.
    fn enter(&mut self, name: &CStr, path: TreePath, look: &InodeStatus, verdict: FilterVerdict) {
        let root = self.trail.root_device();
        let is_anywhere = !self.options.one_file_system;
        let is_walked = |look: &InodeStatus| is_anywhere || look.identity.device == root;
        if !is_walked(look) {
            return self.emit_directory(path, look, verdict);
        }
        let opened = directory::open(self.trail.descriptor(), name);
        // The opened directory counts. It may be another one by now, or opening it
        // may have mounted something.
        let opened = opened.and_then(|open| Ok((look_at(&open)?, open)));
        let (look, descriptor) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                self.emit_directory(path.clone(), look, verdict);
                return self.fail(path, UnreadableCause::of_open(error));
            }
        };
        if !is_walked(&look) {
            return self.emit_directory(path, &look, verdict);
        }
        let depth = self.trail.depth();
        let around = self.trail.at_depth(depth).identity.device;
        let is_mount = look.is_mount || look.identity.device != around;
        if !is_mount && self.is_mount_of_before(&path) {
            self.emit_directory(path.clone(), &look, verdict);
            return self.fail(path, UnreadableCause::Unmounted);
        }
        if is_mount && is_anywhere {
            self.mounts.push(MountPoint {
                path: path.clone(),
                device: look.identity.device,
            });
        }
        self.trail.push(&path, descriptor, look.identity, verdict);
        match verdict {
            FilterVerdict::In => self.emit_directory(path, &look, verdict),
            FilterVerdict::OnTheWay | FilterVerdict::Out => {
                self.waiting.push((depth + 1, directory_entry(path, &look)));
            }
        }
    }

    /// Leaves the innermost directory.
    fn leave(&mut self) {
        self.trail.reopen_outer();
        if !self.trail.is_in_place() {
            self.fail(self.trail.path(), UnreadableCause::Replaced);
        }
        self.pop();
        // If the way back is lost, the scan continues further out.
        while self.trail.depth() > 0 && !self.trail.reopen_innermost() {
            self.fail(self.trail.path(), UnreadableCause::Replaced);
            self.pop();
        }
    }

    fn pop(&mut self) {
        self.trail.pop();
        let depth = self.trail.depth();
        self.waiting.pop_if(|(waiting, _)| *waiting > depth);
    }

    /// Whether the path is a former mount point.
    fn is_mount_of_before(&self, path: &TreePath) -> bool {
        self.options.mounted.iter().any(|mount| mount.path == *path)
    }

    /// Whether the path is, or contains, a former mount point.
    fn was_mounted(&self, path: &TreePath) -> bool {
        let mut mounted = self.options.mounted.iter();
        mounted.any(|mount| mount.path.is_at_or_below(path))
    }

    fn emit_directory(&mut self, path: TreePath, look: &InodeStatus, verdict: FilterVerdict) {
        if verdict == FilterVerdict::In {
            self.emit(directory_entry(path, look));
        }
    }

    fn emit(&mut self, entry: TreeEntry) {
        let around = self.waiting.drain(..).map(|(_, entry)| Ok(entry));
        self.ready.extend(around);
        self.ready.push_back(Ok(entry));
    }

    fn fail(&mut self, path: TreePath, cause: UnreadableCause) {
        let is_below = |last: &mut TreePath| last.is_at_or_below(&path);
        while self.unknown.pop_if(is_below).is_some() {}
        let covers = |last: &TreePath| path.is_at_or_below(last);
        if !self.unknown.last().is_some_and(covers) {
            self.unknown.push(path.clone());
        }
        self.ready.push_back(Err(Unreadable { path, cause }));
    }
}

impl Iterator for Scan {
    type Item = Result<TreeEntry, Unreadable>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.ready.is_empty() {
            self.step()?;
        }
        self.ready.pop_front()
    }
}

fn directory_entry(path: TreePath, look: &InodeStatus) -> TreeEntry {
    TreeEntry {
        path,
        kind: EntryKind::Directory,
        attributes: look.attributes,
    }
}
