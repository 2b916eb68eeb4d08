//! What is ordered by `fairbat` is done by the agent, and remembered by it.

use std::fs;
use std::path::Path;

use fairbat_tests::content::{Content, sha256_hex};
use fairbat_tests::fault::FaultServer;
use fairbat_tests::nginx::{Config, Nginx};
use fairbat_tests::poll::wait_until;
use fairbat_tests::version::Version;

use crate::access::{configure_with_page, page};
use crate::round_trip::dir;
use crate::service::{Place, SOON, Service};
use crate::tree::expect_same;

/// A job that pushes to a directory, by hand.
fn home(source: &Path, store: &Path, more: &str) -> String {
    format!(
        "[stores.disk]\ntype = \"local\"\npath = {store:?}\n[[jobs]]\nname = \"home\"\n\
         source = {source:?}\ndestination = \"disk:home\"\n{more}\n"
    )
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[test]
fn a_job_is_run_and_restored() {
    let (source, store, back) = (dir(), dir(), dir());
    fs::create_dir(source.path().join("d")).expect("make a directory");
    fs::write(source.path().join("d/f"), "x").expect("write a file");
    let place = Place::new();
    place.configure("", &home(source.path(), store.path(), ""));
    let service = place.start();
    service.order(&["start", "home", "--wait"]);
    let to = back.path().join("new");
    let id = service.order(&["restore", "home", "--wait", "--to", &shown(&to)]);
    expect_same(source.path(), &to);
    let task = service.task(&id).expect("it is told of");
    assert_eq!(
        (&task["phase"], &task["kind"]),
        (&"done".into(), &"restore".into())
    );
    let refused = service.fairbat(&["restore", "home", "--to", &shown(&to)]);
    refused
        .expect_code(1)
        .expect_said(&["is not empty; restore into a new or an empty directory"]);
    for args in [
        &["restore", &id, "--to", "/nowhere"],
        &["restore", "hom", "--to", "/nowhere"],
    ] {
        service.fairbat(args).expect_code(1);
    }
    // What is through is not begun again.
    service.kill();
    let service = place.start();
    assert!(service.task(&id).is_none());
}

#[test]
fn the_status_knows_a_task_as_soon_as_it_is_told_of() {
    let place = Place::new();
    place.configure("", "");
    let service = place.start();
    for _ in 0..5 {
        // Nobody listens there.
        let to = shown(&place.join("downloads/"));
        let id = service.order(&["add", "http://127.0.0.1:1/file", "-d", &to]);
        service.order(&["status", &id]);
        service.order(&["pause", &id]);
        service.task(&id).expect("it is there");
        service.order(&["cancel", &id]);
        assert!(service.task(&id).is_none());
    }
}

#[test]
fn a_pause_outlives_the_agent_and_a_run_goes_on_where_it_was() {
    const SIZE: usize = 12_000_000;
    let (source, store) = (dir(), dir());
    fs::write(source.path().join("f"), vec![7; SIZE]).expect("write a file");
    let place = Place::new();
    let limited = |rate: &str| {
        let more = format!("limit_rate = {rate:?}\nwithin = \"3h\"");
        place.configure("", &home(source.path(), store.path(), &more));
    };
    // Slow enough to be at it still, whatever else happens.
    limited("500K");
    let service = place.start();
    service.order(&["start", "home"]);
    let run = service.wait_for_progress("home");
    service.order(&["pause", "home"]);
    let paused = service.wait_for_task("paused", "home", |task| task["phase"] == "paused");
    let running = service.fairbat(&["start", "home"]);
    running.expect_code(1).expect_said(&["paused"]);
    service.kill();

    limited("20M");
    let service = place.start();
    let still = service.task("home").expect("it is there");
    assert_eq!(
        (&still["phase"], &still["deadline"]),
        (&"paused".into(), &run["deadline"])
    );
    assert!(paused["deadline"].is_string());
    service.order(&["resume", "home"]);
    service.wait_for_task("done", "home", |task| task["last"]["ok"] == true);
    service.fairbat(&["resume", "home"]).expect_code(1);
    service.kill();
    let service = place.start();
    let through = service.task("home").expect("it is there");
    assert_eq!(through["phase"], "waiting", "{through:#}");
}

#[test]
fn a_failure_is_still_one_after_a_restart() {
    let (source, store) = (dir(), dir());
    fs::write(source.path().join("f"), "x").expect("write a file");
    let place = Place::new();
    let mirror = "delete = \"mirror\"\nmax_delete = \"100%\"";
    place.configure("", &home(source.path(), store.path(), mirror));
    let service = place.start();
    service.order(&["start", "home", "--wait"]);
    fs::remove_file(source.path().join("f")).expect("remove a file");
    let failed = service.fairbat(&["start", "home", "--wait"]);
    assert_ne!(failed.code, Some(0), "{failed:?}");
    let before = service.task("home").expect("it is there");
    assert_eq!(before["last"]["ok"], false, "{before:#}");
    service.kill();
    let service = place.start();
    let after = service.task("home").expect("it is there");
    assert_eq!(after["last"], before["last"], "{after:#}");
}

/// Where a run of the job takes longer than any test.
fn slow(source: &Path, store: &Path) -> Place {
    fs::write(source.join("f"), vec![7; 40_000_000]).expect("write a file");
    let place = Place::new();
    place.configure("", &home(source, store, "limit_rate = \"2M\""));
    place
}

/// No run of the job is to go on.
fn expect_nothing_left(service: &Service) {
    let task = service.task("home").expect("it is there");
    assert_eq!(
        (&task["phase"], &task["next"]),
        (&"waiting".into(), &serde_json::Value::Null)
    );
}

#[test]
fn a_run_that_is_cancelled_stays_so() {
    let (source, store) = (dir(), dir());
    let place = slow(source.path(), store.path());
    let service = place.start();
    service.fairbat(&["cancel", "home"]).expect_code(1);
    service.order(&["start", "home"]);
    service.wait_for_progress("home");
    service.order(&["cancel", "home"]);
    service.wait_for_task("cancelled", "home", |task| task["phase"] == "waiting");
    let (status, _) = service.terminate();
    assert!(status.success(), "{status}");
    let service = place.start();
    expect_nothing_left(&service);
}

#[test]
fn a_pause_that_is_taken_back_at_once_loses_nothing_and_what_is_left_can_be_cancelled() {
    let (source, store) = (dir(), dir());
    let place = slow(source.path(), store.path());
    let service = place.start();
    service.order(&["start", "home"]);
    let run = service.wait_for_progress("home");
    service.order(&["pause", "home"]);
    service.order(&["resume", "home"]);
    service.wait_for_task("going on", "home", |task| {
        task["phase"] == "running" && task["began"] != run["began"]
    });
    service.order(&["pause", "home"]);
    service.wait_for_task("paused", "home", |task| task["phase"] == "paused");
    service.order(&["cancel", "home"]);
    let again = service.fairbat(&["cancel", "home"]);
    again.expect_code(1).expect_said(&["no run of home"]);
    // A pause is no part of the run.
    assert_eq!(
        service.task("home").expect("it is there")["phase"],
        "paused"
    );
    service.order(&["resume", "home"]);
    service.kill();
    let service = place.start();
    expect_nothing_left(&service);
}

#[test]
fn downloads_are_added_paused_resumed_and_cancelled() {
    let nginx = Nginx::start(&Config {
        limit_rate: Some(1_000_000),
        ..Config::default()
    });
    let content = Content::new(71, 10_000_000);
    nginx.put("file", &content);
    nginx.put("small", &Content::new(72, 1_000));
    let to = dir();
    let place = Place::new();
    // It is not to yield to whatever else this machine does.
    place.configure("min_weight = 1.0", "");
    let service = place.start();
    let into = format!("{}/", shown(to.path()));
    let small = service.order(&["add", "-d", &into, &nginx.url("small")]);
    service.wait_for_task("done", &small, |task| task["phase"] == "done");
    let id = service.order(&["add", "-d", &into, &nginx.url("file")]);
    let gone = service.order(&["add", "-o", &format!("{into}other"), &nginx.url("file")]);
    service.wait_for_progress(&id);
    service.order(&["pause", &id]);
    service.wait_for_task("paused", &id, |task| task["phase"] == "paused");
    service.order(&["cancel", &gone]);
    wait_until("it to be forgotten", SOON, || service.task(&gone).is_none());
    service.kill();

    let service = place.start();
    assert_eq!(service.task(&id).expect("it is there")["phase"], "paused");
    assert!(service.task(&gone).is_none() && service.task(&small).is_none());
    service.order(&["resume", &id]);
    service.wait_for_task("done", &id, |task| task["phase"] == "done");
    fairbat_tests::expect::assert_content(&to.path().join("file"), &content);
    assert!(!to.path().join("other").exists());
    // A number is given once.
    let next = service.order(&["add", "-d", &into, &nginx.url("small")]);
    assert!(![id, gone, small].contains(&next), "{next}");
}

#[test]
fn a_download_comes_from_the_server_that_has_its_digest() {
    let content = Content::new(73, 3_000_000);
    let (absent, stale, good) = (
        FaultServer::start(),
        FaultServer::start(),
        FaultServer::start(),
    );
    stale.serve("/file", Version::new(&Content::new(74, 3_000_000)));
    good.serve("/file", Version::new(&content));
    let to = dir();
    let place = Place::new();
    place.configure("", "");
    let service = place.start();
    let checksum = format!("sha-256={}", sha256_hex(&content.all()));
    let [first, second, third] = [&absent, &stale, &good].map(|server| server.url("/file"));
    let mirrors = ["--mirror", &second, "--mirror", &third];
    let out = shown(&to.path().join("it"));
    let args = ["add", "-o", &out, "--checksum", &checksum, &first];
    let id = service.order(&[&args[..], &mirrors[..]].concat());
    service.wait_for_task("done", &id, |task| task["phase"] == "done");
    fairbat_tests::expect::assert_content(&to.path().join("it"), &content);
}

/// The sum of the series of a metric that have this label; 0 if there is none.
fn metric(text: &str, name: &str, label: &str) -> f64 {
    fairbat_tests::metrics::metric(text, name, label).unwrap_or_default()
}

#[test]
fn what_a_restore_has_moved_still_counts_when_it_is_cancelled() {
    const SIZE: usize = 3_000_000;
    let (source, store, back) = (dir(), dir(), dir());
    fs::write(source.path().join("f"), vec![7; SIZE]).expect("write a file");
    let place = Place::new();
    let job = |more: &str| home(source.path(), store.path(), more);
    let port = configure_with_page(&place, &job(""));
    let mut service = place.start();
    service.order(&["start", "home", "--wait"]);
    let moved = || {
        let text = page(port.address(), "/metrics");
        let of_tasks = metric(&text, "fairbat_bytes_total", "direction=\"pull\"");
        (
            of_tasks,
            metric(&text, "fairbat_lane_bytes_total", "\"pull\""),
            text,
        )
    };
    let whole = shown(&back.path().join("whole"));
    let id = service.order(&["restore", "home", "--wait", "--to", &whole]);
    service.order(&["cancel", &id]);
    let (of_tasks, of_lane, text) = moved();
    assert_eq!((of_tasks, of_lane), (SIZE as f64, SIZE as f64), "{text}");
    let succeeded = metric(&text, "fairbat_runs_total", "outcome=\"succeeded\"");
    assert_eq!(succeeded, 2.0, "{text}");

    // Slow enough to be at it still.
    let config = fs::read_to_string(place.join("agent.toml")).expect("read it");
    let slow = format!("{config}limit_rate = \"200K\"\n");
    fs::write(place.join("agent.toml"), slow).expect("write it");
    service.signal("HUP");
    place.wait_for_log("changed, from its next run on", 1);
    let part = shown(&back.path().join("part"));
    let id = service.order(&["restore", "home", "--to", &part]);
    service.wait_for_progress(&id);
    service.order(&["cancel", &id]);
    assert!(service.task(&id).is_none());
    wait_until("the bytes of the cancelled run are counted", SOON, || {
        let (of_tasks, of_lane, _) = moved();
        of_tasks == of_lane && of_lane > SIZE as f64
    });
}

#[test]
fn the_directory_of_a_download_is_made() {
    let nginx = Nginx::start(&Config::default());
    nginx.put("file", &Content::new(7, 1_000));
    let (place, to) = (Place::new(), dir());
    place.configure("", "");
    let service = place.start();
    let file = to.path().join("new/directory/file");
    let id = service.order(&["add", &nginx.url("file"), "-o", &shown(&file)]);
    service.wait_for_task("done", &id, |task| task["phase"] == "done");
    assert_eq!(fs::metadata(&file).expect("it is there").len(), 1_000);
}

/// The stream of the lane to this machine, as the status tells of it.
fn stream(service: &Service<'_>) -> serde_json::Value {
    let told = service.order(&["status", "--json"]);
    let status: serde_json::Value = serde_json::from_str(&told).expect("JSON");
    let lanes = status["lanes"].as_array().expect("lanes");
    let pull = lanes.iter().find(|lane| lane["direction"] == "pull");
    pull.expect("a lane")["stream"].clone()
}

#[test]
fn downloads_without_a_deadline_wait_for_their_turn_and_have_one_connection_each() {
    let server = FaultServer::start();
    let contents: Vec<_> = (0..5)
        .map(|index| (format!("f{index}"), Content::new(500 + index, 600_000)))
        .collect();
    for (name, content) in &contents {
        let version = Version::new(content);
        server.script(&format!("/{name}"), move |request| {
            version.answer(request).rate(100_000)
        });
    }
    let (place, to) = (Place::new(), dir());
    // One of them is left to other tasks.
    place.configure("connections = 3", "[stream]\ntau = 0.5");
    let service = place.start();
    let into = format!("{}/", shown(to.path()));
    let add = |(name, _): &(String, Content)| {
        service.order(&["add", "-d", &into, &server.url(&format!("/{name}"))])
    };
    let ids: Vec<_> = contents.iter().map(add).collect();
    wait_until("some to wait", SOON, || {
        let stream = stream(&service);
        assert_eq!(stream["tau"], 0.5);
        // More than the one that may yield alone.
        stream["n"].as_f64() > Some(1.0) && stream["active"].as_u64() >= Some(1)
    });
    for id in &ids {
        service.wait_for_task("done", id, |task| task["phase"] == "done");
    }
    for (name, content) in &contents {
        fairbat_tests::expect::assert_content(&to.path().join(name), content);
        let requests = server.requests_for(&format!("/{name}")).len();
        assert!(
            requests <= 2,
            "{requests} requests: a probe, and all at once"
        );
    }
    assert!(server.most_active() <= 2, "{}", server.most_active());
}

#[test]
fn a_job_of_a_stream_is_in_step_afterwards() {
    let (source, store) = (dir(), dir());
    for index in 0..20 {
        let bytes = vec![index; 200_000];
        fs::write(source.path().join(format!("f{index}")), bytes).expect("write a file");
    }
    let place = Place::new();
    // Slow enough to be seen.
    let more = "mode = \"stream\"\nlimit_rate = \"500K\"";
    let job = home(source.path(), store.path(), more);
    let port = configure_with_page(&place, &job);
    let service = place.start();
    service.order(&["start", "home"]);
    wait_until("it to have its connection", SOON, || {
        let active = "fairbat_lane_stream_active_connections";
        metric(&page(port.address(), "/metrics"), active, "\"push\"") == 1.0
    });
    let text = page(port.address(), "/metrics");
    let all = metric(&text, "fairbat_lane_active_connections", "\"push\"");
    assert!(
        all <= 1.0,
        "{all} connections of a job that is one transfer"
    );
    service.wait_for_task("in step", "home", |task| task["last"]["ok"] == true);
    assert_eq!(
        fs::read(store.path().join("home/f7")).expect("it is there"),
        [7; 200_000]
    );
    let text = page(port.address(), "/metrics");
    let limit = metric(&text, "fairbat_lane_stream_connection_limit", "\"push\"");
    assert!((0.2..=4.0).contains(&limit), "{limit}");
    assert_eq!(
        metric(&text, "fairbat_lane_stream_target_transfers", "\"push\""),
        5.0
    );
}
