//! What the arguments of `fairbat run` ask for.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use dalbe::process::ForeignProcess;
use fairbat::hold::{HoldSettings, Scope};

use super::history::{History, expected};
use super::messages;
use crate::args::RunArgs;
use crate::session::now;
use crate::settings::{UsageError, optional_deadline};

/// What the arguments ask for.
pub(super) struct Plan {
    pub(super) target: Target,
    pub(super) hold: HoldSettings,
    /// Where the run is noted.
    pub(super) history: Option<History>,
    /// How the size was planned, for people.
    pub(super) remark: Option<String>,
    /// Whether connections are told by a seccomp filter.
    pub(super) notifies: bool,
    /// Where events are written.
    pub(super) events: Option<File>,
    pub(super) is_quiet: bool,
}

/// Whose connections are held.
pub(super) enum Target {
    /// A command that is started.
    Command(Vec<OsString>),
    /// What runs already: what it is for people, and whose connections it has.
    Running(String, Scope),
}

/// The arguments, checked.
///
/// # Errors
/// The first invalid argument.
pub(super) fn plan(args: &RunArgs) -> Result<Plan, UsageError> {
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
    if let Some(history) = &history {
        history.prepare()?;
    }
    if args.events.as_deref() == Some(Path::new("-")) {
        let what = "--events -: standard output is the command's; name a file";
        return Err(UsageError::new(what));
    }
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
        return Ok(Target::Running(
            format!("process {process}"),
            Scope::Tree(process),
        ));
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

/// Whether the descriptors of a process can be duplicated; it may have no first one.
fn can_reach(process: &ForeignProcess) -> bool {
    let denied = io::ErrorKind::PermissionDenied;
    let is_denied = |error: io::Error| error.kind() == denied;
    let listed = process.sockets().err().is_some_and(is_denied);
    let duplicated = process.duplicate(0).err().is_some_and(is_denied);
    !listed && !duplicated
}

/// Where control groups are (cgroups(7), version 2), ...
const CONTROL_GROUPS: &str = "/sys/fs/cgroup";
/// ... and where they are beside those of version 1.
const UNIFIED_GROUPS: &str = "/sys/fs/cgroup/unified";

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
        Some(group) if !group.is_empty() => {
            let places = [CONTROL_GROUPS, UNIFIED_GROUPS].map(|root| Path::new(root).join(group));
            let found = places
                .into_iter()
                .find(|it| it.join("cgroup.procs").exists());
            found.ok_or_else(|| wrong("its control group is not of version 2".to_owned()))
        }
        _ => Err(wrong(
            "this unit does not run; systemctl status tells more".to_owned(),
        )),
    }
}
