//! A file that is larger than the user allows is not fetched, and one that grows without
//! measure is given up.

use std::process::Command;

use fairbat_tests::content::Content;
use fairbat_tests::fault::FaultServer;
use fairbat_tests::message::{Framing, Reply, Request};
use fairbat_tests::outcome::Outcome;
use fairbat_tests::version::Version;
use fairbat_tests::workdir::Workdir;

const FILE: Content = Content::new(280, 300_000);

/// Panics unless the run says that the file is too large, and has left nothing.
#[track_caller]
fn assert_too_large(outcome: &Outcome, work: &Workdir) {
    outcome.expect_code(12).expect_said(&["--max-size"]);
    assert_eq!(outcome.event("error")["kind"], "too_large", "{outcome}");
    work.assert_holds(&[]);
}

#[test]
fn a_file_that_is_announced_too_large_is_not_fetched() {
    let server = FaultServer::start();
    server.serve("/file", Version::new(&FILE));
    let work = Workdir::new();
    let get = |max: &str| work.get().args(["--max-size", max, &server.url("/file")]);
    assert_too_large(&get("299999").run(), &work);
    let requests = server.requests();
    assert!(requests.iter().all(Request::is_probe));
    get("300000").run().expect_code(0);
    work.assert_holds(&[("file", &FILE)]);
}

#[test]
fn a_file_that_grows_too_large_is_given_up() {
    let server = FaultServer::start();
    let reply = Version::new(&FILE).whole().without("Accept-Ranges");
    server.script("/file", move |_| reply.clone().framing(Framing::Chunked));
    let work = Workdir::new();
    let get = |max: &str| work.get().args(["--max-size", max, &server.url("/file")]);
    assert_too_large(&get("299999").run(), &work);
    get("300000").run().expect_code(0);
    work.assert_holds(&[("file", &FILE)]);
}

/// 80 MiB of nothing in gzip: some 80 KB.
fn bomb() -> Vec<u8> {
    let script = "head -c 83886080 /dev/zero | gzip -9";
    let output = Command::new("sh").args(["-c", script]).output();
    output.expect("start sh").stdout
}

#[test]
fn a_compressed_answer_does_not_grow_without_measure() {
    let server = FaultServer::start();
    let bomb = Reply::new(200, bomb()).header("Content-Encoding", "gzip");
    server.script("/file", move |_| bomb.clone());
    let work = Workdir::new();
    let get = || work.get().arg(server.url("/file"));
    let refused = get().args(["--max-size", "79M"]).run();
    assert_too_large(&refused, &work);
    refused.expect_said(&["decompressed"]);
    get().args(["--max-size", "80M"]).run().expect_code(0);
    let saved = std::fs::metadata(work.join("file")).expect("it is there");
    assert_eq!(saved.len(), 80 << 20);
}
