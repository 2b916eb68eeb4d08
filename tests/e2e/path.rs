//! `fairbat doctor --path`: what it finds out of a path, and what it leaves alone.

use std::fs::File;
use std::time::Duration;

use fairbat_tests::bin::Fairbat;
use fairbat_tests::content::{Content, base64};
use fairbat_tests::expect::names_in;
use fairbat_tests::fault::FaultServer;
use fairbat_tests::message::Reply;
use fairbat_tests::nginx::{Config, Nginx};
use fairbat_tests::outcome::Outcome;
use fairbat_tests::poll::wait_until;
use fairbat_tests::proxy::ForwardProxy;
use fairbat_tests::version::Version;
use fairbat_tests::workdir::Workdir;

const FILE: Content = Content::new(311, 600_000);

/// byte/s of one response.
const SLOW: u64 = 400_000;

/// `fairbat doctor --path ARGS`, which must leave no file behind.
fn path(args: &[&str]) -> Outcome {
    let work = Workdir::new();
    let outcome = Fairbat::new(work.path())
        .args(["doctor", "--path"])
        .args(args)
        .run();
    assert_eq!(names_in(work.path()), [""; 0], "{outcome}");
    outcome
}

fn nginx(change: impl FnOnce(&mut Config)) -> Nginx {
    Nginx::with_file(&FILE, change)
}

#[test]
fn a_small_file_is_too_small_to_tell() {
    let no_ranges: fn(&mut Config) = |config| config.ranges = false;
    for change in [no_ranges, |_| ()] {
        let nginx = nginx(change);
        let url = nginx.url("file");
        let outcome = path(&[&url, "--json"]);
        outcome.expect_code(0);
        let object = outcome.object();
        assert_eq!(object["url"], url);
        assert!(object["bottleneck"].is_null(), "{object}");
        let why = object["explanation"].as_str().unwrap_or_default();
        assert!(why.contains("too small to tell"), "{object}");
        assert_eq!(object["bytes"], 600_000);
        assert_eq!(object["measured_bytes"], 600_000);
        assert!(outcome.elapsed < Duration::from_secs(15), "{outcome}");
    }
}

#[test]
fn a_server_that_is_slower_than_the_path_is_not_taken_for_a_queue() {
    let nginx = nginx(|config| config.limit_rate = Some(SLOW));
    // A terabyte of nothing.
    File::create(nginx.path("huge"))
        .and_then(|file| file.set_len(1 << 40))
        .expect("a sparse file");
    let outcome = path(&[&nginx.url("huge"), "--measure=15s"]);
    outcome.expect_code(0);
    let has = |part: &str| assert!(outcome.stdout.contains(part), "{part} in {outcome}");
    // The pauses of the server may be too short to be seen.
    let kinds = ["sender-limited", "unknown"].map(|kind| format!("Bottleneck: {kind}\n"));
    let is_right = kinds.iter().any(|kind| outcome.stdout.starts_with(kind));
    assert!(is_right, "{outcome}");
    has("How well a download yields there\n");
    for line in [
        "rate    ",
        "round trip    ",
        "longest queue  ",
        "measured    ",
    ] {
        has(line);
    }
    assert!(outcome.elapsed >= Duration::from_secs(15), "{outcome}");
}

#[test]
fn a_refusal_and_a_dead_server_have_their_own_codes() {
    let nginx = nginx(|_| ());
    let missing = path(&[&nginx.url("missing"), "--json"]);
    missing.expect_code(1).expect_said(&["404"]);
    assert_eq!(missing.stdout, "", "{missing}");
    let dead = path(&["http://127.77.77.77:1/file"]);
    dead.expect_code(5).expect_said(&["refused"]);
    assert_eq!(dead.stdout, "", "{dead}");
}

#[test]
fn what_is_wrong_on_the_command_line_exits_2() {
    let url = "http://127.77.77.77:1/file";
    for args in [
        &["example.org/file"][..],
        &[url, "--measure", "0"],
        &[url, "--measure", "x"],
        &[url, "--user", "me"],
        &[url, url],
    ] {
        let outcome = path(args);
        outcome.expect_code(2);
        assert!(
            !outcome.stderr.is_empty() && outcome.stdout.is_empty(),
            "{outcome}"
        );
    }
}

#[test]
fn it_speaks_to_servers_as_get_does() {
    let (server, proxy) = (FaultServer::start(), ForwardProxy::start());
    let version = Version::new(&FILE);
    let right = format!("Basic {}", base64(b"me:s3cret"));
    server.script("/file", move |request| {
        let has = |name, value: &str| request.header(name) == Some(value);
        if has("authorization", &right) && has("x-a", "b") {
            version.answer(request)
        } else {
            Reply::status(401)
        }
    });
    let work = Workdir::new();
    let outcome = Fairbat::new(work.path())
        .args(["doctor", "-H", "X-A: b", "-u", "me:s3cret"])
        .env("FAIRBAT_PATH", server.url("/file"))
        .env("FAIRBAT_JSON", "1")
        .env("http_proxy", proxy.url())
        .run();
    outcome.expect_code(0);
    assert_eq!(outcome.object()["measured_bytes"], 600_000);
    assert_eq!(proxy.requests().len(), server.requests().len());
    let shown = format!("{}{}", outcome.stdout, outcome.stderr);
    assert!(!shown.contains("s3cret"), "{outcome}");
}

#[test]
fn a_signal_ends_it_with_130() {
    let server = FaultServer::start();
    let version = Version::new(&FILE);
    server.script("/file", move |request| version.answer(request).rate(10_000));
    let work = Workdir::new();
    let mut run = Fairbat::new(work.path())
        .args(["doctor", "--measure", "50s", "--path"])
        .arg(server.url("/file"))
        .spawn();
    wait_until("the measurement", Duration::from_secs(20), || {
        server.requests().len() >= 2
    });
    run.signal("INT");
    let outcome = run.wait();
    outcome.expect_code(130);
    assert_eq!(outcome.stdout, "", "{outcome}");
}
