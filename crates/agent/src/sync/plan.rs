//! The plan of a push: a scan of the source, compared with the state. Blocking; asks
//! no store.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::job::PushJob;
use super::report::{EntryFailure, RunProblem, RunReport};
use super::source::now;
use super::spool::Spool;
use crate::compare::{EntryChange, KnownEntry, compare};
use crate::config::Detect;
use crate::entry::{Attributes, EntryKind, FileState, Moment, TreeEntry, TreePath};
use crate::scan::{MountPoint, Scan, ScanOptions, UnreadableCause};
use crate::state::{JobId, JobRecord, StateDatabase, StateError, Synced, SyncedKind, UploadRecord};

/// A task of a push, other than a removal.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum PushTask {
    /// Send a file, unless the store has its content. The size is in bytes.
    Send {
        path: TreePath,
        size: u64,
        known: KnownObject,
    },
    /// Note an entry without content to send.
    Note(TreePath, Synced),
}

/// What the state knows about the object under the key of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum KnownObject {
    /// There is none.
    Nothing,
    /// Its content differs, or is unknown.
    Something,
    /// It is the version with this digest and these attributes.
    Version {
        sha256: [u8; 32],
        attributes: Attributes,
    },
}

/// The work of a push.
#[derive(Debug, Default)]
pub(crate) struct PushPlan {
    /// When the scan began. The next scan needs it.
    pub(crate) began: Moment,
    /// Mount points below the source. The next scan needs them.
    pub(crate) mounts: Vec<MountPoint>,
    /// Ordered by path.
    pub(crate) tasks: Spool<PushTask>,
    /// Entries that are gone.
    pub(crate) removed: Spool<(TreePath, Synced)>,
    /// Entries whose place another one has taken: files in former directories, and
    /// files that are links now.
    pub(crate) displaced: Spool<(TreePath, Synced)>,
    /// Files whose place a directory has taken.
    pub(crate) replaced: Spool<(TreePath, Synced)>,
    /// Files to send or to compare.
    pub(crate) files: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// Regular files in the state.
    pub(crate) known_files: u64,
    /// Those of them that are gone or displaced.
    pub(crate) removed_files: u64,
    /// Files that are gone, and that the store lacks or has damaged.
    pub(crate) lost: Vec<TreePath>,
    /// The numbers and failures of the scan.
    pub(crate) report: RunReport,
    /// Whether content is compared even without a sign of a change.
    by_content: bool,
    /// A former directory, whose members are displaced.
    displacing: Option<TreePath>,
    unsettled: Unsettled,
}

impl PushPlan {
    /// Makes the plan; `stop` ends it early.
    pub(crate) fn make(
        job: &PushJob,
        record: &JobRecord,
        stop: &dyn Fn() -> bool,
    ) -> Result<Self, RunProblem> {
        let mut plan = Self {
            began: now(),
            by_content: job.settings.run.detect == Detect::Content,
            unsettled: Unsettled::of(&job.state, job.id)?,
            ..Self::default()
        };
        let options = ScanOptions {
            one_file_system: job.settings.one_file_system,
            mounted: record.mounts.clone(),
        };
        let settings = &job.settings;
        let mut scan = Scan::open(&settings.source, settings.run.filter.clone(), options)?;
        let known = job.state.entries(job.id)?;
        let known = known.map(|entry| entry.map(|(path, synced)| known_of(path, synced)));
        for change in compare(&mut scan, known, record.scanned.unwrap_or_default()) {
            if stop() {
                return Err(RunProblem::Stopped);
            }
            plan.sort(change?)?;
        }
        let outcome = scan.finish();
        plan.report.specials = outcome.specials;
        plan.mounts = outcome.mounts;
        Ok(plan)
    }

    /// Takes the uploads that will not continue.
    pub(crate) fn take_abandoned(&mut self) -> HashMap<TreePath, UploadRecord> {
        std::mem::take(&mut self.unsettled.uploads)
    }

    fn sort(&mut self, change: EntryChange) -> Result<(), RunProblem> {
        match change {
            EntryChange::Same(known) => {
                self.met(Some(&known));
                let path = &known.entry.path;
                match (&known.entry.kind, version_of(&known)) {
                    (EntryKind::File(state), _) if self.unsettled.may_be_replaced(path) => {
                        self.send(path, *state, KnownObject::Something)
                    }
                    (EntryKind::File(state), Some(version)) if self.by_content => {
                        self.send(path, *state, version)
                    }
                    (EntryKind::File(_), _) => {
                        self.report.same += 1;
                        Ok(())
                    }
                    _ => Ok(()),
                }
            }
            EntryChange::Added(entry) => {
                self.met(None);
                self.bring(&entry, KnownObject::Nothing)
            }
            EntryChange::Changed { entry, old } => {
                self.met(Some(&old));
                match (same_at_first_sight(&entry, &old), version_of(&old)) {
                    (Some(state), Some(version)) => self.send(&entry.path, state, version),
                    _ => {
                        self.displace(&entry, old)?;
                        self.bring(&entry, KnownObject::Something)
                    }
                }
            }
            EntryChange::Touched { entry, old } => {
                self.met(Some(&old));
                self.bring(&entry, version_of(&old).unwrap_or(KnownObject::Something))
            }
            EntryChange::Attributes { entry, old } => {
                self.met(Some(&old));
                if self.unsettled.may_be_replaced(&entry.path) {
                    self.bring(&entry, KnownObject::Something)
                } else {
                    self.note(&entry, old.sha256)
                }
            }
            EntryChange::Removed(old) => self.remove(old),
            EntryChange::Unknown(unreadable) => {
                self.unsettled.unreadable(&unreadable.path);
                let why = match unreadable.cause {
                    UnreadableCause::Unmounted => EntryFailure::Unmounted,
                    cause => EntryFailure::Unreadable(cause.to_string()),
                };
                self.report.failed(unreadable.path, why);
                Ok(())
            }
        }
    }

    fn met(&mut self, old: Option<&KnownEntry>) {
        self.report.entries += 1;
        self.known_files += u64::from(old.is_some_and(|old| is_file(&old.entry)));
    }

    /// An entry has taken the place of another kind.
    fn displace(&mut self, entry: &TreeEntry, old: KnownEntry) -> Result<(), RunProblem> {
        if matches!(old.entry.kind, EntryKind::Directory) {
            self.displacing = Some(old.entry.path);
        } else if is_file(&old.entry)
            && !is_file(entry)
            && let Some(synced) = synced_of(&old.entry, old.sha256)
        {
            let is_directory = matches!(entry.kind, EntryKind::Directory);
            let list = if is_directory {
                &mut self.replaced
            } else {
                self.removed_files += 1;
                &mut self.displaced
            };
            list.push(&(old.entry.path, synced))?;
        }
        Ok(())
    }

    fn remove(&mut self, old: KnownEntry) -> Result<(), RunProblem> {
        let is_file = u64::from(is_file(&old.entry));
        self.known_files += is_file;
        let Some(synced) = synced_of(&old.entry, old.sha256) else {
            return Ok(());
        };
        self.removed_files += is_file;
        let path = old.entry.path;
        if self.unsettled.damaged.contains(&path) {
            self.lost.push(path.clone());
        }
        let is_displaced = |by: &TreePath| path.is_at_or_below(by);
        let list = match self.displacing.as_ref().is_some_and(is_displaced) {
            true => &mut self.displaced,
            false => &mut self.removed,
        };
        list.push(&(path, synced))
    }

    /// An entry that has to be sent or noted.
    fn bring(&mut self, entry: &TreeEntry, known: KnownObject) -> Result<(), RunProblem> {
        match entry.kind {
            EntryKind::File(state) => self.send(&entry.path, state, known),
            EntryKind::Directory | EntryKind::Symlink(_) => self.note(entry, None),
        }
    }

    fn note(&mut self, entry: &TreeEntry, sha256: Option<[u8; 32]>) -> Result<(), RunProblem> {
        match synced_of(entry, sha256) {
            Some(synced) => self.tasks.push(&PushTask::Note(entry.path.clone(), synced)),
            None => Ok(()),
        }
    }

    fn send(
        &mut self,
        path: &TreePath,
        state: FileState,
        known: KnownObject,
    ) -> Result<(), RunProblem> {
        self.unsettled.will_send(path, &state);
        self.files += 1;
        self.bytes += state.size;
        let is_certain = known == KnownObject::Nothing || !self.unsettled.may_be_replaced(path);
        self.tasks.push(&PushTask::Send {
            path: path.clone(),
            size: state.size,
            known: if is_certain {
                known
            } else {
                KnownObject::Something
            },
        })
    }
}

/// Results of earlier runs that the plan has to respect: objects whose version is
/// unknown, and uploads to be continued.
#[derive(Debug, Default)]
struct Unsettled {
    /// Entries whose object may have been replaced.
    replacing: HashSet<TreePath>,
    /// Entries whose object is missing or damaged.
    damaged: HashSet<TreePath>,
    /// Uploads that will not continue, as far as is known yet.
    uploads: HashMap<TreePath, UploadRecord>,
}

impl Unsettled {
    fn of(state: &StateDatabase, job: JobId) -> Result<Self, StateError> {
        Ok(Self {
            replacing: state.replacing(job)?,
            damaged: state.damaged(job)?,
            uploads: state.uploads(job)?.into_iter().collect(),
        })
    }

    /// Whether the store may have other content than the state says. Then the file is
    /// sent in any case.
    fn may_be_replaced(&self, path: &TreePath) -> bool {
        self.replacing.contains(path) || self.damaged.contains(path)
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
}

/// The state of a file whose size and time of change are the same as before. It
/// differs only in numbers that copying a disk or renumbering inodes changes as well,
/// so reading it is cheaper than sending it.
fn same_at_first_sight(entry: &TreeEntry, old: &KnownEntry) -> Option<FileState> {
    let (EntryKind::File(now), EntryKind::File(then)) = (&entry.kind, &old.entry.kind) else {
        return None;
    };
    let is_same_time = entry.attributes.modified == old.entry.attributes.modified;
    (is_same_time && now.size == then.size).then_some(*now)
}

fn is_file(entry: &TreeEntry) -> bool {
    matches!(entry.kind, EntryKind::File(_))
}

/// The version of a file that the store has, according to the state.
fn version_of(known: &KnownEntry) -> Option<KnownObject> {
    Some(KnownObject::Version {
        sha256: known.sha256?,
        attributes: known.entry.attributes,
    })
}

fn known_of(path: TreePath, synced: Synced) -> KnownEntry {
    let (kind, sha256) = match synced.kind {
        SyncedKind::File { state, sha256 } => (EntryKind::File(state), Some(sha256)),
        SyncedKind::Directory => (EntryKind::Directory, None),
        SyncedKind::Symlink(target) => {
            let target = OsStr::from_bytes(&target);
            (EntryKind::Symlink(target.into()), None)
        }
    };
    KnownEntry {
        entry: TreeEntry {
            path,
            kind,
            attributes: synced.attributes,
        },
        sha256,
    }
}

/// `None` for a file without a known digest.
fn synced_of(entry: &TreeEntry, sha256: Option<[u8; 32]>) -> Option<Synced> {
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
            damaged: HashSet::from([path("rotten")]),
            uploads: names.map(|name| (path(name), upload(1))).into(),
        };
        unsettled.will_send(&path("same"), &version(1));
        unsettled.will_send(&path("changed"), &version(2));
        unsettled.will_send(&path("new"), &version(1));
        unsettled.unreadable(&path("d"));
        assert!(unsettled.may_be_replaced(&path("same")));
        assert!(unsettled.may_be_replaced(&path("rotten")));
        assert!(!unsettled.may_be_replaced(&path("changed")));
        let mut left: Vec<_> = unsettled
            .uploads
            .into_keys()
            .map(|path| path.to_string())
            .collect();
        left.sort();
        assert_eq!(left, ["changed", "dx", "gone"]);
    }
}
