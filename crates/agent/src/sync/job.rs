//! One run of a job that pushes, as its parts see it.

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

use fairbat::blocking::blocking;

use super::progress::RunProgress;
use super::retry_store::RetryStore;
use super::settings::{LaneStore, RunSettings};
use crate::config::Verify;
use crate::entry::TreePath;
use crate::object_name;
use crate::state::{JobId, StateChange, StateDatabase, StateError, StateWriter, UploadRecord};
use crate::store::StoreError;

/// What a push does.
#[derive(Debug, Clone)]
pub struct PushSettings {
    /// What any run has.
    pub run: RunSettings,
    /// The source directory.
    pub source: PathBuf,
    /// Identifies the store among all stores, without credentials.
    pub address: String,
    /// Whether other file systems mounted below the source are left out.
    pub one_file_system: bool,
    /// When a file counts as sent.
    pub verify: Verify,
    /// Identifies this agent among those that push to the store; not 0.
    pub identity: u64,
    /// Least time between manifests during the run. Tests change
    /// [`PUBLISH_INTERVAL`](super::PUBLISH_INTERVAL).
    pub publish_interval: Duration,
}

/// What a push works with.
#[derive(Debug, Clone)]
pub struct PushContext {
    /// The state.
    pub state: StateDatabase,
    /// The writer of the state.
    pub writer: StateWriter,
    /// The store.
    pub store: LaneStore,
}

/// A running push.
#[derive(Debug)]
pub(crate) struct PushJob {
    pub(crate) id: JobId,
    pub(crate) settings: PushSettings,
    pub(crate) state: StateDatabase,
    pub(crate) writer: StateWriter,
    pub(crate) store: RetryStore,
    pub(crate) progress: RunProgress,
}

/// An upload in parts that has just begun.
#[derive(Debug)]
pub(crate) struct BegunUpload {
    /// The store's name for it.
    pub(crate) name: String,
    /// Whether no other unknown upload for its key can exist.
    pub(crate) is_only: bool,
}

impl PushJob {
    /// The key of a file in the store.
    pub(crate) fn key(&self, path: &TreePath) -> String {
        object_name::under(&self.settings.run.prefix, path)
    }

    /// Writes a change to the state soon.
    pub(crate) async fn note(&self, change: StateChange) -> Result<(), StateError> {
        self.writer.note(self.id, change).await
    }

    /// Writes a change to the state and waits until it is on the disk.
    pub(crate) async fn keep(&self, change: StateChange) -> Result<(), StateError> {
        self.writer.keep(self.id, change).await
    }

    /// Begins an upload. The state knows that one may exist for this key until
    /// [`StateChange::Certain`], which [`BegunUpload::is_only`] allows.
    pub(crate) async fn begin<E>(&self, key: &str, mark: &str) -> Result<BegunUpload, E>
    where
        E: From<StateError> + From<StoreError>,
    {
        let (state, id) = (self.state.clone(), self.id);
        let is_suspected = match blocking(move || state.beginning(id)).await {
            Ok(suspected) => HashSet::contains(&suspected?, key),
            Err(_) => true,
        };
        self.keep(StateChange::Beginning(key.to_owned())).await?;
        let mut attempts = 0;
        let begun = self.store.with_retry(|| {
            attempts += 1;
            self.store.begin(key, mark)
        });
        let name = begun.await?;
        // The answer of a failed attempt may have been lost.
        let is_only = !is_suspected && attempts == 1;
        Ok(BegunUpload { name, is_only })
    }

    /// Whether an upload with one of these marks made the object under a key.
    pub(crate) async fn was_made_by(
        &self,
        key: &str,
        marks: &[String],
    ) -> Result<bool, StoreError> {
        let mark = self.store.with_retry(|| self.store.mark(key)).await?;
        Ok(mark.is_some_and(|mark| marks.contains(&mark)))
    }

    /// Abandons an upload: aborts it now, or in a later run if the store does not
    /// do that now.
    pub(crate) async fn abandon(
        &self,
        path: &TreePath,
        upload: &UploadRecord,
    ) -> Result<(), StateError> {
        self.keep(StateChange::Left(path.clone())).await?;
        let admission = self.store.admit(0).await;
        let aborted = self.store.abort(&upload.key, &upload.name).await;
        drop(admission);
        match aborted {
            Ok(()) => self.note(StateChange::Aborted(upload.name.clone())).await,
            Err(error) => {
                tracing::warn!(%error, "an upload is left to a later run");
                Ok(())
            }
        }
    }
}
