//! What surrounds the library call of a command: the runtime, signals, progress, JSON
//! lines and the exit code.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::mpsc;
use std::thread;

use fairbat::download::{Report, Stop};
use fairbat::error::{ErrorKind, TransferError};
use fairbat::event::{Event, TimedEvent};
use fairbat::printable::printable_json;
use fairbat::transport::say_goodbye;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tracing_subscriber::EnvFilter;
use url::Url;

use crate::args::{LogArgs, MessageArgs};
use crate::console::{self, Console};
use crate::exit::ExitCode;
use crate::progress::{Circumstances, Display, ProgressDisplay, failed, failed_to_start};
use crate::settings::UsageError;

/// Threads of a transfer: one runs the engine while the other moves bytes.
const WORKER_THREADS: usize = 2;

/// How a run presents itself.
pub(crate) struct Options<'a> {
    pub(crate) messages: &'a MessageArgs,
    pub(crate) log: &'a LogArgs,
    pub(crate) filter: EnvFilter,
    /// `--fail-late`.
    pub(crate) fail_late: bool,
    /// The message after the first signal.
    pub(crate) stopping: &'static str,
}

/// The present moment in the local time zone. The only clock of the command.
#[allow(clippy::disallowed_methods, reason = "the shell that reads the clock")]
pub(crate) fn now() -> jiff::Zoned {
    jiff::Zoned::now()
}

/// A seed that differs from run to run. The standard library takes the keys of its hash
/// tables from the system's random source.
pub(crate) fn random_seed() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Continues with valid arguments, or reports the usage error.
pub(crate) fn with_valid<T>(
    arguments: Result<T, UsageError>,
    run: impl FnOnce(T) -> ExitCode,
) -> ExitCode {
    match arguments {
        Ok(valid) => run(valid),
        Err(error) => {
            Console::plain().line(&format!("error: {error}"));
            ExitCode::Usage
        }
    }
}

/// Warns of deadlines in the past, which may be a typing error. A deadline of several
/// files is reported once.
pub(crate) fn warn_if_late(deadlines: impl IntoIterator<Item = jiff::Timestamp>) {
    let now = now().timestamp();
    let over = deadlines.into_iter().filter(|deadline| *deadline <= now);
    for deadline in over.collect::<BTreeSet<_>>() {
        tracing::warn!("the deadline is over: it was {deadline:.0}, and now it is {now:.0}");
    }
}

/// Makes the library call of `start` and shows its events until it returns.
pub(crate) fn run<Run>(
    options: Options<'_>,
    start: impl FnOnce(Stop, UnboundedSender<TimedEvent>) -> Run,
) -> ExitCode
where
    Run: Future<Output = Result<Report, TransferError>>,
{
    let mut progress = ProgressDisplay::new(Display::choose(circumstances(&options)));
    let console = progress.console().clone();
    console::start_log(options.filter, options.log, &console);
    let mut builder = Builder::new_multi_thread();
    let runtime = match runtime(builder.worker_threads(WORKER_THREADS)) {
        Ok(runtime) => runtime,
        Err(error) => {
            console.line(&failed_to_start(&error));
            return ExitCode::Other;
        }
    };
    let json = options.messages.json.then(|| JsonLines::new(io::stdout()));
    let (to_show, shown) = mpsc::channel();
    // Events have a thread of their own. A slow terminal or a paused reader of the JSON
    // lines must not delay the transfers.
    let display = thread::spawn(move || show(&shown, &mut progress, json));
    let stopping = (!options.log.quiet).then_some(options.stopping);
    let announce = {
        let console = console.clone();
        move || stopping.iter().for_each(|text| console.line(text))
    };
    let result = runtime.block_on(drive(start, to_show, announce));
    runtime.block_on(say_goodbye());
    let display = display.join();
    // Only now: a second signal must work while the last events are shown.
    runtime.shutdown_background();
    match result {
        _ if display.is_err() => ExitCode::Other,
        Ok(report) => ExitCode::of_report(&report, options.fail_late),
        Err(error) => {
            console.line(&failed_to_start(&error));
            ExitCode::of_kind(error.kind)
        }
    }
}

/// Makes one call about `url` until a signal ends it, and shows why it failed.
///
/// # Errors
/// The exit code of the failure.
pub(crate) fn ask<T>(
    console: &Console,
    url: &Url,
    call: impl Future<Output = Result<T, TransferError>>,
) -> Result<T, ExitCode> {
    until_signal(call).map_err(|error| {
        let message = failed(url.as_str(), error.kind, &error.message, &error.hint);
        message.iter().for_each(|text| console.line(text));
        ExitCode::of_kind(error.kind)
    })
}

fn until_signal<T>(
    call: impl Future<Output = Result<T, TransferError>>,
) -> Result<T, TransferError> {
    let runtime = runtime(&mut Builder::new_current_thread())?;
    let result = runtime.block_on(async {
        let mut signals = Signals::listen()?;
        tokio::select! {
            answer = call => answer,
            _ = signals.next() => {
                Err(TransferError::new(ErrorKind::Interrupted, "interrupted"))
            }
        }
    });
    runtime.block_on(say_goodbye());
    // Do not wait for a thread that may still resolve a host name.
    runtime.shutdown_background();
    result
}

/// A runtime with timers and I/O.
///
/// # Errors
/// The system has no threads or descriptors left.
pub(crate) fn runtime(builder: &mut Builder) -> Result<Runtime, TransferError> {
    let runtime = builder.enable_all().build();
    runtime.map_err(|error| other_error("cannot start threads", &error))
}

fn other_error(what: &str, error: &io::Error) -> TransferError {
    TransferError::new(ErrorKind::Other, format!("{what}: {error}"))
}

/// Runs the library call and passes its events on. Closes `to_show` when it returns.
async fn drive<Run>(
    start: impl FnOnce(Stop, UnboundedSender<TimedEvent>) -> Run,
    to_show: mpsc::Sender<TimedEvent>,
    announce: impl Fn() + Send + 'static,
) -> Result<Report, TransferError>
where
    Run: Future<Output = Result<Report, TransferError>>,
{
    let stop = Stop::default();
    tokio::spawn(stop_on_signal(Signals::listen()?, stop.clone(), announce));
    let (sender, mut events) = unbounded_channel();
    // This fails only after the display thread has died. The result still counts.
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

/// Stops the run in good order after the first signal. Ends the process after the second
/// one: the files on the disk are valid at any time.
async fn stop_on_signal(mut signals: Signals, stop: Stop, announce: impl Fn()) {
    signals.next().await;
    stop.interrupt();
    announce();
    signals.next().await;
    std::process::exit(ExitCode::Interrupted as i32);
}

/// Shows events until the run is over.
fn show(
    events: &mpsc::Receiver<TimedEvent>,
    progress: &mut ProgressDisplay,
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

fn circumstances(options: &Options<'_>) -> Circumstances {
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    Circumstances {
        quiet: options.log.quiet,
        json: options.messages.json,
        stdout_terminal: io::stdout().is_terminal(),
        stderr_terminal: io::stderr().is_terminal() && !dumb,
    }
}

/// The signals that ask a process to end: SIGINT and SIGTERM.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

/// One of [`Signals`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TerminationSignal {
    /// SIGINT, from a person at the terminal.
    Interrupt,
    /// SIGTERM, from the manager of the process.
    Terminate,
}

impl Signals {
    /// Catches the signals from now on. Needs a runtime.
    ///
    /// # Errors
    /// The system refuses.
    pub(crate) fn listen() -> Result<Self, TransferError> {
        let listen =
            |kind| signal(kind).map_err(|error| other_error("cannot catch signals", &error));
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) -> TerminationSignal {
        tokio::select! {
            _ = self.interrupt.recv() => TerminationSignal::Interrupt,
            _ = self.terminate.recv() => TerminationSignal::Terminate,
        }
    }
}

/// Writes events as JSON lines, as `docs/json.md` describes them. If the reader goes
/// away, only the lines end: the transfers go on.
#[derive(Debug)]
struct JsonLines<W> {
    /// `None` after the first write that failed.
    out: Option<W>,
}

impl<W: Write> JsonLines<W> {
    fn new(out: W) -> Self {
        Self { out: Some(out) }
    }

    /// Writes and flushes one event.
    fn write(&mut self, event: &TimedEvent) {
        let Some(out) = &mut self.out else { return };
        let written = json_line(event).and_then(|line| {
            out.write_all(line.as_bytes())?;
            out.flush()
        });
        if let Err(error) = written {
            if error.kind() == io::ErrorKind::BrokenPipe {
                tracing::info!("the reader of the JSON lines has gone; no more are written");
            } else {
                tracing::error!("cannot write JSON lines any more: {error}");
            }
            self.out = None;
        }
    }
}

/// The event as one line, which a terminal can show too.
fn json_line(event: &TimedEvent) -> io::Result<String> {
    let line = match with_unicode_path(event) {
        None => serde_json::to_string(event)?,
        Some(event) => serde_json::to_string(&event)?,
    };
    Ok(printable_json(&line) + "\n")
}

/// A copy of the event for JSON, which is Unicode only: replacement characters stand for
/// the other parts of the path. `None` if the path is Unicode already.
fn with_unicode_path(event: &TimedEvent) -> Option<TimedEvent> {
    let mut copy = event.clone();
    let (Event::File { path, .. } | Event::Done { path, .. } | Event::Sent { path, .. }) =
        &mut copy.event
    else {
        return None;
    };
    if path.to_str().is_some() {
        return None;
    }
    *path = PathBuf::from(path.to_string_lossy().into_owned());
    Some(copy)
}

#[cfg(test)]
mod tests;
