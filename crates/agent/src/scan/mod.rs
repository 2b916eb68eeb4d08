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
mod outcome;
#[cfg(test)]
mod tests;
mod trail;

use std::collections::VecDeque;
use std::ffi::{CStr, CString};
use std::path::Path;

use rustix::fs::FileType;
use rustix::io::Errno;

use crate::entry::{Entry, EntryKind, TreePath};
use crate::filter::{Filter, FilterVerdict};
use directory::{DirectoryNames, InodeStatus};
pub use outcome::{MountPoint, ScanError, ScanOutcome, SpecialFiles, Unreadable, UnreadableCause};
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

/// A running scan: an iterator of entries.
#[derive(Debug)]
pub struct Scan {
    filter: Filter,
    options: ScanOptions,
    trail: Trail,
    /// Directories on the trail that are entries only if a member is, with their
    /// depths.
    waiting: Vec<(usize, Entry)>,
    ready: VecDeque<Result<Entry, Unreadable>>,
    specials: SpecialFiles,
    unknown: Vec<TreePath>,
    mounts: Vec<MountPoint>,
}

impl Scan {
    /// Begins a scan of a directory. The root itself is no entry.
    ///
    /// # Errors
    /// [`ScanError`]: the root cannot be opened, or is a former mount point.
    pub fn open(root: &Path, filter: Filter, options: ScanOptions) -> Result<Self, ScanError> {
        let refused = |error: Errno| ScanError::Open {
            root: root.to_owned(),
            error: error.into(),
        };
        let (trail, here, around) = Trail::open(root, filter.of_root()).map_err(refused)?;
        let mut scan = Self {
            trail,
            waiting: Vec::new(),
            ready: VecDeque::new(),
            specials: SpecialFiles::default(),
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
            FileType::Unknown => Some(directory::look(self.trail.descriptor(), name)),
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
        match looked.unwrap_or_else(|| directory::look(self.trail.descriptor(), name)) {
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
            _ => return self.specials.add(path),
        };
        let was_mounted = self.was_mounted(&path).then(|| path.clone());
        self.emit(Entry {
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
        let opened = opened.and_then(|open| Ok((directory::look_at(&open)?, open)));
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

    fn emit(&mut self, entry: Entry) {
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
    type Item = Result<Entry, Unreadable>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.ready.is_empty() {
            self.step()?;
        }
        self.ready.pop_front()
    }
}

fn directory_entry(path: TreePath, look: &InodeStatus) -> Entry {
    Entry {
        path,
        kind: EntryKind::Directory,
        attributes: look.attributes,
    }
}
