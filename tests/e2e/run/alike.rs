//! Exit status, signals, streams and words are those of the command.

use std::process::{Command, Stdio};
use std::time::Duration;

use fairbat_tests::bin::{Fairbat, fairbat_binary};
use fairbat_tests::poll::wait_until;
use fairbat_tests::workdir::Workdir;

use super::{assert_said, run};

fn shell(work: &Workdir, script: &str) -> Fairbat {
    run(work, &[], &["sh", "-c", script])
}

#[test]
fn the_exit_status_is_that_of_the_command() {
    let work = Workdir::new();
    for status in [0, 1, 3, 77, 130, 255] {
        shell(&work, &format!("exit {status}"))
            .run()
            .expect_code(status);
    }
}

#[test]
fn a_signal_that_ends_the_command_ends_fairbat_too() {
    let work = Workdir::new();
    for (name, number) in [("TERM", 15), ("KILL", 9), ("SEGV", 11), ("USR1", 10)] {
        let outcome = shell(&work, &format!("kill -{name} $$")).run();
        assert_eq!(outcome.signal, Some(number), "{outcome}");
    }
}

#[test]
fn signals_are_passed_on_once() {
    for name in ["INT", "TERM", "HUP", "QUIT", "USR1", "USR2"] {
        let work = Workdir::new();
        let script = format!(
            "trap 'echo {name} >> heard' {name}; touch ready; while [ ! -s heard ]; do sleep 0.05; \
             done; sleep 0.3; exit 5"
        );
        let mut running = run(&work, &[], &["sh", "-c", &script]).spawn();
        wait_until("the trap is set", Duration::from_secs(20), || {
            work.join("ready").exists()
        });
        running.signal(name);
        running.wait().expect_code(5);
        let heard = std::fs::read_to_string(work.join("heard")).expect("a signal came");
        assert_eq!(heard, format!("{name}\n"));
    }
}

#[test]
fn a_command_that_is_not_there_or_cannot_be_run_has_the_codes_of_shells() {
    let work = Workdir::new();
    let missing = run(&work, &[], &["no-such-command"]).run();
    missing.expect_code(127).expect_said(&["no-such-command"]);
    std::fs::write(work.join("data"), "not a program").expect("write a file");
    run(&work, &[], &["./data"]).run().expect_code(126);
}

#[test]
fn words_streams_and_directory_are_the_commands() {
    let work = Workdir::new();
    let script = "cat; pwd; printf '<%s>' \"$@\"; echo error >&2";
    let words = ["sh", "-c", script, "name", "--json", "a b", "", "--", "-q"];
    let outcome = run(&work, &[], &words).stdin("input\n").run();
    outcome.expect_code(0);
    assert!(outcome.stderr.contains("error\n"), "{outcome}");
    let directory = work.path().canonicalize().expect("a directory");
    let expected = format!("input\n{}\n<--json><a b><><--><-q>", directory.display());
    assert_said(&outcome, &expected);
}

#[test]
fn two_lines_on_standard_error_are_all_it_says_and_quiet_leaves_them_out() {
    let work = Workdir::new();
    let outcome = shell(&work, "echo data").run();
    assert_said(&outcome, "data\n");
    assert_eq!(outcome.stderr.lines().count(), 2, "{outcome}");
    let quiet = run(&work, &["--quiet"], &["echo", "data"]).run();
    assert_eq!(
        (quiet.stdout.as_str(), quiet.stderr.as_str()),
        ("data\n", "")
    );
}

#[test]
fn what_goes_on_in_the_background_does_not_delay_the_end_and_holds_no_stream() {
    let script = "setsid sleep 30 </dev/null >/dev/null 2>&1 & echo $!; exit 4";
    // The end of its streams is waited for as well.
    let work = Workdir::new();
    let outcome = shell(&work, script).timeout(Duration::from_secs(20)).run();
    outcome.expect_code(4);
    let sleeper = outcome.stdout.trim();
    let killed = Command::new("kill").arg(sleeper).status();
    assert!(
        killed.expect("start kill").success(),
        "it has ended: {outcome}"
    );
}

#[test]
fn a_pipeline_ends_as_it_does_without_fairbat() {
    let work = Workdir::new();
    let outcome = shell(&work, "yes | head -n 3").run();
    outcome.expect_code(0);
    assert_said(&outcome, "y\ny\ny\n");
}

#[test]
fn ctrl_c_at_a_terminal_reaches_the_command_once() {
    let work = Workdir::new();
    let inner = "trap \"echo caught >> heard\" INT; touch ready; while [ ! -s heard ]; do \
                 sleep 0.05; done; sleep 0.3; exit 6";
    let binary = fairbat_binary().display();
    // Without exec, the shell would end by the signal as well.
    let command = format!("exec env --default-signal {binary} run -q -- sh -c '{inner}'");
    let mut script = Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .current_dir(work.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("start script of bsdutils");
    wait_until("the trap is set", Duration::from_secs(20), || {
        work.join("ready").exists()
    });
    let mut keyboard = script.stdin.take().expect("a keyboard");
    std::io::Write::write_all(&mut keyboard, b"\x03").expect("type");
    let status = script.wait().expect("script ends");
    assert_eq!(status.code(), Some(6));
    let heard = std::fs::read_to_string(work.join("heard")).expect("a signal came");
    assert_eq!(heard, "caught\n");
}

#[test]
fn a_job_of_the_agent_is_started_with_start() {
    let work = Workdir::new();
    let outcome = Fairbat::new(work.path()).args(["run", "home"]).run();
    outcome.expect_code(2);
    for word in ["fairbat start home", "fairbat run -- home"] {
        assert!(outcome.stderr.contains(word), "{outcome}");
    }
}
