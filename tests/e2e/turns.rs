//! Several servers with a file: one that fails is left for the next at once, and has its turn again
//! when that fails too. Without a hash, what has come from it stays meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fairbat_tests::bin::Fairbat;
use fairbat_tests::content::{Content, sha256_hex};
use fairbat_tests::fault::FaultServer;
use fairbat_tests::message::{End, Reply};
use fairbat_tests::outcome::Outcome;
use fairbat_tests::version::Version;
use fairbat_tests::workdir::Workdir;

const SIZE: u64 = 3_000_000;
const FILE: Content = Content::new(312, SIZE);

/// An address at which nobody listens.
const NOBODY: &str = "http://127.0.0.1:9/file";

/// A download of the file from the first of these URLs, or the others.
fn command(work: &Workdir, urls: &[&str]) -> Fairbat {
    let checksum = format!("sha-256={}", sha256_hex(&FILE.all()));
    let mirrors = urls[1..].iter().flat_map(|url| ["--mirror", *url]);
    work.get()
        .args(["--checksum", &checksum, urls[0]])
        .args(mirrors)
}

/// Runs it with more arguments.
fn get_with(work: &Workdir, urls: &[&str], more: &[&str]) -> Outcome {
    command(work, urls).args(more).run()
}

/// Is killed, and goes on with what has come, after `change`.
fn get_resumed(urls: &[&str], change: impl FnOnce()) {
    let work = Workdir::new();
    let get = command(&work, urls).args(["--file-allocation", "none"]);
    get.run_until_killed(&work.join("file"), SIZE / 4);
    change();
    let outcome = get.run();
    outcome.expect_code(0);
    work.assert_holds(&[("file", &FILE)]);
    assert!(outcome.resumed_bytes() > 0, "{outcome}");
}

/// The same, and the file comes. Waiting for a failed server would take longer than the whole run
/// may.
fn get(urls: &[&str]) -> Outcome {
    let work = Workdir::new();
    let outcome = get_with(&work, urls, &["--retry-wait", "60s", "--max-time", "30s"]);
    outcome.expect_code(0);
    work.assert_holds(&[("file", &FILE)]);
    outcome
}

fn serve() -> FaultServer {
    let server = FaultServer::start();
    server.serve("/file", Version::new(&FILE));
    server
}

#[test]
fn a_server_that_cannot_be_reached_is_not_waited_for() {
    let (good, busy) = (serve(), FaultServer::start());
    busy.script("/file", |_| Reply::status(503));
    let (good, busy) = (good.url("/file"), busy.url("/file"));
    for bad in [NOBODY, &busy] {
        let outcome = get(&[bad, &good]);
        let left = outcome.event("source");
        assert_eq!(left["source"], bad, "{outcome}");
        assert_eq!(left["next"], good.as_str(), "{outcome}");
        // Also if all before it fail.
        get(&[bad, NOBODY, &busy, &good]);
    }
}

/// A server whose file is another one.
fn serve_other() -> FaultServer {
    static OTHER: Content = Content::new(313, SIZE);
    let server = FaultServer::start();
    server.serve("/file", Version::new(&OTHER));
    server
}

/// Without a hash, downloads the file from the first of these, or else the other. All tries of one
/// that does not answer would take longer than the run may.
fn get_without_hash(work: &Workdir, first: &str, other: &str, more: &[&str]) -> Outcome {
    let limits = ["--retry-wait", "2s", "--max-time", "15s"];
    work.get()
        .args([first, "--mirror", other])
        .args(limits)
        .args(more)
        .run()
}

#[test]
fn without_a_hash_a_server_that_fails_is_left_while_nothing_is_there() {
    let (good, busy) = (serve(), FaultServer::start());
    busy.script("/file", |_| Reply::status(503));
    for bad in [NOBODY, &busy.url("/file")] {
        let work = Workdir::new();
        let outcome = get_without_hash(&work, bad, &good.url("/file"), &[]);
        outcome.expect_code(0);
        work.assert_holds(&[("file", &FILE)]);
    }
}

#[test]
fn without_a_hash_what_has_come_from_a_server_that_fails_stays() {
    let (other, flaky) = (serve_other(), FaultServer::start());
    let version = Version::new(&FILE);
    // The first run is interrupted; the second finds it busy for a moment.
    flaky.script("/file", move |request| match request.nth {
        0 => version.answer(request),
        1 => version.answer(request).end(End::Reset(1_000_000)),
        2 | 3 => Reply::status(503),
        _ => version.answer(request),
    });
    let work = Workdir::new();
    let (flaky_url, other_url) = (flaky.url("/file"), other.url("/file"));
    let outcome = work.get().args([&flaky_url, "--retry", "0"]).run();
    outcome.expect_code(5);
    let outcome = get_without_hash(&work, &flaky_url, &other_url, &[]);
    outcome.expect_code(0);
    work.assert_holds(&[("file", &FILE)]);
    assert!(
        outcome.event("file")["resumed_bytes"].as_u64() > Some(0),
        "{outcome}"
    );
    assert_eq!(
        other.requests().len(),
        1,
        "it is asked, and then set aside: {outcome}"
    );
}

#[test]
fn a_server_without_ranges_is_left_for_those_that_may_have_them() {
    let serve_whole = || {
        let (server, version) = (FaultServer::start(), Version::new(&FILE));
        server.script("/file", move |_| version.whole());
        server
    };
    let (whole, good) = (serve_whole(), serve());
    let outcome = get(&[&whole.url("/file"), NOBODY, &good.url("/file")]);
    assert_eq!(outcome.event("file")["ranges"], true, "{outcome}");
    // No other one is better.
    let outcome = get(&[&whole.url("/file"), NOBODY, &serve_whole().url("/file")]);
    assert_eq!(outcome.event("file")["ranges"], false, "{outcome}");
}

#[test]
fn what_has_come_stays_behind_a_server_without_ranges() {
    let (whole, good) = (FaultServer::start(), FaultServer::start());
    let version = Version::new(&FILE);
    let slow = version.clone();
    whole.script("/file", move |_| version.whole());
    good.script("/file", move |request| slow.answer(request).rate(500_000));
    get_resumed(&[&whole.url("/file"), &good.url("/file")], || ());
}

#[test]
fn what_a_server_has_sent_is_continued_when_it_serves_no_ranges_any_more() {
    let (first, other) = (FaultServer::start(), FaultServer::start());
    let is_changed = Arc::new(AtomicBool::new(false));
    let (version, changed) = (Version::new(&FILE), Arc::clone(&is_changed));
    first.script("/file", move |request| {
        match changed.load(Ordering::Relaxed) {
            false => version.answer(request).rate(500_000),
            true => version.whole(),
        }
    });
    let (version, changed) = (Version::new(&FILE), Arc::clone(&is_changed));
    other.script("/file", move |request| {
        match changed.load(Ordering::Relaxed) {
            false => Reply::status(404),
            true => version.answer(request),
        }
    });
    get_resumed(&[&first.url("/file"), &other.url("/file")], || {
        is_changed.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_server_that_failed_has_its_turn_again() {
    // It breaks off once, and the only other one is not there.
    let flaky = FaultServer::start();
    let version = Version::new(&FILE);
    flaky.script("/file", move |request| match request.nth {
        1 => version.answer(request).end(End::Reset(0)),
        _ => version.answer(request),
    });
    let work = Workdir::new();
    // All tries of the other one would take longer than the run may.
    let limits = ["--retry-wait", "2s", "--max-time", "15s"];
    let outcome = get_with(&work, &[&flaky.url("/file"), NOBODY], &limits);
    outcome.expect_code(0);
    work.assert_holds(&[("file", &FILE)]);
}

#[test]
fn the_last_failure_ends_a_download_that_no_server_has() {
    let busy = FaultServer::start();
    busy.script("/file", |_| Reply::status(503));
    let work = Workdir::new();
    let limits = ["--retry", "3", "--retry-wait", "100ms"];
    let outcome = get_with(&work, &[&busy.url("/file"), NOBODY], &limits);
    outcome.expect_code(5);
    assert_eq!(
        busy.requests().len(),
        4,
        "one try and three more: {outcome}"
    );
    work.assert_holds(&[]);
}

#[test]
fn a_server_that_hardly_sends_is_not_waited_for() {
    let slow = FaultServer::start();
    let version = Version::new(&FILE);
    slow.script("/file", move |request| version.answer(request).rate(4_000));
    // Its 64 KiB to compare with would take 16 s.
    let good = serve();
    let outcome = get(&[&slow.url("/file"), &good.url("/file")]);
    let first = outcome.events_named("source")[0].clone();
    assert_eq!(first["source"], slow.url("/file"), "{outcome}");
    assert_eq!(first["next"], good.url("/file"), "{outcome}");
}
