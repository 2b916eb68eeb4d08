//! What becomes of a run that was stopped, has failed, or was under way when the
//! agent ended: whether it goes on, and by which deadline.

use super::*;

const TEN: &str = "2026-03-02T22:00:00[UTC]";
const SIX: &str = "2026-03-03T06:00:00[UTC]";
const NEXT_TEN: &str = "2026-03-03T22:00:00[UTC]";
const NEXT_SIX: &str = "2026-03-04T06:00:00[UTC]";

/// Restores the state of a task whose run the end of the agent has interrupted.
fn go_on(
    schedule: &mut TaskSchedule,
    began: Option<Timestamp>,
    deadline: Option<Timestamp>,
    now: &Zoned,
) {
    let state = TaskState {
        is_unfinished: true,
        began,
        deadline,
        ..TaskState::default()
    };
    schedule.restore(&state, now);
}

fn moment(text: &str) -> Option<Timestamp> {
    Some(at(text).timestamp())
}

#[test]
fn a_pause_keeps_the_run_and_its_deadline() {
    let mut task = nightly();
    let due = Some(Due::Within(Duration::from_secs(3600)));
    task.change(Timing::ByHand, due, &at(START));
    task.run_now(at(START).timestamp());
    let deadline = task.begin(&at(START));
    task.pause();
    let end = at("2026-03-02T21:10:00[UTC]");
    task.end(&stopped(), 0, &end);
    assert!(task.is_unfinished() && !task.is_due(end.timestamp()));
    task.is_paused = false;
    assert!(task.is_due(end.timestamp()));
    assert_eq!(task.begin(&end), deadline);
}

#[test]
fn a_pause_that_is_over_before_the_run_has_ended_keeps_it_as_well() {
    let mut task = nightly();
    let deadline = task.begin(&at(TEN));
    task.pause();
    task.is_paused = false;
    let end = at("2026-03-02T22:10:00[UTC]");
    assert!(!task.is_due(end.timestamp()), "it is being stopped");
    task.end(&stopped(), 0, &end);
    assert!(task.is_due(end.timestamp()));
    assert_eq!(task.begin(&end), deadline);
}

#[test]
fn what_was_under_way_goes_on_by_the_same_deadline() {
    let mut before = TaskSchedule::new(Timing::ByHand, None, None, &at(START));
    before.run_now(at(START).timestamp());
    assert!(before.is_unfinished());
    before.begin(&at(START));
    assert!(before.is_unfinished());
    let due = Some(Due::Within(Duration::from_secs(3600)));
    let mut task = TaskSchedule::new(Timing::ByHand, due, None, &at(START));
    assert!(!task.is_unfinished());
    let deadline = Some(at("2026-03-02T21:20:00[UTC]").timestamp());
    let began = before.began;
    go_on(&mut task, began, deadline, &at("2026-03-02T21:10:00[UTC]"));
    assert_eq!(task.begin(&at("2026-03-02T21:10:00[UTC]")), deadline);
    task.end(&RunReport::default(), 0, &at("2026-03-02T21:11:00[UTC]"));
    assert!(!task.is_unfinished());
}

#[test]
fn a_missed_deadline_is_kept_until_a_new_night_has_a_new_one() {
    let mut task = nightly();
    task.begin(&at(TEN));
    let end = at("2026-03-03T05:59:00[UTC]");
    task.end(&failed(StoreErrorKind::Network), 0, &end);
    // Tried again, ...
    let again = at("2026-03-03T06:01:00[UTC]");
    assert_eq!(task.begin(&again), moment(SIX));
    // ... paused and resumed, ...
    task.pause();
    task.end(&stopped(), 0, &at("2026-03-03T07:00:00[UTC]"));
    task.is_paused = false;
    assert_eq!(task.begin(&at("2026-03-03T08:00:00[UTC]")), moment(SIX));
    // ... and failing until it is time for the next one.
    let end = at("2026-03-03T21:59:30[UTC]");
    task.end(&failed(StoreErrorKind::Network), 0, &end);
    assert_eq!(task.next, moment(NEXT_TEN));
    assert_eq!(task.begin(&at(NEXT_TEN)), moment(NEXT_SIX));
    assert_eq!(task.totals.late, 1);
}

#[test]
fn an_interval_counts_from_the_first_try() {
    let every = Timing::Every(Duration::from_secs(3 * 3600));
    let due = Some(Due::Within(Duration::from_secs(3600)));
    let mut task = TaskSchedule::new(every, due, None, &at(START));
    for (begin, fail) in [
        (START, "2026-03-02T21:30:00[UTC]"),
        ("2026-03-02T21:31:00[UTC]", "2026-03-02T22:30:00[UTC]"),
        ("2026-03-02T22:32:00[UTC]", "2026-03-02T23:59:30[UTC]"),
    ] {
        assert_eq!(task.begin(&at(begin)), moment(TEN), "{begin}");
        task.end(&failed(StoreErrorKind::Network), 0, &at(fail));
    }
    let midnight = "2026-03-03T00:00:00[UTC]";
    assert_eq!(task.next, moment(midnight));
    let deadline = task.begin(&at(midnight));
    assert_eq!(deadline, moment("2026-03-03T01:00:00[UTC]"));
}

#[test]
fn a_pause_over_the_next_moment_ends_with_the_next_deadline() {
    let mut task = nightly();
    task.begin(&at(TEN));
    task.pause();
    task.end(&stopped(), 0, &at("2026-03-02T23:00:00[UTC]"));
    task.is_paused = false;
    let late = at("2026-03-03T22:30:00[UTC]");
    assert_eq!(task.begin(&late), moment(NEXT_SIX));
    task.end(&RunReport::default(), 0, &late);
    // What it ran for was that moment.
    assert_eq!(task.next, moment("2026-03-04T22:00:00[UTC]"));
}

#[test]
fn a_restart_keeps_a_missed_deadline_unless_the_next_moment_has_come_meanwhile() {
    let every = Timing::Every(Duration::from_secs(24 * 3600));
    let within = Due::Within(Duration::from_secs(8 * 3600));
    for (restarted, deadline) in [
        ("2026-03-03T05:00:00[UTC]", SIX),
        ("2026-03-03T07:00:00[UTC]", SIX),
        ("2026-03-03T21:59:59[UTC]", SIX),
        (NEXT_TEN, NEXT_SIX),
    ] {
        let now = at(restarted);
        // It has not gone well for long.
        let succeeded = moment("2026-02-20T23:00:00[UTC]");
        let by_interval = TaskSchedule::new(every.clone(), Some(within), succeeded, &now);
        let mut by_calendar = nightly();
        by_calendar.succeeded = succeeded;
        for mut task in [by_calendar, by_interval] {
            go_on(&mut task, moment(TEN), moment(SIX), &now);
            assert!(task.is_due(now.timestamp()));
            assert_eq!(task.begin(&now), moment(deadline), "{restarted}");
        }
    }
}

#[test]
fn who_runs_it_by_hand_does_not_want_it_by_a_moment_that_is_over() {
    let due = Some(Due::Within(Duration::from_secs(3600)));
    let mut task = TaskSchedule::new(Timing::ByHand, due, None, &at(START));
    task.run_now(at(START).timestamp());
    task.begin(&at(START));
    let end = at("2026-03-02T21:30:00[UTC]");
    task.end(&failed(StoreErrorKind::Network), 0, &end);
    task.run_now(end.timestamp());
    assert_eq!(task.begin(&end), moment(TEN), "that is still to come");
    task.end(&failed(StoreErrorKind::Network), 0, &at(TEN));
    task.run_now(at(TEN).timestamp());
    let hour = "2026-03-02T23:00:00[UTC]";
    assert_eq!(task.begin(&at(TEN)), moment(hour));
}

#[test]
fn what_is_left_of_a_run_can_be_cancelled_be_it_paused_or_to_be_tried_again() {
    for report in [failed(StoreErrorKind::Network), stopped()] {
        let mut task = nightly();
        assert!(!task.cancel(), "nothing was begun");
        task.begin(&at(TEN));
        let is_paused = report.problem == Some(RunProblem::Stopped);
        if is_paused {
            task.pause();
        }
        task.end(&report, 0, &at("2026-03-02T22:10:00[UTC]"));
        assert!(task.is_unfinished());
        assert!(task.cancel());
        assert!(!task.is_unfinished() && !task.cancel());
        assert_eq!(task.next, moment(NEXT_TEN));
        assert_eq!(task.is_paused, is_paused, "that is another matter");
        task.is_paused = false;
        assert_eq!(task.phase(false), TaskPhase::Waiting);
        assert_eq!(task.begin(&at(NEXT_TEN)), moment(NEXT_SIX));
    }
}

#[test]
fn a_run_that_is_cancelled_after_it_was_paused_does_not_go_on() {
    let mut task = nightly();
    task.begin(&at(TEN));
    task.pause();
    assert!(task.cancel());
    task.end(&stopped(), 0, &at("2026-03-02T22:10:00[UTC]"));
    assert!(task.is_paused && !task.is_unfinished());
    assert_eq!(task.next, moment(NEXT_TEN));
}
