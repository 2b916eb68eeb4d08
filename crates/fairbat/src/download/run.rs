//! The run and its loop: it waits for the next action and applies it to the [`Run`], its
//! single owner, synchronously. So there is no lock and no shared state to reason about.
//!
//! What takes time is done by tasks that report back. The lane decides how many
//! connections there may be; the run decides what to do with them.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dalbe::receive_window::{LeverKind, ReceiverPolicy};
use dalbe::socket::TcpSocket;
use dalbe::weight::ControllerPolicy;
use jiff::SignedDuration;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::pieces::{ChunkSizer, LeaseError, LeaseId};
use super::setup::{Outcome, Report, RunMode, Setup, Stop};
use super::transfer::{Destination, Phase, Transfer, host_of};
use super::worker::{Message, RunContext, TransferId, WorkerId, WorkerOutcome};
use crate::clock::Clock;
use crate::error::{ErrorKind, TransferError};
use crate::event::{Event, TimedEvent};
use crate::lane::core::Core;
use crate::lane::handle::control_periods;
use crate::lane::{Lane, LaneSample, Member, Permit, PermitRequest, Service};
use crate::settings::{RetrySettings, Settings, TransferRequest};

/// Runs all transfers to their end: done, given up, or stopped.
///
/// Events go to `events`; a caller need not listen. The first `interrupt` of `stop` ends
/// the run with every part file resumable.
///
/// Of `settings`, a run in a shared lane takes neither the limits on connections nor the
/// weight, which are the lane's; its rate limits are those of the place. A stream takes
/// m_max from its law. At weight 1 a stream uses no lever: its flows are TCP as the system
/// has it, but marked as Lower Effort (RFC 8622).
///
/// # Errors
/// Only when nothing could be started at all: an unreadable certificate or netrc file, or
/// limits that leave no connection. Whatever happens to a single transfer is in the
/// report.
pub async fn run(
    settings: Settings,
    mode: RunMode,
    stop: Stop,
    events: UnboundedSender<TimedEvent>,
) -> Result<Report, TransferError> {
    let clock = Clock::start();
    let (messages, mut inbox) = unbounded_channel();
    let setup = Setup::new(&settings, mode, clock, messages)?;
    let (mut run, mut arriving) = Run::new(&settings, setup, events);
    let mut tick = control_periods();
    let stopping = stop.reason(settings.max_time);
    tokio::pin!(stopping);
    run.start(clock.now());
    while arriving.is_some() || !run.is_over() {
        let action = tokio::select! {
            biased;
            reason = &mut stopping, if !run.is_stopping => {
                run.cut_off = arriving.take().map(|_| reason.kind);
                Action::Stop(reason)
            }
            _ = tick.tick() => Action::Tick,
            request = next(&mut arriving) => match request {
                Some(request) => Action::Arrived(request),
                None => {
                    arriving = None;
                    run.lane
                        .with_core(|core, _| core.stream.no_more_come());
                    continue;
                }
            },
            Some(message) = inbox.recv() => Action::Message(message),
            permit = granted(&mut run.request) => Action::Granted(permit),
            () = clock.sleep_until(run.wake) => Action::Wake,
        };
        run.apply(clock.now(), action);
    }
    Ok(run.report())
}

/// The next job; `None` when there are no more. Cancel-safe.
async fn next(
    arriving: &mut Option<UnboundedReceiver<TransferRequest>>,
) -> Option<TransferRequest> {
    match arriving {
        Some(requests) => requests.recv().await,
        None => std::future::pending().await,
    }
}

/// Resolves when the request is granted. Cancel-safe.
async fn granted(request: &mut Option<PermitRequest>) -> Permit {
    match request {
        Some(request) => request.await,
        None => std::future::pending().await,
    }
}

/// Something that the run has to act on.
#[derive(Debug)]
pub(crate) enum Action {
    /// A job has come.
    Arrived(TransferRequest),
    /// A task reports.
    Message(Message),
    /// A control period is over.
    Tick,
    /// The lane has granted a connection.
    Granted(Permit),
    /// Something that had to wait may be tried again.
    Wake,
    /// The run has to end early.
    Stop(TransferError),
}

/// A run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) context: Arc<RunContext>,
    lever: LeverKind,
    events: UnboundedSender<TimedEvent>,
    pub(crate) rng: StdRng,
    pub(crate) lane: Lane,
    /// Whether the transfers are of a stream: each has one connection.
    pub(crate) is_stream: bool,
    /// The place in a lane that is shared with others; `None` in a lane of its own.
    pub(crate) place: Option<LaneAccount>,
    /// What the run waits for: a connection for the next piece of work.
    pub(crate) request: Option<PermitRequest>,
    /// A connection that was granted and is not in use yet.
    pub(crate) granted: Option<Permit>,
    /// That of a connection that carried the weight of the run's own lane and has just become
    /// free.
    pub(crate) free_carrier: Option<Destination>,
    /// The connection whose rest another one takes over, and since when.
    pub(crate) relieved: Option<(WorkerId, Duration)>,
    /// w_min.
    pub(crate) weight: f64,
    pub(crate) retry: RetrySettings,
    /// What decides how far the flows yield, if anything does.
    pub(crate) receiver: Option<ReceiverPolicy>,
    pub(crate) controller: ControllerPolicy,
    /// Limit on the rate of the whole run, byte/s.
    pub(crate) limit_rate: Option<f64>,
    /// The run never uses more connections.
    pub(crate) max_connections: usize,
    /// Transfers whose size is still to be asked, and how many questions are under way.
    pub(crate) to_ask: VecDeque<usize>,
    pub(crate) asking: usize,
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
    /// Why it ended before all transfers had come.
    cut_off: Option<ErrorKind>,
    /// By how much the wall clock had been set when the deadlines were planned.
    pub(crate) drift: SignedDuration,
    /// When something that has to wait may next be tried, as of the last search for work.
    pub(crate) wake: Option<Duration>,
    pub(crate) now: Duration,
}

/// Where a run in a shared lane is counted.
#[derive(Debug)]
pub(crate) struct LaneAccount {
    chunks: Arc<AtomicU64>,
    /// Bytes of this run since its last sample, and when that was.
    pub(crate) bytes: u64,
    pub(crate) sampled: Duration,
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
    /// A run at its start, and where more requests come from.
    pub(crate) fn new(
        settings: &Settings,
        setup: Setup,
        events: UnboundedSender<TimedEvent>,
    ) -> (Self, Option<UnboundedReceiver<TransferRequest>>) {
        let Setup { context, lane, .. } = setup;
        let (mut member, place) = setup.place.map_or((None, None), |place| {
            let account = LaneAccount {
                chunks: place.chunks,
                bytes: 0,
                sampled: Duration::ZERO,
            };
            (Some(place.member), Some(account))
        });
        let yields = context.window_manager.is_some() && settings.weight < 1.0;
        let mut run = Self {
            lever: setup.lever,
            lane,
            is_stream: setup.is_stream,
            place,
            request: None,
            granted: None,
            free_carrier: None,
            relieved: None,
            weight: settings.weight,
            retry: settings.retry,
            receiver: yields.then_some(settings.receiver),
            controller: settings.controller,
            limit_rate: settings.limit_rate.map(|rate| rate as f64),
            max_connections: settings.max_connections as usize,
            to_ask: VecDeque::new(),
            asking: 0,
            sizer: ChunkSizer::new(settings.chunk_size.and_then(NonZeroU64::new)),
            rng: StdRng::seed_from_u64(settings.seed),
            transfers: Vec::with_capacity(setup.requests.len()),
            in_progress: BTreeSet::new(),
            fresh: Default::default(),
            workers: HashMap::new(),
            next_worker: 0,
            is_stopping: false,
            cut_off: None,
            drift: SignedDuration::ZERO,
            wake: None,
            now: Duration::ZERO,
            context: Arc::new(context),
            events,
        };
        for request in setup.requests {
            let service = Service::of_batch(request.deadline);
            let enter = || run.lane.enter(&host_of(&request.url), service);
            let member = member.take().unwrap_or_else(enter);
            run.add(request, member);
        }
        run.plan_deadlines();
        run.plan_sizes();
        (run, setup.arriving)
    }

    fn add(&mut self, request: TransferRequest, member: Member) {
        let index = self.transfers.len();
        let class = usize::from(request.deadline.is_none());
        let id = TransferId(index as u64);
        self.transfers
            .push(Transfer::new(id, request, member, self.retry));
        self.fresh[class].push_back(index);
    }

    /// Announces the run and starts the first workers.
    fn start(&mut self, now: Duration) {
        self.now = now;
        let urls = self.transfers.iter();
        self.emit(Event::Start {
            urls: urls.map(|transfer| transfer.url.clone()).collect(),
            lever: self.lever,
            receiver: self.receiver,
            controller: self.controller,
        });
        self.dispatch();
    }

    /// Acts on one thing that happened, then on what it made possible.
    pub(crate) fn apply(&mut self, now: Duration, action: Action) {
        self.now = now;
        match action {
            // Most messages are these two. They bring neither work nor a free connection.
            Action::Message(Message::Progress(worker, upto)) => {
                return self.on_progress(worker, upto);
            }
            Action::Message(Message::Connected(worker, socket)) => {
                if let Some(worker) = self.workers.get_mut(&worker) {
                    worker.socket = Some(socket);
                }
                return;
            }
            Action::Message(Message::Sized(id, size)) => self.on_sized(id, size),
            Action::Message(Message::Ended(worker, outcome)) => self.on_ended(worker, outcome),
            Action::Message(Message::Checkpointed(id, result)) => self.on_checkpointed(id, result),
            Action::Message(Message::Finished(id, result)) => self.on_finished(id, result),
            Action::Arrived(mut request) => {
                // Deadlines have no effect in a stream.
                request.deadline = None;
                let member = self.lane.enter(&host_of(&request.url), Service::Stream);
                self.add(request, member);
            }
            Action::Granted(permit) => {
                // The request has been answered, and must not be waited for again.
                self.request = None;
                self.granted = Some(permit);
            }
            Action::Tick => self.on_tick(),
            Action::Wake => {}
            Action::Stop(reason) => self.on_stop(&reason),
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
            cut_off: self.cut_off,
        }
    }

    /// When something that has to wait may next be tried.
    pub(crate) fn next_wake(&self) -> Option<Duration> {
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
            .filter(|&moment| moment > self.now)
            .min()
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

    fn on_progress(&mut self, worker: WorkerId, upto: u64) {
        let Some(worker) = self.workers.get_mut(&worker) else {
            return;
        };
        let bytes = upto - worker.written;
        worker.written = upto;
        let is_first = !std::mem::replace(&mut worker.has_moved, true);
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
                let socket = worker.socket.as_deref();
                let service = transfer.member.service();
                self.context
                    .limits
                    .received(bytes, &self.lane, service, socket);
            }
        }
    }

    /// A connection has become free.
    fn on_ended(&mut self, id: WorkerId, outcome: WorkerOutcome) {
        let Some(worker) = self.workers.remove(&id) else {
            return;
        };
        let (transfer, permit) = (worker.transfer, worker.permit);
        self.transfer(transfer).tasks -= 1;
        let is_finished = matches!(outcome, WorkerOutcome::Fetched(_));
        if is_finished
            && self.place.is_none()
            && let Some((manager, socket)) = self.context.window_manager.as_ref().zip(worker.socket)
            && manager.carries_weight(&socket)
        {
            let moving = self.transfer(transfer).moving();
            self.free_carrier = moving.and_then(|moving| Destination::of(&socket, moving));
        }
        self.end_lease(transfer, worker.lease, is_finished);
        match outcome {
            WorkerOutcome::Probed(probed) => {
                // There the first chunk does not wait for another turn.
                let goes_on = self.place.is_some() || self.is_stream;
                self.granted = Some(permit).filter(|_| goes_on);
                self.on_probed(transfer, *probed);
            }
            WorkerOutcome::Fetched(chunk) => {
                drop(permit);
                self.sizer.finished(chunk);
                self.after_fetch(transfer, chunk.bytes);
            }
            // What is left of its range waits in front again.
            WorkerOutcome::Cut(chunk) => self.sizer.finished(chunk),
            WorkerOutcome::Failed(failure) => self.on_failure(transfer, failure, Some(permit)),
            WorkerOutcome::Lost => {
                let error = TransferError::new(ErrorKind::Other, "a worker ended without a result")
                    .with_hint("this is a defect of fairbat; run the same command again to resume");
                self.give_up(transfer, error);
            }
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

    /// Ends a control period: tells the lane what is left, samples it, and reports.
    pub(crate) fn on_tick(&mut self) {
        self.notice_clock();
        let rtt_ms = self.rtt_ms();
        let sample = if self.place.is_some() {
            self.sample_shared_lane()
        } else {
            self.sample_own_lane(rtt_ms)
        };
        self.report_control(&sample, rtt_ms);
        self.take_checkpoints();
        if self.place.is_some() {
            self.set_backlogs();
        }
    }

    /// Ends a control period of the run's own lane, and reports which transfers will be late.
    fn sample_own_lane(&self, rtt_ms: Option<f64>) -> LaneSample {
        self.lane.notice_clock();
        self.set_backlogs();
        let natural = self.sizer.natural_length();
        self.lane.with_core(|core, _| {
            core.rtt = rtt_ms.map(|ms| Duration::from_secs_f64(ms / 1e3));
            core.chunk_len = natural;
        });
        let sample = self.lane.sample();
        if !self.knows_sizes() {
            return sample;
        }
        for late in self.lane.with_core(Core::report_late) {
            // Members of the run's own lane are numbered as its transfers are.
            if let Some(transfer) = self.transfers.get(late.id.0 as usize) {
                self.emit(Event::late(&transfer.url, &late));
            }
        }
        sample
    }
}
