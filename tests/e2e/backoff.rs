//! How often and how soon is tried again, when several connections fail at
//! once or a server never gives a file.

use std::time::Duration;

use fairbat_tests::content::Content;
use fairbat_tests::fault::FaultServer;
use fairbat_tests::message::{End, Framing, Reply};
use fairbat_tests::version::Version;
use fairbat_tests::workdir::Workdir;

const FILE: Content = Content::new(240, 1_000_000);

/// When the scripted failures happen, after their requests.
const RESET: Duration = Duration::from_millis(200);
const REFUSAL: Duration = Duration::from_millis(500);

/// Answers for `FILE`, except that the first request for data is reset and
/// the second is refused a little later, while the first is backed off from.
fn reset_then_refuse() -> FaultServer {
    let server = FaultServer::start();
    let version = Version::new(&FILE);
    server.script("/file", move |request| match request.nth_data {
        0 if !request.is_probe() => {
            std::thread::sleep(RESET);
            let nothing = Reply::status(500).framing(Framing::Nothing);
            nothing.end(End::Reset(0))
        }
        1 if !request.is_probe() => {
            std::thread::sleep(REFUSAL);
            Reply::status(503).header("Retry-After", "6")
        }
        _ => version.answer(request),
    });
    server
}

#[test]
fn retry_after_counts_while_another_failure_is_backed_off_from() {
    let server = reset_then_refuse();
    let work = Workdir::new();
    let outcome = work
        .get()
        .args(["-s", "2", "--chunk-size", "256K", "--retry-wait", "4s"])
        .arg(server.url("/file"))
        .run();
    outcome.expect_code(0);
    work.assert_holds(&[("file", &FILE)]);
    let requests = server.requests();
    let refused = requests
        .iter()
        .filter(|request| !request.is_probe())
        .nth(1)
        .expect("two requests for data");
    let refused_at = refused.at + REFUSAL;
    let next = requests
        .iter()
        .map(|request| request.at)
        .find(|&at| at > refused_at)
        .expect("it went on");
    let waited = next - refused_at;
    assert!(
        waited >= Duration::from_secs(6),
        "waited {waited:?}: {outcome}"
    );
}

#[test]
fn a_server_cannot_ask_for_more_than_the_longest_wait() {
    let server = FaultServer::start();
    let version = Version::new(&FILE);
    // Of the probe, and of the data.
    server.script("/file", move |request| match request.nth {
        0 | 2 => Reply::status(503).header("Retry-After", "604800"),
        _ => version.answer(request),
    });
    let work = Workdir::new();
    let outcome = work
        .get()
        .args(["--retry-max-wait", "1s"])
        .arg(server.url("/file"))
        .run();
    outcome.expect_code(0);
    for retry in outcome.events_named("retry") {
        assert_eq!(retry["after_s"], 1.0, "{outcome}");
    }
    work.assert_holds(&[("file", &FILE)]);
}

#[test]
fn without_a_longest_wait_a_server_may_ask_for_an_hour() {
    let server = FaultServer::start();
    server.script("/file", |_| {
        Reply::status(503).header("Retry-After", "604800")
    });
    let work = Workdir::new();
    let mut run = work.get().arg(server.url("/file")).spawn();
    run.wait_for_event("a retry", |event| event["event"] == "retry");
    run.signal("INT");
    let outcome = run.wait();
    assert_eq!(outcome.event("retry")["after_s"], 3600.0, "{outcome}");
}

#[test]
fn a_wait_beyond_the_deadline_is_foretold_and_not_shortened() {
    let server = FaultServer::start();
    let version = Version::new(&FILE);
    server.script("/file", move |request| match request.nth {
        0 => Reply::status(503).header("Retry-After", "6"),
        _ => version.answer(request),
    });
    let work = Workdir::new();
    let outcome = work
        .get()
        .args(["--deadline", "3s"])
        .arg(server.url("/file"))
        .run();
    outcome.expect_code(0).expect_said(&["late"]);
    let forecast = outcome.event("forecast");
    let number = |field: &str| forecast[field].as_f64().expect("a number");
    assert!(number("t") < 3.0, "{outcome}");
    // The wait of 6 s begins with the refusal, and 3 s of it lie before the deadline.
    let refused = outcome.event("retry")["t"].as_f64().expect("a number");
    assert!((number("late_s") - refused - 3.0).abs() < 1.0, "{outcome}");
    assert_eq!(number("rate"), 0.0, "{outcome}");
    assert_eq!(outcome.event("done")["deadline_met"], false, "{outcome}");
    let requests = server.requests();
    let waited = requests[1].at - requests[0].at;
    assert!(waited >= Duration::from_secs(6), "{waited:?}: {outcome}");
}

#[test]
fn retry_after_holds_for_every_file_of_the_server() {
    let server = FaultServer::start();
    for (path, seed) in [("/busy", 241), ("/other", 242)] {
        let version = Version::new(&Content::new(seed, 1_000_000));
        server.script(path, move |request| {
            if path == "/busy" && request.nth == 1 {
                Reply::status(503).header("Retry-After", "6")
            } else {
                version.answer(request).rate(250_000)
            }
        });
    }
    let work = Workdir::new();
    let outcome = work
        .get()
        .args(["-s", "2", "--chunk-size", "64K"])
        .args(["/busy", "/other"].map(|path| server.url(path)))
        .run();
    outcome.expect_code(0);
    let refused_at = server.requests_for("/busy")[1].at;
    // What was on its way when the refusal arrived does not count.
    let grace = Duration::from_secs(2);
    let early = server
        .requests()
        .iter()
        .map(|request| request.at.saturating_sub(refused_at))
        .filter(|&after| after > grace && after < Duration::from_secs(6))
        .count();
    assert_eq!(early, 0, "requests within 6 s of the refusal: {outcome}");
}

#[test]
fn a_server_that_answers_errors_only_is_tried_21_times() {
    for status in [503, 500, 429] {
        let server = FaultServer::start();
        server.script("/file", move |_| Reply::status(status));
        let work = Workdir::new();
        let outcome = work
            .get()
            .args(["--retry-wait", "10ms", "--retry-max-wait", "20ms"])
            .arg(server.url("/file"))
            .run();
        outcome.expect_code(5).expect_said(&[&status.to_string()]);
        assert_eq!(outcome.event("error")["kind"], "server", "{outcome}");
        let tries = server.requests().len();
        assert_eq!(tries, 21, "{status}: {outcome}");
        outcome.expect_said(&["21 times", "21 tries", "21 attempts"]);
        assert_eq!(outcome.events_named("retry").len(), 20, "{outcome}");
        work.assert_holds(&[]);
    }
}

#[test]
fn a_server_that_never_answers_is_tried_6_times() {
    let work = Workdir::new();
    let waits = ["--retry-wait", "10ms", "--retry-max-wait", "20ms"];
    let outcome = work
        .get()
        .args(waits)
        .arg("http://127.77.77.77:1/file")
        .run();
    outcome.expect_code(5).expect_said(&["refused"]);
    outcome.expect_said(&["6 times", "6 tries", "6 attempts"]);
    assert_eq!(outcome.events_named("retry").len(), 5, "{outcome}");

    // What accepts connections but says nothing has not answered either.
    let server = FaultServer::start();
    server.script("/file", |_| Reply::status(500).framing(Framing::Nothing));
    let outcome = work.get().args(waits).arg(server.url("/file")).run();
    outcome.expect_code(5);
    assert_eq!(outcome.events_named("retry").len(), 5, "{outcome}");
    work.assert_holds(&[]);
}

#[test]
fn a_given_limit_counts_from_the_first_try() {
    let server = FaultServer::start();
    server.script("/file", |_| Reply::status(503));
    let work = Workdir::new();
    for url in [server.url("/file"), "http://127.77.77.77:1/file".into()] {
        let outcome = work
            .get()
            .args(["--retry", "8", "--retry-wait", "10ms"])
            .args(["--retry-max-wait", "20ms", &url])
            .run();
        outcome.expect_code(5);
        assert_eq!(outcome.events_named("retry").len(), 8, "{outcome}");
    }
}
