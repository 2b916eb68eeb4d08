//! Deadlines, weights and progress of uploads.

use std::io::Read as _;
use std::net::{SocketAddr, TcpListener};
use std::thread;
use std::time::{Duration, Instant};

use fairbat_tests::content::Content;
use fairbat_tests::expect::assert_content;
use fairbat_tests::netns::{CLIENT, Link};
use fairbat_tests::nginx::{Config, Nginx};
use fairbat_tests::outcome::Outcome;

use super::{FILE, assert_done, serve, slowly, with};

/// The link's rate: 2 MB/s.
const RATE: &str = "16mbit";

#[test]
fn a_deadline_is_met_or_said_to_be_missed() {
    let nginx = serve();
    let work = with(&FILE);
    let url = nginx.url("f");
    let put = |args: &[&str]| work.put().args(args).args(["file", &url]).run();
    let met = put(&["--deadline", "1h", "--fail-late"]);
    assert_done(&met, &url, &FILE);
    assert_eq!(met.event("done")["deadline_met"], true);
    met.expect_said(&["before the deadline"]);

    let over = "--deadline=2020-01-01T00:00:00.123456Z";
    let late = put(&[over]);
    assert_done(&late, &url, &FILE);
    assert_eq!(late.event("done")["deadline_met"], false);
    let warned = "warning: the deadline is over: it was 2020-01-01T00:00:00Z, and now it is 20";
    assert!(late.stderr.contains(warned), "{late}");
    // To the second, as the deadline is.
    let (_, now) = late.stderr.split_once(warned).expect("it is in there");
    let now = now.lines().next().unwrap_or_default();
    assert!(now.ends_with('Z') && !now.contains('.'), "{late}");
    put(&[over, "--fail-late"]).expect_code(11);
    assert_content(&nginx.path("f"), &FILE);
}

#[test]
fn what_a_ceiling_makes_impossible_is_said_at_once() {
    let nginx = serve();
    let work = with(&FILE);
    let begun = Instant::now();
    let mut run = slowly(&work, &nginx.url("f"))
        .args(["--deadline", "3s"])
        .spawn();
    run.wait_for_event("a forecast", |event| event["event"] == "forecast");
    let took_s = begun.elapsed().as_secs_f64();
    run.signal("INT");
    let outcome = run.wait();
    // Before a single byte has been taken.
    let events = outcome.events();
    let before: Vec<_> = events
        .iter()
        .take_while(|event| event["event"] != "forecast")
        .collect();
    assert!(
        before.iter().all(|event| event["event"] != "control"),
        "{outcome}"
    );
    let forecast = outcome.event("forecast");
    assert_eq!(forecast["rate"], 2.0 * 1024.0 * 1024.0, "{outcome}");
    // Nine and a half seconds are needed, and there are three, less what has gone by.
    let late_s = forecast["late_s"].as_f64().expect("a number");
    assert!((6.5..6.6 + took_s).contains(&late_s), "{took_s}: {outcome}");
    outcome.expect_said(&["warning: "]).expect_said(&["late"]);
    let in_time = slowly(&work, &nginx.url("f")).args(["--deadline", "30s"]);
    let outcome = in_time.run();
    assert_eq!(outcome.events_named("forecast"), [""; 0], "{outcome}");
}

/// A server that takes this many bytes a second at most and never answers.
fn slow_reader(rate: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        let (mut connection, _) = listener.accept().expect("a connection");
        let mut piece = vec![0; rate / 20];
        while connection.read_exact(&mut piece).is_ok() {
            thread::sleep(Duration::from_millis(50));
        }
    });
    address
}

#[test]
fn a_server_that_takes_too_little_is_known_before_it_is_late() {
    let server = slow_reader(200_000);
    let work = with(&FILE);
    let url = format!("http://{server}/f");
    // Buffers take some of it at once, and the rest a minute and more. That is
    // known after some seconds at full weight.
    let deadline = 40.0;
    let mut run = work.put().args(["--deadline", "40s", "file", &url]).spawn();
    run.wait_for_event("a forecast", |event| event["event"] == "forecast");
    run.signal("INT");
    let outcome = run.wait();
    outcome.expect_code(130);
    let forecast = outcome.event("forecast");
    let number = |field: &str| forecast[field].as_f64().expect("a number");
    assert!(number("t") < deadline - 1.0, "{outcome}");
    assert!(number("late_s") > 5.0, "{outcome}");
    assert!(number("zeta") > number("rate"), "{outcome}");
    let events = outcome.events();
    let foretold = events.iter().position(|event| event["event"] == "forecast");
    let before = &events[..foretold.expect("there is one")];
    let last = before.iter().rfind(|event| event["event"] == "control");
    assert!(
        last.is_some_and(|event| event["w"] == 1.0),
        "it was not at its full weight: {outcome}"
    );
}

#[test]
fn the_control_events_tell_what_has_arrived_and_what_is_needed() {
    let nginx = serve();
    let work = with(&FILE);
    let outcome = slowly(&work, &nginx.url("f"))
        .args(["--deadline", "30s"])
        .run();
    outcome.expect_code(0);
    let events = outcome.events_named("control");
    assert!(events.len() >= 5, "{outcome}");
    let mut before = 0;
    for event in &events {
        let done = event["bytes_done"].as_u64().expect("a number");
        assert!((before..=FILE.len()).contains(&done), "{event}");
        before = done;
        assert_eq!(event["bytes_total"], FILE.len(), "{event}");
        assert_eq!(event["m"], 1.0, "{event}");
        let w = event["w"].as_f64().expect("a weight");
        assert!((0.02..=1.0).contains(&w), "{event}");
        // What is left has to go in less than 28 s.
        let zeta = event["zeta"].as_f64().expect("a rate");
        assert!(zeta >= (FILE.len() - done) as f64 / 30.0, "{event}");
    }
    let lags: Vec<_> = events.iter().filter_map(|e| e["lag"].as_f64()).collect();
    assert!(lags.last() < Some(&0.0), "2 MiB/s are ahead: {lags:?}");
}

#[test]
fn without_a_deadline_the_weight_stays_where_it_is() {
    let nginx = serve();
    let work = with(&Content::new(196, 6_000_000));
    let outcome = slowly(&work, &nginx.url("f"))
        .args(["--weight", "0.3"])
        .run();
    outcome.expect_code(0);
    for event in outcome.events_named("control") {
        assert_eq!(event["w"], 0.3, "{event}");
        assert!(event["zeta"].is_null() && event["lag"].is_null(), "{event}");
    }
}

/// An upload of this content over a link with a queue, with these arguments.
fn over_a_link(link: &Link, content: &Content, args: &[&str]) -> Outcome {
    // The queue is on the way from what Link calls the server.
    let nginx = Nginx::start(&Config {
        namespace: Some(link.client().to_owned()),
        address: CLIENT.parse().expect("an address"),
        upload_limit: Some(0),
        ..Config::default()
    });
    let outcome = with(content)
        .put()
        .namespace(link.server())
        .timeout(Duration::from_secs(120))
        .args(args)
        .args(["file", &nginx.url("f")])
        .run();
    outcome.expect_code(0);
    assert_content(&nginx.path("f"), content);
    outcome
}

#[test]
fn an_upload_over_a_link_with_a_queue_arrives() {
    let Some(link) = Link::with_queue(RATE) else {
        return;
    };
    let content = Content::new(197, 6_000_000);
    for args in [&["--deadline", "60s"][..], &[], &["--weight", "1"]] {
        let outcome = over_a_link(&link, &content, args);
        let events = outcome.events_named("control");
        let rtt = events.iter().filter_map(|event| event["rtt_ms"].as_f64());
        assert!(rtt.fold(0.0, f64::max) > 0.0, "{outcome}");
        // What the kernel has taken and not sent does not count as done.
        let first = events[0]["bytes_done"].as_u64().expect("a number");
        assert!(first < content.len(), "{outcome}");
    }
}

#[test]
fn a_deadline_that_the_link_cannot_meet_raises_the_weight() {
    let Some(link) = Link::with_queue(RATE) else {
        return;
    };
    // Six seconds at the link's rate, and aimed at in five.
    let content = Content::new(198, 12_000_000);
    let outcome = over_a_link(&link, &content, &["--deadline", "7s"]);
    let events = outcome.events_named("control");
    let weights = events.iter().filter_map(|event| event["w"].as_f64());
    assert!(weights.fold(0.0, f64::max) > 0.02, "{outcome}");
}
