//! The state of a run: transfers, workers and the place in the lane.
//!
//! [`Run::apply`] is synchronous. What takes time is done by tasks that report back. The
//! lane decides how many connections there may be; the run decides what to do with them.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dalbe::capability::LeverKind;
use dalbe::receive_window::ReceiverPolicy;
use dalbe::socket::TcpSocket;
use jiff::SignedDuration;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use tokio::sync::mpsc::UnboundedSender;

use super::message::{Message, Outcome as WorkerOutcome, TransferId, WorkerId};
use super::mode::{LanePlace, Outcome, Report};
use super::pieces::ChunkSizer;
use super::pieces::{LeaseError, LeaseId};
use super::transfer::{Phase, Transfer, host_of};
use super::worker::RunContext;
use crate::error::{ErrorKind, TransferError};
use crate::event::{Event, TimedEvent};
use crate::lane::{Lane, Permit, PermitRequest};
use crate::settings::{RetrySettings, Settings, TransferRequest};
use crate::transport::RequestContext;

/// Written bytes are synced and entered in the journal this often: the work that a power
/// loss can cost.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(5);

/// Something that the run has to act on.
#[derive(Debug)]
pub(crate) enum Action {
    /// A job has come.
    Arrived(TransferRequest),
    /// A worker reports.
    Message(Message),
    /// A control period is over.
    Tick,
    /// The lane has granted a connection.
    Granted(Permit),
    /// Something that had to wait may be tried again.
    Wake,
    /// The run has to end early.
    Stop(ErrorKind),
}

/// A run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) context: Arc<RunContext>,
    events: UnboundedSender<TimedEvent>,
    pub(crate) rng: StdRng,
    pub(crate) lane: Lane,
    /// The place in a lane that is shared with others; `None` in a lane of its own.
    pub(crate) place: Option<LaneAccount>,
    /// What the run waits for: a connection for the next piece of work.
    pub(crate) request: Option<PermitRequest>,
    /// A connection that was granted and is not in use yet.
    pub(crate) granted: Option<Permit>,
    /// w_min.
    pub(crate) weight: f64,
    pub(crate) retry: RetrySettings,
    /// What decides how far the flows yield, if anything does.
    pub(crate) receiver: Option<ReceiverPolicy>,
    /// Limit on the rate of the whole run, byte/s.
    pub(crate) limit_rate: Option<f64>,
    pub(crate) sizer: ChunkSizer,
    pub(crate) transfers: Vec<Transfer>,
    /// Transfers that have been started and have not ended.
    pub(crate) in_progress: BTreeSet<usize>,
    /// Transfers that have not been started, in order: with a deadline, and without.
    pub(crate) fresh: [VecDeque<usize>; 2],
    pub(crate) workers: HashMap<WorkerId, Worker>,
    pub(crate) next_worker: u64,
    /// Whether the run has to end early.
    pub(crate) is_stopping: bool,
    pub(crate) now: Duration,
}

/// Where a run in a shared lane is counted.
#[derive(Debug)]
pub(crate) struct LaneAccount {
    context: RequestContext,
    chunks: Arc<AtomicU64>,
    /// Bytes of this run since its last sample, and when that was.
    pub(crate) bytes: u64,
    pub(crate) sampled: Duration,
    /// By how much the wall clock had been set when the deadlines were planned.
    pub(crate) drift: SignedDuration,
}

/// A connection in use.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) permit: Permit,
    pub(crate) transfer: TransferId,
    pub(crate) lease: Option<LeaseId>,
    /// Everything of its lease before this offset is on disk.
    pub(crate) written: u64,
    pub(crate) socket: Option<Arc<TcpSocket>>,
    /// Whether it has brought any bytes.
    pub(crate) has_moved: bool,
}

impl Run {
    pub(crate) fn new(
        settings: &Settings,
        requests: Vec<TransferRequest>,
        context: RunContext,
        events: UnboundedSender<TimedEvent>,
        lane: Lane,
        place: Option<LanePlace>,
    ) -> Self {
        let (member, place) = match place {
            Some(place) => {
                let LanePlace {
                    member,
                    context,
                    chunks,
                } = place;
                let account = LaneAccount {
                    context,
                    chunks,
                    bytes: 0,
                    sampled: Duration::ZERO,
                    drift: SignedDuration::ZERO,
                };
                (Some(member), Some(account))
            }
            None => (None, None),
        };
        let mut run = Self {
            in_progress: BTreeSet::new(),
            fresh: Default::default(),
            transfers: Vec::with_capacity(requests.len()),
            rng: StdRng::seed_from_u64(settings.seed),
            lane,
            place,
            request: None,
            granted: None,
            weight: settings.weight,
            retry: settings.retry,
            receiver: (context.window_manager.is_some() && settings.weight < 1.0)
                .then_some(settings.receiver),
            limit_rate: settings.limit_rate.map(|rate| rate as f64),
            sizer: ChunkSizer::new(settings.chunk_size.and_then(NonZeroU64::new)),
            workers: HashMap::new(),
            next_worker: 0,
            is_stopping: false,
            now: Duration::ZERO,
            context: Arc::new(context),
            events,
        };
        let mut member = member;
        for request in requests {
            let enter = || run.lane.enter(&host_of(&request.url), request.deadline);
            let member = member.take().unwrap_or_else(enter);
            run.add(Transfer::new(
                TransferId(run.transfers.len() as u64),
                request,
                member,
                run.retry,
            ));
        }
        match run.place {
            None => run.note_deadlines(),
            Some(_) => run.plan_deadlines(SignedDuration::ZERO),
        }
        run
    }

    fn add(&mut self, transfer: Transfer) {
        let index = self.transfers.len();
        let class = usize::from(transfer.request.deadline.is_none());
        self.transfers.push(transfer);
        self.fresh[class].push_back(index);
    }

    /// Announces the run and starts the first workers.
    pub(crate) fn start(&mut self, now: Duration, lever: LeverKind) {
        self.now = now;
        let urls = self
            .transfers
            .iter()
            .map(|transfer| transfer.url.clone())
            .collect();
        self.emit(Event::Start {
            urls,
            lever,
            receiver: self.receiver,
        });
        self.dispatch();
    }

    /// Acts on one thing that happened, then on what it made possible.
    pub(crate) fn apply(&mut self, now: Duration, action: Action) {
        self.now = now;
        match action {
            Action::Message(message) => self.on_message(message),
            Action::Arrived(request) => self.on_arrived(request),
            Action::Granted(permit) => {
                // The request has been answered, and must not be waited for again.
                self.request = None;
                self.granted = Some(permit);
            }
            Action::Tick => self.on_tick(),
            Action::Wake => {}
            Action::Stop(kind) => self.on_stop(kind),
        }
        self.dispatch();
    }

    /// Whether every transfer has ended and nothing is at work.
    pub(crate) fn is_over(&self) -> bool {
        self.in_progress.is_empty() && self.fresh.iter().all(VecDeque::is_empty)
    }

    pub(crate) fn report(&self) -> Report {
        let outcomes = self.transfers.iter().map(|transfer| match transfer.phase {
            Phase::Ended(outcome) => outcome,
            _ => Outcome::Failed(ErrorKind::Other),
        });
        Report {
            outcomes: outcomes.collect(),
        }
    }

    /// When something that has to wait may next be tried.
    pub(crate) fn next_wake(&self, now: Duration) -> Option<Duration> {
        let waiting = self
            .in_progress()
            .filter(|transfer| matches!(transfer.phase, Phase::Waiting | Phase::Moving(_)));
        waiting
            .map(|transfer| {
                let host = match self.place {
                    // The request waits for the host in the lane's queue.
                    Some(_) => None,
                    None => transfer.member.host_not_before(),
                };
                transfer.not_before.max(host.unwrap_or_default())
            })
            .filter(|&moment| moment > now)
            .min()
    }

    /// The request for a connection that the run waits for.
    pub(crate) fn request(&mut self) -> Option<&mut PermitRequest> {
        self.request.as_mut()
    }

    /// No more jobs come to this stream.
    pub(crate) fn no_more_come(&self) {
        self.lane.no_more_come();
    }

    pub(crate) fn emit(&self, event: Event) {
        let t = self.now.as_secs_f64();
        // A caller that does not listen is fine.
        let _ = self.events.send(TimedEvent { t, event });
    }

    pub(crate) fn transfer(&mut self, id: TransferId) -> &mut Transfer {
        &mut self.transfers[id.0 as usize]
    }

    /// Transfers that have been started and have not ended.
    pub(crate) fn in_progress(&self) -> impl Iterator<Item = &Transfer> {
        self.in_progress.iter().map(|&index| &self.transfers[index])
    }

    /// A job joins the queue. Deadlines have no effect in a stream.
    fn on_arrived(&mut self, mut request: TransferRequest) {
        request.deadline = None;
        let id = TransferId(self.transfers.len() as u64);
        let member = self.lane.enter(&host_of(&request.url), None);
        self.add(Transfer::new(id, request, member, self.retry));
    }

    fn on_message(&mut self, message: Message) {
        match message {
            Message::Connected(worker, socket) => {
                if let Some(worker) = self.workers.get_mut(&worker) {
                    worker.socket = Some(socket);
                }
            }
            Message::Progress(worker, bytes) => self.on_progress(worker, bytes),
            Message::Ended(worker, outcome) => self.on_ended(worker, outcome),
            Message::Checkpointed(id, result) => self.on_checkpointed(id, result),
            Message::Finished(id, result) => self.on_finished(id, result),
        }
    }

    fn on_progress(&mut self, worker: WorkerId, upto: u64) {
        let Some(worker) = self.workers.get_mut(&worker) else {
            return;
        };
        let bytes = upto - worker.written;
        worker.written = upto;
        let is_first = !std::mem::replace(&mut worker.has_moved, true);
        let socket = worker.socket.clone();
        let (id, lease) = (worker.transfer, worker.lease);
        let transfer = &mut self.transfers[id.0 as usize];
        // The bytes of a transfer that was closed meanwhile are in the journal.
        if let (Some(lease), Some(moving)) = (lease, transfer.moving())
            && let Err(error) = moving.pieces.advance(lease, upto)
        {
            tracing::debug!(%error, "progress of a closed lease");
        }
        transfer.done += bytes;
        // A stream that breaks starts over, so its bytes are no progress.
        if transfer.is_resumable() {
            transfer.progress();
        }
        match &mut self.place {
            None => transfer.member.moved(bytes),
            Some(place) => {
                place.bytes += bytes;
                if is_first {
                    place.chunks.fetch_add(1, Ordering::Relaxed);
                }
                let rtt = socket.and_then(|socket| socket.info().ok()?.path_rtt());
                place.context.count(bytes, &self.lane);
                self.lane.moved(bytes, rtt);
            }
        }
    }

    /// A connection has become free.
    fn on_ended(&mut self, id: WorkerId, outcome: WorkerOutcome) {
        let Some(worker) = self.workers.remove(&id) else {
            return;
        };
        let transfer = worker.transfer;
        self.transfer(transfer).tasks -= 1;
        self.end_lease(
            transfer,
            worker.lease,
            matches!(outcome, WorkerOutcome::Fetched(_)),
        );
        if matches!(outcome, WorkerOutcome::Probed(_)) && self.place.is_some() {
            // The first chunk does not wait for another turn.
            self.granted = Some(worker.permit);
        } else {
            // Given back before a failure is counted: a host that refuses a connection
            // gets one less than those still in use and the refused one. Nor may a request
            // of this run take the place of the refused connection at once.
            if matches!(outcome, WorkerOutcome::Failed(_)) {
                self.request = None;
            }
            drop(worker.permit);
        }
        match outcome {
            WorkerOutcome::Fetched(chunk) => {
                self.sizer.finished(chunk);
                self.lane.chunk_ended(chunk.duration);
                self.after_fetch(transfer, chunk.bytes);
            }
            // What is left of its range waits in front again.
            WorkerOutcome::Cut(chunk) => self.sizer.finished(chunk),
            WorkerOutcome::Probed(probed) => self.on_probed(transfer, *probed),
            WorkerOutcome::Failed(failure) => self.on_failure(transfer, failure),
            WorkerOutcome::Lost => self.on_lost(transfer),
            WorkerOutcome::Stopped => {}
        }
        self.settle(transfer);
        if self.place.is_some() {
            self.set_backlogs();
        }
    }

    fn end_lease(&mut self, id: TransferId, lease: Option<LeaseId>, is_finished: bool) {
        let (Some(lease), Some(moving)) = (lease, self.transfer(id).moving()) else {
            return;
        };
        let finished = is_finished.then(|| moving.pieces.finish(lease));
        let ended = match finished {
            Some(Ok(())) => return,
            Some(Err(LeaseError::Unfinished(_))) | None => moving.pieces.fail(lease),
            Some(error) => error,
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "end of a closed lease");
        }
    }

    fn on_lost(&mut self, id: TransferId) {
        let error = TransferError::new(ErrorKind::Other, "a worker ended without a result")
            .with_hint("this is a defect of fairbat; run the same command again to resume");
        self.give_up(id, error);
    }

    pub(crate) fn take_checkpoints(&mut self) {
        let now = self.now;
        for index in self.in_progress.clone() {
            let id = self.transfers[index].id;
            let Some(moving) = self.transfers[index].moving() else {
                continue;
            };
            let is_due = now >= moving.last_checkpoint + CHECKPOINT_EVERY
                && !moving.in_checkpoint
                && moving.part.unsynced_bytes() > 0;
            if is_due {
                moving.in_checkpoint = true;
                moving.last_checkpoint = now;
                let part = Arc::clone(&moving.part);
                self.checkpoint(id, part);
            }
        }
    }

    fn on_stop(&mut self, kind: ErrorKind) {
        self.is_stopping = true;
        let message = match kind {
            ErrorKind::MaxTime => "stopped by --max-time",
            _ => "interrupted",
        };
        self.fresh = Default::default();
        for index in 0..self.transfers.len() {
            let transfer = &self.transfers[index];
            if !transfer.is_ended() {
                let hint = if transfer.is_stream() {
                    "this server's file cannot be continued: the same command starts over"
                } else {
                    "run the same command again to resume"
                };
                let error = TransferError::new(kind, message).with_hint(hint);
                self.give_up(transfer.id, error);
            }
        }
    }
}
