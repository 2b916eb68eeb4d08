//! Any command runs as it would without `fairbat run`, and its connections are held.

use std::path::Path;

use fairbat_tests::bin::Fairbat;
use fairbat_tests::content::Content;
use fairbat_tests::nginx::{Config, Nginx};
use fairbat_tests::outcome::Outcome;
use fairbat_tests::workdir::Workdir;
use serde_json::Value;

mod alike;
mod attached;
mod control_group;
mod held;
mod killed;
mod planned;
mod told;
mod units;
mod watched;

/// A file that [`slow_server`] takes five seconds for.
const FILE: Content = Content::new(7, 1_500_000);

/// `fairbat run` with these flags, whose events go to `events` in the directory.
fn run(work: &Workdir, flags: &[&str], command: &[&str]) -> Fairbat {
    Fairbat::new(work.path())
        .default_signals()
        .args(["run", "--events", "events"])
        .args(flags)
        .arg("--")
        .args(command)
}

/// The events that a run has written.
fn events(directory: &Path) -> Vec<Value> {
    let lines = std::fs::read_to_string(directory.join("events")).expect("read the events");
    let parse = |line| serde_json::from_str(line).expect("an event");
    lines.lines().map(parse).collect()
}

/// The last event: what was held.
fn report(work: &Workdir) -> Value {
    let last = events(work.path()).pop().expect("there are events");
    assert_eq!(last["event"], "done", "{last}");
    last
}

/// A web server that sends [`FILE`] in five parts, one each second. What comes in the last
/// moment of a connection may be counted or not.
fn slow_server() -> Nginx {
    Nginx::with_file(&FILE, |config: &mut Config| {
        config.limit_rate = Some(300_000);
    })
}

/// Whether the command was started with its own words on standard output and nothing else.
fn assert_said(outcome: &Outcome, stdout: &str) {
    assert_eq!(outcome.stdout, stdout, "{outcome}");
}
