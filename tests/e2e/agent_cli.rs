//! The commands that speak to the agent: what they order, what they show and how
//! they end. The agent's API is the real one; the test plays the daemon behind it.

mod access;
#[allow(dead_code, reason = "tests of the API use the rest")]
#[path = "../../crates/agent/tests/outside/scripted/mod.rs"]
mod scripted;

use std::fs;
use std::path::Path;
use std::process::{Command as Process, Stdio};
use std::time::Duration;

use fairbat_agent::daemon::handle::{CommandAccepted, CommandError, TaskCommand};
use fairbat_agent::status::AgentStatus;
use fairbat_tests::bin::{Fairbat, Running, fairbat_binary};
use fairbat_tests::outcome::Outcome;
use fairbat_tests::poll::wait_until;
use fairbat_tests::workdir::Workdir;
use serde_json::{Value, json};

use self::scripted::{Agent, status, task};

/// How long the command may take to see what was told.
const SOON: Duration = Duration::from_secs(20);

fn fairbat(agent: &Agent, args: &[&str]) -> Fairbat {
    Fairbat::new(Path::new("/"))
        .args(args)
        .env("FAIRBAT_SOCKET", agent.socket())
        .env("TZ", "UTC")
}

fn run(agent: &Agent, args: &[&str]) -> Outcome {
    fairbat(agent, args).run()
}

/// A job that runs, and one that failed last time.
fn night() -> AgentStatus {
    let home = json!({
        "phase": "running", "bytes": 10_737_418_240_u64, "bytes_done": 3_221_225_472_u64,
        "began": "2026-03-02T00:00:00Z", "deadline": "2026-03-02T06:00:00Z",
        "predicted": "2026-03-02T06:20:00Z", "late_s": 1200.0
    });
    let etc = json!({
        "next": "2026-03-02T22:00:00Z",
        "last": last("2026-03-01T22:00:00Z", false, 2)
    });
    status(
        "2026-03-02T01:00:00Z",
        &[task("home", &home), task("etc", &etc)],
    )
}

/// A run that ended half an hour after it began.
fn last(began: &str, ok: bool, failed: u64) -> Value {
    json!({
        "began": began, "ended": began.replace(":00:00Z", ":30:00Z"), "ok": ok, "in_time": true,
        "problem": (!ok).then_some("the store refuses"), "hint": (!ok).then_some("ask it why"),
        "files": {"same": 1, "moved": 2, "deleted": 0, "changed": 0, "failed": failed},
        "failures": (failed > 0)
            .then(|| json!({"path": "a/b", "problem": "permission denied", "hint": null}))
            .into_iter().collect::<Vec<_>>()
    })
}

fn home(phase: &str, last: &Value) -> AgentStatus {
    let members = json!({"phase": phase, "last": last});
    status("2026-03-02T01:00:00Z", &[task("home", &members)])
}

/// Waits until the agent was told something.
fn wait_for_order(agent: &Agent, running: &mut Running) {
    wait_until("an order", SOON, || {
        assert!(running.is_running() || !agent.orders().is_empty());
        !agent.orders().is_empty()
    });
}

#[test]
fn the_status_is_a_table_for_people() {
    let agent = Agent::willing(night());
    let outcome = run(&agent, &["status"]);
    outcome.expect_code(0);
    let lines: Vec<Vec<&str>> = outcome
        .stdout
        .lines()
        .map(|line| {
            line.split("  ")
                .map(str::trim)
                .filter(|c| !c.is_empty())
                .collect()
        })
        .collect();
    let head = ["TASK", "PHASE", "DONE", "RATE", "DEADLINE", "FINISH"];
    assert_eq!(lines[0], head, "{outcome}");
    let home = [
        "home",
        "running",
        "3.00 GiB of 10.00 GiB, 30 %",
        "2.00 MiB/s",
        "06:00",
        "06:20, 20 minutes late",
    ];
    assert_eq!(lines[1], home, "{outcome}");
    assert!(lines[2].contains(&"waiting until 22:00"), "{outcome}");
    for part in [
        "etc: the store refuses",
        "a/b: permission denied",
        "hint: ask it why",
    ] {
        assert!(outcome.stdout.contains(part), "{part}: {outcome}");
    }
    assert!(!outcome.stdout.contains('\x1b'), "{outcome}");
    let one = run(&agent, &["status", "etc"]);
    one.expect_code(0);
    assert!(!one.stdout.contains("home"), "{one}");
    let none = run(&agent, &["status", "hom"]);
    none.expect_code(1).expect_said(&["did you mean \"home\"?"]);
    assert_eq!(none.stdout, "", "{none}");
}

#[test]
fn for_programs_it_is_what_the_api_said() {
    let agent = Agent::willing(night());
    let outcome = run(&agent, &["status", "--json"]);
    outcome.expect_code(0);
    let said = serde_json::to_string(&night()).expect("a status");
    assert_eq!(outcome.stdout, format!("{said}\n"));
    let one = run(&agent, &["status", "--json", "etc"]);
    let [object] = &one.events()[..] else {
        panic!("one object: {one}")
    };
    let mut expected: Value = serde_json::from_str(&said).expect("JSON");
    expected["tasks"].as_array_mut().expect("tasks").remove(0);
    assert_eq!(*object, expected);
}

#[test]
fn watching_shows_each_change_and_ends_with_the_agent() {
    let mut agent = Agent::willing(night());
    let mut people = fairbat(&agent, &["status", "--watch"]).spawn();
    let mut programs = fairbat(&agent, &["status", "--watch", "--json"]).spawn();
    programs.wait_for_event("the first status", |status| {
        status["tasks"][0]["id"] == "home"
    });
    wait_until("the same for people", SOON, || {
        people.stdout().contains("TASK")
    });
    agent.tell(home("paused", &Value::Null));
    programs.wait_for_event("the change", |status| {
        status["tasks"][0]["phase"] == "paused"
    });
    wait_until("the same for people", SOON, || {
        people.is_running() && people.stdout().matches("TASK").count() == 2
    });
    agent.end();
    let people = people.wait();
    people.expect_code(5);
    assert!(people.stderr.contains("agent has ended"), "{people}");
    let blocks: Vec<&str> = people.stdout.split("TASK").collect();
    assert_eq!(blocks.len(), 3, "{people}");
    assert!(blocks[2].contains("paused"), "{people}");
    let programs = programs.wait();
    programs.expect_code(5);
    assert_eq!(programs.events().len(), 2, "{programs}");
}

#[test]
fn a_signal_ends_the_watching() {
    let agent = Agent::willing(night());
    let mut watching = fairbat(&agent, &["status", "--watch", "--json"]).spawn();
    watching.wait_for_event("the first status", |_| true);
    watching.signal("INT");
    watching.wait().expect_code(130);
}

/// What a terminal is sent.
fn on_terminal(agent: &Agent, no_colour: &str) -> String {
    let command = format!("{} status", fairbat_binary().display());
    let output = Process::new("script")
        .args(["-qec", &command, "/dev/null"])
        .env("FAIRBAT_SOCKET", agent.socket())
        .env("TERM", "xterm")
        .env("NO_COLOR", no_colour)
        .output()
        .expect("start script: is the package `bsdutils` installed?");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn colours_are_for_terminals_and_who_wants_them() {
    let agent = Agent::willing(night());
    let coloured = on_terminal(&agent, "");
    assert!(
        coloured.contains("\x1b[31m06:20, 20 minutes late"),
        "{coloured}"
    );
    let plain = on_terminal(&agent, "1");
    assert!(plain.contains("06:20, 20 minutes late"), "{plain}");
    assert!(!plain.contains('\x1b'), "{plain}");
}

#[test]
fn a_terminal_shows_the_change_in_the_place_of_what_was_there() {
    let mut agent = Agent::willing(night());
    let work = Workdir::new();
    let typescript = work.join("typescript");
    let command = format!("{} status --watch", fairbat_binary().display());
    let mut watching = Process::new("script")
        .args(["-qfec", &command])
        .arg(&typescript)
        .env("FAIRBAT_SOCKET", agent.socket())
        .env("TERM", "xterm")
        .stdout(Stdio::null())
        .stdin(Stdio::null())
        .spawn()
        .expect("start script: is the package `bsdutils` installed?");
    let written = || fs::read_to_string(&typescript).unwrap_or_default();
    wait_until("the first status", SOON, || written().contains("push: "));
    agent.tell(home("paused", &Value::Null));
    wait_until("the change", SOON, || written().contains("paused"));
    agent.end();
    let status = watching.wait().expect("it ends");
    let written = written();
    assert_eq!(status.code(), Some(5), "{written}");
    assert_eq!(written.matches("\x1b[2J\x1b[H").count(), 1, "{written}");
    assert_eq!(written.matches("\x1b[H").count(), 2, "{written}");
}

#[test]
fn a_download_is_added_with_absolute_paths() {
    let agent = Agent::willing(night());
    let work = Workdir::new();
    let here = work.path().canonicalize().expect("it is there");
    let add = |args: &[&str]| {
        let outcome = Fairbat::new(&here)
            .arg("add")
            .args(args)
            .arg("https://me:hunter2@h/f")
            .env("FAIRBAT_SOCKET", agent.socket())
            .run();
        outcome.expect_code(0);
        assert!(!outcome.stderr.contains("hunter2"), "{outcome}");
        outcome.stdout
    };
    assert_eq!(add(&[]), "new-1\n");
    assert_eq!(add(&["-d", "iso", "--json"]), "{\"id\":\"new-1\"}\n");
    let moment = "2026-03-02T06:00:00Z";
    add(&["-o", "f", "--deadline", moment]);
    add(&["--deadline", "4h"]);
    let told: Vec<_> = agent
        .orders()
        .into_iter()
        .map(|order| match order {
            TaskCommand::Add {
                url, to, deadline, ..
            } => {
                assert_eq!(url.as_str(), "https://me:hunter2@h/f");
                (to.display().to_string(), deadline)
            }
            other => panic!("{other:?}"),
        })
        .collect();
    let here = here.display();
    assert_eq!(told[0], (format!("{here}/"), None));
    assert_eq!(told[1], (format!("{here}/iso/"), None));
    let deadline = Some(moment.parse().expect("a moment"));
    assert_eq!(told[2], (format!("{here}/f"), deadline));
    assert!(told[3].1.is_some());
}

#[test]
fn of_several_tasks_each_is_told_and_refusals_are_named() {
    let agent = Agent::start(night(), |command| match command {
        TaskCommand::Pause { id } if id == "hom" => Err(CommandError::UnknownTask {
            id: id.clone(),
            nearest: Some("home".to_owned()),
        }),
        TaskCommand::Pause { id } | TaskCommand::Resume { id } => {
            Ok(CommandAccepted { id: id.clone() })
        }
        TaskCommand::Cancel { .. } => Err(CommandError::NotNow("it does not run".to_owned())),
        _ => Err(CommandError::Stopping),
    });
    let paused = run(&agent, &["pause", "hom", "etc"]);
    paused
        .expect_code(3)
        .expect_said(&["did you mean \"home\"?"]);
    assert!(paused.stderr.contains("etc: paused"), "{paused}");
    run(&agent, &["resume", "home", "etc"]).expect_code(0);
    let refused = run(&agent, &["cancel", "--json", "home"]);
    refused.expect_code(1).expect_said(&["it does not run"]);
    assert_eq!(
        refused.events(),
        [json!({"error": "it does not run", "hint": null})]
    );
    run(&agent, &["start", "home"])
        .expect_code(5)
        .expect_said(&["stopping"]);
    let id = |id: &str| id.to_owned();
    let expected = [
        TaskCommand::Pause { id: id("hom") },
        TaskCommand::Pause { id: id("etc") },
        TaskCommand::Resume { id: id("home") },
        TaskCommand::Resume { id: id("etc") },
        TaskCommand::Cancel { id: id("home") },
        TaskCommand::Run {
            job: id("home"),
            accept_unmounted: Vec::new(),
        },
    ];
    assert_eq!(agent.orders(), expected);
}

#[test]
fn a_run_can_be_waited_for() {
    let (good, partly) = (
        last("2026-03-02T01:00:00Z", true, 0),
        last("2026-03-02T01:00:00Z", false, 1),
    );
    let broken = last("2026-03-02T01:00:00Z", false, 0);
    for (phase, end, code, said) in [
        ("waiting", &good, 0, "in step"),
        ("waiting", &partly, 3, "a/b: permission denied"),
        ("retrying", &broken, 5, "try again"),
        ("waiting", &broken, 1, "ask it why"),
    ] {
        let agent = Agent::willing(home("waiting", &last("2026-03-01T01:00:00Z", false, 0)));
        let mut running = fairbat(&agent, &["start", "home", "--wait"]).spawn();
        wait_for_order(&agent, &mut running);
        agent.tell(home("running", &last("2026-03-01T01:00:00Z", false, 0)));
        agent.tell(home(phase, end));
        let outcome = running.wait();
        outcome.expect_code(code).expect_said(&[said]);
        assert_eq!(outcome.stdout, "", "{outcome}");
    }
    let agent = Agent::willing(home("waiting", &Value::Null));
    let mut running = fairbat(&agent, &["start", "home", "--wait", "--json"]).spawn();
    wait_for_order(&agent, &mut running);
    agent.tell(home("waiting", &partly));
    let outcome = running.wait();
    outcome.expect_code(3);
    let [accepted, task] = &outcome.events()[..] else {
        panic!("two objects: {outcome}")
    };
    assert_eq!(*accepted, json!({"id": "home"}));
    assert_eq!(task["last"]["files"]["failed"], 1);
}

#[test]
fn waiting_ends_with_the_agent_and_by_a_signal() {
    let mut agent = Agent::willing(home("waiting", &Value::Null));
    let mut ended = fairbat(&agent, &["start", "home", "--wait"]).spawn();
    wait_for_order(&agent, &mut ended);
    let mut interrupted = fairbat(&agent, &["restore", "home", "--to", "r", "--wait"]).spawn();
    wait_until("both orders", SOON, || agent.orders().len() == 2);
    interrupted.signal("INT");
    let outcome = interrupted.wait();
    outcome.expect_code(130);
    assert!(outcome.stderr.contains("goes on"), "{outcome}");
    agent.end();
    ended.wait().expect_code(5);
    let restored = TaskCommand::Restore {
        job: "home".to_owned(),
        to: "/r".into(),
        setuid: false,
        deadline: None,
    };
    assert_eq!(agent.orders()[1], restored);
}

#[test]
fn a_restore_has_a_name_of_its_own_and_can_be_waited_for() {
    let agent = Agent::willing(home("waiting", &Value::Null));
    let mut running = fairbat(&agent, &["restore", "home", "--to", "/r", "--wait"]).spawn();
    wait_for_order(&agent, &mut running);
    let members =
        json!({"kind": "restore", "phase": "done", "last": last("2026-03-02T01:00:00Z", true, 0)});
    agent.tell(status("2026-03-02T01:00:00Z", &[task("new-1", &members)]));
    let outcome = running.wait();
    outcome.expect_code(0);
    assert_eq!(outcome.stdout, "new-1\n", "{outcome}");
}

#[test]
fn what_is_wrong_on_the_command_line_orders_nothing() {
    let agent = Agent::willing(night());
    for args in [
        &["add"][..],
        &["add", "h/f"],
        &["add", "--deadline", "soon", "http://h/f"],
        &["add", "http://h/f", "http://h/g"],
        &["pause"],
        &["start"],
        &["restore", "home"],
        &["status", "--no-such-flag"],
    ] {
        let outcome = run(&agent, args);
        outcome.expect_code(2);
        assert!(
            outcome.stdout.is_empty() && !outcome.stderr.is_empty(),
            "{outcome}"
        );
    }
    assert_eq!(agent.orders(), []);
}
