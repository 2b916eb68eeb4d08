//! The one thread that writes the state. It takes what has gathered while it
//! committed, and commits all of that at once: a commit waits for the disk, and
//! there may be thousands of changes a second.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use redb::{Database, ReadableTable, WriteTransaction};
use tokio::sync::oneshot;

use super::asked::Asked;
use super::record::{decode, encode};
use super::{
    ENTRIES, JOBS, JobId, JobRecord, PARTS, Part, StateError, Synced, UNTOLD, UPLOADS, Upload,
};
use crate::entry::TreePath;

/// Changes gather for so long before they are committed: what a crash may make
/// forgotten, and is done again then.
const GATHER: Duration = Duration::from_millis(100);

/// So many are committed at once at most.
const MOST: usize = 10_000;

/// What is to be remembered of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// An entry is in step, as it is here; an upload of it is over. The manifest
    /// does not know yet.
    Synced(TreePath, Synced),
    /// An entry is as it was, but for what the state alone keeps.
    Refreshed(TreePath, Synced),
    /// An entry is gone from the store. The manifest does not know yet.
    Removed(TreePath),
    /// An upload in parts was begun; nothing is known of an earlier one any
    /// more.
    Begun(TreePath, Upload),
    /// The store has this part of an upload.
    Arrived(TreePath, u32, Part),
    /// An upload is over.
    GivenUp(TreePath),
    /// The manifest has everything that has not been told it.
    Told(JobRecord),
    /// What is known of the job.
    Job(JobRecord),
    /// Nothing of a job is in step; and what else is known of it.
    Forgotten(JobRecord),
}

enum Message {
    Change(JobId, Change, Option<oneshot::Sender<()>>),
    Success(String, i64),
    Asked(Asked),
    Flush(oneshot::Sender<()>),
}

/// Who waits for a commit.
pub(super) enum Waiting {
    /// That it is done is enough.
    Done(oneshot::Sender<()>),
    /// Under which number.
    Number(oneshot::Sender<u64>, u64),
}

impl Waiting {
    /// It is committed. Who gave up waiting is fine.
    fn tell(self) {
        match self {
            Self::Done(done) => drop(done.send(())),
            Self::Number(done, number) => drop(done.send(number)),
        }
    }
}

/// See the module. Clones share it; it ends with the last of them.
#[derive(Debug, Clone)]
pub struct Writer {
    messages: Sender<Message>,
}

impl Writer {
    pub(super) fn start(database: Arc<Database>) -> Self {
        let (messages, inbox) = channel();
        std::thread::spawn(move || {
            // What was not written is found out anew; a disk may have room again.
            while let Err(error) = write(&database, &inbox) {
                tracing::error!(%error, "the state cannot be written");
            }
        });
        Self { messages }
    }

    /// To be remembered before long; a crash in this moment forgets it.
    ///
    /// # Errors
    /// [`StateError::Closed`].
    pub fn note(&self, job: JobId, change: Change) -> Result<(), StateError> {
        self.send(job, change, None)
    }

    /// When a run of the job of this name last went well, s since 1970.
    ///
    /// # Errors
    /// [`StateError::Closed`].
    pub fn note_success(&self, name: &str, at: i64) -> Result<(), StateError> {
        let message = Message::Success(name.to_owned(), at);
        self.messages.send(message).map_err(|_| StateError::Closed)
    }

    pub(super) fn ask(&self, asked: Asked) {
        // Without a thread that writes, who waits hears that nobody answers.
        let _ = self.messages.send(Message::Asked(asked));
    }

    /// Resolves when everything so far is remembered for good, or never will be.
    pub async fn flush(&self) {
        let (done, kept) = oneshot::channel();
        if self.messages.send(Message::Flush(done)).is_ok() {
            let _ = kept.await;
        }
    }

    /// Resolves when it is remembered for good, and all before it.
    ///
    /// # Errors
    /// [`StateError::Closed`].
    pub async fn keep(&self, job: JobId, change: Change) -> Result<(), StateError> {
        let (done, kept) = oneshot::channel();
        self.send(job, change, Some(done))?;
        kept.await.map_err(|_| StateError::Closed)
    }

    fn send(
        &self,
        job: JobId,
        change: Change,
        done: Option<oneshot::Sender<()>>,
    ) -> Result<(), StateError> {
        let message = Message::Change(job, change, done);
        self.messages.send(message).map_err(|_| StateError::Closed)
    }
}

fn write(database: &Database, inbox: &Receiver<Message>) -> Result<(), StateError> {
    while let Ok(first) = inbox.recv() {
        let mut waiting = Vec::new();
        let transaction = database.begin_write()?;
        let until = now() + GATHER;
        // Who waits does not wait for others.
        let mut is_urgent = apply(&transaction, first, &mut waiting)?;
        for _ in 1..MOST {
            let left = if is_urgent {
                Duration::ZERO
            } else {
                until.saturating_duration_since(now())
            };
            let Ok(next) = inbox.recv_timeout(left) else {
                break;
            };
            is_urgent |= apply(&transaction, next, &mut waiting)?;
        }
        transaction.commit()?;
        waiting.into_iter().for_each(Waiting::tell);
    }
    Ok(())
}

#[allow(clippy::disallowed_methods, reason = "the shell that reads the clock")]
fn now() -> Instant {
    Instant::now()
}

/// Returns whether it is to be committed at once.
fn apply(
    transaction: &WriteTransaction,
    message: Message,
    waiting: &mut Vec<Waiting>,
) -> Result<bool, StateError> {
    let (job, change, done) = match message {
        Message::Change(job, change, done) => (job.0, change, done),
        Message::Success(name, at) => {
            succeeded(transaction, &name, at)?;
            return Ok(false);
        }
        Message::Asked(asked) => {
            waiting.push(asked.apply(transaction)?);
            return Ok(true);
        }
        Message::Flush(done) => {
            waiting.push(Waiting::Done(done));
            return Ok(true);
        }
    };
    // A part takes longer to send again than a commit.
    let is_urgent = matches!(change, Change::Arrived(..));
    match change {
        Change::Synced(path, entry) => {
            let key = (job, path.as_bytes());
            transaction
                .open_table(ENTRIES)?
                .insert(key, encode(&entry).as_slice())?;
            transaction.open_table(UNTOLD)?.insert(key, ())?;
            end_upload(transaction, key)?;
        }
        Change::Refreshed(path, entry) => {
            let key = (job, path.as_bytes());
            transaction
                .open_table(ENTRIES)?
                .insert(key, encode(&entry).as_slice())?;
        }
        Change::Removed(path) => {
            let key = (job, path.as_bytes());
            transaction.open_table(ENTRIES)?.remove(key)?;
            transaction.open_table(UNTOLD)?.insert(key, ())?;
            end_upload(transaction, key)?;
        }
        Change::Begun(path, upload) => {
            let key = (job, path.as_bytes());
            end_upload(transaction, key)?;
            transaction
                .open_table(UPLOADS)?
                .insert(key, encode(&upload).as_slice())?;
        }
        Change::Arrived(path, index, part) => {
            let key = (job, path.as_bytes(), index);
            transaction
                .open_table(PARTS)?
                .insert(key, encode(&part).as_slice())?;
        }
        Change::GivenUp(path) => end_upload(transaction, (job, path.as_bytes()))?,
        Change::Told(record) => {
            forget_untold(transaction, job)?;
            set_job(transaction, job, &record)?;
        }
        Change::Forgotten(record) => {
            forget_untold(transaction, job)?;
            let range = (job, &[][..])..(job + 1, &[][..]);
            transaction
                .open_table(ENTRIES)?
                .retain_in::<(u32, &[u8]), _>(range, |_, _| false)?;
            set_job(transaction, job, &record)?;
        }
        Change::Job(record) => set_job(transaction, job, &record)?,
    }
    let is_urgent = is_urgent || done.is_some();
    waiting.extend(done.map(Waiting::Done));
    Ok(is_urgent)
}

fn forget_untold(transaction: &WriteTransaction, job: u32) -> Result<(), StateError> {
    let range = (job, &[][..])..(job + 1, &[][..]);
    transaction
        .open_table(UNTOLD)?
        .retain_in::<(u32, &[u8]), _>(range, |_, ()| false)?;
    Ok(())
}

fn end_upload(transaction: &WriteTransaction, key: (u32, &[u8])) -> Result<(), StateError> {
    let had = transaction.open_table(UPLOADS)?.remove(key)?.is_some();
    if had {
        let range = (key.0, key.1, 0)..=(key.0, key.1, u32::MAX);
        transaction
            .open_table(PARTS)?
            .retain_in::<(u32, &[u8], u32), _>(range, |_, _| false)?;
    }
    Ok(())
}

fn succeeded(transaction: &WriteTransaction, name: &str, at: i64) -> Result<(), StateError> {
    let mut jobs = transaction.open_table(JOBS)?;
    let known = jobs.get(name)?.map(|known| {
        let (id, record) = known.value();
        decode::<JobRecord>(record).map(|record| (id, record))
    });
    if let Some(known) = known {
        let (id, mut record) = known?;
        record.succeeded = Some(at);
        jobs.insert(name, (id, encode(&record).as_slice()))?;
    }
    Ok(())
}

fn set_job(transaction: &WriteTransaction, job: u32, record: &JobRecord) -> Result<(), StateError> {
    let mut jobs = transaction.open_table(JOBS)?;
    let mut name = None;
    for item in jobs.iter()? {
        let (key, value) = item?;
        if value.value().0 == job {
            name = Some(key.value().to_owned());
        }
    }
    if let Some(name) = name {
        jobs.insert(name.as_str(), (job, encode(record).as_slice()))?;
    }
    Ok(())
}
