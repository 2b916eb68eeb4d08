//! Downloads from a server of ours, which is to hold back what it sends by a
//! congestion control of ours.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use fairbat_tests::bin::fairbat_binary;

use crate::turn::shared;
use crate::{is_root, lab_with, only_contender, recorded, use_alone, was_possible};

/// A deadline that a share of the link is enough for, beside a greedy flow.
const SCENARIO: &str = "
    description = 'A download that is served'
    duration_s = 9
    measure_from_s = 4
    [[link]]
    rate_mbit = 10
    delay_ms = 10
    queue = { bdp = 1.0 }
    [[foreground]]
    traffic = { greedy = {} }
    [background]
    start_s = 2.5
    size_mb = 1
    deadline_s = 5
";

/// The lab with this `fairbat`; what it leaves goes to `directory`.
fn lab_of(fairbat: &Path, directory: &Path) -> Command {
    let mut lab = lab_with(SCENARIO, "fairbat-served", directory);
    lab.env("FAIRBAT_BIN", fairbat);
    lab
}

/// A `fairbat` that does this before it is itself, in a mount namespace of its
/// own.
fn fairbat_after(what: &str, directory: &Path) -> std::path::PathBuf {
    let path = directory.join("fairbat");
    let real = fairbat_binary().display();
    let script = format!(
        "#!/bin/sh\nexec unshare --mount sh -c '{what} exec \"$0\" \"$@\"' '{real}' \"$@\"\n"
    );
    fs::write(&path, script).expect("write a script");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("make it a program");
    path
}

#[test]
fn a_download_is_held_back_by_a_congestion_control_of_ours() {
    if !is_root() {
        return;
    }
    let _turn = shared();
    let directory = tempfile::tempdir().expect("a temp dir");
    let lab = lab_of(fairbat_binary(), directory.path());
    let Some(record) = recorded(lab, directory.path()) else {
        return;
    };
    let download = only_contender(&record);
    let control = download.held_by.as_deref().expect("a congestion control");
    assert!(control.starts_with("fairbat_vegas"), "{control}");
    assert_eq!(
        (download.bytes, &download.failure),
        (Some(1_000_000), &None)
    );
}

/// Nobody else is there.
const ALONE: &str = "
    description = 'A download that is served, alone'
    duration_s = 42
    measure_from_s = 20
    [[link]]
    rate_mbit = 10
    delay_ms = 50
    queue = { bdp = 1.0 }
    [background]
    start_s = 2
";

#[test]
fn short_packets_at_the_end_of_records_do_not_make_full_ones_a_queue() {
    // It was a third of the link and more, by chance, when they did.
    use_alone(ALONE, ["fairbat-served"], 0.95);
}

#[test]
fn a_server_that_has_another_lever_is_a_failure() {
    if !is_root() {
        return;
    }
    let _turn = shared();
    let servers = [
        // It sees no congestion controls at all.
        (
            "mount -t tmpfs none /run &&",
            "holds back by pacing, and is to be measured with congestion-control",
        ),
        // They are gone when the first connection comes.
        (
            "(sleep 1; mount -t tmpfs none /run) >/dev/null 2>&1 &",
            "no connection of fairbat serve's has ever been seen with fairbat_vegas",
        ),
    ];
    let runs = servers.map(|(what, expected)| {
        let directory = tempfile::tempdir().expect("a temp dir");
        let fairbat = fairbat_after(what, directory.path());
        let run = lab_of(&fairbat, directory.path()).spawn();
        (what, expected, directory, run.expect("start lab"))
    });
    // All have ended before one is judged.
    let ended = runs.map(|(what, expected, directory, run)| {
        let output = run.wait_with_output().expect("wait for lab");
        (what, expected, directory, output)
    });
    for (what, expected, _directory, output) in ended {
        if was_possible(&output) {
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{what}: {stderr}");
            assert!(stderr.contains(expected), "{what}: {stderr}");
        }
    }
}
