//! The one thread that writes the state. It takes what has gathered while it
//! committed, and commits all of that at once: a commit waits for the disk, and
//! there may be thousands of changes a second.
//!
//! Whoever has something to be remembered waits while [`ROOM`] changes are waiting
//! already: a disk that is slower than a scan takes no more memory for that.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use redb::Database;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::asked::WriteRequest;
use super::change::{StateChange, Telling, apply, succeeded};
use super::{JobId, PlaceRecord, StateError};

/// Changes gather for so long before they are committed: what a crash may make
/// forgotten, and is done again then.
const GATHER: Duration = Duration::from_millis(100);

/// So many are committed at once at most.
const MOST: usize = 10_000;

/// Once so much has been sent that only what gathers tells of, it is committed,
/// bytes: to send it again would take longer.
const AT_RISK: u64 = 512 * 1024;

/// Changes that wait for the thread at most.
const ROOM: usize = 20_000;

enum Message {
    Change(
        JobId,
        StateChange,
        Option<oneshot::Sender<()>>,
        OwnedSemaphorePermit,
    ),
    Success(String, PlaceRecord, i64),
    WriteRequest(WriteRequest),
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
pub struct StateWriter {
    messages: Sender<Message>,
    room: Arc<Semaphore>,
}

impl StateWriter {
    pub(super) fn start(database: Arc<Database>) -> Self {
        let (messages, inbox) = channel();
        std::thread::spawn(move || {
            let mut telling = Telling::default();
            // What was not written is found out anew; a disk may have room again.
            while let Err(error) = write(&database, &inbox, &mut telling) {
                tracing::error!(%error, "the state cannot be written");
            }
        });
        Self {
            messages,
            room: Arc::new(Semaphore::new(ROOM)),
        }
    }

    /// To be remembered before long; a crash in this moment forgets it.
    ///
    /// # Errors
    /// [`StateError::Closed`].
    pub async fn note(&self, job: JobId, change: StateChange) -> Result<(), StateError> {
        self.send(job, change, None).await
    }

    /// When a run of the job of this name last went well, s since 1970, and where
    /// it wrote.
    ///
    /// # Errors
    /// [`StateError::Closed`].
    pub fn note_success(&self, name: &str, place: PlaceRecord, at: i64) -> Result<(), StateError> {
        let message = Message::Success(name.to_owned(), place, at);
        self.messages.send(message).map_err(|_| StateError::Closed)
    }

    pub(super) fn ask(&self, asked: WriteRequest) {
        // Without a thread that writes, who waits hears that nobody answers.
        let _ = self.messages.send(Message::WriteRequest(asked));
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
        let message = Message::Change(job, change, done, room);
        self.messages.send(message).map_err(|_| StateError::Closed)
    }
}

fn write(
    database: &Database,
    inbox: &Receiver<Message>,
    telling: &mut Telling,
) -> Result<(), StateError> {
    while let Ok(first) = inbox.recv() {
        let mut waiting = Vec::new();
        let transaction = database.begin_write()?;
        let until = now() + GATHER;
        let (mut is_urgent, mut at_risk) = (false, 0_u64);
        let mut message = Some(first);
        let mut count = 0;
        loop {
            match message.take() {
                Some(Message::Change(job, change, done, _room)) => {
                    at_risk = at_risk.saturating_add(change.at_risk());
                    apply(&transaction, job, change, telling)?;
                    // Who waits does not wait for others.
                    is_urgent |= done.is_some() || at_risk >= AT_RISK;
                    waiting.extend(done.map(Waiting::Done));
                }
                Some(Message::Success(name, place, at)) => {
                    succeeded(&transaction, &name, place, at)?;
                }
                Some(Message::WriteRequest(asked)) => {
                    is_urgent = true;
                    waiting.push(asked.apply(&transaction)?);
                }
                Some(Message::Flush(done)) => {
                    is_urgent = true;
                    waiting.push(Waiting::Done(done));
                }
                None => break,
            }
            count += 1;
            if count == MOST {
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
        waiting.into_iter().for_each(Waiting::tell);
    }
    Ok(())
}

#[allow(clippy::disallowed_methods, reason = "the shell that reads the clock")]
fn now() -> Instant {
    Instant::now()
}
