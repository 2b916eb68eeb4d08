//! The book of one task: when it runs, how it stands, how it went. Pure; the wall
//! clock is an argument.

mod last;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp, Zoned};

use self::last::{last_run, outcomes};
use crate::config::{Due, Timing};
use crate::status::{LastRun, Phase, Totals};
use crate::sync::{EntryFailure, RunProblem, RunReport};

/// Failed runs are tried again after so long, and each further one after twice
/// that, ...
const RETRY_LEAST: Duration = Duration::from_secs(60);
/// ... up to this.
const RETRY_MOST: Duration = Duration::from_secs(3600);

/// See the module.
#[derive(Debug)]
pub(super) struct Task {
    timing: Timing,
    due: Option<Due>,
    runs_once: bool,
    /// When it runs next.
    pub(super) next: Option<Timestamp>,
    /// When its schedule wants that. `next` may be another moment: somebody has
    /// said so, or a run goes on that was stopped or has failed.
    regular: Option<Timestamp>,
    /// The last moment of its calendar that it has run for.
    served: Option<Timestamp>,
    /// Whether the next run is the rest of the last one, and has its deadline: also
    /// one that is over, until its schedule wants another run.
    goes_on: bool,
    /// When the run that is under way, or was last, began: the first time, if it has
    /// gone on since.
    pub(super) began: Option<Timestamp>,
    pub(super) is_paused: bool,
    pub(super) run: Option<Run>,
    /// Runs that failed in a row.
    failures: u32,
    pub(super) last: Option<LastRun>,
    pub(super) succeeded: Option<Timestamp>,
    pub(super) totals: Totals,
    /// The deadline of the run that is under way, is to be tried again, or was
    /// last.
    pub(super) deadline: Option<Timestamp>,
}

/// A run under way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    pub(super) began: Timestamp,
    /// Whether it was paused: then it goes on later, whatever becomes of the pause
    /// before it has ended.
    is_kept: bool,
}

impl Task {
    /// One that is scheduled from now on; `succeeded` is when it last went well.
    pub(super) fn new(
        timing: Timing,
        due: Option<Due>,
        succeeded: Option<Timestamp>,
        now: &Zoned,
    ) -> Self {
        let mut task = Self {
            timing,
            due,
            runs_once: false,
            next: None,
            regular: None,
            served: None,
            goes_on: false,
            began: None,
            is_paused: false,
            run: None,
            failures: 0,
            last: None,
            succeeded,
            totals: Totals::default(),
            deadline: None,
        };
        task.schedule(succeeded, now);
        // What was to run since it last went well, and did not, or not to its
        // end: the machine was off, or the agent was.
        let missed = succeeded.and_then(|succeeded| {
            let since = succeeded.to_zoned(now.time_zone().clone());
            task.timing.next_by_calendar(&since)
        });
        if missed.is_some_and(|missed| missed <= *now) {
            task.next = Some(now.timestamp());
        }
        task
    }

    /// One that runs once, now.
    pub(super) fn once(deadline: Option<Timestamp>, is_paused: bool, now: &Zoned) -> Self {
        let mut task = Self::new(Timing::ByHand, None, None, now);
        task.next = Some(now.timestamp());
        task.deadline = deadline;
        task.is_paused = is_paused;
        task.runs_once = true;
        task
    }

    /// One that goes on with the run that was under way when the agent ended, and
    /// had begun then.
    pub(super) fn go_on(
        &mut self,
        began: Option<Timestamp>,
        deadline: Option<Timestamp>,
        now: &Zoned,
    ) {
        let present = now.timestamp();
        // What began in the future did so by a clock that was wrong.
        let began = began.unwrap_or(present).min(present);
        // It may have come while the agent did not run.
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
        self.goes_on = true;
        self.began = Some(began);
        self.deadline = deadline;
    }

    /// When it runs next, after a run that first began then, if there was one.
    fn schedule(&mut self, began: Option<Timestamp>, now: &Zoned) {
        let present = now.timestamp();
        self.regular = match &self.timing {
            Timing::Calendar(_) => self.upcoming(now),
            Timing::Every(every) => {
                let after = |moment: Timestamp| moment.checked_add(*every).ok();
                // What began in the future did so by a clock that was wrong.
                let next = began.map(|began| began.min(present)).and_then(after);
                Some(next.unwrap_or(present).max(present))
            }
            Timing::ByHand => None,
        };
        self.next = self.regular;
    }

    /// The next moment of its calendar that it has not run for.
    fn upcoming(&self, now: &Zoned) -> Option<Timestamp> {
        let next = self.timing.next_by_calendar(now)?;
        if Some(next.timestamp()) != self.served {
            return Some(next.timestamp());
        }
        let after = self.timing.next_by_calendar(&next)?;
        Some(after.timestamp())
    }

    /// When it runs next for another reason than its schedule.
    fn besides(&self) -> Option<Timestamp> {
        self.next.filter(|next| Some(*next) != self.regular)
    }

    /// The wall clock was set, by so much, and says `now`. Delays and intervals are
    /// as long as before. A moment of the calendar that is over now has come;
    /// otherwise the next is that which comes next by the clock as it is.
    pub(super) fn clock_was_set(&mut self, by: SignedDuration, now: &Zoned) {
        let moved = |moment: Timestamp| moment.saturating_add(by).unwrap_or(moment);
        self.began = self.began.map(moved);
        if let Some(run) = &mut self.run {
            run.began = moved(run.began);
            return;
        }
        let besides = self.besides().map(moved);
        self.regular = match &self.timing {
            Timing::Calendar(_) => match self.regular {
                Some(regular) if regular <= now.timestamp() => Some(regular),
                _ => self.upcoming(now),
            },
            Timing::Every(_) | Timing::ByHand => self.regular.map(moved),
        };
        self.next = earliest(besides, self.regular);
    }

    /// It has another schedule and other deadlines from now on; a run that is under
    /// way keeps its own.
    pub(super) fn change(&mut self, timing: Timing, due: Option<Due>, now: &Zoned) {
        self.due = due;
        if self.timing == timing {
            return;
        }
        self.timing = timing;
        if self.run.is_none() {
            let besides = self.besides();
            self.schedule(self.began.or(self.succeeded), now);
            self.next = earliest(besides, self.regular);
        }
    }

    /// Whether it is to begin a run now.
    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        !self.is_paused && self.run.is_none() && self.next.is_some_and(|next| next <= now)
    }

    /// It is to run as soon as it can.
    pub(super) fn hurry(&mut self, now: Timestamp) {
        self.next = Some(now);
        // Who wants that now does not want it by a moment that is over.
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            self.goes_on = false;
        }
    }

    /// It does not run until it is resumed; a run under way is to be stopped, and
    /// goes on then.
    pub(super) fn pause(&mut self) {
        self.is_paused = true;
        if let Some(run) = &mut self.run {
            run.is_kept = true;
        }
    }

    /// What is left of its last run is given up, and a run under way is to be
    /// stopped for good: it runs again when its schedule wants that, unless it is
    /// paused. Returns whether there was anything.
    pub(super) fn cancel(&mut self) -> bool {
        if let Some(run) = &mut self.run {
            run.is_kept = false;
            return true;
        }
        if !self.is_unfinished() {
            return false;
        }
        self.next = self.regular;
        self.goes_on = false;
        self.failures = 0;
        true
    }

    /// A run begins; returns its deadline: that of the run that it goes on with, or
    /// one of its own.
    pub(super) fn begin(&mut self, now: &Zoned) -> Option<Timestamp> {
        let began = now.timestamp();
        let is_regular = self.regular.is_some_and(|regular| regular <= began);
        let goes_on = self.goes_on && !is_regular;
        let has_deadline = goes_on && self.deadline.is_some();
        if !has_deadline && !self.runs_once {
            self.deadline = self.due.and_then(|due| due.after(now));
        }
        if is_regular {
            self.served = self.regular;
        }
        self.run = Some(Run {
            began,
            is_kept: false,
        });
        if !goes_on {
            self.began = Some(began);
        }
        self.goes_on = false;
        self.next = None;
        self.regular = None;
        self.deadline
    }

    /// The run that was under way has ended.
    pub(super) fn ended(&mut self, report: &RunReport, bytes: u64, now: &Zoned) {
        let Some(run) = self.run.take() else { return };
        let ended = now.timestamp();
        let is_stopped = report.problem == Some(RunProblem::Stopped);
        let is_ok = report.is_clean();
        let in_time = self.deadline.map(|deadline| ended <= deadline);
        self.count(report, bytes);
        self.last = Some(last_run(report, run.began, ended, in_time));
        self.schedule(self.began, now);
        if is_stopped && (run.is_kept || self.runs_once) {
            // It goes on as soon as it may, in another process perhaps.
            self.next = Some(ended);
            self.goes_on = true;
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
            self.retry(report, ended);
        }
    }

    /// Plans to try again before the next regular run, where that may help.
    fn retry(&mut self, report: &RunReport, now: Timestamp) {
        let may_help = match &report.problem {
            Some(RunProblem::Store(error)) => error.may_pass(),
            Some(
                RunProblem::EmptySource(_)
                | RunProblem::EmptyTarget(_)
                | RunProblem::EmptyOrigin
                | RunProblem::TooManyDeletions { .. }
                | RunProblem::OtherWriter
                | RunProblem::NoJob(_)
                | RunProblem::NothingPushed,
            ) => false,
            Some(_) => true,
            // Files that cannot be read now cannot be read in a minute.
            None => report.failures.iter().any(|(_, failure)| match failure {
                EntryFailure::Changed | EntryFailure::Newer => true,
                EntryFailure::Store(error) => error.may_pass(),
                EntryFailure::Unreadable(_) | EntryFailure::Unwritable(_) => false,
            }),
        };
        if !may_help {
            self.failures = 0;
            return;
        }
        let delay = RETRY_LEAST * 2_u32.pow(self.failures.min(16));
        self.failures = self.failures.saturating_add(1);
        if let Ok(again) = now.checked_add(delay.min(RETRY_MOST)) {
            self.next = earliest(Some(again), self.regular);
            self.goes_on = true;
        }
    }

    fn count(&mut self, report: &RunReport, bytes: u64) {
        let files = outcomes(report);
        let totals = &mut self.totals;
        totals.bytes += bytes;
        totals.chunks += report.requests;
        totals.retries.add(&report.retries);
        let all = &mut totals.files;
        all.same += files.same;
        all.moved += files.moved;
        all.deleted += files.deleted;
        all.changed += files.changed;
        all.failed += files.failed;
    }

    /// Whether a run of it is under way, or has still to go on.
    pub(super) fn is_unfinished(&self) -> bool {
        self.run.is_some() || self.goes_on || self.besides().is_some()
    }

    /// Whether it will not run again by itself.
    pub(super) fn is_over(&self) -> bool {
        self.runs_once && self.run.is_none() && self.next.is_none()
    }

    /// What it does.
    pub(super) fn phase(&self, is_scanning: bool) -> Phase {
        if self.run.is_some() {
            if is_scanning {
                Phase::Scanning
            } else {
                Phase::Running
            }
        } else if self.is_paused {
            Phase::Paused
        } else if self.is_over() {
            match &self.last {
                Some(last) if last.ok => Phase::Done,
                _ => Phase::Failed,
            }
        } else if self.failures > 0 {
            Phase::Retrying
        } else {
            Phase::Waiting
        }
    }
}

fn earliest(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    one.into_iter().chain(other).min()
}

#[cfg(test)]
mod tests;
