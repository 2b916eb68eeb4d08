//! Pulls by the real program: two at once, and one by who is not root.

use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use fairbat_agent::sync::{Delete, RunProblem};
use fairbat_tests::bin::agent_binary;
use fairbat_tests::netns::skipped;
use fairbat_tests::poll::wait_until;

use super::{PATIENCE, Scene, mode, scene, write};
use crate::round_trip::{clean, dir};
use crate::tree::expect_same;

/// The agent as a process of its own, with a job that pulls what a scene has
/// pushed.
struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    fn start(scene: &Scene, work: &Path, to: &Path, rate: &str, user: u32) -> Self {
        let config = work.join("agent.toml");
        let text = format!(
            "[agent]\nstate = {state:?}\nsocket = {socket:?}\nlisten = false\n\
             limit_rate = {rate:?}\n[stores.disk]\ntype = \"local\"\npath = {store:?}\n\
             [[jobs]]\nname = \"home\"\ndirection = \"pull\"\nsource = \"disk:home\"\n\
             destination = {to:?}\nevery = \"1h\"\n",
            state = work.join("state"),
            socket = work.join("socket"),
            store = scene.store.path(),
        );
        write(&config, text);
        let log = work.join("log");
        // By descriptor: the checkout may be below a directory that this user must
        // not enter.
        let program = fs::File::open(agent_binary()).expect("open the agent");
        let child = Command::new(format!("/proc/self/fd/{}", program.as_raw_fd()))
            .args(["run", "--config"])
            .arg(&config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(&log).expect("make a log"))
            .uid(user)
            .gid(user)
            .current_dir("/")
            .spawn()
            .expect("start the agent");
        Self { child, log }
    }

    fn log(&self) -> String {
        fs::read_to_string(&self.log).expect("read a log")
    }

    fn wait_until_done(&self) {
        wait_until("the job is done", PATIENCE, || {
            self.log().contains("done task=")
        });
    }

    fn kill(&mut self) {
        self.child.kill().expect("kill the agent");
        self.child.wait().expect("wait for the agent");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_do_not_fill_one_directory() {
    let scene = scene();
    for i in 0..4 {
        write(
            scene.source.path().join(format!("f{i}")),
            vec![i; 4_000_000],
        );
    }
    scene.push().await;
    let (work, pulled) = (dir(), dir());
    let user = owner(work.path());
    let mut slow = Process::start(&scene, work.path(), pulled.path(), "100K", user);
    let unfinished = pulled.path().join(".fairbat-unfinished");
    wait_until("a file is being fetched", PATIENCE, || {
        unfinished.join("0").exists()
    });

    let report = scene.agent.pull(pulled.path(), Delete::Never).await;
    let busy = RunProblem::Busy(pulled.path().to_owned());
    assert_eq!(report.problem, Some(busy), "{report:#?}");
    assert!(unfinished.join("0").exists(), "it is not disturbed");

    slow.kill();
    assert!(unfinished.join("0").exists(), "it is left over");
    let report = clean(scene.agent.pull(pulled.path(), Delete::Never).await);
    assert_eq!(report.sent, 4, "{report:#?}");
    expect_same(scene.source.path(), pulled.path());
}

/// Whose something is.
fn owner(path: &Path) -> u32 {
    fs::metadata(path).expect("look at it").uid()
}

/// Who is nobody in particular.
const NOBODY: u32 = 65_534;

/// Gives a directory away, and all that is in it.
fn give_away(directory: &Path) {
    let given = Command::new("chown")
        .args(["-R", &format!("{NOBODY}:{NOBODY}")])
        .arg(directory)
        .status();
    assert!(given.expect("start chown").success());
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_not_root_gets_what_may_be_given() {
    let scene = scene();
    if owner(scene.source.path()) != 0 {
        skipped("a process of another user");
        return;
    }
    let source = scene.source.path();
    let long = "n".repeat(255);
    for (name, bits) in [
        ("closed/in", 0o644),
        ("secret", 0),
        ("as-owner", 0o4755),
        ("as-group", 0o2755),
        (&long, 0o600),
    ] {
        write(source.join(name), name);
        mode(source.join(name), bits);
    }
    std::os::unix::fs::symlink("nowhere", source.join("link")).expect("make a link");
    mode(source.join("closed"), 0o555);
    scene.push().await;
    let (work, pulled) = (dir(), dir());
    for directory in [work.path(), pulled.path()] {
        std::os::unix::fs::chown(directory, Some(NOBODY), Some(NOBODY)).expect("give it away");
    }
    give_away(scene.store.path());

    let agent = Process::start(&scene, work.path(), pulled.path(), "1G", NOBODY);
    agent.wait_until_done();
    // Once, and not for each entry.
    assert_eq!(agent.log().matches("owners could not be set").count(), 1);
    let bits = |name: &str| {
        let found = fs::symlink_metadata(pulled.path().join(name)).expect("look at it");
        assert_eq!(found.uid(), NOBODY, "{name}");
        let there = fs::symlink_metadata(source.join(name)).expect("look at it");
        assert_eq!(found.mtime_nsec(), there.mtime_nsec(), "{name}");
        found.mode() & 0o7777
    };
    // What would run as root must not run as nobody instead, and what others may do was
    // meant for another owner and group.
    for (name, expected) in [
        ("closed", 0o500),
        ("closed/in", 0o600),
        ("secret", 0),
        ("as-owner", 0o700),
        ("as-group", 0o700),
        (&long, 0o600),
        ("link", 0o777),
    ] {
        assert_eq!(bits(name), expected, "{name}");
    }
    drop(agent);

    // One that remembers nothing, and so runs at once.
    fs::remove_dir_all(work.path().join("state")).expect("remove a state");
    // A directory that nobody may write to is no obstacle to its owner.
    write(source.join("closed/in"), "another");
    scene.push().await;
    give_away(scene.store.path());
    let agent = Process::start(&scene, work.path(), pulled.path(), "1G", NOBODY);
    agent.wait_until_done();
    let content = fs::read(pulled.path().join("closed/in")).expect("read a file");
    assert_eq!(content, b"another");
    assert_eq!(bits("closed"), 0o500);
}
