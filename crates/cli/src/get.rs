//! `fairbat get`: resolve, call the library once, show what it reports, and
//! turn the result into an exit code.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, IsTerminal};
use std::pin::pin;
use std::sync::mpsc;
use std::thread;

use fairbat::engine::{self, Report, Stop};
use fairbat::error::{ErrorKind, TransferError};
use fairbat::event::TimedEvent;
use fairbat::settings::{Settings, TransferRequest};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::unbounded_channel;
use tracing_subscriber::EnvFilter;

use crate::args::GetArgs;
use crate::clock;
use crate::console::Console;
use crate::exit::ExitCode;
use crate::json::JsonLines;
use crate::log;
use crate::progress::{Circumstances, Display, Progress, failed_to_start};
use crate::settings::{self, Surroundings, UsageError};
use crate::signals::Signals;

/// Threads for the engine and its workers: one owner, and one to move bytes
/// meanwhile.
const WORKER_THREADS: usize = 2;

/// Runs the command.
pub(crate) fn run(args: &GetArgs) -> ExitCode {
    match prepare(args) {
        Ok(prepared) => transfer(args, prepared),
        Err(error) => {
            Console::plain().line(&format!("error: {error}"));
            ExitCode::Usage
        }
    }
}

/// What is known to be right before anything starts.
struct Prepared {
    settings: Settings,
    requests: Vec<TransferRequest>,
    filter: EnvFilter,
}

fn prepare(args: &GetArgs) -> Result<Prepared, UsageError> {
    let (settings, requests) = settings::resolve(
        args,
        &mut Surroundings {
            now: &clock::now(),
            variable: &|name| std::env::var_os(name),
            stdin: &mut io::stdin().lock(),
            seed: random_seed(),
        },
    )?;
    Ok(Prepared {
        settings,
        requests,
        filter: log::filter(&args.log)?,
    })
}

fn transfer(args: &GetArgs, prepared: Prepared) -> ExitCode {
    let Prepared {
        settings,
        requests,
        filter,
    } = prepared;
    let mut progress = Progress::new(Display::choose(circumstances(args)));
    let console = progress.console().clone();
    log::begin(filter, &args.log, &console);
    warn_if_late(&requests);
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(error) => {
            console.line(&format!("error: cannot start threads: {error}"));
            return ExitCode::Other;
        }
    };
    let json = args.messages.json.then(|| JsonLines::new(io::stdout()));
    let (to_show, shown) = mpsc::channel();
    // A thread of its own: a slow terminal or a paused reader of the JSON
    // lines must not hold up the downloads.
    let shower = thread::spawn(move || show(&shown, &mut progress, json));
    let announcer = Announcer {
        console: console.clone(),
        quiet: args.log.quiet,
    };
    let result = runtime.block_on(drive(settings, requests, to_show, announcer));
    let shown = shower.join();
    // Only now: until here a second signal had to be heard.
    runtime.shutdown_background();
    match result {
        _ if shown.is_err() => ExitCode::Other,
        Ok(report) => ExitCode::of_report(&report, args.pace.fail_late),
        Err(error) => {
            console.line(&failed_to_start(&error));
            ExitCode::of_kind(error.kind)
        }
    }
}

/// A deadline that is over may be a slip of the pen; one that several files
/// share is told once.
fn warn_if_late(requests: &[TransferRequest]) {
    let now = clock::now().timestamp();
    let deadlines = requests.iter().filter_map(|request| request.deadline);
    let over: BTreeSet<_> = deadlines.filter(|deadline| *deadline <= now).collect();
    for deadline in over {
        tracing::warn!("the deadline is over: it was {deadline}, and now it is {now:.0}");
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
async fn drive(
    settings: Settings,
    requests: Vec<TransferRequest>,
    to_show: mpsc::Sender<TimedEvent>,
    announcer: Announcer,
) -> Result<Report, TransferError> {
    let stop = Stop::new();
    let signals = Signals::listen().map_err(|error| {
        TransferError::new(ErrorKind::Other, format!("cannot catch signals: {error}"))
    })?;
    tokio::spawn(obey(signals, stop.clone(), announcer));
    let (sender, mut events) = unbounded_channel();
    // Fails only when the showing thread has died; the result still counts.
    let forward = |event| drop(to_show.send(event));
    let mut run = pin!(engine::run(settings, requests, stop, sender));
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
}

/// The first signal stops the run in good order, the second one at once: the
/// journal is made for that.
async fn obey(mut signals: Signals, stop: Stop, announcer: Announcer) {
    signals.next().await;
    stop.interrupt();
    if !announcer.quiet {
        announcer
            .console
            .line("stopping; run the same command again to resume");
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

fn circumstances(args: &GetArgs) -> Circumstances {
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    Circumstances {
        quiet: args.log.quiet,
        json: args.messages.json,
        stdout_terminal: io::stdout().is_terminal(),
        stderr_terminal: io::stderr().is_terminal() && !dumb,
    }
}

/// A seed that differs from run to run: the standard library keys its hash
/// tables from the system's random source.
fn random_seed() -> u64 {
    RandomState::new().build_hasher().finish()
}
