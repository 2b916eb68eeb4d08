//! `fairbat-agent check`: shows what the jobs will do and what may keep them from it on
//! this machine.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use fairbat::printable::printable;
use fairbat_agent::config::{
    self, AgentConfig, Config, Course, Delete, Due, FleetConfig, HoldConfig, JobConfig, Local,
    MaxDelete, StoreConfig, Timing,
};
use fairbat_agent::entry::EntryKind;
use fairbat_agent::fleet::check_credentials;
use fairbat_agent::scan::{Scan, ScanOptions};
use jiff::{SignedDuration, Timestamp, Zoned};
use nix::unistd::{User, geteuid};
use rustix::fs::{Access, AtFlags, CWD, accessat};

use super::args::CheckArgs;
use super::compare;
use super::process::{AgentExitCode, now, with_config, written};

/// Runs the command.
pub(crate) fn run(args: &CheckArgs) -> AgentExitCode {
    if args.store {
        return compare::run(args);
    }
    with_config(&args.config.config, |config| {
        let now = now();
        for warning in warnings(&config, &now) {
            eprintln!("warning: {warning}");
        }
        eprintln!("checked as the user {}", user());
        written(print(&config, &now))
    })
}

fn print(config: &Config, now: &Zoned) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for job in &config.jobs {
        writeln!(out, "{}", line(job, now))?;
    }
    for hold in &config.holds {
        writeln!(out, "{}", hold_line(hold, now))?;
    }
    out.flush()
}

/// What a job does, when it starts next, and when it should be done.
fn line(job: &JobConfig, now: &Zoned) -> String {
    let what = match &job.course {
        Course::Push { from, to } => format!("push {} to {to}", shown(from)),
        Course::Pull { from, to } => format!("pull {from} to {}", shown(to)),
    };
    let deletion = match job.delete {
        Delete::Never => String::new(),
        Delete::Mirror { max } => match max {
            MaxDelete::Files(1) => ", deleting at most 1 file".to_owned(),
            MaxDelete::Files(files) => format!(", deleting at most {files} files"),
            MaxDelete::Share(share) => {
                format!(", deleting at most {} % of the files", share * 100.0)
            }
        },
    };
    let start = job.timing.next_by_calendar(now);
    let due = job
        .due
        .map(|due| by(due, start.as_ref(), now))
        .unwrap_or_default();
    let start = match (&job.timing, start) {
        (Timing::Calendar(_), Some(start)) => format!("next {}", moment(start.timestamp(), now)),
        (Timing::Calendar(_), None) => "never again".to_owned(),
        (Timing::Every(every), _) => format!("every {}", span(*every)),
        (Timing::ByHand, _) => "only by hand".to_owned(),
    };
    format!("{}: {what}{deletion}; {start}{due}", job.name)
}

/// Whose connections are held, and when.
fn hold_line(hold: &HoldConfig, now: &Zoned) -> String {
    let when: Vec<_> = hold.hours.iter().map(ToString::to_string).collect();
    let when = match when.is_empty() {
        true => String::new(),
        false => format!(" in {}", when.join(" and ")),
    };
    let due = hold.due.map(|due| by(due, None, now)).unwrap_or_default();
    let what = printable(&hold.what());
    format!("{}: hold the connections of {what}{when}{due}", hold.name)
}

/// The deadline of the run that starts at `start`, or of any run.
fn by(due: Due, start: Option<&Zoned>, now: &Zoned) -> String {
    let local = start.map(|start| start.with_time_zone(now.time_zone().clone()));
    match (local.and_then(|start| due.after(&start)), due) {
        (Some(deadline), _) => format!(", by {}", moment(deadline, now)),
        (None, Due::By(time)) => format!(", by {time} after its start"),
        (None, Due::Within(within)) => format!(", within {} of its start", span(within)),
    }
}

/// A moment in the local time zone.
fn moment(moment: Timestamp, now: &Zoned) -> String {
    let local = moment.to_zoned(now.time_zone().clone());
    local.strftime("%a %F %T %Z").to_string()
}

fn span(span: std::time::Duration) -> String {
    let exact = SignedDuration::try_from(span);
    exact.map_or_else(|_| format!("{span:?}"), |span| format!("{span:#}"))
}

/// A path for people.
fn shown(path: &Path) -> String {
    printable(&path.display().to_string())
}

/// The user whose rights count here.
fn user() -> String {
    let id = geteuid();
    let known = User::from_uid(id).ok().flatten();
    known.map_or_else(|| id.to_string(), |user| user.name)
}

/// What may keep a job from its work, as far as this machine can tell.
fn warnings(config: &Config, now: &Zoned) -> Vec<String> {
    let mut warnings = of_agent(&config.agent);
    for (name, store) in &config.stores {
        warnings.extend(
            of_store(name, store, config.is_pushed_to(name))
                .into_iter()
                .map(|what| format!("store `{name}`: {what}")),
        );
    }
    for job in &config.jobs {
        let over =
            matches!(job.timing, Timing::Calendar(_)) && job.timing.next_by_calendar(now).is_none();
        let over = over.then(|| "its schedule has no moment in the future".to_owned());
        let unreadable = source(job, config).and_then(|path| unreadable_directory(&path));
        let blocked = match &job.course {
            Course::Push { from, .. } if unreadable.is_none() => unreadable_entries(from, job),
            Course::Push { .. } => None,
            Course::Pull { to, .. } => unwritable_directory(to),
        };
        let found = over.into_iter().chain(unreadable).chain(blocked);
        warnings.extend(found.map(|what| format!("job `{}`: {what}", job.name)));
    }
    let of_fleet = config.fleet.iter().flat_map(of_fleet);
    warnings.extend(of_fleet.map(|what| format!("[fleet]: {what}")));
    if config.jobs.is_empty() && config.holds.is_empty() {
        warnings.push("there are no jobs; add [[jobs]]".to_owned());
    }
    warnings
}

/// The directories that the agent itself needs. In a service, systemd makes the default ones.
fn of_agent(agent: &AgentConfig) -> Vec<String> {
    let state = match agent.state.exists() || agent.state != Path::new(config::STATE) {
        true => unwritable_directory(&agent.state),
        false => None,
    };
    let directory = agent.socket.parent();
    let directory = directory.filter(|path| *path != Path::new(config::RUNTIME));
    let socket = directory.and_then(|path| {
        // The agent makes no directory for it.
        unreadable_directory(path).or_else(|| unwritable_directory(path))
    });
    named([("state", state), ("socket", socket)])
}

/// The files with which the agent reaches NATS.
fn of_fleet(fleet: &FleetConfig) -> Vec<String> {
    let credentials = check_credentials(fleet).err();
    let cacert = fleet.cacert.as_deref().and_then(|path| {
        let why = match std::fs::read_to_string(path) {
            Ok(text) if text.contains("-----BEGIN CERTIFICATE-----") => return None,
            Ok(_) => "there is no certificate in it".to_owned(),
            Err(error) => error.to_string(),
        };
        Some(format!("{}: {why}", shown(path)))
    });
    named([("credentials", credentials), ("cacert", cacert)])
}

/// What was found, with the keys that it is about.
fn named<const N: usize>(found: [(&str, Option<String>); N]) -> Vec<String> {
    let found = found.into_iter();
    let named = found.filter_map(|(key, what)| Some(format!("`{key}`: {}", what?)));
    named.collect()
}

fn of_store(name: &str, store: &StoreConfig, is_written: bool) -> Vec<String> {
    let variable = |name: &str| std::env::var_os(name);
    let credentials = match store.read_credentials(name, variable) {
        Ok(told) => store
            .exposes(&told)
            .map(|what| format!("{what}; use https")),
        Err(error) => Some(error.to_string()),
    };
    let file = match store {
        StoreConfig::Local(Local { path, .. }) => match unreadable_directory(path) {
            None if is_written => unwritable_directory(path),
            unreadable => unreadable,
        },
        _ => store.cacert().and_then(unreadable_file),
    };
    credentials.into_iter().chain(file).collect()
}

/// The source of a job, if it is on this machine.
fn source(job: &JobConfig, config: &Config) -> Option<PathBuf> {
    match &job.course {
        Course::Push { from, .. } => Some(from.clone()),
        Course::Pull { from, .. } => {
            // A missing store has a warning of its own.
            let store = config
                .local_path(&from.store)
                .filter(|path| path.is_dir())?;
            Some(store.join(&from.path))
        }
    }
}

/// The files and directories of a source that this user cannot read.
fn unreadable_entries(source: &Path, job: &JobConfig) -> Option<String> {
    let options = ScanOptions {
        one_file_system: job.one_file_system,
        ..ScanOptions::default()
    };
    let scan = match Scan::open(source, job.filter.clone(), options) {
        Ok(scan) => scan,
        Err(error) => return Some(printable(&error.to_string())),
    };
    let mut unreadable = scan.filter_map(|entry| {
        let entry = match entry {
            Ok(entry) => entry,
            Err(unreadable) => return Some(unreadable.to_string()),
        };
        let EntryKind::File(_) = entry.kind else {
            return None;
        };
        let error = access(&entry.path.under(source), Access::READ_OK).err()?;
        Some(format!("{} cannot be read: {error}", entry.path))
    });
    let first = printable(&unreadable.next()?);
    Some(match unreadable.count() {
        0 => format!("{}: {first}", shown(source)),
        others => format!(
            "{}: {first}; and {others} more are like that",
            shown(source)
        ),
    })
}

/// A directory in which this user can make no file. A missing one is made in the first
/// directory above that is there.
fn unwritable_directory(path: &Path) -> Option<String> {
    let there = path.ancestors().find(|path| path.exists())?;
    let error = access(there, Access::WRITE_OK | Access::EXEC_OK).err()?;
    Some(format!("{} cannot be written: {error}", shown(there)))
}

fn access(path: &Path, rights: Access) -> io::Result<()> {
    Ok(accessat(CWD, path, rights, AtFlags::EACCESS)?)
}

fn unreadable_directory(path: &Path) -> Option<String> {
    let error = std::fs::read_dir(path).err()?;
    Some(format!("{}: {error}", shown(path)))
}

fn unreadable_file(path: &Path) -> Option<String> {
    let error = File::open(path).err()?;
    Some(format!("{}: {error}", shown(path)))
}
