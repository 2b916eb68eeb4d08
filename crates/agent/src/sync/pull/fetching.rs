//! Fetches files, some at once; what has come is placed many at once.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use fairbat::transport::RequestContext;
use futures_util::TryStreamExt;
use sha2::{Digest, Sha256};
use tokio::task::{JoinError, JoinHandle, JoinSet};
use tokio::time::MissedTickBehavior;

use super::sorting::Wanted;
use super::{Run, disk, spool};
use crate::entry::TreePath;
use crate::object_name;
use crate::store::{StoreError, StoreErrorKind};
use crate::sync::attempts::Failing;
use crate::sync::placing::{Aside, Finished, is_of_disk};
use crate::sync::report::{EntryFailure, PUSH_UNDER_WAY, RunProblem, RunReport};
use crate::sync::spool::Spooled;

/// Files that are open at once beyond the connections there may be.
const AHEAD: usize = 2;

/// Files are placed when so many have come; each of them is open, ...
const BATCH: usize = 128;
/// ... or so many bytes, which the disk then has to take at once, ...
const BATCH_BYTES: u64 = 64 * 1024 * 1024;
/// ... or this long after the last were: what has come and is not placed is lost
/// with the process.
const BATCH_EVERY: Duration = Duration::from_secs(5);

/// Why a file has not come.
#[derive(Debug, thiserror::Error)]
enum FileError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What is under its key is not what the manifest says: it has been replaced
    /// or deleted since. To ask again at once would bring the same.
    #[error("{0}")]
    Newer(EntryFailure),
    #[error("{0}")]
    Disk(#[from] io::Error),
    #[error("a task ended without a result")]
    Lost,
}

impl Failing for FileError {
    fn of_store(&self) -> Option<&StoreError> {
        match self {
            Self::Store(error) => Some(error),
            Self::Newer(_) | Self::Disk(_) | Self::Lost => None,
        }
    }
}

impl Run {
    /// Returns how many files the store has in another version than the manifest.
    pub(super) async fn fetch_all(
        self: &Arc<Self>,
        mut files: Spooled<Wanted>,
        report: &mut RunReport,
    ) -> Result<u64, RunProblem> {
        let most = self.settings.connections as usize + AHEAD;
        let mut running = JoinSet::new();
        let mut landing = Landing::new(Arc::clone(self));
        let mut newer = 0;
        let mut tick = tokio::time::interval(BATCH_EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            while running.len() < most
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
                    Some(ended) => newer += self.ended(ended, &mut landing, report).await?,
                    None => break,
                },
                _ = tick.tick() => landing.land(report).await?,
            }
        }
        landing.land(report).await?;
        landing.wait(report).await?;
        Ok(newer)
    }

    /// Returns how many files were of another version.
    async fn ended(
        &self,
        ended: Ended,
        landing: &mut Landing,
        report: &mut RunReport,
    ) -> Result<u64, RunProblem> {
        let (path, size, done) = ended.map_err(|_| RunProblem::Lost)?;
        let failure = match done {
            Ok(finished) => {
                self.ledger.file_done(0);
                landing.push(finished, size);
                if landing.is_full() {
                    landing.land(report).await?;
                }
                return Ok(0);
            }
            Err(FileError::Lost) => return Err(RunProblem::Lost),
            Err(FileError::Store(error)) if error.is_of_store() => return Err(error.into()),
            Err(FileError::Disk(error)) if is_of_disk(&error) => {
                return Err(disk(&path.under(&self.settings.to), &error));
            }
            Err(error) => error,
        };
        self.ledger.file_done(size);
        tracing::warn!(file = %path, error = %failure, "not fetched");
        let (newer, failure) = match failure {
            FileError::Newer(failure) => (1, failure),
            FileError::Store(error) => (0, EntryFailure::Store(error)),
            other => (0, EntryFailure::Unwritable(other.to_string())),
        };
        report.failed(path, failure);
        Ok(newer)
    }

    async fn fetch(&self, wanted: &Wanted) -> Result<Finished, FileError> {
        let mut tries = self.attempts.tries();
        loop {
            let permit = self.member.admit().await;
            let flight = self
                .ledger
                .take_off(wanted.size, &self.settings.rate_limits);
            let error = match self.fetch_once(wanted, flight.passage()).await {
                Ok(finished) => {
                    flight.landed();
                    return Ok(finished);
                }
                Err(error) => error,
            };
            drop((flight, permit));
            tries.after(&self.member, error).await?;
        }
    }

    async fn fetch_once(
        &self,
        wanted: &Wanted,
        passage: RequestContext,
    ) -> Result<Finished, FileError> {
        let key = object_name::under(&self.settings.prefix, &wanted.path);
        let mut content = match self.store.get(&key, None, passage).await {
            Err(error) if error.kind == StoreErrorKind::Missing => {
                let error = error.with_hint(PUSH_UNDER_WAY);
                return Err(FileError::Newer(EntryFailure::Store(error)));
            }
            other => other?,
        };
        let placing = Arc::clone(&self.placing);
        let mut writing = Writing {
            aside: blocking(move || placing.begin()).await?,
            hash: Sha256::new(),
            bytes: 0,
        };
        while let Some(piece) = content.try_next().await? {
            if writing.bytes + piece.len() as u64 > wanted.size {
                return Err(FileError::Newer(EntryFailure::Newer));
            }
            writing = writing.write(piece).await?;
        }
        if (writing.bytes, writing.hash.finalize().into()) != (wanted.size, wanted.sha256) {
            return Err(FileError::Newer(EntryFailure::Newer));
        }
        let (path, attributes) = (wanted.path.clone(), wanted.attributes);
        let placing = Arc::clone(&self.placing);
        blocking(move || placing.finish(writing.aside, path, &attributes)).await
    }
}

/// A file that is being fetched.
struct Writing {
    aside: Aside,
    hash: Sha256,
    bytes: u64,
}

impl Writing {
    async fn write(mut self, piece: bytes::Bytes) -> Result<Self, FileError> {
        blocking(move || {
            use std::io::Write;
            self.hash.update(&piece);
            self.bytes += piece.len() as u64;
            self.aside.file.write_all(&piece)?;
            Ok(self)
        })
        .await
    }
}

/// Files that have come: a batch that is gathered, while the one before it is put
/// into place.
struct Landing {
    run: Arc<Run>,
    batch: Vec<Finished>,
    bytes: u64,
    under_way: Option<JoinHandle<io::Result<Placed>>>,
}

type Placed = Vec<(TreePath, io::Result<()>)>;

impl Landing {
    fn new(run: Arc<Run>) -> Self {
        Self {
            run,
            batch: Vec::new(),
            bytes: 0,
            under_way: None,
        }
    }

    fn push(&mut self, file: Finished, size: u64) {
        self.batch.push(file);
        self.bytes += size;
    }

    fn is_full(&self) -> bool {
        self.batch.len() >= BATCH || self.bytes >= BATCH_BYTES
    }

    /// Begins to place what has been gathered.
    async fn land(&mut self, report: &mut RunReport) -> Result<(), RunProblem> {
        if self.batch.is_empty() {
            return Ok(());
        }
        self.wait(report).await?;
        self.bytes = 0;
        let (run, batch) = (Arc::clone(&self.run), std::mem::take(&mut self.batch));
        self.under_way = Some(tokio::task::spawn_blocking(move || {
            run.placing.place(batch, &|| run.is_stopped())
        }));
        Ok(())
    }

    /// Waits until the batch that is under way is in place.
    async fn wait(&mut self, report: &mut RunReport) -> Result<(), RunProblem> {
        let Some(under_way) = self.under_way.take() else {
            return Ok(());
        };
        let to = &self.run.settings.to;
        let placed = under_way.await.map_err(|_| RunProblem::Lost)?;
        for (path, done) in placed.map_err(|error| disk(to, &error))? {
            match done {
                Ok(()) => report.sent += 1,
                Err(error) if is_of_disk(&error) => return Err(disk(&path.under(to), &error)),
                Err(error) => {
                    tracing::warn!(file = %path, %error, "not placed");
                    report.failed(path, EntryFailure::Unwritable(error.to_string()));
                }
            }
        }
        Ok(())
    }
}

type Ended = Result<(TreePath, u64, Result<Finished, FileError>), JoinError>;

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, FileError> {
    let done = tokio::task::spawn_blocking(work).await;
    Ok(done.map_err(|_| FileError::Lost)??)
}
