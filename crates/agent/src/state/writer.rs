//! The one thread that writes the state. It commits all changes that gathered during
//! the last commit at once: a commit waits for the disk, and there may be thousands of
//! changes a second.
//!
//! Callers wait while [`MAX_WAITING`] changes are waiting, so a slow disk does not cost
//! memory.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use redb::{Database, ReadableTable, WriteTransaction};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::change::{StateChange, UnpublishedChanges, apply, succeeded};
use super::record::PlaceRecord;
use super::tables::{AD_HOC_TASKS, JobId, META, StateError, TASK_STATES};

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

enum WriterMessage {
    Change(
        JobId,
        StateChange,
        Option<oneshot::Sender<()>>,
        OwnedSemaphorePermit,
    ),
    Success(String, PlaceRecord, i64),
    Request(WriteRequest),
    Flush(oneshot::Sender<()>),
}

/// A caller that waits for a commit.
pub(crate) enum CommitWaiter {
    /// It waits for the commit only.
    Done(oneshot::Sender<()>),
    /// It also waits for a number.
    Number(oneshot::Sender<u64>, u64),
}

impl CommitWaiter {
    /// Reports the commit. The caller may have given up.
    fn committed(self) {
        match self {
            Self::Done(done) => drop(done.send(())),
            Self::Number(done, number) => drop(done.send(number)),
        }
    }
}

/// Writes to the state. Clones share the thread, which ends with the last clone.
#[derive(Debug, Clone)]
pub struct StateWriter {
    messages: Sender<WriterMessage>,
    room: Arc<Semaphore>,
}

impl StateWriter {
    pub(crate) fn start(database: Arc<Database>) -> Self {
        let (messages, inbox) = channel();
        std::thread::spawn(move || {
            let mut unpublished = UnpublishedChanges::default();
            // Lost changes are found again, and the disk may have room later.
            while let Err(error) = write(&database, &inbox, &mut unpublished) {
                tracing::error!(%error, "the state cannot be written");
            }
        });
        Self {
            messages,
            room: Arc::new(Semaphore::new(MAX_WAITING)),
        }
    }

    /// Writes a change soon. A crash may lose it.
    ///
    /// # Errors
    /// [`StateError::Closed`].
    pub async fn note(&self, job: JobId, change: StateChange) -> Result<(), StateError> {
        self.send(job, change, None).await
    }

    /// Notes a successful run of a job: its place, and its end, s since 1970.
    ///
    /// # Errors
    /// [`StateError::Closed`].
    pub fn note_success(&self, name: &str, place: PlaceRecord, at: i64) -> Result<(), StateError> {
        let message = WriterMessage::Success(name.to_owned(), place, at);
        self.messages.send(message).map_err(|_| StateError::Closed)
    }

    fn request(&self, request: WriteRequest) {
        // If the thread has ended, the caller learns it from the closed channel.
        let _ = self.messages.send(WriterMessage::Request(request));
    }

    /// Resolves when all earlier changes are on the disk, or have failed.
    pub async fn flush(&self) {
        let (done, kept) = oneshot::channel();
        if self.messages.send(WriterMessage::Flush(done)).is_ok() {
            let _ = kept.await;
        }
    }

    /// Writes a change. Resolves when it and all earlier changes are on the disk.
    ///
    /// # Errors
    /// [`StateError::Closed`].
    pub async fn keep(&self, job: JobId, change: StateChange) -> Result<(), StateError> {
        let (done, kept) = oneshot::channel();
        self.send(job, change, Some(done)).await?;
        kept.await.map_err(|_| StateError::Closed)
    }

    async fn send(
        &self,
        job: JobId,
        change: StateChange,
        done: Option<oneshot::Sender<()>>,
    ) -> Result<(), StateError> {
        let room = Arc::clone(&self.room).acquire_owned().await;
        let room = room.map_err(|_| StateError::Closed)?;
        let message = WriterMessage::Change(job, change, done, room);
        self.messages.send(message).map_err(|_| StateError::Closed)
    }
}

/// A write that has been requested. Writes happen in the order of their requests,
/// whether or not a caller waits.
#[derive(Debug)]
pub struct CommitHandle<T>(oneshot::Receiver<T>);

impl<T> CommitHandle<T> {
    /// Resolves when the write is on the disk.
    ///
    /// # Errors
    /// [`StateError::Closed`].
    pub async fn done(self) -> Result<T, StateError> {
        self.0.await.map_err(|_| StateError::Closed)
    }
}

impl StateWriter {
    /// Adds an ad-hoc task. Gives its number, which is never used again.
    pub fn add_ad_hoc_task(&self, task: Vec<u8>) -> CommitHandle<u64> {
        let (done, kept) = oneshot::channel();
        self.request(WriteRequest::AddTask(task, done));
        CommitHandle(kept)
    }

    /// Changes an ad-hoc task, or removes it.
    pub fn set_ad_hoc_task(&self, number: u64, task: Option<Vec<u8>>) -> CommitHandle<()> {
        let (done, kept) = oneshot::channel();
        self.request(WriteRequest::SetTask(number, task, done));
        CommitHandle(kept)
    }

    /// Sets the task state of a job, or removes it.
    pub fn set_task_state(&self, job: &str, state: Option<Vec<u8>>) -> CommitHandle<()> {
        let (done, kept) = oneshot::channel();
        self.request(WriteRequest::SetTaskState(job.to_owned(), state, done));
        CommitHandle(kept)
    }
}

/// A requested write of the daemon.
enum WriteRequest {
    AddTask(Vec<u8>, oneshot::Sender<u64>),
    SetTask(u64, Option<Vec<u8>>, oneshot::Sender<()>),
    SetTaskState(String, Option<Vec<u8>>, oneshot::Sender<()>),
}

impl WriteRequest {
    /// Applies the write. Returns the caller that waits for the commit.
    fn apply(self, transaction: &WriteTransaction) -> Result<CommitWaiter, StateError> {
        match self {
            Self::AddTask(task, done) => {
                let mut meta = transaction.open_table(META)?;
                let number = meta.get("extras")?.map_or(0, |given| given.value()) + 1;
                meta.insert("extras", number)?;
                let mut tasks = transaction.open_table(AD_HOC_TASKS)?;
                tasks.insert(number, task.as_slice())?;
                Ok(CommitWaiter::Number(done, number))
            }
            Self::SetTask(number, task, done) => {
                let mut tasks = transaction.open_table(AD_HOC_TASKS)?;
                match task {
                    Some(task) => tasks.insert(number, task.as_slice())?,
                    None => tasks.remove(number)?,
                };
                Ok(CommitWaiter::Done(done))
            }
            Self::SetTaskState(job, state, done) => {
                let mut states = transaction.open_table(TASK_STATES)?;
                match state {
                    Some(state) => states.insert(job.as_str(), state.as_slice())?,
                    None => states.remove(job.as_str())?,
                };
                Ok(CommitWaiter::Done(done))
            }
        }
    }
}

fn write(
    database: &Database,
    inbox: &Receiver<WriterMessage>,
    unpublished: &mut UnpublishedChanges,
) -> Result<(), StateError> {
    while let Ok(first) = inbox.recv() {
        let mut waiting = Vec::new();
        let transaction = database.begin_write()?;
        let until = now() + COMMIT_INTERVAL;
        let (mut is_urgent, mut at_risk) = (false, 0_u64);
        let mut message = Some(first);
        let mut count = 0;
        loop {
            match message.take() {
                Some(WriterMessage::Change(job, change, done, _room)) => {
                    at_risk = at_risk.saturating_add(change.at_risk());
                    apply(&transaction, job, change, unpublished)?;
                    // A waiting caller does not wait for other changes.
                    is_urgent |= done.is_some() || at_risk >= MAX_AT_RISK;
                    waiting.extend(done.map(CommitWaiter::Done));
                }
                Some(WriterMessage::Success(name, place, at)) => {
                    succeeded(&transaction, &name, place, at)?;
                }
                Some(WriterMessage::Request(request)) => {
                    is_urgent = true;
                    waiting.push(request.apply(&transaction)?);
                }
                Some(WriterMessage::Flush(done)) => {
                    is_urgent = true;
                    waiting.push(CommitWaiter::Done(done));
                }
                None => break,
            }
            count += 1;
            if count == MAX_BATCH {
                break;
            }
            let left = if is_urgent {
                Duration::ZERO
            } else {
                until.saturating_duration_since(now())
            };
            message = inbox.recv_timeout(left).ok();
        }
        transaction.commit()?;
        waiting.into_iter().for_each(CommitWaiter::committed);
    }
    Ok(())
}

#[allow(clippy::disallowed_methods, reason = "the shell that reads the clock")]
fn now() -> Instant {
    Instant::now()
}
