//! Downloads that go below two segments per round trip: beside somebody who
//! takes all there is, their reader pauses and their window closes.

use std::process::Command;
use std::time::Duration;

use fairbat_tests::content::Content;
use fairbat_tests::netns::{Link, SERVER};
use fairbat_tests::nginx::{Config, Nginx};
use fairbat_tests::tls::Identity;
use fairbat_tests::workdir::Workdir;

use crate::receiver::{greedy, has_window_lever};

/// A counter of the kernel's in the client's namespace (`TcpExt` in
/// `/proc/net/netstat`: a line of names, a line of values).
fn counter(link: &Link, name: &str) -> u64 {
    let output = Command::new("ip")
        .args(["netns", "exec", link.client()])
        .args(["cat", "/proc/net/netstat"])
        .output()
        .expect("start ip; install the Debian package iproute2");
    let text = String::from_utf8(output.stdout).expect("ASCII");
    let mut lines = text.lines().filter(|line| line.starts_with("TcpExt:"));
    let (names, values) = (lines.next(), lines.next());
    let (names, values) = (names.expect("names"), values.expect("values"));
    let mut pairs = names.split_whitespace().zip(values.split_whitespace());
    let (_, value) = pairs.find(|(found, _)| *found == name).expect(name);
    value.parse().expect("a number")
}

/// A window that is closed so often is closed on purpose.
const PAUSES: u64 = 5;

/// Downloads beside somebody greedy, who comes later and goes earlier.
fn pauses_and_ends(identity: Option<&Identity>) {
    let Some(link) = Link::with_queue("10mbit") else {
        return;
    };
    let content = Content::new(960, 6_000_000);
    let nginx = Nginx::start(&Config {
        namespace: Some(link.server().to_owned()),
        address: SERVER.parse().expect("an address"),
        tls: identity.cloned(),
        ..Config::default()
    });
    nginx.put("file", &content);
    nginx.put("other", &Content::new(961, 40_000_000));
    let work = Workdir::new();
    let mut get = work.get().namespace(link.client());
    if let Some(identity) = identity {
        get = get.arg("--cacert").arg(&identity.authority);
    }
    // Our own pauses are no silence of the server's. A segment that the full
    // queue drops two times in a row is one, of about a second.
    let run = get
        .args(["--stall-timeout", "3s", &nginx.url("file")])
        .spawn();
    std::thread::sleep(Duration::from_secs(2));
    let closed = counter(&link, "TCPToZeroWindowAdv");
    // While processors are taken away from a machine, its queue runs empty, and
    // a probe sees it empty. Then the greedy one comes again.
    let mut paused = 0;
    for _ in 0..3 {
        greedy(&link, &nginx.url("other"), "6");
        paused = counter(&link, "TCPToZeroWindowAdv") - closed;
        if paused > PAUSES {
            break;
        }
    }
    let outcome = run.wait();
    outcome.expect_code(0);
    work.assert_holds(&[("file", &content)]);
    assert!(outcome.events_named("retry").is_empty(), "{outcome}");
    if !has_window_lever(&outcome) {
        return;
    }
    assert!(
        paused > PAUSES,
        "the window was closed {paused} times: {outcome}"
    );
    for dropped in ["RcvPruned", "TCPRcvQDrop"] {
        assert_eq!(counter(&link, dropped), 0, "{dropped}: {outcome}");
    }
}

#[test]
fn a_download_pauses_beside_a_greedy_one_and_loses_nothing() {
    pauses_and_ends(None);
}

#[test]
fn a_download_over_tls_pauses_too() {
    let keys = Workdir::new();
    let identity = Identity::issue(keys.path(), &[SERVER], 2099);
    pauses_and_ends(Some(&identity));
}
