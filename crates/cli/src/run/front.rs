//! The process that the user started: passes signals on, and ends as the command does.

use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use dalbe::process::{
    ForeignProcess, Inherited, LastNotice, Listener, descendants, own_number, receive,
};
use fairbat::hold::{Scope, free};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{SigSet, Signal, raise};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::process::{Pid, WaitOptions, waitpid};

use super::message::{Ending, FAILED, WorkerMessage, received};
use super::passage::Passage;
use super::reaper::{Reaped, reap};
use super::shared::ProcessShare;
use super::streams::detach;
use crate::console::Console;
use crate::exit::ExitCode;

/// The worker ends within this time after the command, if nothing of that goes on in the
/// background.
const TIME_TO_END: Duration = Duration::from_millis(50);

/// What happens to the front.
enum FrontNews {
    /// System calls of the command are told.
    Listener(Listener),
    Message(WorkerMessage),
    /// The worker is gone.
    Alone,
    /// Somebody wants the command to have this signal.
    Signal(Signal),
    /// The kernel has sent this signal, as it does from a terminal: also to the command.
    FromTerminal,
    /// In place of the worker: a process has ended, or none is left.
    Reaped(Reaped),
}

/// Waits for the end of the command; `worker` is the other process. If something is
/// `attached`, there is no command, and a signal ends the holding.
pub(super) fn run(
    worker: i32,
    channel: UnixStream,
    attached: Option<Scope>,
    shared: ProcessShare,
    console: &Console,
) -> ExitCode {
    let ProcessShare {
        inherited,
        last,
        listener,
        mut passage,
    } = shared;
    passage.iter_mut().for_each(Passage::leave);
    let (news, heard) = mpsc::channel();
    {
        let news = news.clone();
        // Nobody is told if there is none.
        thread::spawn(move || receive(&listener).map(|it| news.send(FrontNews::Listener(it))));
    }
    let blocked = inherited.blocked().iter();
    let signals: SigSet = blocked
        .filter_map(|it| Signal::try_from(*it).ok())
        .collect();
    match SignalFd::with_flags(&signals, SfdFlags::SFD_CLOEXEC) {
        Ok(caught) => {
            let news = news.clone();
            thread::spawn(move || listen_for_signals(&caught, &news));
        }
        Err(error) => console.line(&format!("warning: signals are not passed on: {error}")),
    }
    let letting_go = channel.try_clone();
    {
        let news = news.clone();
        thread::spawn(move || {
            for message in received(channel) {
                let _ = news.send(FrontNews::Message(message));
            }
            let _ = news.send(FrontNews::Alone);
        });
    }
    let front = Front {
        worker,
        attached,
        letting_go: letting_go.ok(),
        inherited,
        last: Some(last),
        listener: None,
        passage,
        is_alone: false,
        command: None,
        early: Vec::new(),
        ending: None,
        console,
    };
    let ending = front.follow(&news, &heard);
    if let Ok(FrontNews::Alone) = heard.recv_timeout(TIME_TO_END) {
        // So that the processor time of the command counts as that of this process's children.
        let _ = waitpid(Pid::from_raw(worker), WaitOptions::empty());
    }
    end(ending)
}

/// What the front knows.
struct Front<'a> {
    worker: i32,
    attached: Option<Scope>,
    /// To the worker. Shut down, it means to let go.
    letting_go: Option<UnixStream>,
    inherited: Inherited,
    last: Option<LastNotice>,
    /// In place of the worker's.
    listener: Option<Listener>,
    /// In place of the worker's.
    passage: Option<Passage>,
    /// Whether the worker is gone.
    is_alone: bool,
    command: Option<ForeignProcess>,
    /// Signals that came before the command was there.
    early: Vec<Signal>,
    /// How the command has ended, while others go on.
    ending: Option<Ending>,
    console: &'a Console,
}

impl Front<'_> {
    /// Follows the command until it ends.
    fn follow(mut self, news: &Sender<FrontNews>, heard: &Receiver<FrontNews>) -> Ending {
        for each in heard {
            match each {
                FrontNews::Listener(listener) => {
                    self.listener = Some(listener);
                    self.answer();
                }
                FrontNews::Message(WorkerMessage::Started { pid }) => self.started(pid),
                FrontNews::Message(WorkerMessage::Ended(ending)) => return ending,
                FrontNews::Message(WorkerMessage::Closed) => self.passage = None,
                FrontNews::Signal(_) | FrontNews::FromTerminal if self.attached.is_some() => {
                    self.let_go();
                }
                FrontNews::Signal(signal) => match (&self.command, self.ending) {
                    // What goes on in the background is not ours to signal.
                    (_, Some(ending)) => return ending,
                    (Some(command), None) => pass_on(command, signal),
                    (None, None) => self.early.push(signal),
                },
                FrontNews::FromTerminal => {}
                FrontNews::Alone => {
                    if let Some(ending) = self.take_over(news) {
                        return ending;
                    }
                }
                FrontNews::Reaped(Reaped::One(process, how)) => {
                    if self
                        .command
                        .as_ref()
                        .is_some_and(|it| it.number() == process)
                    {
                        self.ending = Some(how);
                    }
                }
                // What is left in the background would fail to connect without a listener.
                FrontNews::Reaped(Reaped::All) => {
                    self.passage.iter().for_each(Passage::drain);
                    break;
                }
            }
        }
        self.ending.unwrap_or(Ending::Exit(FAILED))
    }

    /// Answers system calls, if the worker does not.
    fn answer(&mut self) {
        if self.is_alone
            && let Some(listener) = self.listener.take()
            && let Some(last) = self.last.take()
        {
            thread::spawn(move || listener.pass(&last));
        }
    }

    /// The command runs, and has all that this process was started with.
    fn started(&mut self, command: i32) {
        // It is not waited for before this process knows of its end, so the number is its own.
        self.command = ForeignProcess::open(command).ok();
        let early = std::mem::take(&mut self.early);
        if let Some(command) = &self.command {
            early
                .into_iter()
                .for_each(|signal| pass_on(command, signal));
        }
        self.inherited.close();
        detach(&[rustix::stdio::dup2_stdin, rustix::stdio::dup2_stdout]);
    }

    /// No connection is to be held any more.
    fn let_go(&self) {
        if let Some(channel) = &self.letting_go {
            let _ = channel.shutdown(std::net::Shutdown::Write);
        }
    }

    /// The worker is gone: answers system calls and frees connections in its place. Returns how
    /// this process ends if there is no command.
    fn take_over(&mut self, news: &Sender<FrontNews>) -> Option<Ending> {
        // Its children become this one's.
        let _ = waitpid(Pid::from_raw(self.worker), WaitOptions::empty());
        let attached = self.attached.take();
        if attached.is_none() && self.command.is_none() {
            // It may have been started just before.
            let below = descendants([own_number()]).unwrap_or_default();
            self.command = below.first().and_then(|it| ForeignProcess::open(*it).ok());
        }
        if self.command.is_none() {
            self.console
                .line("error: fairbat's second process has ended");
            attached.into_iter().for_each(free);
            return Some(Ending::Exit(FAILED));
        }
        self.console.line(
            "warning: fairbat's second process has ended; the connections of the command do not \
             yield any more",
        );
        self.is_alone = true;
        self.answer();
        free(Scope::Below(own_number()));
        let closed = {
            let news = news.clone();
            move || {
                let _ = news.send(FrontNews::Message(WorkerMessage::Closed));
            }
        };
        if let Some(Err(error)) = self.passage.as_ref().map(|it| it.pass(drop, closed)) {
            let what = format!("error: what the command writes cannot be passed on: {error}");
            self.console.line(&what);
        }
        reap(news.clone(), FrontNews::Reaped);
        None
    }
}

fn pass_on(command: &ForeignProcess, signal: Signal) {
    // It may have ended.
    let _ = command.signal(signal as i32);
}

fn listen_for_signals(caught: &SignalFd, news: &Sender<FrontNews>) {
    while let Ok(Some(info)) = caught.read_signal() {
        // Positive codes are the kernel's (sigaction(2), `si_code`).
        let told = match Signal::try_from(info.ssi_signo as i32) {
            Ok(_) if info.ssi_code > 0 => FrontNews::FromTerminal,
            Ok(signal) => FrontNews::Signal(signal),
            Err(_) => continue,
        };
        let _ = news.send(told);
    }
}

/// Ends this process as the command has ended.
fn end(ending: Ending) -> ! {
    match ending {
        Ending::Exit(status) => std::process::exit(status),
        Ending::Signal(number) => {
            // The command may have left a core; this process has nothing to add.
            let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
            if let Ok(signal) = Signal::try_from(number) {
                let _ = SigSet::all().thread_unblock();
                // Where the standard library handles a signal, the first time restores the default.
                let _ = (raise(signal), raise(signal));
            }
            // The signal is ignored here. Shells report this.
            std::process::exit(128 + number)
        }
    }
}
