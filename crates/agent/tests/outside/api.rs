//! The API as another program sees it: curl on a real socket. The test plays the
//! daemon.

/// The documents as `fairbat` reads them.
#[allow(dead_code, reason = "the command uses the rest")]
#[path = "../../../cli/src/agent/api.rs"]
mod documents;

use std::process::Command as Process;

use fairbat_agent::daemon::handle::{CommandError, TaskCommand};
use fairbat_agent::status::AgentStatus;
use serde_json::{Value, json};

use crate::scripted::{Agent, status, task};

/// What curl got.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    #[track_caller]
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error} in {}", self.body))
    }

    /// The error and the hint of a refusal.
    #[track_caller]
    fn refusal(&self) -> (String, String) {
        let document = self.json();
        let text = |name: &str| document[name].as_str().unwrap_or_default().to_owned();
        assert!(document.get("hint").is_some(), "{document}");
        (text("error"), text("hint"))
    }
}

fn curl(agent: &Agent, path: &str, args: &[&str]) -> Answer {
    let output = Process::new("curl")
        .args(["-sS", "--max-time", "20", "-D", "-", "--unix-socket"])
        .arg(agent.socket())
        .args(args)
        .arg(format!("http://agent{path}"))
        .output()
        .expect("start curl: is the package `curl` installed?");
    let text = String::from_utf8(output.stdout).expect("answers are UTF-8");
    let errors = String::from_utf8_lossy(&output.stderr);
    let (head, body) = text
        .split_once("\r\n\r\n")
        .unwrap_or_else(|| panic!("{path}: {text:?} {errors}"));
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    Answer {
        status: status.unwrap_or_else(|| panic!("{path}: {head}")),
        head: head.to_lowercase(),
        body: body.to_owned(),
    }
}

fn night() -> AgentStatus {
    let home = json!({"phase": "running", "bytes": 10, "bytes_done": 3});
    status("2026-03-02T01:00:00Z", &[task("home", &home)])
}

#[test]
fn the_status_is_told_as_it_is() {
    let agent = Agent::willing(night());
    let answer = curl(&agent, "/v1/status", &[]);
    assert_eq!(answer.status, 200);
    assert!(answer.head.contains("content-type: application/json"));
    let told: AgentStatus = serde_json::from_value(answer.json()).expect("a status");
    assert_eq!(told, night());
    assert!(answer.body.ends_with("}\n"), "a line of its own");
}

#[test]
fn every_order_reaches_the_daemon() {
    let agent = Agent::willing(night());
    let moment = "2026-03-02T06:00:00Z";
    let orders = [
        ("/v1/run", json!({"job": "home"}), "home"),
        ("/v1/pause", json!({"id": "home"}), "home"),
        ("/v1/resume", json!({"id": "home"}), "home"),
        ("/v1/cancel", json!({"id": "home"}), "home"),
        (
            "/v1/add",
            json!({"url": "https://me:hunter2@h/f", "to": "/srv/", "deadline": moment}),
            "new-1",
        ),
        ("/v1/restore", json!({"job": "home", "to": "/r"}), "new-1"),
    ];
    for (path, body, id) in orders {
        let answer = curl(&agent, path, &["-d", &body.to_string()]);
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        assert_eq!(answer.json(), json!({"id": id}), "{path}");
    }
    let moment = moment.parse().expect("a moment");
    let home = || "home".to_owned();
    let expected = [
        TaskCommand::Run {
            job: home(),
            accept_unmounted: Vec::new(),
        },
        TaskCommand::Pause { id: home() },
        TaskCommand::Resume { id: home() },
        TaskCommand::Cancel { id: home() },
        TaskCommand::Add {
            url: "https://me:hunter2@h/f".parse().expect("a URL"),
            mirrors: Vec::new(),
            checksum: None,
            to: "/srv/".into(),
            deadline: Some(moment),
        },
        TaskCommand::Restore {
            job: home(),
            to: "/r".into(),
            setuid: false,
            deadline: None,
        },
    ];
    assert_eq!(agent.orders(), expected);
}

#[test]
fn refusals_say_what_and_what_to_do() {
    let agent = Agent::start(night(), |command| {
        Err(match command {
            TaskCommand::Run { job, .. } => CommandError::UnknownTask {
                id: job.clone(),
                nearest: Some("home".to_owned()),
            },
            TaskCommand::Pause { id } => CommandError::UnknownTask {
                id: id.clone(),
                nearest: None,
            },
            TaskCommand::Resume { .. } => CommandError::NotNow("it is not paused".to_owned()),
            TaskCommand::Cancel { .. } => CommandError::Stopping,
            TaskCommand::Add { url, .. } => CommandError::Impossible(format!("{url}: no room")),
            TaskCommand::Check { .. } | TaskCommand::Restore { .. } => {
                CommandError::Impossible("it is a pull".to_owned())
            }
        })
    });
    let add = r#"{"url":"https://me:hunter2@h/f","to":"/srv/"}"#;
    for (path, body, status, error, hint) in [
        ("run", r#"{"job":"hom"}"#, 404, "\"hom\"", "\"home\""),
        ("pause", r#"{"id":"x"}"#, 404, "\"x\"", "status"),
        ("resume", r#"{"id":"x"}"#, 409, "not paused", ""),
        ("cancel", r#"{"id":"x"}"#, 503, "stopping", "again"),
        ("add", add, 400, "https://h/f: no room", ""),
        ("restore", r#"{"job":"x","to":"/"}"#, 400, "a pull", ""),
        ("check", r#"{"job":"x"}"#, 400, "a pull", ""),
    ] {
        let answer = curl(&agent, &format!("/v1/{path}"), &["-d", body]);
        assert_eq!(answer.status, status, "{path}");
        let said = answer.refusal();
        assert!(said.0.contains(error), "{path}: {said:?}");
        assert!(said.1.contains(hint), "{path}: {said:?}");
        assert!(!answer.body.contains("hunter2"), "{path}: {said:?}");
    }
    assert_eq!(agent.orders().len(), 7);
}

#[test]
fn what_makes_no_sense_does_not_reach_the_daemon() {
    let agent = Agent::willing(night());
    let large = format!("{{\"job\":\"{}\"}}", "x".repeat(65_536));
    let file = agent.socket().with_file_name("huge");
    std::fs::write(&file, vec![b' '; 3_000_000]).expect("a writable directory");
    let huge = format!("@{}", file.display());
    let chunked = "Transfer-Encoding: chunked";
    for (path, args, status, error) in [
        ("/", &[][..], 404, "nothing at this path"),
        ("/v1/statu", &[], 404, "nothing at this path"),
        ("/v1/status", &["-d", "{}"], 405, "GET only"),
        ("/v1/run", &[], 405, "POST only"),
        ("/v1/run", &["-X", "PUT", "-d", "{}"], 405, "POST only"),
        ("/v1/status?watch=1", &[], 400, "query"),
        ("/v1/run?watch", &["-d", "{}"], 400, "query"),
        ("/v1/run", &["-d", "{"], 400, "not JSON"),
        ("/v1/run", &["-d", r#"{"jobs":"a"}"#], 400, "`job`"),
        (
            "/v1/run",
            &["-d", r#"{"job":"a","now":1}"#],
            400,
            "no member `now`",
        ),
        ("/v1/run", &["-d", &large], 413, "65536 bytes"),
        (
            "/v1/run",
            &["-H", chunked, "-d", &large],
            413,
            "65536 bytes",
        ),
        ("/v1/run", &["--data-binary", &huge], 413, "65536 bytes"),
    ] {
        let answer = curl(&agent, path, args);
        let said = answer.refusal();
        assert_eq!(answer.status, status, "{path}: {said:?}");
        assert!(said.0.contains(error), "{path}: {said:?}");
        let allow = match error {
            "GET only" => Some("allow: get"),
            "POST only" => Some("allow: post"),
            _ => None,
        };
        let line = answer.head.lines().find(|line| line.starts_with("allow:"));
        assert_eq!(line, allow, "{path}");
    }
    assert_eq!(agent.orders(), []);
}

#[test]
fn the_history_is_an_array_of_samples() {
    let agent = Agent::willing(night());
    agent.tell(night());
    // Once what was told is the status, it is in the history as well.
    for lane in ["push", "pull"] {
        let samples = loop {
            let answer = curl(&agent, &format!("/v1/history/{lane}"), &[]);
            match answer.json() {
                Value::Array(samples) if !samples.is_empty() => break samples,
                Value::Array(_) => continue,
                other => panic!("{other}"),
            }
        };
        assert_eq!(samples.len(), 1);
        assert_eq!(samples[0]["rate"], 2_097_152.0);
        assert_eq!(samples[0]["queue_s"], Value::Null);
    }
    assert_eq!(curl(&agent, "/v1/history/up", &[]).status, 404);
}

/// Every member that `fairbat` reads is there, under its name and with its value.
#[test]
fn the_command_reads_what_the_agent_says() {
    let last = json!({
        "began": "2026-03-01T22:00:00Z", "ended": "2026-03-01T23:00:00.25Z", "ok": false,
        "in_time": false, "problem": "it broke", "hint": "mend it",
        "files": {"same": 1, "moved": 2, "deleted": 3, "changed": 4, "failed": 5},
        "failures": [
            {"path": "a", "problem": "b", "hint": "c"}, {"path": "d", "problem": "e", "hint": null}
        ]
    });
    let phases = [
        "waiting", "scanning", "running", "retrying", "paused", "done", "failed",
    ];
    let tasks: Vec<Value> = phases
        .iter()
        .map(|phase| {
            let members = json!({
                "phase": phase, "direction": "pull", "next": "2026-03-03T01:00:00Z",
                "began": "2026-03-02T00:00:00Z", "deadline": "2026-03-02T06:00:00Z",
                "predicted": "2026-03-02T07:00:00Z", "late_s": 3600.0, "files": 6,
                "files_done": 7, "bytes": 8, "bytes_done": 9, "last": last
            });
            task(phase, &members)
        })
        .collect();
    let told = status("2026-03-02T01:00:00Z", &tasks);
    let told = serde_json::to_value(&told).expect("a status");
    let read: documents::ReportedStatus =
        serde_json::from_value(told.clone()).expect("it is understood");
    let again = serde_json::to_value(&read).expect("it is written");
    let compared = assert_within(&again, &told, "status");
    // Of a lane 12 values are read, of a task 31; there is no site.
    assert_eq!(compared, 2 + 2 * 12 + phases.len() * 31);
}

/// Panics unless each value in `part` is that of `whole`; returns how many there
/// are.
fn assert_within(part: &Value, whole: &Value, at: &str) -> usize {
    match (part, whole) {
        (Value::Object(part), Value::Object(_)) => part
            .iter()
            .map(|(name, value)| {
                let at = format!("{at}.{name}");
                let whole = whole
                    .get(name)
                    .unwrap_or_else(|| panic!("{at} is not told"));
                assert_within(value, whole, &at)
            })
            .sum(),
        (Value::Array(part), Value::Array(all)) => {
            assert_eq!(part.len(), all.len(), "{at}");
            part.iter()
                .zip(all)
                .map(|(value, other)| assert_within(value, other, at))
                .sum()
        }
        _ => {
            assert_eq!(part, whole, "{at}");
            1
        }
    }
}
