//! The engine: one event loop owns the queue and the admission of new
//! connections; workers each run one request.
//!
//! The loop waits for the next action and applies it to the `Lane`
//! synchronously, so there is no lock and no shared state to reason about.

mod admission;
mod arrivals;
mod chunk_size;
mod dispatch;
mod finish;
mod lane;
mod lifecycle;
mod message;
pub mod part;
mod plan;
pub mod queue;
mod recovery;
mod schedule;
mod sink;
mod stop;
mod transfer;
mod worker;

use std::sync::Arc;
use std::time::Duration;

use dalbe::capability::{Capabilities, LeverKind};
use dalbe::weight::FlowTarget;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::MissedTickBehavior;

pub use self::admission::Share;
use self::admission::Wish;
use self::lane::Lane;
pub use self::stop::Stop;
pub use self::transfer::Outcome;
use self::worker::Shared;
use crate::clock::Clock;
use crate::download::part::Store;
use crate::error::{ErrorKind, TransferError};
use crate::event::TimedEvent;
use crate::lane::AdmissionSettings;
use crate::lane::Permit;
use crate::settings::{Settings, TransferRequest};
use crate::transport::{HttpClient, RateLimit, ReceiveWindow, WindowManager};

/// With a ceiling on the rate, the kernel holds at most this much of it: what
/// it had received and we had not taken is lost when the process is killed.
const BUFFERED_TIME: Duration = Duration::from_millis(250);

/// The smallest fixed receive buffer, in bytes: a few full segments.
const BUFFER_LEAST: f64 = 32.0 * 1024.0;

/// The period of the `control` event and of the measured rate.
const TICK: Duration = Duration::from_secs(1);

/// How a run ended.
#[derive(Debug, Clone)]
pub struct Report {
    /// One outcome per request, in their order.
    pub outcomes: Vec<Outcome>,
}

/// Jobs that come while others are moved, each a transfer without a deadline,
/// until nobody is left who sends any.
#[derive(Debug)]
pub struct Arrivals {
    /// Where they come from.
    pub requests: UnboundedReceiver<TransferRequest>,
    /// The law that admits them. Its period is that of the beginning: as soon as
    /// there are chunks to go by it follows their time.
    pub law: AdmissionSettings,
}

/// What there is to do.
enum Jobs {
    /// All of it is there from the first.
    There(Vec<TransferRequest>),
    /// It comes, until nobody is left who sends any.
    Arriving(UnboundedReceiver<TransferRequest>),
}

/// Under what a run is.
#[derive(Debug)]
enum Regime {
    /// Its own controllers, with all transfers there from the first.
    Own,
    /// This law, for jobs that come and go.
    Arrivals(AdmissionSettings),
    /// A lane that is shared with others.
    Shared(Share),
}

/// Something the loop has to act on.
#[derive(Debug)]
enum Action {
    /// A job has come.
    Arrived(TransferRequest),
    /// A worker has something to say.
    Message(message::Message),
    /// A control period is over.
    Tick,
    /// The lane that is shared with others has granted a connection.
    Granted(Permit),
    /// Something that had to wait may be tried again.
    Wake,
    /// The run shall end early.
    Stop(ErrorKind),
}

/// Runs all transfers to their end: done, given up, or stopped.
///
/// Events go to `events`; nobody needs to listen. The first `interrupt` of
/// `stop` ends the run with every part file resumable.
///
/// # Errors
/// Only when nothing could be started at all: an unreadable certificate or
/// netrc file. Whatever happens to a single transfer is in the report.
pub async fn run(
    settings: Settings,
    requests: Vec<TransferRequest>,
    stop: Stop,
    events: UnboundedSender<TimedEvent>,
) -> Result<Report, TransferError> {
    conduct(settings, Jobs::There(requests), stop, events, Regime::Own).await
}

/// Runs jobs as they come, in the order in which they come, until there are no
/// more of them and all are done: FAIRBAT's own case. A job waits until m allows
/// another connection. Where the law's m_min is below one connection and something
/// can hold the flows back there is always one, which yields to anybody when m allows
/// none; only who has yielded has a window that is held. The deadlines of jobs are of no effect. Once no more can come, m falls no
/// further, and what is left has one whole connection at least.
///
/// A job is meant to be one chunk: one that is longer than `chunk_size` counts as one
/// in n until its size is known, and as many from then on, which m follows at once.
///
/// Of `settings`, the limits on connections are of no effect: they are the law's.
/// At weight 1 no lever is taken: the flows are TCP as the system has it, but marked
/// as Lower Effort (RFC 8622). The report, and what each second costs, grow with every
/// job, so that a run is for thousands of them and not for millions; one that is
/// stopped leaves out those that had not been taken from the channel.
///
/// # Errors
/// As of [`run`], and a law that is none.
pub async fn run_arrivals(
    settings: Settings,
    arrivals: Arrivals,
    stop: Stop,
    events: UnboundedSender<TimedEvent>,
) -> Result<Report, TransferError> {
    let Arrivals { requests, law } = arrivals;
    let settings = Settings {
        max_connections: law.m_max,
        ..settings
    };
    let jobs = Jobs::Arriving(requests);
    conduct(settings, jobs, stop, events, Regime::Arrivals(law)).await
}

/// Runs one transfer in a lane that it shares with others: each of its connections
/// waits for its turn there, weighs what the lane says, and keeps to the ceilings
/// of `share`. Its deadline and its host are those that its member entered with.
///
/// Of `settings`, the limits on connections and weight are of no effect: they are
/// the lane's; `limit_rate` is what the ceilings allow.
///
/// # Errors
/// As of [`run`].
pub async fn run_in(
    share: Share,
    settings: Settings,
    request: TransferRequest,
    stop: Stop,
    events: UnboundedSender<TimedEvent>,
) -> Result<Report, TransferError> {
    let jobs = Jobs::There(vec![request]);
    conduct(settings, jobs, stop, events, Regime::Shared(share)).await
}

async fn conduct(
    settings: Settings,
    jobs: Jobs,
    stop: Stop,
    events: UnboundedSender<TimedEvent>,
    regime: Regime,
) -> Result<Report, TransferError> {
    let (requests, mut arriving) = match jobs {
        Jobs::There(requests) => (requests, None),
        Jobs::Arriving(requests) => (Vec::new(), Some(requests)),
    };
    let (messages, mut inbox) = unbounded_channel();
    let clock = Clock::start();
    let lever = match &regime {
        Regime::Arrivals(_) if settings.weight >= 1.0 => LeverKind::None,
        _ => Capabilities::probe().best_lever(),
    };
    let window = ReceiveWindow {
        most: settings.limit_rate.map(window_for),
        // Where m says it all, only one that is alone ever yields; to hold a window
        // by hand costs the others a little.
        is_held: lever.holds_window() && !matches!(regime, Regime::Arrivals(_)),
    };
    let order = match &regime {
        Regime::Shared(share) => *share.member.lane().order().borrow(),
        Regime::Own => FlowTarget {
            w: settings.weight,
            capacity: 0.0,
        },
        // m begins with a whole connection.
        Regime::Arrivals(_) => FlowTarget {
            w: 1.0,
            capacity: 0.0,
        },
    };
    let ceilings = match &regime {
        Regime::Shared(share) => share.passage.ceilings.clone(),
        Regime::Own | Regime::Arrivals(_) => {
            let own = settings.limit_rate.map(RateLimit::new);
            own.into_iter().map(Arc::new).collect()
        }
    };
    // What a server is asked to hold back stays so, whatever m allows.
    let asks_servers = settings.weight < 1.0 && !matches!(regime, Regime::Arrivals(_));
    let shared = Shared {
        client: HttpClient::new(&settings.http, settings.max_connections, window)?
            .yielding(asks_servers),
        braking: WindowManager::open(lever, settings.receiver, window, order),
        store: Store::new(settings.resume, settings.file_allocation),
        clock,
        ceilings,
        messages,
    };
    let mut lane = Lane::new(&settings, requests, shared, events, regime)?;
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    tick.reset();
    let stopping = stop_reason(stop, settings.max_time);
    tokio::pin!(stopping);
    let mut is_stopping = false;
    let mut wish = None;
    lane.start(clock.now(), lever);
    while arriving.is_some() || !lane.is_over() {
        let wake = lane.next_wake(clock.now());
        if !lane.has_to_ask() {
            wish = None;
        } else if wish.is_none() {
            wish = lane.admission.ask();
        }
        let action = tokio::select! {
            biased;
            kind = &mut stopping, if !is_stopping => {
                is_stopping = true;
                arriving = None;
                Action::Stop(kind)
            }
            _ = tick.tick() => Action::Tick,
            request = next(&mut arriving) => match request {
                Some(request) => Action::Arrived(request),
                None => {
                    arriving = None;
                    lane.admission.no_more_come();
                    continue;
                }
            },
            Some(message) = inbox.recv() => Action::Message(message),
            permit = granted(&mut wish) => {
                wish = None;
                Action::Granted(permit)
            }
            () = clock.sleep_until(wake) => Action::Wake,
        };
        lane.apply(clock.now(), action);
    }
    Ok(lane.report())
}

/// The next job, or that there are no more. Cancel-safe.
async fn next(
    arriving: &mut Option<UnboundedReceiver<TransferRequest>>,
) -> Option<TransferRequest> {
    match arriving {
        Some(requests) => requests.recv().await,
        None => std::future::pending().await,
    }
}

/// Resolves when what was wished is granted. Cancel-safe.
async fn granted(wish: &mut Option<Wish>) -> Permit {
    match wish {
        Some(wish) => wish.await,
        None => std::future::pending().await,
    }
}

/// The receive buffer that a ceiling on the rate, in byte/s, leaves room for,
/// bytes.
fn window_for(limit_rate: u64) -> u32 {
    // Saturates.
    (limit_rate as f64 * BUFFERED_TIME.as_secs_f64()).max(BUFFER_LEAST) as u32
}

/// Resolves with the reason when the run has to end early.
pub(crate) async fn stop_reason(stop: Stop, max_time: Option<Duration>) -> ErrorKind {
    let time_is_up = async {
        match max_time {
            Some(limit) => tokio::time::sleep(limit).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = stop.interrupted() => ErrorKind::Interrupted,
        () = time_is_up => ErrorKind::MaxTime,
    }
}
