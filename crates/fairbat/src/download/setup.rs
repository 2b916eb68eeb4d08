//! What a caller gives to a run, what it gets back, and what a run starts with.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use dalbe::capability::Capabilities;
use dalbe::receive_window::LeverKind;
use jiff::SignedDuration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::sync::watch;

use super::part::PartStore;
use super::pieces::ChunkSizer;
use super::run_path::{Metered, RunPath};
use super::worker::{Message, RunContext};
use crate::clock::Clock;
use crate::error::{ErrorKind, TransferError};
use crate::lane::settings::Mode;
use crate::lane::{AdmissionSettings, Lane, LaneSettings, Member, Service};
use crate::machine::LaneDirection;
use crate::settings::{HttpSettings, PathSettings, Settings, TransferRequest};
use crate::transport::{HttpClient, RateLimit, ReceiveWindow, RequestContext, Tap, WindowManager};

/// What a run moves, and which lane it moves it in.
#[derive(Debug)]
pub enum RunMode {
    /// One batch in a lane of its own: by deadline where there is one, else at the lowest
    /// priority.
    Batch(Vec<TransferRequest>),
    /// Transfers without deadlines that keep arriving, in a lane of their own.
    Stream(Arrivals),
    /// One transfer in a lane that it shares with others. Each of its connections waits
    /// for its turn there, and weighs what the lane says. Deadline and host are those
    /// that the member entered with.
    ///
    /// In its `control` events n, m, w and zeta are those of the whole lane. There are no
    /// `forecast` events: [`MemberForecast`](crate::lane::MemberForecast) tells whether the
    /// transfer will be late.
    InLane(LanePlace, Box<TransferRequest>),
}

/// Transfers that keep arriving, without deadlines, until no sender is left.
///
/// A transfer waits until m allows another connection; first come, first served. It has one
/// connection at a time, over which all that is missing of it is asked for at once. Where
/// the law's m_min is below one connection and a lever can hold the flows, there is always
/// one connection, which yields when m allows none. Deadlines have no effect. Once no more
/// transfers can come, m falls no further, and what is left has at least one whole
/// connection.
///
/// The report, and what each second costs, grow with every transfer, so a run is for
/// thousands of them and not for millions. The report of a stopped run leaves out those that
/// had not been taken from the channel.
#[derive(Debug)]
pub struct Arrivals {
    /// Where they come from.
    pub requests: UnboundedReceiver<TransferRequest>,
    /// The law that admits them. Its period is that of the beginning: as soon as chunks
    /// have ended, T follows the time that they take.
    pub law: AdmissionSettings,
}

/// A place in a lane that is shared with others.
#[derive(Debug)]
pub struct LanePlace {
    /// The place.
    pub member: Member,
    /// The client of all downloads in the lane that are served like this one, from [`client`].
    pub client: Arc<HttpClient>,
    /// The rate limits that the lane keeps to, and where bytes are counted.
    pub context: RequestContext,
    /// Where chunks are counted: requests that have brought bytes of the file.
    pub chunks: Arc<AtomicU64>,
}

/// How a run ended.
#[derive(Debug, Clone)]
pub struct Report {
    /// One outcome per request, in their order.
    pub outcomes: Vec<Outcome>,
    /// Why a stream ended before all its transfers had come.
    pub cut_off: Option<ErrorKind>,
}

/// How a transfer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The file is in its place.
    Done {
        /// Whether that was after the soft deadline.
        late: bool,
    },
    /// It is not; the part file may be there still.
    Failed(ErrorKind),
}

/// Ends a run from outside. Clones act on the same run.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    interrupted: watch::Sender<bool>,
}

impl Stop {
    /// Asks the run to end soon, and to leave every transfer resumable.
    pub fn interrupt(&self) {
        self.interrupted.send_replace(true);
    }

    /// Resolves with the reason when the run has to end early.
    pub(crate) async fn reason(self, max_time: Option<Duration>) -> TransferError {
        let time_is_up = async {
            match max_time {
                Some(limit) => tokio::time::sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        let mut interrupted = self.interrupted.subscribe();
        let (kind, message) = tokio::select! {
            // The sender lives in `self`, so waiting cannot fail.
            _ = interrupted.wait_for(|stop| *stop) => (ErrorKind::Interrupted, "interrupted"),
            () = time_is_up => (ErrorKind::MaxTime, "stopped by --max-time"),
        };
        TransferError::new(kind, message)
    }
}

/// With a limit on the rate the kernel buffers at most this much of it: what it has
/// received and the run has not taken is lost when the process is killed.
const BUFFERED_TIME: Duration = Duration::from_millis(250);

/// Smallest fixed receive buffer, bytes: a few full segments.
const MIN_BUFFER: f64 = 32.0 * 1024.0;

/// What a run starts with.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) lever: LeverKind,
    /// The ways out of the machine; at least one.
    pub(crate) paths: Vec<RunPath>,
    /// Whether the transfers are of a stream.
    pub(crate) is_stream: bool,
    /// The place in a lane that is shared with others.
    pub(crate) place: Option<LanePlace>,
    pub(crate) requests: Vec<TransferRequest>,
    /// Where more requests come from.
    pub(crate) arriving: Option<UnboundedReceiver<TransferRequest>>,
}

impl Setup {
    /// Chooses the lever, and opens lane, client and window manager.
    ///
    /// # Errors
    /// An unreadable certificate or netrc file, or limits that leave no connection.
    pub(crate) fn new(
        settings: &Settings,
        mode: RunMode,
        clock: Clock,
        messages: &UnboundedSender<Message>,
    ) -> Result<Self, TransferError> {
        let service = match &mode {
            RunMode::Stream(_) => Service::Stream,
            RunMode::Batch(_) => Service::Scavenge,
            RunMode::InLane(place, _) => place.member.service(),
        };
        let is_stream = service == Service::Stream;
        let lever = if is_stream && settings.weight >= 1.0 {
            LeverKind::None
        } else {
            Capabilities::probe().best_lever()
        };
        let limits = LaneSettings {
            max_connections: settings.max_connections,
            weight: settings.weight,
            max_weight: settings.max_weight,
            limit_rate: settings.limit_rate,
            is_held: lever.holds_window(),
            controller: settings.controller,
            stream: AdmissionSettings::stream(),
        };
        let mut max_connections = settings.max_connections;
        let (mut requests, mut arriving, mut place) = (Vec::new(), None, None);
        let (limits, lane_mode) = match mode {
            RunMode::Batch(batch) => {
                let due = batch.iter().filter_map(|request| request.deadline).min();
                let mode = Mode::Batch {
                    min_connections: settings.split,
                    window: due.map(|by| clock.since_start(by, SignedDuration::ZERO)),
                };
                requests = batch;
                (limits, Some(mode))
            }
            RunMode::Stream(Arrivals { requests, law }) => {
                max_connections = law.m_max;
                arriving = Some(requests);
                let limits = LaneSettings {
                    max_connections,
                    stream: law,
                    ..limits
                };
                (limits, Some(Mode::Stream))
            }
            RunMode::InLane(shared, request) => {
                requests = vec![*request];
                place = Some(shared);
                (limits, None)
            }
        };
        let run_limit = settings.limit_rate.map(RateLimit::new).map(Arc::new);
        let store = Arc::new(PartStore::new(settings.resume, settings.file_allocation));
        // What a server is asked to hold back stays so, whatever m allows.
        let asks_servers = settings.weight < 1.0 && !is_stream;
        let mut paths = Vec::new();
        let named_paths = named_paths(settings);
        let count = named_paths.len() as f64;
        for named in named_paths {
            let limit_rate = named.and_then(|path| path.limit_rate);
            let least_limit = limits.limit_rate.into_iter().chain(limit_rate).min();
            let window = ReceiveWindow::new(least_limit.map(window_for), lever, service);
            let lane = match (&place, lane_mode) {
                (None, Some(mode)) => match lane_behind(&paths, named) {
                    Some(lane) => lane,
                    None => own_lane(settings, limits, mode, named, clock)?,
                },
                (Some(place), _) => place.member.lane().clone(),
                (None, None) => unreachable!("a run has a place or a lane of its own"),
            };
            let client = match &place {
                Some(place) => HttpClient::clone(&place.client),
                None => {
                    let http = HttpSettings {
                        local_end: named.map(|path| path.local_end.clone()),
                        ..settings.http.clone()
                    };
                    HttpClient::new(&http, max_connections, Tap::Receive(window))?
                }
            };
            let window_manager =
                WindowManager::open(lever, settings.receiver, window, lane.clone(), service);
            if let (None, Some(_)) = (&place, &window_manager) {
                lane.set_path_limited(true);
            }
            let own_limit = limit_rate.map(RateLimit::new).map(Arc::new);
            // What deadlines need of it is known later.
            let is_metered = named.is_some_and(|path| path.is_metered);
            let metered = is_metered.then(|| Arc::new(RateLimit::new(u64::MAX)));
            let context = RunContext {
                client: client.yielding(asks_servers),
                window_manager,
                store: Arc::clone(&store),
                clock,
                limits: match &place {
                    Some(place) => place.context.clone(),
                    None => RequestContext {
                        rate_limits: run_limit
                            .iter()
                            .chain(&own_limit)
                            .chain(&metered)
                            .cloned()
                            .collect(),
                        ..RequestContext::default()
                    },
                },
                max_size: settings.max_size,
                messages: messages.clone(),
            };
            let sizer = ChunkSizer::new(settings.chunk_size.and_then(NonZeroU64::new));
            let mut path = RunPath::new(Arc::new(context), lane, named.cloned(), sizer);
            path.share = 1.0 / count;
            path.metered = metered.map(|limit| Metered {
                limit,
                is_used: false,
            });
            paths.push(path);
        }
        Ok(Self {
            lever,
            paths,
            is_stream,
            place,
            requests,
            arriving,
        })
    }
}

/// The paths of a run: those that the user names, or the routes of the system.
fn named_paths(settings: &Settings) -> Vec<Option<&PathSettings>> {
    match settings.paths.as_slice() {
        [] => vec![None],
        paths => paths.iter().map(Some).collect(),
    }
}

/// The lane of an earlier path with the same bottleneck.
fn lane_behind(paths: &[RunPath], named: Option<&PathSettings>) -> Option<Lane> {
    let shares = |path: &&RunPath| {
        let settings = path.settings.as_ref().zip(named);
        settings.is_some_and(|(one, other)| one.shares_bottleneck(other))
    };
    Some(paths.iter().find(shares)?.lane.clone())
}

/// A lane for a run alone, and there for this path and those that share its bottleneck.
fn own_lane(
    settings: &Settings,
    limits: LaneSettings,
    mode: Mode,
    named: Option<&PathSettings>,
    clock: Clock,
) -> Result<Lane, TransferError> {
    let shares = |other: &&PathSettings| named.is_some_and(|path| path.shares_bottleneck(other));
    let behind: Vec<&PathSettings> = settings.paths.iter().filter(shares).collect();
    let weights = behind
        .iter()
        .map(|path| path.weight.unwrap_or(limits.weight));
    let all_limits: Option<Vec<u64>> = behind.iter().map(|path| path.limit_rate).collect();
    let together = all_limits.filter(|limits| !limits.is_empty());
    let together = together.map(|limits| limits.into_iter().fold(0, u64::saturating_add));
    let limits = LaneSettings {
        weight: weights.reduce(f64::min).unwrap_or(limits.weight),
        limit_rate: limits.limit_rate.into_iter().chain(together).min(),
        ..limits
    };
    let lane = Lane::of_run(limits, mode, clock)
        .map_err(|error| TransferError::new(ErrorKind::Other, error.to_string()))?;
    if let Some(machine) = settings.machine.clone() {
        machine.join(&lane, LaneDirection::Pull);
    }
    Ok(lane)
}

/// A client for all downloads of a lane that are served like `service`. Over TLS it holds the
/// certificates of all authorities (over 100 KB), so they share one. `limit_rate` is the limit
/// of the lane, byte/s.
///
/// # Errors
/// The certificate or netrc file cannot be read.
pub fn client(
    settings: &HttpSettings,
    connections: u32,
    limit_rate: Option<u64>,
    service: Service,
) -> Result<Arc<HttpClient>, TransferError> {
    let lever = Capabilities::probe().best_lever();
    let window = ReceiveWindow::new(limit_rate.map(window_for), lever, service);
    HttpClient::new(settings, connections, Tap::Receive(window)).map(Arc::new)
}

/// The receive buffer that a limit on the rate, in byte/s, leaves room for, bytes.
fn window_for(limit_rate: u64) -> u32 {
    // Saturates.
    (limit_rate as f64 * BUFFERED_TIME.as_secs_f64()).max(MIN_BUFFER) as u32
}
