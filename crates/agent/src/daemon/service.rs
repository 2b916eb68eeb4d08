//! The loop of the daemon.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fairbat::carrier::Ceiling;
use jiff::{Timestamp, Zoned};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use super::download::{self, Download};
use super::entry::{Active, Entry, Work};
use super::extra::{self, Extra, What};
use super::handle::{Accepted, Command, Refused, Telling};
use super::lanes::Way;
use super::measured::Measured;
use super::task::Task;
use crate::config::{Config, Course, Job};
use crate::filter::Filter;
use crate::state::{State, StateError, Writer};
use crate::status::{Direction, Status};
use crate::sync::{
    Context, Ledger, Origin, Problem, PullSettings, PushSettings, Report, TELL_EVERY, pull, push,
};

/// How often the status is told.
pub(super) const TICK: Duration = Duration::from_secs(1);

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
) -> Result<(), StartError> {
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
    Ok(())
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
    for entry in &daemon.entries {
        let Work::Job(job) = &entry.work else {
            continue;
        };
        let Course::Push { to, .. } = &job.0.course else {
            continue;
        };
        let store = daemon.ways[0].store(&daemon.config, &to.store, |name| std::env::var_os(name));
        let given_up = match store {
            Ok((store, _)) => {
                let (state, writer) = (&daemon.state, &daemon.writer);
                crate::sync::collect(state, writer, &entry.id, &store, &to.path).await
            }
            Err(error) => Err(error.into()),
        };
        collected.push((entry.id.clone(), given_up));
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
    /// Jobs first, then what was added.
    entries: Vec<Entry>,
    running: JoinSet<(String, Report)>,
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
        for (store, what) in config.exposed(|name| std::env::var_os(name)) {
            tracing::warn!(store, "{what}; use https");
        }
        let way = |direction| Way::open(direction, &config.agent).map_err(StartError::Lane);
        let now = now();
        let mut entries = Vec::new();
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
            entries.push(Entry {
                id: job.name.clone(),
                task: Task::new(job.timing.clone(), job.due, succeeded, &now),
                work: Work::Job(Box::new((job.clone(), filter))),
                active: None,
            });
        }
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
            identity,
            started: now.timestamp(),
            entries,
            running: JoinSet::new(),
            config,
        })
    }

    fn start_what_is_due(&mut self) {
        let now = now();
        for index in 0..self.entries.len() {
            if self.entries[index].task.is_due(now.timestamp()) {
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
        let ledger = Ledger::default();
        let (stop, stopped) = watch::channel(false);
        entry.active = Some(Active {
            ledger: ledger.clone(),
            stop,
        });
        let started = self.start(index, deadline, ledger, stopped);
        self.running.spawn(match started {
            Ok(started) => started,
            Err(problem) => {
                let id = self.entries[index].id.clone();
                running(id, async { Report::of(problem) })
            }
        });
    }

    /// A run of something.
    fn start(
        &self,
        index: usize,
        deadline: Option<Timestamp>,
        ledger: Ledger,
        stopped: watch::Receiver<bool>,
    ) -> Result<Running, Problem> {
        let Entry { id, work, .. } = &self.entries[index];
        match work {
            Work::Job(job) => {
                let (job, filter) = &**job;
                match &job.course {
                    Course::Push { from, to } => {
                        let settings = self.push_settings(job, filter, from, &to.path, deadline);
                        self.push(id.clone(), &to.store, settings, ledger, stopped)
                    }
                    Course::Pull { from, to } => {
                        let settings = self.pull_settings(job, to, &from.path, deadline);
                        self.pull(id.clone(), &from.store, settings, ledger, stopped)
                    }
                }
            }
            Work::Extra(_, extra) => match &extra.what {
                What::Restore { job, to } => self.restore(id, job, to, deadline, ledger, stopped),
                What::Download { url, to } => {
                    let download = Download {
                        url: url.clone(),
                        to: to.clone(),
                        deadline,
                        seed: self.identity,
                    };
                    let agent = self.config.agent.clone();
                    Ok(running(id.clone(), async move {
                        download::download(download, &agent, ledger, stopped).await
                    }))
                }
            },
        }
    }

    fn push_settings(
        &self,
        job: &Job,
        filter: &Filter,
        from: &Path,
        prefix: &str,
        deadline: Option<Timestamp>,
    ) -> PushSettings {
        PushSettings {
            source: from.to_owned(),
            prefix: prefix.to_owned(),
            filter: filter.clone(),
            one_file_system: job.one_file_system,
            detect: job.detect,
            delete: job.delete,
            verify: job.verify,
            deadline,
            weight: job.min_weight,
            ceilings: self.ceilings(0, job.limit_rate),
            connections: self.config.agent.connections,
            seed: self.identity,
            identity: self.identity,
            tell_every: TELL_EVERY,
        }
    }

    fn pull_settings(
        &self,
        job: &Job,
        to: &Path,
        prefix: &str,
        deadline: Option<Timestamp>,
    ) -> PullSettings {
        PullSettings {
            prefix: prefix.to_owned(),
            to: to.to_owned(),
            delete: job.delete,
            deadline,
            weight: job.min_weight,
            ceilings: self.ceilings(1, job.limit_rate),
            connections: self.config.agent.connections,
            seed: self.identity,
        }
    }

    /// Those of a lane, and of a job.
    fn ceilings(&self, way: usize, own: Option<u64>) -> Vec<Arc<Ceiling>> {
        let own = own.map(Ceiling::new).map(Arc::new);
        own.into_iter()
            .chain(self.ways[way].ceiling.clone())
            .collect()
    }

    fn push(
        &self,
        id: String,
        store: &str,
        settings: PushSettings,
        ledger: Ledger,
        stopped: watch::Receiver<bool>,
    ) -> Result<Running, Problem> {
        let way = &self.ways[0];
        let (store, host) = way.store(&self.config, store, |name| std::env::var_os(name))?;
        let context = Context {
            state: self.state.clone(),
            writer: self.writer.clone(),
            store: Arc::new(store),
            host,
            lane: way.lane.clone(),
        };
        let name = id.clone();
        Ok(running(id, async move {
            push(context, &name, settings, ledger, stopped).await
        }))
    }

    fn pull(
        &self,
        id: String,
        store: &str,
        settings: PullSettings,
        ledger: Ledger,
        stopped: watch::Receiver<bool>,
    ) -> Result<Running, Problem> {
        let way = &self.ways[1];
        let (store, host) = way.store(&self.config, store, |name| std::env::var_os(name))?;
        let origin = Origin {
            store: Arc::new(store),
            host,
            lane: way.lane.clone(),
        };
        Ok(running(id, async move {
            pull(origin, settings, ledger, stopped).await
        }))
    }

    fn restore(
        &self,
        id: &str,
        job: &str,
        to: &Path,
        deadline: Option<Timestamp>,
        ledger: Ledger,
        stopped: watch::Receiver<bool>,
    ) -> Result<Running, Problem> {
        let job = self.config.jobs.iter().find(|known| known.name == job);
        let job = job.ok_or_else(|| Problem::Scan("the job is not configured any more".into()))?;
        let place = job.course.place();
        let settings = PullSettings {
            delete: crate::config::Delete::Never,
            ..self.pull_settings(job, to, &place.path, deadline)
        };
        self.pull(id.to_owned(), &place.store, settings, ledger, stopped)
    }

    fn ended(&mut self, id: &str, report: &Report) {
        let now = now();
        let Some(entry) = self.entries.iter_mut().find(|entry| entry.id == id) else {
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
        let remembered = match &entry.work {
            Work::Job(_) if report.is_clean() => {
                self.writer.note_success(id, now.timestamp().as_second())
            }
            Work::Extra(number, _) if entry.task.is_over() => self.state.set_extra(*number, None),
            Work::Job(_) | Work::Extra(..) => Ok(()),
        };
        if let Err(error) = remembered {
            tracing::error!(%error, "the end of a task is not remembered");
        }
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
                if matches!(entry.work, Work::Extra(..)) {
                    return Err(Refused::Impossible(format!("{job} is no job")));
                }
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
                if entry.task.is_over() {
                    return Err(Refused::NotNow(format!("{id} is through")));
                }
                entry.task.is_paused = true;
                if let Some(active) = &entry.active {
                    let _ = active.stop.send(true);
                }
                self.remember_pause(&id, true);
                (id, true)
            }
            Command::Resume { id } => {
                let entry = self.find(&id)?;
                let was_paused = std::mem::replace(&mut entry.task.is_paused, false);
                self.remember_pause(&id, false);
                (id, was_paused)
            }
            Command::Cancel { id } => {
                let entry = self.find(&id)?;
                let is_running = entry.active.is_some();
                if let Some(active) = &entry.active {
                    let _ = active.stop.send(true);
                }
                let number = match &entry.work {
                    Work::Job(_) => None,
                    Work::Extra(number, _) => Some(*number),
                };
                if let Some(number) = number {
                    self.forget(number)?;
                }
                (id, is_running || number.is_some())
            }
            Command::Add { url, to, deadline } => {
                let what = What::Download { url, to };
                (self.add(what, deadline)?, true)
            }
            Command::Restore { job, to, deadline } => {
                self.find(&job)?;
                let is_empty = std::fs::read_dir(&to).map(|mut it| it.next().is_none());
                if is_empty.is_ok_and(|is_empty| !is_empty) {
                    let message = format!("{} is not empty", to.display());
                    return Err(Refused::Impossible(message));
                }
                (self.add(What::Restore { job, to }, deadline)?, true)
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

    /// Something new to do; returns what it is called.
    fn add(&mut self, what: What, deadline: Option<Timestamp>) -> Result<String, Refused> {
        let extra = Extra {
            what,
            deadline,
            is_paused: false,
        };
        let written = serde_json::to_vec(&extra).map_err(|error| not_remembered(&error))?;
        let number = self.state.add_extra(&written);
        let number = number.map_err(|error| not_remembered(&error))?;
        self.entries.push(Entry::extra(number, extra, &now()));
        Ok(extra::name(number))
    }

    fn forget(&mut self, number: u64) -> Result<(), Refused> {
        let forgotten = self.state.set_extra(number, None);
        forgotten.map_err(|error| not_remembered(&error))?;
        let is_it = |entry: &Entry| matches!(entry.work, Work::Extra(other, _) if other == number);
        self.entries.retain(|entry| !is_it(entry));
        Ok(())
    }

    fn remember_pause(&mut self, id: &str, is_paused: bool) {
        let entry = self.entries.iter_mut().find(|entry| entry.id == id);
        let Some(Work::Extra(number, extra)) = entry.map(|entry| &mut entry.work) else {
            return;
        };
        extra.is_paused = is_paused;
        let written = serde_json::to_vec(extra).unwrap_or_default();
        if let Err(error) = self.state.set_extra(*number, Some(&written)) {
            tracing::error!(%error, "a pause is not remembered");
        }
    }

    fn find(&mut self, id: &str) -> Result<&mut Entry, Refused> {
        let nearest = self
            .entries
            .iter()
            .map(|entry| (strsim::damerau_levenshtein(&entry.id, id), &entry.id))
            .filter(|(distance, _)| *distance <= 2)
            .min()
            .map(|(_, name)| name.clone());
        self.entries
            .iter_mut()
            .find(|entry| entry.id == id)
            .ok_or(Refused::Unknown {
                id: id.to_owned(),
                nearest,
            })
    }

    async fn stop(&mut self) {
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
                .entries
                .iter()
                .map(|entry| entry.status(&lanes, now))
                .collect(),
            lanes,
        }
    }
}

type Running = std::pin::Pin<Box<dyn Future<Output = (String, Report)> + Send>>;

/// A run, which says at its end what it was.
fn running(id: String, run: impl Future<Output = Report> + Send + 'static) -> Running {
    Box::pin(async move {
        // A defect in one run is no end of the others, nor of its own book.
        let report = tokio::spawn(run).await;
        (id, report.unwrap_or_else(|_| Report::of(Problem::Lost)))
    })
}

fn not_remembered(error: &dyn std::fmt::Display) -> Refused {
    Refused::Impossible(format!("it cannot be remembered: {error}"))
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
