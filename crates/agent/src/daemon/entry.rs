//! Something that the daemon has to do, with its book: a job, or what was added.

use jiff::{Timestamp, Zoned};
use tokio::sync::watch;

use super::extra::{self, Extra, What};
use super::prediction::Prediction;
use super::standing;
use super::task::Task;
use crate::config::{Course, Job};
use crate::filter::Filter;
use crate::state::PlaceRecord;
use crate::status::{Direction, LaneStatus, Phase, TaskKind, TaskStatus, Totals};
use crate::sync::{Progress, ProgressTotals};

/// Something to do, and its book.
pub(super) struct Entry {
    pub(super) id: String,
    pub(super) work: Work,
    /// Where a job writes.
    pub(super) place: Option<PlaceRecord>,
    pub(super) task: Task,
    pub(super) active: Option<Active>,
    /// What of it is remembered.
    pub(super) standing: standing::Standing,
    /// Whether it is to be forgotten when its run has ended.
    pub(super) leaves: bool,
}

/// What there is to do.
pub(super) enum Work {
    Job(Box<(Job, Filter)>),
    Extra(u64, Extra),
}

/// What can be done to a run under way.
pub(super) struct Active {
    pub(super) ledger: Progress,
    /// Where it writes: its job may have got another place meanwhile.
    pub(super) place: Option<PlaceRecord>,
    pub(super) stop: watch::Sender<bool>,
}

impl Entry {
    pub(super) fn extra(number: u64, extra: Extra, now: &Zoned) -> Self {
        Self {
            id: extra::name(number),
            task: Task::once(extra.deadline, extra.is_paused, now),
            work: Work::Extra(number, extra),
            place: None,
            active: None,
            standing: standing::Standing::default(),
            leaves: false,
        }
    }

    /// Number and end of something that was added and is through.
    pub(super) fn is_through(&self) -> Option<(u64, Timestamp)> {
        match (&self.work, &self.task.last) {
            (Work::Extra(number, _), Some(last)) if self.task.is_over() => {
                Some((*number, last.ended))
            }
            _ => None,
        }
    }

    /// What it is, which way it goes, from where and to where.
    fn about(&self) -> (TaskKind, Direction, String, String) {
        match &self.work {
            Work::Job(job) => match &job.0.course {
                Course::Push { from, to } => {
                    let from = from.display().to_string();
                    (TaskKind::Job, Direction::Push, from, to.to_string())
                }
                Course::Pull { from, to } => {
                    let to = to.display().to_string();
                    (TaskKind::Job, Direction::Pull, from.to_string(), to)
                }
            },
            Work::Extra(_, extra) => match &extra.what {
                What::Download { url, to } => {
                    let from = fairbat::http::without_credentials(url).to_string();
                    let to = to.display().to_string();
                    (TaskKind::Download, Direction::Pull, from, to)
                }
                What::Restore { job, to } => {
                    let to = to.display().to_string();
                    (TaskKind::Restore, Direction::Pull, job.clone(), to)
                }
            },
        }
    }

    pub(super) fn status(&self, lanes: &[LaneStatus], now: Timestamp) -> TaskStatus {
        let (kind, direction, from, to) = self.about();
        let standing = self
            .active
            .as_ref()
            .map(|active| active.ledger.standing())
            .unwrap_or_default();
        let is_scanning = self.active.is_some() && !standing.is_planned;
        let task = &self.task;
        let rate = lanes
            .iter()
            .find(|lane| lane.direction == direction)
            .and_then(|lane| lane.foreseen);
        let foretold = self.foretold(&standing, rate, now);
        let late_s = match (&task.last, task.run) {
            (_, Some(_)) => foretold.late_s,
            (Some(last), None) => task.deadline.map(|deadline| {
                let late = last.ended.duration_since(deadline);
                late.as_secs_f64().max(0.0)
            }),
            (None, None) => None,
        };
        TaskStatus {
            id: self.id.clone(),
            kind,
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
            predicted: foretold.end,
            late_s,
            files: standing.files,
            files_done: standing.files_done,
            bytes: standing.bytes,
            bytes_done: standing.bytes_done,
            last: task.last.clone(),
            succeeded: task.succeeded,
            totals: with(task.totals, &standing),
        }
    }

    /// What is foretold of the run under way at this rate of the lane, byte/s.
    fn foretold(&self, standing: &ProgressTotals, rate: Option<f64>, now: Timestamp) -> Prediction {
        let Some(active) = &self.active else {
            return Prediction::default();
        };
        let is_known = standing.is_planned && !standing.is_open_ended;
        let outlook = active.ledger.outlook().zip(rate).filter(|_| is_known);
        let (left, late) = match outlook {
            Some((outlook, rate)) => (outlook.finish(rate), outlook.lateness(rate)),
            None => (None, None),
        };
        Prediction::new(now, self.task.deadline, left, late)
    }
}

/// What was counted, and what is counted of the run under way.
fn with(totals: Totals, standing: &ProgressTotals) -> Totals {
    let mut retries = totals.retries;
    retries.add(&standing.retries);
    Totals {
        bytes: totals.bytes + standing.bytes_moved,
        chunks: totals.chunks + standing.requests,
        retries,
        ..totals
    }
}
