//! `fairbat setup`, done by root and used by somebody else, on a machine of the
//! test's own. Some of these wait for the kernel for long, so they go first: tests
//! begin in the order of their names.

mod killed;
mod machine;
mod refused;
mod running;
mod unit;

use std::process::Command;

use fairbat_tests::bin::fairbat_binary;

use self::machine::{BINARY, Machine, assert_says, kernel_has, said};

/// Both parts, as `--status` tells of them.
const SET_UP: &str = "observer: set up\ncongestion controls: set up\n";
const NOT_SET_UP: &str = "observer: not set up\ncongestion controls: not set up\n";

#[test]
fn root_sets_it_up_once_and_everybody_uses_it() {
    let Some(machine) = Machine::new() else {
        return;
    };
    assert_says(&machine.somebody(&["setup", "--status"]), 1, NOT_SET_UP);
    let doctor = machine.somebody(&["doctor"]);
    assert_says(&doctor, 0, "Root could add: sudo fairbat setup");
    let plain = machine.levers();

    let done = machine.root(&["setup"]);
    for part in ["observer", "congestion controls"] {
        let words = format!("{part}: set up in /run/fairbat/bpf, until the machine restarts");
        assert_says(&done, 0, &words);
    }
    assert!(done.stdout.is_empty(), "people read standard error");
    let again = machine.root(&["setup"]);
    assert_says(&again, 0, "observer: set up already");
    assert_says(&again, 0, "congestion controls: set up already");
    let status = machine.somebody(&["setup", "--status"]);
    assert_says(&status, 0, SET_UP);
    let controls = machine.controls();
    assert_eq!(controls.len(), 3, "{controls:?}");
    assert!(controls.iter().all(|name| kernel_has(name)));

    let doctor = machine.somebody(&["doctor"]);
    assert_says(&doctor, 0, "yes  packet observer");
    assert_says(&doctor, 0, "yes  FAIRBAT's own controls");
    assert!(!said(&doctor).contains("Root could add"));
    let [receiver, sender] = machine.levers();
    assert_eq!(sender, "congestion-control");
    if plain[0] == "receive-window" {
        assert_eq!(receiver, "observed-receive-window");
        let get = ["get", "--retry", "0", "-d", "/run"];
        let started = machine.started(&get, &["http://127.0.0.1:1/x"]);
        assert_eq!(started, "observed-receive-window");
    }
    let put = ["put", "--retry", "0"];
    let started = machine.started(&put, &[BINARY, "http://127.0.0.1:1/"]);
    assert_eq!(started, "congestion-control");

    let removed = machine.root(&["setup", "--remove"]);
    assert_says(
        &removed,
        0,
        "observer: removed\n\
         congestion controls: removed; connections that follow one keep it until they end\n",
    );
    let again = machine.root(&["setup", "--remove"]);
    assert_says(&again, 0, "observer: not set up, nothing to remove");
    assert_says(
        &again,
        0,
        "congestion controls: not set up, nothing to remove",
    );
    assert_says(&machine.somebody(&["setup", "--status"]), 1, NOT_SET_UP);
    assert_eq!(machine.levers(), plain);
    machine.assert_clean(&controls);
}

#[test]
fn without_privilege_nothing_is_set_up_or_removed() {
    let Some(machine) = Machine::new() else {
        return;
    };
    assert_says(&machine.somebody(&["setup"]), 1, "only root may do that");
    assert_says(&machine.somebody(&["setup", "--status"]), 1, NOT_SET_UP);
    machine.assert_clean(&[]);
    assert_says(&machine.root(&["setup"]), 0, "set up in");
    let removal = machine.somebody(&["setup", "--remove"]);
    assert_says(&removal, 1, "only root may do that");
    assert_says(&machine.somebody(&["setup", "--status"]), 0, SET_UP);
}

#[test]
fn another_version_is_named_and_replaced() {
    let Some(machine) = Machine::new() else {
        return;
    };
    assert_says(&machine.root(&["setup"]), 0, "set up in");
    let old = machine.controls();
    for part in ["observer", "congestion"] {
        let directory = format!("/run/fairbat/bpf/{part}");
        machine.shell(&format!("mv {directory}/v* {directory}/v900"));
    }
    let status = machine.somebody(&["setup", "--status"]);
    assert_says(
        &status,
        1,
        "observer: another version is set up: 900\n\
         congestion controls: another version is set up: 900\n",
    );
    let doctor = machine.somebody(&["doctor"]);
    assert_says(&doctor, 0, "version 900 of it");
    assert_says(&doctor, 0, "Root could add: sudo fairbat setup");
    let done = machine.root(&["setup"]);
    for part in ["observer", "congestion controls"] {
        let words = format!("{part}: set up in /run/fairbat/bpf, in place of version 900");
        assert_says(&done, 0, &words);
    }
    assert_says(&machine.somebody(&["setup", "--status"]), 0, SET_UP);
    // Both were there at once, for a moment, under names of their own.
    let new = machine.controls();
    assert_eq!(new.len(), 3);
    assert!(new.iter().all(|name| !old.contains(name)), "{new:?}");
    assert_says(&machine.root(&["setup", "--remove"]), 0, "removed");
    machine.assert_clean(&[old, new].concat());
}

#[test]
fn what_is_in_the_way_is_named_and_kept() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let make = "umask 022; mkdir -p /run/fairbat/bpf && echo theirs > /run/fairbat/bpf/file";
    assert_says(&machine.run(&["sh", "-c", make]), 0, "");
    assert_says(
        &machine.root(&["setup"]),
        1,
        "/run/fairbat/bpf is in the way",
    );
    assert_says(&machine.run(&["cat", "/run/fairbat/bpf/file"]), 0, "theirs");
}

#[test]
fn one_thing_at_a_time() {
    let output = Command::new(fairbat_binary())
        .args(["setup", "--remove", "--status"])
        .output()
        .expect("the binary runs");
    assert_says(&output, 2, "cannot be used with");
}
