//! One task of the daemon: what it does, its schedule, and its run under way.

use std::path::PathBuf;
use std::time::Duration;

use fairbat::machine::LaneDirection;
use jiff::{Timestamp, Zoned};
use tokio::sync::watch;

use super::adhoc::{self, AdHocTask, AdHocWork};
use super::schedule::{TaskSchedule, TaskState};
use crate::config::{Config, Course, Due, JobConfig, StoreConfig, Timing};
use crate::state::PlaceRecord;
use crate::status::{
    CheckStatus, LaneStatus, RetryReason, TaskKind, TaskPhase, TaskStatus, Totals,
};
use crate::sync::{DamagedFiles, ProgressTotals, RunProgress};

/// The store of a [`PlaceRecord`] for directories of this machine, which pulls fill.
const THIS_MACHINE: &str = "this machine";

/// A job or an ad-hoc task.
pub(crate) struct TaskEntry {
    pub(crate) id: String,
    pub(crate) work: TaskWork,
    /// Where a job writes to.
    pub(crate) place: Option<PlaceRecord>,
    pub(crate) schedule: TaskSchedule,
    pub(crate) active: Option<ActiveRun>,
    /// The state of a job that is recorded, or about to be.
    pub(crate) recorded: TaskState,
    /// Former mount points that the next run accepts as they are.
    pub(crate) accept_unmounted: Vec<PathBuf>,
    /// What the store lacks or has damaged, as far as checks have found.
    pub(crate) damaged: DamagedFiles,
    /// Whether the configuration has no such job any more, or the ad-hoc task was
    /// cancelled. The entry is dropped when the run under way has ended.
    pub(crate) is_removed: bool,
}

/// What a task does.
#[derive(Clone)]
pub(crate) enum TaskWork {
    Job(Box<JobConfig>),
    /// The checks of a job that pushes.
    Check {
        job: Box<JobConfig>,
        /// Whether the next one reads all contents.
        reads_all: bool,
    },
    /// With the number under which it is recorded.
    AdHoc(u64, AdHocTask),
}

/// A run under way.
pub(crate) struct ActiveRun {
    pub(crate) progress: RunProgress,
    /// Where the run writes to. A reload may have changed the place of its job since.
    pub(crate) place: Option<PlaceRecord>,
    pub(crate) stop: watch::Sender<bool>,
}

/// A job of the configuration that is ready to run.
pub(crate) struct PreparedJob {
    pub(crate) job: JobConfig,
    /// Whether this is about the checks of the job.
    pub(crate) is_check: bool,
    /// What its store lacks or has damaged. Only read for a job that is new.
    pub(crate) damaged: DamagedFiles,
    /// Where it writes to.
    pub(crate) place: PlaceRecord,
    /// When it last succeeded at that place. Only read for a job that is new.
    pub(crate) succeeded: Option<Timestamp>,
    /// Its recorded state.
    pub(crate) recorded: TaskState,
}

impl PreparedJob {
    /// The id of its task.
    pub(crate) fn id(&self) -> String {
        match self.is_check {
            true => check_id(&self.job.name),
            false => self.job.name.clone(),
        }
    }

    /// When it runs, and its deadline.
    pub(crate) fn timing(&self) -> (Timing, Option<Due>) {
        match self.is_check {
            true => (self.job.check.clone(), None),
            false => (self.job.timing.clone(), self.job.due),
        }
    }

    /// What its task does.
    pub(crate) fn work(&self) -> TaskWork {
        let job = Box::new(self.job.clone());
        match self.is_check {
            true => TaskWork::Check {
                job,
                reads_all: false,
            },
            false => TaskWork::Job(job),
        }
    }
}

/// The id of the task that checks a job. No job can have this name.
pub(crate) fn check_id(job: &str) -> String {
    format!("{job}:check")
}

impl TaskEntry {
    /// A job that was not listed before.
    pub(crate) fn job(prepared: PreparedJob, now: &Zoned) -> Self {
        let id = prepared.id();
        let (timing, due) = prepared.timing();
        let work = prepared.work();
        let PreparedJob {
            damaged,
            place,
            succeeded,
            recorded,
            ..
        } = prepared;
        let mut schedule = TaskSchedule::new(timing, due, succeeded, now);
        schedule.restore(&recorded, now);
        Self {
            id,
            schedule,
            work,
            damaged,
            place: Some(place),
            active: None,
            recorded,
            accept_unmounted: Vec::new(),
            is_removed: false,
        }
    }

    /// An ad-hoc task.
    pub(crate) fn adhoc(number: u64, task: AdHocTask, now: &Zoned) -> Self {
        Self {
            id: adhoc::id(number),
            schedule: TaskSchedule::once(task.deadline, task.is_paused, now),
            work: TaskWork::AdHoc(number, task),
            damaged: DamagedFiles::default(),
            place: None,
            active: None,
            recorded: TaskState::default(),
            accept_unmounted: Vec::new(),
            is_removed: false,
        }
    }

    /// Number and end of an ad-hoc task that has ended for good.
    pub(crate) fn ended_adhoc(&self) -> Option<(u64, Timestamp)> {
        match (&self.work, &self.schedule.last) {
            (TaskWork::AdHoc(number, _), Some(last)) if self.schedule.is_over() => {
                Some((*number, last.ended))
            }
            _ => None,
        }
    }

    /// Asks the run under way to stop, if there is one.
    pub(crate) fn stop_run(&self) {
        if let Some(active) = &self.active {
            let _ = active.stop.send(true);
        }
    }

    /// Kind, direction, source and destination, without credentials.
    fn description(&self) -> (TaskKind, LaneDirection, String, String) {
        match &self.work {
            TaskWork::Job(job) | TaskWork::Check { job, .. } => match &job.course {
                Course::Push { from, to } => {
                    let from = from.display().to_string();
                    (TaskKind::Job, LaneDirection::Push, from, to.to_string())
                }
                Course::Pull { from, to } => {
                    let to = to.display().to_string();
                    (TaskKind::Job, LaneDirection::Pull, from.to_string(), to)
                }
            },
            TaskWork::AdHoc(_, task) => match &task.work {
                AdHocWork::Download { url, to, .. } => {
                    let from = fairbat::http::without_credentials(url).to_string();
                    let to = to.display().to_string();
                    (TaskKind::Download, LaneDirection::Pull, from, to)
                }
                AdHocWork::Restore { job, to, .. } => {
                    let to = to.display().to_string();
                    (TaskKind::Restore, LaneDirection::Pull, job.clone(), to)
                }
            },
        }
    }

    pub(crate) fn status(&self, lanes: &[LaneStatus], now: Timestamp) -> TaskStatus {
        let (kind, direction, from, to) = self.description();
        let progress = self
            .active
            .as_ref()
            .map(|active| active.progress.totals())
            .unwrap_or_default();
        let is_scanning = self.active.is_some() && !progress.is_planned;
        let schedule = &self.schedule;
        let lane = lanes.iter().find(|lane| lane.direction == direction);
        let rate = lane.and_then(|lane| lane.foreseen);
        let wait = self.active.as_ref().and_then(ActiveRun::wait);
        let prediction = self.predict(&progress, rate, wait, now);
        let late_s = match (&schedule.last, schedule.run) {
            (_, Some(_)) => prediction.late_s,
            (Some(last), None) => schedule.deadline.map(|deadline| {
                let late = last.ended.duration_since(deadline);
                late.as_secs_f64().max(0.0)
            }),
            (None, None) => None,
        };
        let last_began = schedule.last.as_ref().map(|last| last.began);
        TaskStatus {
            id: self.id.clone(),
            kind,
            direction,
            from,
            to,
            phase: match wait {
                Some(_) => TaskPhase::Retrying,
                None => schedule.phase(is_scanning),
            },
            next: match wait {
                Some(wait) => now.checked_add(wait).ok(),
                None => schedule
                    .next
                    .filter(|_| schedule.phase(false) != TaskPhase::Paused),
            },
            began: schedule.run.map(|run| run.began).or(last_began),
            deadline: schedule.deadline,
            predicted: prediction.end,
            late_s,
            files: progress.files,
            files_done: progress.files_done,
            bytes: progress.bytes,
            bytes_done: progress.bytes_done,
            retry: self.active.as_ref().and_then(ActiveRun::retry),
            last: schedule.last.clone(),
            succeeded: schedule.succeeded,
            totals: totals_with_run(schedule.totals, &progress),
            check: None,
        }
    }

    /// Its counts, with those of the run under way.
    pub(crate) fn totals(&self) -> Totals {
        let progress = self.active.as_ref().map(|active| active.progress.totals());
        totals_with_run(self.schedule.totals, &progress.unwrap_or_default())
    }

    /// The status of the checks of a job.
    pub(crate) fn check_status(&self) -> CheckStatus {
        let totals = self.totals();
        CheckStatus {
            running: self.active.is_some(),
            next: self.schedule.next,
            last: self.schedule.last.clone(),
            completed: self.damaged.checked,
            damaged: self.damaged.count,
            damaged_files: self.damaged.first.clone(),
            bytes: totals.bytes,
            chunks: totals.chunks,
        }
    }

    /// Predicts the end of the run under way when its lane moves `rate` byte/s, after it has
    /// waited for so long.
    fn predict(
        &self,
        progress: &ProgressTotals,
        rate: Option<f64>,
        wait: Option<Duration>,
        now: Timestamp,
    ) -> Prediction {
        let Some(active) = &self.active else {
            return Prediction::default();
        };
        let is_size_known = progress.is_planned && !progress.is_open_ended;
        let forecast = active
            .progress
            .forecast()
            .zip(rate)
            .filter(|_| is_size_known);
        let (left, late) = match forecast {
            Some((forecast, rate)) => (forecast.finish(rate), forecast.lateness(rate)),
            None => (None, None),
        };
        let resumes = now.saturating_add(wait.unwrap_or_default());
        let resumes = resumes.unwrap_or(now);
        Prediction::new(resumes, self.schedule.deadline, left, late)
    }
}

impl ActiveRun {
    /// How long the run still waits for its next try; `None` if it does not wait.
    fn wait(&self) -> Option<Duration> {
        self.progress.forecast()?.wait()
    }

    /// Why it tries a request again, if it does.
    fn retry(&self) -> Option<RetryReason> {
        let why = self.progress.retry()?;
        Some(RetryReason {
            problem: why.to_string(),
            summary: Some(why.kind.summary().to_owned()),
            hint: Some(why.hint).filter(|hint| !hint.is_empty()),
        })
    }

    /// Ends its wait. Returns whether it waited.
    pub(crate) fn wake(&self) -> bool {
        let forecast = self.progress.forecast();
        forecast.is_some_and(|forecast| forecast.wake())
    }
}

/// The totals of a task with the counts of its run under way.
fn totals_with_run(mut totals: Totals, progress: &ProgressTotals) -> Totals {
    totals.bytes += progress.bytes_moved;
    totals.chunks += progress.requests;
    totals.retries += progress.retries;
    totals
}

/// Where a job with this course writes to, as the state file records it. The record
/// holds addresses, so it does not depend on the names in the configuration.
pub(crate) fn place(config: &Config, course: &Course) -> PlaceRecord {
    match course {
        Course::Push { to, .. } => PlaceRecord {
            store: store_address(config, &to.store),
            path: to.path.clone(),
        },
        Course::Pull { to, .. } => PlaceRecord {
            store: THIS_MACHINE.to_owned(),
            path: to.display().to_string(),
        },
    }
}

/// The address of the store with this name.
pub(crate) fn store_address(config: &Config, name: &str) -> String {
    let store = config.stores.get(name);
    store.map(StoreConfig::address).unwrap_or_default()
}

/// When a run under way will end, by the wall clock.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Prediction {
    /// `None` when nothing moves or the size is unknown.
    end: Option<Timestamp>,
    /// How late that is, s. 0 when it is in time or not clearly late; `None` without a
    /// deadline or a known end.
    late_s: Option<f64>,
}

impl Prediction {
    /// `now` is when the run goes on, if it waits. `left` is the time to the end by the
    /// forecast of the lane. `late` is the lateness in s, where the forecast is clear about
    /// it.
    fn new(
        now: Timestamp,
        deadline: Option<Timestamp>,
        left: Option<Duration>,
        late: Option<f64>,
    ) -> Self {
        let end = left.and_then(|left| now.checked_add(left).ok());
        let late_s = deadline.and_then(|deadline| {
            let over = now.duration_since(deadline).as_secs_f64().max(0.0);
            match end {
                Some(_) => Some(late.unwrap_or(0.0).max(over)),
                // Without a forecast this is the least lateness possible.
                None => (over > 0.0).then_some(over),
            }
        });
        Self { end, late_s }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn at(time: &str) -> Timestamp {
        format!("2026-03-02T{time}Z").parse().unwrap()
    }

    #[test]
    fn the_end_is_as_far_off_as_the_lane_has_it() {
        let foretold = Prediction::new(at("01:00:00"), None, Some(MINUTE), None);
        assert_eq!(foretold.end, Some(at("01:01:00")));
        assert_eq!(foretold.late_s, None, "there is no deadline");
    }

    #[test]
    fn late_is_only_what_is_clear() {
        let late = |late| {
            let deadline = Some(at("01:00:59"));
            Prediction::new(at("01:00:00"), deadline, Some(MINUTE), late).late_s
        };
        assert_eq!(late(None), Some(0.0), "a second may be chance");
        assert_eq!(late(Some(30.0)), Some(30.0));
    }

    #[test]
    fn when_nothing_moves_nothing_is_known_but_what_is_over() {
        let stuck = |deadline| Prediction::new(at("01:00:00"), Some(at(deadline)), None, None);
        assert_eq!(stuck("02:00:00"), Prediction::default());
        assert_eq!(stuck("00:59:50").late_s, Some(10.0));
        assert_eq!(stuck("00:59:50").end, None);
    }

    #[test]
    fn an_end_beyond_all_calendars_is_none() {
        let never = Some(Duration::MAX);
        let foretold = Prediction::new(at("01:00:00"), Some(at("02:00:00")), never, None);
        assert_eq!(foretold, Prediction::default());
    }
}
