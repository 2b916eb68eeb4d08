//! Several servers with the same file: one that fails is replaced by the next, and what two of
//! them send is never joined.

use fairbat_tests::bin::Fairbat;
use fairbat_tests::content::{Content, sha256_hex};
use fairbat_tests::fault::FaultServer;
use fairbat_tests::message::{End, Framing, Reply};
use fairbat_tests::nginx::{Config, Nginx};
use fairbat_tests::version::Version;
use fairbat_tests::workdir::Workdir;

const SIZE: u64 = 3_000_000;
const FILE: Content = Content::new(310, SIZE);
/// Another version, with the same length.
const STALE: Content = Content::new(311, SIZE);

/// An address at which nobody listens.
const NOBODY: &str = "http://127.0.0.1:9/file";

fn serve(path: &str, content: &Content) -> FaultServer {
    let server = FaultServer::start();
    server.serve(path, Version::new(content));
    server
}

#[test]
fn a_server_that_fails_is_replaced_by_the_next() {
    let good = serve("/pub/copy?of=file", &FILE);
    let bad = FaultServer::start();
    bad.script("/broken", |_| Reply::status(503));
    for (url, said) in [
        (bad.url("/absent"), "404"),
        (bad.url("/broken"), "503"),
        (NOBODY.to_owned(), "refused"),
    ] {
        let work = Workdir::new();
        let outcome = work
            .get()
            .args(["--retry", "1", &url])
            .args(["--mirror", &good.url("/pub/copy?of=file")])
            .run();
        outcome.expect_code(0);
        let name = url.rsplit('/').next().expect("a name");
        // The first URL gives the name.
        work.assert_holds(&[(name, &FILE)]);
        let event = outcome.event("source");
        assert_eq!(event["url"], url.as_str(), "{outcome}");
        let reason = event["reason"].as_str().expect("a reason");
        assert!(reason.contains(said), "{outcome}");
        assert_eq!(outcome.event("done")["url"], url.as_str(), "{outcome}");
    }
}

#[test]
fn the_last_failure_is_that_of_the_download() {
    let bad = FaultServer::start();
    let work = Workdir::new();
    let outcome = work
        .get()
        .args(["--retry", "0", NOBODY, "--mirror", &bad.url("/absent")])
        .run();
    outcome.expect_said(&["404"]);
    outcome.expect_code(1);
    work.assert_holds(&[]);
}

#[test]
fn bytes_of_two_servers_are_never_joined() {
    // Both say the same of the file: its length, its date, and its ETag.
    let tag = Some("\"same\"");
    let first = FaultServer::start();
    let version = Version::new(&STALE).etag(tag);
    first.script("/file", move |request| match request.nth {
        // Enough to look like progress, and then nothing more.
        0..=2 => version.answer(request).end(End::Reset(SIZE / 2)),
        _ => Reply::status(503),
    });
    let second = FaultServer::start();
    second.serve("/file", Version::new(&FILE).etag(tag));
    let work = Workdir::new();
    let outcome = work
        .get()
        .args(["--retry", "1", "--chunk-size", "256K"])
        .args([&first.url("/file"), "--mirror", &second.url("/file")])
        .run();
    outcome.expect_code(0);
    work.assert_holds(&[("file", &FILE)]);
}

#[test]
fn nor_those_of_two_queries_of_one_url() {
    // As where a query chooses the server to which a redirect leads.
    let server = FaultServer::start();
    let tag = Some("\"same\"");
    let stale = Version::new(&STALE).etag(tag);
    server.script("/file?from=a", move |request| match request.nth {
        0..=2 => stale.answer(request).end(End::Reset(SIZE / 2)),
        _ => Reply::status(404),
    });
    server.serve("/file?from=b", Version::new(&FILE).etag(tag));
    let work = Workdir::new();
    let outcome = work
        .get()
        .args(["--chunk-size", "256K", &server.url("/file?from=a")])
        .args(["--mirror", &server.url("/file?from=b")])
        .run();
    outcome.expect_code(0);
    work.assert_holds(&[("file", &FILE)]);
}

#[test]
fn the_first_server_that_has_the_file_names_it() {
    let first = FaultServer::start();
    let version = Version::new(&STALE).etag(Some("\"v\""));
    first.script("/latest", move |request| match request.nth {
        0..=2 => {
            let reply = version.answer(request);
            let reply = reply.header("Content-Disposition", "attachment; filename=\"v2.iso\"");
            reply.end(End::Reset(SIZE / 2))
        }
        _ => Reply::status(404),
    });
    let second = FaultServer::start();
    // It serves no ranges, so that nothing could be continued.
    let whole = Version::new(&FILE);
    second.script("/copy", move |_| whole.whole());
    let work = Workdir::new();
    let outcome = work
        .get()
        .args(["--retry", "0", "--chunk-size", "256K"])
        .args([&first.url("/latest"), "--mirror", &second.url("/copy")])
        .run();
    outcome.expect_code(0);
    work.assert_holds(&[("v2.iso", &FILE)]);
}

#[test]
fn what_one_server_has_asked_for_does_not_hold_for_the_next() {
    let busy = FaultServer::start();
    busy.script("/file", |_| {
        Reply::status(503).header("Retry-After", "3600")
    });
    let good = serve("/file", &FILE);
    let work = Workdir::new();
    let outcome = work
        .get()
        .args(["--retry", "0", "--max-time", "60s", &busy.url("/file")])
        .args(["--mirror", &good.url("/file")])
        .run();
    outcome.expect_code(0);
    work.assert_holds(&[("file", &FILE)]);
}

#[test]
fn nothing_is_kept_of_a_file_that_is_too_large_for_one_and_missing_at_the_next() {
    let endless = FaultServer::start();
    let version = Version::new(&FILE);
    endless.script("/file", move |_| version.whole().framing(Framing::Chunked));
    let work = Workdir::new();
    let outcome = work
        .get()
        .args(["--max-size", "1M", &endless.url("/file")])
        .args(["--mirror", &endless.url("/absent")])
        .run();
    outcome.expect_code(1);
    work.assert_holds(&[]);
}

/// A download that was killed when a mirror had sent a part of the file, which the first server did
/// not have then. Both know the same date and length of it, so nginx gives both the same ETag.
fn begun_at_a_mirror(work: &Workdir, first: &Nginx, more: &[&str]) -> (Fairbat, Nginx) {
    let mirror = Nginx::start(&Config {
        limit_rate: Some(1_000_000),
        ..Config::default()
    });
    mirror.put("file", &STALE);
    let get = work
        .get()
        .args(["--file-allocation", "none", &first.url("file")])
        .args(["--mirror", &mirror.url("file")])
        .args(more);
    get.run_until_killed(&work.join("file"), SIZE / 4);
    first.put("file", &FILE);
    (get, mirror)
}

#[test]
fn what_a_mirror_has_sent_is_continued_from_no_other_server() {
    let (first, work) = (Nginx::start(&Config::default()), Workdir::new());
    let (get, _mirror) = begun_at_a_mirror(&work, &first, &[]);
    // It goes on where it came from.
    let outcome = get.run();
    outcome.expect_code(0);
    work.assert_holds(&[("file", &STALE)]);
    assert!(outcome.resumed_bytes() > 0, "{outcome}");
}

#[test]
fn what_a_mirror_has_sent_is_not_continued_from_the_first_server() {
    let (first, work) = (Nginx::start(&Config::default()), Workdir::new());
    let (get, mirror) = begun_at_a_mirror(&work, &first, &["--retry-wait", "50ms"]);
    drop(mirror);
    let outcome = get.run();
    outcome.expect_code(0);
    work.assert_holds(&[("file", &FILE)]);
    assert_eq!(outcome.resumed_bytes(), 0, "{outcome}");
}

#[test]
fn a_file_with_another_digest_comes_from_the_next_server() {
    let (stale, good) = (serve("/file", &STALE), serve("/file", &FILE));
    let checksum = format!("sha-256={}", sha256_hex(&FILE.all()));
    let get = |urls: &[&str]| {
        let work = Workdir::new();
        let outcome = work
            .get()
            .args(["--checksum", &checksum, &stale.url("/file")])
            .args(urls)
            .run();
        (work, outcome)
    };
    let (work, outcome) = get(&["--mirror", &good.url("/file")]);
    outcome.expect_code(0);
    work.assert_holds(&[("file", &FILE)]);
    let (work, outcome) = get(&["--mirror", &stale.url_by_name("/file")]);
    outcome.expect_code(4);
    work.assert_holds(&[]);
}

#[test]
fn a_line_of_a_list_may_have_mirrors() {
    let good = serve("/file", &FILE);
    let work = Workdir::new();
    let line = format!("{NOBODY} {} deadline=1h\n", good.url("/file"));
    std::fs::write(work.join("list"), line).expect("a list");
    let outcome = work
        .get()
        .args(["--retry", "0", "-d", "out", "-i", "list"])
        .run();
    outcome.expect_code(0);
    let saved = work.join("out/file");
    assert_eq!(FILE.first_difference(&saved).expect("a file"), None);
}

#[test]
fn mirrors_are_of_one_url() {
    let work = Workdir::new();
    let outcome = work
        .get()
        .args([NOBODY, "http://127.0.0.1:9/other", "--mirror", NOBODY])
        .run();
    outcome.expect_code(2);
    outcome.expect_said(&["--input-file"]);
}
