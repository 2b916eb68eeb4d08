//! The book of one task: when it runs, how it stands, how it went. Pure; the wall
//! clock is an argument.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp, Zoned};

use crate::config::{Due, Timing};
use crate::status::{FileFailure, LastRun, Outcomes, Phase, Totals};
use crate::sync::{Failure, Problem, Report};

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
    /// Whether the next run is the rest of the last one, and has its deadline.
    goes_on: bool,
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

    /// One that goes on with the run that was under way when the agent ended.
    pub(super) fn go_on(&mut self, deadline: Option<Timestamp>, now: Timestamp) {
        self.next = Some(now);
        self.goes_on = true;
        self.deadline = deadline;
    }

    /// When it runs next, after a run that began then, if there was one.
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
            let last = self.last.as_ref().map(|last| last.began);
            self.schedule(last.or(self.succeeded), now);
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
    }

    /// A run begins; returns its deadline: that of the run that it repeats, or
    /// one of its own.
    pub(super) fn begin(&mut self, now: &Zoned) -> Option<Timestamp> {
        let began = now.timestamp();
        let is_over = self.deadline.is_none_or(|deadline| deadline <= began);
        if (!self.goes_on || is_over) && !self.runs_once {
            self.deadline = self.due.and_then(|due| due.after(now));
        }
        if self.regular.is_some_and(|regular| regular <= began) {
            self.served = self.regular;
        }
        self.run = Some(Run { began });
        self.goes_on = false;
        self.next = None;
        self.regular = None;
        self.deadline
    }

    /// The run that was under way has ended.
    pub(super) fn ended(&mut self, report: &Report, bytes: u64, now: &Zoned) {
        let Some(run) = self.run.take() else { return };
        let ended = now.timestamp();
        let is_stopped = report.problem == Some(Problem::Stopped);
        let is_ok = report.is_clean();
        let in_time = self.deadline.map(|deadline| ended <= deadline);
        let files = outcomes(report);
        self.count(files, report, bytes);
        self.last = Some(LastRun {
            began: run.began,
            ended,
            ok: is_ok,
            in_time,
            problem: problem_of(report),
            hint: hint_of(report),
            files,
            failures: report
                .failures
                .iter()
                .map(|(path, failure)| FileFailure {
                    path: path.to_string(),
                    problem: failure.to_string(),
                    hint: advice(failure.hint()),
                })
                .collect(),
        });
        self.schedule(Some(run.began), now);
        if is_stopped && (self.is_paused || self.runs_once) {
            // It goes on as soon as it may, in another process perhaps.
            self.next = Some(ended);
            self.goes_on = true;
        }
        if is_ok {
            self.failures = 0;
            self.succeeded = Some(ended);
            self.totals.succeeded += 1;
            self.totals.late += u64::from(in_time == Some(false));
        } else if !is_stopped {
            self.totals.failed += 1;
            self.retry(report, ended);
        }
    }

    /// Plans to try again before the next regular run, where that may help.
    fn retry(&mut self, report: &Report, now: Timestamp) {
        let may_help = match &report.problem {
            Some(Problem::Store(error)) => error.may_pass(),
            Some(
                Problem::EmptySource(_)
                | Problem::EmptyTarget(_)
                | Problem::EmptyOrigin
                | Problem::TooManyDeletions { .. }
                | Problem::OtherWriter
                | Problem::NothingPushed,
            ) => false,
            Some(_) => true,
            // Files that cannot be read now cannot be read in a minute.
            None => report.failures.iter().any(|(_, failure)| match failure {
                Failure::Changed | Failure::Newer => true,
                Failure::Store(error) => error.may_pass(),
                Failure::Unreadable(_) | Failure::Unwritable(_) => false,
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

    fn count(&mut self, files: Outcomes, report: &Report, bytes: u64) {
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
        self.run.is_some() || self.besides().is_some()
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

fn outcomes(report: &Report) -> Outcomes {
    Outcomes {
        same: report.same,
        moved: report.sent,
        deleted: report.deleted,
        changed: report.changed,
        failed: report.failed - report.changed,
    }
}

fn problem_of(report: &Report) -> Option<String> {
    if let Some(problem) = &report.problem {
        return Some(problem.to_string());
    }
    let (path, failure): &(_, Failure) = report.failures.first()?;
    Some(match report.failed {
        1 => format!("{path}: {failure}"),
        many => format!("{many} files failed, the first of them {path}: {failure}"),
    })
}

fn hint_of(report: &Report) -> Option<String> {
    match (&report.problem, report.failures.first()) {
        (Some(problem), _) => advice(problem.hint()),
        (None, Some((_, failure))) => advice(failure.hint()),
        (None, None) => None,
    }
}

fn advice(hint: &str) -> Option<String> {
    (!hint.is_empty()).then(|| hint.to_owned())
}

#[cfg(test)]
mod tests;
