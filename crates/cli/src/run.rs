//! `fairbat run`: any command, with connections that yield.
//!
//! Two processes share the work, so that either can end without harm to the command. The
//! `front` is the one that the user started: it passes signals on, and ends as the command
//! does. The `worker` is its child. It starts the command and holds its connections, and goes
//! on for what the command leaves in the background. If the front is killed, the worker lets
//! all connections go; if the worker is killed, the front does.

mod front;
pub(crate) mod history;
mod message;
mod messages;
mod passage;
mod plan;
mod progress;
mod reaper;
mod shared;
mod streams;
mod worker;

use std::io;
use std::os::unix::net::UnixStream;

use dalbe::process::{Half, Inherited, LastNotice, split};
use nix::sys::signal::Signal;

use self::message::FAILED;
use self::passage::Passage;
use self::plan::{RunTarget, plan};
use self::shared::ProcessShare;
use crate::args::RunArgs;
use crate::console::{Console, log_filter, start_log};
use crate::exit::ExitCode;
use crate::session::{warn_if_late, with_valid};

/// Signals that are passed on to the command, and end neither of the two processes.
const PASSED_ON: [Signal; 6] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
];

/// Runs the command.
pub(crate) fn run(args: &RunArgs) -> ExitCode {
    // Before anything is opened.
    let is_attached = args.command.is_empty();
    let inherited = Inherited::take(&PASSED_ON.map(|signal| signal as i32), is_attached);
    let asked = plan(args).and_then(|plan| Ok((plan, log_filter(&args.log)?)));
    with_valid(asked, |(plan, filter)| {
        let console = Console::plain();
        let passage = plan.progress.map(Passage::new);
        let before = || {
            Ok((
                inherited?,
                LastNotice::new()?,
                UnixStream::pair()?,
                passage.transpose()?,
            ))
        };
        let before: io::Result<_> = before();
        match before.and_then(|it| Ok((it, split()?))) {
            Ok(((inherited, last, (listener, _), passage), Half::First { other, channel })) => {
                let shared = ProcessShare {
                    inherited,
                    last,
                    listener,
                    passage,
                };
                let attached = match plan.target {
                    RunTarget::Command(_) => None,
                    RunTarget::Running(_, scope) => Some(scope),
                };
                front::run(other, channel, attached, shared, &console)
            }
            Ok(((inherited, last, (_, listener), passage), Half::Second { channel })) => {
                let shared = ProcessShare {
                    inherited,
                    last,
                    listener,
                    passage,
                };
                start_log(filter, &args.log, &console);
                warn_if_late(plan.plan.deadline);
                worker::run(plan, channel, shared, &console)
            }
            Err(error) => {
                console.line(&format!("error: cannot start a second process: {error}"));
                std::process::exit(FAILED);
            }
        }
    })
}
