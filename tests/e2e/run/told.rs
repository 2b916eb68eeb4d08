//! `--progress-from`: the command tells how far along it is, and its output passes unchanged.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fairbat_tests::bin::fairbat_binary;
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
        "curl -sS -o file {}; echo '{{\"message_type\":\"status\",\"percent_done\":0.5}}'; sleep 5; \
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

/// A shell whose pipeline begins with `fairbat run` of what follows the first word.
fn pipeline(work: &Workdir, rest: &str, command: &[&str]) -> Child {
    let script = format!("fairbat=$1; shift; $fairbat \"$@\" {rest}");
    Command::new("sh")
        .args(["-c", &script, "sh"])
        .arg(fairbat_binary())
        .args([
            "run",
            "--quiet",
            "--deadline",
            "1h",
            "--progress-from",
            "rsync",
            "--",
        ])
        .args(command)
        .current_dir(work.path())
        .stdout(Stdio::piped())
        .spawn()
        .expect("start sh")
}

fn said(shell: Child) -> String {
    let output = shell.wait_with_output().expect("sh ends");
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn what_goes_on_in_the_background_is_passed_on_to_its_end() {
    let work = Workdir::new();
    let command = ["sh", "-c", "(sleep 1; seq 300000) &"];
    assert_eq!(said(pipeline(&work, "| wc -l", &command)).trim(), "300000");
}

#[test]
fn a_command_hears_that_nobody_reads() {
    let work = Workdir::new();
    assert_eq!(said(pipeline(&work, "| head -n 1", &["yes"])), "y\n");
    // Without the first process too, which is the only child of the shell with a child.
    let script = "echo $PPID >worker; touch ready; while [ ! -e go ]; do sleep 0.1; done; yes; \
                  touch over";
    let command = ["sh", "-c", script];
    let shell = pipeline(
        &work,
        "| { while [ ! -e go ]; do sleep 0.1; done; head -n 1; }",
        &command,
    );
    wait_until("the command", Duration::from_secs(10), || {
        work.path().join("ready").exists()
    });
    let worker = std::fs::read_to_string(work.path().join("worker")).expect("a number");
    let front = std::fs::read_to_string(format!("/proc/{}/stat", worker.trim())).expect("it runs");
    let front = front.split(' ').nth(3).expect("its parent").to_owned();
    let killed = Command::new("kill").args(["-KILL", &front]).status();
    assert!(killed.expect("start kill").success());
    std::fs::write(work.path().join("go"), "").expect("write a file");
    assert_eq!(said(shell), "y\n");
    wait_until("the command to end", Duration::from_secs(10), || {
        work.path().join("over").exists()
    });
}

#[test]
fn without_the_second_process_the_first_one_passes_it_on() {
    let work = Workdir::new();
    let script = "echo before; touch ready; while [ -e ready ] && [ ! -e go ]; do sleep 0.1; done; echo after";
    let running = run(&work, &FLAGS, &["sh", "-c", script]).spawn();
    wait_until("the command", Duration::from_secs(10), || {
        work.path().join("ready").exists()
    });
    let front = running.id().to_string();
    let killed = Command::new("pkill").args(["-KILL", "-P", &front]).status();
    assert!(killed.expect("start pkill").success());
    std::fs::write(work.path().join("go"), "").expect("write a file");
    let outcome = running.wait();
    outcome.expect_code(0);
    assert_eq!(outcome.stdout, "before\nafter\n");
}
