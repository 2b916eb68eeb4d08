//! What a server's refusals lead to: final ones end the run and say so,
//! passing ones are waited out as long as the server asked for.

use std::time::{Duration, SystemTime};

use fairbat_tests::content::Content;
use fairbat_tests::date::http_date;
use fairbat_tests::fault::FaultServer;
use fairbat_tests::message::{End, Reply, Request};
use fairbat_tests::version::Version;
use fairbat_tests::workdir::Workdir;

const FILE: Content = Content::new(30, 300_000);

#[test]
fn final_refusals_end_the_run_and_say_which() {
    let server = FaultServer::start();
    for status in [400, 401, 403, 404, 405, 410, 451] {
        let path = format!("/{status}");
        server.script(&path, move |_| Reply::status(status));
        let work = Workdir::new();
        let outcome = work.get().arg(server.url(&path)).run();
        outcome.expect_code(1).expect_said(&[&status.to_string()]);
        let error = outcome.event("error");
        assert_eq!(error["kind"], "refused", "{outcome}");
        assert_eq!(error["url"], server.url(&path), "{outcome}");
        assert!(outcome.events_named("retry").is_empty(), "{outcome}");
        work.assert_holds(&[]);
        // A second request may try without Range.
        let requests = server.requests_for(&path).len();
        assert!(requests <= 2, "{status}: {requests} requests");
    }
}

#[test]
fn a_file_that_vanishes_mid_way_ends_the_run() {
    let server = FaultServer::start();
    let version = Version::new(&FILE);
    server.script("/file", move |request| match request.nth_data {
        0 | 1 => version.answer(request),
        _ => Reply::status(404),
    });
    let work = Workdir::new();
    let outcome = work
        .get()
        .args(["--chunk-size", "64K", "-o", "file"])
        .arg(server.url("/file"))
        .run();
    outcome.expect_code(1).expect_said(&["404"]);
    assert!(!work.join("file").exists());
}

#[test]
fn a_416_to_every_range_never_gives_a_wrong_file() {
    let server = FaultServer::start();
    let version = Version::new(&FILE);
    server.script("/file", move |request| match request.range() {
        Some(_) => Reply::status(416).header("Content-Range", "bytes */300000"),
        None => version.whole(),
    });
    let work = Workdir::new();
    let outcome = work
        .get()
        .args(["--retry", "2"])
        .arg(server.url("/file"))
        .run();
    work.assert_exact_or_refused(&outcome, "file", &FILE);
}

#[test]
fn a_416_to_the_probe_alone_never_gives_a_wrong_file() {
    let server = FaultServer::start();
    let version = Version::new(&FILE);
    // Claims to be empty, but is not.
    server.script("/file", move |request| {
        if request.is_probe() {
            Reply::status(416).header("Content-Range", "bytes */0")
        } else {
            version.answer(request)
        }
    });
    let work = Workdir::new();
    let outcome = work
        .get()
        .args(["--retry", "2"])
        .arg(server.url("/file"))
        .run();
    // It may believe the server, which says twice that there is nothing.
    let believed = outcome.code == Some(0)
        && work
            .join("file")
            .metadata()
            .is_ok_and(|file| file.len() == 0);
    if !believed {
        work.assert_exact_or_refused(&outcome, "file", &FILE);
    }
}

#[test]
fn server_errors_are_tried_again() {
    for status in [500, 502, 503, 504, 429] {
        let server = FaultServer::start();
        let version = Version::new(&FILE);
        server.script("/file", move |request| match request.nth {
            0 | 1 | 4 => Reply::status(status),
            _ => version.answer(request),
        });
        let work = Workdir::new();
        let outcome = work
            .get()
            .args(["--chunk-size", "64K"])
            .arg(server.url("/file"))
            .run();
        outcome.expect_code(0);
        work.assert_holds(&[("file", &FILE)]);
        let retries = outcome.events_named("retry");
        assert!(retries.len() >= 2, "{status}: {outcome}");
        for retry in &retries {
            assert!(
                retry["reason"].to_string().contains(&status.to_string()),
                "{retry}"
            );
            assert!(
                retry["after_s"].is_number() && retry["attempt"].is_number(),
                "{retry}"
            );
        }
    }
}

/// The time between the requests `from` and `from + 1`.
fn gap(requests: &[Request], from: usize) -> Duration {
    requests[from + 1].at - requests[from].at
}

#[test]
fn retry_after_in_seconds_is_a_minimum() {
    for status in [503, 429] {
        let server = FaultServer::start();
        let version = Version::new(&FILE);
        server.script("/file", move |request| match request.nth {
            0 | 2 => Reply::status(status).header("Retry-After", "2"),
            _ => version.answer(request),
        });
        let work = Workdir::new();
        work.get().arg(server.url("/file")).run().expect_code(0);
        work.assert_holds(&[("file", &FILE)]);
        let requests = server.requests();
        for from in [0, 2] {
            let waited = gap(&requests, from);
            assert!(
                waited >= Duration::from_secs(2),
                "{status}: waited {waited:?}"
            );
        }
    }
}

#[test]
fn retry_after_as_a_date_is_a_minimum() {
    let server = FaultServer::start();
    let version = Version::new(&FILE);
    server.script("/file", move |request| match request.nth {
        0 => Reply::status(503).header(
            "Retry-After",
            &http_date(SystemTime::now() + Duration::from_secs(3)),
        ),
        _ => version.answer(request),
    });
    let work = Workdir::new();
    work.get().arg(server.url("/file")).run().expect_code(0);
    let waited = gap(&server.requests(), 0);
    // A date has whole seconds: up to one of the three was over already.
    assert!(waited >= Duration::from_secs(2), "waited {waited:?}");
}

#[test]
fn a_nonsensical_retry_after_does_no_harm() {
    for value in ["-5", "soon", "", "1.5", "Sat, 01 Jan 2000 00:00:00 GMT"] {
        let server = FaultServer::start();
        let version = Version::new(&FILE);
        server.script("/file", move |request| match request.nth {
            0 => Reply::status(503).header("Retry-After", value),
            _ => version.answer(request),
        });
        let work = Workdir::new();
        work.get().arg(server.url("/file")).run().expect_code(0);
        work.assert_holds(&[("file", &FILE)]);
    }
}

#[test]
fn a_server_that_bears_few_connections_is_given_few() {
    let server = FaultServer::start();
    let content = Content::new(31, 2_000_000);
    let version = Version::new(&content);
    server.script("/file", move |request| {
        if request.active > 2 {
            Reply::status(429)
        } else {
            version.answer(request).rate(2_000_000)
        }
    });
    let work = Workdir::new();
    let outcome = work
        .get()
        .args(["-s", "4", "--chunk-size", "64K", "--retry-wait", "100ms"])
        .arg(server.url("/file"))
        .run();
    outcome.expect_code(0);
    work.assert_holds(&[("file", &content)]);
    // 32 requests are needed; stepping down keeps the refused ones few.
    let requests = server.requests().len();
    assert!(requests <= 64, "{requests} requests: {outcome}");
}

#[test]
fn errors_without_end_are_given_up_after_the_given_tries() {
    let server = FaultServer::start();
    server.script("/file", |_| Reply::status(500));
    let work = Workdir::new();
    let outcome = work
        .get()
        .args(["--retry", "3"])
        .arg(server.url("/file"))
        .run();
    outcome.expect_code(5).expect_said(&["500"]);
    outcome.expect_said(&[
        "3 tries",
        "4 tries",
        "3 times",
        "4 times",
        "3 attempts",
        "4 attempts",
    ]);
    assert_eq!(outcome.event("error")["kind"], "server", "{outcome}");
    work.assert_holds(&[]);
    let requests = server.requests().len();
    assert!((3..=4).contains(&requests), "{requests} requests");
}

#[test]
fn retry_0_tries_once() {
    let server = FaultServer::start();
    server.script("/file", |_| Reply::status(500));
    let work = Workdir::new();
    let outcome = work
        .get()
        .args(["--retry", "0"])
        .arg(server.url("/file"))
        .run();
    outcome.expect_code(5);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn delays_between_tries_grow() {
    let server = FaultServer::start();
    server.script("/file", |_| Reply::status(500));
    let work = Workdir::new();
    let outcome = work
        .get()
        .args(["--retry", "6", "--retry-wait", "20ms", "--seed", "1"])
        .arg(server.url("/file"))
        .run();
    outcome.expect_code(5);
    let delays: Vec<f64> = outcome
        .events_named("retry")
        .iter()
        .filter_map(|retry| retry["after_s"].as_f64())
        .collect();
    let longest = delays.iter().copied().fold(0.0, f64::max);
    // A constant delay of 20 ms, even with as much jitter, stays below this.
    assert!((0.05..=1.0).contains(&longest), "{delays:?}");
    let requests = server.requests();
    for (index, delay) in delays.iter().enumerate() {
        let waited = gap(&requests, index).as_secs_f64();
        assert!(waited >= delay - 0.005, "{waited} s, announced {delay} s");
    }
}

#[test]
fn delays_between_tries_have_a_ceiling() {
    let server = FaultServer::start();
    server.script("/file", |_| Reply::status(500));
    let work = Workdir::new();
    let outcome = work
        .get()
        .args([
            "--retry",
            "8",
            "--retry-wait",
            "20ms",
            "--retry-max-wait",
            "100ms",
        ])
        .arg(server.url("/file"))
        .run();
    outcome.expect_code(5);
    for retry in outcome.events_named("retry") {
        let after = retry["after_s"].as_f64().expect("a number");
        assert!(after <= 0.101, "{retry}");
    }
}

#[test]
fn a_refused_connection_is_a_temporary_error() {
    let work = Workdir::new();
    let outcome = work
        .get()
        .args(["--retry", "2", "http://127.77.77.77:1/file"])
        .run();
    outcome.expect_code(5).expect_said(&["refused"]);
    assert_eq!(outcome.event("error")["kind"], "network", "{outcome}");
    work.assert_holds(&[]);
}

#[test]
fn an_unknown_host_is_a_temporary_error() {
    let work = Workdir::new();
    let outcome = work
        .get()
        .args(["--retry", "1", "--connect-timeout", "5s"])
        .arg("http://no-such-host.invalid/file")
        .run();
    outcome
        .expect_code(5)
        .expect_said(&["no-such-host.invalid"]);
    work.assert_holds(&[]);
}

#[test]
fn a_server_that_speaks_something_else_is_a_temporary_error() {
    let server = FaultServer::start();
    // A header field whose name is a control character is no HTTP.
    server.script("/file", |_| {
        Reply::status(200)
            .header("X\u{0}", "\u{1}")
            .end(End::Close(0))
    });
    let work = Workdir::new();
    let outcome = work
        .get()
        .args(["--retry", "2"])
        .arg(server.url("/file"))
        .run();
    outcome.expect_code(5);
    work.assert_holds(&[]);
}
