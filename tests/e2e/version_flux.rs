//! The file on the server changes during one run, between its requests.

use fairbat_tests::content::Content;
use fairbat_tests::fault::FaultServer;
use fairbat_tests::version::{LATER_MODIFIED, Version};
use fairbat_tests::workdir::Workdir;

const OLD: Content = Content::new(120, 1_000_000);
const NEW: Content = Content::new(121, 1_000_000);
const LONGER: Content = Content::new(122, 1_200_000);
const ARGS: [&str; 2] = ["--chunk-size", "64K"];

#[test]
fn a_change_between_two_requests_gives_the_new_version() {
    for new in [NEW, LONGER] {
        for split in ["1", "3"] {
            let server = FaultServer::start();
            let (old, newer) = (Version::new(&OLD), Version::new(&new));
            let newer = newer.last_modified(Some(LATER_MODIFIED));
            server.script("/file", move |request| {
                let version = if request.nth < 7 { &old } else { &newer };
                version.answer(request)
            });
            let work = Workdir::new();
            work.get()
                .args(ARGS)
                .args(["-s", split])
                .arg(server.url("/file"))
                .run()
                .expect_code(0);
            work.assert_holds(&[("file", &new)]);
        }
    }
}

#[test]
fn a_change_before_the_first_data_gives_the_new_version() {
    let server = FaultServer::start();
    let (old, new) = (Version::new(&OLD), Version::new(&NEW));
    server.script("/file", move |request| match request.nth {
        0 => old.answer(request),
        _ => new.answer(request),
    });
    let work = Workdir::new();
    work.get()
        .args(ARGS)
        .arg(server.url("/file"))
        .run()
        .expect_code(0);
    work.assert_holds(&[("file", &NEW)]);
}

#[test]
fn a_change_after_a_broken_stream_gives_the_new_version() {
    use fairbat_tests::message::End;
    let server = FaultServer::start();
    let (old, new) = (Version::new(&OLD), Version::new(&NEW));
    server.script("/file", move |request| match request.nth_data {
        0 if !request.is_probe() => old.answer(request).end(End::Close(300_000)),
        0 => old.answer(request),
        _ => new.answer(request),
    });
    let work = Workdir::new();
    work.get().arg(server.url("/file")).run().expect_code(0);
    work.assert_holds(&[("file", &NEW)]);
}

#[test]
fn content_that_keeps_changing_ends_with_an_integrity_error() {
    let server = FaultServer::start();
    server.script("/file", |request| {
        let content = Content::new(130 + request.nth as u64, 300_000);
        Version::new(&content).answer(request)
    });
    let work = Workdir::new();
    let outcome = work.get().args(ARGS).arg(server.url("/file")).run();
    outcome.expect_code(4).expect_said(&["chang"]);
    assert!(!work.join("file").exists());
    let requests = server.requests().len();
    assert!(requests <= 200, "{requests} requests");
}

#[test]
fn two_servers_behind_one_name_with_different_versions_never_mix() {
    let server = FaultServer::start();
    let versions = [Version::new(&OLD), Version::new(&NEW)];
    server.script("/file", move |request| {
        versions[request.connection % 2].answer(request)
    });
    let work = Workdir::new();
    let outcome = work
        .get()
        .args(ARGS)
        .args(["-s", "4"])
        .arg(server.url("/file"))
        .run();
    if outcome.code == Some(0) {
        let path = work.join("file");
        let is = |content: &Content| content.first_difference(&path).expect("read").is_none();
        assert!(is(&OLD) || is(&NEW), "a mixture: {outcome}");
    } else {
        outcome.expect_code_in(&[4, 5]);
        assert!(!work.join("file").exists());
    }
}
