use super::*;
use crate::agent::api::ReportedCounts;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a moment")
}

fn run(began: i64, ended: i64, ok: bool) -> ReportedRun {
    ReportedRun {
        began: at(began),
        ended: at(ended),
        ok,
        ..ReportedRun::default()
    }
}

fn status(now: i64, phase: ReportedPhase, last: Option<ReportedRun>) -> ReportedStatus {
    let task = ReportedTask {
        id: "home".to_owned(),
        phase,
        last,
        ..ReportedTask::default()
    };
    ReportedStatus {
        now: at(now),
        tasks: vec![ReportedTask::default(), task],
        ..ReportedStatus::default()
    }
}

/// What each status after the first one says.
fn seen(statuses: Vec<ReportedStatus>) -> Vec<RunUpdate> {
    let mut statuses = statuses.into_iter();
    let mut wait = AwaitedRun::new("home", &statuses.next().expect("a first one"));
    statuses.map(|status| wait.update(&status)).collect()
}

#[test]
fn a_run_ends_with_a_result_of_its_own() {
    let old = || Some(run(1, 5, false));
    let told = seen(vec![
        status(10, ReportedPhase::Waiting, old()),
        status(10, ReportedPhase::Waiting, old()),
        status(11, ReportedPhase::Scanning, old()),
        status(12, ReportedPhase::Running, old()),
        status(13, ReportedPhase::Running, old()),
        status(14, ReportedPhase::Waiting, Some(run(11, 14, true))),
    ]);
    assert_eq!(
        told,
        [
            RunUpdate::NewPhase(ReportedPhase::Waiting),
            RunUpdate::NewPhase(ReportedPhase::Scanning),
            RunUpdate::NewPhase(ReportedPhase::Running),
            RunUpdate::Same,
            RunUpdate::Ended(RunEnd::Good(run(11, 14, true))),
        ]
    );
}

#[test]
fn one_that_is_over_at_once_is_seen_too() {
    let told = seen(vec![
        status(10, ReportedPhase::Waiting, None),
        status(11, ReportedPhase::Waiting, Some(run(10, 11, true))),
    ]);
    assert_eq!(told, [RunUpdate::Ended(RunEnd::Good(run(10, 11, true)))]);
}

#[test]
fn the_end_of_an_earlier_run_is_not_taken_for_it() {
    let told = seen(vec![
        status(10, ReportedPhase::Running, None),
        status(11, ReportedPhase::Running, Some(run(5, 10, false))),
        status(12, ReportedPhase::Waiting, Some(run(11, 12, true))),
    ]);
    let end = RunUpdate::Ended(RunEnd::Good(run(11, 12, true)));
    assert_eq!(told, [RunUpdate::NewPhase(ReportedPhase::Running), end]);
}

#[test]
fn the_run_that_was_there_may_be_the_one() {
    let told = seen(vec![
        status(10, ReportedPhase::Running, None),
        status(11, ReportedPhase::Running, None),
        status(12, ReportedPhase::Waiting, Some(run(5, 12, true))),
    ]);
    let end = RunUpdate::Ended(RunEnd::Good(run(5, 12, true)));
    assert_eq!(told, [RunUpdate::NewPhase(ReportedPhase::Running), end]);
}

#[test]
fn failures_differ() {
    let with = |failed, changed| {
        let files = ReportedCounts {
            failed,
            changed,
            ..ReportedCounts::default()
        };
        ReportedRun {
            files,
            ..run(10, 12, false)
        }
    };
    for (last, phase, code) in [
        (with(1, 0), ReportedPhase::Waiting, ExitCode::Partial),
        (with(0, 2), ReportedPhase::Retrying, ExitCode::Partial),
        (with(0, 0), ReportedPhase::Retrying, ExitCode::Temporary),
        (with(0, 0), ReportedPhase::Waiting, ExitCode::Other),
        (with(0, 0), ReportedPhase::Failed, ExitCode::Other),
        (run(10, 12, true), ReportedPhase::Done, ExitCode::Done),
    ] {
        let told = seen(vec![
            status(10, ReportedPhase::Waiting, None),
            status(12, phase, Some(last)),
        ]);
        let [RunUpdate::Ended(end)] = &told[..] else {
            panic!("{told:?}")
        };
        assert_eq!(end.code(), code, "{end:?}");
    }
}

#[test]
fn what_a_pause_has_stopped_has_not_ended() {
    let stopped = || Some(run(11, 12, false));
    let told = seen(vec![
        status(10, ReportedPhase::Waiting, None),
        status(11, ReportedPhase::Running, None),
        status(12, ReportedPhase::Paused, stopped()),
        status(13, ReportedPhase::Waiting, stopped()),
        status(14, ReportedPhase::Running, stopped()),
        status(15, ReportedPhase::Waiting, Some(run(13, 15, true))),
    ]);
    assert!(
        !told[..4]
            .iter()
            .any(|seen| matches!(seen, RunUpdate::Ended(_)))
    );
    assert_eq!(told[4], RunUpdate::Ended(RunEnd::Good(run(13, 15, true))));
    // Nobody has seen the pause.
    let told = seen(vec![
        status(10, ReportedPhase::Waiting, None),
        status(11, ReportedPhase::Running, None),
        status(12, ReportedPhase::Scanning, stopped()),
        status(13, ReportedPhase::Waiting, Some(run(12, 13, true))),
    ]);
    assert!(
        !told[..2]
            .iter()
            .any(|seen| matches!(seen, RunUpdate::Ended(_)))
    );
    assert_eq!(told[2], RunUpdate::Ended(RunEnd::Good(run(12, 13, true))));
}

#[test]
fn a_cancelled_run_ends_without_a_result_and_a_paused_one_does_not() {
    let told = seen(vec![
        status(10, ReportedPhase::Waiting, None),
        status(11, ReportedPhase::Running, None),
        status(12, ReportedPhase::Paused, None),
        status(13, ReportedPhase::Waiting, None),
        status(14, ReportedPhase::Running, None),
        status(15, ReportedPhase::Waiting, None),
    ]);
    assert_eq!(told[4], RunUpdate::Ended(RunEnd::Cancelled));
    assert!(
        !told[..4]
            .iter()
            .any(|seen| matches!(seen, RunUpdate::Ended(_)))
    );
    // A restore is forgotten when it is cancelled, and not there at first.
    let none = |now| ReportedStatus {
        now: at(now),
        ..ReportedStatus::default()
    };
    let told = seen(vec![
        none(10),
        none(10),
        status(11, ReportedPhase::Running, None),
        none(12),
    ]);
    let turned = RunUpdate::NewPhase(ReportedPhase::Running);
    assert_eq!(
        told,
        [RunUpdate::Same, turned, RunUpdate::Ended(RunEnd::Cancelled)]
    );
}

#[test]
fn each_failed_try_is_told_once() {
    let waits = |now, next| {
        let mut status = status(now, ReportedPhase::Retrying, None);
        status.tasks[1].next = Some(at(next));
        status
    };
    let told = seen(vec![
        status(10, ReportedPhase::Waiting, None),
        waits(11, 15),
        waits(12, 15),
        waits(15, 25),
        status(25, ReportedPhase::Running, None),
        waits(26, 30),
    ]);
    assert_eq!(
        told,
        [
            RunUpdate::NewPhase(ReportedPhase::Retrying),
            RunUpdate::Same,
            RunUpdate::NewTry,
            RunUpdate::NewPhase(ReportedPhase::Running),
            RunUpdate::NewPhase(ReportedPhase::Retrying),
        ]
    );
}
