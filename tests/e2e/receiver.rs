//! What decides how far a download yields (`--receiver`), and what is said of
//! it: which lever it is under, and when it yields.

use std::process::Command;
use std::time::Duration;

use fairbat_tests::content::Content;
use fairbat_tests::netns::{Link, SERVER, skipped};
use fairbat_tests::nginx::{Config, Nginx};
use fairbat_tests::outcome::Outcome;
use fairbat_tests::workdir::Workdir;
use serde_json::Value;

/// Whether the connections of this run are held back by their windows.
pub(crate) fn has_window_lever(outcome: &Outcome) -> bool {
    let lever = outcome.event("start")["lever"].to_string();
    let is_window = lever.contains("receive-window");
    if !is_window {
        skipped(&format!("the lever of this machine is {lever}"));
    }
    is_window
}

/// What the brakes did, second by second.
fn states(outcome: &Outcome) -> Vec<Value> {
    let events = outcome.events_named("control");
    events.iter().map(|event| event["brake"].clone()).collect()
}

#[test]
fn an_unknown_policy_is_refused_and_the_two_are_named() {
    let work = Workdir::new();
    let get = || work.get().arg("http://127.0.0.1:1/file");
    for outcome in [
        get().args(["--receiver", "ledbat"]).run(),
        get().env("FAIRBAT_RECEIVER", "ledbat").run(),
    ] {
        outcome.expect_code(2);
        for word in ["--receiver", "ledbat", "delay", "vulture"] {
            assert!(outcome.stderr.contains(word), "no {word}: {outcome}");
        }
        assert_eq!(outcome.stdout, "", "{outcome}");
    }
}

#[test]
fn each_policy_downloads_byte_for_byte() {
    let content = Content::new(950, 20_000_000);
    let nginx = Nginx::start(&Config::default());
    nginx.put("file", &content);
    for policy in ["delay", "vulture"] {
        // A weight between the two ends, and several connections one after
        // the other, too.
        for flags in [
            &[][..],
            &["--weight", "0.3", "-s", "2", "--chunk-size", "1M"],
        ] {
            let work = Workdir::new();
            let outcome = work
                .get()
                .args(["--receiver", policy])
                .args(flags)
                .arg(nginx.url("file"))
                .run();
            outcome.expect_code(0);
            work.assert_holds(&[("file", &content)]);
            if has_window_lever(&outcome) {
                assert_eq!(outcome.event("start")["receiver"], policy, "{outcome}");
                let named = format!("({policy}): yields to other traffic");
                assert!(outcome.stderr.contains(&named), "{outcome}");
            }
        }
    }
}

#[test]
fn a_policy_from_the_environment_counts_unless_there_is_a_flag() {
    let content = Content::new(951, 100_000);
    let nginx = Nginx::start(&Config::default());
    nginx.put("file", &content);
    for (flags, policy) in [(&[][..], "vulture"), (&["--receiver", "delay"], "delay")] {
        let work = Workdir::new();
        let outcome = work
            .get()
            .env("FAIRBAT_RECEIVER", "vulture")
            .args(flags)
            .arg(nginx.url("file"))
            .run();
        outcome.expect_code(0);
        work.assert_holds(&[("file", &content)]);
        if has_window_lever(&outcome) {
            assert_eq!(outcome.event("start")["receiver"], policy, "{outcome}");
        }
    }
}

#[test]
fn an_ordinary_download_has_no_policy_and_is_free() {
    let content = Content::new(952, 1_500_000);
    let nginx = Nginx::start(&Config {
        limit_rate: Some(500_000),
        ..Config::default()
    });
    nginx.put("file", &content);
    let work = Workdir::new();
    let outcome = work.get().args(["--weight", "1", &nginx.url("file")]).run();
    outcome.expect_code(0);
    work.assert_holds(&[("file", &content)]);
    assert!(outcome.event("start")["receiver"].is_null(), "{outcome}");
    assert!(outcome.stderr.contains("does not yield"), "{outcome}");
    assert!(!outcome.stderr.contains("yielding"), "{outcome}");
    for state in states(&outcome) {
        // Before the first response there is no connection.
        assert!(state == "free" || state.is_null(), "{outcome}");
    }
}

/// Everything that arrives within so many seconds, thrown away: somebody who
/// takes all that can be had.
pub(crate) fn greedy(link: &Link, url: &str, seconds: &str) {
    let output = Command::new("ip")
        .args(["netns", "exec", link.client()])
        .args(["curl", "-sSk", "-o", "/dev/null", "-m", seconds, url])
        .output()
        .expect("start ip; install the Debian package iproute2");
    // 28: its time was up.
    assert_eq!(output.status.code(), Some(28), "{output:?}");
}

#[test]
fn a_download_says_that_it_yields_while_it_does() {
    let Some(link) = Link::with_queue("10mbit") else {
        return;
    };
    // Longer than the test, at the link's rate.
    let content = Content::new(953, 40_000_000);
    let nginx = Nginx::start(&Config {
        namespace: Some(link.server().to_owned()),
        address: SERVER.parse().expect("an address"),
        ..Config::default()
    });
    nginx.put("file", &content);
    let run = |flags: &[&str]| {
        let work = Workdir::new();
        let run = work
            .get()
            .namespace(link.client())
            .args(flags)
            .args(["--max-time", "16s", &nginx.url("file")])
            .spawn();
        std::thread::sleep(Duration::from_secs(4));
        greedy(&link, &nginx.url("file"), "5");
        let outcome = run.wait();
        outcome.expect_code(10);
        outcome
    };
    // One sample may mistake a paused processor for other traffic.
    let mut outcomes = Vec::new();
    let is_shown = (0..3).any(|_| {
        let outcome = run(&[]);
        if !has_window_lever(&outcome) {
            outcomes.push(outcome);
            return true;
        }
        let states = states(&outcome);
        let yields = states.iter().any(|state| state == "yielding")
            && outcome.stderr.contains("\nyielding to other traffic\n");
        // Alone it does not, before and after.
        let fills = states[1] == "filling" && states[states.len() - 1] == "filling";
        outcomes.push(outcome);
        yields && fills
    });
    assert!(is_shown, "{outcomes:?}");
    if !has_window_lever(&outcomes[0]) {
        return;
    }

    let outcome = run(&["--weight", "1"]);
    let states = states(&outcome);
    // Before the first response there is no connection.
    let mut known = states.iter().skip_while(|state| state.is_null()).peekable();
    assert!(known.peek().is_some(), "{outcome}");
    assert!(known.all(|state| state == "free"), "{outcome}");
    assert!(!outcome.stderr.contains("yielding"), "{outcome}");
}
