//! SIGHUP: what has changed is changed, and what has not goes on undisturbed.

use std::fs;
use std::path::Path;

use fairbat_tests::poll::wait_until;
use fairbat_tests::stores::{FaultProxy, S3, S3Kind};

use crate::round_trip::dir;
use crate::service::{Place, SOON, s3_store, write_keys};

/// A job that runs by hand, and `more` keys.
fn job(name: &str, source: &Path, destination: &str, more: &str) -> String {
    format!(
        "[[jobs]]\nname = {name:?}\nsource = {source:?}\ndestination = {destination:?}\n{more}\n"
    )
}

fn disk(path: &Path) -> String {
    format!("[stores.disk]\ntype = \"local\"\npath = {path:?}\n")
}

#[test]
fn a_push_of_a_job_that_stays_as_it_is_goes_on_undisturbed() {
    const SIZE: u64 = 24_000_000;
    let (home, other, store) = (dir(), dir(), dir());
    fs::write(home.path().join("large"), vec![7; SIZE as usize]).expect("write a file");
    fs::write(other.path().join("large"), vec![7; 50_000_000]).expect("write a file");
    fs::write(other.path().join("a"), "x").expect("write a file");
    let server = S3::start(S3Kind::S3sFs);
    let proxy = FaultProxy::start(server.address());
    let place = Place::new();
    write_keys(&place.join("keys"), &server, server.secret_key());
    let stores = s3_store(&server, &proxy, &place.join("keys")) + &disk(store.path());
    // Slow enough to be at it still, whatever else happens.
    let unchanged = job("home", home.path(), "s3:home", "limit_rate = \"2M\"");
    let doomed = job("doomed", other.path(), "disk:doomed", "limit_rate = \"1M\"");
    let little = "include = [\"/a\"]";
    let changed = |to: &str| job("etc", other.path(), to, little);
    place.configure(
        "",
        &format!("{stores}{unchanged}{doomed}{}", changed("disk:one")),
    );
    let mut service = place.start();
    service.order(&["start", "doomed"]);
    service.wait_for_progress("doomed");
    service.order(&["start", "home"]);
    let run = service.wait_for_progress("home");

    // What is wrong is refused, and changes nothing.
    place.configure(
        "",
        &format!("{stores}{unchanged}{doomed}[[jobs]]\nname = \"x\"\n"),
    );
    service.signal("HUP");
    place.wait_for_log("the new configuration is refused", 1);
    assert!(place.log().contains("agent.toml:"), "{}", place.log());
    for id in ["home", "doomed", "etc"] {
        assert!(service.task(id).is_some(), "{id}");
    }

    let added = job("added", other.path(), "disk:added", little);
    let jobs = format!("{stores}{added}{unchanged}{}", changed("disk:two"));
    place.configure("connections = 2", &jobs);
    service.signal("HUP");
    place.wait_for_log("added", 1);
    wait_until("the removed job to leave", SOON, || {
        service.task("doomed").is_none()
    });
    let log = place.log();
    assert!(
        log.contains("wait for the next start") && log.contains("keys=\"connections\""),
        "{log}"
    );
    let ids = service.order(&["status", "--json"]);
    let ids: serde_json::Value = serde_json::from_str(&ids).expect("JSON");
    let ids: Vec<_> = ids["tasks"]
        .as_array()
        .expect("tasks")
        .iter()
        .map(|task| &task["id"])
        .collect();
    assert_eq!(ids, ["added", "home", "etc"]);
    service.order(&["start", "etc", "--wait"]);
    service.order(&["start", "added", "--wait"]);
    for (path, is_there) in [
        ("one/a", false),
        ("two/a", true),
        ("added/a", true),
        ("doomed/large", false),
    ] {
        assert_eq!(store.path().join(path).exists(), is_there, "{path}");
    }

    let done = service.wait_for_task("done", "home", |task| task["phase"] == "waiting");
    assert_eq!(done["last"]["began"], run["began"], "{done:#}");
    assert_eq!(
        (&done["totals"]["succeeded"], &done["totals"]["failed"]),
        (&1.into(), &0.into())
    );
    let log = place.log();
    let at = |text: &str| log.rfind(text).expect(text);
    let (read_again, through) = (at("is read again"), at("done task=\"home\""));
    assert!(read_again < through, "it was through before: {log}");
    let sent = proxy.body_bytes("PUT");
    // The manifest comes with it.
    assert!(
        (SIZE..SIZE + 100_000).contains(&sent),
        "{sent} bytes were sent"
    );
}

#[test]
fn credentials_and_the_place_of_a_store_are_read_again() {
    let (home, store) = (dir(), dir());
    fs::write(home.path().join("f"), "x").expect("write a file");
    let server = S3::start(S3Kind::S3sFs);
    let proxy = FaultProxy::start(server.address());
    let place = Place::new();
    write_keys(&place.join("old"), &server, "wrong");
    write_keys(&place.join("new"), &server, server.secret_key());
    let text = |keys: &str| {
        let store = s3_store(&server, &proxy, &place.join(keys)) + &disk(store.path());
        store + &job("home", home.path(), "s3:home", "")
    };
    place.configure("", &text("old"));
    let mut service = place.start();
    assert_ne!(service.fairbat(&["start", "home", "--wait"]).code, Some(0));
    place.configure("", &text("new"));
    service.signal("HUP");
    place.wait_for_log("changed, from its next run on", 1);
    service.order(&["start", "home", "--wait"]);
    // Renewed in its file.
    write_keys(&place.join("new"), &server, "wrong");
    fs::write(home.path().join("f"), "y").expect("write a file");
    assert_ne!(service.fairbat(&["start", "home", "--wait"]).code, Some(0));
    write_keys(&place.join("new"), &server, server.secret_key());
    service.order(&["start", "home", "--wait"]);
}

#[test]
fn a_schedule_that_is_changed_counts_at_once() {
    let (home, store) = (dir(), dir());
    fs::write(home.path().join("f"), "x").expect("write a file");
    let place = Place::new();
    let text =
        |schedule: &str| disk(store.path()) + &job("home", home.path(), "disk:home", schedule);
    place.configure("", &text("schedule = \"2099-01-01 03:00\""));
    let mut service = place.start();
    let task = service.task("home").expect("it is there");
    assert_eq!(task["next"], "2099-01-01T03:00:00Z");
    place.configure("", &text("every = \"2h\"\nwithin = \"1h\""));
    service.signal("HUP");
    // It has never run.
    let done = service.wait_for_task("done", "home", |task| task["last"]["ok"] == true);
    assert_eq!(done["last"]["in_time"], true, "{done:#}");
    place.configure("", &text(""));
    service.signal("HUP");
    service.wait_for_task("no schedule", "home", |task| task["next"].is_null());
}
