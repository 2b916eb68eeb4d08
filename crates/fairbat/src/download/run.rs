//! The run loop: it waits for the next action and applies it to the [`Run`], its single
//! owner, synchronously. So there is no lock and no shared state to reason about.

use std::sync::Arc;
use std::time::Duration;

use dalbe::capability::{Capabilities, LeverKind};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::MissedTickBehavior;

use super::mode::{Arrivals, Report, RunMode, Stop};
use super::part::Store;
use super::state::{Action, Run};
use super::worker::RunContext;
use crate::clock::Clock;
use crate::error::{ErrorKind, TransferError};
use crate::event::TimedEvent;
use crate::lane::handle::TICK;
use crate::lane::settings::Mode;
use crate::lane::{Lane, LaneSettings, Permit, PermitRequest};
use crate::settings::{Settings, TransferRequest};
use crate::transport::{HttpClient, RateLimit, ReceiveWindow, WindowManager};

/// With a limit on the rate the kernel buffers at most this much of it: what it has
/// received and the run has not taken is lost when the process is killed.
const BUFFERED_TIME: Duration = Duration::from_millis(250);

/// Smallest fixed receive buffer, bytes: a few full segments.
const MIN_BUFFER: f64 = 32.0 * 1024.0;

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
    let (messages, mut inbox) = unbounded_channel();
    let clock = Clock::start();
    let is_stream = matches!(mode, RunMode::Stream(_));
    let lever = if is_stream && settings.weight >= 1.0 {
        LeverKind::None
    } else {
        Capabilities::probe().best_lever()
    };
    let window = ReceiveWindow {
        most: settings.limit_rate.map(window_for),
        // A stream yields with one connection only, and rarely. To hold windows by hand
        // would cost its other connections a little.
        is_held: lever.holds_window() && !is_stream,
    };
    let (requests, mut arriving, place, lane_mode) = match mode {
        RunMode::Batch(requests) => {
            let due = requests.iter().filter_map(|request| request.deadline);
            let window = due
                .min()
                .map(|by| clock.since_start(by, Default::default()));
            let min_connections = settings.split;
            let mode = Mode::Batch {
                min_connections,
                window,
            };
            (requests, None, None, mode)
        }
        RunMode::Stream(Arrivals { requests, law }) => {
            (Vec::new(), Some(requests), None, Mode::Stream(law))
        }
        RunMode::InLane(place, request) => (vec![request], None, Some(place), Mode::Shared),
    };
    let max_connections = match lane_mode {
        Mode::Stream(law) => law.m_max,
        _ => settings.max_connections,
    };
    let target = match &place {
        Some(place) => *place.member.lane().flow_target().borrow(),
        None => lane_mode.first_target(settings.weight),
    };
    let window_manager = WindowManager::open(lever, settings.receiver, window, target);
    let lane = match &place {
        Some(place) => place.member.lane().clone(),
        None => {
            let limits = LaneSettings {
                max_connections,
                weight: settings.weight,
                limit_rate: settings.limit_rate,
                is_held: window_manager.is_some(),
            };
            Lane::of_run(limits, lane_mode, clock)
                .map_err(|error| TransferError::new(ErrorKind::Other, error.to_string()))?
        }
    };
    let rate_limits = match &place {
        Some(place) => place.context.rate_limits.clone(),
        None => {
            let own = settings.limit_rate.map(RateLimit::new);
            own.into_iter().map(Arc::new).collect()
        }
    };
    // What a server is asked to hold back stays so, whatever m allows.
    let asks_servers = settings.weight < 1.0 && !is_stream;
    let context = RunContext {
        client: HttpClient::new(&settings.http, max_connections, window)?.yielding(asks_servers),
        window_manager,
        store: Store::new(settings.resume, settings.file_allocation),
        clock,
        rate_limits,
        messages,
    };
    let mut run = Run::new(&settings, requests, context, events, lane, place);
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    tick.reset();
    let stopping = stop.reason(settings.max_time);
    tokio::pin!(stopping);
    let mut is_stopping = false;
    run.start(clock.now(), lever);
    while arriving.is_some() || !run.is_over() {
        let wake = run.next_wake(clock.now());
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
                    run.no_more_come();
                    continue;
                }
            },
            Some(message) = inbox.recv() => Action::Message(message),
            permit = granted(run.request()) => Action::Granted(permit),
            () = clock.sleep_until(wake) => Action::Wake,
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
async fn granted(request: Option<&mut PermitRequest>) -> Permit {
    match request {
        Some(request) => request.await,
        None => std::future::pending().await,
    }
}

/// The receive buffer that a limit on the rate, in byte/s, leaves room for, bytes.
fn window_for(limit_rate: u64) -> u32 {
    // Saturates.
    (limit_rate as f64 * BUFFERED_TIME.as_secs_f64()).max(MIN_BUFFER) as u32
}
