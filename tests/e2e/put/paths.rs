//! `--interface`: an upload over several paths is the same file, sooner, whatever happens on the way.

use std::fs;
use std::net::IpAddr;
use std::time::Duration;

use fairbat_tests::bin::{Fairbat, Running};
use fairbat_tests::content::Content;
use fairbat_tests::expect::{assert_absent, assert_content};
use fairbat_tests::netns::{Link, PATHS, SERVER};
use fairbat_tests::nginx::{Config, Nginx};
use fairbat_tests::poll::{wait_for, wait_until};
use fairbat_tests::workdir::Workdir;
use serde_json::Value;

use super::{assert_done, with};

/// Ten seconds over one path.
const BIG: Content = Content::new(195, 12_000_000);

/// The rate of each path: 1.25 MB/s.
const RATE: &str = "10mbit";

/// How long anything here may take.
const SOON: Duration = Duration::from_secs(30);

/// The port of the server, in a namespace of its own.
const PORT: u16 = 8080;

/// Starts a FAIRBAT server of this directory.
fn serve(link: &Link, directory: &Workdir, token: &Workdir) -> Running {
    let token = token.join("token");
    fairbat_tests::secret::write_secret(&token, "0123456789abcdef0123456789abcdef");
    let running = Fairbat::new(directory.path())
        .namespace(link.server())
        .timeout(Duration::from_secs(200))
        .args(["serve", "--json", "--writable", "--listen"])
        .arg(format!("{SERVER}:{PORT}"))
        .arg("--token-file")
        .arg(&token)
        .arg(".")
        .spawn();
    wait_for("the server to listen", SOON, || {
        running.events().into_iter().next()
    });
    running
}

fn url() -> String {
    format!("http://{SERVER}:{PORT}/dir/file")
}

fn put(link: &Link, work: &Workdir, interfaces: &str, url: &str) -> Fairbat {
    work.put()
        .namespace(link.client())
        .timeout(Duration::from_secs(120))
        .env(
            "FAIRBAT_HEADER",
            "Authorization: Bearer 0123456789abcdef0123456789abcdef",
        )
        // So that the paths alone decide how long it takes.
        .args(["--weight=1", "--interface", interfaces, "file", url])
}

/// Bytes that have gone over each path.
fn by_path(event: &Value) -> Vec<u64> {
    let paths = event["paths"].as_array().cloned().unwrap_or_default();
    let bytes = paths.iter().map(|path| path["bytes_done"].as_u64());
    bytes.map(|bytes| bytes.expect("a number")).collect()
}

/// Waits until so much has gone over both paths.
fn wait_for_both(run: &mut Running, bytes: u64) {
    run.wait_for_event("both paths to carry", |event| {
        let carried = by_path(event);
        carried.len() == 2 && carried.iter().all(|it| *it > bytes)
    });
}

/// Panics unless the server has nothing unfinished.
#[track_caller]
fn assert_no_scratch(served: &Workdir) {
    let scratch = served.join(".fairbat-upload");
    wait_until("what was unfinished to be gone", SOON, || {
        fs::read_dir(&scratch).map_or(true, |names| names.count() == 0)
    });
}

#[test]
fn two_paths_are_faster_than_one() {
    let Some(link) = Link::two_paths(RATE) else {
        return;
    };
    let (served, token, work) = (Workdir::new(), Workdir::new(), with(&BIG));
    let _server = serve(&link, &served, &token);
    let one = put(&link, &work, PATHS[0], &url()).run();
    assert_done(&one, &url(), &BIG);
    assert_eq!(one.event("done")["status"], 201, "{one}");
    assert_content(&served.join("dir/file"), &BIG);
    fs::remove_file(served.join("dir/file")).expect("removed");
    // All routes lead over the first path: an address stands for the interface that has it.
    let ends = format!("{},10.77.11.2", PATHS[0]);
    let both = put(&link, &work, &ends, &url()).run();
    assert_done(&both, &url(), &BIG);
    assert_eq!(both.event("done")["status"], 201, "{both}");
    assert!(both.events_named("retry").is_empty(), "{both}");
    assert_content(&served.join("dir/file"), &BIG);
    assert_no_scratch(&served);
    let took = |run: &fairbat_tests::outcome::Outcome| {
        run.event("done")["elapsed_s"].as_f64().expect("seconds")
    };
    let (one_s, both_s) = (took(&one), took(&both));
    println!("one path {one_s:.2} s, two paths {both_s:.2} s");
    assert!(
        one_s > 1.5 * both_s,
        "one {one_s} s, both {both_s} s\n{both}"
    );
    let samples = both.events_named("control");
    let last = by_path(samples.last().expect("a sample"));
    assert!(last.iter().all(|bytes| *bytes > BIG.len() / 5), "{last:?}");
}

#[test]
fn a_path_goes_away_and_comes_back() {
    let Some(link) = Link::two_paths(RATE) else {
        return;
    };
    let (served, token, work) = (Workdir::new(), Workdir::new(), with(&BIG));
    let _server = serve(&link, &served, &token);
    let mut run = put(&link, &work, &PATHS.join(","), &url()).spawn();
    wait_for_both(&mut run, 1_000_000);
    link.path_down(1);
    run.wait_for_event("the path to go", |event| {
        event["event"] == "path" && event["up"] == false
    });
    std::thread::sleep(Duration::from_secs(2));
    link.path_up(1);
    let outcome = run.wait();
    assert_done(&outcome, &url(), &BIG);
    assert_content(&served.join("dir/file"), &BIG);
    assert_no_scratch(&served);
    assert_eq!(outcome.events_named("path").len(), 2, "{outcome}");
    let reasons = outcome.events_named("retry");
    let mut reasons = reasons.iter().filter_map(|retry| retry["reason"].as_str());
    assert!(
        !reasons.any(|reason| reason.contains("starts over")),
        "{outcome}"
    );
    // It is used again.
    let events = outcome.events();
    let is_back = |event: &Value| event["event"] == "path" && event["up"] == true;
    let back = events.iter().position(is_back).expect("it comes back");
    let controls = events[back..].iter().filter(|it| it["event"] == "control");
    let carried: Vec<u64> = controls.map(|event| by_path(event)[1]).collect();
    let (first, last) = (carried.first(), carried.last());
    let gained = last.zip(first).map(|(last, first)| last - first);
    println!("{gained:?} bytes after it came back");
    assert!(gained > Some(500_000), "{carried:?}\n{outcome}");
}

#[test]
fn a_path_that_leads_nowhere_delays_nothing() {
    let Some(link) = Link::two_paths(RATE) else {
        return;
    };
    let (served, token, work) = (Workdir::new(), Workdir::new(), with(&BIG));
    let _server = serve(&link, &served, &token);
    link.path_leads_nowhere(1);
    let outcome = put(&link, &work, &PATHS.join(","), &url())
        .args([
            "--connect-timeout",
            "2s",
            "--retry-wait",
            "10m",
            "--max-time",
            "60s",
        ])
        .run();
    assert_done(&outcome, &url(), &BIG);
    assert_content(&served.join("dir/file"), &BIG);
    outcome.expect_said(&["over path1"]);
}

#[test]
fn a_server_that_is_killed_gets_the_file_from_the_start() {
    let Some(link) = Link::two_paths(RATE) else {
        return;
    };
    let (served, token, work) = (Workdir::new(), Workdir::new(), with(&BIG));
    let mut server = serve(&link, &served, &token);
    let mut run = put(&link, &work, &PATHS.join(","), &url())
        .args(["--retry-max-wait", "1s"])
        .spawn();
    wait_for_both(&mut run, 1_000_000);
    server.signal("KILL");
    wait_until("it to end", SOON, || !server.is_running());
    assert_absent(&served.join("dir/file"));
    let _again = serve(&link, &served, &token);
    let outcome = run.wait();
    assert_done(&outcome, &url(), &BIG);
    assert_content(&served.join("dir/file"), &BIG);
    assert_no_scratch(&served);
    outcome.expect_said(&["it starts over"]);
}

#[test]
fn an_interrupted_upload_is_given_up_at_the_server() {
    let Some(link) = Link::two_paths(RATE) else {
        return;
    };
    let (served, token, work) = (Workdir::new(), Workdir::new(), with(&BIG));
    let _server = serve(&link, &served, &token);
    let mut run = put(&link, &work, &PATHS.join(","), &url()).spawn();
    wait_for_both(&mut run, 500_000);
    run.signal("INT");
    run.wait().expect_code(130);
    assert_no_scratch(&served);
    assert_absent(&served.join("dir/file"));
    // So is one whose file changes.
    let mut run = put(&link, &work, &PATHS.join(","), &url()).spawn();
    wait_for_both(&mut run, 500_000);
    BIG.write_to(&work.join("file")).expect("written again");
    run.wait().expect_code(4);
    assert_no_scratch(&served);
    // A server that refuses it ends it at once.
    fs::create_dir(served.join("dir")).expect("made");
    BIG.write_to(&served.join("dir/file")).expect("written");
    let outcome = put(&link, &work, &PATHS.join(","), &url())
        .arg("--create-only")
        .run();
    outcome.expect_code(1).expect_said(&["412"]);
}

#[test]
fn a_server_without_parts_gets_one_put() {
    let Some(link) = Link::two_paths(RATE) else {
        return;
    };
    let address: IpAddr = SERVER.parse().expect("an address");
    let nginx = Nginx::start(&Config {
        namespace: Some(link.server().to_owned()),
        address,
        upload_limit: Some(0),
        ..Config::default()
    });
    let small = Content::new(196, 1_000_000);
    let work = with(&small);
    let outcome = put(&link, &work, &PATHS.join(","), &nginx.url("stored")).run();
    assert_done(&outcome, &nginx.url("stored"), &small);
    outcome.expect_said(&["takes no uploads in parts"]);
    assert_content(&nginx.path("stored"), &small);
    let accesses = nginx.settled_accesses();
    let stored: Vec<_> = accesses.iter().filter(|it| it.status == 201).collect();
    assert_eq!(stored.len(), 1, "{accesses:?}");
}

#[test]
fn a_metered_path_is_spared_until_a_deadline_needs_it() {
    let Some(link) = Link::two_paths(RATE) else {
        return;
    };
    let (served, token) = (Workdir::new(), Workdir::new());
    let _server = serve(&link, &served, &token);
    let interfaces = format!("{},{}:cost=metered", PATHS[0], PATHS[1]);
    let small = Content::new(197, 3_000_000);
    let work = with(&small);
    let outcome = put(&link, &work, &interfaces, &url()).run();
    assert_done(&outcome, &url(), &small);
    assert!(outcome.events_named("retry").is_empty(), "{outcome}");
    let samples = outcome.events_named("control");
    assert_eq!(
        by_path(samples.last().expect("a sample"))[1],
        0,
        "{outcome}"
    );
    // One path is too slow for this.
    let work = with(&BIG);
    let outcome = put(&link, &work, &interfaces, &url())
        .args(["--deadline", "8s"])
        .run();
    assert_done(&outcome, &url(), &BIG);
    assert_content(&served.join("dir/file"), &BIG);
    assert_eq!(outcome.event("done")["deadline_met"], true, "{outcome}");
    assert!(outcome.events_named("retry").is_empty(), "{outcome}");
    let samples = outcome.events_named("control");
    let paid = by_path(samples.last().expect("a sample"))[1];
    println!("{paid} bytes over the metered path");
    // The other path carries 9.5 MB until then, and does not rest.
    assert!((500_000..5_000_000).contains(&paid), "{paid}\n{outcome}");
}
