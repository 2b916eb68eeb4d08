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
mod reaper;
mod worker;

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use dalbe::process::{Half, split};
use fairbat::hold::{HoldSettings, Scope};
use tracing_subscriber::EnvFilter;

use crate::args::RunArgs;
use crate::console::{Console, log_filter, start_log};
use crate::exit::ExitCode;
use crate::session::{now, warn_if_late, with_valid};
use crate::settings::{UsageError, optional_deadline};

use self::history::{History, expected};

/// The exit code if fairbat itself fails, as of `env` and `nice`.
const FAILED: i32 = 125;

/// What the arguments ask for.
struct Plan {
    target: Target,
    hold: HoldSettings,
    /// Where the run is noted.
    history: Option<History>,
    /// How the size was planned, for people.
    remark: Option<String>,
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
    /// What runs already: what it is for people, and whose connections it has.
    Running(String, Scope),
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
    let deadline = optional_deadline(speed.deadline.as_deref(), &now())?;
    let history = speed.name.as_deref().map(History::of).transpose()?;
    let earlier = history.as_ref().map(History::runs).transpose();
    let earlier = earlier.map_err(|error| UsageError::new(format!("earlier runs: {error}")))?;
    let bytes = speed
        .bytes
        .or_else(|| expected(&earlier.unwrap_or_default()));
    let is_unplanned = deadline.is_some() && bytes.is_none();
    let remark = match (speed.bytes, bytes) {
        _ if is_unplanned => Some(messages::unplanned(speed.floor, speed.name.is_some())),
        (None, Some(bytes)) if deadline.is_some() => Some(messages::planned(bytes)),
        _ => None,
    };
    let events = args.events.as_deref().map(|path| {
        File::create(path)
            .map_err(|error| UsageError::new(format!("--events {}: {error}", path.display())))
    });
    Ok(Plan {
        target: target(args)?,
        hold: HoldSettings {
            weight: match is_unplanned {
                true => speed.weight.max(speed.floor),
                false => speed.weight,
            },
            receiver: speed.receiver.into(),
            sender: speed.sender.into(),
            controller: speed.controller.into(),
            bytes,
            deadline,
            include_local: args.include_local,
        },
        history,
        remark,
        notifies: !args.no_seccomp,
        events: events.transpose()?,
        is_quiet: args.log.quiet,
    })
}

/// Whose connections are to be held.
///
/// # Errors
/// It does not run.
fn target(args: &RunArgs) -> Result<Target, UsageError> {
    if let Some(process) = args.pid {
        let scope = Scope::Tree(process);
        if process <= 0 || !Path::new("/proc").join(process.to_string()).exists() {
            let what = format!("--pid {process}: there is no such process");
            return Err(UsageError::new(what));
        }
        return Ok(Target::Running(format!("process {process}"), scope));
    }
    if let Some(unit) = &args.unit {
        let group = Scope::Group(control_group(unit)?);
        return Ok(Target::Running(unit.clone(), group));
    }
    if let Some(directory) = &args.cgroup {
        if !directory.join("cgroup.procs").exists() {
            let what = format!(
                "--cgroup {}: this is no control group; they are below {CONTROL_GROUPS}",
                directory.display()
            );
            return Err(UsageError::new(what));
        }
        let (what, scope) = (
            directory.display().to_string(),
            Scope::Group(directory.clone()),
        );
        return Ok(Target::Running(what, scope));
    }
    Ok(Target::Command(args.command.clone()))
}

/// Where control groups are (cgroups(7), version 2).
const CONTROL_GROUPS: &str = "/sys/fs/cgroup";

/// The control group of a running systemd unit.
///
/// # Errors
/// It does not run, or there is no systemd.
fn control_group(unit: &str) -> Result<PathBuf, UsageError> {
    let wrong = |what: String| UsageError::new(format!("--unit {unit}: {what}"));
    let mut ask = Command::new("systemctl");
    ask.args(["show", "--property=ControlGroup", "--value", "--", unit]);
    let answer = ask.output();
    let answer = answer.map_err(|error| wrong(format!("cannot run systemctl: {error}")))?;
    if !answer.status.success() {
        let said = String::from_utf8_lossy(&answer.stderr);
        return Err(wrong(said.trim().to_owned()));
    }
    let group = String::from_utf8_lossy(&answer.stdout);
    match group.trim().strip_prefix('/') {
        Some(group) if !group.is_empty() => Ok(Path::new(CONTROL_GROUPS).join(group)),
        _ => Err(wrong(
            "this unit does not run; systemctl status tells more".to_owned(),
        )),
    }
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
