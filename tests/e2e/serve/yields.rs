//! What clients say of how they want it, and who hears it.

use std::io::Write;

use fairbat_tests::fault::FaultServer;
use fairbat_tests::message::Request;
use fairbat_tests::poll::wait_until;
use fairbat_tests::ss::connections;
use fairbat_tests::version::Version;
use fairbat_tests::workdir::Workdir;

use super::{Content, FILE, SOON, Serving, curl};

/// The requests of a download with these flags from a server that marks its
/// answers as ours, or not.
fn requests(is_ours: bool, flags: &[&str]) -> Vec<Request> {
    let server = FaultServer::start();
    let version = Version::new(&FILE).etag(Some("\"v1\""));
    server.script("/file", move |request| {
        let reply = version.answer(request);
        match is_ours {
            true => reply.header("Fairbat", "1"),
            false => reply,
        }
    });
    let work = Workdir::new();
    let get = work.get().args(["--chunk-size", "64K"]).args(flags);
    get.arg(server.url("/file")).run().expect_code(0);
    work.assert_holds(&[("file", &FILE)]);
    server.requests_for("/file")
}

#[test]
fn a_download_that_yields_says_so_and_tells_its_deadline_only_to_ours() {
    for is_ours in [false, true] {
        let requests = requests(is_ours, &["--deadline", "1h"]);
        assert!(requests.len() > 3);
        for (nth, request) in requests.iter().enumerate() {
            // The first one asks what is there.
            let urgency = if nth == 0 { "u=7" } else { "u=6" };
            assert_eq!(
                request.header("Priority"),
                Some(urgency),
                "{nth}: {request:?}"
            );
            let told = request.header("Fairbat-Deadline");
            assert_eq!(told.is_some(), is_ours && nth > 0, "{nth}: {told:?}");
        }
        if is_ours {
            // The first 64 KiB came with the first request.
            let told = requests[1].header("Fairbat-Deadline").expect("told");
            assert!(told.contains("remaining=234464, w=0.02"), "{told}");
            let due = told.strip_prefix("due=").expect("due first");
            let due = due
                .split(',')
                .next()
                .and_then(|due| due.parse::<f64>().ok());
            assert!(
                (3000.0..=3600.0).contains(&due.expect("a number")),
                "{told}"
            );
            let last = requests.last().expect("some").header("Fairbat-Deadline");
            let last = last.expect("told").to_owned();
            assert!(!last.contains("remaining=234464"), "{last}");
        }
    }
}

#[test]
fn a_weight_is_told_to_ours_and_no_wish_is_none() {
    let told = |flags: &[&str]| {
        let requests = requests(true, flags);
        let last = requests.last().expect("some");
        let header = |name: &str| last.header(name).map(ToOwned::to_owned);
        (header("Priority"), header("Fairbat-Deadline"))
    };
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(told(&[]), (text("u=7"), None));
    assert_eq!(told(&["--weight", "0.5"]), (text("u=7"), text("w=0.5")));
    assert_eq!(told(&["--weight", "1"]), (None, None));
    assert_eq!(told(&["--weight", "1", "--deadline", "1h"]), (None, None));
    // What the user says counts.
    assert_eq!(told(&["-H", "Priority: u=2"]), (text("u=2"), None));
}

#[test]
fn the_server_does_as_it_is_told() {
    for (flags, header, expected) in [
        (&["-v"][..], "X: y", " ordinary"),
        (&["-v"], "Priority: u=3", " ordinary"),
        (&["-v"], "Priority: u=7", " w=0.02"),
        (&["-v", "--background"], "X: y", " w=0.02"),
        (&["-v"], "Fairbat-Deadline: w=0.5", " w=0.5"),
        (&["-v"], "Fairbat-Deadline: w=1", " ordinary"),
        (
            &["-v"],
            "Fairbat-Deadline: due=60, remaining=400000",
            " due=60 remaining=400000 w=0.02",
        ),
        (&["-v"], "Fairbat-Deadline: due=soon", " ordinary"),
    ] {
        let server = Serving::start(flags);
        server.put_fresh("file", &FILE);
        let output = curl(["-D", "/dev/stderr", "-H", header, &server.url("file")]);
        assert!(output.stdout == FILE.all(), "{header}");
        let head = String::from_utf8_lossy(&output.stderr).to_lowercase();
        assert_eq!(super::value(&head, "fairbat"), "1");
        let outcome = server.end();
        let request = outcome
            .stderr
            .lines()
            .find(|line| line.contains("GET /file"));
        let request = request.unwrap_or_else(|| panic!("no request in {outcome}"));
        assert!(request.ends_with(expected), "{header}: {request}");
    }
}

#[test]
fn fairbat_and_fairbat_agree_on_a_deadline() {
    let server = Serving::start(&["-v"]);
    server.put("file", &FILE);
    let work = Workdir::new();
    let get = work.get().args(["--deadline", "1h", "--chunk-size", "64K"]);
    get.arg(server.url("file")).run().expect_code(0);
    work.assert_holds(&[("file", &FILE)]);
    let outcome = server.end();
    let held = outcome
        .stderr
        .lines()
        .filter(|line| line.contains(" due=3"));
    assert!(held.count() > 2, "{outcome}");
}

#[test]
fn a_response_that_the_kernel_takes_at_once_yields_as_well() {
    let server = Serving::start(&[]);
    server.put_fresh("file", &Content::new(401, 30_000));
    let mut stream = server.connect();
    let request = "GET /file HTTP/1.1\r\nHost: localhost\r\nPriority: u=7\r\n\r\n";
    stream.write_all(request.as_bytes()).expect("it reads");
    let port = stream.local_addr().expect("an address").port();
    // Lower-Effort (RFC 8622), as any lever has it.
    wait_until("the connection to be marked", SOON, || {
        connections(port).contains("tos:0x4 ")
    });
}
