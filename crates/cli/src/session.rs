//! One library call with everything around it: progress and JSON lines while
//! it works, an ear for signals, and its result as an exit code.
//!
//! It must not know what is transferred, or in which direction.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, IsTerminal};
use std::pin::pin;
use std::sync::mpsc;
use std::thread;

use fairbat::download::{Report, Stop};
use fairbat::error::{ErrorKind, TransferError};
use fairbat::event::TimedEvent;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tracing_subscriber::EnvFilter;

use crate::args::{LogArgs, MessageArgs};
use crate::clock;
use crate::console::Console;
use crate::exit::ExitCode;
use crate::json::JsonLines;
use crate::log;
use crate::progress::{Circumstances, Display, Progress, failed_to_start};
use crate::settings::UsageError;
use crate::signals::Signals;

/// Threads for the engine and its workers: one owner, and one to move bytes
/// meanwhile.
const WORKER_THREADS: usize = 2;

/// How a run presents itself.
pub(crate) struct Manner<'a> {
    pub(crate) messages: &'a MessageArgs,
    pub(crate) log: &'a LogArgs,
    pub(crate) filter: EnvFilter,
    /// `--fail-late`.
    pub(crate) fail_late: bool,
    /// What is said when a signal was heard.
    pub(crate) stopping: &'static str,
}

/// Goes on with what is known to be right, or says what is wrong with it.
pub(crate) fn prepared<Right>(
    prepared: Result<Right, UsageError>,
    go_on: impl FnOnce(Right) -> ExitCode,
) -> ExitCode {
    match prepared {
        Ok(right) => go_on(right),
        Err(error) => {
            Console::plain().line(&format!("error: {error}"));
            ExitCode::Usage
        }
    }
}

/// Makes the library call of `start` and sees it to its end.
pub(crate) fn run<Run>(
    manner: Manner<'_>,
    start: impl FnOnce(Stop, UnboundedSender<TimedEvent>) -> Run,
) -> ExitCode
where
    Run: Future<Output = Result<Report, TransferError>>,
{
    let mut progress = Progress::new(Display::choose(circumstances(&manner)));
    let console = progress.console().clone();
    log::begin(manner.filter, manner.log, &console);
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(error) => {
            console.line(&format!("error: cannot start threads: {error}"));
            return ExitCode::Other;
        }
    };
    let json = manner.messages.json.then(|| JsonLines::new(io::stdout()));
    let (to_show, shown) = mpsc::channel();
    // A thread of its own: a slow terminal or a paused reader of the JSON
    // lines must not hold up the transfers.
    let shower = thread::spawn(move || show(&shown, &mut progress, json));
    let announcer = Announcer {
        console: console.clone(),
        quiet: manner.log.quiet,
        stopping: manner.stopping,
    };
    let result = runtime.block_on(drive(start, to_show, announcer));
    let shown = shower.join();
    // Only now: until here a second signal had to be heard.
    runtime.shutdown_background();
    match result {
        _ if shown.is_err() => ExitCode::Other,
        Ok(report) => ExitCode::of_report(&report, manner.fail_late),
        Err(error) => {
            console.line(&failed_to_start(&error));
            ExitCode::of_kind(error.kind)
        }
    }
}

/// A deadline that is over may be a slip of the pen; one that several files
/// share is told once.
pub(crate) fn warn_if_late(deadlines: impl IntoIterator<Item = jiff::Timestamp>) {
    let now = clock::now().timestamp();
    let over = deadlines.into_iter().filter(|deadline| *deadline <= now);
    for deadline in over.collect::<BTreeSet<_>>() {
        tracing::warn!("the deadline is over: it was {deadline:.0}, and now it is {now:.0}");
    }
}

fn runtime() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKER_THREADS)
        .enable_all()
        .build()
}

/// The one library call, with an ear for signals; its events go to `to_show`,
/// which is closed when it returns.
async fn drive<Run>(
    start: impl FnOnce(Stop, UnboundedSender<TimedEvent>) -> Run,
    to_show: mpsc::Sender<TimedEvent>,
    announcer: Announcer,
) -> Result<Report, TransferError>
where
    Run: Future<Output = Result<Report, TransferError>>,
{
    let stop = Stop::new();
    let signals = Signals::listen().map_err(|error| {
        TransferError::new(ErrorKind::Other, format!("cannot catch signals: {error}"))
    })?;
    tokio::spawn(obey(signals, stop.clone(), announcer));
    let (sender, mut events) = unbounded_channel();
    // Fails only when the showing thread has died; the result still counts.
    let forward = |event| drop(to_show.send(event));
    let mut run = pin!(start(stop, sender));
    let result = loop {
        tokio::select! {
            result = &mut run => break result,
            Some(event) = events.recv() => forward(event),
        }
    };
    while let Ok(event) = events.try_recv() {
        forward(event);
    }
    result
}

/// Says that a signal was heard.
struct Announcer {
    console: Console,
    quiet: bool,
    stopping: &'static str,
}

/// The first signal stops the run in good order, the second one at once: what
/// is on the disk is made for that.
async fn obey(mut signals: Signals, stop: Stop, announcer: Announcer) {
    signals.next().await;
    stop.interrupt();
    if !announcer.quiet {
        announcer.console.line(announcer.stopping);
    }
    signals.next().await;
    std::process::exit(ExitCode::Interrupted as i32);
}

/// Shows events until the run is over.
fn show(
    events: &mpsc::Receiver<TimedEvent>,
    progress: &mut Progress,
    mut json: Option<JsonLines<io::Stdout>>,
) {
    for event in events {
        if let Some(json) = &mut json {
            json.write(&event);
        }
        progress.show(&event);
    }
    progress.finish();
}

fn circumstances(manner: &Manner<'_>) -> Circumstances {
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    Circumstances {
        quiet: manner.log.quiet,
        json: manner.messages.json,
        stdout_terminal: io::stdout().is_terminal(),
        stderr_terminal: io::stderr().is_terminal() && !dumb,
    }
}

/// A seed that differs from run to run: the standard library keys its hash
/// tables from the system's random source.
pub(crate) fn random_seed() -> u64 {
    RandomState::new().build_hasher().finish()
}
