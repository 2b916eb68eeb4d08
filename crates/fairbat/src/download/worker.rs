//! A worker: one probe or one range, on one connection. It reports what it has written,
//! and decides nothing. Pieces of the body are gathered and written in one go, while the
//! next ones are being received.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{mpsc::UnboundedSender, watch};
use tokio::time::MissedTickBehavior;

use super::finishing::{FinishFailure, FinishedFile};
use super::part::file::{PartFile, Sink};
use super::part::{OpenedPart, PartError, PartStore};
use super::pieces::{FinishedChunk, MIN_RELIEVED};
use crate::clock::Clock;
use crate::error::{ErrorKind, TransferError};
use crate::file_name::FileName;
use crate::http::Failure;
use crate::http::priority::DeadlineHint;
use crate::metalink::MetalinkFile;
use crate::transport::{
    AnnouncedSize, Body, Connection, HttpClient, RemoteFile, RequestContext, WindowGuard,
    WindowManager,
};

/// Gathered bytes are written after this time even when they are few: they are what a killed
/// process loses. The receive window is adjusted as often, well within a round trip of any
/// path on which it matters.
const FLUSH_EVERY: Duration = Duration::from_millis(20);

/// A response with no more than this to come is not cut short for a fresh connection, bytes.
const MIN_CUT: u64 = 64 * 1024;

/// Number of a transfer within its run, in the order of arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TransferId(pub(crate) u64);

/// Identifies a worker within a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct WorkerId(pub(crate) u64);

/// From a task to the event loop.
#[derive(Debug)]
pub(crate) enum Message {
    /// A worker's response came over this connection.
    Connected(WorkerId, Connection),
    /// A worker has written everything before this file offset.
    Progress(WorkerId, u64),
    /// A worker has ended, and its connection is free.
    Ended(WorkerId, WorkerOutcome),
    /// What a server says of the size of a file.
    Sized(TransferId, AnnouncedSize),
    /// A checkpoint has been taken, or has failed.
    Checkpointed(TransferId, Result<(), PartError>),
    /// A file was verified and put in place, or could not be.
    Finished(TransferId, Result<FinishedFile, FinishFailure>),
    /// Pieces have been compared with their hashes.
    Compared(TransferId, Result<Vec<(usize, bool)>, PartError>),
    /// SHA-256 of the bytes that all sources are asked for, as the present one has sent them.
    Sampled(TransferId, Option<[u8; 32]>),
}

/// How a worker ended.
#[derive(Debug)]
pub(crate) enum WorkerOutcome {
    /// A probe succeeded and the part file is open.
    Probed(Box<Probed>),
    /// The source has answered after it did so over another path; the round-trip time of this one.
    Second(Option<Duration>),
    /// The source has not answered soon.
    Slow,
    /// Another source of the file has answered.
    Joined(Box<Joined>),
    /// A range or stream has been written whole.
    Fetched(FinishedChunk),
    /// It gave its connection up for another one, with this much of its range written. The
    /// rest may be requested at once.
    Cut(FinishedChunk),
    /// It failed; what it has written stays.
    Failed(Failure),
    /// It was told to stop.
    Stopped,
    /// It panicked or was dropped, without a result.
    Lost,
}

/// An answer with data, from the first byte of the file on, which has not been read.
#[derive(Debug)]
pub(crate) struct UnreadAnswer {
    pub(crate) body: Body,
    /// From the request until it began.
    pub(crate) gap: Duration,
    pub(crate) began: Duration,
}

impl UnreadAnswer {
    /// When it would have been asked for, had nothing kept it from being read until now. What comes
    /// while it waits is counted, but not a time in which nothing may come.
    fn asked(&self, now: Duration) -> Duration {
        let waited = now.saturating_sub(self.began).min(self.gap);
        now.saturating_sub(waited + self.gap)
    }
}

/// A probed file and its part file.
#[derive(Debug)]
pub(crate) struct Probed {
    pub(crate) source: RemoteFile,
    pub(crate) rtt: Option<Duration>,
    pub(crate) answer: Option<UnreadAnswer>,
    /// What the file is called.
    pub(crate) name: FileName,
    /// What a Metalink of the server says of it.
    pub(crate) described: Option<MetalinkFile>,
    pub(crate) opened: OpenedPart,
}

/// What another source says of the file.
#[derive(Debug)]
pub(crate) struct Joined {
    pub(crate) remote: RemoteFile,
    /// SHA-256 of the bytes that all are asked for.
    pub(crate) sample: Option<[u8; 32]>,
    pub(crate) rtt: Option<Duration>,
}

/// Tells the loop of the end of a task exactly once. A task that panics or is dropped sends
/// the fallback.
#[derive(Debug)]
pub(crate) struct Completion {
    messages: UnboundedSender<Message>,
    last: Option<Message>,
}

impl Completion {
    pub(crate) fn new(messages: UnboundedSender<Message>, fallback: Message) -> Self {
        Self {
            messages,
            last: Some(fallback),
        }
    }

    /// The task is done.
    pub(crate) fn end(mut self, message: Message) {
        self.last = Some(message);
    }

    fn send(&self, message: Message) {
        // The loop only stops listening when the run is over.
        let _ = self.messages.send(message);
    }
}

impl Drop for Completion {
    fn drop(&mut self) {
        if let Some(message) = self.last.take() {
            self.send(message);
        }
    }
}

/// Ties a worker to the run.
#[derive(Debug)]
pub(crate) struct WorkerGuard {
    worker: WorkerId,
    /// When what it fetches is due.
    due: Timestamp,
    completion: Completion,
}

impl WorkerGuard {
    pub(crate) fn new(id: WorkerId, due: Timestamp, messages: UnboundedSender<Message>) -> Self {
        let lost = Message::Ended(id, WorkerOutcome::Lost);
        Self {
            worker: id,
            due,
            completion: Completion::new(messages, lost),
        }
    }

    pub(crate) fn end(self, outcome: WorkerOutcome) {
        self.completion.end(Message::Ended(self.worker, outcome));
    }

    fn connected(&self, connection: Connection) {
        self.completion
            .send(Message::Connected(self.worker, connection));
    }

    fn progress(&self, upto: u64) {
        self.completion.send(Message::Progress(self.worker, upto));
    }
}

/// What the workers of a run share that work over the same path.
#[derive(Debug, Clone)]
pub(crate) struct RunContext {
    pub(crate) client: HttpClient,
    pub(crate) store: Arc<PartStore>,
    pub(crate) clock: Clock,
    /// The rate limits, and where bytes are counted in a shared lane.
    pub(crate) limits: RequestContext,
    /// Size of the largest file that is fetched, bytes.
    pub(crate) max_size: Option<u64>,
    pub(crate) window_manager: Option<Arc<WindowManager>>,
    pub(crate) messages: UnboundedSender<Message>,
}

/// True once the workers of a transfer have to stop.
pub(crate) type StopSignal = watch::Receiver<bool>;

/// Resolves when the signal is given, or can no longer be given.
pub(crate) async fn stopped(stop: &mut StopSignal) {
    let _ = stop.wait_for(|stop| *stop).await;
}

/// The failure of a file that is larger than it may be.
pub(crate) fn too_large(message: String) -> Failure {
    let hint = "if it is meant to be that large, allow it with --max-size";
    Failure::Fatal(TransferError::new(ErrorKind::TooLarge, message).with_hint(hint))
}

/// What a worker fetches.
#[derive(Debug)]
pub(crate) enum Job {
    /// Ask for a range.
    Range {
        part: Arc<PartFile>,
        source: Arc<RemoteFile>,
        range: Range<u64>,
        /// Other bytes of the file that are missing.
        beyond: u64,
        /// The deadline, for servers that can act on it.
        hint: Option<DeadlineHint>,
    },
    /// Read an answer from the first byte to its end.
    Read {
        part: Arc<PartFile>,
        answer: UnreadAnswer,
        /// Other bytes of the file that are missing; `None` if the answer carries the whole file.
        beyond: Option<u64>,
    },
}

/// Fetches one range, or a whole stream, into the part file.
pub(crate) async fn fetch(
    context: Arc<RunContext>,
    guard: WorkerGuard,
    job: Job,
    mut stop: StopSignal,
    cut: watch::Receiver<bool>,
) {
    // The part file is let go before the loop hears of the end: it may be
    // opened again at once.
    let outcome = carry_out(&context, &guard, job, &mut stop, cut).await;
    guard.end(outcome.unwrap_or_else(WorkerOutcome::Failed));
}

/// Does the job.
async fn carry_out(
    context: &RunContext,
    guard: &WorkerGuard,
    job: Job,
    stop: &mut StopSignal,
    mut cut: watch::Receiver<bool>,
) -> Result<WorkerOutcome, Failure> {
    let started = context.clock.now();
    let (part, offset, body, beyond, (asked, gap)) = match job {
        Job::Read {
            part,
            answer,
            beyond,
        } => {
            let times = (answer.asked(started), answer.gap);
            (part, 0, answer.body, beyond, times)
        }
        Job::Range {
            part,
            source,
            range,
            beyond,
            hint,
        } => {
            let opened = tokio::select! {
                () = stopped(stop) => return Ok(WorkerOutcome::Stopped),
                () = stopped(&mut cut) => return Ok(WorkerOutcome::Cut(FinishedChunk::NOTHING)),
                opened = context.client.range(&source, range.clone(), hint) => opened,
            };
            let times = (started, context.clock.now().saturating_sub(started));
            (part, range.start, opened?, Some(beyond), times)
        }
    };
    let receiver = BodyReceiver {
        context,
        guard,
        sink: Sink::new(part, offset),
        received: 0,
        reported: offset,
        beyond,
        cut,
    };
    let (end, bytes) = receiver.run(body, stop).await?;
    let chunk = FinishedChunk {
        bytes,
        duration: context.clock.now().saturating_sub(asked),
        gap,
    };
    Ok(match end {
        End::Whole => WorkerOutcome::Fetched(chunk),
        End::Stale => WorkerOutcome::Cut(chunk),
        End::Stopped => WorkerOutcome::Stopped,
    })
}

/// Why no more of a body is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// There is no more.
    Whole,
    /// Another connection brings the rest sooner.
    Stale,
    /// The worker was told to stop.
    Stopped,
}

struct BodyReceiver<'a> {
    context: &'a RunContext,
    guard: &'a WorkerGuard,
    sink: Sink,
    received: u64,
    /// The loop knows that everything before this offset is written.
    reported: u64,
    /// Missing bytes of the file besides those of this response; `None` if the response
    /// cannot be cut short.
    beyond: Option<u64>,
    /// Another way is to bring the rest.
    cut: watch::Receiver<bool>,
}

/// The time between two reads, where the window lever asks for it.
#[derive(Debug, Default)]
struct Pauses {
    length: Option<Duration>,
    last_read: Duration,
}

impl Pauses {
    /// How much of the present pause is left; `None` when it is time to read.
    fn left(&self, now: Duration) -> Option<Duration> {
        let left = (self.last_read + self.length?).saturating_sub(now);
        (!left.is_zero()).then_some(left)
    }
}

impl<'a> BodyReceiver<'a> {
    /// Receives the body; returns why it ended, and how many bytes came.
    /// They are written, however it ends.
    async fn run(mut self, mut body: Body, stop: &mut StopSignal) -> Result<(End, u64), Failure> {
        let expected = body.expected;
        let connection = body.connection.take();
        if let Some(connection) = &connection {
            self.guard.connected(connection.clone());
        }
        let mut window = self.window_guard(connection.as_ref());
        let received = self.receive(&mut body, stop, window.as_mut()).await;
        drop(window);
        let written = self.sink.finish().await;
        self.report();
        written.map_err(disk_failure)?;
        // All bytes are there: what came after them does not matter.
        if expected == Some(self.received) {
            return Ok((End::Whole, self.received));
        }
        match (received?, expected) {
            (End::Whole, Some(expected)) => Err(Failure::network(format!(
                "the connection ended after {} of {expected} bytes",
                self.received
            ))),
            (end, _) => Ok((end, self.received)),
        }
    }

    fn window_guard(&self, connection: Option<&Connection>) -> Option<WindowGuard> {
        let window_manager = self.context.window_manager.as_ref()?;
        window_manager.engage(self.context.clock.now(), connection?, self.guard.due)
    }

    /// Reads until there is a reason not to.
    async fn receive(
        &mut self,
        body: &mut Body,
        stop: &mut StopSignal,
        mut window: Option<&mut WindowGuard>,
    ) -> Result<End, Failure> {
        let expected = body.expected;
        let mut flush = tokio::time::interval(FLUSH_EVERY);
        flush.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut pauses = Pauses::default();
        loop {
            let piece = tokio::select! {
                biased;
                () = stopped(stop) => return Ok(End::Stopped),
                () = stopped(&mut self.cut) => return Ok(End::Stale),
                _ = flush.tick() => {
                    let now = self.context.clock.now();
                    if let Some(window) = &mut window {
                        let remaining = expected.map(|bytes| bytes.saturating_sub(self.received));
                        pauses.length = window.update(now, remaining);
                        if self.is_stale(window, remaining) {
                            return Ok(End::Stale);
                        }
                    }
                    if let Some(left) = pauses.left(now) {
                        flush.reset_after(left.min(FLUSH_EVERY));
                    }
                    self.flush().await?;
                    continue;
                }
                piece = body.next(), if pauses.left(self.context.clock.now()).is_none() => piece?,
            };
            pauses.last_read = self.context.clock.now();
            let Some(piece) = piece else {
                return Ok(End::Whole);
            };
            self.received += piece.len() as u64;
            if expected.is_some_and(|expected| self.received > expected) {
                return Err(Failure::server(
                    "the server sent more bytes than it announced",
                ));
            }
            let limit = self.context.max_size.or_else(|| body.decoded_limit());
            if let Some(limit) = limit.filter(|&limit| self.received > limit) {
                let how = match body.decoded_limit() {
                    Some(_) => "the decompressed file",
                    None => "the file",
                };
                let what = format!("{how} grows beyond {limit} bytes, which is the limit");
                return Err(too_large(what));
            }
            let wait = self.context.limits.reserve(piece.len());
            self.sink.push(piece);
            if self.sink.is_full() {
                self.flush().await?;
            }
            if !wait.is_zero() {
                self.flush().await?;
                tokio::select! {
                    () = stopped(stop) => return Ok(End::Stopped),
                    () = stopped(&mut self.cut) => return Ok(End::Stale),
                    () = tokio::time::sleep(wait) => {}
                }
            }
        }
    }

    fn is_stale(&self, window: &mut WindowGuard, remaining: Option<u64>) -> bool {
        let (Some(here), Some(beyond)) = (remaining, self.beyond) else {
            return false;
        };
        let (now, left) = (self.context.clock.now(), here.saturating_add(beyond));
        here > MIN_RELIEVED && window.is_relieved()
            || here > MIN_CUT && window.is_outgrown(now, left)
    }

    async fn flush(&mut self) -> Result<(), Failure> {
        self.sink.flush().await.map_err(disk_failure)?;
        self.report();
        Ok(())
    }

    /// Tells the loop what is written, if that is more than it knows.
    fn report(&mut self) {
        let written = self.sink.written();
        if written > self.reported {
            self.reported = written;
            self.guard.progress(written);
        }
    }
}

fn disk_failure(error: PartError) -> Failure {
    Failure::Fatal(error.into())
}
