//! A file that changes while it is read is never reported as uploaded, and
//! the server does not get it.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use fairbat_tests::expect::assert_absent;
use fairbat_tests::fault::FaultServer;
use fairbat_tests::message::Reply;

use super::{FILE, serve, slowly, wait_until_under_way, with};

/// What somebody does to the file.
type Change = fn(&Path);

#[test]
fn a_file_that_changes_is_broken_off_with_4() {
    let nginx = serve();
    let changes: [(&str, Change); 4] = [
        ("appended to", |path| {
            let mut file = OpenOptions::new().append(true).open(path).expect("open");
            file.write_all(b"x").expect("written");
        }),
        ("overwritten", |path| {
            let file = OpenOptions::new().write(true).open(path).expect("open");
            file.write_at(b"x", FILE.len() - 1).expect("written");
        }),
        ("truncated", |path| {
            let file = OpenOptions::new().write(true).open(path).expect("open");
            file.set_len(100).expect("truncated");
        }),
        ("replaced", |path| FILE.write_to(path).expect("replaced")),
    ];
    for (what, change) in changes {
        let work = with(&FILE);
        let mut run = slowly(&work, &nginx.url("f")).spawn();
        wait_until_under_way(&mut run);
        change(&work.join("file"));
        let outcome = run.wait();
        outcome.expect_code(4).expect_said(&["changed"]);
        assert_eq!(
            outcome.event("error")["kind"],
            "integrity",
            "{what}: {outcome}"
        );
        assert!(outcome.events_named("done").is_empty(), "{what}: {outcome}");
        let _ = nginx.settled_accesses();
        assert_absent(&nginx.path("f"));
    }
}

#[test]
fn a_file_that_changes_between_two_tries_is_not_sent_either() {
    let server = FaultServer::start();
    server.script("/f", |request| match request.nth {
        0 => Reply::status(503).header("Retry-After", "6").after_body(),
        _ => Reply::status(201).after_body(),
    });
    let work = with(&FILE);
    let mut run = work.put().args(["file", &server.url("/f")]).spawn();
    run.wait_for_event("a retry", |event| event["event"] == "retry");
    fs::write(work.join("file"), "another").expect("written");
    run.wait().expect_code(4).expect_said(&["changed"]);
    assert_eq!(server.requests().len(), 1);
}
