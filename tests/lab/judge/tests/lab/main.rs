//! The lab tested as it is used: the link against theory, known physics, and
//! what a run leaves behind.
//!
//! The tests use one machine, and wait for their turn there.

mod bursts;
mod fleet;
mod fresh;
mod in_order;
mod ipv6;
mod machine;
mod marks;
mod matrix;
mod provenance;
mod pushed;
mod senders;
mod served;
mod turn;
mod undisturbed;

use std::panic::UnwindSafe;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use lab_run::machine::{HARMLESS, tried};
use lab_run::record::Record;
use lab_run::samples::BackgroundRecord;

use crate::turn::shared;

/// Exit status of `lab` where the machine does not allow what was asked for.
const CANNOT: i32 = 77;

/// What TCP does, on a machine that runs its threads. What goes wrong while the
/// machine stands still is tried again; where it always does, the test is
/// skipped.
fn while_the_machine_runs(test: impl Fn() + UnwindSafe + Copy) {
    if tried(HARMLESS, test).is_err() {
        fairbat_tests::netns::skipped("this machine stands still too often");
    }
}

/// `lab` with these arguments, its output piped.
fn lab(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lab"));
    command
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Whether this is root; otherwise says that the test is skipped.
fn is_root() -> bool {
    let allowed = lab_run::sandbox::require_root();
    if let Err(why) = allowed {
        fairbat_tests::netns::skipped(why);
    }
    allowed.is_ok()
}

/// The lab with a scenario of these words, which is written to `directory`, as
/// is what it leaves.
fn lab_with(scenario: &str, contender: &str, directory: &Path) -> Command {
    let file = directory.join("scenario.toml");
    std::fs::write(&file, scenario).expect("write a scenario");
    let mut command = lab(&["run"]);
    command
        .arg(file)
        .args(["--contender", contender, "--output"])
        .arg(directory);
    command
}

/// Whether this machine could do it, which `lab` tells by its exit status;
/// otherwise says that the test is skipped.
fn was_possible(output: &Output) -> bool {
    let is_possible = output.status.code() != Some(CANNOT);
    if !is_possible {
        fairbat_tests::netns::skipped(String::from_utf8_lossy(&output.stderr).trim());
    }
    is_possible
}

/// The record of this run of the lab, which goes to `directory`; `None` where this
/// machine does not allow it.
fn recorded(mut lab: Command, directory: &Path) -> Option<Record> {
    let output = lab.output().expect("start lab");
    if !was_possible(&output) {
        return None;
    }
    expect_success(&output);
    Some(record_in(directory))
}

/// The record of a run of this scenario; `None` where this machine does not allow it.
fn record_of(scenario: &str, contender: &str) -> Option<Record> {
    let directory = tempfile::tempdir().expect("a temp dir");
    let lab = lab_with(scenario, contender, directory.path());
    recorded(lab, directory.path())
}

/// The records of runs of these scenarios, each with a contender, which run at the same
/// time; `None` for each that this machine does not allow.
fn side_by_side<const N: usize>(runs: [(&str, &str); N]) -> [Option<Record>; N] {
    let started = runs.map(|(scenario, contender)| {
        let directory = tempfile::tempdir().expect("a temp dir");
        let lab = lab_with(scenario, contender, directory.path()).spawn();
        (directory, lab.expect("start lab"))
    });
    // All have ended before one is judged.
    let ended = started.map(|(directory, lab)| {
        let output = lab.wait_with_output().expect("wait for lab");
        (directory, output)
    });
    ended.map(|(directory, output)| {
        was_possible(&output).then(|| {
            expect_success(&output);
            record_in(directory.path())
        })
    })
}

/// What is recorded of the one contender of a run.
fn only_contender(record: &Record) -> &BackgroundRecord {
    let [contender] = &record.background[..] else {
        panic!("{} contenders", record.background.len());
    };
    contender
}

/// Asserts that each of these contenders, alone, uses more than this share of the
/// scenario's link.
fn use_alone<const N: usize>(scenario: &str, contenders: [&str; N], share: f64) {
    if !is_root() {
        return;
    }
    let _turn = shared();
    while_the_machine_runs(|| {
        let records = side_by_side(contenders.map(|contender| (scenario, contender)));
        for (contender, record) in contenders.into_iter().zip(records) {
            let Some(Record { summary, .. }) = record else {
                continue;
            };
            let used = summary.utilisation;
            assert!(used > share, "{contender} used {used}: {summary:?}");
        }
    });
}

/// What it printed, when it went well.
fn expect_success(output: &Output) -> String {
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{}:\n{stdout}\n{stderr}",
        output.status
    );
    stdout
}

/// The only JSON file of a directory.
fn record_in(directory: &Path) -> Record {
    let entries = std::fs::read_dir(directory).expect("read the output directory");
    let mut files = entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "json")
        });
    let path = files.next().expect("a record");
    assert!(files.next().is_none(), "more than one record");
    let bytes = std::fs::read(path).expect("read the record");
    serde_json::from_slice(&bytes).expect("a record")
}
