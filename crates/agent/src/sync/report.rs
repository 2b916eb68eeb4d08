//! The outcome of a run: numbers, failures, and why it ended early.

use std::path::PathBuf;

use fairbat::blocking::{LostThread, blocking};
use tokio::task::JoinError;

use super::damaged::DamagedFiles;
use super::progress::RunProgress;
use super::retry_store::MayBeStoreError;
use crate::config::MaxDelete;
use crate::confine::{CONFINED_HINT, Confined};
use crate::entry::TreePath;
use crate::manifest::DAMAGED_KEY_HINT;
use crate::reserved::{RESERVED_HINT, Reserved};
use crate::scan::ScanError;
use crate::state::{DAMAGED_HINT, JobId, StateDatabase, StateError};
use crate::status::Retries;
use crate::store::StoreError;

/// How many failed files a report names.
const MAX_NAMED_FAILURES: usize = 20;

/// What to do about a first push that is not complete.
const PUSH_UNDER_WAY: &str = "run it again when the push is through; if none is under \
    way, run the job that pushes: it goes on with the one that was broken off";

/// What to do about content that the manifest does not know.
pub(crate) const NEWER_OR_DAMAGED: &str = "if no push is under way, the store is damaged: where \
    the job pushes, run `fairbat-agent check --store JOB` and then `fairbat start JOB`, which sends \
    again what is damaged; if one is, run this again when it is through";

/// What to do about a former mount point.
const ACCEPT_UNMOUNTED: &str = "mount it again; if it stays unmounted, say so once: \
    fairbat start JOB --accept-unmounted PATH, where PATH is absolute";

/// The outcome of a run.
#[derive(Debug, Clone, Default)]
pub struct RunReport {
    /// Entries of the source.
    pub entries: u64,
    /// Files whose content was there already.
    pub same: u64,
    /// Files sent.
    pub sent: u64,
    /// Entries that changed without content to send.
    pub noted: u64,
    /// Files that were gone before they could be read.
    pub gone: u64,
    /// Files deleted from the store.
    pub deleted: u64,
    /// Abandoned uploads that were aborted.
    pub orphans: u64,
    /// Retried requests, by reason.
    pub retries: Retries,
    /// Requests that carried data.
    pub requests: u64,
    /// Files that a pull has not given their set-user-ID or set-group-ID bits.
    pub setuid_dropped: u64,
    /// Devices, sockets and pipes, which are left out.
    pub specials: u64,
    /// The first failed entries, and why they failed.
    pub failures: Vec<(TreePath, EntryFailure)>,
    /// Number of failed entries.
    pub failed: u64,
    /// Failed entries that changed while they were read, or changed in the store
    /// after its manifest was written.
    pub changed: u64,
    /// What the store lacks or has damaged at the end, as far as checks have found and
    /// this run could not send it again. `None` if the run did not get that far.
    pub damaged: Option<DamagedFiles>,
    /// What it has left out on purpose, in sentences without names of files.
    pub notes: Vec<String>,
    /// Why the run ended early, if it did.
    pub problem: Option<RunProblem>,
}

/// Why an entry failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EntryFailure {
    /// It changed during each attempt to read it.
    #[error("it kept changing while it was read")]
    Changed,
    /// The store has another version than the manifest.
    #[error("the store has another content than its manifest says")]
    Newer,
    /// It, or a directory, cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// It was, or contained, a mount point.
    #[error("is no longer mounted")]
    Unmounted,
    /// It cannot be put into its place.
    #[error("{0}")]
    Unwritable(String),
    /// The store refused it, or does not have it.
    #[error("{0}")]
    Store(StoreError),
    /// A check has not found it in the store.
    #[error("the store does not have it any more")]
    Missing,
    /// A check has found another content in the store.
    #[error("the store has another content than was sent")]
    Damaged,
    /// A check has found it missing or damaged in the store, and the source has it no more.
    #[error("the store has no intact copy, and the source has none to send again")]
    Lost,
    /// A check could not use the manifests.
    #[error("{0}")]
    Manifests(String),
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
            Self::Unmounted => ACCEPT_UNMOUNTED,
            Self::Unwritable(_) => "check the disk, and whether the agent may write there",
            Self::Store(error) => &error.hint,
            Self::Newer => NEWER_OR_DAMAGED,
            Self::Missing | Self::Damaged => {
                "run the job: it sends the file again if the source still has it; and check the \
                 store"
            }
            Self::Lost => {
                "put the file back where it was; or set delete = \"mirror\", which deletes all that \
                 the source does not have any more"
            }
            Self::Manifests(_) => "run the job: it writes the manifests anew; and check the store",
        }
    }

    /// Whether the store answers, and does not have what was sent.
    pub(crate) fn is_of_object(&self) -> bool {
        matches!(self, Self::Missing | Self::Damaged)
    }
}

/// Why a run ended early. The next run continues where it ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunProblem {
    /// The source cannot be scanned.
    #[error("{0}")]
    Scan(String),
    /// The source, or what a local store is on, was a mount point.
    #[error("nothing is mounted at {}, as there was before", .0.display())]
    Unmounted(PathBuf),
    /// This path is accepted as unmounted, and something was mounted only at others.
    #[error("nothing was mounted at {} before; what was mounted: {}", .0.display(), list(.1))]
    NotMounted(PathBuf, Vec<PathBuf>),
    /// The source of a mirror is empty.
    #[error("{} is empty: nothing is deleted for that", .0.display())]
    EmptySource(PathBuf),
    /// A directory that an earlier pull has filled is empty.
    #[error("nothing is in {} any more: nothing is fetched for that", .0.display())]
    EmptyTarget(PathBuf),
    /// The store has nothing for a mirror.
    #[error("nothing that is to be kept is in the store: nothing is deleted for that")]
    EmptyOrigin,
    /// Another run is filling the same directory.
    #[error("another pull or restore is at work in {}", .0.display())]
    Busy(PathBuf),
    /// More files would be deleted than allowed.
    #[error("{gone} files would be deleted, and only {allowed} may be: nothing is")]
    TooManyDeletions {
        /// Files that are gone from the source.
        gone: u64,
        /// Files that may be deleted.
        allowed: u64,
    },
    /// The store as a whole failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The state.
    #[error("{0}")]
    State(String),
    /// The state is not one that this version can read.
    #[error("the file of the state is damaged: {0}")]
    DamagedState(String),
    /// The file with the key of the job has no key.
    #[error("{0}")]
    DamagedKey(String),
    /// The manifest.
    #[error("{0}")]
    Manifest(String),
    /// The manifests do not come from the job.
    #[error("the manifests in the store {0}: nothing is taken from them")]
    NotGenuine(&'static str),
    /// The disk of the fetched files or of temporary files.
    #[error("{0}")]
    Disk(String),
    /// A source or a destination belongs to the agent itself.
    #[error(transparent)]
    Reserved(#[from] Reserved),
    /// The process has given up the right to write to the destination.
    #[error(transparent)]
    Confined(#[from] Confined),
    /// The job to restore does not exist.
    #[error("job {0} is not configured any more")]
    NoJob(String),
    /// Nothing has been pushed yet.
    #[error("nothing was pushed to this place in the store yet")]
    NothingPushed,
    /// This agent has not pushed there yet, so it cannot say what should be there.
    #[error("this agent has not pushed to this place in the store yet")]
    NeverPushed,
    /// The first push is not complete, so nothing can be deleted.
    #[error("not all files are in the store yet: the first push is still under way")]
    FirstPush,
    /// Another agent pushes to the same place.
    #[error("another agent pushes to this place in the store")]
    OtherWriter,
    /// It was stopped.
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
            Self::Unmounted(_) => ACCEPT_UNMOUNTED,
            Self::NotMounted(..) => "accept each of those that stay unmounted by its own path",
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
            Self::State(_) => "check the disk with the state of the agent, and its room",
            Self::DamagedState(_) => DAMAGED_HINT,
            Self::DamagedKey(_) => DAMAGED_KEY_HINT,
            Self::Manifest(_) => {
                "check the disk with temporary files; if the store is damaged, run `fairbat-agent \
                 check --store` and then the job that pushes there; if the state of that job is \
                 lost, delete .fairbat/manifest/current.json there, and it sends all files again"
            }
            Self::NotGenuine(_) => {
                "if the job has a new key, take it from `fairbat-agent key JOB` on the machine \
                 that pushes; otherwise someone else has written to the store: run the job that \
                 pushes, which writes its manifests anew"
            }
            Self::Disk(_) => "check the disk, its room, and whether the agent may write there",
            Self::Reserved(_) => RESERVED_HINT,
            Self::Confined(_) => CONFINED_HINT,
            Self::NoJob(_) => "configure it again, and then restore it anew",
            Self::NothingPushed => "check the path in the store, or run the job that pushes first",
            Self::NeverPushed => "run the job once: it takes over what the store has",
            Self::FirstPush => PUSH_UNDER_WAY,
            Self::OtherWriter => "give each job a place of its own",
            Self::Stopped => "",
            Self::Lost => "this is a defect of fairbat-agent",
        }
    }

    /// The kind of problem, without names of files or servers. A job's own source and
    /// destination may be named.
    pub(crate) fn summary(&self) -> String {
        let kind = match self {
            Self::Store(error) => return error.kind.summary().to_owned(),
            Self::EmptySource(_)
            | Self::EmptyTarget(_)
            | Self::EmptyOrigin
            | Self::Busy(_)
            | Self::TooManyDeletions { .. }
            | Self::Reserved(_)
            | Self::Confined(_)
            | Self::NoJob(_)
            | Self::NothingPushed
            | Self::NeverPushed
            | Self::NotGenuine(_)
            | Self::FirstPush
            | Self::OtherWriter
            | Self::Stopped
            | Self::Lost => return self.to_string(),
            Self::Scan(_) => "the source cannot be read",
            Self::Unmounted(_) | Self::NotMounted(..) => "a disk is not mounted",
            Self::State(_) | Self::DamagedState(_) => "the state of the agent cannot be used",
            Self::Manifest(_) => "the manifest cannot be used",
            Self::DamagedKey(_) => "the key of the job is damaged",
            Self::Disk(_) => "a disk of this machine failed, or is full",
        };
        kind.to_owned()
    }
}

/// Why a file was not moved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MoveError {
    /// It is gone from the source.
    #[error("it is gone")]
    Gone,
    /// It failed. Other files may succeed.
    #[error(transparent)]
    Entry(EntryFailure),
    /// The run has to end.
    #[error(transparent)]
    Run(#[from] RunProblem),
}

impl RunReport {
    /// That of a run that has failed as a whole.
    pub(crate) fn of_problem(problem: RunProblem) -> Self {
        Self {
            problem: Some(problem),
            ..Self::default()
        }
    }

    /// Whether the run ended well and no entry failed.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.failed == 0 && self.problem.is_none()
    }

    /// Takes over the failures of another report.
    pub(crate) fn add_failures(&mut self, other: Self) {
        self.failed += other.failed;
        self.changed += other.changed;
        let room = MAX_NAMED_FAILURES.saturating_sub(self.failures.len());
        self.failures.extend(other.failures.into_iter().take(room));
    }

    /// Notes how the run ended, and what was counted meanwhile.
    pub(crate) fn end(&mut self, ended: Result<(), RunProblem>, progress: &RunProgress) {
        self.problem = ended.err();
        self.count(progress);
    }

    /// Takes over what was counted during the run.
    pub(crate) fn count(&mut self, progress: &RunProgress) {
        let totals = progress.totals();
        (self.retries, self.requests) = (totals.retries, totals.requests);
    }

    /// Notes that an entry was not moved. Counts it if it is gone. If it failed, logs it
    /// with the text `outcome`.
    ///
    /// # Errors
    /// The run has to end.
    pub(crate) fn note(
        &mut self,
        path: TreePath,
        error: MoveError,
        outcome: &str,
    ) -> Result<(), RunProblem> {
        match error {
            MoveError::Gone => self.gone += 1,
            MoveError::Entry(failure) => {
                tracing::warn!(file = %path, error = %failure, "{outcome}");
                self.failed(path, failure);
            }
            MoveError::Run(problem) => return Err(problem),
        }
        Ok(())
    }

    /// Notes what the store lacks or has damaged.
    ///
    /// # Errors
    /// The state cannot be read.
    pub(crate) async fn note_damaged(
        &mut self,
        state: &StateDatabase,
        job: JobId,
    ) -> Result<(), RunProblem> {
        let state = state.clone();
        self.damaged = Some(blocking(move || DamagedFiles::of(&state, job)).await??);
        Ok(())
    }

    /// Notes that an entry failed.
    pub(crate) fn failed(&mut self, path: TreePath, failure: EntryFailure) {
        self.failed += 1;
        if matches!(failure, EntryFailure::Changed | EntryFailure::Newer) {
            self.changed += 1;
        }
        if self.failures.len() < MAX_NAMED_FAILURES {
            self.failures.push((path, failure));
        }
    }
}

impl From<LostThread> for RunProblem {
    fn from(_: LostThread) -> Self {
        Self::Lost
    }
}

/// The paths, for people.
fn list(paths: &[PathBuf]) -> String {
    let paths: Vec<_> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    match paths.is_empty() {
        true => "nothing".to_owned(),
        false => paths.join(", "),
    }
}

impl From<JoinError> for RunProblem {
    fn from(_: JoinError) -> Self {
        Self::Lost
    }
}

impl From<ScanError> for RunProblem {
    fn from(error: ScanError) -> Self {
        match error {
            ScanError::Unmounted { root } => Self::Unmounted(root),
            ScanError::Open { .. } => Self::Scan(error.to_string()),
        }
    }
}

impl From<StateError> for RunProblem {
    fn from(error: StateError) -> Self {
        match error.is_damage() {
            true => Self::DamagedState(error.to_string()),
            false => Self::State(error.to_string()),
        }
    }
}

impl From<StoreError> for MoveError {
    fn from(error: StoreError) -> Self {
        match error.is_of_store() {
            true => Self::Run(error.into()),
            false => Self::Entry(EntryFailure::Store(error)),
        }
    }
}

impl From<StateError> for MoveError {
    fn from(error: StateError) -> Self {
        Self::Run(error.into())
    }
}

impl From<LostThread> for MoveError {
    fn from(error: LostThread) -> Self {
        Self::Run(error.into())
    }
}

impl MayBeStoreError for MoveError {
    fn store_error(&self) -> Option<&StoreError> {
        match self {
            Self::Entry(EntryFailure::Store(error)) | Self::Run(RunProblem::Store(error)) => {
                Some(error)
            }
            _ => None,
        }
    }
}

impl MayBeStoreError for RunProblem {
    fn store_error(&self) -> Option<&StoreError> {
        match self {
            Self::Store(error) => Some(error),
            _ => None,
        }
    }
}

/// Refuses to delete `gone` of `known` files if that is more than allowed.
pub(crate) fn check_deletions(gone: u64, known: u64, max: MaxDelete) -> Result<(), RunProblem> {
    let allowed = match max {
        MaxDelete::Files(files) => files,
        MaxDelete::Share(share) => (known as f64 * share) as u64,
    };
    if gone > allowed {
        Err(RunProblem::TooManyDeletions { gone, allowed })
    } else {
        Ok(())
    }
}
