//! Signed URLs: another one with every visit, good for a while only.

use std::time::Duration;

use fairbat_tests::content::Content;
use fairbat_tests::expect::{assert_content, names_in};
use fairbat_tests::fault::FaultServer;
use fairbat_tests::message::{Reply, Request};
use fairbat_tests::version::Version;
use fairbat_tests::workdir::Workdir;

const SIZE: u64 = 600_000;
const FILE: Content = Content::new(250, SIZE);
const OTHER: Content = Content::new(251, SIZE);
const RATE: u64 = 100_000;

#[test]
fn a_redirect_target_that_refuses_every_range_is_a_refusal() {
    let server = FaultServer::start();
    let version = Version::new(&FILE);
    server.script("/start", |_| Reply::redirect(302, "/signed?k=1"));
    server.script("/signed?k=1", move |request| {
        if request.is_probe() {
            version.answer(request)
        } else {
            Reply::status(403)
        }
    });
    let work = Workdir::new();
    let outcome = work
        .get()
        .args(["--retry", "3", "--retry-wait", "100ms", "-o", "file"])
        .arg(server.url("/start"))
        .run();
    outcome.expect_code(1).expect_said(&["403"]);
    assert_eq!(outcome.event("error")["kind"], "refused", "{outcome}");
    assert!(!work.join("file").exists());
    let requests = server.requests_for("/signed?k=1");
    let refused: Vec<_> = requests.iter().filter(|r| !r.is_probe()).collect();
    assert!(
        (3..=4).contains(&refused.len()),
        "{} tries: {outcome}",
        refused.len()
    );
    // At least half of 100 ms, and more each time.
    for pair in refused.windows(2) {
        let waited = pair[1].at - pair[0].at;
        assert!(waited >= Duration::from_millis(50), "waited {waited:?}");
    }
}

#[test]
fn a_signature_that_expires_on_the_way_is_renewed() {
    let server = FaultServer::start();
    let version = Version::new(&FILE);
    // Each one is good for a probe and two ranges.
    server.script("/start", |request| {
        Reply::redirect(302, &format!("/signed?k={}", request.nth))
    });
    for key in 0..20 {
        let version = version.clone();
        server.script(&format!("/signed?k={key}"), move |request| {
            if request.nth_data < 2 {
                version.answer(request)
            } else {
                Reply::status(403)
            }
        });
    }
    let work = Workdir::new();
    let outcome = work
        .get()
        .args(["--chunk-size", "64K", "-o", "file"])
        .arg(server.url("/start"))
        .run();
    outcome.expect_code(0);
    work.assert_holds(&[("file", &FILE)]);
    let data = server.requests().iter().filter_map(Request::range).count();
    assert!(data < 40, "{data} requests: it started over: {outcome}");
}

/// Begins `/f.iso?sig=1` of this version, is interrupted, and returns how
/// many bytes are there.
fn begin(server: &FaultServer, work: &Workdir, version: &Version) -> u64 {
    let version = version.clone();
    server.script("/f.iso?sig=1", move |request| {
        version.answer(request).rate(RATE)
    });
    let mut first = work
        .get()
        .args(["--file-allocation", "none", "-x", "1"])
        .arg(server.url("/f.iso?sig=1"))
        .spawn();
    first.wait_for_part(&work.join("f.iso"), SIZE / 3);
    first.signal("INT");
    first.wait().expect_code(130);
    assert_eq!(names_in(work.path()), ["f.iso.part", "f.iso.part.fairbat"]);
    SIZE / 3
}

#[test]
fn a_new_signature_resumes_the_file_with_the_same_strong_etag() {
    let server = FaultServer::start();
    let work = Workdir::new();
    let version = Version::new(&FILE).etag(Some("\"f\""));
    let begun = begin(&server, &work, &version);
    server.serve("/f.iso?sig=2", version);
    let second = work.get().arg(server.url("/f.iso?sig=2")).run();
    second.expect_code(0);
    work.assert_holds(&[("f.iso", &FILE)]);
    assert!(second.resumed_bytes() >= begun, "{second}");
}

#[test]
fn another_query_for_another_file_is_never_mixed_with_it() {
    let old = Version::new(&FILE).etag(Some("\"f\""));
    let other = Version::new(&OTHER);
    for (old, new) in [
        (old.clone(), other.clone().etag(Some("\"g\""))),
        // A weak tag or a date proves nothing for another URL.
        (old.clone().etag(None), other.clone().etag(None)),
        (old.etag(Some("W/\"f\"")), other.etag(Some("W/\"f\""))),
    ] {
        let server = FaultServer::start();
        let work = Workdir::new();
        begin(&server, &work, &old);
        server.serve("/f.iso?sig=2", new);
        let second = work.get().arg(server.url("/f.iso?sig=2")).run();
        second.expect_code(0);
        let done = second.event("done");
        assert_content(&work.join(done["path"].as_str().expect("a path")), &OTHER);
    }
}
