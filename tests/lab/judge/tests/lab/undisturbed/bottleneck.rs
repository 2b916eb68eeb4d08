//! The kind of bottleneck that `fairbat doctor --path` sees over a link of the lab's.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Child;

use fairbat_tests::bin::fairbat_binary;
use serde_json::Value;

use crate::turn::light;
use crate::{is_root, lab_with, while_the_machine_runs};

/// A link of 10 Mbit/s and 20 ms that a download has for itself.
fn scenario(queue: &str) -> String {
    format!(
        "description = 'What doctor says of a path'
        duration_s = 14
        measure_from_s = 2
        [[link]]
        rate_mbit = 10
        delay_ms = 10
        {queue}
        [background]
        start_s = 1"
    )
}

/// In place of `fairbat get`, a lab runs `fairbat doctor` with the same URL. What that says
/// is beside it, in `answer`. It lasts until the lab is over: one that ends before has failed.
fn doctor_in(directory: &Path) -> std::path::PathBuf {
    let path = directory.join("fairbat");
    let (real, answer) = (fairbat_binary().display(), directory.join("answer"));
    let script = format!(
        "#!/bin/sh\nfor url; do :; done\n\
         '{real}' doctor --json --measure 11s --path \"$url\" > '{}' 2>&1\nexec sleep 4\n",
        answer.display()
    );
    fs::write(&path, script).expect("write a script");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("make it a program");
    path
}

fn start(queue: &str, directory: &Path) -> Child {
    lab_with(&scenario(queue), "fairbat-no-deadline", directory)
        .env("FAIRBAT_BIN", doctor_in(directory))
        .spawn()
        .expect("start lab")
}

/// The answer of a run that is over.
fn answer(lab: Child, directory: &Path) -> Value {
    let output = lab.wait_with_output().expect("wait for lab");
    let text = fs::read_to_string(directory.join("answer")).unwrap_or_default();
    let answer = text
        .lines()
        .find_map(|line| serde_json::from_str(line).ok());
    answer.unwrap_or_else(|| {
        let said = String::from_utf8_lossy(&output.stderr);
        panic!("{text:?}, {}: {said}", output.status)
    })
}

#[test]
fn doctor_tells_a_deep_queue_from_a_managed_one() {
    if !is_root() {
        return;
    }
    let _turn = light();
    while_the_machine_runs(|| {
        let kinds = [
            ("queue = { bdp = 1.0 }", "deep-queue", 15.0..30.0),
            (
                "queue = { bdp = 8.0 }\ndiscipline = 'codel'",
                "managed-queue",
                10.0..170.0,
            ),
        ];
        let directories = kinds
            .each_ref()
            .map(|_| tempfile::tempdir().expect("a temp dir"));
        let labs = [0, 1].map(|index| start(kinds[index].0, directories[index].path()));
        for ((lab, directory), (_, kind, queue_ms)) in labs.into_iter().zip(directories).zip(kinds)
        {
            let answer = answer(lab, directory.path());
            assert_eq!(answer["bottleneck"], kind, "{answer}");
            let number = |name: &str| answer[name].as_f64().unwrap_or_default();
            assert!((1.1e6..1.25e6).contains(&number("rate")), "{answer}");
            assert!((20.0..26.0).contains(&number("base_rtt_ms")), "{answer}");
            assert!(queue_ms.contains(&number("longest_queue_ms")), "{answer}");
        }
    });
}
