//! Many runs at once.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use lab::results::MatrixRecord;

use crate::turn::shared;
use crate::{expect_success, is_root, lab};

#[test]
fn scenarios_and_matrices_can_all_be_read() {
    let output = lab(&["list"]).output().expect("start lab");
    let stdout = expect_success(&output);
    for name in [
        "vulture-constant",
        "cdg-100ms",
        "dalbe-30",
        "fairbat-b20-k3",
        "peers",
        "deadline-three",
        "fairbat-no-deadline",
        "deadlines-long",
        "fairbat-vulture-observed",
        "yielding-unseen",
        "dalbe-load-60",
        "sender-cubic-phantom",
        "sender-weights",
    ] {
        assert!(stdout.contains(name), "{name}: {stdout}");
    }
}

#[test]
fn what_is_not_there_is_a_clear_error() {
    for (args, expected) in [
        (&["run", "no-such-scenario"][..], "lab list"),
        (&["run", "dalbe-10", "--contender", "none-such"], "fairbat"),
        (&["matrix", "none-such"], "lab list"),
        (
            &["matrix", "lever", "--contender", "curl"],
            "it has fairbat-no-deadline",
        ),
        (&["run", "dalbe-10", "--path", "40,20"], "as 40,20,0.5"),
        (&["run", "dalbe-10", "--controller", "pd"], "pid or mbc"),
    ] {
        let output = lab(args).output().expect("start lab");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success());
        assert!(stderr.contains(expected), "{stderr}");
    }
}

#[test]
fn what_cannot_be_run_is_a_clear_error_and_no_panic() {
    for (args, expected) in [
        (&["--time-scale", "1e300"][..], "dalbe-10: duration_s must"),
        (&["--time-scale", "1e-300"], "dalbe-10: duration_s must"),
        (&["--time-scale", "1e-6"], "from sample to sample"),
        (&["--congestion-control", "cu/bic"], "congestion_control"),
        (&["--g-ms", "0"], "g_ms must"),
    ] {
        let output = lab(&["run", "dalbe-10", "--contender", "none"])
            .args(args)
            .output()
            .expect("start lab");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.starts_with("lab: "), "{stderr}");
        assert!(stderr.contains(expected), "{stderr}");
    }
}

/// A matrix of one short scenario with this name, run with its results in a
/// directory of its own.
fn run(name: &str, contenders: &str, congestion_control: &str) -> (tempfile::TempDir, Output) {
    let directory = tempfile::tempdir().expect("a temp dir");
    let file = directory.path().join(format!("{name}.toml"));
    let text = format!(
        "description = 'short'
        scenarios = ['physics-short']
        contenders = [{contenders}]
        congestion_controls = ['{congestion_control}']
        seeds = [1]"
    );
    fs::write(&file, text).expect("write a matrix");
    let output = lab(&["matrix"])
        .arg(&file)
        .args(["--jobs", "2", "--output"])
        .arg(directory.path())
        .output()
        .expect("start lab");
    (directory, output)
}

/// Where samples go, and results that are not complete yet.
fn working(name: &str) -> PathBuf {
    let target = Path::new(env!("CARGO_BIN_EXE_lab")).ancestors().nth(2);
    target.expect("target").join("lab").join(name)
}

fn results(directory: &Path, name: &str) -> MatrixRecord {
    MatrixRecord::read(&MatrixRecord::file(directory, name)).expect("results")
}

#[test]
fn a_matrix_leaves_the_figures_of_all_its_runs() {
    if !is_root() {
        return;
    }
    let _turn = shared();
    let name = "test-complete";
    let (directory, output) = run(name, "'none', 'curl'", "cubic");
    let stdout = expect_success(&output);
    assert!(stdout.contains("2/2"), "{stdout}");
    let all = results(directory.path(), name);
    assert_eq!(all.scenarios["physics-short"].duration_s as u32, 4);
    assert_eq!(all.provenance.side_by_side, "2 labs");
    let [alone, curl] = &all.runs[..] else {
        panic!("{} runs", all.runs.len());
    };
    assert_eq!((alone.failure.clone(), curl.failure.clone()), (None, None));
    assert_eq!(alone.contender, "none");
    assert_eq!(curl.congestion_control.as_deref(), Some("cubic"));
    assert!(alone.summary.foreground_mbit[0] > 1.5, "{alone:?}");
    assert!(curl.summary.background_mbit > 3.0, "{curl:?}");
    for suffix in ["md", "svg"] {
        let path = directory.path().join(format!("{name}.{suffix}"));
        assert!(path.exists(), "{}", path.display());
    }
    // The same was there before all of it was done.
    assert_eq!(results(&working(name), name).runs, all.runs);
}

#[test]
fn a_run_that_fails_is_in_the_results_and_in_the_exit_status() {
    if !is_root() {
        return;
    }
    let _turn = shared();
    let name = "test-failure";
    // No kernel has it, and only servers are asked for it.
    let (directory, output) = run(name, "'none', 'curl'", "none-such");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("1 of 2 runs failed"), "{stderr}");
    let runs = results(directory.path(), name).runs;
    assert_eq!(runs[0].failure, None);
    let failure = runs[1].failure.as_deref().expect("a failure");
    assert!(failure.contains("none-such"), "{failure}");
}
