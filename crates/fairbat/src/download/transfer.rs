//! The state of one transfer, as the event loop keeps it. No I/O.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use dalbe::deadline::Deadline;
use dalbe::socket::TcpSocket;
use tokio::sync::watch;
use url::{Origin, Url};

use super::part::file::PartFile;
use super::pieces::Pieces;
use super::setup::Outcome;
use super::sources::{Inquiry, Sources};
use super::worker::{StopSignal, TransferId};
use crate::error::{ErrorKind, TransferError};
use crate::http::priority::DeadlineHint;
use crate::http::without_credentials;
use crate::lane::{EvenPace, Member, Rank};
use crate::retry::Backoff;
use crate::settings::{RetrySettings, TransferRequest};
use crate::transport::{Body, RemoteFile};

/// A transfer and how far it is.
#[derive(Debug)]
pub(crate) struct Transfer {
    pub(crate) id: TransferId,
    pub(crate) request: TransferRequest,
    /// The URL as events show it.
    pub(crate) url: String,
    pub(crate) sources: Sources,
    /// Its place in the lane.
    pub(crate) member: Member,
    /// Soft deadline, on the run's clock.
    pub(crate) deadline: Option<Deadline>,
    /// The even pace towards it, once the size is known.
    pub(crate) even_pace: Option<EvenPace>,
    pub(crate) phase: Phase,
    /// Bytes on disk.
    pub(crate) done: u64,
    /// Size, if known.
    pub(crate) total: Option<u64>,
    pub(crate) backoff: Backoff,
    /// It is not tried again before this.
    pub(crate) not_before: Duration,
    /// When its first probe started.
    pub(crate) started: Option<Duration>,
    /// Probes that found another file than the probe before, without progress in between.
    pub(crate) reprobes: u32,
    /// How often a server that claims to serve ranges sent the whole file, without progress
    /// in between.
    pub(crate) range_refusals: u32,
    /// Parts that had to be thrown away.
    pub(crate) discards: u32,
    /// Tasks that work for it and may hold its part file.
    pub(crate) tasks: u32,
    /// Tells those tasks to stop.
    stop: watch::Sender<bool>,
}

/// Where a transfer stands.
#[derive(Debug)]
pub(crate) enum Phase {
    /// To be probed.
    Waiting,
    /// Being probed.
    Probing,
    /// Bytes are moving, or waiting for a connection.
    Moving(Box<Moving>),
    /// Its tasks are ending.
    Closing {
        /// The part file, until its last checkpoint is taken.
        part: Option<Arc<PartFile>>,
        /// Whether that is thrown away: nobody wants the beginning of a file that may not be whole.
        discards: bool,
        /// What comes after that.
        then: Then,
    },
    /// All bytes are there; the file is being verified and put in place.
    Finishing,
    /// Done or given up.
    Ended(Outcome),
}

/// What comes after the tasks have ended.
#[derive(Debug)]
pub(crate) enum Then {
    /// Another probe.
    Probe,
    /// Giving up.
    Fail(TransferError),
}

/// A transfer whose part file is open.
#[derive(Debug)]
pub(crate) struct Moving {
    pub(crate) source: Arc<RemoteFile>,
    pub(crate) part: Arc<PartFile>,
    /// What is left to fetch.
    pub(crate) pieces: Pieces,
    /// The answer that carries a whole stream, until a worker takes it.
    pub(crate) body: Option<Body>,
    /// Whether a checkpoint is being taken.
    pub(crate) in_checkpoint: bool,
    /// When the last one was started.
    pub(crate) last_checkpoint: Duration,
}

/// What a connection can be used for again: transfers whose connections have the same.
#[derive(Debug, PartialEq)]
pub(crate) struct Destination {
    /// The server, or the proxy before it.
    peer: SocketAddr,
    origin: Origin,
}

impl Destination {
    /// That of a connection of this transfer, while there is one.
    pub(crate) fn of(socket: &TcpSocket, moving: &Moving) -> Option<Self> {
        let peer = socket.peer_addr().ok()?;
        let origin = moving.source.url.origin();
        Some(Self { peer, origin })
    }
}

/// Host and port of a URL.
pub(crate) fn host_of(url: &Url) -> String {
    let port = url.port_or_known_default().unwrap_or_default();
    format!("{}:{port}", url.host_str().unwrap_or_default())
}

impl Transfer {
    pub(crate) fn new(
        id: TransferId,
        request: TransferRequest,
        member: Member,
        retry: RetrySettings,
    ) -> Self {
        Self {
            id,
            url: without_credentials(&request.url).into(),
            sources: Sources::of(&request),
            request,
            member,
            deadline: None,
            even_pace: None,
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

    /// Its place in the order of service.
    pub(crate) fn rank(&self) -> Rank {
        Rank::new(self.member.service(), self.id.0)
    }

    /// Bytes that it still has to move, if that is known.
    pub(crate) fn remaining(&self) -> Option<u64> {
        match &self.phase {
            Phase::Finishing => Some(0),
            Phase::Moving(moving) => moving.pieces.remaining(),
            _ => Some(self.total?.saturating_sub(self.done)),
        }
    }

    /// Counts a task that starts; returns its stop signal.
    pub(crate) fn begin_task(&mut self) -> StopSignal {
        self.tasks += 1;
        self.stop.subscribe()
    }

    /// Ends the tasks; `then` follows.
    pub(crate) fn close(&mut self, then: Then) {
        let discards = matches!(&then, Then::Fail(error) if error.kind == ErrorKind::TooLarge);
        self.close_part(then, discards);
    }

    fn close_part(&mut self, then: Then, discards: bool) {
        self.stop.send_replace(true);
        let part = match &self.phase {
            Phase::Moving(moving) => Some(Arc::clone(&moving.part)),
            _ => None,
        };
        self.phase = Phase::Closing {
            part,
            discards,
            then,
        };
    }

    /// Begins anew with another source, which has failed in nothing yet. `error` is that of the
    /// one before.
    pub(crate) fn change_source(&mut self, retry: RetrySettings, error: ErrorKind) {
        self.backoff = Backoff::new(retry);
        self.not_before = Duration::ZERO;
        (self.reprobes, self.range_refusals, self.discards) = (0, 0, 0);
        (self.done, self.total, self.even_pace) = (0, None, None);
        self.close_part(Then::Probe, error == ErrorKind::TooLarge);
    }

    /// Ready for another probe.
    pub(crate) fn reopen(&mut self) {
        self.stop = watch::Sender::new(false);
        self.phase = Phase::Waiting;
    }

    pub(crate) fn moving(&mut self) -> Option<&mut Moving> {
        match &mut self.phase {
            Phase::Moving(moving) => Some(moving),
            _ => None,
        }
    }

    /// What the next probe is to find out.
    pub(crate) fn inquiry(&self, hint: Option<DeadlineHint>) -> Inquiry {
        // One refusal may be an accident on the way, and a part would be thrown away.
        let as_stream = self.range_refusals >= 2;
        let target = self.request.target.clone();
        self.sources.inquiry(target, as_stream, hint)
    }

    /// Forgets failures: bytes have arrived, and they stay.
    pub(crate) fn progress(&mut self) {
        self.backoff.progress();
        self.reprobes = 0;
        self.range_refusals = 0;
    }

    /// Whether it moves in one request that starts over when it fails.
    pub(crate) fn is_stream(&self) -> bool {
        matches!(self.phase, Phase::Moving(_)) && !self.is_resumable()
    }

    /// Whether what has been fetched survives a failure.
    pub(crate) fn is_resumable(&self) -> bool {
        match &self.phase {
            Phase::Moving(moving) => moving.source.version.is_some(),
            _ => false,
        }
    }

    pub(crate) fn is_ended(&self) -> bool {
        matches!(self.phase, Phase::Ended(_))
    }
}
