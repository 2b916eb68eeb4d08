//! One transfer's state as the event loop sees it. Pure bookkeeping: no I/O.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use url::Url;

use super::schedule::Line;
use super::worker::{Inquiry, Mode, StopSignal};
use crate::download::part::file::PartFile;
use crate::download::queue::TransferId;
use crate::error::{ErrorKind, TransferError};
use crate::http::priority::DeadlineHint;
use crate::http::without_credentials;
use crate::retry::Backoff;
use crate::settings::{RetrySettings, TransferRequest};
use crate::transport::{Body, Source};
use dalbe::deadline::Deadline;

/// A transfer and how far it is.
#[derive(Debug)]
pub(super) struct Transfer {
    pub(super) id: TransferId,
    pub(super) request: TransferRequest,
    /// The URL as events show it.
    pub(super) url: String,
    /// Host and port, for what a server tolerates.
    pub(super) host: String,
    /// Soft deadline, since the run's start.
    pub(super) deadline: Option<Deadline>,
    /// The even pace towards it, once the size is known.
    pub(super) line: Option<Line>,
    /// Whether it has been said that it will be late.
    pub(super) is_foretold: bool,
    pub(super) phase: Phase,
    /// Bytes on disk.
    pub(super) done: u64,
    /// Size, if known.
    pub(super) total: Option<u64>,
    pub(super) backoff: Backoff,
    /// Not to be tried again before this.
    pub(super) not_before: Duration,
    /// When its first probe started.
    pub(super) started: Option<Duration>,
    /// Probes that found something else than the one before, without any
    /// progress in between.
    pub(super) reprobes: u32,
    /// How often a server that claims to serve ranges sent the whole file,
    /// without any progress in between.
    pub(super) range_refusals: u32,
    /// Parts that had to be thrown away.
    pub(super) discards: u32,
    /// Tasks that are at work for it and may hold its part file.
    pub(super) tasks: u32,
    /// Tells those tasks to stop.
    stop: watch::Sender<bool>,
}

/// Where a transfer stands.
#[derive(Debug)]
pub(super) enum Phase {
    /// To be probed.
    Waiting,
    /// Being probed.
    Probing,
    /// Bytes are moving, or waiting for a connection.
    Moving(Moving),
    /// Its tasks are ending.
    Closing {
        /// The part file, until its last checkpoint is taken.
        part: Option<Arc<PartFile>>,
        /// What comes after that.
        then: Then,
    },
    /// All bytes are there; being verified and put in place.
    Finishing,
    /// Done or given up.
    Ended(Outcome),
}

/// What comes after the tasks have ended.
#[derive(Debug)]
pub(super) enum Then {
    /// Another probe.
    Probe,
    /// Giving up.
    Fail(TransferError),
}

/// A transfer whose part file is open.
#[derive(Debug)]
pub(super) struct Moving {
    pub(super) source: Arc<Source>,
    pub(super) part: Arc<PartFile>,
    /// The answer that carries a whole stream, until a worker takes it.
    pub(super) body: Option<Body>,
    /// Whether a checkpoint is being taken.
    pub(super) in_checkpoint: bool,
    /// When the last one was started.
    pub(super) last_checkpoint: Duration,
}

/// How a transfer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The file is in its place.
    Done {
        /// Whether that was after the soft deadline.
        late: bool,
    },
    /// It is not.
    Failed(ErrorKind),
}

/// Host and port of a URL.
pub(super) fn host_of(url: &Url) -> String {
    let port = url.port_or_known_default().unwrap_or_default();
    format!("{}:{port}", url.host_str().unwrap_or_default())
}

impl Transfer {
    pub(super) fn new(
        id: TransferId,
        request: TransferRequest,
        deadline: Option<Deadline>,
        retry: RetrySettings,
    ) -> Self {
        Self {
            id,
            url: without_credentials(&request.url).into(),
            host: host_of(&request.url),
            request,
            deadline,
            line: None,
            is_foretold: false,
            phase: Phase::Waiting,
            done: 0,
            total: None,
            backoff: Backoff::new(retry),
            not_before: Duration::ZERO,
            started: None,
            reprobes: 0,
            range_refusals: 0,
            discards: 0,
            tasks: 0,
            stop: watch::Sender::new(false),
        }
    }

    /// For a task that is about to start.
    pub(super) fn begin_task(&mut self) -> StopSignal {
        self.tasks += 1;
        self.stop.subscribe()
    }

    /// Lets the tasks end; then `then`.
    pub(super) fn close(&mut self, then: Then) {
        self.stop.send_replace(true);
        let part = match &self.phase {
            Phase::Moving(moving) => Some(Arc::clone(&moving.part)),
            _ => None,
        };
        self.phase = Phase::Closing { part, then };
    }

    /// Ready for another probe.
    pub(super) fn reopen(&mut self) {
        self.stop = watch::Sender::new(false);
        self.phase = Phase::Waiting;
    }

    pub(super) fn moving(&mut self) -> Option<&mut Moving> {
        match &mut self.phase {
            Phase::Moving(moving) => Some(moving),
            _ => None,
        }
    }

    /// What the next probe is to find out.
    pub(super) fn inquiry(&self, terms: Option<DeadlineHint>) -> Inquiry {
        // Once may be an accident on the way, and a part would be thrown away.
        let mode = if self.range_refusals < 2 {
            Mode::Ranges
        } else {
            Mode::Stream
        };
        Inquiry {
            url: self.request.url.clone(),
            target: self.request.target.clone(),
            mode,
            terms,
        }
    }

    /// Forgets failures: bytes have arrived that stay.
    pub(super) fn progress(&mut self) {
        self.backoff.progress();
        self.reprobes = 0;
        self.range_refusals = 0;
    }

    /// Whether it moves in one go, and would start over.
    pub(super) fn is_stream(&self) -> bool {
        matches!(self.phase, Phase::Moving(_)) && !self.is_resumable()
    }

    /// Whether what has been fetched survives a failure.
    pub(super) fn is_resumable(&self) -> bool {
        match &self.phase {
            Phase::Moving(moving) => moving.source.version.is_some(),
            _ => false,
        }
    }

    pub(super) fn is_ended(&self) -> bool {
        matches!(self.phase, Phase::Ended(_))
    }
}
