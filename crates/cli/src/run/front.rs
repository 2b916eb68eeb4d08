//! The process that the user started: passes signals on, and ends as the command does.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use dalbe::process::{ForeignProcess, Listener};
use fairbat::hold::{Scope, free};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{SigSet, Signal, raise};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::process::{Pid, WaitOptions, getpid, kill_process, waitpid};

use super::message::{Ending, FAILED, Message, received};
use super::reaper::{Reaped, reap};
use crate::console::Console;
use crate::exit::ExitCode;

/// Signals that are passed on to the command.
const PASSED_ON: [Signal; 6] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
];

/// The worker ends within this time after the command, if nothing of that goes on in the
/// background.
const TIME_TO_END: Duration = Duration::from_millis(50);

/// What happens to the front.
enum News {
    Message(Message),
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
    console: &Console,
) -> ExitCode {
    let signals: SigSet = PASSED_ON.into_iter().collect();
    let (news, heard) = mpsc::channel();
    let caught = signals
        .thread_block()
        .and_then(|()| SignalFd::with_flags(&signals, SfdFlags::SFD_CLOEXEC));
    match caught {
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
                let _ = news.send(News::Message(message));
            }
            let _ = news.send(News::Alone);
        });
    }
    let let_go = move || {
        let _ = letting_go
            .as_ref()
            .map(|it| it.shutdown(std::net::Shutdown::Write));
    };
    let ending = follow(worker, attached, &news, &heard, let_go, console);
    if let Ok(News::Alone) = heard.recv_timeout(TIME_TO_END) {
        // So that the processor time of the command counts as that of this process's children.
        let _ = waitpid(Pid::from_raw(worker), WaitOptions::empty());
    }
    end(ending)
}

/// Follows the command until it ends. `let_go` tells the worker that no connection is to be
/// held any more.
fn follow(
    worker: i32,
    attached: Option<Scope>,
    news: &Sender<News>,
    heard: &Receiver<News>,
    let_go: impl Fn(),
    console: &Console,
) -> Ending {
    let mut command = None;
    let mut listener = None;
    let mut ending = None;
    // Signals that came before the command was there.
    let mut early = Vec::new();
    for each in heard {
        match each {
            News::Message(Message::Started {
                pid,
                listener: number,
            }) => {
                command = Some(pid);
                early.drain(..).for_each(|signal| pass_on(pid, signal));
                listener = number.and_then(|number| copy_of(worker, number).ok());
            }
            News::Message(Message::Ended(ending)) => return ending,
            News::Signal(_) | News::FromTerminal if attached.is_some() => let_go(),
            News::Signal(signal) => match command {
                Some(command) => pass_on(command, signal),
                None => early.push(signal),
            },
            News::FromTerminal => {}
            News::Alone => {
                if command.is_none() {
                    console.line("error: fairbat's second process has ended");
                    attached.into_iter().for_each(free);
                    return Ending::Exit(FAILED);
                }
                console.line(
                    "warning: fairbat's second process has ended; the connections of the \
                     command do not yield any more",
                );
                if let Some(listener) = listener.take() {
                    thread::spawn(move || listener.pass());
                }
                free(Scope::Below(getpid().as_raw_nonzero().get()));
                let news = news.clone();
                thread::spawn(move || reap(|reaped| drop(news.send(News::Reaped(reaped)))));
            }
            News::Reaped(Reaped::One(process, how)) if Some(process) == command => {
                ending = Some(how);
            }
            News::Reaped(Reaped::One(..)) => {}
            // What is left in the background would fail to connect without a listener.
            News::Reaped(Reaped::All) => return ending.unwrap_or(Ending::Exit(FAILED)),
        }
    }
    Ending::Exit(FAILED)
}

/// A copy of the worker's listener.
fn copy_of(worker: i32, listener: i32) -> io::Result<Listener> {
    ForeignProcess::open(worker)?
        .duplicate(listener)
        .map(Listener::from_fd)
}

fn pass_on(command: i32, signal: Signal) {
    let signal = rustix::process::Signal::from_named_raw(signal as i32);
    if let Some((command, signal)) = Pid::from_raw(command).zip(signal) {
        // It may have ended.
        let _ = kill_process(command, signal);
    }
}

fn listen_for_signals(caught: &SignalFd, news: &Sender<News>) {
    while let Ok(Some(info)) = caught.read_signal() {
        // Positive codes are the kernel's (sigaction(2), `si_code`).
        let told = match Signal::try_from(info.ssi_signo as i32) {
            Ok(_) if info.ssi_code > 0 => News::FromTerminal,
            Ok(signal) => News::Signal(signal),
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
