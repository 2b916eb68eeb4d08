//! The units in `dist/systemd`, as far as they can be tried without
//! systemd: what it would mount, and the rights that it would leave.

use std::process::{Command, Output};

use fairbat_tests::bin::fairbat_binary;
use fairbat_tests::netns::skipped;

use super::machine::{Machine, assert_says};
use super::{NOT_SET_UP, SET_UP};

const MOUNT: &str = include_str!("../../../dist/systemd/run-fairbat-bpf.mount");
const SERVICE: &str = include_str!("../../../dist/systemd/fairbat-bpf.service");

/// What a unit says of this.
#[track_caller]
fn setting<'a>(unit: &'a str, name: &str) -> &'a str {
    let mut lines = unit
        .lines()
        .filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    let value = lines.next().unwrap_or_else(|| panic!("no {name}"));
    assert_eq!(lines.next(), None, "{name} twice");
    value
}

/// The arguments of the service's `fairbat`.
fn arguments(name: &str) -> Vec<&'static str> {
    let mut words = setting(SERVICE, name).split_whitespace();
    assert_eq!(words.next(), Some("/usr/bin/fairbat"));
    words.collect()
}

/// The service's capabilities, as setpriv(1) writes them.
fn capabilities() -> String {
    let names = setting(SERVICE, "CapabilityBoundingSet").to_lowercase();
    let mut set = "-all".to_owned();
    for name in names.split_whitespace() {
        set += &format!(",+{}", name.strip_prefix("cap_").expect("a capability"));
    }
    set
}

/// Capabilities as the service has them, and everything but the BPF file system
/// read-only (`ProtectSystem=strict`).
#[test]
fn the_service_needs_two_capabilities_only() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let [from, at, kind, options, mode] =
        ["What", "Where", "Type", "Options", "DirectoryMode"].map(|name| setting(MOUNT, name));
    machine.shell(&format!(
        "mkdir -m {mode} -p {at}; mount -t {kind} -o {options} {from} {at}; \
         mount -o remount,bind,ro /run; mount -o remount,bind,ro /"
    ));
    let run = |name| machine.root_with(&capabilities(), &arguments(name));
    assert_says(&run("ExecStart"), 0, "congestion controls: set up in");
    assert_says(&machine.somebody(&["setup", "--status"]), 0, SET_UP);
    let [_, sender] = machine.levers();
    assert_eq!(sender, "congestion-control");
    let old = machine.controls();
    assert_says(&run("ExecReload"), 0, "congestion controls: set up already");

    // An upgrade.
    for part in ["observer", "congestion"] {
        machine.shell(&format!("mv {at}/{part}/v* {at}/{part}/v900"));
    }
    assert_says(&run("ExecReload"), 0, "congestion controls: set up in");
    assert_says(&machine.somebody(&["setup", "--status"]), 0, SET_UP);
    let new = machine.controls();

    // What it did not mount it leaves, empty, to the mount unit.
    let stopped = run("ExecStop");
    assert_says(
        &stopped,
        0,
        "observer: removed\ncongestion controls: removed; ",
    );
    assert_says(&machine.somebody(&["setup", "--status"]), 1, NOT_SET_UP);
    let left = machine.shell(&format!("find {at} -mindepth 1 -not -name '*.debug'"));
    assert_eq!(left, "");
    machine.shell(&format!(
        "mount -o remount,bind,rw /run; umount {at}; rmdir {at} /run/fairbat"
    ));
    machine.assert_clean(&[old, new].concat());
}

/// Whether systemd takes this end for a success.
fn is_success(output: &Output) -> bool {
    let code = output.status.code().expect("it ended").to_string();
    let mut known = setting(SERVICE, "SuccessExitStatus").split_whitespace();
    code == "0" || known.any(|known| known == code)
}

/// As by Linux 5.15, which takes the observer only: the service is up, and what
/// it could set up stays. A stop that leaves something has failed.
#[test]
fn the_service_comes_up_with_one_part_of_two() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let [at, options] = ["Where", "Options"].map(|name| setting(MOUNT, name));
    for (refused, other) in [
        ("congestion", "observer: "),
        ("observer", "congestion controls: "),
    ] {
        machine.shell(&format!(
            "mkdir -p {at}; mount -t bpf -o {options} bpf {at}; mkdir -p {at}/{refused}/strange"
        ));
        let start = machine.root_with(&capabilities(), &arguments("ExecStart"));
        assert_says(&start, 3, &format!("{other}set up in {at}"));
        assert!(is_success(&start), "a failure to systemd");
        let status = machine.somebody(&["setup", "--status"]);
        assert_says(&status, 1, &format!("{other}set up\n"));

        let controls = machine.controls();
        for words in ["removed", "not set up, nothing to remove"] {
            let stop = machine.root_with(&capabilities(), &arguments("ExecStop"));
            assert_says(&stop, 1, &format!("{other}{words}"));
            assert!(!is_success(&stop), "a success to systemd");
        }
        machine.shell(&format!("rmdir {at}/{refused}/strange"));
        let stop = machine.root_with(&capabilities(), &arguments("ExecStop"));
        assert_says(&stop, 0, "nothing to remove");
        machine.shell(&format!("umount {at}; rmdir {at} /run/fairbat"));
        machine.assert_clean(&controls);
    }
}

#[test]
fn root_removes_by_hand_what_the_service_has_set_up() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let [at, options] = ["Where", "Options"].map(|name| setting(MOUNT, name));
    machine.shell(&format!(
        "mkdir -p {at}; mount -t bpf -o {options} bpf {at}"
    ));
    let start = machine.root_with(&capabilities(), &arguments("ExecStart"));
    assert_says(&start, 0, "");
    let controls = machine.controls();
    assert_says(&machine.root(&["setup", "--remove"]), 0, "removed");
    machine.assert_clean(&controls);
    // When the service is stopped afterwards there is nothing left to do.
    let stopped = machine.root_with(&capabilities(), &arguments("ExecStop"));
    assert_says(&stopped, 0, "nothing to remove");
    machine.assert_clean(&[]);
}

#[test]
fn the_units_are_correct() {
    if Command::new("systemd-analyze")
        .arg("--version")
        .output()
        .is_err()
    {
        skipped("needs systemd-analyze of the Debian package systemd");
        return;
    }
    let directory = tempfile::tempdir().expect("a temp dir");
    let binary = fairbat_binary().to_str().expect("UTF-8");
    let service = SERVICE.replace("/usr/bin/fairbat", binary);
    let paths = [
        ("run-fairbat-bpf.mount", MOUNT),
        ("fairbat-bpf.service", &service),
    ]
    .map(|(name, text)| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).expect("written");
        path
    });
    let output = Command::new("systemd-analyze")
        .args(["verify", "--man=no"])
        .args(&paths)
        .output()
        .expect("systemd-analyze");
    let said = String::from_utf8_lossy(&output.stderr);
    // It looks at what else there is on this machine as well.
    let ours: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("fairbat-bpf"))
        .collect();
    assert!(ours.is_empty(), "{said}");
}
