//! A walk of a directory tree: every entry that a filter keeps, in the order of
//! [`TreePath`]. Blocking.
//!
//! It goes by descriptors and not by paths, so a directory that is replaced by a
//! link meanwhile leads nowhere else, and a tree may be deeper than a path is
//! long. In memory are the names of one directory per level. A directory is
//! looked up again, by its name in its parent, once it has been listed and once
//! more when the walk leaves it: what has been moved away or unmounted in between
//! is *unknown* ([`Unreadable`]), and not empty. So is what was a mount point last
//! time and is none now, for an unmounted disk looks like an empty directory.
//!
//! Knows nothing of what was synced last time but where something was mounted.

mod directory;
mod outcome;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::ffi::{CStr, CString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType};
use rustix::io::Errno;

use crate::entry::{Entry, Kind, TreePath};
use crate::filter::{Filter, Verdict};
use directory::{Identity, Look, Names};
pub use outcome::{Cause, MountPoint, Outcome, ScanError, Specials, Unreadable};

/// How many directories are open at once, besides the root: the innermost. The
/// others are opened again on the way back.
const OPEN: usize = 32;

/// How a tree is walked.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Whether directories on another file system than the root's are entries
    /// only, and what is in them is not.
    pub one_file_system: bool,
    /// [`Outcome::mounts`] of the last walk. What was mounted then and is not now
    /// is unknown; a caller who knows better leaves it out.
    pub mounted: Vec<MountPoint>,
}

/// A walk; see the module.
#[derive(Debug)]
pub struct Scan {
    root: PathBuf,
    filter: Filter,
    options: Options,
    /// Path of the innermost directory, as a [`TreePath`] has it.
    path: Vec<u8>,
    /// From the root to the innermost.
    levels: Vec<Level>,
    /// Directories around the innermost that are entries only if something in
    /// them is, each with its level.
    waiting: Vec<(usize, Entry)>,
    ready: VecDeque<Result<Entry, Unreadable>>,
    specials: Specials,
    unknown: Vec<TreePath>,
    mounts: Vec<MountPoint>,
}

/// A directory that the walk is in.
#[derive(Debug)]
struct Level {
    /// `None` while the walk is far below.
    descriptor: Option<OwnedFd>,
    identity: Identity,
    /// Where its path ends in that of the innermost.
    end: usize,
    verdict: Verdict,
    /// `None` until it has been listed.
    names: Option<Names>,
}

impl Scan {
    /// Begins a walk of the directory that `root` leads to. The root itself is no
    /// entry.
    ///
    /// # Errors
    /// [`ScanError`] when it cannot be opened, or is a mount point no more.
    pub fn open(root: &Path, filter: Filter, options: Options) -> Result<Self, ScanError> {
        let refused = |error: Errno| ScanError::Open {
            root: root.to_owned(),
            error: error.into(),
        };
        let path = CString::new(root.as_os_str().as_bytes()).map_err(|_| refused(Errno::INVAL))?;
        let descriptor = directory::open_followed(CWD, &path).map_err(refused)?;
        let here = directory::look_at(&descriptor).map_err(refused)?;
        let parent = directory::look_followed(&descriptor, c"..").map_err(refused)?;
        let mut scan = Self {
            root: root.to_owned(),
            path: Vec::new(),
            levels: Vec::new(),
            waiting: Vec::new(),
            ready: VecDeque::new(),
            specials: Specials::default(),
            unknown: Vec::new(),
            mounts: Vec::new(),
            filter,
            options,
        };
        if here.is_mount || here.identity.device != parent.identity.device {
            scan.mounts.push(MountPoint {
                path: TreePath::root(),
                device: here.identity.device,
            });
        } else if scan.is_mount_of_before(&TreePath::root()) {
            let root = root.to_owned();
            return Err(ScanError::Unmounted { root });
        }
        scan.levels.push(Level {
            descriptor: Some(descriptor),
            identity: here.identity,
            end: 0,
            verdict: scan.filter.of_root(),
            names: None,
        });
        Ok(scan)
    }

    /// Ends the walk, wherever it is.
    #[must_use]
    pub fn finish(self) -> Outcome {
        let complete = self.levels.is_empty() && self.ready.is_empty();
        let mut mounts = self.mounts;
        for before in self.options.mounted {
            let is_seen = mounts.iter().any(|mount| mount.path == before.path);
            let may_be = |unknown| before.path.is_at_or_below(unknown);
            if !is_seen && (!complete || self.unknown.iter().any(may_be)) {
                mounts.push(before);
            }
        }
        mounts.sort_by(|a, b| a.path.cmp(&b.path));
        Outcome {
            complete,
            specials: self.specials,
            unknown: self.unknown,
            mounts,
        }
    }

    /// Goes one step on. `None` at the end.
    fn step(&mut self) -> Option<()> {
        let level = self.levels.last_mut()?;
        match level.names.take() {
            None => self.list(),
            Some(mut names) => {
                let at = self.levels.len() - 1;
                match names.next() {
                    Some((name, kind)) => {
                        self.visit(name, kind);
                        self.levels[at].names = Some(names);
                    }
                    None => self.leave(),
                }
            }
        }
        Some(())
    }

    /// Lists the innermost directory.
    fn list(&mut self) {
        let at = self.levels.len() - 1;
        let names = Names::read(self.descriptor(at));
        // Looked at again before anything in it counts: what has been replaced
        // or unmounted before the last name was read may have lost some.
        let result = match names {
            Err(error) => Err(Cause::List(error.into())),
            Ok(_) if !self.is_in_place() => Err(Cause::Replaced),
            Ok(names) => Ok(names),
        };
        match result {
            Ok(mut names) => {
                names.add_missing(self.mounts_of_before());
                self.levels[at].names = Some(names);
            }
            Err(cause) => {
                self.fail(self.here(), cause);
                self.pop();
            }
        }
    }

    /// The names in this directory that were mount points, or led to one.
    fn mounts_of_before(&self) -> impl Iterator<Item = CString> {
        let here = self.here();
        let start = self.path.len() + usize::from(!self.path.is_empty());
        let mounted = self.options.mounted.iter();
        mounted
            .filter(move |mount| mount.path != here && mount.path.is_at_or_below(&here))
            .filter_map(move |mount| {
                let below = &mount.path.as_bytes()[start..];
                CString::new(below.split(|&byte| byte == 0).next()?).ok()
            })
    }

    /// Comes to a name in the innermost directory.
    fn visit(&mut self, name: &CStr, kind: FileType) {
        let mut path = self.path.clone();
        if !path.is_empty() {
            path.push(0);
        }
        path.extend_from_slice(name.to_bytes());
        let Ok(path) = TreePath::from_bytes(&path) else {
            return self.fail(self.here(), Cause::List(Errno::ILSEQ.into()));
        };
        let at = self.levels.len() - 1;
        let looked = match kind {
            FileType::Unknown => Some(directory::look(self.descriptor(at), name)),
            _ => None,
        };
        let kind = match &looked {
            Some(Ok(look)) => look.kind,
            Some(Err(_)) | None => kind,
        };
        // Before it is examined: that may take a server that does not answer.
        let verdict =
            self.filter
                .judge(&path, kind == FileType::Directory, self.levels[at].verdict);
        if verdict == Verdict::Out {
            return;
        }
        match looked.unwrap_or_else(|| directory::look(self.descriptor(at), name)) {
            Ok(look) => self.found(name, path, &look, verdict),
            Err(Errno::NOENT) if self.was_mounted(&path) => self.fail(path, Cause::Unmounted),
            Err(error) => self.fail(path, Cause::of_look(error)),
        }
    }

    /// Sorts in what a name stands for.
    fn found(&mut self, name: &CStr, path: TreePath, look: &Look, verdict: Verdict) {
        let at = self.levels.len() - 1;
        let kind = match look.kind {
            FileType::Directory => return self.enter(name, path, look, verdict),
            _ if verdict != Verdict::In => return,
            FileType::RegularFile => Kind::File(look.state),
            FileType::Symlink => match directory::target(self.descriptor(at), name) {
                Ok(target) => Kind::Symlink(target),
                Err(error) => return self.fail(path, Cause::of_look(error)),
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
            self.fail(path, Cause::Unmounted);
        }
    }

    /// Enters a directory, if it is to be walked.
    fn enter(&mut self, name: &CStr, path: TreePath, look: &Look, verdict: Verdict) {
        let root = self.levels[0].identity.device;
        let is_anywhere = !self.options.one_file_system;
        let is_walked = |look: &Look| is_anywhere || look.identity.device == root;
        if !is_walked(look) {
            return self.emit_directory(path, look, verdict);
        }
        let parent = self.levels.len() - 1;
        let opened = directory::open(self.descriptor(parent), name);
        // What is open is what counts; by now it may be another directory, or
        // something has been mounted because it was opened.
        let opened = opened.and_then(|open| Ok((directory::look_at(&open)?, open)));
        let (look, descriptor) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                self.emit_directory(path.clone(), look, verdict);
                return self.fail(path, Cause::of_open(error));
            }
        };
        if !is_walked(&look) {
            return self.emit_directory(path, &look, verdict);
        }
        let is_mount = look.is_mount || look.identity.device != self.levels[parent].identity.device;
        if !is_mount && self.is_mount_of_before(&path) {
            self.emit_directory(path.clone(), &look, verdict);
            return self.fail(path, Cause::Unmounted);
        }
        if is_mount && is_anywhere {
            self.mounts.push(MountPoint {
                path: path.clone(),
                device: look.identity.device,
            });
        }
        self.path.clear();
        self.path.extend_from_slice(path.as_bytes());
        match verdict {
            Verdict::In => self.emit_directory(path, &look, verdict),
            _ => self
                .waiting
                .push((parent + 1, directory_entry(path, &look))),
        }
        self.levels.push(Level {
            descriptor: Some(descriptor),
            identity: look.identity,
            end: self.path.len(),
            verdict,
            names: None,
        });
        if let Some(outer @ 1..) = parent.checked_sub(OPEN) {
            self.levels[outer].descriptor = None;
        }
    }

    /// Leaves the innermost directory.
    fn leave(&mut self) {
        let at = self.levels.len() - 1;
        if at > 0 && self.levels[at - 1].descriptor.is_none() {
            self.levels[at - 1].descriptor = self.reopen(at - 1);
        }
        let is_in_place = self.is_in_place();
        if !is_in_place {
            self.fail(self.here(), Cause::Replaced);
        }
        self.pop();
        // Without a way back to its parent: on from what is around that.
        while let Some(level) = self.levels.last()
            && level.descriptor.is_none()
        {
            let at = self.levels.len() - 1;
            match self.reopen(at) {
                Some(descriptor) => self.levels[at].descriptor = Some(descriptor),
                None => {
                    self.fail(self.here(), Cause::Replaced);
                    self.pop();
                }
            }
        }
    }

    fn pop(&mut self) {
        self.levels.pop();
        self.path
            .truncate(self.levels.last().map_or(0, |level| level.end));
        let depth = self.levels.len();
        self.waiting.pop_if(|(level, _)| *level >= depth);
    }

    /// Opens a directory again that the walk comes back to: from the one in it,
    /// or, if that is somewhere else by now, from the root.
    fn reopen(&self, at: usize) -> Option<OwnedFd> {
        let is_level = |descriptor: &OwnedFd, level: usize| {
            directory::look_at(descriptor)
                .is_ok_and(|look| look.identity == self.levels[level].identity)
        };
        let inner = self
            .levels
            .get(at + 1)
            .and_then(|level| level.descriptor.as_ref());
        let up = inner.and_then(|inner| directory::open(inner, c"..").ok());
        if let Some(descriptor) = up.filter(|descriptor| is_level(descriptor, at)) {
            return Some(descriptor);
        }
        let mut descriptor: Option<OwnedFd> = None;
        for level in 1..=at {
            let name = self.name(level);
            let next = match &descriptor {
                Some(outer) => directory::open(outer, &name),
                None => directory::open(self.descriptor(0), &name),
            };
            descriptor = Some(next.ok().filter(|next| is_level(next, level))?);
        }
        descriptor
    }

    /// Whether the innermost directory is where it was found.
    fn is_in_place(&self) -> bool {
        let at = self.levels.len() - 1;
        let found = match at.checked_sub(1) {
            None => {
                let root = CString::new(self.root.as_os_str().as_bytes());
                root.ok().map(|root| directory::look_followed(CWD, &root))
            }
            Some(parent) => {
                let parent = self.levels[parent].descriptor.as_ref();
                parent.map(|parent| directory::look(parent, &self.name(at)))
            }
        };
        matches!(found, Some(Ok(look)) if look.identity == self.levels[at].identity)
    }

    /// The descriptor of a level, which has one: the innermost, or the root.
    fn descriptor(&self, level: usize) -> &OwnedFd {
        let descriptor = self.levels[level].descriptor.as_ref();
        descriptor.expect("the innermost directories and the root are open")
    }

    /// The name of a directory in its parent; not of the root.
    fn name(&self, level: usize) -> CString {
        let start = self.levels[level - 1].end;
        let name = &self.path[start..self.levels[level].end];
        let name = name.strip_prefix(b"\0").unwrap_or(name);
        CString::new(name).expect("a name has no NUL")
    }

    /// The path of the innermost directory.
    fn here(&self) -> TreePath {
        TreePath::from_bytes(&self.path).expect("it was one before")
    }

    /// Whether something was mounted right there.
    fn is_mount_of_before(&self, path: &TreePath) -> bool {
        self.options.mounted.iter().any(|mount| mount.path == *path)
    }

    /// Whether something was mounted there, or below it.
    fn was_mounted(&self, path: &TreePath) -> bool {
        let mut mounted = self.options.mounted.iter();
        mounted.any(|mount| mount.path.is_at_or_below(path))
    }

    fn emit_directory(&mut self, path: TreePath, look: &Look, verdict: Verdict) {
        if verdict == Verdict::In {
            self.emit(directory_entry(path, look));
        }
    }

    fn emit(&mut self, entry: Entry) {
        let around = self.waiting.drain(..).map(|(_, entry)| Ok(entry));
        self.ready.extend(around);
        self.ready.push_back(Ok(entry));
    }

    fn fail(&mut self, path: TreePath, cause: Cause) {
        while self
            .unknown
            .pop_if(|last| last.is_at_or_below(&path))
            .is_some()
        {}
        if !self
            .unknown
            .last()
            .is_some_and(|last| path.is_at_or_below(last))
        {
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

fn directory_entry(path: TreePath, look: &Look) -> Entry {
    Entry {
        path,
        kind: Kind::Directory,
        attributes: look.attributes,
    }
}
