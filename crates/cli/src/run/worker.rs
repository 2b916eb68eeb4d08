//! The second process: starts the command, and holds its connections.

use std::ffi::OsString;
use std::fs::{File, metadata};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use dalbe::process::{
    self, ForeignProcess, Inherited, Intent, LastNotice, ListenError, Listener, Notice, launch,
    own_number,
};
use dalbe::receive_window::WindowLever;
use fairbat::hold::history::{History, PastRun};
use fairbat::hold::{HoldEvent, HoldReport, Holder, Scope, allow_descriptors};
use nix::sys::signal::{SigSet, Signal};
use rustix::process::setpgid;

use super::message::{Ending, FAILED, WorkerMessage, send};
use super::messages;
use super::passage::Passage;
use super::plan::{RunPlan, RunTarget};
use super::reaper::{Reaped, reap};
use super::shared::ProcessShare;
use super::streams::detach;
use crate::console::Console;
use crate::exit::ExitCode;
use crate::session::now;

/// The exit codes if the command cannot be run, as of shells: it is there, ...
const NOT_EXECUTABLE: i32 = 126;
/// ... and it is not.
const NOT_FOUND: i32 = 127;

/// What happens to the worker.
enum WorkerNews {
    /// System calls are told, or are not.
    Listening(Result<(), ListenError>),
    /// A process connects the socket of this descriptor.
    Connects(i32, i32),
    /// The command has told this share of its work as done.
    Progress(f64),
    /// Nobody writes to the stream that passes through, or nobody reads it.
    Closed,
    /// A process runs this program without the rights of its owner.
    Unprivileged(PathBuf),
    /// The front is gone, or wants all connections to be let go.
    Alone,
    /// A process has ended, or none is left.
    Reaped(Reaped),
}

/// Starts the command, and holds its connections until nothing is left of it.
pub(super) fn run(
    mut plan: RunPlan,
    channel: UnixStream,
    shared: ProcessShare,
    console: &Console,
) -> ExitCode {
    let ProcessShare {
        mut inherited,
        last,
        listener,
        mut passage,
    } = shared;
    // Its lines are for the terminal, though it is no process of the foreground.
    let terminal: SigSet = [Signal::SIGTTOU].into_iter().collect();
    let _ = terminal.thread_block();
    let (news, heard) = mpsc::channel();
    let (what, scope) = match &plan.target {
        RunTarget::Command(words) => (
            words[0].to_string_lossy().into_owned(),
            Scope::Below(own_number()),
        ),
        RunTarget::Running(what, scope) => (what.clone(), scope.clone()),
    };
    let failed = |text: String, code| {
        console.line(&format!("error: {text}"));
        send(&channel, WorkerMessage::Ended(Ending::Exit(code)));
        ExitCode::Other
    };
    let mut holder = match Holder::new(scope, plan.hold, plan.plan) {
        Ok(holder) => holder,
        Err(error) => return failed(error.to_string(), FAILED),
    };
    if let Some(machine) = plan.machine.take() {
        holder.join(machine);
    }
    let say = |text: String| {
        if !plan.is_quiet {
            console.line(&format!("fairbat: {text}"));
        }
    };
    let started_at = now().timestamp();
    let command = match &plan.target {
        RunTarget::Command(words) => match start(
            words,
            &inherited,
            plan.notifies.then_some((last, listener)),
            passage.as_mut(),
            &news,
        ) {
            Ok(pid) => Some(pid),
            Err(error) => {
                let code = match error.kind() {
                    io::ErrorKind::NotFound => NOT_FOUND,
                    _ => NOT_EXECUTABLE,
                };
                return failed(format!("cannot run {what}: {error}"), code);
            }
        },
        RunTarget::Running(..) => None,
    };
    say(messages::started(&what, holder.levers(), plan.plan.weight));
    plan.remark.take().into_iter().for_each(&say);
    // The command is in the process group of the front. Signals of the terminal are for them.
    let _ = setpgid(None, None);
    detach(&[rustix::stdio::dup2_stdin, rustix::stdio::dup2_stdout]);
    inherited.close();
    allow_descriptors();
    if let Some(command) = command {
        send(&channel, WorkerMessage::Started { pid: command });
        reap(news.clone(), WorkerNews::Reaped);
    }
    if let Ok(channel) = channel.try_clone() {
        let news = news.clone();
        thread::spawn(move || {
            // The front says nothing. It ends its side, by its own end too.
            let _ = io::copy(&mut &channel, &mut io::sink());
            let _ = news.send(WorkerNews::Alone);
        });
    }
    if let Some(passage) = &passage {
        follow(passage, &news);
    }
    let is_told = passage.is_none();
    let worker = HoldWorker {
        holder,
        passage,
        channel,
        command,
        events: plan.events.take(),
        history: plan.history.take(),
        started_at,
        is_over: false,
        is_told,
    };
    let notices = match (&plan.target, plan.notifies) {
        (RunTarget::Command(_), true) => None,
        (RunTarget::Command(_), false) | (RunTarget::Running(..), _) => Some(false),
    };
    worker.follow(notices, &heard, say);
    ExitCode::Done
}

/// What to do after some news.
enum AfterNews {
    GoOn,
    /// Nothing is held any more. System calls must be answered all the same.
    Answer,
    End,
}

/// The worker, once the command runs.
struct HoldWorker {
    holder: Holder,
    passage: Option<Passage>,
    channel: UnixStream,
    /// The process of the command, if there is one.
    command: Option<i32>,
    events: Option<File>,
    /// Where the run is noted.
    history: Option<History>,
    started_at: jiff::Timestamp,
    /// Whether the front has been told that the command has ended.
    is_over: bool,
    /// Whether the command has told how far along it is.
    is_told: bool,
}

impl HoldWorker {
    /// Holds connections until there is nobody left who could have any. `notices` tells whether
    /// connections are told, once that is known.
    fn follow(mut self, notices: Option<bool>, heard: &Receiver<WorkerNews>, say: impl Fn(String)) {
        if let Some(are_told) = notices {
            self.begin(are_told);
        }
        loop {
            let next = self.holder.step();
            self.report(&say);
            if self.command.is_none() && !self.is_over && self.holder.is_empty() {
                return self.end(Ending::Exit(0), &say);
            }
            // All that has come is heard before the next step.
            let first = heard.recv_timeout(next);
            if matches!(first, Err(RecvTimeoutError::Disconnected)) {
                return;
            }
            for news in first.ok().into_iter().chain(heard.try_iter()) {
                match self.hear(news, &say) {
                    AfterNews::GoOn => {}
                    AfterNews::Answer => return wait_for_all(heard, self.passage),
                    AfterNews::End => return,
                }
            }
        }
    }

    /// Reports the beginning.
    fn begin(&mut self, are_told: bool) {
        let (lever, sender) = self.holder.levers();
        self.holder.emit(HoldEvent::Start {
            pid: self.command,
            lever,
            sender,
            notified: are_told,
        });
    }

    /// Returns whether to go on.
    fn hear(&mut self, news: WorkerNews, say: &impl Fn(String)) -> AfterNews {
        match news {
            WorkerNews::Listening(Ok(())) => {
                self.holder.expect_notices();
                self.begin(true);
            }
            WorkerNews::Listening(Err(error)) => {
                say(messages::by_looking(&error));
                self.begin(false);
            }
            WorkerNews::Connects(process, descriptor) => {
                self.holder.connects(process, descriptor, 0);
            }
            WorkerNews::Progress(share) => {
                self.is_told = true;
                self.holder.progress(share);
            }
            WorkerNews::Closed => {
                // The command is to hear that nobody reads.
                self.passage = None;
                send(&self.channel, WorkerMessage::Closed);
            }
            WorkerNews::Unprivileged(program) => {
                say(messages::unprivileged(&program));
                self.holder.emit(HoldEvent::Unprivileged { program });
            }
            WorkerNews::Reaped(Reaped::One(process, ending)) => {
                if Some(process) == self.command {
                    self.end(ending, say);
                }
            }
            WorkerNews::Reaped(Reaped::All) => {
                self.passage.iter().for_each(Passage::drain);
                return AfterNews::End;
            }
            WorkerNews::Alone if self.command.is_none() && !self.is_over => {
                self.holder.release();
                self.end(Ending::Exit(0), say);
                return AfterNews::End;
            }
            WorkerNews::Alone => {
                detach(&[rustix::stdio::dup2_stderr]);
                if !self.is_over {
                    self.holder.release();
                    return AfterNews::Answer;
                }
            }
        }
        AfterNews::GoOn
    }

    /// Tells the user and the front that the command has ended, or that its connections are let
    /// go.
    fn end(&mut self, ending: Ending, say: &impl Fn(String)) {
        self.is_over = true;
        self.passage.iter().for_each(Passage::drain);
        let is_whole = self.command.take().is_some();
        let report = self.holder.report();
        say(messages::ended(&report));
        if !self.is_told {
            say(messages::UNTOLD.to_owned());
        }
        self.note(&report, ending, is_whole);
        self.holder.emit(HoldEvent::Done(report));
        self.report(say);
        send(&self.channel, WorkerMessage::Ended(ending));
    }

    /// Notes the run for the next one of its name. What was only attached for a while is not whole.
    fn note(&mut self, report: &HoldReport, ending: Ending, is_whole: bool) {
        let run = PastRun {
            started: self.started_at,
            elapsed_s: report.elapsed_s,
            bytes_received: report.bytes_received,
            bytes_sent: report.bytes_sent,
            status: match ending {
                Ending::Exit(status) if is_whole => Some(status),
                Ending::Exit(_) | Ending::Signal(_) => None,
            },
            deadline_met: report.deadline_met,
        };
        let noted = self.history.take().map(|history| history.add(&run));
        if let Some(Err(error)) = noted {
            tracing::error!("this run is not noted for the next one: {error}");
        }
    }

    /// Writes the events, and says what people have to know.
    fn report(&mut self, say: &impl Fn(String)) {
        for event in self.holder.events() {
            match &event.event {
                HoldEvent::OutOfReach { pid, program } => {
                    say(messages::out_of_reach(*pid, program));
                }
                HoldEvent::Forecast { late_s, zeta, rate } => {
                    say(messages::late(*late_s, *zeta, *rate));
                }
                _ => {}
            }
            let Some(file) = &mut self.events else {
                continue;
            };
            let line = serde_json::to_string(&event).map_err(io::Error::from);
            let written = line.and_then(|line| file.write_all((line + "\n").as_bytes()));
            if let Err(error) = written {
                tracing::error!("cannot write events any more: {error}");
                self.events = None;
            }
        }
    }
}

/// Passes on what the command writes, and hears how far along it is.
fn follow(passage: &Passage, news: &Sender<WorkerNews>) {
    let (telling, ending) = (news.clone(), news.clone());
    let told = move |share| {
        let _ = telling.send(WorkerNews::Progress(share));
    };
    let closed = move || {
        let _ = ending.send(WorkerNews::Closed);
    };
    if let Err(error) = passage.pass(told, closed) {
        tracing::error!("what the command writes cannot be passed on: {error}");
    }
}

/// Starts the command, in the process group of this process. With `told`, a note of the last system
/// call and the socket that leads to the front, system calls are told.
///
/// # Errors
/// It cannot be run.
fn start(
    words: &[OsString],
    inherited: &Inherited,
    told: Option<(LastNotice, UnixStream)>,
    passage: Option<&mut Passage>,
    news: &Sender<WorkerNews>,
) -> io::Result<i32> {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    if let Some(passage) = passage {
        passage.lead(&mut command);
    }
    let child = match told {
        Some((last, second)) => {
            let news = news.clone();
            launch(command, inherited, second, move |listener| {
                listen(listener, &last, &news);
            })?
        }
        None => process::start(command, inherited)?,
    };
    Ok(child.id().cast_signed())
}

/// Tells of system calls until no process is left.
fn listen(listener: Result<Listener, ListenError>, last: &LastNotice, news: &Sender<WorkerNews>) {
    let listener = match listener {
        Ok(listener) => listener,
        Err(error) => {
            let _ = news.send(WorkerNews::Listening(Err(error)));
            return;
        }
    };
    let _ = news.send(WorkerNews::Listening(Ok(())));
    loop {
        match listener.next(last) {
            Ok(Some(notice)) => answer(&listener, notice, news),
            Ok(None) => return,
            Err(error) => {
                tracing::error!("system calls are told no more: {error}; trying again");
                thread::sleep(RETRY);
            }
        }
    }
}

/// Lets a system call go on. Only what is quick is done before.
fn answer(listener: &Listener, notice: Notice, news: &Sender<WorkerNews>) {
    if let Intent::Connect(descriptor) = notice.intent
        && let Ok(process) = ForeignProcess::open(notice.process)
        && let Ok(socket) = process.socket(descriptor)
    {
        // It fails on none that could be held.
        let _ = WindowLever::prepare(&socket);
    }
    listener.go_on(&notice);
    let told = match notice.intent {
        Intent::Connect(descriptor) => Some(WorkerNews::Connects(notice.process, descriptor)),
        Intent::Execute(program) => {
            gains_rights(notice.process, &program).then_some(WorkerNews::Unprivileged(program))
        }
        Intent::Unknown => None,
    };
    // The worker may have ended.
    let _ = told.map(|told| news.send(told));
}

/// Time until the next try to hear of system calls.
const RETRY: Duration = Duration::from_millis(100);

/// Bits of a program's mode that give it the rights of its owner and its group (inode(7)).
const SET_USER_ID: u32 = 0o4000;
/// As above, ...
const SET_GROUP_ID: u32 = 0o2000;
/// ... where it can be run by the group at all.
const GROUP_EXECUTE: u32 = 0o10;

/// Whether the program would have other rights than whoever runs it.
fn gains_rights(process: i32, program: &Path) -> bool {
    let place = Path::new("/proc").join(process.to_string());
    let path = match program.strip_prefix("/") {
        Ok(below) => place.join("root").join(below),
        Err(_) => place.join("cwd").join(program),
    };
    let (Ok(file), Ok(own)) = (metadata(&path), metadata(&place)) else {
        return false;
    };
    let has = |bits| file.mode() & bits == bits;
    let of_owner = has(SET_USER_ID) && file.uid() != own.uid();
    let of_group = has(SET_GROUP_ID | GROUP_EXECUTE) && file.gid() != own.gid();
    let capabilities = rustix::fs::getxattr(&path, "security.capability", &mut [0; 64][..]);
    of_owner || of_group || capabilities.is_ok()
}

/// Answers system calls until no process is left, and passes on what they write: somebody must.
fn wait_for_all(heard: &Receiver<WorkerNews>, mut passage: Option<Passage>) {
    for news in heard {
        match news {
            WorkerNews::Closed => passage = None,
            WorkerNews::Reaped(Reaped::All) => {
                passage.iter().for_each(Passage::drain);
                return;
            }
            _ => {}
        }
    }
}
