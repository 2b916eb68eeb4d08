//! `fairbat run`: any command, with connections that yield.
//!
//! Two processes share the work, so that either can end without harm to the command. The
//! `front` is the one that the user started: it passes signals on, and ends as the command
//! does. The `worker` is its child. It starts the command and holds its connections, and goes
//! on for what the command leaves in the background. If the front is killed, the worker lets
//! all connections go; if the worker is killed, the front does.

mod front;
mod message;
mod messages;
mod reaper;
mod worker;

use std::ffi::OsString;
use std::fs::File;
use std::path::Path;

use dalbe::process::{Half, split};
use fairbat::hold::HoldSettings;
use tracing_subscriber::EnvFilter;

use crate::args::RunArgs;
use crate::console::{Console, log_filter, start_log};
use crate::exit::ExitCode;
use crate::session::{now, warn_if_late, with_valid};
use crate::settings::{UsageError, optional_deadline};

/// The exit code if fairbat itself fails, as of `env` and `nice`.
const FAILED: i32 = 125;

/// What the arguments ask for.
struct Plan {
    target: Target,
    hold: HoldSettings,
    /// Whether connections are told by a seccomp filter.
    notifies: bool,
    /// Where events are written.
    events: Option<File>,
    is_quiet: bool,
}

/// Whose connections are held.
enum Target {
    /// A command that is started.
    Command(Vec<OsString>),
    /// A process that runs already.
    Process(i32),
}

/// Runs the command.
pub(crate) fn run(args: &RunArgs) -> ExitCode {
    let asked = plan(args).and_then(|plan| Ok((plan, log_filter(&args.log)?)));
    with_valid(asked, |(plan, filter)| halves(args, plan, filter))
}

/// The arguments, checked.
///
/// # Errors
/// The first invalid argument.
fn plan(args: &RunArgs) -> Result<Plan, UsageError> {
    let speed = &args.speed;
    let target = match args.pid {
        Some(process) => {
            if !Path::new("/proc").join(process.to_string()).exists() {
                let what = format!("--pid {process}: there is no such process");
                return Err(UsageError::new(what));
            }
            Target::Process(process)
        }
        None => Target::Command(args.command.clone()),
    };
    let events = args.events.as_deref().map(|path| {
        File::create(path)
            .map_err(|error| UsageError::new(format!("--events {}: {error}", path.display())))
    });
    Ok(Plan {
        target,
        hold: HoldSettings {
            weight: speed.weight,
            receiver: speed.receiver.into(),
            sender: speed.sender.into(),
            controller: speed.controller.into(),
            bytes: speed.bytes,
            deadline: optional_deadline(speed.deadline.as_deref(), &now())?,
            include_local: args.include_local,
        },
        notifies: !args.no_seccomp,
        events: events.transpose()?,
        is_quiet: args.log.quiet,
    })
}

/// Becomes two processes, each of which does its part.
fn halves(args: &RunArgs, plan: Plan, filter: EnvFilter) -> ExitCode {
    warn_if_late(plan.hold.deadline);
    let console = Console::plain();
    match split() {
        Ok(Half::First { other, channel }) => {
            drop(plan);
            front::run(other, channel, args.pid, &console)
        }
        Ok(Half::Second { channel }) => {
            start_log(filter, &args.log, &console);
            worker::run(plan, channel, &console)
        }
        Err(error) => {
            console.line(&format!("error: cannot start a second process: {error}"));
            std::process::exit(FAILED);
        }
    }
}
