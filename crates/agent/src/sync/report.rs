//! What became of a run.

use std::path::PathBuf;

use crate::entry::TreePath;
use crate::status::Retries;
use crate::store::StoreError;

use super::ledger::ProgressTotals;
use super::plan::Totals;

/// Files that could not be brought in step are named up to this number.
const NAMED: usize = 20;

/// What to do about contents that a manifest does not know.
pub(super) const PUSH_UNDER_WAY: &str = "run it again when the push is through; if none is under \
    way, run the job that pushes: it goes on with the one that was broken off";

/// What became of a run: in numbers, and what stood in the way.
#[derive(Debug, Clone, Default)]
pub struct RunReport {
    /// Entries of the source.
    pub entries: u64,
    /// Files whose content the store had.
    pub same: u64,
    /// Files sent.
    pub sent: u64,
    /// Entries without content, or only with new attributes, that were noted.
    pub noted: u64,
    /// Files that were gone before they could be read.
    pub gone: u64,
    /// Files deleted from the store.
    pub deleted: u64,
    /// Unfinished uploads that nobody remembered, and that were given up.
    pub orphans: u64,
    /// Requests that were tried again, by reason.
    pub retries: Retries,
    /// Requests that carried data.
    pub requests: u64,
    /// Entries that a pull could not give their owner, because the agent is not
    /// root.
    pub unowned: u64,
    /// Devices, sockets and pipes, which are left out.
    pub specials: u64,
    /// Files that are not in step: the first of them, and why.
    pub failures: Vec<(TreePath, EntryFailure)>,
    /// How many there are.
    pub failed: u64,
    /// Those of them that changed while they were read, or in the store since its
    /// manifest was written.
    pub changed: u64,
    /// Why the run ended early, if it did.
    pub problem: Option<RunProblem>,
}

/// Why a file is not in step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EntryFailure {
    /// It changed while it was read, each time.
    #[error("it kept changing while it was read")]
    Changed,
    /// The store has another version than its manifest says.
    #[error("it changed in the store since the manifest was written: a push is under way")]
    Newer,
    /// It, or a directory, cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// It cannot be put where it belongs.
    #[error("{0}")]
    Unwritable(String),
    /// The store does not take it, or does not have it.
    #[error("{0}")]
    Store(StoreError),
}

impl EntryFailure {
    /// What to do about it; empty when there is nothing to advise.
    #[must_use]
    pub fn hint(&self) -> &str {
        match self {
            Self::Changed => {
                "run the job while nobody writes to it, or push a snapshot of its disk"
            }
            Self::Unreadable(_) => {
                "give the agent the right to read it, or exclude it from the job"
            }
            Self::Unwritable(_) => "check the disk, and whether the agent may write there",
            Self::Store(error) => &error.hint,
            Self::Newer => PUSH_UNDER_WAY,
        }
    }
}

/// Why a run ended early. What was done is done, and the next run goes on from
/// there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunProblem {
    /// The source cannot be scanned.
    #[error("{0}")]
    Scan(String),
    /// There is nothing in a source that is mirrored.
    #[error("{} is empty: nothing is deleted for that", .0.display())]
    EmptySource(PathBuf),
    /// There is nothing in a directory that an earlier pull has filled.
    #[error("nothing is in {} any more: nothing is fetched for that", .0.display())]
    EmptyTarget(PathBuf),
    /// There is nothing in the store that a mirror could be in step with.
    #[error("nothing that is to be kept is in the store: nothing is deleted for that")]
    EmptyOrigin,
    /// Another run fills the same directory.
    #[error("another pull or restore is at work in {}", .0.display())]
    Busy(PathBuf),
    /// More would be deleted than may be.
    #[error("{gone} files would be deleted, and only {allowed} may be: nothing is")]
    TooManyDeletions {
        /// Files that are gone from the source.
        gone: u64,
        /// Files that may be deleted.
        allowed: u64,
    },
    /// The store as a whole.
    #[error("{0}")]
    Store(StoreError),
    /// What is remembered.
    #[error("{0}")]
    State(String),
    /// The manifest.
    #[error("{0}")]
    Manifest(String),
    /// The disk that files are fetched to, or with temporary files.
    #[error("{0}")]
    Disk(String),
    /// There is no such job to restore.
    #[error("job {0} is not configured any more")]
    NoJob(String),
    /// There is nothing to pull.
    #[error("nothing was pushed to this place in the store yet")]
    NothingPushed,
    /// What was pushed is not all yet, so that nothing can be said to be gone.
    #[error("not all files are in the store yet: the first push is still under way")]
    FirstPush,
    /// Somebody else pushes to the same place.
    #[error("another agent pushes to this place in the store")]
    OtherWriter,
    /// Somebody stopped it.
    #[error("stopped")]
    Stopped,
    /// A task ended without a result.
    #[error("a task ended without a result")]
    Lost,
}

impl RunProblem {
    /// What to do about it; empty when there is nothing to advise.
    #[must_use]
    pub fn hint(&self) -> &str {
        match self {
            Self::Store(error) => &error.hint,
            Self::EmptySource(_) => {
                "mount the disk it is on; if it is meant to be empty, delete the copy by hand"
            }
            Self::EmptyTarget(_) => {
                "mount the disk it is on; to fill it anew, restore the job to it by hand"
            }
            Self::EmptyOrigin => {
                "check the path in the store, and include and exclude of the job; if that is \
                 meant, empty the directory by hand"
            }
            Self::Busy(_) => "wait until that has ended, or take another directory",
            Self::TooManyDeletions { .. } => {
                "if that is meant, raise max_delete of the job for one run"
            }
            Self::Scan(_) => "check the source of the job",
            Self::State(_) => "check the disk with the state of the agent",
            Self::Manifest(_) => "check the disk with temporary files, and the store",
            Self::Disk(_) => "check the disk, its room, and whether the agent may write there",
            Self::NoJob(_) => "configure it again, and then restore it anew",
            Self::NothingPushed => "check the path in the store, or run the job that pushes first",
            Self::FirstPush => PUSH_UNDER_WAY,
            Self::OtherWriter => "give each job a place of its own",
            Self::Stopped => "",
            Self::Lost => "this is a defect of fairbat-agent",
        }
    }
}

impl RunReport {
    /// Whether everything that was seen is in step.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.failed == 0 && self.problem.is_none()
    }

    /// Takes over what failed elsewhere.
    pub(super) fn add_failures(&mut self, other: Self) {
        self.failed += other.failed;
        self.changed += other.changed;
        let room = NAMED.saturating_sub(self.failures.len());
        self.failures.extend(other.failures.into_iter().take(room));
    }

    /// What was counted while it ran.
    pub(crate) fn count(&mut self, standing: &ProgressTotals) {
        self.retries = standing.retries;
        self.requests = standing.requests;
    }

    pub(super) fn scanned(&mut self, totals: &Totals) {
        self.entries = totals.entries;
        self.same = totals.same;
        self.specials = totals.specials;
        let unreadable = totals.unreadable.iter().cloned();
        for (path, why) in unreadable {
            self.failed(path, EntryFailure::Unreadable(why));
        }
        self.failed = totals.unreadable_count;
    }

    pub(super) fn failed(&mut self, path: TreePath, failure: EntryFailure) {
        self.failed += 1;
        if matches!(failure, EntryFailure::Changed | EntryFailure::Newer) {
            self.changed += 1;
        }
        if self.failures.len() < NAMED {
            self.failures.push((path, failure));
        }
    }
}
