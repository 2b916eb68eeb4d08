//! Nights of invented tasks.

mod going_on;

use super::*;
use crate::store::{StoreError, StoreErrorKind};

fn at(text: &str) -> Zoned {
    text.parse().unwrap()
}

const START: &str = "2026-03-02T21:00:00[UTC]";

fn nightly() -> TaskSchedule {
    let calendar = "22:00".parse_calendar();
    let due = Due::By("06:00".parse().unwrap());
    TaskSchedule::new(
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

fn failed(kind: StoreErrorKind) -> RunReport {
    RunReport {
        problem: Some(RunProblem::Store(StoreError::new(kind, "no"))),
        ..RunReport::default()
    }
}

fn stopped() -> RunReport {
    RunReport {
        problem: Some(RunProblem::Stopped),
        ..RunReport::default()
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
    task.end(&RunReport::default(), 7, &end);
    assert_eq!(task.last.as_ref().unwrap().in_time, Some(false));
    assert_eq!((task.totals.late, task.totals.bytes), (1, 7));
    assert_eq!(task.next, Some(at("2026-03-03T22:00:00[UTC]").timestamp()));
    assert_eq!(task.phase(false), TaskPhase::Waiting);
}

#[test]
fn what_may_pass_is_tried_again_for_the_same_deadline() {
    let mut task = nightly();
    let deadline = task.begin(&at("2026-03-02T22:00:00[UTC]"));
    task.end(
        &failed(StoreErrorKind::Network),
        0,
        &at("2026-03-02T22:10:00[UTC]"),
    );
    assert_eq!(task.phase(false), TaskPhase::Retrying);
    let again = at("2026-03-02T22:11:00[UTC]");
    assert!(task.is_due(again.timestamp()));
    assert_eq!(task.begin(&again), deadline);
    task.end(&failed(StoreErrorKind::Network), 0, &again);
    assert!(!task.is_due(at("2026-03-02T22:12:59[UTC]").timestamp()));
    assert!(task.is_due(at("2026-03-02T22:13:00[UTC]").timestamp()));
    assert_eq!(task.totals.failed, 2);
}

#[test]
fn late_runs_are_counted_whatever_their_outcome_but_for_those_that_were_stopped() {
    let mut task = nightly();
    let mut late_after = |report: &RunReport, begin: &str, end: &str| {
        task.begin(&at(begin));
        task.end(report, 0, &at(end));
        task.totals.late
    };
    let (ten, six) = ("2026-03-02T22:00:00[UTC]", "2026-03-03T06:00:01[UTC]");
    assert_eq!(late_after(&stopped(), ten, six), 0);
    let refused = failed(StoreErrorKind::Credentials);
    assert_eq!(late_after(&refused, ten, six), 1);
    assert_eq!(late_after(&refused, ten, "2026-03-03T05:59:59[UTC]"), 1);
    assert_eq!(late_after(&RunReport::default(), ten, six), 2);
    assert_eq!((task.totals.failed, task.totals.succeeded), (2, 1));
}

#[test]
fn what_will_not_pass_waits_for_its_next_time() {
    let mut task = nightly();
    task.begin(&at("2026-03-02T22:00:00[UTC]"));
    task.end(
        &failed(StoreErrorKind::Credentials),
        0,
        &at("2026-03-02T22:10:00[UTC]"),
    );
    assert_eq!(task.next, Some(at("2026-03-03T22:00:00[UTC]").timestamp()));
    assert_eq!(task.phase(false), TaskPhase::Waiting);
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
        let task = TaskSchedule::new(calendar.clone(), None, succeeded, &now);
        assert_eq!(task.is_due(now.timestamp()), is_due, "{succeeded:?}");
    }
}

#[test]
fn what_runs_once_goes_on_after_it_was_stopped() {
    let now = at(START);
    let mut task = TaskSchedule::once(None, false, &now);
    task.begin(&now);
    task.end(&stopped(), 0, &now);
    assert!(!task.is_over());
    task.begin(&now);
    task.end(&RunReport::default(), 0, &now);
    assert_eq!((task.is_over(), task.phase(false)), (true, TaskPhase::Done));
}

#[test]
fn a_restore_of_a_job_that_is_gone_is_given_up() {
    let now = at(START);
    let mut task = TaskSchedule::once(None, false, &now);
    task.begin(&now);
    let report = RunReport {
        problem: Some(RunProblem::NoJob("home".to_owned())),
        ..RunReport::default()
    };
    task.end(&report, 0, &now);
    assert_eq!(
        (task.is_over(), task.phase(false)),
        (true, TaskPhase::Failed)
    );
    let problem = task.last.unwrap().problem.unwrap();
    assert_eq!(problem, "job home is not configured any more");
}

#[test]
fn an_interval_counts_from_the_last_run() {
    let every = Timing::Every(Duration::from_secs(3600));
    let now = at(START);
    let fresh = TaskSchedule::new(every.clone(), None, None, &now);
    assert!(fresh.is_due(now.timestamp()));
    let ran = at("2026-03-02T20:30:00[UTC]").timestamp();
    let task = TaskSchedule::new(every, None, Some(ran), &now);
    assert_eq!(task.next, Some(at("2026-03-02T21:30:00[UTC]").timestamp()));
    let mut paused = task;
    paused.is_paused = true;
    assert!(!paused.is_due(at("2026-03-02T21:30:00[UTC]").timestamp()));
    assert_eq!(paused.phase(false), TaskPhase::Paused);
}

/// The clock was set to `now`, by so many seconds.
fn set_clock(task: &mut TaskSchedule, by: i64, now: &str) {
    task.clock_was_set(SignedDuration::from_secs(by), &at(now));
}

#[test]
fn a_clock_that_is_set_back_runs_nothing_twice() {
    let mut task = nightly();
    task.begin(&at("2026-03-02T22:00:00[UTC]"));
    set_clock(&mut task, -1_800, "2026-03-02T21:31:00[UTC]");
    let began = at("2026-03-02T21:30:00[UTC]").timestamp();
    assert_eq!(task.run.map(|run| run.began), Some(began));
    // It has run for ten o'clock, though that is still to come.
    task.end(&RunReport::default(), 0, &at("2026-03-02T21:40:00[UTC]"));
    assert_eq!(task.next, Some(at("2026-03-03T22:00:00[UTC]").timestamp()));
    set_clock(&mut task, -600, "2026-03-02T21:31:00[UTC]");
    assert_eq!(task.next, Some(at("2026-03-03T22:00:00[UTC]").timestamp()));
}

#[test]
fn a_clock_that_was_far_ahead_leaves_nothing_out() {
    let timing = Timing::Calendar(vec!["22:00".parse_calendar()]);
    let mut task = TaskSchedule::new(timing, None, None, &at("2027-06-01T21:00:00[UTC]"));
    let wrong = at("2027-06-01T22:00:00[UTC]");
    task.begin(&wrong);
    task.end(&RunReport::default(), 0, &wrong);
    assert_eq!(task.next, Some(at("2027-06-02T22:00:00[UTC]").timestamp()));
    set_clock(&mut task, -39_400_000, "2026-03-02T21:30:00[UTC]");
    assert_eq!(task.next, Some(at("2026-03-02T22:00:00[UTC]").timestamp()));
}

#[test]
fn a_clock_that_is_set_beyond_the_moment_leaves_it_due() {
    let mut task = nightly();
    let late = "2026-03-02T22:30:00[UTC]";
    set_clock(&mut task, 5_400, late);
    assert!(task.is_due(at(late).timestamp()));
    task.begin(&at(late));
    task.end(&RunReport::default(), 0, &at(late));
    assert_eq!(task.next, Some(at("2026-03-03T22:00:00[UTC]").timestamp()));
}

#[test]
fn intervals_and_delays_are_as_long_whatever_the_clock_says() {
    let every = Timing::Every(Duration::from_secs(3600));
    let ran = at("2026-03-02T20:30:00[UTC]").timestamp();
    let mut task = TaskSchedule::new(every.clone(), None, Some(ran), &at(START));
    // Half an hour is left.
    set_clock(&mut task, 86_400, "2026-03-03T21:00:00[UTC]");
    assert_eq!(task.next, Some(at("2026-03-03T21:30:00[UTC]").timestamp()));
    set_clock(&mut task, -172_800, "2026-03-01T21:00:00[UTC]");
    assert_eq!(task.next, Some(at("2026-03-01T21:30:00[UTC]").timestamp()));
    let mut task = nightly();
    let ten = at("2026-03-02T22:00:00[UTC]");
    task.begin(&ten);
    task.end(&failed(StoreErrorKind::Network), 0, &ten);
    // In a minute by the old clock.
    set_clock(&mut task, -3_600, "2026-03-02T21:00:00[UTC]");
    assert_eq!(task.next, Some(at("2026-03-02T21:01:00[UTC]").timestamp()));
    // By a clock that was years ahead.
    let future = at("2030-01-01T00:00:00[UTC]").timestamp();
    let task = TaskSchedule::new(every, None, Some(future), &at(START));
    assert_eq!(task.next, Some(at("2026-03-02T22:00:00[UTC]").timestamp()));
}

#[test]
fn another_schedule_counts_from_now_on_but_not_for_what_goes_on() {
    let now = at(START);
    let three = Timing::Calendar(vec!["03:00".parse_calendar()]);
    let mut task = nightly();
    task.change(three.clone(), None, &now);
    assert_eq!(task.next, Some(at("2026-03-03T03:00:00[UTC]").timestamp()));
    let mut task = nightly();
    task.begin(&at("2026-03-02T22:00:00[UTC]"));
    task.change(three.clone(), None, &at("2026-03-02T22:01:00[UTC]"));
    assert_eq!(task.next, None, "it runs");
    let end = at("2026-03-02T22:02:00[UTC]");
    task.end(&failed(StoreErrorKind::Network), 0, &end);
    let again = task.next;
    assert_eq!(again, Some(at("2026-03-02T22:03:00[UTC]").timestamp()));
    task.change(Timing::ByHand, None, &end);
    assert_eq!(task.next, again, "it is still to be tried again");
}

#[test]
fn files_that_failed_are_told_with_what_to_do() {
    let mut task = nightly();
    task.begin(&at("2026-03-02T22:00:00[UTC]"));
    let path = crate::entry::TreePath::from_bytes(b"a\0b").unwrap();
    let report = RunReport {
        failures: vec![(path, EntryFailure::Unreadable("permission denied".into()))],
        failed: 1,
        ..RunReport::default()
    };
    task.end(&report, 0, &at("2026-03-02T22:10:00[UTC]"));
    let last = task.last.unwrap();
    let [failure] = last.failures.as_slice() else {
        panic!("{last:?}");
    };
    assert_eq!(failure.path, "a/b");
    assert_eq!(failure.problem, "permission denied");
    assert!(failure.hint.as_ref().unwrap().contains("right to read"));
    assert_eq!(last.hint, failure.hint);
}
