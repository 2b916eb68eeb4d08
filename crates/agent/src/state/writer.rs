//! The one thread that writes the state. It commits all changes that gathered during
//! the last commit at once: a commit waits for the disk, and there may be thousands of
//! changes a second.
//!
//! Callers wait while [`MAX_WAITING`] changes are waiting, so a slow disk does not cost
//! memory. A disk that fails costs the changes that wait: their runs fail, and find them
//! again the next time.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use redb::{ReadableTable, WriteTransaction};
use tokio::sync::{Semaphore, oneshot};

use super::change::{StateChange, UnpublishedChanges, apply, succeeded};
use super::database::DatabaseFile;
use super::tables::{
    AD_HOC_TASKS, JobId, META, PlaceRecord, STORE_MOUNTS, StateError, TASK_STATES,
};

/// How long changes gather before a commit. A crash loses them, and the work is done
/// again.
const COMMIT_INTERVAL: Duration = Duration::from_millis(100);

/// Most changes of one commit.
const MAX_BATCH: usize = 10_000;

/// Most sent bytes whose changes are not committed. Sending more again would take
/// longer than a commit.
const MAX_AT_RISK: u64 = 512 * 1024;

/// Most changes that wait for the thread.
const MAX_WAITING: usize = 20_000;

/// Shortest time between two lines of the log about writes that fail.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// A change of the tables. Returns what is due after the commit.
type Write = Box<
    dyn FnOnce(&WriteTransaction, &mut UnpublishedChanges) -> Result<OnCommit, StateError> + Send,
>;

/// Tells a waiting caller that its change is on the disk.
type OnCommit = Option<Box<dyn FnOnce() + Send>>;

/// A change that waits for the thread. Changes happen in the order of their requests,
/// whether or not a caller waits.
struct WaitingChange {
    write: Write,
    /// Bytes that would be sent again if the change were lost.
    at_risk: u64,
    /// Whether a caller waits for the commit.
    is_awaited: bool,
}

/// Writes to the state. Clones share the thread, which ends with the last clone.
#[derive(Debug, Clone)]
pub struct StateWriter {
    changes: Sender<WaitingChange>,
    room: Arc<Semaphore>,
    failure: LastFailure,
    /// Whether a change of this run is lost. Then the run cannot end well: its state has
    /// a gap.
    has_lost: Arc<AtomicBool>,
}

/// Why the thread failed the last time.
#[derive(Debug, Clone, Default)]
struct LastFailure(Arc<Mutex<Option<String>>>);

impl LastFailure {
    /// Notes a failure. The callers whose changes it costs have to learn of it afterwards.
    fn set(&self, error: &StateError) {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *last = Some(match error {
            StateError::Database(error) => error.to_string(),
            other => other.to_string(),
        });
    }

    /// The error for a caller whose change is lost.
    fn get(&self) -> StateError {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.clone()
            .map_or(StateError::Closed, StateError::Unwritten)
    }
}

/// Notes that a change is lost, unless it is told that the change is on the disk.
struct LossMark {
    has_lost: Arc<AtomicBool>,
    is_written: bool,
}

impl LossMark {
    /// The change is on the disk.
    fn written(mut self) {
        self.is_written = true;
    }
}

impl Drop for LossMark {
    fn drop(&mut self) {
        if !self.is_written {
            self.has_lost.store(true, Ordering::Relaxed);
        }
    }
}

/// What the log says of writes that fail. A disk that is full fails thousands of them.
#[derive(Debug, Default)]
struct FailureLog {
    /// When it was told last.
    told: Option<Instant>,
    /// Failures since then.
    untold: u64,
    /// Whether the end of the failures has to be told.
    is_open: bool,
}

impl FailureLog {
    fn failed(&mut self, error: &StateError) {
        let now = now();
        let is_early = |told| now.saturating_duration_since(told) < LOG_INTERVAL;
        if self.told.is_some_and(is_early) {
            self.untold += 1;
            return;
        }
        let untold = std::mem::take(&mut self.untold);
        tracing::error!(%error, untold, "changes of the state are lost, and done again later");
        self.told = Some(now);
        self.is_open = true;
    }

    fn succeeded(&mut self) {
        if std::mem::take(&mut self.is_open) {
            tracing::info!("the state can be written again");
        }
    }
}

impl StateWriter {
    pub(crate) fn start(database: Arc<DatabaseFile>) -> Self {
        let (changes, inbox) = channel();
        let failure = LastFailure::default();
        let told = failure.clone();
        std::thread::spawn(move || {
            let mut unpublished = UnpublishedChanges::default();
            let mut log = FailureLog::default();
            while let Err(error) = write(&database, &inbox, &mut unpublished, &mut log, &told) {
                log.failed(&error);
                if matches!(error, StateError::Database(_)) {
                    database.note_failure();
                    // What waits would fail as well, one after the other.
                    inbox.try_iter().for_each(drop);
                }
            }
        });
        Self {
            changes,
            room: Arc::new(Semaphore::new(MAX_WAITING)),
            failure,
            has_lost: Arc::default(),
        }
    }

    /// The writer for one run. It fails as soon as a change of the run is lost.
    #[must_use]
    pub fn for_run(&self) -> Self {
        Self {
            has_lost: Arc::default(),
            ..self.clone()
        }
    }

    /// Writes a change soon. A crash may lose it.
    ///
    /// # Errors
    /// [`StateError::Unwritten`] if an earlier change of the run is lost, or
    /// [`StateError::Closed`].
    pub async fn note(&self, job: JobId, change: StateChange) -> Result<(), StateError> {
        self.send(job, change, None).await
    }

    /// Writes a change. Resolves when it and all earlier changes are on the disk.
    ///
    /// # Errors
    /// [`StateError::Unwritten`] if it or an earlier change of the run is lost, or
    /// [`StateError::Closed`].
    pub async fn keep(&self, job: JobId, change: StateChange) -> Result<(), StateError> {
        let (done, kept) = oneshot::channel();
        self.send(job, change, Some(done)).await?;
        kept.await.map_err(|_| self.failure.get())?;
        self.expect_all()
    }

    /// # Errors
    /// [`StateError::Unwritten`] if a change of the run is lost.
    fn expect_all(&self) -> Result<(), StateError> {
        match self.has_lost.load(Ordering::Relaxed) {
            true => Err(self.failure.get()),
            false => Ok(()),
        }
    }

    async fn send(
        &self,
        job: JobId,
        change: StateChange,
        done: Option<oneshot::Sender<()>>,
    ) -> Result<(), StateError> {
        self.expect_all()?;
        let room = Arc::clone(&self.room).acquire_owned().await;
        let room = room.map_err(|_| StateError::Closed)?;
        let (at_risk, is_awaited) = (change.at_risk(), done.is_some());
        let failure = self.failure.clone();
        let mark = LossMark {
            has_lost: Arc::clone(&self.has_lost),
            is_written: false,
        };
        self.push(at_risk, is_awaited, move |transaction, unpublished| {
            drop(room);
            let applied = apply(transaction, job, change, unpublished);
            applied.inspect_err(|error| failure.set(error))?;
            Ok(Some(Box::new(move || {
                mark.written();
                if let Some(done) = done {
                    let _ = done.send(());
                }
            })))
        })
    }

    fn push(
        &self,
        at_risk: u64,
        is_awaited: bool,
        write: impl FnOnce(&WriteTransaction, &mut UnpublishedChanges) -> Result<OnCommit, StateError>
        + Send
        + 'static,
    ) -> Result<(), StateError> {
        let change = WaitingChange {
            write: Box::new(write),
            at_risk,
            is_awaited,
        };
        self.changes.send(change).map_err(|_| StateError::Closed)
    }

    /// Notes a successful run of a job: its place, and its end, s since 1970.
    ///
    /// # Errors
    /// [`StateError::Closed`].
    pub fn note_success(&self, name: &str, place: PlaceRecord, at: i64) -> Result<(), StateError> {
        let name = name.to_owned();
        self.push(0, false, move |transaction, _| {
            succeeded(transaction, &name, place, at).map(|()| None)
        })
    }

    /// Resolves when all earlier changes are on the disk, or have failed.
    pub async fn flush(&self) {
        let _ = self.request(|_| Ok(())).done().await;
    }

    /// Adds an ad-hoc task. Gives its number, which is never used again.
    pub fn add_ad_hoc_task(&self, task: Vec<u8>) -> CommitHandle<u64> {
        self.request(move |transaction| {
            let mut meta = transaction.open_table(META)?;
            let number = meta.get("extras")?.map_or(0, |given| given.value()) + 1;
            meta.insert("extras", number)?;
            let mut tasks = transaction.open_table(AD_HOC_TASKS)?;
            tasks.insert(number, task.as_slice())?;
            Ok(number)
        })
    }

    /// Changes an ad-hoc task, or removes it.
    pub fn set_ad_hoc_task(&self, number: u64, task: Option<Vec<u8>>) -> CommitHandle<()> {
        self.request(move |transaction| {
            let mut tasks = transaction.open_table(AD_HOC_TASKS)?;
            match task {
                Some(task) => tasks.insert(number, task.as_slice())?,
                None => tasks.remove(number)?,
            };
            Ok(())
        })
    }

    /// Sets the task state of a job, or removes it.
    pub fn set_task_state(&self, job: &str, state: Option<Vec<u8>>) -> CommitHandle<()> {
        let job = job.to_owned();
        self.request(move |transaction| {
            let mut states = transaction.open_table(TASK_STATES)?;
            match state {
                Some(state) => states.insert(job.as_str(), state.as_slice())?,
                None => states.remove(job.as_str())?,
            };
            Ok(())
        })
    }

    /// Sets the mount point that a local store lies on, or removes it.
    pub fn set_store_mount(&self, store: &Path, mount: Option<&Path>) -> CommitHandle<()> {
        let bytes = |path: &Path| path.as_os_str().as_bytes().to_owned();
        let (store, mount) = (bytes(store), mount.map(bytes));
        self.request(move |transaction| {
            let mut mounts = transaction.open_table(STORE_MOUNTS)?;
            match mount {
                Some(mount) => mounts.insert(store.as_slice(), mount.as_slice())?,
                None => mounts.remove(store.as_slice())?,
            };
            Ok(())
        })
    }

    fn request<T: Send + 'static>(
        &self,
        write: impl FnOnce(&WriteTransaction) -> Result<T, StateError> + Send + 'static,
    ) -> CommitHandle<T> {
        let (done, kept) = oneshot::channel();
        let failure = self.failure.clone();
        // If the thread has ended, the caller learns it from the closed channel.
        let _ = self.push(0, true, move |transaction, _| {
            let value = write(transaction).inspect_err(|error| failure.set(error))?;
            // The caller may have given up.
            Ok(Some(Box::new(move || drop(done.send(value)))))
        });
        CommitHandle(kept, self.failure.clone())
    }
}

/// A write that has been requested.
#[derive(Debug)]
pub struct CommitHandle<T>(oneshot::Receiver<T>, LastFailure);

impl<T> CommitHandle<T> {
    /// Resolves when the write is on the disk.
    ///
    /// # Errors
    /// [`StateError::Unwritten`] or [`StateError::Closed`].
    pub async fn done(self) -> Result<T, StateError> {
        self.0.await.map_err(|_| self.1.get())
    }
}

fn write(
    database: &DatabaseFile,
    inbox: &Receiver<WaitingChange>,
    unpublished: &mut UnpublishedChanges,
    log: &mut FailureLog,
    failure: &LastFailure,
) -> Result<(), StateError> {
    while let Ok(first) = inbox.recv() {
        let mut waiting = Vec::new();
        let begun = database.begin_write();
        let transaction = begun.inspect_err(|error| failure.set(error))?;
        let until = now() + COMMIT_INTERVAL;
        let (mut is_urgent, mut at_risk) = (false, 0_u64);
        let mut next = Some(first);
        let mut count = 0;
        while let Some(change) = next.take() {
            at_risk = at_risk.saturating_add(change.at_risk);
            // A waiting caller does not wait for other changes.
            is_urgent |= change.is_awaited || at_risk >= MAX_AT_RISK;
            waiting.extend((change.write)(&transaction, unpublished)?);
            count += 1;
            if count == MAX_BATCH {
                break;
            }
            let left = if is_urgent {
                Duration::ZERO
            } else {
                until.saturating_duration_since(now())
            };
            next = inbox.recv_timeout(left).ok();
        }
        let committed = transaction.commit().map_err(StateError::from);
        committed.inspect_err(|error| failure.set(error))?;
        log.succeeded();
        waiting.into_iter().for_each(|tell| tell());
    }
    Ok(())
}

#[allow(clippy::disallowed_methods, reason = "the shell that reads the clock")]
fn now() -> Instant {
    Instant::now()
}
