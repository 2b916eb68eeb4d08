//! The first request for a file asks for its beginning, which tells what the file is. So a short file
//! takes one request, as with any other client.

use fairbat_tests::content::Content;
use fairbat_tests::fault::FaultServer;
use fairbat_tests::message::{End, Request};
use fairbat_tests::version::Version;
use fairbat_tests::workdir::Workdir;

/// What the first request asks for, bytes.
const BEGINNING: u64 = 256 * 1024;

static SHORT: Content = Content::new(320, BEGINNING);
static LONG: Content = Content::new(321, 3_000_000);

/// First and last byte of each request.
fn asked(server: &FaultServer) -> Vec<(u64, Option<u64>)> {
    let requests = server.requests();
    requests.iter().filter_map(Request::range).collect()
}

fn serve(content: &Content) -> FaultServer {
    let server = FaultServer::start();
    server.serve("/file", Version::new(content));
    server
}

#[test]
fn a_short_file_takes_one_request_and_a_long_one_no_byte_twice() {
    for (content, requests) in [(&SHORT, 1..=1), (&LONG, 2..=30)] {
        let (server, work) = (serve(content), Workdir::new());
        // With a weight below 1, a connection may be left for a better one.
        let get = work.get().args(["--weight", "1", &server.url("/file")]);
        get.run().expect_code(0);
        work.assert_holds(&[("file", content)]);
        let asked = asked(&server);
        assert!(requests.contains(&asked.len()), "{asked:?}");
        let mut next = 0;
        for (first, last) in asked {
            assert_eq!(first, next);
            next = last.expect("an end") + 1;
        }
        assert!(next >= content.len());
    }
}

#[test]
fn of_a_file_that_may_be_there_one_byte_is_asked_for() {
    let (server, work) = (serve(&LONG), Workdir::new());
    let get = || work.get().arg(server.url("/file")).run();
    get().expect_code(0);
    let before = asked(&server).len();
    get().expect_code(0);
    assert_eq!(asked(&server)[before..], [(0, Some(0))]);
}

#[test]
fn a_beginning_that_breaks_off_is_continued() {
    let (server, work) = (FaultServer::start(), Workdir::new());
    let version = Version::new(&SHORT);
    server.script("/file", move |request| match request.nth {
        0 => version.answer(request).end(End::Reset(100_000)),
        _ => version.answer(request),
    });
    work.get().arg(server.url("/file")).run().expect_code(0);
    work.assert_holds(&[("file", &SHORT)]);
    let starts: Vec<u64> = asked(&server).iter().map(|(first, _)| *first).collect();
    assert_eq!(starts.len(), 2, "{starts:?}");
    assert!(starts[1] > 0, "{starts:?}");
}

#[test]
fn several_files_are_each_one_request() {
    let (server, work) = (FaultServer::start(), Workdir::new());
    let names: Vec<String> = (0..20).map(|number| format!("/{number}")).collect();
    for name in &names {
        server.serve(name, Version::new(&SHORT));
    }
    let urls = names.iter().map(|name| server.url(name));
    let get = work.get().args(["--weight", "1"]).args(urls);
    get.run().expect_code(0);
    assert_eq!(asked(&server), vec![(0, Some(BEGINNING - 1)); names.len()]);
}

#[test]
fn a_deadline_is_no_reason_for_another_request() {
    let (server, work) = (serve(&SHORT), Workdir::new());
    let get = work
        .get()
        .args(["--weight", "1", "--deadline", "1m", &server.url("/file")]);
    get.run().expect_code(0);
    assert_eq!(asked(&server), [(0, Some(BEGINNING - 1))]);
    // Of several, what all need is asked for first.
    let (first, second) = (server.url("/file?1"), server.url("/file?2"));
    server.serve("/file?1", Version::new(&SHORT));
    server.serve("/file?2", Version::new(&SHORT));
    let work = Workdir::new();
    let get = work
        .get()
        .args(["--deadline", "1m", "-s", "1", &first, &second]);
    get.run().expect_code(0);
    let probes = server
        .requests()
        .iter()
        .filter(|it| it.asks_for_one_byte())
        .count();
    assert!(probes > 0);
}
