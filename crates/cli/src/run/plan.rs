//! What the arguments of `fairbat run` ask for.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::Path;

use dalbe::process::ForeignProcess;
use fairbat::hold::history::{History, expected};
use fairbat::hold::unit::{CONTROL_GROUPS, control_group, is_group};
use fairbat::hold::{HoldPlan, HoldSettings, Scope};
use fairbat::machine::MachineLane;

use super::history;
use super::messages;
use crate::args::{ProgressFormat, RunArgs};
use crate::session::now;
use crate::settings::{UsageError, optional_deadline};

/// What the arguments ask for.
pub(super) struct RunPlan {
    pub(super) target: RunTarget,
    pub(super) hold: HoldSettings,
    pub(super) plan: HoldPlan,
    /// The lane of the machine to take part in.
    pub(super) machine: Option<MachineLane>,
    /// Where the run is noted.
    pub(super) history: Option<History>,
    /// How the size was planned, for people.
    pub(super) remark: Option<String>,
    /// How the command tells how far along it is.
    pub(super) progress: Option<ProgressFormat>,
    /// Whether connections are told by a seccomp filter.
    pub(super) notifies: bool,
    /// Where events are written.
    pub(super) events: Option<File>,
    pub(super) is_quiet: bool,
}

/// Whose connections are held.
pub(super) enum RunTarget {
    /// A command that is started.
    Command(Vec<OsString>),
    /// What runs already: what it is for people, and whose connections it has.
    Running(String, Scope),
}

/// The arguments, checked.
///
/// # Errors
/// The first invalid argument.
pub(super) fn plan(args: &RunArgs) -> Result<RunPlan, UsageError> {
    let speed = &args.speed;
    let deadline = optional_deadline(speed.deadline.as_deref(), &now())?;
    let history = speed.name.as_deref().map(history::of).transpose()?;
    let earlier = history.as_ref().map(History::runs).transpose();
    let earlier = earlier.map_err(|error| UsageError::new(format!("earlier runs: {error}")))?;
    let bytes = speed
        .bytes
        .or_else(|| expected(&earlier.unwrap_or_default()));
    let is_unplanned = deadline.is_some() && bytes.is_none();
    let remark = match (speed.bytes, bytes) {
        _ if is_unplanned => Some(messages::unplanned(speed)),
        (None, Some(bytes)) if deadline.is_some() => Some(messages::planned(bytes)),
        _ => None,
    };
    if let Some(history) = &history {
        history.prepare().map_err(|error| {
            let path = history.path().display();
            UsageError::new(format!(
                "--name: {path}: {error}; set $XDG_STATE_HOME to a directory that you can write to"
            ))
        })?;
    }
    if args.events.as_deref() == Some(Path::new("-")) {
        let what = "--events -: standard output is the command's; name a file";
        return Err(UsageError::new(what));
    }
    let events = args.events.as_deref().map(|path| {
        File::create(path)
            .map_err(|error| UsageError::new(format!("--events {}: {error}", path.display())))
    });
    Ok(RunPlan {
        target: target(args)?,
        hold: HoldSettings {
            receiver: speed.receiver.into(),
            sender: speed.sender.into(),
            controller: speed.controller.into(),
            include_local: args.include_local,
        },
        plan: HoldPlan {
            weight: speed.weight,
            floor: speed.floor,
            bytes,
            deadline,
        },
        machine: args.lane.machine("run", speed.weight),
        history,
        remark,
        progress: speed.progress_from,
        notifies: !args.no_seccomp,
        events: events.transpose()?,
        is_quiet: args.log.quiet,
    })
}

/// Whose connections are to be held.
///
/// # Errors
/// It does not run.
fn target(args: &RunArgs) -> Result<RunTarget, UsageError> {
    if let Some(process) = args.pid {
        let wrong = |what: &str| UsageError::new(format!("--pid {process}: {what}"));
        if process == 1 {
            return Err(wrong(
                "all of this machine descends from it; name another process",
            ));
        }
        let found = ForeignProcess::open(process);
        let found = found.map_err(|_| wrong("there is no such process"))?;
        if !can_reach(&found) {
            return Err(wrong(
                "its sockets cannot be reached: it runs as another user or with more rights, or \
                 this machine forbids it; fairbat doctor tells",
            ));
        }
        return Ok(RunTarget::Running(
            format!("process {process}"),
            Scope::Tree(process),
        ));
    }
    if let Some(unit) = &args.unit {
        if control_group(unit).is_none() {
            return Err(UsageError::new(format!(
                "--unit {unit}: no unit of this name runs; systemctl status tells more, and the name behind an alias"
            )));
        }
        return Ok(RunTarget::Running(unit.clone(), Scope::Unit(unit.clone())));
    }
    if let Some(directory) = &args.cgroup {
        if !is_group(directory) {
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
        return Ok(RunTarget::Running(what, scope));
    }
    Ok(RunTarget::Command(args.command.clone()))
}

/// Whether the descriptors of a process can be duplicated; it may have no first one.
fn can_reach(process: &ForeignProcess) -> bool {
    let denied = io::ErrorKind::PermissionDenied;
    let is_denied = |error: io::Error| error.kind() == denied;
    let listed = process.sockets().err().is_some_and(is_denied);
    let duplicated = process.duplicate(0).err().is_some_and(is_denied);
    !listed && !duplicated
}
