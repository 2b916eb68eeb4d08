//! `fairbat-agent check`: shows what the jobs will do and what may keep them from it on
//! this machine.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use fairbat::printable::printable;
use fairbat_agent::config::{Config, Course, Delete, Due, Job, MaxDelete, Store, Timing};
use jiff::{SignedDuration, Timestamp, Zoned};

use super::args::CheckArgs;
use super::compare;
use super::process::{ExitCode, now, with_config, written};

/// Runs the command.
pub(crate) fn run(args: &CheckArgs) -> ExitCode {
    if args.store {
        return compare::run(args);
    }
    with_config(&args.config.config, |config| {
        let now = now();
        for warning in warnings(&config, &now) {
            eprintln!("warning: {warning}");
        }
        written(print(&config.jobs, &now))
    })
}

fn print(jobs: &[Job], now: &Zoned) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for job in jobs {
        writeln!(out, "{}", line(job, now))?;
    }
    out.flush()
}

/// What a job does, when it starts next, and when it should be done.
fn line(job: &Job, now: &Zoned) -> String {
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

/// The deadline of the run that starts at `start`, or of any run.
fn by(due: Due, start: Option<&Zoned>, now: &Zoned) -> String {
    let local = start.map(|start| start.with_time_zone(now.time_zone().clone()));
    match (local.and_then(|start| due.after(&start)), due) {
        (Some(deadline), _) => format!(", by {}", moment(deadline, now)),
        (None, Due::By(time)) => format!(", by {} after its start", time.strftime("%H:%M")),
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

/// What may keep a job from its work, as far as this machine can tell.
fn warnings(config: &Config, now: &Zoned) -> Vec<String> {
    let mut warnings = Vec::new();
    for (name, store) in &config.stores {
        warnings.extend(
            of_store(name, store)
                .into_iter()
                .map(|what| format!("store `{name}`: {what}")),
        );
    }
    for job in &config.jobs {
        let over =
            matches!(job.timing, Timing::Calendar(_)) && job.timing.next_by_calendar(now).is_none();
        let over = over.then(|| "its schedule has no moment in the future".to_owned());
        let unreadable = source(job, config).and_then(|path| unreadable_directory(&path));
        let found = over.into_iter().chain(unreadable);
        warnings.extend(found.map(|what| format!("job `{}`: {what}", job.name)));
    }
    if config.jobs.is_empty() {
        warnings.push("there are no jobs; add [[jobs]]".to_owned());
    }
    warnings
}

fn of_store(name: &str, store: &Store) -> Vec<String> {
    let variable = |name: &str| std::env::var_os(name);
    let credentials = match store.read_credentials(name, variable) {
        Ok(told) => store
            .exposes(&told)
            .map(|what| format!("{what}; use https")),
        Err(error) => Some(error.to_string()),
    };
    let file = match store {
        Store::Local(local) => unreadable_directory(&local.path),
        _ => store.cacert().and_then(unreadable_file),
    };
    credentials.into_iter().chain(file).collect()
}

/// The source of a job, if it is on this machine.
fn source(job: &Job, config: &Config) -> Option<PathBuf> {
    match &job.course {
        Course::Push { from, .. } => Some(from.clone()),
        Course::Pull { from, .. } => match config.stores.get(&from.store)? {
            // A missing store has a warning of its own.
            Store::Local(local) if local.path.is_dir() => Some(local.path.join(&from.path)),
            Store::Local(_) | Store::S3(_) | Store::Webdav(_) | Store::Fairbat(_) => None,
        },
    }
}

fn unreadable_directory(path: &Path) -> Option<String> {
    let error = std::fs::read_dir(path).err()?;
    Some(format!("{}: {error}", shown(path)))
}

fn unreadable_file(path: &Path) -> Option<String> {
    let error = File::open(path).err()?;
    Some(format!("{}: {error}", shown(path)))
}
