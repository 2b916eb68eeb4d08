//! A deadline, and where its size comes from.

use fairbat_tests::bin::Fairbat;
use fairbat_tests::outcome::Outcome;
use fairbat_tests::workdir::Workdir;

use super::{FILE, slow_server};

/// A run with a deadline in this directory, which is also its home.
fn planned(work: &Workdir, flags: &[&str], command: &[&str]) -> Outcome {
    Fairbat::new(work.path())
        .env("XDG_STATE_HOME", work.path())
        .args(["run", "--include-local", "--deadline", "1h"])
        .args(flags)
        .arg("--")
        .args(command)
        .run()
}

fn runs(work: &Workdir, args: &[&str]) -> Outcome {
    Fairbat::new(work.path())
        .env("XDG_STATE_HOME", work.path())
        .arg("runs")
        .args(args)
        .run()
}

#[test]
fn the_second_run_of_a_name_is_planned_by_the_first() {
    let (work, nginx) = (Workdir::new(), slow_server());
    let load = ["curl", "-sS", "-o", "copy", &nginx.url("file")];
    let named = ["--name", "nightly"];
    let first = planned(&work, &named, &load);
    first.expect_code(0).expect_said(&["cannot be planned"]);
    first.expect_said(&["in time"]);
    let second = planned(&work, &named, &["true"]);
    second.expect_code(0).expect_said(&["planned with"]);

    let listed = runs(&work, &["--json", "nightly"]);
    let listed: Vec<_> = listed.events();
    assert_eq!(listed.len(), 2, "{listed:?}");
    let bytes = listed[0]["bytes_received"].as_u64().expect("a number");
    assert!(
        bytes > FILE.len() / 2 && bytes < FILE.len() * 2,
        "{listed:?}"
    );
    assert_eq!(listed[0]["deadline_met"], true);
    let summary = runs(&work, &[]);
    assert!(summary.stdout.starts_with("nightly: 2 runs; "), "{summary}");
}

#[test]
fn a_failed_run_tells_nothing_and_a_size_by_hand_needs_none() {
    let work = Workdir::new();
    planned(&work, &["--name", "bad"], &["false"]).expect_code(1);
    let again = planned(&work, &["--name", "bad"], &["true"]);
    again
        .expect_code(0)
        .expect_said(&["cannot be planned", "--floor"]);
    let by_hand = planned(&work, &["--bytes", "10M"], &["true"]);
    by_hand.expect_code(0);
    assert!(!by_hand.stderr.contains("planned"), "{by_hand}");
    runs(&work, &["other"]).expect_code(1);
    planned(&work, &["--name", "../x"], &["true"]).expect_code(2);
}
