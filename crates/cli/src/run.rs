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
mod plan;
mod reaper;
mod worker;

use dalbe::process::{Half, split};
use tracing_subscriber::EnvFilter;

use self::message::FAILED;
use self::plan::{Plan, Target, plan};
use crate::args::RunArgs;
use crate::console::{Console, log_filter, start_log};
use crate::exit::ExitCode;
use crate::session::{warn_if_late, with_valid};

/// Runs the command.
pub(crate) fn run(args: &RunArgs) -> ExitCode {
    let asked = plan(args).and_then(|plan| Ok((plan, log_filter(&args.log)?)));
    with_valid(asked, |(plan, filter)| halves(args, plan, filter))
}

/// Becomes two processes, each of which does its part.
fn halves(args: &RunArgs, plan: Plan, filter: EnvFilter) -> ExitCode {
    warn_if_late(plan.hold.deadline);
    let console = Console::plain();
    match split() {
        Ok(Half::First { other, channel }) => {
            let attached = match plan.target {
                Target::Command(_) => None,
                Target::Running(_, scope) => Some(scope),
            };
            front::run(other, channel, attached, &console)
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
