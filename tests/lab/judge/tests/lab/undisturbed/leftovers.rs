//! What a run leaves behind, however it ends: nothing but its files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use fairbat_tests::poll::wait_until;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::turn::light;
use crate::{expect_success, is_root, lab, record_in, was_possible};

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
start_s = 1
"#;

/// Runs side by side.
const MATRIX: &str = r#"
description = "short"
scenarios = ["physics-constant"]
contenders = ["none", "curl"]
congestion_controls = ["cubic"]
seeds = [1]
"#;

/// How long what was killed may take to be gone.
const PATIENCE: Duration = Duration::from_secs(10);

struct Run {
    child: Child,
    directory: tempfile::TempDir,
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Run {
    fn start(duration_s: u32) -> Self {
        let directory = tempfile::tempdir().expect("a temp dir");
        let scenario = directory.path().join("short.toml");
        let text = SCENARIO.replace("duration_s = 4", &format!("duration_s = {duration_s}"));
        fs::write(&scenario, text).expect("write a scenario");
        let path = |path: &PathBuf| path.to_str().expect("a path in UTF-8").to_owned();
        let output = path(&directory.path().join("out"));
        let temporary = directory.path().join("temporary");
        fs::create_dir(&temporary).expect("make a directory");
        let child = lab(&["run", &path(&scenario), "--contender", "curl"])
            .args(["--output", &output])
            .env("TMPDIR", temporary)
            .spawn()
            .expect("start lab");
        Self { child, directory }
    }

    /// A matrix whose runs are labs in the lab.
    fn start_matrix() -> Self {
        let directory = tempfile::tempdir().expect("a temp dir");
        let matrix = directory.path().join("leftovers.toml");
        fs::write(&matrix, MATRIX).expect("write a matrix");
        let child = lab(&["matrix", matrix.to_str().expect("a path in UTF-8")])
            .spawn()
            .expect("start lab");
        Self { child, directory }
    }

    /// Processes of this run, once there are the lab inside, a server and a
    /// client.
    fn processes(&self) -> BTreeSet<u32> {
        let mut found = BTreeSet::new();
        wait_until("the run to be under way", 3 * PATIENCE, || {
            found = descendants(self.child.id());
            let names: Vec<_> = found.iter().filter_map(|pid| name(*pid)).collect();
            ["lab", "nginx", "curl"]
                .iter()
                .all(|wanted| names.iter().any(|name| name == wanted))
        });
        found
    }

    fn signal(&self, signal: Signal) {
        // It has not been waited for, so the id is still its own.
        let pid = i32::try_from(self.child.id()).expect("a process id is an i32");
        kill(Pid::from_raw(pid), signal).expect("send a signal");
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
        // Life times of addresses and routes count down.
        let text = String::from_utf8_lossy(&output.stdout);
        let lasting = |line: &str| {
            let end = line.find("valid_lft").or_else(|| line.find("expires"));
            line[..end.unwrap_or(line.len())].to_owned()
        };
        let lines: Vec<_> = text.lines().map(lasting).collect();
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

/// What is in the directory for temporary files of a run that is over.
fn temporary(run: &Run) -> Vec<PathBuf> {
    let entries = fs::read_dir(run.directory.path().join("temporary")).expect("read the temp dir");
    entries
        .map(|entry| entry.expect("an entry").path())
        .collect()
}

/// Ends a run by a signal, and checks that all it had is gone. Returns the run,
/// and how it ended.
fn end_by(signal: Signal, start: impl FnOnce() -> Run) -> (Run, ExitStatus) {
    let host_before = host();
    let mut run = start();
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
    (run, status.expect("it has ended"))
}

#[test]
fn ctrl_c_leaves_nothing() {
    if !is_root() {
        return;
    }
    let _turn = light();
    let (run, status) = end_by(Signal::SIGINT, || Run::start(60));
    assert_eq!(status.code(), Some(130));
    let left = temporary(&run);
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_matrix_that_is_terminated_leaves_nothing() {
    if !is_root() {
        return;
    }
    let _turn = light();
    let (_run, status) = end_by(Signal::SIGTERM, Run::start_matrix);
    assert_eq!(status.code(), Some(143));
}

#[test]
fn a_crash_leaves_nothing() {
    if !is_root() {
        return;
    }
    let _turn = light();
    let (run, _) = end_by(Signal::SIGKILL, || Run::start(60));
    // Nobody was left to remove the directory, which is empty.
    for path in temporary(&run) {
        fs::remove_dir(path).expect("what is left is empty");
    }
}

#[test]
fn a_run_sees_no_observer_of_the_host() {
    if !is_root() {
        return;
    }
    let _turn = light();
    let entries = |root: &str| {
        let entries = fs::read_dir(format!("{root}/run")).expect("read /run");
        entries.count()
    };
    let before = entries("");
    assert!(before > 0, "there is something to be hidden");
    let run = Run::start(60);
    for pid in run.processes() {
        // Whatever is there is in the mount namespace of the run.
        assert_eq!(entries(&format!("/proc/{pid}/root")), 0, "{:?}", name(pid));
    }
    assert!(entries("") > 0);
}

#[test]
fn an_observer_is_gone_with_its_run() {
    if !is_root() {
        return;
    }
    let _turn = light();
    let pinned = || PathBuf::from("/run/fairbat").exists();
    let before = pinned();
    let directory = tempfile::tempdir().expect("a temp dir");
    let output = lab(&["run", "physics-short", "--contender", "fairbat-observed"])
        .arg("--output")
        .arg(directory.path())
        .output()
        .expect("start lab");
    if !was_possible(&output) {
        return;
    }
    expect_success(&output);
    let record = record_in(directory.path());
    assert!(record.summary.background_mbit > 1.0, "{:?}", record.summary);
    assert_eq!(pinned(), before);
}

#[test]
fn a_whole_run_leaves_the_host_as_it_was() {
    if !is_root() {
        return;
    }
    let _turn = light();
    let before = host();
    let mut run = Run::start(4);
    let status = run.child.wait().expect("wait for lab");
    assert!(status.success(), "{status}");
    assert_eq!(host(), before);
    let files = fs::read_dir(run.directory.path().join("out")).expect("read the output");
    assert_eq!(files.count(), 2, "samples and a picture");
}
