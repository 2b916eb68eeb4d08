//! `--pid`: what runs already is held, and let go again.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use dalbe::process::descendants;
use fairbat_tests::bin::Fairbat;
use fairbat_tests::content::Content;
use fairbat_tests::nginx::{Config, Nginx};
use fairbat_tests::poll::wait_until;
use fairbat_tests::workdir::Workdir;
use rustix::process::{Pid, Signal, kill_process};

use super::control_group::ControlGroup;
use super::events;
use super::watched::{connections, number, wait_until_held};

/// A minute at the rate of the server.
const LONG: Content = Content::new(11, 18_000_000);

/// A shell whose child loads a file, and then another one.
pub(super) fn downloads(nginx: &Nginx) -> Child {
    let url = nginx.url("file");
    let script = format!("curl -sS {url}; curl -sS {url}");
    Command::new("sh")
        .args(["-c", &script])
        .stdout(Stdio::null())
        .spawn()
        .expect("start sh")
}

pub(super) fn server() -> Nginx {
    Nginx::with_file(&LONG, |config: &mut Config| {
        config.limit_rate = Some(300_000);
    })
}

fn attach(work: &Workdir, child: &Child) -> Fairbat {
    Fairbat::new(work.path())
        .default_signals()
        .args(["run", "--include-local", "--events", "events", "--pid"])
        .arg(child.id().to_string())
}

/// Ends a shell and what it has started. It starts nothing more while that is looked for.
pub(super) fn end(mut child: Child) {
    let number = child.id().cast_signed();
    let send = |process, signal| {
        let process = Pid::from_raw(process).expect("a process");
        let _ = kill_process(process, signal);
    };
    send(number, Signal::STOP);
    for process in descendants([number]).expect("/proc") {
        send(process, Signal::KILL);
    }
    let _ = (child.kill(), child.wait());
}

#[test]
fn a_process_and_its_descendants_are_held_until_ctrl_c() {
    let (nginx, work) = (server(), Workdir::new());
    let child = downloads(&nginx);
    let mut running = attach(&work, &child).spawn();
    wait_until_held(child.id().cast_signed(), true);
    running.signal("INT");
    let outcome = running.wait();
    outcome.expect_code(0).expect_said(&["received"]);
    wait_until_held(child.id().cast_signed(), false);
    let last = events(work.path()).pop().expect("an event");
    assert_eq!(
        (&last["event"], &last["connections"]),
        (&"done".into(), &1.into())
    );
    end(child);
}

#[test]
fn whichever_of_the_two_processes_is_killed_all_is_let_go() {
    let nginx = server();
    for kills_front in [true, false] {
        let work = Workdir::new();
        let child = downloads(&nginx);
        let mut running = attach(&work, &child).spawn();
        wait_until_held(child.id().cast_signed(), true);
        if kills_front {
            running.signal("KILL");
        } else {
            let front = number(&running).to_string();
            let killed = Command::new("pkill").args(["-KILL", "-P", &front]).status();
            assert!(killed.expect("start pkill").success());
        }
        wait_until_held(child.id().cast_signed(), false);
        drop(running);
        end(child);
    }
}

#[test]
fn it_ends_with_the_last_process() {
    let (nginx, work) = (server(), Workdir::new());
    let mut child = Command::new("curl")
        .args(["-sS", "--max-time", "8", &nginx.url("file")])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("start curl");
    let mut running = attach(&work, &child).spawn();
    child.wait().expect("wait for curl");
    wait_until("fairbat to end", Duration::from_secs(10), || {
        !running.is_running()
    });
    running.wait().expect_code(0);
}

#[test]
fn a_process_that_is_not_there_is_a_usage_error() {
    let work = Workdir::new();
    let outcome = Fairbat::new(work.path())
        .args(["run", "--pid", "2147483000"])
        .run();
    outcome.expect_code(2).expect_said(&["no such process"]);
}

#[test]
fn a_control_group_and_those_below_it_are_held() {
    let own = std::process::id();
    let Some(group) = ControlGroup::new(&format!("fairbat-test-{own}/below")) else {
        return;
    };
    let (nginx, work) = (server(), Workdir::new());
    let child = downloads(&nginx);
    let number = child.id().cast_signed();
    wait_until("a connection", Duration::from_secs(10), || {
        !connections(number).is_empty()
    });
    group.take(number);
    let mut running = Fairbat::new(work.path())
        .args(["run", "--include-local", "--cgroup"])
        .arg(group.top())
        .spawn();
    wait_until_held(number, true);
    running.signal("TERM");
    running.wait().expect_code(0);
    wait_until_held(number, false);
    end(child);
}
