//! The lane: transfers that share one queue and one admission controller.
//!
//! All state of a run is here and has this one owner. [`Lane::apply`] is
//! synchronous; what takes time is done by tasks that report back. Which
//! chunk comes next and how many connections there may be is decided by
//! [`Queue`] and [`Admission`], not here.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use dalbe::capability::LeverKind;
use dalbe::socket::TcpSocket;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use tokio::sync::mpsc::UnboundedSender;

use super::Action;
use super::Regime;
use super::Report;
use super::admission::Admission;
use super::message::{Message, Outcome as WorkerOutcome, WorkerId};
use super::transfer::{Outcome, Phase, Transfer};
use super::worker::Shared;
use crate::download::chunk_size::ChunkSizer;
use crate::download::queue::{LeaseId, Queue, QueueError, TransferId};
use crate::error::{ErrorKind, TransferError};
use crate::event::{Control, Event, FileProgress, TimedEvent};
use crate::lane::controller::Load;
use crate::lane::forecast::Saturation;
use crate::lane::hosts::HostLimits;
use crate::lane::{Backlog, Permit};
use crate::settings::{RetrySettings, Settings, TransferRequest};
use dalbe::deadline::{Deadline, Demand};
use dalbe::receive_window::{HELD_BACK_SHARE, ReceiveWindowState, ReceiverPolicy};
use jiff::SignedDuration;

/// Written bytes are synced and entered in the journal's record this often:
/// the work that a power loss can cost.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(5);

/// See the module.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) shared: Arc<Shared>,
    events: UnboundedSender<TimedEvent>,
    pub(super) rng: StdRng,
    pub(super) queue: Queue,
    pub(super) admission: Admission,
    /// w_min.
    pub(super) weight: f64,
    pub(super) retry: RetrySettings,
    /// What decides how far the flows yield, if anything does.
    receiver: Option<ReceiverPolicy>,
    /// m_max.
    pub(super) most_connections: u32,
    /// RateLimit on the rate of the whole run, byte/s.
    pub(super) ceiling: Option<f64>,
    /// What the flows carry when they weigh 1.
    pub(super) saturation: Saturation,
    /// By how much the wall clock was off when the deadlines were planned.
    pub(super) drift: SignedDuration,
    pub(super) hosts: HostLimits,
    pub(super) sizer: ChunkSizer,
    pub(super) transfers: Vec<Transfer>,
    /// Which of them have been started and have not ended.
    pub(super) in_progress: BTreeSet<usize>,
    /// Which have not been started, in order: with a deadline, and without.
    pub(super) fresh: [VecDeque<usize>; 2],
    pub(super) workers: HashMap<WorkerId, Worker>,
    pub(super) next_worker: u64,
    /// Whether the run has to end early.
    pub(super) is_stopping: bool,
    pub(super) now: Duration,
}

/// A connection in use.
#[derive(Debug)]
pub(super) struct Worker {
    /// Of the lane that is shared with others: given back with this.
    pub(super) granted: Option<Permit>,
    pub(super) transfer: TransferId,
    pub(super) lease: Option<LeaseId>,
    /// Everything of its lease before this offset is on disk.
    pub(super) written: u64,
    pub(super) socket: Option<Arc<TcpSocket>>,
    /// Whether it has brought any bytes.
    pub(super) has_moved: bool,
}

impl Lane {
    pub(super) fn new(
        settings: &Settings,
        requests: Vec<TransferRequest>,
        shared: Shared,
        events: UnboundedSender<TimedEvent>,
        regime: Regime,
    ) -> Result<Self, TransferError> {
        let transfers = requests.into_iter().enumerate().map(|(index, request)| {
            let deadline = request
                .deadline
                .map(|moment| shared.clock.since_start(moment, SignedDuration::ZERO))
                .map(|by| Deadline::new(Duration::ZERO, by));
            Transfer::new(TransferId(index as u64), request, deadline, settings.retry)
        });
        let transfers: Vec<Transfer> = transfers.collect();
        let is_held = shared.braking.is_some();
        let admission = match regime {
            Regime::Shared(share) => Admission::shared(share),
            Regime::Arrivals(law) => Admission::of_arrivals(settings, law, is_held)?,
            Regime::Own => {
                let due = transfers.iter().filter_map(|transfer| transfer.deadline);
                let window = due.map(|deadline| deadline.by()).min();
                Admission::own(settings, window, is_held)?
            }
        };
        let (due, rest) = (0..transfers.len()).partition(|&i| transfers[i].deadline.is_some());
        Ok(Self {
            transfers,
            in_progress: BTreeSet::new(),
            fresh: [due, rest],
            rng: StdRng::seed_from_u64(settings.seed),
            queue: Queue::new(),
            admission,
            weight: settings.weight,
            retry: settings.retry,
            receiver: (shared.braking.is_some() && settings.weight < 1.0)
                .then_some(settings.receiver),
            most_connections: settings.max_connections,
            ceiling: settings.limit_rate.map(|rate| rate as f64),
            saturation: Saturation::default(),
            drift: SignedDuration::ZERO,
            hosts: HostLimits::new(),
            sizer: ChunkSizer::new(settings.chunk_size.and_then(NonZeroU64::new)),
            workers: HashMap::new(),
            next_worker: 0,
            is_stopping: false,
            now: Duration::ZERO,
            shared: Arc::new(shared),
            events,
        })
    }

    /// Says hello and starts the first workers.
    pub(super) fn start(&mut self, now: Duration, lever: LeverKind) {
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
    pub(super) fn apply(&mut self, now: Duration, action: Action) {
        self.now = now;
        match action {
            Action::Message(message) => self.on_message(message),
            Action::Arrived(request) => self.on_arrived(request),
            Action::Granted(permit) => self.admission.granted(permit),
            Action::Tick => self.on_tick(),
            Action::Wake => {}
            Action::Stop(kind) => self.on_stop(kind),
        }
        self.dispatch();
    }

    /// Whether every transfer has ended and nothing is at work.
    pub(super) fn is_over(&self) -> bool {
        self.in_progress.is_empty() && self.fresh.iter().all(VecDeque::is_empty)
    }

    pub(super) fn report(&self) -> Report {
        let outcomes = self.transfers.iter().map(|transfer| match transfer.phase {
            Phase::Ended(outcome) => outcome,
            _ => Outcome::Failed(ErrorKind::Other),
        });
        Report {
            outcomes: outcomes.collect(),
        }
    }

    /// When something that has to wait may next be tried.
    pub(super) fn next_wake(&self, now: Duration) -> Option<Duration> {
        let waiting = self
            .in_progress()
            .filter(|transfer| matches!(transfer.phase, Phase::Waiting | Phase::Moving(_)));
        waiting
            .map(|transfer| {
                let host = self.hosts.not_before(&transfer.host).unwrap_or_default();
                transfer.not_before.max(host)
            })
            .filter(|&moment| moment > now)
            .min()
    }

    pub(super) fn emit(&self, event: Event) {
        let t = self.now.as_secs_f64();
        // A caller that does not listen is fine.
        let _ = self.events.send(TimedEvent { t, event });
    }

    pub(super) fn transfer(&mut self, id: TransferId) -> &mut Transfer {
        &mut self.transfers[id.0 as usize]
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
        if !std::mem::replace(&mut worker.has_moved, true) {
            self.admission.chunk();
        }
        let socket = worker.socket.clone();
        let id = worker.transfer;
        if let Some(lease) = worker.lease
            && let Err(error) = self.queue.advance(lease, upto)
        {
            // Its transfer was closed meanwhile: the bytes are in the journal.
            tracing::debug!(%error, "progress of a closed lease");
        }
        let now = self.now;
        let transfer = self.transfer(id);
        let is_due = transfer.deadline.is_some();
        transfer.done += bytes;
        // A stream that breaks starts over, so its bytes are no progress.
        if transfer.is_resumable() {
            transfer.progress();
        }
        let rtt = || socket?.info().ok()?.path_rtt();
        self.admission.moved(now, bytes, is_due, rtt);
    }

    /// A connection has become free.
    fn on_ended(&mut self, id: WorkerId, outcome: WorkerOutcome) {
        let Some(mut worker) = self.workers.remove(&id) else {
            return;
        };
        let transfer = worker.transfer;
        self.transfer(transfer).tasks -= 1;
        self.end_lease(worker.lease, matches!(outcome, WorkerOutcome::Fetched(_)));
        if !matches!(outcome, WorkerOutcome::Probed(_)) {
            // Before a failure is counted: a host that refuses a connection is
            // asked for fewer than those that are still in use.
            worker.granted = None;
        }
        match outcome {
            WorkerOutcome::Fetched(chunk) => {
                self.sizer.finished(chunk);
                self.admission.finished(chunk.duration);
                self.after_fetch(transfer, chunk.bytes);
            }
            // What is left of its range waits in front again.
            WorkerOutcome::Cut(chunk) => self.sizer.finished(chunk),
            WorkerOutcome::Probed(probed) => {
                // The first chunk does not wait for another turn.
                if let Some(permit) = worker.granted {
                    self.admission.granted(permit);
                }
                self.on_probed(transfer, *probed);
            }
            WorkerOutcome::Failed(failure) => self.on_failure(transfer, failure),
            WorkerOutcome::Lost => self.on_lost(transfer),
            WorkerOutcome::Stopped => {}
        }
        self.settle(transfer);
        self.tell_backlog();
    }

    fn end_lease(&mut self, lease: Option<LeaseId>, is_finished: bool) {
        let Some(lease) = lease else {
            return;
        };
        let finished = is_finished.then(|| self.queue.finish(lease));
        let ended = match finished {
            Some(Ok(())) => return,
            Some(Err(QueueError::Unfinished(_))) | None => self.queue.fail(lease),
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

    pub(super) fn on_tick(&mut self) {
        self.notice_jump();
        let demand = self.demand();
        // More than the user's ceiling cannot be had, and is not tried for.
        let attainable = demand.map(|demand| Demand {
            zeta: self
                .ceiling
                .map_or(demand.zeta, |most| demand.zeta.min(most)),
            ..demand
        });
        let rtt_ms = self.rtt_ms();
        let load = Load {
            inactive: self.inactive(),
            demand: attainable,
            chunk_len: self.sizer.natural_length(),
            tolerated: self.tolerated(),
            time_left: self.time_left(),
            rtt: rtt_ms.map(|ms| Duration::from_secs_f64(ms / 1e3)),
        };
        let sample = self.admission.sample(self.now, &load);
        if let Some(braking) = &self.shared.braking {
            braking.order(self.admission.order(self.now, &sample));
        }
        self.forecast(&sample, demand.map_or(0.0, |demand| demand.zeta));
        let lag = self.lag();
        let window = self.window();
        self.admission.sees_window(window);
        self.emit(Event::Control(Control {
            n: sample.n,
            m: sample.m,
            active: self.workers.len(),
            w: sample.w,
            window,
            brake: self.brake(sample.rate),
            lag,
            zeta: demand
                .map(|demand| demand.zeta)
                .filter(|zeta| zeta.is_finite()),
            rate: sample.rate,
            rtt_ms,
            bytes_done: self
                .transfers
                .iter()
                .map(|transfer| transfer.done)
                .fold(0, u64::saturating_add),
            bytes_total: self.bytes_total(),
            files: self.files(),
        }));
        self.take_checkpoints();
        self.tell_backlog();
    }

    /// Tells the lane that is shared with others, if there is one, what is left.
    /// What has no size, or is to be probed, counts nothing: it waits as itself.
    pub(super) fn tell_backlog(&self) {
        self.admission.owes(|| Backlog {
            bytes: self
                .queue
                .pending_bytes()
                .saturating_add(self.queue.leased_bytes()),
            inactive: self.queue.inactive_chunks(self.sizer.natural_length()),
        });
    }

    /// Connections that the hosts of unfinished transfers tolerate together.
    fn tolerated(&self) -> u32 {
        let hosts: BTreeSet<&str> = self
            .in_progress()
            .map(|transfer| transfer.host.as_str())
            .collect();
        if hosts.is_empty() {
            return u32::MAX;
        }
        self.hosts.tolerated(hosts, self.now)
    }

    /// Mean round-trip time over the sockets in use, ms.
    fn rtt_ms(&self) -> Option<f64> {
        self.mean_over_sockets(|socket| {
            let rtt = socket.info().ok()?.path_rtt()?;
            Some(rtt.as_secs_f64() * 1e3)
        })
    }

    /// Mean receive window of the connections in use, bytes.
    fn window(&self) -> Option<f64> {
        self.shared.braking.as_ref()?;
        self.mean_over_sockets(|socket| socket.receiver().window_clamp().ok().map(f64::from))
    }

    /// What the brakes of the connections in use do. Connections that hold
    /// each other back and together carry what the path does, or what the user
    /// allows, yield to nobody.
    fn brake(&self, rate: f64) -> Option<ReceiveWindowState> {
        let state = self.shared.braking.as_ref()?.activity(self.now)?;
        let most = self.admission.capacity(self.now);
        let most = self.ceiling.map_or(most, |ceiling| most.min(ceiling));
        let is_held_back = rate < HELD_BACK_SHARE * most;
        Some(match state {
            ReceiveWindowState::Yielding if !is_held_back => ReceiveWindowState::Filling,
            state => state,
        })
    }

    /// `None` when there is none to ask.
    fn mean_over_sockets(&self, of: impl Fn(&TcpSocket) -> Option<f64>) -> Option<f64> {
        let sockets = self
            .workers
            .values()
            .filter_map(|worker| worker.socket.as_ref());
        let values: Vec<f64> = sockets.filter_map(|socket| of(socket)).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }

    /// Transfers that have been started and have not ended.
    pub(super) fn in_progress(&self) -> impl Iterator<Item = &Transfer> {
        self.in_progress.iter().map(|&index| &self.transfers[index])
    }

    /// Bytes of all transfers; `None` while any size is unknown.
    fn bytes_total(&self) -> Option<u64> {
        self.transfers.iter().try_fold(0, |sum: u64, transfer| {
            Some(sum.saturating_add(transfer.total?))
        })
    }

    fn files(&self) -> Vec<FileProgress> {
        self.in_progress()
            .map(|transfer| FileProgress {
                url: transfer.url.clone(),
                bytes_done: transfer.done,
                bytes_total: transfer.total,
            })
            .collect()
    }

    fn take_checkpoints(&mut self) {
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
