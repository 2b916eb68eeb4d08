//! What is to be done to bring a store in step with a source: a scan of the
//! source, compared with what was synced last. Blocking; asks no store.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::source::now;
use super::spool::{Spool, Spooled};
use super::unsettled::Unsettled;
use crate::compare::{EntryChange, KnownEntry, compare};
use crate::entry::{Attributes, Entry, EntryKind, FileState, Moment, TreePath};
use crate::filter::Filter;
use crate::scan::{MountPoint, Scan, ScanError, ScanOptions};
use crate::state::{JobId, JobRecord, StateDatabase, StateError, Synced, SyncedKind, UploadRecord};

/// Paths of what was left out are named up to this number.
const NAMED: usize = 20;

/// How a source is looked at.
#[derive(Debug, Clone)]
pub(super) struct Looking {
    pub(super) source: PathBuf,
    pub(super) filter: Filter,
    pub(super) one_file_system: bool,
    /// Whether contents are compared even where nothing speaks for a change.
    pub(super) by_content: bool,
}

/// Something to be done, but for removals.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Todo {
    /// A file whose content the store does not have; perhaps another in its place.
    Send {
        path: TreePath,
        size: u64,
        replaces: bool,
    },
    /// A file whose content the store may have: it does if it is this one.
    Examine {
        path: TreePath,
        size: u64,
        had: Remembered,
    },
    /// Something to be remembered, that is nothing to send.
    Note(TreePath, Synced),
}

/// What the store has of a file, as far as it is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Remembered {
    pub(super) sha256: [u8; 32],
    pub(super) attributes: Attributes,
}

impl Remembered {
    fn of(known: &KnownEntry, sha256: [u8; 32]) -> Self {
        Self {
            sha256,
            attributes: known.entry.attributes,
        }
    }
}

/// What there is to do.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) todos: Spooled<Todo>,
    /// Entries in step that are gone from the source.
    pub(super) removed: Spooled<(TreePath, Synced)>,
    /// Those that something else has taken the place of: what was in a directory
    /// that is none any more, and files that are links now. None of them has a path
    /// any more.
    pub(super) displaced: Spooled<(TreePath, Synced)>,
    /// Files that directories have taken the place of.
    pub(super) replaced: Spooled<(TreePath, Synced)>,
    /// Uploads of what is gone, or is another version now.
    pub(super) left: Vec<(TreePath, UploadRecord)>,
    pub(super) totals: Totals,
    /// What the next scan is to be told.
    pub(super) began: Moment,
    pub(super) mounts: Vec<MountPoint>,
}

/// What a scan comes to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Totals {
    /// Entries of the source.
    pub(super) entries: u64,
    /// Files that are as they were.
    pub(super) same: u64,
    /// Files to send or to examine.
    pub(super) files: u64,
    /// Their bytes.
    pub(super) bytes: u64,
    /// Entries in step that are gone.
    pub(super) removed: u64,
    /// Regular files among them, and among those that were displaced.
    pub(super) removed_files: u64,
    /// Regular files among those that were in step.
    pub(super) known_files: u64,
    /// What could not be read, and why: the first of them.
    pub(super) unreadable: Vec<(TreePath, String)>,
    /// How many there are.
    pub(super) unreadable_count: u64,
    /// Devices, sockets and pipes.
    pub(super) specials: u64,
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub(super) enum PlanError {
    #[error(transparent)]
    Scan(#[from] ScanError),
    #[error(transparent)]
    State(#[from] StateError),
    #[error("the list of what is to be done cannot be written: {0}")]
    Spool(#[from] io::Error),
    #[error("the scan was broken off")]
    Stopped,
}

/// Looks at the source; `stop` ends it early.
pub(super) fn plan(
    looking: &Looking,
    state: &StateDatabase,
    job: JobId,
    record: &JobRecord,
    stop: &dyn Fn() -> bool,
) -> Result<Plan, PlanError> {
    let began = now();
    let options = ScanOptions {
        one_file_system: looking.one_file_system,
        mounted: mounts_of(record),
    };
    let mut scan = Scan::open(&looking.source, looking.filter.clone(), options)?;
    let known = state.entries(job)?;
    let known = known.map(|entry| entry.map(|(path, synced)| known_of(path, &synced)));
    let last = record.scanned.unwrap_or_default();
    let mut sorter = Sorter {
        by_content: looking.by_content,
        todos: Spool::new(),
        removed: Spool::new(),
        displaced: Spool::new(),
        replaced: Spool::new(),
        displacing: None,
        unsettled: Unsettled::of(state, job)?,
        totals: Totals::default(),
    };
    for change in compare(&mut scan, known, last) {
        if stop() {
            return Err(PlanError::Stopped);
        }
        sorter.sort(change?)?;
    }
    let outcome = scan.finish();
    let mut totals = sorter.totals;
    totals.specials = outcome.specials.count;
    Ok(Plan {
        todos: sorter.todos.finish()?,
        removed: sorter.removed.finish()?,
        displaced: sorter.displaced.finish()?,
        replaced: sorter.replaced.finish()?,
        left: sorter.unsettled.left(),
        totals,
        began,
        mounts: outcome.mounts,
    })
}

struct Sorter {
    by_content: bool,
    todos: Spool<Todo>,
    removed: Spool<(TreePath, Synced)>,
    displaced: Spool<(TreePath, Synced)>,
    replaced: Spool<(TreePath, Synced)>,
    /// What was a directory last time, and is none now.
    displacing: Option<TreePath>,
    unsettled: Unsettled,
    totals: Totals,
}

impl Sorter {
    fn sort(&mut self, change: EntryChange) -> Result<(), PlanError> {
        match change {
            EntryChange::Same(known) => {
                self.met(Some(&known));
                match (&known.entry.kind, known.sha256) {
                    (EntryKind::File(_), _)
                        if self.unsettled.may_be_replaced(&known.entry.path) =>
                    {
                        self.bring(known.entry, true)?;
                    }
                    (EntryKind::File(state), Some(sha256)) if self.by_content => {
                        self.examine(&known.entry, *state, Remembered::of(&known, sha256))?;
                    }
                    (EntryKind::File(_), _) => self.totals.same += 1,
                    _ => {}
                }
            }
            EntryChange::Added(entry) => {
                self.met(None);
                self.bring(entry, false)?;
            }
            EntryChange::Changed { entry, old } => {
                self.met(Some(&old));
                match (same_at_first_sight(&entry, &old), old.sha256) {
                    (Some(state), Some(sha256)) => {
                        self.examine(&entry, state, Remembered::of(&old, sha256))?;
                    }
                    _ => {
                        self.displace(&entry, old)?;
                        self.bring(entry, true)?;
                    }
                }
            }
            EntryChange::Touched { entry, old } => {
                self.met(Some(&old));
                match (&entry.kind, old.sha256) {
                    (EntryKind::File(state), Some(sha256)) => {
                        self.examine(&entry, *state, Remembered::of(&old, sha256))?;
                    }
                    _ => self.bring(entry, true)?,
                }
            }
            EntryChange::Attributes { entry, old } => {
                self.met(Some(&old));
                if self.unsettled.may_be_replaced(&entry.path) {
                    self.bring(entry, true)?;
                } else if let Some(synced) = synced_of(&entry, old.sha256) {
                    self.todos.push(&Todo::Note(entry.path, synced))?;
                }
            }
            EntryChange::Removed(old) => self.remove(&old)?,
            EntryChange::Unknown(unreadable) => {
                self.unsettled.unreadable(&unreadable.path);
                self.totals.unreadable_count += 1;
                if self.totals.unreadable.len() < NAMED {
                    let why = unreadable.cause.to_string();
                    self.totals.unreadable.push((unreadable.path, why));
                }
            }
        }
        Ok(())
    }

    fn met(&mut self, old: Option<&KnownEntry>) {
        self.totals.entries += 1;
        if let Some(old) = old {
            self.count_known(old);
        }
    }

    fn count_known(&mut self, old: &KnownEntry) {
        if matches!(old.entry.kind, EntryKind::File(_)) {
            self.totals.known_files += 1;
        }
    }

    /// Something that was there is now something else.
    fn displace(&mut self, entry: &Entry, old: KnownEntry) -> Result<(), PlanError> {
        let is_file = |kind: &EntryKind| matches!(kind, EntryKind::File(_));
        if matches!(old.entry.kind, EntryKind::Directory) {
            self.displacing = Some(old.entry.path);
        } else if is_file(&old.entry.kind)
            && !is_file(&entry.kind)
            && let Some(synced) = synced_of(&old.entry, old.sha256)
        {
            let is_directory = matches!(entry.kind, EntryKind::Directory);
            let list = if is_directory {
                &mut self.replaced
            } else {
                self.totals.removed_files += 1;
                &mut self.displaced
            };
            list.push(&(old.entry.path, synced))?;
        }
        Ok(())
    }

    fn remove(&mut self, old: &KnownEntry) -> Result<(), PlanError> {
        self.count_known(old);
        let path = old.entry.path.clone();
        let Some(synced) = synced_of(&old.entry, old.sha256) else {
            return Ok(());
        };
        if matches!(old.entry.kind, EntryKind::File(_)) {
            self.totals.removed_files += 1;
        }
        let is_displaced = |by: &TreePath| path.is_at_or_below(by);
        if self.displacing.as_ref().is_some_and(is_displaced) {
            self.displaced.push(&(path, synced))?;
            return Ok(());
        }
        self.totals.removed += 1;
        self.removed.push(&(path, synced))?;
        Ok(())
    }

    /// Something that the store does not have as it is, but perhaps as something
    /// else.
    fn bring(&mut self, entry: Entry, replaces: bool) -> Result<(), PlanError> {
        if let EntryKind::File(state) = entry.kind {
            self.count(&entry.path, state);
            self.todos.push(&Todo::Send {
                path: entry.path,
                size: state.size,
                replaces,
            })?;
        } else if let Some(synced) = synced_of(&entry, None) {
            self.todos.push(&Todo::Note(entry.path, synced))?;
        }
        Ok(())
    }

    fn examine(
        &mut self,
        entry: &Entry,
        state: FileState,
        had: Remembered,
    ) -> Result<(), PlanError> {
        let path = entry.path.clone();
        self.count(&path, state);
        let size = state.size;
        Ok(self.todos.push(&if self.unsettled.may_be_replaced(&path) {
            Todo::Send {
                path,
                size,
                replaces: true,
            }
        } else {
            Todo::Examine { path, size, had }
        })?)
    }

    fn count(&mut self, path: &TreePath, state: FileState) {
        self.unsettled.wanted(path, &state);
        self.totals.files += 1;
        self.totals.bytes += state.size;
    }
}

/// The state of a file that has the size and the time of its last change that it
/// had, and differs in what a copy of a disk, or a file system that numbers its
/// files anew, changes as well: it is cheaper to read it than to send it.
fn same_at_first_sight(entry: &Entry, old: &KnownEntry) -> Option<FileState> {
    let (EntryKind::File(now), EntryKind::File(then)) = (&entry.kind, &old.entry.kind) else {
        return None;
    };
    let is_same_time = entry.attributes.modified == old.entry.attributes.modified;
    (is_same_time && now.size == then.size).then_some(*now)
}

fn known_of(path: TreePath, synced: &Synced) -> KnownEntry {
    let (kind, sha256) = match &synced.kind {
        SyncedKind::File { state, sha256 } => (EntryKind::File(*state), Some(*sha256)),
        SyncedKind::Directory => (EntryKind::Directory, None),
        SyncedKind::Symlink(target) => {
            use std::os::unix::ffi::OsStrExt;
            (
                EntryKind::Symlink(std::ffi::OsStr::from_bytes(target).into()),
                None,
            )
        }
    };
    KnownEntry {
        entry: Entry {
            path,
            kind,
            attributes: synced.attributes,
        },
        sha256,
    }
}

/// `None` for a file whose content is not known.
fn synced_of(entry: &Entry, sha256: Option<[u8; 32]>) -> Option<Synced> {
    let kind = match &entry.kind {
        EntryKind::File(state) => SyncedKind::File {
            state: *state,
            sha256: sha256?,
        },
        EntryKind::Directory => SyncedKind::Directory,
        EntryKind::Symlink(target) => SyncedKind::Symlink(target.as_encoded_bytes().into()),
    };
    Some(Synced {
        attributes: entry.attributes,
        kind,
    })
}

fn mounts_of(record: &JobRecord) -> Vec<MountPoint> {
    let mounts = record.mounts.iter();
    let mounts = mounts.filter_map(|(path, device)| {
        let path = TreePath::from_bytes(path).ok()?;
        Some(MountPoint {
            path,
            device: *device,
        })
    });
    mounts.collect()
}

/// Whether there is nothing at all in a source: more often a disk that is not
/// mounted than a directory that somebody has emptied.
pub(super) fn is_empty(source: &Path) -> bool {
    std::fs::read_dir(source).is_ok_and(|mut entries| entries.next().is_none())
}
