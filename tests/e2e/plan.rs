//! `fairbat plan`: what it finds out, what it says and what it leaves alone.

use std::fs::File;
use std::time::Duration;

use fairbat_tests::bin::Fairbat;
use fairbat_tests::content::{Content, base64};
use fairbat_tests::expect::names_in;
use fairbat_tests::fault::FaultServer;
use fairbat_tests::message::{End, Reply};
use fairbat_tests::nginx::{Config, Nginx};
use fairbat_tests::outcome::Outcome;
use fairbat_tests::poll::wait_until;
use fairbat_tests::proxy::ForwardProxy;
use fairbat_tests::version::Version;
use fairbat_tests::workdir::Workdir;
use serde_json::Value;

const FILE: Content = Content::new(310, 600_000);

/// byte/s of one response.
const SLOW: u64 = 200_000;

/// `fairbat plan ARGS`, which must leave no file behind.
fn plan(args: &[&str]) -> Outcome {
    let work = Workdir::new();
    let outcome = Fairbat::new(work.path()).arg("plan").args(args).run();
    assert_eq!(names_in(work.path()), [""; 0], "{outcome}");
    outcome
}

fn nginx(change: impl FnOnce(&mut Config)) -> Nginx {
    Nginx::with_file(&FILE, change)
}

#[track_caller]
fn number(object: &Value, name: &str) -> f64 {
    let number = object[name].as_f64();
    number.unwrap_or_else(|| panic!("{name} is no number in {object}"))
}

#[test]
fn a_small_file_by_a_far_deadline_is_comfortable() {
    let nginx = nginx(|_| ());
    let url = nginx.url("file");
    let outcome = plan(&["--json", "--deadline", "4h", &url]);
    outcome.expect_code(0);
    let object = outcome.object();
    assert_eq!(object["url"], url);
    assert_eq!(object["bytes"], 600_000);
    assert_eq!(object["ranges"], true);
    assert_eq!(object["verdict"], "comfortable");
    assert_eq!(object["latest_start_past"], false);
    // All of it was fetched, and that ended the measurement.
    assert_eq!(object["measured_bytes"], 600_000);
    assert!(number(&object, "measured_s") < 10.0, "{object}");
    // 4 h less the margin of 10 %, and less the seconds of the measurement.
    let needed = number(&object, "needed_rate");
    assert!((46.2..46.4).contains(&needed), "{object}");
    assert!(
        number(&object, "peak_rate") >= number(&object, "polite_rate"),
        "{object}"
    );
    for name in ["now", "deadline", "latest_start"] {
        let moment = object[name].as_str().unwrap_or_default();
        assert!(moment.ends_with('Z'), "{name} in {object}");
    }
}

#[test]
fn a_file_that_one_connection_cannot_carry_is_impossible() {
    let nginx = nginx(|config| config.limit_rate = Some(SLOW));
    // A terabyte of nothing.
    File::create(nginx.path("huge"))
        .and_then(|file| file.set_len(1 << 40))
        .expect("a sparse file");
    let args = ["--deadline=1h", "--measure=2s", &nginx.url("huge")];
    let outcome = plan(&[&args[..], &["--json"]].concat());
    outcome.expect_code(11);
    let object = outcome.object();
    assert_eq!(object["bytes"], 1_u64 << 40);
    assert_eq!(object["verdict"], "impossible");
    assert_eq!(object["latest_start_past"], true);
    assert!(number(&object, "measured_bytes") > 0.0, "{object}");
    // What the server allows, and what it lets through at once at first.
    assert!(number(&object, "peak_rate") < 10.0 * SLOW as f64);
    assert!(outcome.elapsed >= Duration::from_secs(2), "{outcome}");

    let words = plan(&args);
    words.expect_code(11);
    assert!(words.stdout.contains("impossible"), "{words}");
    assert!(words.stdout.contains("already past"), "{words}");
}

#[test]
fn people_read_a_few_aligned_lines_on_standard_output() {
    let nginx = nginx(|_| ());
    let outcome = plan(&["--deadline", "4h", "-q", &nginx.url("file")]);
    outcome.expect_code(0);
    assert_eq!(outcome.stderr, "", "{outcome}");
    let lines: Vec<_> = outcome.stdout.lines().collect();
    for (line, start) in lines.iter().zip([
        "size          ",
        "deadline      ",
        "needed        ",
        "measured      ",
        "verdict       comfortable",
        "latest start  ",
    ]) {
        assert!(line.starts_with(start), "{start}: {outcome}");
    }
    assert_eq!(lines.len(), 6, "{outcome}");
}

#[test]
fn without_a_measurement_nothing_is_fetched_and_the_verdict_is_unknown() {
    let nginx = nginx(|_| ());
    let outcome = plan(&["--json", "--deadline=4h", "--measure=0", &nginx.url("file")]);
    outcome.expect_code(0);
    let object = outcome.object();
    assert_eq!(object["verdict"], "unknown");
    assert_eq!(object["bytes"], 600_000);
    assert!(number(&object, "needed_rate") > 40.0);
    for name in ["measured_s", "measured_bytes", "polite_rate", "peak_rate"] {
        assert!(object[name].is_null(), "{name} in {object}");
    }
    assert!(object["latest_start"].is_null(), "{object}");
    // The byte that shows whether ranges are served.
    assert_eq!(nginx.sent_bytes(), 1);
}

#[test]
fn without_ranges_or_size_the_verdict_is_unknown() {
    let no_ranges: fn(&mut Config) = |config| config.ranges = false;
    let no_size: fn(&mut Config) = |config| config.chunked = true;
    for (change, bytes) in [(no_ranges, Value::from(600_000)), (no_size, Value::Null)] {
        let nginx = nginx(change);
        let outcome = plan(&["--json", "--deadline", "4h", &nginx.url("file")]);
        outcome.expect_code(0);
        let object = outcome.object();
        assert_eq!(object["ranges"], false);
        assert_eq!(object["bytes"], bytes);
        assert_eq!(object["verdict"], "unknown");
        assert!(object["measured_bytes"].is_null(), "{object}");
    }
}

#[test]
fn a_deadline_that_is_over_is_impossible() {
    let nginx = nginx(|_| ());
    let url = nginx.url("file");
    let outcome = plan(&["--json", "--deadline", "2020-01-01T00:00:00Z", &url]);
    outcome.expect_code(11);
    let object = outcome.object();
    assert_eq!(object["verdict"], "impossible");
    assert!(object["needed_rate"].is_null(), "{object}");
    assert_eq!(object["latest_start_past"], true);
}

#[test]
fn a_refusal_and_a_dead_server_have_their_own_codes() {
    let nginx = nginx(|_| ());
    let missing = plan(&["--json", "--deadline", "4h", &nginx.url("missing")]);
    missing.expect_code(1).expect_said(&["404"]);
    assert_eq!(missing.stdout, "", "{missing}");
    let dead = plan(&["--deadline", "4h", "http://127.77.77.77:1/file"]);
    dead.expect_code(5).expect_said(&["refused"]);
    assert_eq!(dead.stdout, "", "{dead}");
}

#[test]
fn a_connection_that_breaks_or_says_nothing_is_no_measurement() {
    let version = Version::new(&FILE);
    for end in [End::Reset(1000), End::Stall(0)] {
        let server = FaultServer::start();
        let version = version.clone();
        server.script("/file", move |request| match request.is_probe() {
            true => version.answer(request),
            false => version.answer(request).end(end),
        });
        let url = server.url("/file");
        let outcome = plan(&["--deadline=4h", "--measure=2s", &url]);
        outcome.expect_code(5);
        assert_eq!(outcome.stdout, "", "{outcome}");
    }
}

#[test]
fn what_is_wrong_on_the_command_line_exits_2() {
    let url = "http://127.77.77.77:1/file";
    for args in [
        &[url][..],
        &["--deadline", "4h"],
        &["--deadline", "soon", url],
        &["--deadline", "4h", "--measure", "x", url],
        &["--deadline", "4h", "--user", "me", url],
        &["--deadline", "4h", "example.org/file"],
        &["--deadline", "4h", "-o", "file", url],
        &["--deadline", "4h", url, url],
    ] {
        let outcome = plan(args);
        outcome.expect_code(2);
        assert!(
            !outcome.stderr.is_empty() && outcome.stdout.is_empty(),
            "{outcome}"
        );
    }
}

#[test]
fn one_connection_measures_also_where_answers_are_shorter_than_asked_for() {
    let server = FaultServer::start();
    let version = Version::new(&FILE);
    server.script("/file", move |request| match request.range() {
        // RFC 9110 section 15.3.7 allows it.
        Some((first, Some(last))) => version.part((first, Some(last.min(first + 99_999)))),
        _ => version.answer(request),
    });
    let outcome = plan(&["--json", "--deadline", "4h", &server.url("/file")]);
    outcome.expect_code(0);
    assert_eq!(outcome.object()["measured_bytes"], 600_000);
    assert_eq!(server.most_active(), 1);
    let requests = server.requests();
    assert_eq!(requests.len(), 7, "a probe and six parts");
    let first = requests[0].connection;
    assert!(requests.iter().all(|r| r.connection == first), "kept alive");
}

#[test]
fn it_speaks_to_servers_as_get_does() {
    let (server, proxy) = (FaultServer::start(), ForwardProxy::start());
    let version = Version::new(&FILE);
    let right = format!("Basic {}", base64(b"me:s3cret"));
    server.script("/file", move |request| {
        let has = |name, value: &str| request.header(name) == Some(value);
        if has("authorization", &right) && has("x-a", "b") {
            version.answer(request)
        } else {
            Reply::status(401)
        }
    });
    let work = Workdir::new();
    let outcome = Fairbat::new(work.path())
        .args(["plan", "-H", "X-A: b", "-u", "me:s3cret"])
        .arg(server.url("/file"))
        .env("FAIRBAT_DEADLINE", "4h")
        .env("FAIRBAT_JSON", "1")
        .env("http_proxy", proxy.url())
        .run();
    outcome.expect_code(0);
    assert_eq!(outcome.object()["verdict"], "comfortable");
    assert_eq!(proxy.requests().len(), server.requests().len());
    let shown = format!("{}{}", outcome.stdout, outcome.stderr);
    assert!(!shown.contains("s3cret"), "{outcome}");
}

#[test]
fn a_signal_ends_it_with_130() {
    for signal in ["INT", "TERM"] {
        let server = FaultServer::start();
        let version = Version::new(&FILE);
        server.script("/file", move |request| version.answer(request).rate(10_000));
        let work = Workdir::new();
        let mut run = Fairbat::new(work.path())
            .args(["plan", "--deadline", "4h", "--measure", "50s"])
            .arg(server.url("/file"))
            .spawn();
        wait_until("the measurement", Duration::from_secs(20), || {
            server.requests().len() >= 2
        });
        run.signal(signal);
        let outcome = run.wait();
        outcome.expect_code(130);
        assert_eq!(outcome.stdout, "", "{outcome}");
        work.assert_holds(&[]);
    }
}
