//! The schedule of one task: when it runs next, and how its runs ended. Pure; the wall
//! clock is an argument.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp, Zoned};
use serde::{Deserialize, Serialize};

use super::last_run::{last_run, outcomes};
use crate::config::{Due, Timing};
use crate::status::{LastRun, TaskPhase, Totals};
use crate::sync::{EntryFailure, RunProblem, RunReport};

/// Pause before the first new try of a failed run. Each further failure in a row
/// doubles it.
const MIN_RETRY_PAUSE: Duration = Duration::from_secs(60);

/// Upper limit of that pause.
const MAX_RETRY_PAUSE: Duration = Duration::from_secs(3600);

/// When a task runs, and the results of its runs.
#[derive(Debug, Default)]
pub(crate) struct TaskSchedule {
    timing: Timing,
    due: Option<Due>,
    runs_once: bool,
    /// When it runs next.
    pub(crate) next: Option<Timestamp>,
    /// The next moment that the timing asks for. `next` differs from it after a
    /// command, and when a stopped or failed run continues.
    regular: Option<Timestamp>,
    /// The last moment of the calendar for which it has run.
    served: Option<Timestamp>,
    /// Whether the next run continues the last one and keeps its deadline, even an
    /// expired one, until the timing asks for a new run.
    continues: bool,
    /// When the run under way, or the last run, first began. A run that continues
    /// keeps this moment.
    pub(crate) began: Option<Timestamp>,
    pub(crate) is_paused: bool,
    pub(crate) run: Option<CurrentRun>,
    /// Failed runs in a row.
    failures: u32,
    pub(crate) last: Option<LastRun>,
    pub(crate) succeeded: Option<Timestamp>,
    pub(crate) totals: Totals,
    /// The deadline of the run under way, of the run to be tried again, or else of the
    /// last run.
    pub(crate) deadline: Option<Timestamp>,
}

/// A run under way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CurrentRun {
    pub(crate) began: Timestamp,
    /// Whether it was paused. Then it continues later, even if the task is resumed
    /// before the run has ended.
    continues_later: bool,
}

impl TaskSchedule {
    /// A schedule that starts now. `succeeded` is the last success of the task.
    pub(crate) fn new(
        timing: Timing,
        due: Option<Due>,
        succeeded: Option<Timestamp>,
        now: &Zoned,
    ) -> Self {
        let mut schedule = Self {
            timing,
            due,
            succeeded,
            ..Self::default()
        };
        schedule.plan(succeeded, now);
        // A moment of the calendar may have passed since the last success, while the
        // machine or the agent was off.
        let missed = succeeded.and_then(|succeeded| {
            let since = succeeded.to_zoned(now.time_zone().clone());
            schedule.timing.next_by_calendar(&since)
        });
        if missed.is_some_and(|missed| missed <= *now) {
            schedule.next = Some(now.timestamp());
        }
        schedule
    }

    /// A schedule with one run, now.
    pub(crate) fn once(deadline: Option<Timestamp>, is_paused: bool, now: &Zoned) -> Self {
        let mut schedule = Self::new(Timing::ByHand, None, None, now);
        schedule.next = Some(now.timestamp());
        schedule.deadline = deadline;
        schedule.is_paused = is_paused;
        schedule.runs_once = true;
        schedule
    }

    /// Applies the recorded state to a new schedule. A run that the end of the agent
    /// interrupted continues now.
    pub(crate) fn restore(&mut self, state: &TaskState, now: &Zoned) {
        self.is_paused = state.is_paused;
        self.last.clone_from(&state.last);
        if !state.is_unfinished {
            return;
        }
        let present = now.timestamp();
        // A beginning in the future comes from a wrong clock.
        let began = state.began.unwrap_or(present).min(present);
        // The next regular moment may have passed while the agent was off.
        self.regular = match &self.timing {
            Timing::Calendar(_) => {
                let began = began.to_zoned(now.time_zone().clone());
                let next = self.timing.next_by_calendar(&began);
                next.map(|next| next.timestamp())
            }
            Timing::Every(every) => began.checked_add(*every).ok(),
            Timing::ByHand => None,
        };
        self.next = Some(present);
        self.continues = true;
        self.began = Some(began);
        self.deadline = state.deadline;
    }

    /// Plans the next regular run. `began` is when the last run first began.
    fn plan(&mut self, began: Option<Timestamp>, now: &Zoned) {
        let present = now.timestamp();
        self.regular = match &self.timing {
            Timing::Calendar(_) => self.next_unserved(now),
            Timing::Every(every) => {
                let after = |moment: Timestamp| moment.checked_add(*every).ok();
                // A beginning in the future comes from a wrong clock.
                let next = began.map(|began| began.min(present)).and_then(after);
                Some(next.unwrap_or(present).max(present))
            }
            Timing::ByHand => None,
        };
        self.next = self.regular;
    }

    /// The next moment of the calendar for which it has not run.
    fn next_unserved(&self, now: &Zoned) -> Option<Timestamp> {
        let next = self.timing.next_by_calendar(now)?;
        if Some(next.timestamp()) != self.served {
            return Some(next.timestamp());
        }
        let after = self.timing.next_by_calendar(&next)?;
        Some(after.timestamp())
    }

    /// The next run, if the timing is not the reason for it.
    fn next_irregular(&self) -> Option<Timestamp> {
        self.next.filter(|next| Some(*next) != self.regular)
    }

    /// Adjusts the schedule after the wall clock was set forward by `step`; `now` is
    /// the new time. Pauses and intervals keep their length. A moment of the calendar
    /// that has passed by the new time starts a run; otherwise the next moment after
    /// `now` does.
    pub(crate) fn clock_was_set(&mut self, step: SignedDuration, now: &Zoned) {
        let moved = |moment: Timestamp| moment.saturating_add(step).unwrap_or(moment);
        self.began = self.began.map(moved);
        if let Some(run) = &mut self.run {
            run.began = moved(run.began);
            return;
        }
        let irregular = self.next_irregular().map(moved);
        self.regular = match &self.timing {
            Timing::Calendar(_) => match self.regular {
                Some(regular) if regular <= now.timestamp() => Some(regular),
                _ => self.next_unserved(now),
            },
            Timing::Every(_) | Timing::ByHand => self.regular.map(moved),
        };
        self.next = earliest(irregular, self.regular);
    }

    /// Replaces timing and deadlines. A run under way keeps its deadline.
    pub(crate) fn change(&mut self, timing: Timing, due: Option<Due>, now: &Zoned) {
        self.due = due;
        if self.timing == timing {
            return;
        }
        self.timing = timing;
        if self.run.is_none() {
            let irregular = self.next_irregular();
            self.plan(self.began.or(self.succeeded), now);
            self.next = earliest(irregular, self.regular);
        }
    }

    /// Whether a run has to begin now.
    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        !self.is_paused && self.run.is_none() && self.next.is_some_and(|next| next <= now)
    }

    /// Makes the next run due at once.
    pub(crate) fn run_now(&mut self, now: Timestamp) {
        self.next = Some(now);
        // A new run does not inherit a deadline that has expired.
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            self.continues = false;
        }
    }

    /// Holds the task until it is resumed. The caller stops the run under way, which
    /// continues after the pause.
    pub(crate) fn pause(&mut self) {
        self.is_paused = true;
        if let Some(run) = &mut self.run {
            run.continues_later = true;
        }
    }

    /// Drops the rest of the last run. The caller stops the run under way for good. The
    /// task runs again at its next regular time, unless it is paused. Returns whether
    /// there was anything to drop.
    pub(crate) fn cancel(&mut self) -> bool {
        if let Some(run) = &mut self.run {
            run.continues_later = false;
            return true;
        }
        if !self.is_unfinished() {
            return false;
        }
        self.next = self.regular;
        self.continues = false;
        self.failures = 0;
        true
    }

    /// Begins a run. Returns its deadline: the deadline of the run that it continues,
    /// or a new one.
    pub(crate) fn begin(&mut self, now: &Zoned) -> Option<Timestamp> {
        let began = now.timestamp();
        let is_regular = self.regular.is_some_and(|regular| regular <= began);
        let continues = self.continues && !is_regular;
        let has_deadline = continues && self.deadline.is_some();
        if !has_deadline && !self.runs_once {
            self.deadline = self.due.and_then(|due| due.after(now));
        }
        if is_regular {
            self.served = self.regular;
        }
        self.run = Some(CurrentRun {
            began,
            continues_later: false,
        });
        if !continues {
            self.began = Some(began);
        }
        self.continues = false;
        self.next = None;
        self.regular = None;
        self.deadline
    }

    /// Ends the run under way. `bytes` is what it has moved.
    pub(crate) fn end(&mut self, report: &RunReport, bytes: u64, now: &Zoned) {
        let Some(run) = self.run.take() else { return };
        let ended = now.timestamp();
        let is_stopped = report.problem == Some(RunProblem::Stopped);
        let is_ok = report.is_clean();
        let in_time = self.deadline.map(|deadline| ended <= deadline);
        self.count(report, bytes);
        self.last = Some(last_run(report, run.began, ended, in_time));
        self.plan(self.began, now);
        if is_stopped && (run.continues_later || self.runs_once) {
            // It continues as soon as it may, perhaps in another process.
            self.next = Some(ended);
            self.continues = true;
        }
        if !is_stopped {
            self.totals.late += u64::from(in_time == Some(false));
        }
        if is_ok {
            self.failures = 0;
            self.succeeded = Some(ended);
            self.totals.succeeded += 1;
        } else if !is_stopped {
            self.totals.failed += 1;
            self.plan_retry(report, ended);
        }
    }

    /// Plans a new try before the next regular run, if it may help.
    fn plan_retry(&mut self, report: &RunReport, now: Timestamp) {
        let may_help = match &report.problem {
            Some(RunProblem::Store(error)) => error.may_pass(),
            Some(
                RunProblem::EmptySource(_)
                | RunProblem::NotMounted(..)
                | RunProblem::EmptyTarget(_)
                | RunProblem::EmptyOrigin
                | RunProblem::TooManyDeletions { .. }
                | RunProblem::OtherWriter
                | RunProblem::NoJob(_)
                | RunProblem::NotGenuine(_)
                | RunProblem::DamagedKey(_)
                | RunProblem::NeverPushed
                | RunProblem::NothingPushed,
            ) => false,
            Some(_) => true,
            // An unreadable file will still be unreadable in a minute.
            None => report.failures.iter().any(|(_, failure)| match failure {
                EntryFailure::Changed | EntryFailure::Newer => true,
                EntryFailure::Store(error) => error.may_pass(),
                EntryFailure::Unreadable(_)
                | EntryFailure::Unmounted
                | EntryFailure::Unwritable(_)
                | EntryFailure::Missing
                | EntryFailure::Damaged
                | EntryFailure::Lost
                | EntryFailure::Manifests(_) => false,
            }),
        };
        if !may_help {
            self.failures = 0;
            return;
        }
        let pause = MIN_RETRY_PAUSE * 2_u32.pow(self.failures.min(16));
        self.failures = self.failures.saturating_add(1);
        if let Ok(again) = now.checked_add(pause.min(MAX_RETRY_PAUSE)) {
            self.next = earliest(Some(again), self.regular);
            self.continues = true;
        }
    }

    fn count(&mut self, report: &RunReport, bytes: u64) {
        let totals = &mut self.totals;
        totals.bytes += bytes;
        totals.chunks += report.requests;
        totals.retries += report.retries;
        totals.files += outcomes(report);
    }

    /// Whether a run is under way or has to be continued.
    fn is_unfinished(&self) -> bool {
        self.run.is_some() || self.continues || self.next_irregular().is_some()
    }

    /// Whether it will not run again by itself.
    pub(crate) fn is_over(&self) -> bool {
        self.runs_once && self.run.is_none() && self.next.is_none()
    }

    /// What the task does now.
    pub(crate) fn phase(&self, is_scanning: bool) -> TaskPhase {
        if self.run.is_some() {
            if is_scanning {
                TaskPhase::Scanning
            } else {
                TaskPhase::Running
            }
        } else if self.is_paused {
            TaskPhase::Paused
        } else if self.is_over() {
            match &self.last {
                Some(last) if last.ok => TaskPhase::Done,
                _ => TaskPhase::Failed,
            }
        } else if self.failures > 0 {
            TaskPhase::Retrying
        } else {
            TaskPhase::Waiting
        }
    }
}

/// The part of a job's schedule that has to survive a restart of the agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct TaskState {
    /// Whether it waits to be resumed.
    pub(crate) is_paused: bool,
    /// Whether a run was under way or had to be continued.
    pub(crate) is_unfinished: bool,
    /// When that run first began.
    pub(crate) began: Option<Timestamp>,
    /// Its deadline.
    pub(crate) deadline: Option<Timestamp>,
    /// How the last run ended.
    #[serde(default)]
    pub(crate) last: Option<LastRun>,
}

impl TaskState {
    /// The state of a schedule now.
    pub(crate) fn of(schedule: &TaskSchedule) -> Self {
        let is_unfinished = schedule.is_unfinished();
        Self {
            is_paused: schedule.is_paused,
            is_unfinished,
            began: schedule.began.filter(|_| is_unfinished),
            deadline: schedule.deadline.filter(|_| is_unfinished),
            last: schedule.last.clone(),
        }
    }

    /// Reads the form that the state file holds. A form that cannot be read counts as
    /// an empty state.
    pub(crate) fn from_json(written: &[u8]) -> Self {
        serde_json::from_slice(written).unwrap_or_else(|error| {
            tracing::error!(%error, "the recorded state of a job cannot be read");
            Self::default()
        })
    }

    /// The form that the state file holds; `None` for an empty state.
    pub(crate) fn to_json(&self) -> Option<Vec<u8>> {
        let json = || serde_json::to_vec(self).expect("a task state can be written as JSON");
        (*self != Self::default()).then(json)
    }
}

fn earliest(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    one.into_iter().chain(other).min()
}

#[cfg(test)]
mod tests;
