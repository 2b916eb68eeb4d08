//! The second process: starts the command, and holds its connections.

use std::fs::{File, metadata};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;

use dalbe::process::{Intent, ListenError, Listener, Notice, launch};
use fairbat::hold::{HoldEvent, HoldReport, Holder, Scope};
use rustix::process::{getpid, setpgid};

use super::history::{History, PastRun};
use super::message::{Ending, FAILED, Message, send};
use super::messages;
use super::plan::{Plan, Target};
use super::reaper::{Reaped, reap};
use crate::console::Console;
use crate::exit::ExitCode;
use crate::session::now;

/// The exit codes if the command cannot be run, as of shells: it is there, ...
const NOT_EXECUTABLE: i32 = 126;
/// ... and it is not.
const NOT_FOUND: i32 = 127;

/// What happens to the worker.
enum News {
    /// System calls are told, or are not.
    Listening(Result<Listener, ListenError>),
    /// A process connects the socket of this descriptor.
    Connects(i32, i32),
    /// A process runs this program without the rights of its owner.
    Unprivileged(PathBuf),
    /// The front is gone, or wants all connections to be let go.
    Alone,
    /// A process has ended, or none is left.
    Reaped(Reaped),
}

/// Starts the command, and holds its connections until nothing is left of it.
pub(super) fn run(mut plan: Plan, channel: UnixStream, console: &Console) -> ExitCode {
    let (news, heard) = mpsc::channel();
    let (what, scope) = match &plan.target {
        Target::Command(words) => (
            words[0].to_string_lossy().into_owned(),
            Scope::Below(own_number()),
        ),
        Target::Running(what, scope) => (what.clone(), scope.clone()),
    };
    let failed = |text: String, code| {
        console.line(&format!("error: {text}"));
        send(&channel, Message::Ended(Ending::Exit(code)));
        ExitCode::Other
    };
    let mut holder = match Holder::new(scope, plan.hold.clone()) {
        Ok(holder) => holder,
        Err(error) => return failed(error.to_string(), FAILED),
    };
    let say = |text: String| {
        if !plan.is_quiet {
            console.line(&format!("fairbat: {text}"));
        }
    };
    say(messages::started(&what, holder.levers(), plan.hold.weight));
    plan.remark.take().into_iter().for_each(&say);
    let started_at = now().timestamp();
    let command = match &plan.target {
        Target::Command(words) => match start(words, plan.notifies, &news) {
            Ok(pid) => Some(pid),
            Err(error) => {
                let code = match error.kind() {
                    io::ErrorKind::NotFound => NOT_FOUND,
                    _ => NOT_EXECUTABLE,
                };
                return failed(format!("cannot run {what}: {error}"), code);
            }
        },
        Target::Running(..) => None,
    };
    // The command is in the process group of the front. Signals of the terminal are for them.
    let _ = setpgid(None, None);
    detach(&[rustix::stdio::dup2_stdin, rustix::stdio::dup2_stdout]);
    if let Some(command) = command {
        let (lever, sender) = holder.levers();
        holder.emit(HoldEvent::Start {
            pid: command,
            lever,
            sender,
            notified: plan.notifies,
        });
        if !plan.notifies {
            started(&channel, command, None);
        }
        let news = news.clone();
        thread::spawn(move || reap(|reaped| drop(news.send(News::Reaped(reaped)))));
    }
    if let Ok(channel) = channel.try_clone() {
        let news = news.clone();
        thread::spawn(move || {
            // The front says nothing. It only ends.
            let _ = io::copy(&mut &channel, &mut io::sink());
            let _ = news.send(News::Alone);
        });
    }
    let worker = Worker {
        holder,
        channel,
        command,
        events: plan.events.take(),
        history: plan.history.take(),
        started_at,
        is_over: false,
        listener: None,
    };
    worker.follow(&heard, say);
    ExitCode::Done
}

/// What the worker works with.
struct Worker {
    holder: Holder,
    channel: UnixStream,
    /// The process of the command, if there is one.
    command: Option<i32>,
    events: Option<File>,
    /// Where the run is noted.
    history: Option<History>,
    started_at: jiff::Timestamp,
    /// Whether the front has been told that the command has ended.
    is_over: bool,
    /// A copy of the listener. The front copies it in turn.
    listener: Option<Listener>,
}

impl Worker {
    /// Holds connections until there is nobody left who could have any.
    fn follow(mut self, heard: &Receiver<News>, say: impl Fn(String)) {
        loop {
            let next = self.holder.step();
            self.report(&say);
            if self.command.is_none() && self.holder.is_empty() {
                return self.end(Ending::Exit(0), &say);
            }
            match heard.recv_timeout(next) {
                Ok(News::Listening(Ok(listener))) => {
                    self.holder.is_told();
                    if let Some(command) = self.command {
                        started(&self.channel, command, Some(&listener));
                    }
                    self.listener = Some(listener);
                }
                Ok(News::Listening(Err(error))) => {
                    say(messages::by_looking(&error));
                    if let Some(command) = self.command {
                        started(&self.channel, command, None);
                    }
                }
                Ok(News::Connects(process, descriptor)) => {
                    self.holder.connects(process, descriptor);
                }
                Ok(News::Unprivileged(program)) => {
                    say(messages::unprivileged(&program));
                    self.holder.emit(HoldEvent::Unprivileged { program });
                }
                Ok(News::Reaped(Reaped::One(process, ending))) => {
                    if Some(process) == self.command {
                        self.end(ending, &say);
                    }
                }
                Ok(News::Reaped(Reaped::All)) => return,
                Ok(News::Alone) if self.command.is_none() => {
                    self.holder.release();
                    return self.end(Ending::Exit(0), &say);
                }
                Ok(News::Alone) => {
                    detach(&[rustix::stdio::dup2_stderr]);
                    if !self.is_over {
                        self.holder.release();
                        return wait_for_all(heard);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Tells the user and the front that the command has ended, or that its connections are let
    /// go.
    fn end(&mut self, ending: Ending, say: &impl Fn(String)) {
        self.is_over = true;
        let report = self.holder.report();
        say(messages::ended(&report));
        self.note(&report, ending);
        self.holder.emit(HoldEvent::Done(report));
        self.report(say);
        send(&self.channel, Message::Ended(ending));
    }

    /// Notes the run for the next one of its name.
    fn note(&mut self, report: &HoldReport, ending: Ending) {
        let run = PastRun {
            started: self.started_at,
            elapsed_s: report.elapsed_s,
            bytes_received: report.bytes_received,
            bytes_sent: report.bytes_sent,
            status: match ending {
                Ending::Exit(status) => Some(status),
                Ending::Signal(_) => None,
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

/// Starts the command, in the process group of this process.
///
/// # Errors
/// It cannot be run.
fn start(words: &[std::ffi::OsString], notifies: bool, news: &Sender<News>) -> io::Result<i32> {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    let child = if notifies {
        let news = news.clone();
        launch(command, move |listener| listen(listener, &news))?
    } else {
        command.spawn()?
    };
    Ok(child.id().cast_signed())
}

/// Tells of system calls until no process is left.
fn listen(listener: Result<Listener, ListenError>, news: &Sender<News>) {
    let listener = listener.and_then(|listener| {
        let copy = listener.try_clone().map_err(ListenError::Refused)?;
        Ok((listener, copy))
    });
    let listener = match listener {
        Ok((listener, copy)) => {
            let _ = news.send(News::Listening(Ok(copy)));
            listener
        }
        Err(error) => {
            let _ = news.send(News::Listening(Err(error)));
            return;
        }
    };
    loop {
        match listener.next() {
            Ok(Some(notice)) => {
                let told = match &notice.intent {
                    Intent::Connect(descriptor) => {
                        Some(News::Connects(notice.process, *descriptor))
                    }
                    Intent::Execute(program) => {
                        gains_rights(&notice, program).then(|| News::Unprivileged(program.clone()))
                    }
                    Intent::Unknown => None,
                };
                // The worker may have ended.
                let _ = told.map(|told| news.send(told));
                listener.go_on(&notice);
            }
            Ok(None) => return,
            Err(error) => {
                tracing::error!("system calls are not told any more: {error}");
                return;
            }
        }
    }
}

/// Bits of a program's mode that give it the rights of its owner and its group (inode(7)).
const SET_USER_ID: u32 = 0o4000;
/// As above, ...
const SET_GROUP_ID: u32 = 0o2000;
/// ... where it can be run by the group at all.
const GROUP_EXECUTE: u32 = 0o10;

/// Whether the program would have other rights than whoever runs it.
fn gains_rights(notice: &Notice, program: &Path) -> bool {
    let place = Path::new("/proc").join(notice.process.to_string());
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

/// Tells the front of the command.
fn started(channel: &UnixStream, command: i32, listener: Option<&Listener>) {
    let message = Message::Started {
        pid: command,
        listener: listener.map(Listener::number),
    };
    send(channel, message);
}

/// Answers system calls until no process is left: somebody must.
fn wait_for_all(heard: &Receiver<News>) {
    for news in heard {
        if matches!(news, News::Reaped(Reaped::All)) {
            return;
        }
    }
}

/// Lets streams of this process lead nowhere. Others may wait for their end.
fn detach(streams: &[fn(File) -> rustix::io::Result<()>]) {
    let nowhere = || File::options().read(true).write(true).open("/dev/null");
    for stream in streams {
        let _ = nowhere().map(stream);
    }
}

fn own_number() -> i32 {
    getpid().as_raw_nonzero().get()
}
