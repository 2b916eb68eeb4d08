//! Fetches files, several at once, and installs them in batches.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use fairbat::blocking::blocking;
use fairbat::transport::RequestContext;
use futures_util::TryStreamExt;
use sha2::{Digest, Sha256};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::MissedTickBehavior;

use super::plan::WantedFile;
use super::run::{PullRun, disk};
use crate::entry::TreePath;
use crate::object_name;
use crate::store::StoreErrorKind;
use crate::sync::install::{TemporaryFile, UnnamedFile};
use crate::sync::report::{EntryFailure, MoveError, NEWER_OR_DAMAGED, RunProblem, RunReport};
use crate::sync::spool::Spool;

/// Files that are open beyond the number of connections.
const FILES_AHEAD: usize = 2;

/// A batch is installed when it has this many files, each of which is open, ...
const MAX_BATCH_FILES: usize = 128;
/// ... or this many bytes, which the disk then takes at once, ...
const MAX_BATCH_BYTES: u64 = 64 * 1024 * 1024;
/// ... or this long after the last batch. A killed process loses its batch.
const BATCH_INTERVAL: Duration = Duration::from_secs(5);

impl PullRun {
    /// Fetches files. Returns how many the store has in a newer version.
    pub(crate) async fn fetch_all(
        self: &Arc<Self>,
        files: Spool<WantedFile>,
        report: &mut RunReport,
    ) -> Result<u64, RunProblem> {
        let max = self.settings.run.connections as usize + FILES_AHEAD;
        let mut files = files.read()?;
        let mut running = JoinSet::new();
        let mut queue = InstallQueue::new(Arc::clone(self));
        let mut newer = 0;
        let mut tick = tokio::time::interval(BATCH_INTERVAL);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            while running.len() < max
                && let Some(file) = files.next()
            {
                let file = file?;
                let run = Arc::clone(self);
                running.spawn(async move {
                    let done = run.fetch(&file).await;
                    (file.path, file.size, done)
                });
            }
            tokio::select! {
                ended = running.join_next() => match ended {
                    Some(ended) => newer += self.ended(ended?, &mut queue, report).await?,
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
        let (path, size, done) = ended;
        match done {
            Ok(finished) => {
                self.progress.file_done(0);
                queue.push(finished, size);
                if queue.is_full() {
                    queue.begin(report).await?;
                }
                Ok(0)
            }
            Err(error) => {
                let is_newer = is_newer(&error);
                report.note(path, error, "not fetched")?;
                self.progress.file_done(size);
                Ok(u64::from(is_newer))
            }
        }
    }

    async fn fetch(&self, wanted: &WantedFile) -> Result<UnnamedFile, MoveError> {
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
    ) -> Result<UnnamedFile, MoveError> {
        let key = object_name::under(&self.settings.run.prefix, &wanted.path);
        let get = self.store.get(&key, context).await;
        let mut content = get.map_err(|error| match error.kind {
            StoreErrorKind::Missing => error.with_hint(NEWER_OR_DAMAGED),
            _ => error,
        })?;
        let newer = || MoveError::Entry(EntryFailure::Newer);
        let failed = |error| self.disk_failure(&wanted.path, &error);
        let installer = Arc::clone(&self.installer);
        let begun = blocking(move || installer.begin()).await?;
        let mut writing = FileWriter {
            file: begun.map_err(failed)?,
            hash: Sha256::new(),
            bytes: 0,
        };
        while let Some(piece) = content.try_next().await? {
            if writing.bytes + piece.len() as u64 > wanted.size {
                return Err(newer());
            }
            writing = blocking(move || writing.write(&piece))
                .await?
                .map_err(failed)?;
        }
        if (writing.bytes, writing.hash.finalize().into()) != (wanted.size, wanted.sha256) {
            return Err(newer());
        }
        let (path, attributes) = (wanted.path.clone(), wanted.attributes);
        let installer = Arc::clone(&self.installer);
        let finished = blocking(move || installer.finish(writing.file, path, &attributes)).await?;
        finished.map_err(failed)
    }
}

/// Whether the object is not the version of the manifest: it was replaced or deleted
/// since. An immediate retry would bring the same.
fn is_newer(error: &MoveError) -> bool {
    match error {
        MoveError::Entry(EntryFailure::Newer) => true,
        MoveError::Entry(EntryFailure::Store(error)) => error.kind == StoreErrorKind::Missing,
        _ => false,
    }
}

/// A file that is being written.
struct FileWriter {
    file: TemporaryFile,
    hash: Sha256,
    bytes: u64,
}

impl FileWriter {
    fn write(mut self, piece: &[u8]) -> io::Result<Self> {
        self.hash.update(piece);
        self.bytes += piece.len() as u64;
        self.file.file.write_all(piece)?;
        Ok(self)
    }
}

/// The fetched files: a batch that is gathered, while the one before it is
/// installed.
struct InstallQueue {
    run: Arc<PullRun>,
    batch: Vec<UnnamedFile>,
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

    fn push(&mut self, file: UnnamedFile, size: u64) {
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
        let installed = under_way.await?;
        for (path, done) in installed.map_err(|error| disk(&self.run.settings.to, &error))? {
            match done {
                Ok(()) => report.sent += 1,
                Err(error) => self.run.note_failure(path, &error, report)?,
            }
        }
        Ok(())
    }
}

/// A file, its length (bytes), and how its fetch ended.
type EndedFetch = (TreePath, u64, Result<UnnamedFile, MoveError>);
