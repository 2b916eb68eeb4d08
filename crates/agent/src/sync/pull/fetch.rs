//! Fetches files, several at once, and installs them in batches.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use fairbat::blocking::{LostThread, blocking};
use fairbat::transport::RequestContext;
use futures_util::TryStreamExt;
use sha2::{Digest, Sha256};
use tokio::task::{JoinError, JoinHandle, JoinSet};
use tokio::time::MissedTickBehavior;

use super::plan::WantedFile;
use super::run::{PullRun, disk, spool};
use crate::entry::TreePath;
use crate::object_name;
use crate::store::{StoreError, StoreErrorKind};
use crate::sync::install::{FinishedFile, TemporaryFile, is_of_disk};
use crate::sync::report::{EntryFailure, PUSH_UNDER_WAY, RunProblem, RunReport};
use crate::sync::retry_store::MayBeStoreError;
use crate::sync::spool::Spooled;

/// Files that are open beyond the number of connections.
const FILES_AHEAD: usize = 2;

/// A batch is installed when it has this many files, each of which is open, ...
const MAX_BATCH_FILES: usize = 128;
/// ... or this many bytes, which the disk then takes at once, ...
const MAX_BATCH_BYTES: u64 = 64 * 1024 * 1024;
/// ... or this long after the last batch. A killed process loses its batch.
const BATCH_INTERVAL: Duration = Duration::from_secs(5);

/// Why a file was not fetched.
#[derive(Debug, thiserror::Error)]
enum FetchError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The object is not the version of the manifest: it was replaced or deleted since.
    /// An immediate retry would bring the same.
    #[error("{0}")]
    Newer(EntryFailure),
    #[error("{0}")]
    Disk(#[from] io::Error),
    #[error("a task ended without a result")]
    Lost,
}

impl From<LostThread> for FetchError {
    fn from(_: LostThread) -> Self {
        Self::Lost
    }
}

impl MayBeStoreError for FetchError {
    fn store_error(&self) -> Option<&StoreError> {
        match self {
            Self::Store(error) => Some(error),
            Self::Newer(_) | Self::Disk(_) | Self::Lost => None,
        }
    }
}

impl PullRun {
    /// Fetches files. Returns how many the store has in a newer version.
    pub(crate) async fn fetch_all(
        self: &Arc<Self>,
        mut files: Spooled<WantedFile>,
        report: &mut RunReport,
    ) -> Result<u64, RunProblem> {
        let max = self.settings.connections as usize + FILES_AHEAD;
        let mut running = JoinSet::new();
        let mut queue = InstallQueue::new(Arc::clone(self));
        let mut newer = 0;
        let mut tick = tokio::time::interval(BATCH_INTERVAL);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            while running.len() < max
                && let Some(file) = files.next()
            {
                let file = file.map_err(|error| spool(&error))?;
                let run = Arc::clone(self);
                running.spawn(async move {
                    let done = run.fetch(&file).await;
                    (file.path, file.size, done)
                });
            }
            tokio::select! {
                ended = running.join_next() => match ended {
                    Some(ended) => newer += self.ended(ended, &mut queue, report).await?,
                    None => break,
                },
                _ = tick.tick() => queue.begin(report).await?,
            }
        }
        queue.begin(report).await?;
        queue.wait(report).await?;
        Ok(newer)
    }

    /// Handles a fetched file. Returns how many were newer, 0 or 1.
    async fn ended(
        &self,
        ended: EndedFetch,
        queue: &mut InstallQueue,
        report: &mut RunReport,
    ) -> Result<u64, RunProblem> {
        let (path, size, done) = ended.map_err(|_| RunProblem::Lost)?;
        let failure = match done {
            Ok(finished) => {
                self.progress.file_done(0);
                queue.push(finished, size);
                if queue.is_full() {
                    queue.begin(report).await?;
                }
                return Ok(0);
            }
            Err(FetchError::Lost) => return Err(RunProblem::Lost),
            Err(FetchError::Store(error)) if error.is_of_store() => return Err(error.into()),
            Err(FetchError::Disk(error)) if is_of_disk(&error) => {
                return Err(disk(&path.under(&self.settings.to), &error));
            }
            Err(error) => error,
        };
        self.progress.file_done(size);
        tracing::warn!(file = %path, error = %failure, "not fetched");
        let (newer, failure) = match failure {
            FetchError::Newer(failure) => (1, failure),
            FetchError::Store(error) => (0, EntryFailure::Store(error)),
            other => (0, EntryFailure::Unwritable(other.to_string())),
        };
        report.failed(path, failure);
        Ok(newer)
    }

    async fn fetch(&self, wanted: &WantedFile) -> Result<FinishedFile, FetchError> {
        let fetch = || async {
            let request = self.store.begin_request(wanted.size);
            let finished = self.fetch_once(wanted, request.context()).await?;
            request.finish();
            Ok(finished)
        };
        self.store.with_retry(fetch).await
    }

    async fn fetch_once(
        &self,
        wanted: &WantedFile,
        context: RequestContext,
    ) -> Result<FinishedFile, FetchError> {
        let key = object_name::under(&self.settings.prefix, &wanted.path);
        let mut content = match self.store.get(&key, None, context).await {
            Err(error) if error.kind == StoreErrorKind::Missing => {
                let error = error.with_hint(PUSH_UNDER_WAY);
                return Err(FetchError::Newer(EntryFailure::Store(error)));
            }
            other => other?,
        };
        let installer = Arc::clone(&self.installer);
        let mut writing = FileWriter {
            file: blocking(move || installer.begin()).await??,
            hash: Sha256::new(),
            bytes: 0,
        };
        while let Some(piece) = content.try_next().await? {
            if writing.bytes + piece.len() as u64 > wanted.size {
                return Err(FetchError::Newer(EntryFailure::Newer));
            }
            writing = writing.write(piece).await?;
        }
        if (writing.bytes, writing.hash.finalize().into()) != (wanted.size, wanted.sha256) {
            return Err(FetchError::Newer(EntryFailure::Newer));
        }
        let (path, attributes) = (wanted.path.clone(), wanted.attributes);
        let installer = Arc::clone(&self.installer);
        Ok(blocking(move || installer.finish(writing.file, path, &attributes)).await??)
    }
}

/// A file that is being written.
struct FileWriter {
    file: TemporaryFile,
    hash: Sha256,
    bytes: u64,
}

impl FileWriter {
    async fn write(mut self, piece: bytes::Bytes) -> Result<Self, FetchError> {
        blocking(move || {
            self.hash.update(&piece);
            self.bytes += piece.len() as u64;
            self.file.file.write_all(&piece)?;
            Ok(self)
        })
        .await?
    }
}

/// The fetched files: a batch that is gathered, while the one before it is
/// installed.
struct InstallQueue {
    run: Arc<PullRun>,
    batch: Vec<FinishedFile>,
    bytes: u64,
    under_way: Option<JoinHandle<io::Result<BatchResult>>>,
}

type BatchResult = Vec<(TreePath, io::Result<()>)>;

impl InstallQueue {
    fn new(run: Arc<PullRun>) -> Self {
        Self {
            run,
            batch: Vec::new(),
            bytes: 0,
            under_way: None,
        }
    }

    fn push(&mut self, file: FinishedFile, size: u64) {
        self.batch.push(file);
        self.bytes += size;
    }

    fn is_full(&self) -> bool {
        self.batch.len() >= MAX_BATCH_FILES || self.bytes >= MAX_BATCH_BYTES
    }

    /// Begins to install the gathered batch.
    async fn begin(&mut self, report: &mut RunReport) -> Result<(), RunProblem> {
        if self.batch.is_empty() {
            return Ok(());
        }
        self.wait(report).await?;
        self.bytes = 0;
        let (run, batch) = (Arc::clone(&self.run), std::mem::take(&mut self.batch));
        self.under_way = Some(tokio::task::spawn_blocking(move || {
            run.installer.install(batch, &|| run.is_stopped())
        }));
        Ok(())
    }

    /// Waits until the active batch is installed.
    async fn wait(&mut self, report: &mut RunReport) -> Result<(), RunProblem> {
        let Some(under_way) = self.under_way.take() else {
            return Ok(());
        };
        let to = &self.run.settings.to;
        let installed = under_way.await.map_err(|_| RunProblem::Lost)?;
        for (path, done) in installed.map_err(|error| disk(to, &error))? {
            match done {
                Ok(()) => report.sent += 1,
                Err(error) if is_of_disk(&error) => return Err(disk(&path.under(to), &error)),
                Err(error) => {
                    tracing::warn!(file = %path, %error, "not installed");
                    report.failed(path, EntryFailure::Unwritable(error.to_string()));
                }
            }
        }
        Ok(())
    }
}

type EndedFetch = Result<(TreePath, u64, Result<FinishedFile, FetchError>), JoinError>;
