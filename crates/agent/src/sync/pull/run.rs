//! A running pull, as its parts see it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::entry::TreePath;
use crate::manifest::JobKey;
use crate::state::StateDatabase;
use crate::sync::install::{Installer, is_of_disk};
use crate::sync::progress::RunProgress;
use crate::sync::report::{EntryFailure, MoveError, RunProblem, RunReport};
use crate::sync::retry_store::RetryStore;
use crate::sync::settings::RunSettings;

/// Pauses before a pull looks for a new manifest, when the store has newer content than
/// the manifest: a running push publishes about once a minute. About four minutes in
/// all.
pub const MANIFEST_PAUSES: [Duration; 4] = [
    Duration::from_secs(15),
    Duration::from_secs(30),
    Duration::from_secs(60),
    Duration::from_secs(120),
];

/// What a pull does.
#[derive(Debug, Clone)]
pub struct PullSettings {
    /// What any run has.
    pub run: RunSettings,
    /// The directory to fill. It is made if needed.
    pub to: PathBuf,
    /// Whether files get their set-user-ID and set-group-ID bits.
    pub setuid: bool,
    /// Whether an earlier run has filled the directory. Then, if it is empty, a disk is
    /// not mounted, and the pull refuses.
    pub was_filled: bool,
    /// The job of this agent that pushes there, and the state, which knows whether the store
    /// has changed since the manifest. `None` if another agent pushes there.
    pub pusher: Option<(StateDatabase, String)>,
    /// Pauses before each new look at the manifest while a push is under way.
    /// [`MANIFEST_PAUSES`], except in tests.
    pub pauses: Vec<Duration>,
}

/// A running pull.
pub(crate) struct PullRun {
    pub(crate) settings: PullSettings,
    /// What the manifests have to be authenticated with.
    pub(crate) key: Option<JobKey>,
    pub(crate) store: RetryStore,
    pub(crate) progress: RunProgress,
    pub(crate) installer: Arc<Installer>,
    pub(crate) stopped: Arc<AtomicBool>,
}

impl PullRun {
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    pub(crate) fn check_stopped(&self) -> Result<(), RunProblem> {
        match self.is_stopped() {
            true => Err(RunProblem::Stopped),
            false => Ok(()),
        }
    }

    /// Notes an entry that could not be installed in the report.
    ///
    /// # Errors
    /// The error concerns the whole disk.
    pub(crate) fn note_failure(
        &self,
        path: TreePath,
        error: &io::Error,
        report: &mut RunReport,
    ) -> Result<(), RunProblem> {
        let error = self.disk_failure(&path, error);
        report.note(path, error, "not installed")
    }

    /// The failure of an entry by an error of the disk, which may concern all entries.
    pub(crate) fn disk_failure(&self, path: &TreePath, error: &io::Error) -> MoveError {
        match is_of_disk(error) {
            true => MoveError::Run(disk(&path.under(&self.settings.to), error)),
            false => MoveError::Entry(EntryFailure::Unwritable(error.to_string())),
        }
    }
}

pub(crate) fn disk(path: &Path, error: &io::Error) -> RunProblem {
    RunProblem::Disk(format!("{}: {error}", path.display()))
}
