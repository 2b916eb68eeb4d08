//! Several servers with a file whose hash is known: one that fails is left for the next at once, and
//! has its turn again when that fails too.

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

/// Downloads the file from the first of these URLs, or the others.
fn get_with(work: &Workdir, urls: &[&str], more: &[&str]) -> Outcome {
    let checksum = format!("sha-256={}", sha256_hex(&FILE.all()));
    let mirrors = urls[1..].iter().flat_map(|url| ["--mirror", *url]);
    work.get()
        .args(["--checksum", &checksum, urls[0]])
        .args(mirrors)
        .args(more)
        .run()
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
