use super::*;
use crate::agent::api::{ReportedFailure, ReportedSample};

const PLAIN: TableOptions = TableOptions {
    zone: TimeZone::UTC,
    colours: false,
};

/// The text of what the agent says.
fn shown(json: &str, options: &TableOptions) -> String {
    let status: ReportedStatus = serde_json::from_str(json).expect("a status");
    text(&status, None, options)
}

const NIGHT: &str = r#"{
    "now": "2026-03-02T01:00:00Z",
    "lanes": [
        {"direction": "push", "lever": "pacing", "can_yield": true,
         "sample": {"active": 2, "w": 0.25, "zeta": 1048576, "rate": 2097152}},
        {"direction": "pull", "lever": "none", "can_yield": false, "sample": {"active": 0},
         "guests": 2}
    ],
    "tasks": [
        {"id": "home", "direction": "push", "phase": "running",
         "deadline": "2026-03-02T06:00:00Z", "predicted": "2026-03-02T05:00:00Z", "late_s": 0,
         "bytes": 10737418240, "bytes_done": 3221225472, "files": 9, "files_done": 3},
        {"id": "etc", "direction": "push", "phase": "waiting", "next": "2026-03-02T22:00:00Z",
         "last": {"began": "2026-03-01T22:00:00Z", "ended": "2026-03-01T22:05:00Z", "ok": true,
                  "in_time": true}},
        {"id": "add-1", "direction": "pull", "phase": "retrying",
         "deadline": "2026-03-02T01:30:00Z", "predicted": "2026-03-02T02:10:00Z", "late_s": 2400,
         "last": {"ok": false, "problem": "the server refuses connections",
                  "hint": "is it running?"}},
        {"id": "old", "direction": "pull", "phase": "failed", "files": 4, "files_done": 1,
         "last": {"ended": "2026-01-01T22:05:00Z", "ok": false, "files": {"failed": 4},
                  "failures": [{"path": "a", "problem": "no", "hint": null}, {"path": "b", "problem": "no"},
                               {"path": "c", "problem": "no"}, {"path": "d", "problem": "no"}]}}
    ]
}"#;

#[test]
fn each_task_is_a_line_and_what_went_wrong_is_below() {
    assert_eq!(
        shown(NIGHT, &PLAIN),
        "\
TASK   PHASE                DONE                         RATE        DEADLINE  FINISH
home   running              3.00 GiB of 10.00 GiB, 30 %  2.00 MiB/s  06:00     05:00, 60 minutes early
etc    waiting until 22:00  -                            -           -         Sun 22:05, in time
add-1  retrying             -                            -           01:30     02:10, 40 minutes late
old    failed               1 of 4 files, 25 %           -           -         2026-01-01 22:05, failed

add-1: the server refuses connections
  hint: is it running?

old: 4 files failed
  a: no
  b: no
  c: no

push: 2 connections, 2.00 MiB/s, weight 0.25, 1.00 MiB/s needed
pull: idle; 2 commands take part; cannot yield here (none): see fairbat doctor
"
    );
}

#[test]
fn what_is_tried_again_and_what_the_store_lacks_is_told() {
    let json = r#"{
        "now": "2026-03-02T01:00:00Z",
        "tasks": [
            {"id": "off", "phase": "retrying", "next": "2026-03-02T01:00:29.5Z",
             "retry": {"problem": "cannot connect to h", "hint": "is it running?"},
             "last": {"ok": false, "problem": "not this"}},
            {"id": "docs", "phase": "waiting",
             "check": {"damaged": 5, "damaged_files": ["a", "b\u001b", "c", "d", "e"]}},
            {"id": "etc", "phase": "waiting", "check": {"damaged": 0}}
        ]
    }"#;
    assert_eq!(
        shown(json, &PLAIN),
        "\
TASK  PHASE             DONE  RATE  DEADLINE  FINISH
off   retrying in 30 s  -     -     -         -
docs  waiting           -     -     -         -
etc   waiting           -     -     -         -

off: cannot connect to h
  hint: is it running?

docs: 5 files are missing or damaged in the store
  a
  b\\u{1b}
  c
  hint: the next run sends again what the source still has
"
    );
}

#[test]
fn colours_change_nothing_else() {
    let options = TableOptions {
        colours: true,
        ..PLAIN
    };
    let coloured = shown(NIGHT, &options);
    assert!(coloured.contains("\x1b[31m02:10, 40 minutes late\x1b[0m"));
    let mut plain = coloured;
    for code in ["\x1b[0m", "\x1b[1m", "\x1b[31m", "\x1b[32m"] {
        plain = plain.replace(code, "");
    }
    assert_eq!(plain, shown(NIGHT, &PLAIN));
}

#[test]
fn an_agent_of_another_version_is_understood() {
    let odd = r#"{"tasks": [{"id": "a\u001b[2J", "phase": "dreaming", "news": 1}], "more": {}}"#;
    let text = shown(odd, &PLAIN);
    assert!(text.contains("a\\u{1b}[2J  unknown"), "{text}");
    assert_eq!(shown("{}", &PLAIN), "there are no tasks\n");
}

#[test]
fn runs_that_are_over_say_how_they_were() {
    let at = Moments {
        now: Timestamp::UNIX_EPOCH,
        zone: &TimeZone::UTC,
    };
    for (ok, in_time, late, expected) in [
        (true, None, None, "00:00"),
        (true, Some(true), None, "00:00, in time"),
        (true, Some(false), None, "00:00, late"),
        (true, Some(false), Some(60.0), "00:00, 60 s late"),
        (false, Some(true), None, "00:00, failed"),
    ] {
        let last = ReportedRun {
            ok,
            in_time,
            ..ReportedRun::default()
        };
        assert_eq!(ended(&last, late, &at).0, expected);
    }
}

fn task(id: &str, bytes_done: u64) -> ReportedTask {
    ReportedTask {
        id: id.to_owned(),
        direction: ReportedDirection::Push,
        phase: ReportedPhase::Running,
        bytes_done,
        ..ReportedTask::default()
    }
}

fn status(second: i64, tasks: Vec<ReportedTask>) -> ReportedStatus {
    let lane = |direction, rate| ReportedLane {
        direction,
        sample: ReportedSample {
            rate: Some(rate),
            ..ReportedSample::default()
        },
        ..ReportedLane::default()
    };
    ReportedStatus {
        now: Timestamp::from_second(second).expect("a moment"),
        lanes: vec![
            lane(ReportedDirection::Push, 10.0),
            lane(ReportedDirection::Pull, 20.0),
        ],
        tasks,
        holds: Vec::new(),
        fleet: None,
    }
}

#[test]
fn who_is_alone_has_the_rate_of_the_lane() {
    let mut other = task("b", 0);
    other.direction = ReportedDirection::Pull;
    let waiting = ReportedTask {
        phase: ReportedPhase::Waiting,
        ..task("c", 0)
    };
    let status = status(0, vec![task("a", 0), other, waiting]);
    let rates: Vec<_> = status
        .tasks
        .iter()
        .map(|task| rate_of(task, &status, None))
        .collect();
    assert_eq!(
        rates,
        [Some(TaskRate::Own(10.0)), Some(TaskRate::Own(20.0)), None]
    );
}

#[test]
fn of_several_it_is_measured_or_shared() {
    let before = status(0, vec![task("a", 100), task("b", 7)]);
    let now = status(2, vec![task("a", 116), task("b", 7), task("c", 5)]);
    let rate = |i: usize, before| rate_of(&now.tasks[i], &now, before);
    assert_eq!(rate(0, None), Some(TaskRate::Shared(10.0)));
    assert_eq!(rate(0, Some(&before)), Some(TaskRate::Own(8.0)));
    assert_eq!(rate(1, Some(&before)), Some(TaskRate::Own(0.0)));
    assert_eq!(
        rate(2, Some(&before)),
        Some(TaskRate::Shared(10.0)),
        "it is new"
    );
    assert_eq!(rate(0, Some(&now)), Some(TaskRate::Shared(10.0)), "no time");
}

#[test]
fn another_run_is_not_compared() {
    let before = status(0, vec![task("a", 100), task("b", 0)]);
    let mut again = task("a", 120);
    again.began = Some(Timestamp::from_second(1).expect("a moment"));
    let now = status(2, vec![again, task("b", 0)]);
    let rate = rate_of(&now.tasks[0], &now, Some(&before));
    assert_eq!(rate, Some(TaskRate::Shared(10.0)));
}

#[test]
fn the_only_failure_is_said_once() {
    let failure = |path: &str| ReportedFailure {
        path: path.to_owned(),
        problem: "no".to_owned(),
        hint: None,
    };
    let mut last = ReportedRun {
        problem: Some("a: no".to_owned()),
        hint: Some("ask".to_owned()),
        failures: vec![failure("a")],
        ..ReportedRun::default()
    };
    assert_eq!(problem(&last), "a: no");
    assert_eq!(details(&last), ["hint: ask"]);
    last.problem = Some("2 files failed, the first of them a: no".to_owned());
    last.failures.push(failure("b"));
    assert_eq!(details(&last), ["a: no", "b: no", "hint: ask"]);
}

#[test]
fn a_lane_tells_of_its_stream_while_it_uses_connections() {
    let lane = |active: u64, stream: &str| {
        let json = format!(
            r#"{{"now": "2026-03-02T01:00:00Z", "tasks": [], "lanes": [{{"direction": "pull",
                "can_yield": true, "sample": {{"active": {active}, "w": 0.02, "rate": 1048576}},
                "stream": {stream}}}]}}"#
        );
        let text = shown(&json, &PLAIN);
        text.lines().last().unwrap_or_default().to_owned()
    };
    let busy = r#"{"active": 1, "m": 1.08, "n": 3.6, "tau": 5, "w": 1.0}"#;
    assert_eq!(
        lane(1, busy),
        "pull: 1 connection, 1.00 MiB/s, 1 of the stream, weight 1.00, m 1.08, n 3.6"
    );
    assert_eq!(
        lane(3, busy),
        "pull: 3 connections, 1.00 MiB/s, weight 0.02, 1 of the stream, weight 1.00, m 1.08, n 3.6"
    );
    let idle = r#"{"active": 0, "m": 0.2, "n": 0, "tau": 5, "w": 1.0}"#;
    assert_eq!(lane(1, idle), "pull: 1 connection, 1.00 MiB/s, weight 0.02");
}

#[test]
fn what_is_held_of_others_has_a_line_each() {
    let line = |hold: &str| {
        let json = format!(r#"{{"now": "2026-03-02T01:00:00Z", "holds": [{hold}]}}"#);
        let text = shown(&json, &PLAIN);
        text.lines().last().unwrap_or_default().to_owned()
    };
    let busy = r#"{"name": "ollama.service", "phase": "holding", "connections": 16, "w": 0.314,
        "rate": 2097152, "zeta": 1048576, "late_s": 900}"#;
    assert_eq!(
        line(busy),
        "ollama.service: 16 connections, 2.00 MiB/s, weight 0.31, 1.00 MiB/s needed, probably 15 \
         minutes late"
    );
    assert_eq!(line(r#"{"name": "a", "phase": "holding"}"#), "a: idle");
    let off = line(r#"{"name": "a", "phase": "off"}"#);
    assert!(off.contains("fairbat-hold.service does not run"), "{off}");
}
