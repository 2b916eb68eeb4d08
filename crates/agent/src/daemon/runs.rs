//! Runs of tasks: how they begin, what they work with, and how they end.
//!
//! A run uses the configuration and the credentials of the moment in which it begins.

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use fairbat::blocking::blocking;
use fairbat::lane::Service;
use fairbat::machine::LaneDirection;
use fairbat::transport::RateLimit;
use jiff::{Timestamp, Zoned};
use tokio::sync::watch;

use super::adhoc::AdHocWork;
use super::core::{Daemon, StartError};
use super::download::{Download, download};
use super::entry::{ActiveRun, TaskEntry, TaskWork, check_id, store_address};
use super::lanes::AgentLane;
use super::last_run::last_run;
use crate::config::{Config, Course, Delete, JobConfig, StoreDirectory};
use crate::confine::Confinement;
use crate::filter::EntryFilter;
use crate::reserved::ReservedPlaces;
use crate::state::{StateDatabase, StateError, StateWriter};
use crate::status::LastRun;
use crate::store_mount::{is_mounted, mount_point};
use crate::sync::{
    CheckSettings, LaneStore, MANIFEST_PAUSES, PUBLISH_INTERVAL, PullSettings, PushContext,
    PushSettings, RunProblem, RunProgress, RunReport, RunSettings, accept_unmounted, check, pull,
    push, until_stopped,
};

/// A run. It resolves to its report.
type TaskRun = Pin<Box<dyn Future<Output = RunReport> + Send>>;

/// What every run gets when it begins.
struct RunStart {
    /// Id of its task.
    id: String,
    began: Timestamp,
    deadline: Option<Timestamp>,
    /// Former mount points that it accepts as they are.
    accept_unmounted: Vec<PathBuf>,
    progress: RunProgress,
    /// Becomes true when the run has to stop.
    stop: watch::Receiver<bool>,
}

impl Daemon {
    /// Begins a run of every task that is due.
    pub(crate) fn start_due_runs(&mut self) {
        let now = self.now();
        for index in 0..self.entries.len() {
            let entry = &self.entries[index];
            if !entry.is_removed && entry.schedule.is_due(now.timestamp()) {
                self.begin_run(index, &now);
            }
        }
    }

    fn begin_run(&mut self, index: usize, now: &Zoned) {
        let entry = &mut self.entries[index];
        let deadline = entry.schedule.begin(now);
        tracing::info!(
            task = %entry.id,
            deadline = deadline.map(|deadline| deadline.to_string()),
            "begins"
        );
        let progress = RunProgress::default();
        let (stop, stopped) = watch::channel(false);
        entry.active = Some(ActiveRun {
            progress: progress.clone(),
            place: entry.place.clone(),
            stop,
        });
        let start = RunStart {
            id: entry.id.clone(),
            began: now.timestamp(),
            deadline,
            accept_unmounted: std::mem::take(&mut entry.accept_unmounted),
            progress,
            stop: stopped,
        };
        // The run does not wait for the record.
        drop(self.record_state(index));
        let id = start.id.clone();
        let run = self.run(&self.entries[index], start);
        self.running.spawn(async move {
            // In a tokio task of its own, so that a panic in it ends neither the daemon nor
            // the accounts of its task.
            let ended = tokio::spawn(run).await;
            let lost = |_| RunReport::of_problem(RunProblem::Lost);
            (id, ended.unwrap_or_else(lost))
        });
    }

    /// Takes note of a run that has ended.
    pub(crate) fn end_run(&mut self, id: &str, report: &RunReport) {
        let now = self.now();
        let Some(index) = self.entries.iter().position(|entry| entry.id == id) else {
            return;
        };
        let entry = &mut self.entries[index];
        let active = entry.active.take();
        let moved = active
            .as_ref()
            .map(|active| active.progress.totals().bytes_moved);
        entry.schedule.end(report, moved.unwrap_or_default(), &now);
        if let TaskWork::Check { reads_all, .. } = &mut entry.work {
            *reads_all = false;
        }
        // A reload may have given the job another place during the run.
        let place = active.and_then(|active| active.place);
        let is_elsewhere = place != entry.place;
        if is_elsewhere {
            entry.schedule.succeeded = None;
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
                let hint = Some(problem.hint()).filter(|hint| !hint.is_empty());
                tracing::warn!(task = id, %problem, hint, "ended early");
            }
        }
        match (&entry.work, place) {
            (TaskWork::Job(_), Some(place)) if report.is_clean() && !is_elsewhere => {
                let at = now.timestamp().as_second();
                if let Err(error) = self.writer.note_success(id, place, at) {
                    tracing::error!(%error, "the success of a job cannot be recorded");
                }
            }
            (TaskWork::AdHoc(number, _), _) if entry.schedule.is_over() => {
                drop(self.writer.set_ad_hoc_task(*number, None));
            }
            (TaskWork::Job(_) | TaskWork::Check { .. } | TaskWork::AdHoc(..), _) => {}
        }
        if let Some(damaged) = report.damaged.clone().filter(|_| !is_elsewhere) {
            let checks = check_id(id.split(':').next().unwrap_or(id));
            let checks = self.entries.iter_mut().find(|entry| entry.id == checks);
            if let Some(checks) = checks {
                checks.damaged = damaged;
            }
        }
        // A run that the end of the agent stops continues at the next start.
        if !(self.is_stopping && report.problem == Some(RunProblem::Stopped)) {
            drop(self.record_state(index));
        }
        if self.entries[index].is_removed {
            self.forget(index);
        }
    }

    /// A run of a task, unless it would touch what belongs to the agent itself.
    fn run(&self, entry: &TaskEntry, start: RunStart) -> TaskRun {
        let (work, config) = (entry.work.clone(), Arc::clone(&self.config));
        let (reserved, confinement) = (self.reserved(), Arc::clone(&self.confinement));
        let checking = blocking(move || {
            let job = match &work {
                TaskWork::Job(job) => job,
                // A check writes nothing.
                TaskWork::Check { .. } => return Ok(()),
                TaskWork::AdHoc(_, task) => return task.work.check(&reserved, &confinement),
            };
            match &job.course {
                Course::Push { from, to } => {
                    reserved.check_source(from)?;
                    if let Some(store) = config.local_path(&to.store) {
                        confinement.check(store)?;
                    }
                }
                Course::Pull { to, .. } => {
                    reserved.check_tree(to)?;
                    confinement.check(to)?;
                }
            }
            Ok(())
        });
        let run = self.unchecked_run(entry, start);
        Box::pin(async move {
            match checking.await {
                Ok(Ok(())) => run.await,
                Ok(Err(problem)) => RunReport::of_problem(problem),
                Err(lost) => RunReport::of_problem(lost.into()),
            }
        })
    }

    /// What on this machine belongs to the agent.
    pub(crate) fn reserved(&self) -> ReservedPlaces {
        ReservedPlaces::of(&self.config, |name| std::env::var_os(name))
    }

    fn unchecked_run(&self, entry: &TaskEntry, start: RunStart) -> TaskRun {
        let deadline = start.deadline;
        match &entry.work {
            TaskWork::Job(job) => match &job.course {
                Course::Push { from, to } => {
                    let settings = PushSettings {
                        run: self.run_settings(job, LaneDirection::Push, job.service(deadline)),
                        source: from.clone(),
                        address: store_address(&self.config, &to.store),
                        one_file_system: job.one_file_system,
                        verify: job.verify,
                        identity: self.identity,
                        publish_interval: PUBLISH_INTERVAL,
                    };
                    self.push(&to.store, settings, start)
                }
                Course::Pull { from, to } => {
                    let settings = PullSettings {
                        run: self.run_settings(job, LaneDirection::Pull, job.service(deadline)),
                        to: to.clone(),
                        setuid: job.setuid,
                        was_filled: entry.schedule.succeeded.is_some(),
                        pusher: self.pusher(from),
                        pauses: MANIFEST_PAUSES.to_vec(),
                    };
                    self.pull(&from.store, settings, start)
                }
            },
            TaskWork::Check { job, reads_all } => {
                let to = job.course.place();
                let settings = CheckSettings {
                    run: self.run_settings(job, LaneDirection::Pull, Service::Scavenge),
                    address: store_address(&self.config, &to.store),
                    bytes_per_day: (!reads_all).then_some(job.check_bytes_per_day),
                    now: start.began,
                };
                self.check(&job.name, &to.store, settings, start)
            }
            TaskWork::AdHoc(_, task) => match &task.work {
                AdHocWork::Restore { job, to, setuid } => self.restore(job, to, *setuid, start),
                AdHocWork::Download {
                    url,
                    mirrors,
                    checksum,
                    to,
                } => {
                    // Without a deadline, it is one of those that keep arriving.
                    let service = deadline.map_or(Service::Stream, Service::ByDeadline);
                    let settings = Download {
                        url: url.clone(),
                        mirrors: mirrors.clone(),
                        checksum: checksum.as_ref().and_then(|text| text.parse().ok()),
                        to: to.clone(),
                        service,
                        seed: self.identity,
                        lane: self.pull.lane.clone(),
                        client: Arc::clone(self.downloads.of(service)),
                        rate_limits: self.rate_limits(LaneDirection::Pull, None),
                    };
                    let agent = self.config.agent.clone();
                    let RunStart { progress, stop, .. } = start;
                    Box::pin(async move { download(settings, &agent, progress, stop).await })
                }
            },
        }
    }

    fn run_settings(
        &self,
        job: &JobConfig,
        direction: LaneDirection,
        service: Service,
    ) -> RunSettings {
        let key_file = || self.config.agent.key_file(&job.name);
        RunSettings {
            prefix: job.course.place().path.clone(),
            key_file: job.authenticate.then(key_file),
            filter: job.filter.clone(),
            detect: job.detect,
            delete: job.delete,
            service,
            weight: job.min_weight,
            rate_limits: self.rate_limits(direction, job.limit_rate),
            connections: self.config.agent.connections,
            seed: self.identity,
        }
    }

    /// The rate limit of a job, byte/s, and that of its lane.
    fn rate_limits(&self, direction: LaneDirection, job: Option<u64>) -> Vec<Arc<RateLimit>> {
        let job = job.map(RateLimit::new).map(Arc::new);
        job.into_iter()
            .chain(self.lane(direction).rate_limit.clone())
            .collect()
    }

    fn push(&self, store: &str, settings: PushSettings, start: RunStart) -> TaskRun {
        let service = settings.run.service;
        let opening = self.open_place(&self.push, store, service, start.stop.clone());
        let (state, writer) = (self.state.clone(), self.writer.clone());
        let local = self.config.local_path(store).map(Path::to_owned);
        Box::pin(async move {
            let (id, source) = (start.id, settings.source.clone());
            // First, since the store may not be there.
            let accepted = &start.accept_unmounted;
            let accepting =
                accept_unmounted(state, &writer, &id, &source, local.as_deref(), accepted);
            if let Err(problem) = accepting.await {
                return RunReport::of_problem(problem);
            }
            let place = match opening.await {
                Ok(place) => place,
                Err(problem) => return RunReport::of_problem(problem),
            };
            if let Some(store) = local {
                let noting = note_mount(place.state.clone(), &writer, store);
                if let Err(problem) = until_stopped(noting, start.stop.clone()).await {
                    return RunReport::of_problem(problem);
                }
            }
            push(place, &id, settings, start.progress, start.stop).await
        })
    }

    fn check(&self, job: &str, store: &str, settings: CheckSettings, start: RunStart) -> TaskRun {
        let service = settings.run.service;
        let opening = self.open_place(&self.pull, store, service, start.stop.clone());
        let job = job.to_owned();
        Box::pin(async move {
            match opening.await {
                Ok(place) => check(place, &job, settings, start.progress, start.stop).await,
                Err(problem) => RunReport::of_problem(problem),
            }
        })
    }

    fn pull(&self, store: &str, settings: PullSettings, start: RunStart) -> TaskRun {
        let service = settings.run.service;
        let opening = self.open_store(&self.pull, store, service, start.stop.clone());
        Box::pin(async move {
            match opening.await {
                Ok(origin) => pull(origin, settings, start.progress, start.stop).await,
                Err(problem) => RunReport::of_problem(problem),
            }
        })
    }

    fn restore(&self, job: &str, to: &Path, setuid: bool, start: RunStart) -> TaskRun {
        let Some(job) = self.config.jobs.iter().find(|known| known.name == job) else {
            let problem = RunProblem::NoJob(job.to_owned());
            return Box::pin(async { RunReport::of_problem(problem) });
        };
        let service = Service::of_batch(start.deadline);
        let settings = PullSettings {
            run: RunSettings {
                filter: EntryFilter::everything(),
                delete: Delete::Never,
                ..self.run_settings(job, LaneDirection::Pull, service)
            },
            to: to.to_owned(),
            setuid,
            was_filled: false,
            pusher: self.pusher(job.course.place()),
            pauses: MANIFEST_PAUSES.to_vec(),
        };
        self.pull(&job.course.place().store, settings, start)
    }

    /// The job of this agent that pushes to this place, if there is one, and the state.
    fn pusher(&self, place: &StoreDirectory) -> Option<(StateDatabase, String)> {
        let mut jobs = self.config.jobs.iter();
        let job = jobs.find(|job| matches!(&job.course, Course::Push { to, .. } if to == place))?;
        Some((self.state.clone(), job.name.clone()))
    }

    /// Opens a store, for a run that also needs the state.
    fn open_place(
        &self,
        lane: &Arc<AgentLane>,
        store: &str,
        service: Service,
        stop: watch::Receiver<bool>,
    ) -> impl Future<Output = Result<PushContext, RunProblem>> + Send + use<> {
        let opening = self.open_store(lane, store, service, stop);
        let (state, writer) = (self.state.clone(), self.writer.clone());
        async move {
            let store = opening.await?;
            Ok(PushContext {
                state,
                writer,
                store,
            })
        }
    }

    /// Opens a store with its present credentials.
    fn open_store(
        &self,
        lane: &Arc<AgentLane>,
        store: &str,
        service: Service,
        stop: watch::Receiver<bool>,
    ) -> impl Future<Output = Result<LaneStore, RunProblem>> + Send + use<> {
        let (lane, config) = (Arc::clone(lane), Arc::clone(&self.config));
        let (state, store) = (self.state.clone(), store.to_owned());
        // It reads files, and a disk may not answer.
        let opening = blocking(move || {
            check_mounted(&state, &config, &store)?;
            Ok(lane.open_store(&config, &store, service)?)
        });
        until_stopped(async move { opening.await? }, stop)
    }
}

/// Checks the stores of the jobs that push, or of one of them, and reads all contents.
/// Returns how that ended for each job. It cannot run beside the daemon, which holds the state
/// file open. `fresh_identity` becomes the identity of the agent if the state file is new.
///
/// # Errors
/// [`StartError`].
pub async fn check_stores(
    config: Config,
    fresh_identity: u64,
    job: Option<&str>,
) -> Result<Vec<(String, LastRun)>, StartError> {
    let mut daemon = Daemon::open(config, Confinement::default(), fresh_identity)?;
    let began = daemon.now().timestamp();
    let mut checked = Vec::new();
    for mut entry in std::mem::take(&mut daemon.entries) {
        let name = match &mut entry.work {
            TaskWork::Check { job, reads_all } => {
                *reads_all = true;
                job.name.clone()
            }
            TaskWork::Job(_) | TaskWork::AdHoc(..) => continue,
        };
        if job.is_some_and(|job| job != name) {
            continue;
        }
        let (_running, stop) = watch::channel(false);
        let start = RunStart {
            id: name.clone(),
            began,
            deadline: None,
            accept_unmounted: Vec::new(),
            progress: RunProgress::default(),
            stop,
        };
        let report = daemon.run(&entry, start).await;
        let ended = daemon.now().timestamp();
        checked.push((name, last_run(&report, began, ended, None)));
    }
    Ok(checked)
}

/// Checks that the disk of a local store is mounted, as it was when a job of this agent
/// pushed to it. Blocking.
///
/// # Errors
/// [`RunProblem::Unmounted`], or the state cannot be read.
pub(crate) fn check_mounted(
    state: &StateDatabase,
    config: &Config,
    store: &str,
) -> Result<(), RunProblem> {
    // Only a job that pushes can accept that the disk stays away.
    let is_pushed_to = config.is_pushed_to(store);
    let Some(store) = config.local_path(store).filter(|_| is_pushed_to) else {
        return Ok(());
    };
    match state.store_mount(store)? {
        Some(mount) if !is_mounted(&mount) => Err(RunProblem::Unmounted(mount)),
        Some(_) | None => Ok(()),
    }
}

/// Remembers where the disk of a local store is mounted, before anything is written to it.
/// Only a disk within the one that is known takes its place.
async fn note_mount(
    state: StateDatabase,
    writer: &StateWriter,
    store: PathBuf,
) -> Result<(), RunProblem> {
    let looked = store.clone();
    let mount = blocking(move || {
        let known = state.store_mount(&looked)?;
        let is_new = |mount: &PathBuf| match &known {
            Some(known) => mount != known && mount.starts_with(known),
            None => true,
        };
        Ok::<_, StateError>(mount_point(&looked).filter(is_new))
    })
    .await??;
    match mount {
        Some(mount) => Ok(writer.set_store_mount(&store, Some(&mount)).done().await?),
        None => Ok(()),
    }
}
