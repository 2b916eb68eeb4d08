//! `fairbat setup`, done by root and used by somebody else, in a mount
//! namespace with an empty `/run` of its own.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

use fairbat_tests::bin::fairbat_binary;
use fairbat_tests::netns::skipped;

/// The binary, where everybody may start it.
const BINARY: &str = "/run/binary";

/// A mount namespace; it and all that was set up in it end when dropped.
struct Machine {
    holder: Child,
}

impl Machine {
    /// `None`, and loudly so, without root, or when this `fairbat` was built
    /// without the observer.
    fn new() -> Option<Self> {
        let script = format!(
            "mount -t tmpfs -o mode=0755 run /run && cp \"$0\" {BINARY} && \
             chmod 755 {BINARY} && echo ready && exec cat"
        );
        let mut holder = Command::new("unshare")
            .args(["--mount", "--propagation", "private", "sh", "-c", &script])
            .arg(fairbat_binary())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("unshare of util-linux");
        let mut line = String::new();
        let stdout = holder.stdout.take().expect("it is piped");
        BufReader::new(stdout)
            .read_line(&mut line)
            .expect("readable");
        let machine = Self { holder };
        if line.trim() != "ready" {
            skipped("needs root");
            return None;
        }
        if said(&machine.somebody(&["setup", "--status"])).contains("built without") {
            skipped("this fairbat was built without the observer");
            return None;
        }
        Some(machine)
    }

    /// Runs a program there.
    fn run(&self, words: &[&str]) -> Output {
        Command::new("nsenter")
            .args(["--mount", "--target", &self.holder.id().to_string()])
            .args(words)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .output()
            .expect("nsenter of util-linux")
    }

    /// Runs `fairbat` as root.
    fn root(&self, args: &[&str]) -> Output {
        self.run(&[&[BINARY], args].concat())
    }

    /// Runs `fairbat` as a user without privilege.
    fn somebody(&self, args: &[&str]) -> Output {
        let user = [
            "setpriv",
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
        ];
        self.run(&[&user[..], &[BINARY], args].concat())
    }

    fn lever(&self) -> String {
        let doctor = self.somebody(&["doctor", "--json"]);
        let value: serde_json::Value = serde_json::from_slice(&doctor.stdout).expect("JSON");
        value["lever"].as_str().expect("a lever").to_owned()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // `cat` ends with its input.
        drop(self.holder.stdin.take());
        let _ = self.holder.wait();
    }
}

/// All that it wrote.
fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

#[track_caller]
fn assert_says(output: &Output, code: i32, words: &str) {
    let said = said(output);
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert!(said.contains(words), "{said}");
}

#[test]
fn root_sets_it_up_once_and_everybody_uses_it() {
    let Some(machine) = Machine::new() else {
        return;
    };
    assert_says(&machine.somebody(&["setup", "--status"]), 1, "not set up");
    let doctor = machine.somebody(&["doctor"]);
    assert_says(&doctor, 0, "Root could add: sudo fairbat setup");
    let plain = machine.lever();

    let done = machine.root(&["setup"]);
    assert_says(&done, 0, "is set up in /run/fairbat/bpf");
    assert!(done.stdout.is_empty(), "people read standard error");
    assert_says(&machine.root(&["setup"]), 0, "already");
    let status = machine.somebody(&["setup", "--status"]);
    assert_says(&status, 0, "observer: set up\n");

    let doctor = machine.somebody(&["doctor"]);
    assert_says(&doctor, 0, "yes  packet observer");
    assert!(!said(&doctor).contains("Root could add"));
    if plain == "receive-window" {
        assert_eq!(machine.lever(), "observed-receive-window");
        let get = [
            "get",
            "--json",
            "--retry",
            "0",
            "-d",
            "/run",
            "http://127.0.0.1:1/x",
        ];
        assert!(said(&machine.somebody(&get)).contains("observed-receive-window"));
    }

    assert_says(&machine.root(&["setup", "--remove"]), 0, "is removed");
    assert_says(&machine.root(&["setup", "--remove"]), 0, "no observer");
    assert_says(&machine.somebody(&["setup", "--status"]), 1, "not set up");
    assert_eq!(machine.lever(), plain);
    let gone = machine.run(&["ls", "/run/fairbat"]);
    assert!(!gone.status.success(), "{}", said(&gone));
}

#[test]
fn without_privilege_nothing_is_set_up_or_removed() {
    let Some(machine) = Machine::new() else {
        return;
    };
    assert_says(&machine.somebody(&["setup"]), 1, "only root may do that");
    assert_says(&machine.somebody(&["setup", "--status"]), 1, "not set up");
    assert_says(&machine.root(&["setup"]), 0, "is set up");
    let removal = machine.somebody(&["setup", "--remove"]);
    assert_says(&removal, 1, "only root may do that");
    assert_says(&machine.somebody(&["setup", "--status"]), 0, "set up");
}

#[test]
fn another_version_is_named_and_replaced() {
    let Some(machine) = Machine::new() else {
        return;
    };
    assert_says(&machine.root(&["setup"]), 0, "is set up");
    let rename = "mv /run/fairbat/bpf/observer/v* /run/fairbat/bpf/observer/v900";
    assert_says(&machine.run(&["sh", "-c", rename]), 0, "");
    let status = machine.somebody(&["setup", "--status"]);
    assert_says(&status, 1, "another version is set up: 900");
    assert_says(&machine.somebody(&["doctor"]), 0, "version 900 of it");
    assert_says(&machine.root(&["setup"]), 0, "replaced version 900");
    assert_says(&machine.somebody(&["setup", "--status"]), 0, "set up");
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
