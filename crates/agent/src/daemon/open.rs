//! Opens what the daemon starts with: the state file, the lanes and the tasks.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;

use fairbat::lane::Service;
use fairbat::machine::LaneDirection;
use jiff::Timestamp;
use tokio::task::JoinSet;

use super::adhoc::AdHocTask;
use super::core::{Daemon, StartError};
use super::entry::{PreparedJob, TaskEntry, TaskWork, check_id, place};
use super::lanes::{AgentLane, DownloadClients};
use super::runs::check_mounted;
use super::schedule::TaskState;
use super::systemd::ServiceManager;
use crate::clock::{self, WallClock};
use crate::config::{Config, Course};
use crate::confine::Confinement;
use crate::state::{STATE_FILE, StateDatabase, StateError, make_private_directory};
use crate::sync::{DamagedFiles, RunProblem};

/// Prepares the jobs of a configuration. The last success of a job is read only if
/// `is_listed` is false for its name. Blocking.
///
/// # Errors
/// [`StartError`].
pub(crate) fn prepare(
    state: &StateDatabase,
    file: &Path,
    config: &Config,
    is_listed: impl Fn(&str) -> bool,
) -> Result<Vec<PreparedJob>, StartError> {
    let state_error = |error| state_error(file, error);
    let states: BTreeMap<_, _> = state.task_states().map_err(state_error)?;
    let mut prepared = Vec::new();
    for job in &config.jobs {
        let place = place(config, &job.course);
        let (succeeded, damaged) = match is_listed(&job.name) {
            true => (None, DamagedFiles::default()),
            false => {
                let (id, record) = state.job(&job.name).map_err(state_error)?;
                // A success at another place says nothing about this one.
                let is_here = record.place.as_ref() == Some(&place);
                let damaged = DamagedFiles::of(state, id).map_err(state_error)?;
                (record.succeeded.filter(|_| is_here), damaged)
            }
        };
        let recorded = |id: &str| {
            let recorded = states.get(id);
            recorded.map_or_else(TaskState::default, |json| TaskState::from_json(json))
        };
        prepared.push(PreparedJob {
            job: job.clone(),
            is_check: false,
            damaged: DamagedFiles::default(),
            place: place.clone(),
            succeeded: succeeded.and_then(|seconds| Timestamp::from_second(seconds).ok()),
            recorded: recorded(&job.name),
        });
        if let Course::Push { .. } = job.course {
            let recorded = recorded(&check_id(&job.name));
            prepared.push(PreparedJob {
                job: job.clone(),
                is_check: true,
                place,
                succeeded: damaged.checked,
                damaged,
                recorded,
            });
        }
    }
    Ok(prepared)
}

fn unusable(path: &Path, error: impl Display) -> StartError {
    StartError::Other(format!("{}: {error}", path.display()))
}

fn state_error(file: &Path, error: StateError) -> StartError {
    match error.is_damage() {
        true => StartError::DamagedState {
            file: file.to_owned(),
            error,
        },
        false if error.is_access() => unusable(
            file,
            format!("{error}; run this as the user whose file it is"),
        ),
        false => unusable(file, error),
    }
}

impl Daemon {
    /// Opens everything. Blocking; needs a tokio runtime.
    pub(crate) fn open(
        config: Config,
        confinement: Confinement,
        fresh_identity: u64,
    ) -> Result<Self, StartError> {
        let directory = &config.agent.state;
        make_private_directory(directory).map_err(|error| unusable(directory, error))?;
        let file = directory.join(STATE_FILE);
        let state_error = |error| state_error(&file, error);
        let state = StateDatabase::open(&file).map_err(state_error)?;
        let identity = state.identity(fresh_identity).map_err(state_error)?;
        for (store, what) in config.exposed(|name| std::env::var_os(name)) {
            tracing::warn!(store, "{what}; use https");
        }
        let lane = |direction| {
            let lane = AgentLane::open(direction, &config.agent);
            lane.map(Arc::new).map_err(StartError::Other)
        };
        let agent = &config.agent;
        let downloads = DownloadClients::new(agent);
        let downloads = downloads.map_err(|error| StartError::Other(error.message))?;
        let now = clock::now();
        let jobs = prepare(&state, &file, &config, |_| false)?.into_iter();
        let mut entries: Vec<_> = jobs.map(|job| TaskEntry::job(job, &now)).collect();
        for (number, json) in state.ad_hoc_tasks().map_err(state_error)? {
            match serde_json::from_slice::<AdHocTask>(&json) {
                Ok(task) => entries.push(TaskEntry::adhoc(number, task, &now)),
                Err(error) => tracing::error!(number, %error, "an ad-hoc task cannot be read"),
            }
        }
        Ok(Self {
            push: lane(LaneDirection::Push)?,
            pull: lane(LaneDirection::Pull)?,
            downloads,
            meters: Default::default(),
            writer: state.writer(),
            state,
            file,
            identity,
            started: now.timestamp(),
            wall_clock: WallClock::default(),
            entries,
            forgotten: None,
            running: JoinSet::new(),
            background: JoinSet::new(),
            adding: 0,
            confinement: Arc::new(confinement),
            service_manager: ServiceManager::from_environment(),
            is_reloading: false,
            config_problem: None,
            is_stopping: false,
            config: Arc::new(config),
            fleet: None,
        })
    }
}

/// Aborts the unfinished uploads that killed processes have left in the stores that
/// jobs push to. Returns, for each job, how many uploads were aborted or why that
/// failed. It cannot run beside the daemon, which holds the state file open.
/// `fresh_identity` becomes the identity of the agent if the state file is new.
///
/// # Errors
/// [`StartError`].
pub async fn collect(
    config: Config,
    fresh_identity: u64,
) -> Result<Vec<(String, Result<u64, RunProblem>)>, StartError> {
    let daemon = Daemon::open(config, Confinement::default(), fresh_identity)?;
    let mut collected = Vec::new();
    for entry in &daemon.entries {
        let TaskWork::Job(job) = &entry.work else {
            continue;
        };
        let Course::Push { to, .. } = &job.course else {
            continue;
        };
        let (state, writer) = (&daemon.state, &daemon.writer);
        let opened = check_mounted(state, &daemon.config, &to.store).and_then(|()| {
            Ok(daemon
                .push
                .open_store(&daemon.config, &to.store, Service::Scavenge)?)
        });
        let aborted = match opened {
            Ok(place) => {
                crate::sync::collect(state, writer, &entry.id, &*place.store, &to.path).await
            }
            Err(problem) => Err(problem),
        };
        collected.push((entry.id.clone(), aborted));
    }
    Ok(collected)
}
