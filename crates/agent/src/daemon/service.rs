//! The loop of the daemon.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp, Zoned};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use super::handle::{Accepted, Command, Refused, Telling};
use super::lanes::Way;
use super::task::Task;
use crate::config::{Config, Course, Job};
use crate::filter::Filter;
use crate::state::{State, StateError, Writer};
use crate::status::{Direction, LaneStatus, Phase, Sample, Status, TaskKind, TaskStatus};
use crate::sync::{
    Context, Ledger, Origin, Problem, PullSettings, PushSettings, Report, pull, push,
};

/// How often the status is told.
const TICK: Duration = Duration::from_secs(1);

/// The least round-trip time of so many seconds is that of an empty path.
const LEAST_OVER: usize = 600;

/// Name of the file with the state.
const STATE: &str = "agent.redb";

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

/// How the daemon ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It was told to.
    Stopped,
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

/// Runs jobs until `stop` becomes true; then every run ends at once, with
/// everything to be continued.
///
/// # Errors
/// [`StartError`]; once it has started there is none.
pub async fn run(
    config: Config,
    mut telling: Telling,
    mut stop: watch::Receiver<bool>,
    fresh_identity: u64,
) -> Result<Ended, StartError> {
    let mut daemon = Daemon::new(config, fresh_identity)?;
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
            Some((command, answer)) = telling.next() => daemon.obey(command, answer),
            _ = tick.tick() => {
                daemon.start_what_is_due();
                telling.tell(daemon.status());
            }
        }
    }
    daemon.stop().await;
    telling.tell(daemon.status());
    Ok(Ended::Stopped)
}

/// Gives up what killed processes have left unfinished in the stores that jobs
/// push to; returns how many uploads, by job, and what went wrong. Not while the
/// daemon runs: the state is open then.
///
/// # Errors
/// [`StartError`].
pub async fn collect(config: Config) -> Result<Vec<(String, Result<u64, Problem>)>, StartError> {
    let daemon = Daemon::new(config, 1)?;
    let mut collected = Vec::new();
    for entry in &daemon.jobs {
        let Course::Push { to, .. } = &entry.job.course else {
            continue;
        };
        let store = daemon.ways[0].store(&daemon.config, &to.store, |name| std::env::var_os(name));
        let given_up = match store {
            Ok((store, _)) => {
                crate::sync::collect(&daemon.state, &entry.job.name, &store, &to.path).await
            }
            Err(error) => Err(error.into()),
        };
        collected.push((entry.job.name.clone(), given_up));
    }
    Ok(collected)
}

struct Daemon {
    config: Config,
    state: State,
    writer: Writer,
    identity: u64,
    started: Timestamp,
    ways: [Way; 2],
    measured: [Measured; 2],
    jobs: Vec<Entry>,
    running: JoinSet<(String, Report)>,
}

/// A job, and its book.
struct Entry {
    job: Job,
    filter: Filter,
    task: Task,
    active: Option<Active>,
}

/// What can be done to a run under way.
struct Active {
    ledger: Ledger,
    stop: watch::Sender<bool>,
}

/// What is added up of a lane.
#[derive(Debug, Default)]
struct Measured {
    rtts: VecDeque<Duration>,
    yielded_s: f64,
    bytes: f64,
}

impl Daemon {
    fn new(config: Config, fresh_identity: u64) -> Result<Self, StartError> {
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
        let state = State::open(&file).map_err(of_state)?;
        let identity = state.identity(fresh_identity).map_err(of_state)?;
        let way = |direction| Way::open(direction, &config.agent).map_err(StartError::Lane);
        let now = now();
        let mut jobs = Vec::new();
        for job in &config.jobs {
            let filter =
                Filter::new(&job.include, &job.exclude).map_err(|error| StartError::Job {
                    job: job.name.clone(),
                    problem: error.to_string(),
                })?;
            let (_, record) = state.job(&job.name).map_err(of_state)?;
            let succeeded = record
                .succeeded
                .and_then(|seconds| Timestamp::from_second(seconds).ok());
            jobs.push(Entry {
                task: Task::new(job.timing.clone(), job.due, succeeded, &now),
                job: job.clone(),
                filter,
                active: None,
            });
        }
        Ok(Self {
            ways: [way(Direction::Push)?, way(Direction::Pull)?],
            measured: Default::default(),
            writer: state.writer(),
            state,
            identity,
            started: now.timestamp(),
            jobs,
            running: JoinSet::new(),
            config,
        })
    }

    fn start_what_is_due(&mut self) {
        let now = now();
        for index in 0..self.jobs.len() {
            if self.jobs[index].task.is_due(now.timestamp()) {
                self.begin(index, &now);
            }
        }
    }

    fn begin(&mut self, index: usize, now: &Zoned) {
        let entry = &mut self.jobs[index];
        let job = entry.job.clone();
        let deadline = entry.task.begin(now);
        tracing::info!(job = %job.name, deadline = ?deadline.map(|it| it.to_string()), "begins");
        let way = &self.ways[match job.course {
            Course::Push { .. } => 0,
            Course::Pull { .. } => 1,
        }];
        let place = job.course.place().clone();
        let store = way.store(&self.config, &place.store, |name| std::env::var_os(name));
        let ledger = Ledger::default();
        let (stop, stopped) = watch::channel(false);
        entry.active = Some(Active {
            ledger: ledger.clone(),
            stop,
        });
        let (store, host) = match store {
            Ok(store) => store,
            Err(error) => {
                let report = Report::of(Problem::Store(error));
                self.running.spawn(async move { (job.name, report) });
                return;
            }
        };
        let own = job.limit_rate.map(fairbat::carrier::Ceiling::new);
        let ceilings = own.map(Arc::new).into_iter().chain(way.ceiling.clone());
        let ceilings = ceilings.collect();
        let connections = self.config.agent.connections;
        let (store, lane) = (Arc::new(store), way.lane.clone());
        match job.course {
            Course::Push { from, .. } => {
                let settings = PushSettings {
                    source: from,
                    prefix: place.path,
                    filter: entry.filter.clone(),
                    one_file_system: job.one_file_system,
                    detect: job.detect,
                    delete: job.delete,
                    verify: job.verify,
                    deadline,
                    weight: job.min_weight,
                    ceilings,
                    connections,
                    seed: self.identity,
                    identity: self.identity,
                };
                let context = Context {
                    state: self.state.clone(),
                    writer: self.writer.clone(),
                    store,
                    host,
                    lane,
                };
                self.running.spawn(async move {
                    let report = push(context, &job.name, settings, ledger, stopped).await;
                    (job.name, report)
                });
            }
            Course::Pull { to, .. } => {
                let settings = PullSettings {
                    prefix: place.path,
                    to,
                    delete: job.delete,
                    deadline,
                    weight: job.min_weight,
                    ceilings,
                    connections,
                    seed: self.identity,
                };
                let origin = Origin { store, host, lane };
                self.running.spawn(async move {
                    let report = pull(origin, settings, ledger, stopped).await;
                    (job.name, report)
                });
            }
        }
    }

    fn ended(&mut self, name: &str, report: &Report) {
        let now = now();
        let Some(entry) = self.jobs.iter_mut().find(|entry| entry.job.name == name) else {
            return;
        };
        let bytes = entry
            .active
            .take()
            .map_or(0, |active| active.ledger.standing().bytes_moved);
        entry.task.ended(report, bytes, &now);
        match &report.problem {
            None if report.failed == 0 => {
                tracing::info!(
                    job = name,
                    sent = report.sent,
                    deleted = report.deleted,
                    "in step"
                );
            }
            None => tracing::warn!(job = name, failed = report.failed, "some files failed"),
            Some(problem) => {
                tracing::warn!(job = name, %problem, hint = problem.hint(), "ended early");
            }
        }
        if report.is_clean()
            && let Err(error) = self.remember(name, now.timestamp())
        {
            tracing::error!(%error, "the success of a job is not remembered");
        }
    }

    fn remember(&self, name: &str, at: Timestamp) -> Result<(), StateError> {
        self.writer.note_success(name, at.as_second())
    }

    fn obey(&mut self, command: Command, answer: oneshot::Sender<Result<Accepted, Refused>>) {
        let obeyed = self.follow(command);
        // Who asked may have gone.
        let _ = answer.send(obeyed);
    }

    fn follow(&mut self, command: Command) -> Result<Accepted, Refused> {
        let now = now().timestamp();
        let (id, done) = match command {
            Command::Run { job } => {
                let entry = self.find(&job)?;
                if entry.active.is_some() {
                    return Err(Refused::NotNow(format!("job {job} is running already")));
                }
                if entry.task.is_paused {
                    return Err(Refused::NotNow(format!(
                        "job {job} is paused; resume it first"
                    )));
                }
                entry.task.hurry(now);
                (job, true)
            }
            Command::Pause { id } => {
                let entry = self.find(&id)?;
                entry.task.is_paused = true;
                if let Some(active) = &entry.active {
                    let _ = active.stop.send(true);
                }
                (id, true)
            }
            Command::Resume { id } => {
                let entry = self.find(&id)?;
                let was_paused = std::mem::replace(&mut entry.task.is_paused, false);
                (id, was_paused)
            }
            Command::Cancel { id } => {
                let entry = self.find(&id)?;
                let is_running = entry.active.is_some();
                if let Some(active) = &entry.active {
                    let _ = active.stop.send(true);
                }
                (id, is_running)
            }
            Command::Add { .. } | Command::Restore { .. } => {
                return Err(Refused::Impossible(
                    "this version cannot do that yet".to_owned(),
                ));
            }
        };
        if done {
            self.start_what_is_due();
            Ok(Accepted { id })
        } else {
            Err(Refused::NotNow(format!(
                "{id} is neither running nor paused"
            )))
        }
    }

    fn find(&mut self, id: &str) -> Result<&mut Entry, Refused> {
        let nearest = self
            .jobs
            .iter()
            .map(|entry| {
                (
                    strsim::damerau_levenshtein(&entry.job.name, id),
                    &entry.job.name,
                )
            })
            .filter(|(distance, _)| *distance <= 2)
            .min()
            .map(|(_, name)| name.clone());
        self.jobs
            .iter_mut()
            .find(|entry| entry.job.name == id)
            .ok_or(Refused::Unknown {
                id: id.to_owned(),
                nearest,
            })
    }

    async fn stop(&mut self) {
        for entry in &self.jobs {
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
        let now = now().timestamp();
        let mut lanes = Vec::new();
        for (way, measured) in self.ways.iter().zip(&mut self.measured) {
            lanes.push(measured.status(way, now));
        }
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started: self.started,
            now,
            tasks: self
                .jobs
                .iter()
                .map(|entry| entry.status(&lanes, now))
                .collect(),
            lanes,
        }
    }
}

impl Measured {
    fn status(&mut self, way: &Way, now: Timestamp) -> LaneStatus {
        let seen = *way.lane.samples().borrow();
        if let Some(rtt) = seen.rtt {
            if self.rtts.len() == LEAST_OVER {
                self.rtts.pop_front();
            }
            self.rtts.push_back(rtt);
        }
        let least = self.rtts.iter().min();
        let queue = seen.rtt.zip(least).map(|(rtt, least)| rtt - *least);
        if seen.active > 0 && seen.w < 1.0 && way.lever.holds() {
            self.yielded_s += TICK.as_secs_f64();
        }
        self.bytes += seen.rate * TICK.as_secs_f64();
        LaneStatus {
            direction: way.direction,
            lever: way.lever.name().to_owned(),
            can_yield: way.lever.holds(),
            sample: Sample {
                t: now.as_duration().as_secs_f64(),
                n: seen.n,
                m: seen.m,
                active: seen.active as u64,
                w: seen.w,
                zeta: seen.zeta,
                rate: seen.rate,
                rtt_s: seen.rtt.map(|rtt| rtt.as_secs_f64()),
                queue_s: queue.map(|queue| queue.as_secs_f64()),
            },
            yielded_s: self.yielded_s,
            bytes: self.bytes as u64,
        }
    }
}

impl Entry {
    fn status(&self, lanes: &[LaneStatus], now: Timestamp) -> TaskStatus {
        let (direction, from, to) = match &self.job.course {
            Course::Push { from, to } => {
                (Direction::Push, from.display().to_string(), to.to_string())
            }
            Course::Pull { from, to } => {
                (Direction::Pull, from.to_string(), to.display().to_string())
            }
        };
        let standing = self
            .active
            .as_ref()
            .map(|active| active.ledger.standing())
            .unwrap_or_default();
        let is_scanning = self.active.is_some() && !standing.is_planned;
        let task = &self.task;
        let lane = lanes.iter().find(|lane| lane.direction == direction);
        let predicted = lane
            .filter(|lane| standing.is_planned && lane.sample.rate > 0.0)
            .and_then(|lane| {
                let left = standing.bytes.saturating_sub(standing.bytes_done);
                let seconds = left as f64 / lane.sample.rate;
                now.checked_add(SignedDuration::try_from_secs_f64(seconds).ok()?)
                    .ok()
            });
        let until = match (&task.last, task.run) {
            (_, Some(_)) => predicted.map(|predicted| predicted.max(now)),
            (Some(last), None) => Some(last.ended),
            (None, None) => None,
        };
        let late = until
            .zip(task.deadline)
            .map(|(until, deadline)| until.duration_since(deadline).as_secs_f64().max(0.0));
        TaskStatus {
            id: self.job.name.clone(),
            kind: TaskKind::Job,
            direction,
            from,
            to,
            phase: task.phase(is_scanning),
            next: task.next.filter(|_| task.phase(false) != Phase::Paused),
            began: task
                .run
                .map(|run| run.began)
                .or(task.last.as_ref().map(|last| last.began)),
            deadline: task.deadline,
            predicted,
            late_s: late,
            files: standing.files,
            files_done: standing.files_done,
            bytes: standing.bytes,
            bytes_done: standing.bytes_done,
            last: task.last.clone(),
            succeeded: task.succeeded,
            totals: task.totals,
        }
    }
}

impl Report {
    fn of(problem: Problem) -> Self {
        Self {
            problem: Some(problem),
            ..Self::default()
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "the shell that reads the clock")]
fn now() -> Zoned {
    Zoned::now()
}
