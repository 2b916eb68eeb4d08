//! The loop of the daemon: what is to be acted on, and that it is.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::{Timestamp, Zoned};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use super::clock::{self, Clocks};
use super::entry::{Active, Entry, Work};
use super::extra;
use super::handle::Telling;
use super::lanes::Way;
use super::line::line;
use super::manager::Manager;
use super::measured::Measured;
use super::obey::Added;
use super::reload::Loaded;
use super::standing::Standing;
use crate::config::{Config, ConfigError};
use crate::state::{CommitHandle, StateDatabase, StateError, StateWriter};
use crate::status::Status;
use crate::sync::{Progress, RunProblem, RunReport};

/// How often the status is told.
const TICK: Duration = Duration::from_secs(1);

/// Why the daemon cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The state.
    #[error("{}: {error}", file.display())]
    State {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        error: StateError,
    },
    /// Its directory.
    #[error("{}: {error}", directory.display())]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// A job.
    #[error("job {job}: {problem}")]
    Job {
        /// Its name.
        job: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The settings of the lanes.
    #[error("{0}")]
    Lane(String),
}

/// How it stands before it has begun.
#[must_use]
pub fn starting(now: Timestamp) -> Status {
    Status {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started: now,
        now,
        lanes: Vec::new(),
        tasks: Vec::new(),
    }
}

/// Reads the configuration again.
pub type Load = Arc<dyn Fn() -> Result<Config, ConfigError> + Send + Sync>;

/// What happens outside that concerns the daemon.
pub struct Outside {
    /// Becomes true when it is to end.
    pub stop: watch::Receiver<bool>,
    /// Is notified when the configuration is to be read again.
    pub reload: Arc<Notify>,
    /// How that is done; it may block.
    pub load: Load,
}

/// Runs jobs until it is told to stop; then every run ends at once, with
/// everything to be continued.
///
/// # Errors
/// [`StartError`]; once it has started there is none.
pub async fn run(
    config: Config,
    mut telling: Telling,
    outside: Outside,
    fresh_identity: u64,
) -> Result<(), StartError> {
    let Outside {
        mut stop,
        reload,
        load,
    } = outside;
    // A disk may take its time.
    let opening = tokio::task::spawn_blocking(move || Daemon::open(config, fresh_identity));
    let mut daemon = tokio::select! {
        biased;
        _ = stop.wait_for(|stop| *stop) => return Ok(()),
        opened = opening => match opened {
            Ok(opened) => opened?,
            Err(lost) => std::panic::resume_unwind(lost.into_panic()),
        },
    };
    daemon.tell_ready();
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => break,
            Some(ended) = daemon.running.join_next(), if !daemon.running.is_empty() => {
                if let Ok((name, report)) = ended {
                    daemon.ended(&name, &report);
                }
            }
            Some(done) = daemon.chores.join_next(), if !daemon.chores.is_empty() => {
                if let Ok(Some(done)) = done {
                    daemon.notice(done);
                }
            }
            () = reload.notified(), if !daemon.is_reloading => daemon.reload(Arc::clone(&load)),
            Some((command, answer)) = telling.next() => daemon.obey(command, answer),
            _ = tick.tick() => {
                daemon.start_what_is_due();
                daemon.forget_outdated();
                let status = daemon.status();
                let line = daemon.line(&status);
                daemon.manager.tick(line);
                telling.tell(status);
            }
        }
    }
    daemon.stop().await;
    telling.tell(daemon.status());
    Ok(())
}

/// What was done off the loop, because it took a disk, and is to be noticed now.
pub(super) enum Chore {
    /// Something new was remembered, or was not.
    Added(Box<Added>),
    /// The configuration was read again, or why not.
    Loaded(Result<Box<Loaded>, String>),
}

pub(super) struct Daemon {
    pub(super) config: Arc<Config>,
    /// The file with the state.
    pub(super) file: PathBuf,
    pub(super) state: StateDatabase,
    pub(super) writer: StateWriter,
    pub(super) identity: u64,
    pub(super) started: Timestamp,
    pub(super) clocks: Clocks,
    pub(super) ways: [Arc<Way>; 2],
    pub(super) measured: [Measured; 2],
    /// Jobs first, then what was added.
    pub(super) entries: Vec<Entry>,
    pub(super) running: JoinSet<(String, RunReport)>,
    pub(super) chores: JoinSet<Option<Chore>>,
    pub(super) manager: Manager,
    pub(super) is_reloading: bool,
    /// What was wrong with the configuration when it was last read again.
    pub(super) refused: Option<String>,
    pub(super) is_stopping: bool,
}

impl Daemon {
    /// What time it is; all plans follow a clock that was set.
    pub(super) fn now(&mut self) -> Zoned {
        let now = clock::now();
        if let Some(by) = self.clocks.look(now.timestamp(), clock::up()) {
            tracing::warn!(
                by_s = by.as_secs_f64(),
                "the clock was set: all is planned anew"
            );
            for entry in &mut self.entries {
                entry.task.clock_was_set(by, &now);
            }
        }
        now
    }

    pub(super) fn start_what_is_due(&mut self) {
        let now = self.now();
        for index in 0..self.entries.len() {
            let entry = &self.entries[index];
            if !entry.leaves && entry.task.is_due(now.timestamp()) {
                self.begin(index, &now);
            }
        }
    }

    fn begin(&mut self, index: usize, now: &Zoned) {
        let entry = &mut self.entries[index];
        let deadline = entry.task.begin(now);
        tracing::info!(
            task = %entry.id,
            deadline = deadline.map(|deadline| deadline.to_string()),
            "begins"
        );
        let ledger = Progress::default();
        let (stop, stopped) = watch::channel(false);
        entry.active = Some(Active {
            ledger: ledger.clone(),
            place: entry.place.clone(),
            stop,
        });
        // Nobody waits for that.
        drop(self.remember(index));
        let run = self.start(index, deadline, ledger, stopped);
        self.running.spawn(run);
    }

    fn ended(&mut self, id: &str, report: &RunReport) {
        let now = self.now();
        let Some(index) = self.entries.iter().position(|entry| entry.id == id) else {
            return;
        };
        let entry = &mut self.entries[index];
        let active = entry.active.take();
        let bytes = active
            .as_ref()
            .map_or(0, |active| active.ledger.standing().bytes_moved);
        entry.task.ended(report, bytes, &now);
        // Not if its job has got another place meanwhile.
        let place = active.and_then(|active| active.place);
        let is_elsewhere = place != entry.place;
        if is_elsewhere {
            entry.task.succeeded = None;
        }
        match &report.problem {
            None if report.failed == 0 => {
                tracing::info!(
                    task = id,
                    moved = report.sent,
                    deleted = report.deleted,
                    "done"
                );
            }
            None => tracing::warn!(task = id, failed = report.failed, "some files failed"),
            Some(problem) => {
                tracing::warn!(task = id, %problem, hint = problem.hint(), "ended early");
            }
        }
        match (&entry.work, place) {
            (Work::Job(_), Some(place)) if report.is_clean() && !is_elsewhere => {
                let at = now.timestamp().as_second();
                if let Err(error) = self.writer.note_success(id, place, at) {
                    tracing::error!(%error, "the end of a task is not remembered");
                }
            }
            (Work::Extra(number, _), _) if entry.task.is_over() => {
                drop(self.writer.set_extra(*number, None));
            }
            (Work::Job(_) | Work::Extra(..), _) => {}
        }
        // What the end of the agent stops goes on with its next start.
        if !(self.is_stopping && report.problem == Some(RunProblem::Stopped)) {
            drop(self.remember(index));
        }
        if self.entries[index].leaves {
            self.entries.remove(index);
        }
    }

    /// How a job stands, if that is not remembered yet.
    pub(super) fn remember(&mut self, index: usize) -> Option<CommitHandle<()>> {
        let entry = &mut self.entries[index];
        let standing = Standing::of(&entry.task);
        if matches!(entry.work, Work::Extra(..)) || standing == entry.standing {
            return None;
        }
        let written = standing.written();
        entry.standing = standing;
        Some(self.writer.set_standing(&entry.id, written))
    }

    fn notice(&mut self, done: Chore) {
        match done {
            Chore::Added(added) => self.added(*added),
            Chore::Loaded(loaded) => self.loaded(loaded),
        }
    }

    /// What was added and has been through for long is told of no longer.
    fn forget_outdated(&mut self) {
        let now = self.now().timestamp();
        let through = self.entries.iter().filter_map(Entry::is_through).collect();
        let outdated = extra::outdated(through, now);
        let is_outdated = |entry: &Entry| {
            let through = entry.is_through();
            through.is_some_and(|(number, _)| outdated.contains(&number))
        };
        self.entries.retain(|entry| !is_outdated(entry));
    }

    async fn stop(&mut self) {
        self.is_stopping = true;
        self.manager.stopping();
        for entry in &self.entries {
            if let Some(active) = &entry.active {
                let _ = active.stop.send(true);
            }
        }
        while let Some(ended) = self.running.join_next().await {
            if let Ok((name, report)) = ended {
                self.ended(&name, &report);
            }
        }
        self.writer.flush().await;
    }

    fn status(&mut self) -> Status {
        let now = self.now().timestamp();
        let mut lanes = Vec::new();
        for (way, measured) in self.ways.iter().zip(&mut self.measured) {
            lanes.push(measured.status(way, now));
        }
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started: self.started,
            now,
            tasks: self
                .entries
                .iter()
                .map(|entry| entry.status(&lanes, now))
                .collect(),
            lanes,
        }
    }

    /// The same for the service manager.
    fn line(&self, status: &Status) -> String {
        line(status, self.refused.as_deref(), &clock::now())
    }

    /// Everything is ready again.
    pub(super) fn tell_ready(&mut self) {
        let status = self.status();
        let line = self.line(&status);
        self.manager.ready(line);
    }
}
