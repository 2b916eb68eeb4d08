//! `--progress-from`: the command tells how far along it is, and its output passes unchanged.

use std::time::Duration;

use fairbat_tests::nginx::Nginx;
use fairbat_tests::poll::wait_until;
use fairbat_tests::workdir::Workdir;

use super::{FILE, events, report, run, slow_server};

/// Flags of a run with a deadline far away.
const FLAGS: [&str; 5] = [
    "--include-local",
    "--deadline",
    "1h",
    "--progress-from",
    "restic-json",
];

/// A shell that says, as restic does, that half of all is done when it has loaded a file.
fn half_done(nginx: &Nginx) -> String {
    format!(
        "curl -sS -o file {}; echo '{{\"message_type\":\"status\",\"percent_done\":0.5}}'; sleep 2; \
         echo the end; exit 3",
        nginx.url("file")
    )
}

#[test]
fn what_the_command_tells_makes_the_plan_and_its_output_passes() {
    let (nginx, work) = (slow_server(), Workdir::new());
    let script = half_done(&nginx);
    let outcome = run(&work, &FLAGS, &["sh", "-c", &script]).run();
    outcome.expect_code(3);
    assert!(outcome.stderr.contains("until it tells"), "{outcome}");
    let expected = "{\"message_type\":\"status\",\"percent_done\":0.5}\nthe end\n";
    assert_eq!(outcome.stdout, expected);
    assert!(report(&work)["bytes_received"].as_u64() > Some(FILE.len() / 2));
    let all = events(work.path());
    let control = |event: &&serde_json::Value| event["event"] == "control";
    let mut samples = all.iter().filter(control);
    let first = samples.next().expect("a sample");
    assert!(first["bytes_total"].is_null(), "{first}");
    assert_eq!(first["w"], 0.5, "the floor: {first}");
    let last = samples.next_back().expect("a sample");
    let (total, done) = (&last["bytes_total"], &last["bytes_done"]);
    assert_eq!(total.as_u64(), done.as_u64().map(|done| 2 * done), "{last}");
    assert!(last["w"].as_f64() < Some(0.5), "{last}");
}

#[test]
fn a_great_deal_of_output_is_whole_when_fairbat_ends() {
    let work = Workdir::new();
    let outcome = run(&work, &FLAGS, &["seq", "300000"]).run();
    outcome.expect_code(0);
    assert_eq!(outcome.stdout.lines().count(), 300_000);
    assert!(outcome.stdout.ends_with("\n300000\n"));
}

#[test]
fn a_command_hears_that_nobody_reads_and_goes_on_without_the_second_process() {
    let work = Workdir::new();
    let script = "fairbat=$1; shift; $fairbat \"$@\" yes | head -n 1";
    let program = fairbat_tests::bin::fairbat_binary();
    let words = [
        "run",
        "--quiet",
        "--deadline",
        "1h",
        "--progress-from",
        "rsync",
        "--",
    ];
    let begun = std::process::Command::new("sh")
        .args(["-c", script, "sh"])
        .arg(program)
        .args(words)
        .current_dir(work.path())
        .output();
    assert_eq!(begun.expect("start sh").stdout, b"y\n");

    let script = "echo before; touch ready; sleep 2; echo after";
    let running = run(&work, &FLAGS, &["sh", "-c", script]).spawn();
    wait_until("the command", Duration::from_secs(10), || {
        work.path().join("ready").exists()
    });
    let front = running.id().to_string();
    let killed = std::process::Command::new("pkill")
        .args(["-KILL", "-P", &front])
        .status();
    assert!(killed.expect("start pkill").success());
    let outcome = running.wait();
    outcome.expect_code(0);
    assert_eq!(outcome.stdout, "before\nafter\n");
}
