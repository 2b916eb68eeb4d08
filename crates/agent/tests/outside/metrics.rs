//! What `/metrics` tells, and whether rules, dashboard and description speak of the
//! same.

use std::collections::BTreeSet;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::scene::{at, status, task};
use fairbat::machine::LaneDirection;
use fairbat_agent::metrics::{NAMES, render};
use fairbat_agent::status::{AgentStatus, TaskKind, TaskPhase, TaskStatus, Totals};

/// The value of a series, written as it is told.
fn value(text: &str, series: &str) -> Option<f64> {
    let found = text.lines().find_map(|line| {
        let (name, value) = line.rsplit_once(' ')?;
        (sorted(name) == sorted(series)).then_some(value)
    });
    found.map(|value| value.parse().expect("a number"))
}

/// A series with its labels in one order.
fn sorted(series: &str) -> (String, BTreeSet<String>) {
    let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
    let labels = labels.trim_end_matches('}').split(',');
    (name.into(), labels.map(str::to_owned).collect())
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    let path = repository().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Everything that begins like a metric of ours.
fn names_in(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| word.starts_with("fairbat_")).collect()
}

/// The metrics that have a series.
fn told(text: &str) -> BTreeSet<&str> {
    let series = text.lines().filter(|line| !line.starts_with('#'));
    series.flat_map(names_in).collect()
}

fn only(task: TaskStatus) -> AgentStatus {
    AgentStatus {
        tasks: vec![task],
        ..status(0)
    }
}

#[test]
fn every_metric_is_told_with_help_and_type() {
    let text = render(&status(0));
    assert_eq!(told(&text), NAMES.iter().copied().collect());
    for name in NAMES {
        let heads = |head: &str| {
            let head = format!("# {head} {name} ");
            text.lines().filter(|line| line.starts_with(&head)).count()
        };
        assert_eq!((heads("HELP"), heads("TYPE")), (1, 1), "{name}");
    }
}

#[test]
fn values_are_those_of_the_status_in_base_units() {
    let text = render(&status(0));
    let expected = [
        (
            "fairbat_bytes_total{task=\"home\",direction=\"push\"}",
            1_912_400_000_000.0,
        ),
        (
            "fairbat_bytes_total{task=\"(added)\",direction=\"pull\"}",
            3_120_000_000.0,
        ),
        (
            "fairbat_retries_total{task=\"home\",reason=\"network\"}",
            14.0,
        ),
        (
            "fairbat_files_total{task=\"home\",outcome=\"changed\"}",
            7.0,
        ),
        (
            "fairbat_runs_total{task=\"home\",outcome=\"succeeded\"}",
            9.0,
        ),
        ("fairbat_late_runs_total{task=\"home\"}", 1.0),
        ("fairbat_check_damaged_files{task=\"home\"}", 1.0),
        (
            "fairbat_check_completed_timestamp_seconds{task=\"home\"}",
            1_774_224_000.0,
        ),
        ("fairbat_task_running{task=\"home\"}", 1.0),
        ("fairbat_task_running{task=\"mail\"}", 1.0),
        ("fairbat_task_running{task=\"etc\"}", 0.0),
        ("fairbat_task_late_seconds{task=\"mail\"}", 1_500.0),
        ("fairbat_task_late_seconds{task=\"home\"}", 0.0),
        (
            "fairbat_task_remaining_bytes{task=\"home\"}",
            102_300_000_000.0,
        ),
        (
            "fairbat_task_deadline_timestamp_seconds{task=\"home\"}",
            1_774_414_800.0,
        ),
        (
            "fairbat_lane_yielded_seconds_total{direction=\"push\"}",
            88_204.0,
        ),
        (
            "fairbat_lane_cdg_backoff_scale_seconds{direction=\"push\"}",
            0.004,
        ),
        (
            "fairbat_lane_stream_waiting_transfers{direction=\"pull\"}",
            3.5,
        ),
        (
            "fairbat_lane_stream_target_transfers{direction=\"pull\"}",
            5.0,
        ),
        (
            "fairbat_lane_stream_connection_limit{direction=\"pull\"}",
            1.25,
        ),
        (
            "fairbat_lane_stream_active_connections{direction=\"pull\"}",
            2.0,
        ),
        ("fairbat_lane_stream_weight{direction=\"pull\"}", 0.75),
        ("fairbat_lane_can_yield{direction=\"pull\"}", 1.0),
        (
            "fairbat_lane_lever_info{direction=\"push\",lever=\"congestion-control\"}",
            1.0,
        ),
        ("fairbat_build_info{version=\"0.1.0\"}", 1.0),
    ];
    for (series, expected) in expected {
        assert_eq!(value(&text, series), Some(expected), "{series}\n{text}");
    }
}

#[test]
fn what_is_not_known_is_absent() {
    let mut status = only(task("home", TaskKind::Job, LaneDirection::Push));
    for lane in &mut status.lanes {
        let sample = &mut lane.sample;
        (sample.zeta, sample.rtt_s, sample.queue_s) = (None, Some(f64::NAN), None);
        lane.g_ms = None;
    }
    let text = render(&status);
    let told = told(&text);
    for absent in [
        "fairbat_lane_demanded_rate_bytes_per_second",
        "fairbat_lane_rtt_seconds",
        "fairbat_lane_queue_seconds",
        "fairbat_lane_cdg_backoff_scale_seconds",
        "fairbat_task_deadline_timestamp_seconds",
        "fairbat_task_predicted_finish_timestamp_seconds",
        "fairbat_task_late_seconds",
        "fairbat_task_last_success_timestamp_seconds",
    ] {
        assert!(!told.contains(absent), "{absent}\n{text}");
    }
    assert!(!text.contains("task=\"mail\""), "{text}");
    assert_eq!(
        value(&text, "fairbat_task_running{task=\"home\"}"),
        Some(0.0)
    );
}

#[test]
fn downloads_have_one_label_and_count_when_they_are_listed_no_longer() {
    let bytes = "fairbat_bytes_total{task=\"(added)\",direction=\"pull\"}";
    let with = |added, tasks| {
        render(&AgentStatus {
            added,
            tasks,
            ..status(0)
        })
    };
    assert_eq!(value(&with(None, Vec::new()), bytes), None);
    let added = Totals {
        bytes: 110,
        ..Totals::default()
    };
    let download = task("add-2", TaskKind::Download, LaneDirection::Pull);
    let text = with(Some(added), vec![download]);
    assert_eq!(value(&text, bytes), Some(110.0));
    assert!(!text.contains("add-"), "{text}");
    assert_eq!(value(&with(Some(added), Vec::new()), bytes), Some(110.0));
}

#[test]
fn of_downloads_the_dates_are_those_of_the_latest_that_is_open() {
    let due = |id: &str, deadline: &str, late_s, phase| TaskStatus {
        deadline: Some(at(deadline)),
        late_s,
        phase,
        ..task(id, TaskKind::Download, LaneDirection::Pull)
    };
    let mut all = only(due(
        "add-1",
        "1970-01-01T00:10:00Z",
        Some(0.0),
        TaskPhase::Running,
    ));
    all.tasks.extend([
        due(
            "add-2",
            "1970-01-01T00:20:00Z",
            Some(0.0),
            TaskPhase::Running,
        ),
        due(
            "add-3",
            "1970-01-01T00:05:00Z",
            Some(900.0),
            TaskPhase::Done,
        ),
    ]);
    let deadline = "fairbat_task_deadline_timestamp_seconds{task=\"(added)\"}";
    assert_eq!(value(&render(&all), deadline), Some(600.0));
    all.tasks[1].late_s = Some(60.0);
    let text = render(&all);
    assert_eq!(value(&text, deadline), Some(1_200.0));
    assert_eq!(
        value(&text, "fairbat_task_late_seconds{task=\"(added)\"}"),
        Some(60.0)
    );
}

#[test]
fn nothing_of_urls_files_or_messages_is_told() {
    let text = render(&status(0));
    for secret in [
        "mirror.example.org",
        "/srv",
        "mbox",
        "Insufficient",
        "offsite",
    ] {
        assert!(!text.contains(secret), "{secret}\n{text}");
    }
}

#[test]
fn rules_dashboard_and_description_know_the_same_metrics() {
    let names: BTreeSet<_> = NAMES.iter().copied().collect();
    let dashboard = read("dist/grafana/fairbat.json");
    let parsed: serde_json::Value = serde_json::from_str(&dashboard).expect("JSON");
    let variables: Vec<_> = parsed["templating"]["list"]
        .as_array()
        .expect("variables")
        .iter()
        .map(|variable| variable["name"].as_str().expect("a name"))
        .collect();
    assert_eq!(variables, ["datasource", "instance", "task"]);
    let panels = parsed["panels"].as_array().expect("panels");
    for panel in panels.iter().filter(|panel| panel["type"] != "row") {
        let title = &panel["title"];
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{title}");
        let targets = panel["targets"].as_array().expect("targets");
        assert!(!targets.is_empty(), "{title}");
        for target in targets {
            let expression = target["expr"].as_str().expect("an expression");
            assert!(!names_in(expression).is_empty(), "{title}: {expression}");
        }
    }
    for path in [
        "dist/grafana/fairbat.json",
        "dist/prometheus/fairbat.rules.yml",
        "dist/prometheus/fairbat.rules.test.yml",
        "docs/metrics.md",
    ] {
        let text = read(path);
        let unknown: Vec<_> = names_in(&text).difference(&names).copied().collect();
        assert!(unknown.is_empty(), "{path}: {unknown:?}");
    }
    let description = read("docs/metrics.md");
    let untold: Vec<_> = names.difference(&names_in(&description)).copied().collect();
    assert!(untold.is_empty(), "docs/metrics.md lacks {untold:?}");
}

/// What promtool says, with this on its standard input; `None` without promtool.
fn promtool(args: &[&str], input: &str) -> Option<(bool, String)> {
    let child = Command::new("promtool")
        .args(args)
        .current_dir(repository().join("dist/prometheus"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            eprintln!("SKIPPED: promtool is not installed (Debian package prometheus)");
            return None;
        }
        Err(error) => panic!("promtool: {error}"),
    };
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(input.as_bytes()).expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    Some((output.status.success(), said))
}

#[test]
fn promtool_has_nothing_to_say_of_the_metrics() {
    let text = render(&status(0));
    if let Some((is_good, said)) = promtool(&["check", "metrics"], &text) {
        assert!(is_good && said.is_empty(), "{said}\n{text}");
    }
}

#[test]
fn promtool_agrees_with_the_rules() {
    for args in [
        ["check", "rules", "fairbat.rules.yml"],
        ["test", "rules", "fairbat.rules.test.yml"],
    ] {
        if let Some((is_good, said)) = promtool(&args, "") {
            assert!(is_good, "{said}");
        }
    }
}
