//! What workers tell the event loop.

use std::path::PathBuf;
use std::sync::Arc;

use dalbe::socket::TcpSocket;
use tokio::sync::mpsc::UnboundedSender;

use super::part::Opened;
use super::part::StoreError;
use super::pieces::FinishedChunk;
use crate::error::TransferError;
use crate::http::Failure;
use crate::transport::{Body, Source};

/// Number of a transfer within its run, in the order of arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TransferId(pub(crate) u64);

/// Identifies a worker within a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct WorkerId(pub(crate) u64);

/// From a task to the event loop.
#[derive(Debug)]
pub(crate) enum Message {
    /// A worker's response came over this socket.
    Connected(WorkerId, Arc<TcpSocket>),
    /// A worker has written everything before this file offset.
    Progress(WorkerId, u64),
    /// A worker has ended, and its connection is free.
    Ended(WorkerId, Outcome),
    /// A checkpoint has been taken, or has failed.
    Checkpointed(TransferId, Result<(), StoreError>),
    /// A file was verified and put in place, or could not be.
    Finished(TransferId, Result<Finished, TransferError>),
}

/// How a worker ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// A probe succeeded and the part file is open.
    Probed(Box<Probed>),
    /// A range or stream has been written whole.
    Fetched(FinishedChunk),
    /// It gave its connection up for a fresh one, with this much of its range written. The
    /// rest may be requested at once.
    Cut(FinishedChunk),
    /// It failed; what it has written stays.
    Failed(Failure),
    /// It was told to stop.
    Stopped,
    /// It panicked or was dropped, without a result.
    Lost,
}

/// A probed file and its part file.
#[derive(Debug)]
pub(crate) struct Probed {
    pub(crate) source: Source,
    pub(crate) body: Option<Body>,
    pub(crate) opened: Opened,
}

/// A file in its place.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    pub(crate) sha256: Option<String>,
}

/// Sends the loop exactly one message when a task ends. A task that panics sends the
/// fallback.
#[derive(Debug)]
pub(crate) struct Completion {
    messages: UnboundedSender<Message>,
    message: Option<Message>,
}

impl Completion {
    pub(crate) fn new(messages: UnboundedSender<Message>, fallback: Message) -> Self {
        Self {
            messages,
            message: Some(fallback),
        }
    }

    /// The task is done.
    pub(crate) fn send(mut self, message: Message) {
        self.message = Some(message);
    }
}

impl Drop for Completion {
    fn drop(&mut self) {
        if let Some(message) = self.message.take() {
            // The loop only stops listening when the run is over.
            let _ = self.messages.send(message);
        }
    }
}

/// Ties a worker to the run: whatever happens to the worker, the event loop hears of its end
/// exactly once.
#[derive(Debug)]
pub(crate) struct WorkerGuard {
    worker: WorkerId,
    messages: UnboundedSender<Message>,
    outcome: Outcome,
}

impl WorkerGuard {
    pub(crate) fn new(worker: WorkerId, messages: UnboundedSender<Message>) -> Self {
        Self {
            worker,
            messages,
            outcome: Outcome::Lost,
        }
    }

    /// The worker is done.
    pub(crate) fn end(mut self, outcome: Outcome) {
        self.outcome = outcome;
    }

    pub(crate) fn connected(&self, socket: Arc<TcpSocket>) {
        self.send(Message::Connected(self.worker, socket));
    }

    pub(crate) fn progress(&self, upto: u64) {
        self.send(Message::Progress(self.worker, upto));
    }

    fn send(&self, message: Message) {
        // The loop only stops listening when the run is over.
        let _ = self.messages.send(message);
    }
}

impl Drop for WorkerGuard {
    fn drop(&mut self) {
        let outcome = std::mem::replace(&mut self.outcome, Outcome::Lost);
        self.send(Message::Ended(self.worker, outcome));
    }
}
