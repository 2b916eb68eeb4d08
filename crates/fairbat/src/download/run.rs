//! The run and its loop: it waits for the next action and applies it to the [`Run`], its
//! single owner, synchronously. So there is no lock and no shared state to reason about.
//!
//! What takes time is done by tasks that report back. The lane decides how many
//! connections there may be; the run decides what to do with them.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::task::Poll;
use std::time::Duration;

use dalbe::receive_window::{LeverKind, ReceiverPolicy};
use dalbe::weight::ControllerPolicy;
use jiff::SignedDuration;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::connection::Worker;
use super::division::Divider;
use super::run_path::RunPath;
use super::setup::{Outcome, Report, RunMode, Setup, Stop};
use super::transfer::{Stage, Transfer, host_of};
use super::ways::WayMeter;
use super::worker::{Message, RunContext, TransferId, WorkerId};
use crate::clock::Clock;
use crate::error::{ErrorKind, TransferError};
use crate::event::{Event, TimedEvent};
use crate::interfaces::InterfaceWatch;
use crate::lane::handle::control_periods;
use crate::lane::{Lane, Member, Permit, Service};
use crate::settings::{RetrySettings, Settings, TransferRequest};
use crate::shared_bottleneck::SharingTest;

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
    let setup = Setup::new(&settings, mode, clock, &messages)?;
    let (mut run, mut arriving) = Run::new(&settings, setup, events);
    let mut tick = control_periods();
    let stopping = stop.reason(settings.max_time);
    tokio::pin!(stopping);
    let mut watch = run.watch_interfaces();
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
                Some(request) => Action::Arrived(Box::new(request)),
                None => {
                    arriving = None;
                    for path in &run.paths {
                        path.lane.with_core(|core, _| core.stream.no_more_come());
                    }
                    continue;
                }
            },
            changed = changed(watch.as_ref()) => {
                if let Err(error) = changed {
                    tracing::warn!(%error, "the network interfaces are not watched any more");
                    watch = None;
                }
                Action::Interfaces
            }
            Some(message) = inbox.recv() => Action::Message(message),
            (path, permit) = granted(&mut run.paths) => Action::Granted(path, permit),
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

/// Resolves when the machine's interfaces have changed. Cancel-safe.
async fn changed(watch: Option<&InterfaceWatch>) -> std::io::Result<()> {
    match watch {
        Some(watch) => watch.changed().await,
        None => std::future::pending().await,
    }
}

/// Resolves when the request of a path is granted. Cancel-safe.
async fn granted(paths: &mut [RunPath]) -> (usize, Permit) {
    poll_fn(|context| {
        for (index, path) in paths.iter_mut().enumerate() {
            if let Some(request) = &mut path.request
                && let Poll::Ready(permit) = Pin::new(request).poll(context)
            {
                return Poll::Ready((index, permit));
            }
        }
        Poll::Pending
    })
    .await
}

/// Something that the run has to act on.
#[derive(Debug)]
pub(crate) enum Action {
    /// A job has come.
    Arrived(Box<TransferRequest>),
    /// A task reports.
    Message(Message),
    /// Network interfaces have come or gone.
    Interfaces,
    /// A control period is over.
    Tick,
    /// The lane of a path has granted a connection.
    Granted(usize, Permit),
    /// Something that had to wait may be tried again.
    Wake,
    /// The run has to end early.
    Stop(TransferError),
}

/// A run.
#[derive(Debug)]
pub(crate) struct Run {
    /// What all workers share; that of each path has the client and the levers of the path.
    pub(crate) context: Arc<RunContext>,
    /// The ways out of the machine; at least one.
    pub(crate) paths: Vec<RunPath>,
    lever: LeverKind,
    events: UnboundedSender<TimedEvent>,
    pub(crate) rng: StdRng,
    /// Whether the transfers are of a stream: each has one connection.
    pub(crate) is_stream: bool,
    /// The place in a lane that is shared with others; `None` in a lane of its own.
    pub(crate) place: Option<LaneAccount>,
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
    /// m_min of the user.
    pub(crate) split: u32,
    /// m_min at present: with several sources it is more.
    pub(crate) least_connections: u32,
    /// Transfers whose size is still to be asked, and how many questions are under way.
    pub(crate) to_ask: VecDeque<usize>,
    pub(crate) asking: usize,
    pub(crate) divider: Divider,
    /// Which paths share a bottleneck.
    pub(crate) sharing: SharingTest,
    /// The lane that is held back for it.
    pub(crate) held_back: Option<Lane>,
    /// What has been measured of hosts over paths.
    pub(crate) meters: HashMap<(String, usize), WayMeter>,
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
    pub(crate) chunks: Arc<AtomicU64>,
    /// Bytes of this run since its last sample, and when that was.
    pub(crate) bytes: u64,
    pub(crate) sampled: Duration,
}

impl Run {
    /// A run at its start, and where more requests come from.
    pub(crate) fn new(
        settings: &Settings,
        setup: Setup,
        events: UnboundedSender<TimedEvent>,
    ) -> (Self, Option<UnboundedReceiver<TransferRequest>>) {
        let (mut members, place) = setup.place.map_or((None, None), |place| {
            let account = LaneAccount {
                chunks: place.chunks,
                bytes: 0,
                sampled: Duration::ZERO,
            };
            (Some(vec![place.member]), Some(account))
        });
        let context = Arc::clone(&setup.paths[0].context);
        let yields = context.window_manager.is_some() && settings.weight < 1.0;
        let mut run = Self {
            lever: setup.lever,
            paths: setup.paths,
            is_stream: setup.is_stream,
            place,
            weight: settings.weight,
            retry: settings.retry,
            receiver: yields.then_some(settings.receiver),
            controller: settings.controller,
            limit_rate: settings.limit_rate.map(|rate| rate as f64),
            max_connections: settings.max_connections as usize,
            to_ask: VecDeque::new(),
            asking: 0,
            split: settings.split,
            least_connections: settings.split,
            divider: Divider::default(),
            sharing: SharingTest::default(),
            held_back: None,
            meters: HashMap::new(),
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
            context,
            events,
        };
        for request in setup.requests {
            let service = Service::of_batch(request.deadline);
            let enter = || run.enter(&request, service);
            let members = members.take().unwrap_or_else(enter);
            run.add(request, members);
        }
        run.plan_deadlines();
        run.plan_sizes();
        (run, setup.arriving)
    }

    /// A place for a transfer in the lane of each path.
    fn enter(&self, request: &TransferRequest, service: Service) -> Vec<Member> {
        let host = host_of(&request.url);
        let paths = self.paths.iter();
        paths.map(|path| path.lane.enter(&host, service)).collect()
    }

    fn add(&mut self, request: TransferRequest, members: Vec<Member>) {
        let index = self.transfers.len();
        let class = usize::from(request.deadline.is_none());
        let id = TransferId(index as u64);
        self.transfers
            .push(Transfer::new(id, request, members, self.retry));
        self.fresh[class].push_back(index);
    }

    /// Watches the interfaces that paths need, from before they are looked at first.
    fn watch_interfaces(&self) -> Option<InterfaceWatch> {
        let watch = self.names_paths().then(InterfaceWatch::open)?;
        watch
            .inspect_err(|error| tracing::warn!(%error, "the network interfaces are not watched"))
            .ok()
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
        if self.names_paths() && !self.is_stream {
            self.tell_least_connections();
        }
        self.look_at_interfaces();
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
            Action::Message(Message::Connected(worker, connection)) => {
                if let Some(worker) = self.workers.get_mut(&worker) {
                    let info = connection.info().ok();
                    let protocol = connection.protocol();
                    worker.connection = Some(connection);
                    worker.pace.rtt = info.and_then(|info| info.min_rtt.or(info.rtt));
                    let (id, way, rtt) = (worker.transfer, worker.way, worker.pace.rtt);
                    self.note_rtt(id, way, rtt);
                    self.transfer(id).sources.protocol = Some(protocol);
                }
                return;
            }
            Action::Message(Message::Compared(id, result)) => self.on_compared(id, result),
            Action::Message(Message::Sampled(id, digest)) => self.on_sampled(id, digest),
            Action::Message(Message::Sized(id, size)) => self.on_sized(id, size),
            Action::Message(Message::Ended(worker, outcome)) => self.on_ended(worker, outcome),
            Action::Message(Message::Checkpointed(id, result)) => self.on_checkpointed(id, result),
            Action::Message(Message::Finished(id, result)) => self.on_finished(id, result),
            Action::Arrived(mut request) => {
                // Deadlines have no effect in a stream.
                request.deadline = None;
                let members = self.enter(&request, Service::Stream);
                self.add(*request, members);
            }
            Action::Granted(path, permit) => {
                // The request has been answered, and must not be waited for again.
                self.paths[path].request = None;
                self.paths[path].granted = Some(permit);
            }
            Action::Interfaces => self.look_at_interfaces(),
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
        let outcomes = self.transfers.iter().map(|transfer| match transfer.stage {
            Stage::Ended(outcome) => outcome,
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
            .filter(|transfer| matches!(transfer.stage, Stage::Waiting | Stage::Moving(_)));
        let ways = waiting.flat_map(Transfer::ways);
        // In a shared lane the request waits for the host in the queue.
        let waits_for_host = self.place.is_none();
        ways.map(|way| way.not_before(waits_for_host))
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
}
