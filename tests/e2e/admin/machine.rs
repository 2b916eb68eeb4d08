//! A machine of a test's own, as far as `fairbat setup` is concerned: a mount
//! namespace with an empty `/run`. The kernel is that of all tests: the names
//! of its congestion controls are everybody's.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use fairbat_tests::bin::fairbat_binary;
use fairbat_tests::netns::skipped;
use fairbat_tests::poll::wait_until;

/// The binary, where everybody may start it.
pub(super) const BINARY: &str = "/run/binary";

/// Becomes a user without privilege, and then what follows.
const SOMEBODY: [&str; 4] = [
    "setpriv",
    "--reuid=65534",
    "--regid=65534",
    "--clear-groups",
];

/// A mount namespace; it and all that was set up in it end when dropped.
pub(super) struct Machine {
    holder: Child,
}

impl Machine {
    /// `None`, and loudly so, without root, or when this `fairbat` was built
    /// without eBPF.
    pub(super) fn new() -> Option<Self> {
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
            skipped("this fairbat was built without eBPF");
            return None;
        }
        Some(machine)
    }

    /// Runs a program there.
    pub(super) fn run(&self, words: &[&str]) -> Output {
        Command::new("nsenter")
            .args(["--mount", "--target", &self.holder.id().to_string()])
            .args(words)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .output()
            .expect("nsenter of util-linux")
    }

    /// Runs `fairbat` as root.
    pub(super) fn root(&self, args: &[&str]) -> Output {
        self.run(&[&[BINARY], args].concat())
    }

    /// Runs `fairbat` as root with these of root's capabilities, as setpriv(1)
    /// writes a set.
    pub(super) fn root_with(&self, set: &str, args: &[&str]) -> Output {
        let bounding = format!("--bounding-set={set}");
        let rights = ["setpriv", &bounding, "--inh-caps=-all", "--no-new-privs"];
        self.run(&[&rights[..], &[BINARY], args].concat())
    }

    /// Starts `fairbat` as root.
    pub(super) fn start(&self, args: &[&str]) -> Child {
        self.start_program(&[&[BINARY], args].concat())
    }

    /// Starts a program as a user without privilege.
    pub(super) fn start_somebody(&self, words: &[&str]) -> Child {
        self.start_program(&[&SOMEBODY[..], words].concat())
    }

    /// nsenter becomes it, under the same id.
    fn start_program(&self, words: &[&str]) -> Child {
        Command::new("nsenter")
            .args(["--mount", "--target", &self.holder.id().to_string()])
            .args(words)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("nsenter of util-linux")
    }

    /// Runs this script of the shell as root, which must succeed.
    pub(super) fn shell(&self, script: &str) -> String {
        let output = self.run(&["sh", "-euc", script]);
        assert_eq!(output.status.code(), Some(0), "{script}: {}", said(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The names of the congestion controls that are pinned there, finished or
    /// not.
    pub(super) fn controls(&self) -> Vec<String> {
        let list = "ls /run/fairbat/bpf/congestion/* 2> /dev/null | grep ^fairbat_ || true";
        self.shell(list).lines().map(str::to_owned).collect()
    }

    /// Nothing is in `/run` but the binary, and the kernel has none of these
    /// congestion controls any more. Other tests may have one of the name
    /// meanwhile, for a while.
    pub(super) fn assert_clean(&self, controls: &[String]) {
        // mount(8) has a directory of its own.
        let left = self.shell("find /run -mindepth 1 -path /run/mount -prune -o -print");
        assert_eq!(left, format!("{BINARY}\n"));
        let mounts = self.shell("cat /proc/self/mountinfo");
        assert!(!mounts.contains(" /run/fairbat"), "{mounts}");
        for name in controls {
            wait_until(name, Duration::from_secs(60), || !kernel_has(name));
        }
    }

    /// Runs `fairbat` as a user without privilege.
    pub(super) fn somebody(&self, args: &[&str]) -> Output {
        self.run(&[&SOMEBODY[..], &[BINARY], args].concat())
    }

    /// What holds back downloads and uploads, as `fairbat doctor` tells
    /// somebody.
    pub(super) fn levers(&self) -> [String; 2] {
        let doctor = self.somebody(&["doctor", "--json"]);
        let value: serde_json::Value = serde_json::from_slice(&doctor.stdout).expect("JSON");
        ["lever", "sender_lever"].map(|name| value[name].as_str().expect("a lever").to_owned())
    }

    /// The lever that a run of somebody's begins with.
    pub(super) fn started(&self, command: &[&str], words: &[&str]) -> String {
        let run = self.somebody(&[command, &["--json"], words].concat());
        let text = String::from_utf8_lossy(&run.stdout);
        let start = text
            .lines()
            .next()
            .unwrap_or_else(|| panic!("{}", said(&run)));
        let start: serde_json::Value = serde_json::from_str(start).expect("an event");
        start["lever"].as_str().expect("a lever").to_owned()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // `cat` ends with its input.
        drop(self.holder.stdin.take());
        let _ = self.holder.wait();
    }
}

/// Whether the kernel has a congestion control of this name.
pub(super) fn kernel_has(name: &str) -> bool {
    let list = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let names = std::fs::read_to_string(list).expect("readable");
    names.split_whitespace().any(|other| other == name)
}

/// All that it wrote.
pub(super) fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

#[track_caller]
pub(super) fn assert_says(output: &Output, code: i32, words: &str) {
    let said = said(output);
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert!(said.contains(words), "{said}");
}
