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

#[test]
fn files_that_failed_are_told_with_what_to_do() {
    let mut task = nightly();
    task.begin(&at("2026-03-02T22:00:00[UTC]"));
    let path = crate::entry::TreePath::from_bytes(b"a\0b").unwrap();
    let report = Report {
        failures: vec![(path, Failure::Unreadable("permission denied".into()))],
        failed: 1,
        ..Report::default()
    };
    task.ended(&report, 0, &at("2026-03-02T22:10:00[UTC]"));
    let last = task.last.unwrap();
    let [failure] = last.failures.as_slice() else {
        panic!("{last:?}");
    };
    assert_eq!(failure.path, "a/b");
    assert_eq!(failure.problem, "permission denied");
    assert!(failure.hint.as_ref().unwrap().contains("right to read"));
    assert_eq!(last.hint, failure.hint);
}
