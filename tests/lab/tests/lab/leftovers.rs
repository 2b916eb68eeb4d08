//! What a run leaves behind, however it ends: nothing but its files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::Duration;

use fairbat_tests::poll::wait_until;

use crate::{is_root, lab, turn};

/// A run with everything in it: a server and a client of the contender's.
const SCENARIO: &str = r#"
description = "short"
duration_s = 4
measure_from_s = 1

[[link]]
rate_mbit = 10
delay_ms = 10
queue = { packets = 50 }

[[foreground]]
traffic = { web = { load = 0.3, mean_kb = 30 } }

[background]
start_s = 0.2
"#;

/// How long what was killed may take to be gone.
const PATIENCE: Duration = Duration::from_secs(10);

struct Run {
    child: Child,
    directory: tempfile::TempDir,
}

impl Run {
    fn start(duration_s: u32) -> Self {
        let directory = tempfile::tempdir().expect("a temp dir");
        let scenario = directory.path().join("short.toml");
        let text = SCENARIO.replace("duration_s = 4", &format!("duration_s = {duration_s}"));
        fs::write(&scenario, text).expect("write a scenario");
        let path = |path: &PathBuf| path.to_str().expect("a path in UTF-8").to_owned();
        let output = path(&directory.path().join("out"));
        let child = lab(&["run", &path(&scenario), "--contender", "curl"])
            .args(["--output", &output])
            .spawn()
            .expect("start lab");
        Self { child, directory }
    }

    /// Processes of this run, once there are the lab inside, a server and a
    /// client.
    fn processes(&self) -> BTreeSet<u32> {
        let mut found = BTreeSet::new();
        wait_until("the run to be under way", PATIENCE, || {
            found = descendants(self.child.id());
            let names: Vec<_> = found.iter().filter_map(|pid| name(*pid)).collect();
            ["lab", "nginx", "curl"]
                .iter()
                .all(|wanted| names.iter().any(|name| name == wanted))
        });
        found
    }

    fn signal(&self, name: &str) {
        let status = Command::new("sh")
            .args(["-c", "kill -s \"$0\" \"$1\"", name])
            .arg(self.child.id().to_string())
            .status()
            .expect("start sh");
        assert!(status.success());
    }
}

fn name(pid: u32) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(text.trim().to_owned())
}

/// Parent of each process.
fn parents() -> BTreeMap<u32, u32> {
    let entries = fs::read_dir("/proc").expect("read /proc");
    let stat = |pid: u32| {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (_, rest) = text.rsplit_once(')')?;
        rest.split_whitespace().nth(1)?.parse().ok()
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|pid| Some((pid, stat(pid)?)))
        .collect()
}

fn descendants(ancestor: u32) -> BTreeSet<u32> {
    let parents = parents();
    let mut found = BTreeSet::from([ancestor]);
    loop {
        let before = found.len();
        found.extend(
            parents
                .iter()
                .filter(|(_, parent)| found.contains(parent))
                .map(|(pid, _)| *pid)
                .collect::<Vec<_>>(),
        );
        if found.len() == before {
            found.remove(&ancestor);
            return found;
        }
    }
}

/// Network namespaces that some thread of these processes is in.
fn namespaces(pids: &BTreeSet<u32>) -> BTreeSet<PathBuf> {
    let tasks = pids
        .iter()
        .filter_map(|pid| fs::read_dir(format!("/proc/{pid}/task")).ok())
        .flatten();
    tasks
        .filter_map(|task| fs::read_link(task.ok()?.path().join("ns/net")).ok())
        .collect()
}

fn all_processes() -> BTreeSet<u32> {
    parents().into_keys().collect()
}

/// Everything of the host that a run could have changed: devices, routes,
/// named namespaces, and every setting of the network that can be read.
fn host() -> BTreeMap<String, String> {
    let mut state = BTreeMap::new();
    for words in [
        "-o link",
        "route show table all",
        "rule",
        "netns list",
        "-o address",
    ] {
        let output = Command::new("ip")
            .args(words.split(' '))
            .output()
            .expect("start ip");
        // Life times of addresses count down.
        let text = String::from_utf8_lossy(&output.stdout);
        let lines: Vec<_> = text
            .lines()
            .map(|line| line.split("valid_lft").next().unwrap_or(line))
            .collect();
        state.insert(words.to_owned(), lines.join("\n"));
    }
    settings(&PathBuf::from("/proc/sys/net"), &mut state);
    state
}

/// Names of files that count, and so change by themselves.
fn counts(path: &str) -> bool {
    path.contains("nf_conntrack_count") || path.contains("/neigh/") || path.contains("file-nr")
}

fn settings(directory: &PathBuf, state: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = path.display().to_string();
        if path.is_dir() {
            settings(&path, state);
        } else if let Ok(value) = fs::read_to_string(&path)
            && !counts(&name)
        {
            state.insert(name, value);
        }
    }
}

fn work_directories() -> BTreeSet<PathBuf> {
    let entries = fs::read_dir(std::env::temp_dir()).expect("read the temp dir");
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.to_string_lossy().contains("/fairbat-lab-"))
        .collect()
}

/// Ends a run by a signal, and checks that all it had is gone. Returns how
/// the run ended.
fn end_by(signal: &str) -> std::process::ExitStatus {
    let host_before = host();
    let mut run = Run::start(60);
    let processes = run.processes();
    let inside = namespaces(&processes);
    let own = namespaces(&BTreeSet::from([std::process::id()]));
    // The server's and the client's.
    assert!(inside.difference(&own).count() >= 2, "{inside:?}");
    run.signal(signal);
    let mut status = None;
    wait_until("the run to end", PATIENCE, || {
        status = run.child.try_wait().expect("wait for lab");
        status.is_some()
    });
    wait_until("all processes of the run to be gone", PATIENCE, || {
        processes
            .iter()
            .all(|pid| !PathBuf::from(format!("/proc/{pid}")).exists())
    });
    let still: BTreeSet<_> = namespaces(&all_processes())
        .intersection(&inside)
        .filter(|namespace| !own.contains(*namespace))
        .cloned()
        .collect();
    assert!(still.is_empty(), "{still:?}");
    let mounts = fs::read_to_string("/proc/self/mounts").expect("read the mounts");
    assert!(!mounts.contains("fairbat-lab-"), "{mounts}");
    assert_eq!(host(), host_before);
    status.expect("it has ended")
}

#[test]
fn ctrl_c_leaves_nothing() {
    if !is_root() {
        return;
    }
    let _turn = turn();
    let before = work_directories();
    let status = end_by("INT");
    assert_eq!(status.code(), Some(130));
    assert!(work_directories().is_subset(&before));
}

#[test]
fn a_crash_leaves_nothing() {
    if !is_root() {
        return;
    }
    let _turn = turn();
    let before = work_directories();
    end_by("KILL");
    // Nobody was left to remove the directory, which is empty.
    for path in work_directories().difference(&before) {
        fs::remove_dir(path).expect("what is left is empty");
    }
}

#[test]
fn a_whole_run_leaves_the_host_as_it_was() {
    if !is_root() {
        return;
    }
    let _turn = turn();
    let before = host();
    let mut run = Run::start(4);
    let status = run.child.wait().expect("wait for lab");
    assert!(status.success(), "{status}");
    assert_eq!(host(), before);
    let files = fs::read_dir(run.directory.path().join("out")).expect("read the output");
    assert_eq!(files.count(), 2, "samples and a picture");
}
