//! The state that the daemon's loop owns: its tasks, its lanes, and the record that
//! survives the process.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use fairbat::machine::LaneDirection;
use jiff::{Timestamp, Zoned};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::adhoc::AdHocTask;
use super::entry::{PreparedJob, TaskEntry, TaskWork, check_id};
use super::handle::{CommandError, CommandReply};
use super::lanes::{AgentLane, DownloadClients, LaneMeter};
use super::schedule::TaskState;
use super::systemd::{ServiceManager, status_line};
use crate::clock::{self, WallClock};
use crate::config::{Config, ConfigError};
use crate::confine::Confinement;
use crate::fleet::status::FleetStatus;
use crate::hold;
use crate::state::{CommitHandle, DAMAGED_HINT, StateDatabase, StateError, StateWriter};
use crate::status::{AgentStatus, TaskStatus, Totals};
use crate::sync::RunReport;

/// Why the daemon cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The file is not a state that this version can read. Starting again does not help.
    #[error("{}: {error}", file.display())]
    DamagedState {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        error: StateError,
    },
    /// A file of the state or a lane, and what is wrong with it.
    #[error("{0}")]
    Other(String),
}

impl StartError {
    /// What to do about it; empty when there is nothing to advise.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::DamagedState { .. } => DAMAGED_HINT,
            Self::Other(_) => "",
        }
    }
}

/// Reads the configuration again. It may block.
pub type ConfigLoader = Arc<dyn Fn() -> Result<Config, ConfigError> + Send + Sync>;

/// The result of a background task, for the loop to act on.
pub(crate) enum BackgroundResult {
    /// An ad-hoc task was recorded, or could not be.
    Added(Box<AddedTask>),
    /// The configuration was read again, or the reason why it is refused.
    Reloaded(Result<Box<NewConfig>, String>),
}

/// An ad-hoc task after the attempt to record it.
pub(crate) struct AddedTask {
    pub(crate) task: AdHocTask,
    /// The number under which it is recorded.
    pub(crate) number: Result<u64, CommandError>,
    pub(crate) reply: CommandReply,
}

/// A configuration that can be put in force.
pub(crate) struct NewConfig {
    pub(crate) config: Config,
    pub(crate) jobs: Vec<PreparedJob>,
}

/// Everything that the loop owns.
pub(crate) struct Daemon {
    pub(crate) config: Arc<Config>,
    /// How the agent takes part in its site.
    pub(crate) fleet: Option<watch::Receiver<FleetStatus>>,
    pub(crate) confinement: Arc<Confinement>,
    /// The file with the state.
    pub(crate) file: PathBuf,
    pub(crate) state: StateDatabase,
    pub(crate) writer: StateWriter,
    /// A random number that names this agent in the stores it writes to.
    pub(crate) identity: u64,
    pub(crate) started: Timestamp,
    pub(crate) wall_clock: WallClock,
    pub(crate) push: Arc<AgentLane>,
    pub(crate) pull: Arc<AgentLane>,
    /// The clients of ad-hoc downloads.
    pub(crate) downloads: DownloadClients,
    pub(crate) meters: [LaneMeter; 2],
    /// Jobs in the order of the configuration, then ad-hoc tasks by number.
    pub(crate) entries: Vec<TaskEntry>,
    /// Counts of the ad-hoc tasks that have no entry any more; `None` if there were none.
    pub(crate) forgotten: Option<Totals>,
    /// Runs under way, each with the id of its task.
    pub(crate) running: JoinSet<(String, RunReport)>,
    /// Work that waits for a disk. It runs beside the loop.
    pub(crate) background: JoinSet<Option<BackgroundResult>>,
    /// Ad-hoc tasks that are being checked and recorded.
    pub(crate) adding: usize,
    pub(crate) service_manager: ServiceManager,
    pub(crate) is_reloading: bool,
    /// Why the configuration was refused when it was last read again.
    pub(crate) config_problem: Option<String>,
    pub(crate) is_stopping: bool,
}

impl Daemon {
    /// The time now. If the wall clock was set, all schedules are adjusted first.
    pub(crate) fn now(&mut self) -> Zoned {
        let now = clock::now();
        if let Some(step) = self.wall_clock.step(now.timestamp(), clock::uptime()) {
            tracing::warn!(
                by_s = step.as_secs_f64(),
                "the clock was set; all schedules are planned again"
            );
            for entry in &mut self.entries {
                entry.schedule.clock_was_set(step, &now);
            }
        }
        now
    }

    /// The lane of a direction.
    pub(crate) fn lane(&self, direction: LaneDirection) -> &Arc<AgentLane> {
        match direction {
            LaneDirection::Push => &self.push,
            LaneDirection::Pull => &self.pull,
        }
    }

    /// Starts to record the state of a job, unless it is recorded already.
    pub(crate) fn record_state(&mut self, index: usize) -> Option<CommitHandle<()>> {
        let entry = &mut self.entries[index];
        let state = TaskState::of(&entry.schedule);
        if matches!(entry.work, TaskWork::AdHoc(..)) || state == entry.recorded {
            return None;
        }
        let written = state.to_json();
        entry.recorded = state;
        Some(self.writer.set_task_state(&entry.id, written))
    }

    /// Drops an entry. What an ad-hoc task has counted still counts.
    pub(crate) fn forget(&mut self, index: usize) {
        let entry = self.entries.remove(index);
        if let TaskWork::AdHoc(..) = entry.work {
            *self.forgotten.get_or_insert_default() += entry.schedule.totals;
        }
    }

    /// The status of the agent now.
    pub(crate) fn status(&mut self) -> AgentStatus {
        let now = self.now().timestamp();
        let [push, pull] = &mut self.meters;
        let lanes = vec![push.status(&self.push, now), pull.status(&self.pull, now)];
        let is_check = |entry: &&TaskEntry| matches!(entry.work, TaskWork::Check { .. });
        let checks = self.entries.iter().filter(is_check);
        let mut checks: BTreeMap<_, _> = checks
            .map(|entry| (entry.id.as_str(), entry.check_status()))
            .collect();
        let is_adhoc = |entry: &&TaskEntry| matches!(entry.work, TaskWork::AdHoc(..));
        let adhoc = self.entries.iter().filter(is_adhoc).map(TaskEntry::totals);
        let added = self
            .forgotten
            .into_iter()
            .chain(adhoc)
            .reduce(|mut all, one| {
                all += one;
                all
            });
        // A cancelled ad-hoc task is gone, though its run may not have ended yet.
        let is_listed =
            |entry: &&TaskEntry| !(is_check(entry) || is_adhoc(entry) && entry.is_removed);
        let tasks = self.entries.iter().filter(is_listed);
        let tasks = tasks.map(|entry| TaskStatus {
            check: checks.remove(check_id(&entry.id).as_str()),
            ..entry.status(&lanes, now)
        });
        AgentStatus {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started: self.started,
            now,
            tasks: tasks.collect(),
            fleet: self.fleet.as_ref().map(|fleet| fleet.borrow().clone()),
            holds: hold::status::read(&self.config.agent.hold_status, &self.config.holds, now),
            added,
            lanes,
        }
    }

    /// The same in one line, for the service manager.
    pub(crate) fn status_line(&self, status: &AgentStatus) -> String {
        status_line(status, self.config_problem.as_deref(), &clock::now())
    }

    /// Tells the service manager that the daemon is ready, at first or again.
    pub(crate) fn notify_ready(&mut self) {
        let status = self.status();
        let line = self.status_line(&status);
        self.service_manager.ready(line);
    }
}
