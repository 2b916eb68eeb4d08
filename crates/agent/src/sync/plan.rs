//! The plan of a push: a scan of the source, compared with the state. Blocking; asks
//! no store.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::report::{EntryFailure, RunReport};
use super::source::now;
use super::spool::{Spool, Spooled};
use crate::compare::{EntryChange, KnownEntry, compare};
use crate::entry::{Attributes, Entry, EntryKind, FileState, Moment, TreePath};
use crate::filter::Filter;
use crate::scan::{MountPoint, Scan, ScanError, ScanOptions};
use crate::state::{JobId, JobRecord, StateDatabase, StateError, Synced, SyncedKind, UploadRecord};

/// How many unreadable entries are named.
const MAX_NAMED_UNREADABLE: usize = 20;

/// Which entries of a source are scanned, and how.
#[derive(Debug, Clone)]
pub(crate) struct SourceOptions {
    pub(crate) source: PathBuf,
    pub(crate) filter: Filter,
    pub(crate) one_file_system: bool,
    /// Whether content is compared even without a sign of a change.
    pub(crate) by_content: bool,
}

/// A task of a push, other than a removal.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum PushTask {
    /// Send a file. The store may have other content under its key.
    Send {
        path: TreePath,
        size: u64,
        replaces: bool,
    },
    /// Compare a file with the version that the store has.
    Examine {
        path: TreePath,
        size: u64,
        had: StoredVersion,
    },
    /// Note an entry without content to send.
    Note(TreePath, Synced),
}

/// The version of a file that the store has, according to the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredVersion {
    pub(crate) sha256: [u8; 32],
    pub(crate) attributes: Attributes,
}

impl StoredVersion {
    fn of(known: &KnownEntry, sha256: [u8; 32]) -> Self {
        Self {
            sha256,
            attributes: known.entry.attributes,
        }
    }
}

/// The work of a push.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) tasks: Spooled<PushTask>,
    /// Entries that are gone from the source.
    pub(crate) removed: Spooled<(TreePath, Synced)>,
    /// Entries whose place another entry has taken: members of a directory that is
    /// no directory now, and files that are links now.
    pub(crate) displaced: Spooled<(TreePath, Synced)>,
    /// Files whose place a directory has taken.
    pub(crate) replaced: Spooled<(TreePath, Synced)>,
    /// Uploads of files that are gone or have changed.
    pub(crate) abandoned: Vec<(TreePath, UploadRecord)>,
    pub(crate) totals: PlanTotals,
    /// When the scan began. The next scan needs it.
    pub(crate) began: Moment,
    pub(crate) mounts: Vec<MountPoint>,
}

/// The numbers of a scan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PlanTotals {
    /// Entries of the source.
    pub(crate) entries: u64,
    /// Unchanged files.
    pub(crate) same: u64,
    /// Files to send or to compare.
    pub(crate) files: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// Entries that are gone.
    pub(crate) removed: u64,
    /// Regular files among them and among the displaced entries.
    pub(crate) removed_files: u64,
    /// Regular files in the state.
    pub(crate) known_files: u64,
    /// The first unreadable entries, and why.
    pub(crate) unreadable: Vec<(TreePath, String)>,
    /// Number of unreadable entries.
    pub(crate) unreadable_count: u64,
    /// Devices, sockets and pipes.
    pub(crate) specials: u64,
}

impl PlanTotals {
    /// Fills in what a report says of the scan.
    pub(crate) fn fill(&self, report: &mut RunReport) {
        report.entries = self.entries;
        report.same = self.same;
        report.specials = self.specials;
        for (path, why) in self.unreadable.iter().cloned() {
            report.failed(path, EntryFailure::Unreadable(why));
        }
        report.failed = self.unreadable_count;
    }
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlanError {
    #[error(transparent)]
    Scan(#[from] ScanError),
    #[error(transparent)]
    State(#[from] StateError),
    #[error("the list of what is to be done cannot be written: {0}")]
    Spool(#[from] io::Error),
    #[error("the scan was broken off")]
    Stopped,
}

/// Makes the plan; `stop` ends it early.
pub(crate) fn plan(
    options: &SourceOptions,
    state: &StateDatabase,
    job: JobId,
    record: &JobRecord,
    stop: &dyn Fn() -> bool,
) -> Result<Plan, PlanError> {
    let began = now();
    let scan_options = ScanOptions {
        one_file_system: options.one_file_system,
        mounted: mounts_of(record),
    };
    let mut scan = Scan::open(&options.source, options.filter.clone(), scan_options)?;
    let known = state.entries(job)?;
    let known = known.map(|entry| entry.map(|(path, synced)| known_of(path, &synced)));
    let last = record.scanned.unwrap_or_default();
    let mut builder = PlanBuilder {
        by_content: options.by_content,
        tasks: Spool::new(),
        removed: Spool::new(),
        displaced: Spool::new(),
        replaced: Spool::new(),
        displacing: None,
        unsettled: Unsettled::of(state, job)?,
        totals: PlanTotals::default(),
    };
    for change in compare(&mut scan, known, last) {
        if stop() {
            return Err(PlanError::Stopped);
        }
        builder.sort(change?)?;
    }
    let outcome = scan.finish();
    let mut totals = builder.totals;
    totals.specials = outcome.specials.count;
    Ok(Plan {
        tasks: builder.tasks.finish()?,
        removed: builder.removed.finish()?,
        displaced: builder.displaced.finish()?,
        replaced: builder.replaced.finish()?,
        abandoned: builder.unsettled.abandoned(),
        totals,
        began,
        mounts: outcome.mounts,
    })
}

struct PlanBuilder {
    by_content: bool,
    tasks: Spool<PushTask>,
    removed: Spool<(TreePath, Synced)>,
    displaced: Spool<(TreePath, Synced)>,
    replaced: Spool<(TreePath, Synced)>,
    /// A former directory, whose members are displaced.
    displacing: Option<TreePath>,
    unsettled: Unsettled,
    totals: PlanTotals,
}

impl PlanBuilder {
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
                        self.examine(&known.entry, *state, StoredVersion::of(&known, sha256))?;
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
                        self.examine(&entry, state, StoredVersion::of(&old, sha256))?;
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
                        self.examine(&entry, *state, StoredVersion::of(&old, sha256))?;
                    }
                    _ => self.bring(entry, true)?,
                }
            }
            EntryChange::Attributes { entry, old } => {
                self.met(Some(&old));
                if self.unsettled.may_be_replaced(&entry.path) {
                    self.bring(entry, true)?;
                } else if let Some(synced) = synced_of(&entry, old.sha256) {
                    self.tasks.push(&PushTask::Note(entry.path, synced))?;
                }
            }
            EntryChange::Removed(old) => self.remove(&old)?,
            EntryChange::Unknown(unreadable) => {
                self.unsettled.unreadable(&unreadable.path);
                self.totals.unreadable_count += 1;
                if self.totals.unreadable.len() < MAX_NAMED_UNREADABLE {
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

    /// An entry has taken the place of another kind.
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

    /// An entry that has to be sent or noted.
    fn bring(&mut self, entry: Entry, replaces: bool) -> Result<(), PlanError> {
        if let EntryKind::File(state) = entry.kind {
            self.count(&entry.path, state);
            self.tasks.push(&PushTask::Send {
                path: entry.path,
                size: state.size,
                replaces,
            })?;
        } else if let Some(synced) = synced_of(&entry, None) {
            self.tasks.push(&PushTask::Note(entry.path, synced))?;
        }
        Ok(())
    }

    fn examine(
        &mut self,
        entry: &Entry,
        state: FileState,
        had: StoredVersion,
    ) -> Result<(), PlanError> {
        let path = entry.path.clone();
        self.count(&path, state);
        let size = state.size;
        Ok(self.tasks.push(&if self.unsettled.may_be_replaced(&path) {
            PushTask::Send {
                path,
                size,
                replaces: true,
            }
        } else {
            PushTask::Examine { path, size, had }
        })?)
    }

    fn count(&mut self, path: &TreePath, state: FileState) {
        self.unsettled.will_send(path, &state);
        self.totals.files += 1;
        self.totals.bytes += state.size;
    }
}

/// Results of earlier runs that the plan has to respect: objects whose version is
/// unknown, and uploads to be continued.
#[derive(Debug, Default)]
struct Unsettled {
    /// Entries whose object may have been replaced.
    replacing: HashSet<TreePath>,
    uploads: HashMap<TreePath, UploadRecord>,
}

impl Unsettled {
    fn of(state: &StateDatabase, job: JobId) -> Result<Self, StateError> {
        Ok(Self {
            replacing: state.replacing(job)?,
            uploads: state.uploads(job)?.into_iter().collect(),
        })
    }

    /// Whether the store may have other content than the state says. Then the file is
    /// sent in any case.
    fn may_be_replaced(&self, path: &TreePath) -> bool {
        self.replacing.contains(path)
    }

    /// This version of a file will be sent. An upload of it continues.
    fn will_send(&mut self, path: &TreePath, state: &FileState) {
        let is_of_it = |upload: &UploadRecord| upload.state == *state;
        if self.uploads.get(path).is_some_and(is_of_it) {
            self.uploads.remove(path);
        }
    }

    /// An entry is unreadable. Its uploads may continue later.
    fn unreadable(&mut self, path: &TreePath) {
        self.uploads
            .retain(|uploaded, _| !uploaded.is_at_or_below(path));
    }

    /// The uploads that will not continue.
    fn abandoned(self) -> Vec<(TreePath, UploadRecord)> {
        self.uploads.into_iter().collect()
    }
}

/// The state of a file whose size and time of change are the same as before. It
/// differs only in numbers that copying a disk or renumbering inodes changes as well,
/// so reading it is cheaper than sending it.
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

/// `None` for a file without a known digest.
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

/// Whether a source is empty. More often a disk is not mounted than a directory was
/// emptied.
pub(crate) fn is_empty(source: &Path) -> bool {
    std::fs::read_dir(source).is_ok_and(|mut entries| entries.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str) -> TreePath {
        TreePath::from_bytes(name.as_bytes()).unwrap()
    }

    fn version(inode: u64) -> FileState {
        FileState {
            size: 9,
            changed: Moment::default(),
            inode,
            device: 1,
        }
    }

    fn upload(inode: u64) -> UploadRecord {
        UploadRecord {
            name: "u".to_owned(),
            key: "k".to_owned(),
            part_size: 5,
            state: version(inode),
            modified: Moment::default(),
        }
    }

    #[test]
    fn only_uploads_of_what_is_gone_or_changed_are_left() {
        let names = ["same", "changed", "gone", "d\0unreadable", "dx"];
        let mut unsettled = Unsettled {
            replacing: HashSet::from([path("same")]),
            uploads: names.map(|name| (path(name), upload(1))).into(),
        };
        unsettled.will_send(&path("same"), &version(1));
        unsettled.will_send(&path("changed"), &version(2));
        unsettled.will_send(&path("new"), &version(1));
        unsettled.unreadable(&path("d"));
        assert!(unsettled.may_be_replaced(&path("same")));
        assert!(!unsettled.may_be_replaced(&path("changed")));
        let mut left: Vec<_> = unsettled
            .abandoned()
            .into_iter()
            .map(|(path, _)| path.to_string())
            .collect();
        left.sort();
        assert_eq!(left, ["changed", "dx", "gone"]);
    }
}
