//! What the daemon begins with: the state, the lanes, and the jobs as they stood.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use jiff::{Timestamp, Zoned};
use tokio::task::JoinSet;

use super::clock::{self, Clocks};
use super::entry::{Entry, Work};
use super::extra::Extra;
use super::lanes::Way;
use super::manager::Manager;
use super::place::place;
use super::service::{Daemon, StartError};
use super::standing::Standing;
use super::task::Task;
use crate::config::{Config, Job};
use crate::filter::Filter;
use crate::state::{PlaceRecord, StateDatabase};
use crate::status::Direction;

/// Name of the file with the state.
const STATE: &str = "agent.redb";

/// A job that can be run.
pub(super) struct Prepared {
    pub(super) job: Job,
    pub(super) filter: Filter,
    /// Where it writes.
    pub(super) place: PlaceRecord,
    /// When it last went well there, and how it stood; only of a job that is new.
    succeeded: Option<Timestamp>,
    standing: Standing,
}

/// Makes ready what jobs need. Those that are `known` are not asked after in the
/// state. Blocking.
///
/// # Errors
/// [`StartError`].
pub(super) fn prepare(
    state: &StateDatabase,
    file: &Path,
    config: &Config,
    known: impl Fn(&str) -> bool,
) -> Result<Vec<Prepared>, StartError> {
    let of_state = |error| StartError::State {
        file: file.to_owned(),
        error,
    };
    let standings: BTreeMap<_, _> = state.standings().map_err(of_state)?;
    let mut prepared = Vec::new();
    for job in &config.jobs {
        let filter = Filter::new(&job.include, &job.exclude).map_err(|error| StartError::Job {
            job: job.name.clone(),
            problem: error.to_string(),
        })?;
        let place = place(config, &job.course);
        let succeeded = match known(&job.name) {
            true => None,
            false => {
                let (_, record) = state.job(&job.name).map_err(of_state)?;
                // What went well elsewhere says nothing of this place.
                let is_here = record.place.as_ref() == Some(&place);
                record.succeeded.filter(|_| is_here)
            }
        };
        let standing = standings.get(&job.name);
        prepared.push(Prepared {
            job: job.clone(),
            filter,
            place,
            succeeded: succeeded.and_then(|seconds| Timestamp::from_second(seconds).ok()),
            standing: standing.map_or_else(Standing::default, |written| Standing::read(written)),
        });
    }
    Ok(prepared)
}

impl Entry {
    /// A job that is new, or was not there while the agent did not run.
    pub(super) fn job(prepared: Prepared, now: &Zoned) -> Self {
        let Prepared {
            job,
            filter,
            place,
            succeeded,
            standing,
        } = prepared;
        let mut task = Task::new(job.timing.clone(), job.due, succeeded, now);
        standing.put(&mut task, now);
        Self {
            id: job.name.clone(),
            task,
            work: Work::Job(Box::new((job, filter))),
            place: Some(place),
            active: None,
            standing,
            leaves: false,
        }
    }
}

impl Daemon {
    /// Blocking; in a runtime.
    pub(super) fn open(config: Config, fresh_identity: u64) -> Result<Self, StartError> {
        let directory = &config.agent.state;
        std::fs::create_dir_all(directory).map_err(|error| StartError::Directory {
            directory: directory.clone(),
            error,
        })?;
        let file = directory.join(STATE);
        let of_state = |error| StartError::State {
            file: file.clone(),
            error,
        };
        let state = StateDatabase::open(&file).map_err(of_state)?;
        let identity = state.identity(fresh_identity).map_err(of_state)?;
        for (store, what) in config.exposed(|name| std::env::var_os(name)) {
            tracing::warn!(store, "{what}; use https");
        }
        let way = |direction| {
            let way = Way::open(direction, &config.agent).map_err(StartError::Lane)?;
            Ok(Arc::new(way))
        };
        let now = clock::now();
        let jobs = prepare(&state, &file, &config, |_| false)?.into_iter();
        let mut entries: Vec<_> = jobs.map(|job| Entry::job(job, &now)).collect();
        for (number, extra) in state.extras().map_err(of_state)? {
            match serde_json::from_slice::<Extra>(&extra) {
                Ok(extra) => entries.push(Entry::extra(number, extra, &now)),
                Err(error) => tracing::error!(number, %error, "something added is not understood"),
            }
        }
        Ok(Self {
            ways: [way(Direction::Push)?, way(Direction::Pull)?],
            measured: Default::default(),
            writer: state.writer(),
            state,
            file,
            identity,
            started: now.timestamp(),
            clocks: Clocks::default(),
            entries,
            running: JoinSet::new(),
            chores: JoinSet::new(),
            manager: Manager::of_environment(),
            is_reloading: false,
            refused: None,
            is_stopping: false,
            config: Arc::new(config),
        })
    }
}
