//! The book of one task: when it runs, how it stands, how it went. Pure; the wall
//! clock is an argument.

use std::time::Duration;

use jiff::{Timestamp, Zoned};

use crate::config::{Due, Timing};
use crate::status::{LastRun, Outcomes, Phase, Totals};
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

    /// When it runs next, after a run that began then, if there was one.
    fn schedule(&mut self, began: Option<Timestamp>, now: &Zoned) {
        self.next = match &self.timing {
            Timing::Calendar(_) => self
                .timing
                .next_by_calendar(now)
                .map(|next| next.timestamp()),
            Timing::Every(every) => {
                let after = began.and_then(|began| began.checked_add(*every).ok());
                Some(after.unwrap_or(now.timestamp()).max(now.timestamp()))
            }
            Timing::ByHand => None,
        };
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
        if (self.failures == 0 || is_over) && !self.runs_once {
            self.deadline = self.due.and_then(|due| due.after(now));
        }
        self.run = Some(Run { began });
        self.next = None;
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
            hint: report
                .problem
                .as_ref()
                .map(Problem::hint)
                .or_else(|| report.failures.first().map(|(_, failure)| failure.hint()))
                .map(str::to_owned)
                .filter(|hint| !hint.is_empty()),
            files,
            failures: report
                .failures
                .iter()
                .map(|(path, failure)| (path.to_string(), failure.to_string()))
                .collect(),
        });
        self.schedule(Some(run.began), now);
        if is_stopped && (self.is_paused || self.runs_once) {
            // It goes on as soon as it may, in another process perhaps.
            self.next = Some(ended);
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
                Failure::Unreadable(_) => false,
            }),
        };
        if !may_help {
            self.failures = 0;
            return;
        }
        let delay = RETRY_LEAST * 2_u32.pow(self.failures.min(16));
        self.failures = self.failures.saturating_add(1);
        if let Ok(again) = now.checked_add(delay.min(RETRY_MOST)) {
            self.next = Some(self.next.map_or(again, |next| next.min(again)));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{StoreError, StoreErrorKind};

    fn at(text: &str) -> Zoned {
        text.parse().unwrap()
    }

    const START: &str = "2026-03-02T21:00:00[UTC]";

    fn nightly() -> Task {
        let calendar = "22:00".parse_calendar();
        let due = Due::By(jiff::civil::time(6, 0, 0, 0));
        Task::new(
            Timing::Calendar(vec![calendar]),
            Some(due),
            None,
            &at(START),
        )
    }

    trait ParseCalendar {
        fn parse_calendar(&self) -> crate::calendar::Calendar;
    }

    impl ParseCalendar for str {
        fn parse_calendar(&self) -> crate::calendar::Calendar {
            crate::calendar::Calendar::parse(self).unwrap()
        }
    }

    fn failed(kind: StoreErrorKind) -> Report {
        Report {
            problem: Some(Problem::Store(StoreError::new(kind, "no"))),
            ..Report::default()
        }
    }

    #[test]
    fn it_runs_at_its_time_and_is_due_by_the_next_morning() {
        let mut task = nightly();
        let ten = at("2026-03-02T22:00:00[UTC]");
        assert!(!task.is_due(at("2026-03-02T21:59:59[UTC]").timestamp()));
        assert!(task.is_due(ten.timestamp()));
        let deadline = task.begin(&ten);
        assert_eq!(deadline, Some(at("2026-03-03T06:00:00[UTC]").timestamp()));
        assert!(!task.is_due(ten.timestamp()), "it runs");
        let end = at("2026-03-03T06:00:01[UTC]");
        task.ended(&Report::default(), 7, &end);
        assert_eq!(task.last.as_ref().unwrap().in_time, Some(false));
        assert_eq!((task.totals.late, task.totals.bytes), (1, 7));
        assert_eq!(task.next, Some(at("2026-03-03T22:00:00[UTC]").timestamp()));
        assert_eq!(task.phase(false), Phase::Waiting);
    }

    #[test]
    fn what_may_pass_is_tried_again_for_the_same_deadline() {
        let mut task = nightly();
        let deadline = task.begin(&at("2026-03-02T22:00:00[UTC]"));
        task.ended(
            &failed(StoreErrorKind::Network),
            0,
            &at("2026-03-02T22:10:00[UTC]"),
        );
        assert_eq!(task.phase(false), Phase::Retrying);
        let again = at("2026-03-02T22:11:00[UTC]");
        assert!(task.is_due(again.timestamp()));
        assert_eq!(task.begin(&again), deadline);
        task.ended(&failed(StoreErrorKind::Network), 0, &again);
        assert!(!task.is_due(at("2026-03-02T22:12:59[UTC]").timestamp()));
        assert!(task.is_due(at("2026-03-02T22:13:00[UTC]").timestamp()));
        assert_eq!(task.totals.failed, 2);
    }

    #[test]
    fn what_will_not_pass_waits_for_its_next_time() {
        let mut task = nightly();
        task.begin(&at("2026-03-02T22:00:00[UTC]"));
        task.ended(
            &failed(StoreErrorKind::Credentials),
            0,
            &at("2026-03-02T22:10:00[UTC]"),
        );
        assert_eq!(task.next, Some(at("2026-03-03T22:00:00[UTC]").timestamp()));
        assert_eq!(task.phase(false), Phase::Waiting);
    }

    #[test]
    fn what_was_missed_is_made_up_for_and_what_was_done_is_not() {
        let calendar = Timing::Calendar(vec!["22:00".parse_calendar()]);
        let now = at("2026-03-03T08:00:00[UTC]");
        for (succeeded, is_due) in [
            ("2026-03-02T03:00:00[UTC]", true),
            ("2026-03-03T03:00:00[UTC]", false),
        ] {
            let succeeded = Some(at(succeeded).timestamp());
            let task = Task::new(calendar.clone(), None, succeeded, &now);
            assert_eq!(task.is_due(now.timestamp()), is_due, "{succeeded:?}");
        }
    }

    #[test]
    fn what_runs_once_goes_on_after_it_was_stopped() {
        let now = at(START);
        let mut task = Task::once(None, false, &now);
        task.begin(&now);
        let stopped = Report {
            problem: Some(Problem::Stopped),
            ..Report::default()
        };
        task.ended(&stopped, 0, &now);
        assert!(!task.is_over());
        task.begin(&now);
        task.ended(&Report::default(), 0, &now);
        assert_eq!((task.is_over(), task.phase(false)), (true, Phase::Done));
    }

    #[test]
    fn a_deadline_that_is_over_is_not_kept_for_the_next_night() {
        let mut task = nightly();
        task.begin(&at("2026-03-02T22:00:00[UTC]"));
        let end = at("2026-03-03T05:59:00[UTC]");
        task.ended(&failed(StoreErrorKind::Network), 0, &end);
        let deadline = task.begin(&at("2026-03-03T06:01:00[UTC]"));
        assert_eq!(deadline, Some(at("2026-03-04T06:00:00[UTC]").timestamp()));
    }

    #[test]
    fn an_interval_counts_from_the_last_run() {
        let every = Timing::Every(Duration::from_secs(3600));
        let now = at(START);
        let fresh = Task::new(every.clone(), None, None, &now);
        assert!(fresh.is_due(now.timestamp()));
        let ran = at("2026-03-02T20:30:00[UTC]").timestamp();
        let task = Task::new(every, None, Some(ran), &now);
        assert_eq!(task.next, Some(at("2026-03-02T21:30:00[UTC]").timestamp()));
        let mut paused = task;
        paused.is_paused = true;
        assert!(!paused.is_due(at("2026-03-02T21:30:00[UTC]").timestamp()));
        assert_eq!(paused.phase(false), Phase::Paused);
    }
}
