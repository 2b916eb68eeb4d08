//! Jobs that get another destination: what was in step at the old one is not at the
//! new one.

use std::fs;
use std::path::Path;

use fairbat_tests::poll::wait_until;

use crate::round_trip::dir;
use crate::service::{Place, SOON, Service};
use crate::tree::expect_same;

/// A store that is a directory.
fn disk(path: &Path) -> String {
    format!("[stores.disk]\ntype = \"local\"\npath = {path:?}\n")
}

/// A job that is run by hand.
fn job(name: &str, source: &str, destination: &str, more: &str) -> String {
    format!(
        "[[jobs]]\nname = {name:?}\nsource = {source:?}\ndestination = {destination:?}\n{more}\n"
    )
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn write(directory: &Path, name: &str, content: &[u8]) {
    fs::write(directory.join(name), content).expect("write a file");
}

/// What a job has stored is what is in its source.
fn expect_restored(service: &Service<'_>, job: &str, source: &Path) {
    let back = dir();
    let to = back.path().join("new");
    service.order(&["restore", job, "--wait", "--to", &shown(&to)]);
    expect_same(source, &to);
}

#[test]
fn what_was_sent_before_there_was_a_manifest_is_sent_to_the_new_destination_as_well() {
    let (source, store) = (dir(), dir());
    write(source.path(), "a", b"x");
    write(source.path(), "z", &vec![7; 30_000_000]);
    let text = |destination: &str, more: &str| {
        disk(store.path()) + &job("home", &shown(source.path()), destination, more)
    };
    let place = Place::new();
    place.configure("", &text("disk:one", "limit_rate = \"1M\""));
    let service = place.start();
    service.order(&["start", "home"]);
    service.wait_for_task("one file", "home", |task| task["files_done"] == 1);
    let (status, _) = service.terminate();
    assert!(status.success(), "{status}");
    assert!(store.path().join("one/a").exists());
    let manifest = store.path().join("one/.fairbat/manifest/current.json");
    assert!(!manifest.exists(), "it was told before it was through");

    place.configure("", &text("disk:two", ""));
    let service = place.start();
    service.wait_for_task("done", "home", |task| task["last"]["ok"] == true);
    expect_restored(&service, "home", source.path());
    assert!(store.path().join("one/a").exists(), "what is there stays");
    let unfinished = store.path().join(".fairbat/unfinished");
    let left = fs::read_dir(unfinished).map_or(0, Iterator::count);
    assert_eq!(left, 0, "nobody goes on with the old upload");
}

#[test]
fn jobs_that_exchange_their_destinations_do_not_take_each_others_files_for_theirs() {
    let (first, second, store) = (dir(), dir(), dir());
    // As long, so that only the content differs, and the content only.
    write(first.path(), "f", b"first");
    write(second.path(), "f", b"other");
    write(first.path(), "only", b"x");
    let text = |first_to: &str, second_to: &str| {
        let mirror = "delete = \"mirror\"\nmax_delete = 1";
        disk(store.path())
            + &job("first", &shown(first.path()), first_to, mirror)
            + &job("second", &shown(second.path()), second_to, mirror)
    };
    let place = Place::new();
    place.configure("", &text("disk:one", "disk:two"));
    let mut service = place.start();
    let run = |service: &Service<'_>| {
        for (job, source) in [("first", &first), ("second", &second)] {
            service.order(&["start", job, "--wait"]);
            expect_restored(service, job, source.path());
        }
    };
    run(&service);
    place.configure("", &text("disk:two", "disk:one"));
    service.signal("HUP");
    place.wait_for_log("changed, from its next run on", 2);
    let task = service.wait_for_task("read again", "first", |task| task["to"] == "disk:two");
    assert!(task["succeeded"].is_null(), "{task:#}");
    run(&service);
    assert!(!store.path().join("one/only").exists(), "it is a mirror");
    // And back, while it does not run.
    service.kill();
    place.configure("", &text("disk:one", "disk:two"));
    let service = place.start();
    let task = service.task("first").expect("it is there");
    assert!(task["succeeded"].is_null(), "{task:#}");
    run(&service);
}

#[test]
fn a_pull_fills_a_new_directory_and_no_old_one_that_is_empty() {
    let (source, store, pulled) = (dir(), dir(), dir());
    write(source.path(), "f", b"x");
    let to = |name: &str| pulled.path().join(name);
    let text = |name: &str| {
        disk(store.path())
            + &job("home", &shown(source.path()), "disk:home", "")
            + &job(
                "copy",
                "disk:home",
                &shown(&to(name)),
                "direction = \"pull\"",
            )
    };
    let place = Place::new();
    place.configure("", &text("one"));
    let mut service = place.start();
    service.order(&["start", "home", "--wait"]);
    service.order(&["start", "copy", "--wait"]);
    expect_same(source.path(), &to("one"));

    place.configure("", &text("two"));
    service.signal("HUP");
    place.wait_for_log("changed, from its next run on", 1);
    service.order(&["start", "copy", "--wait"]);
    expect_same(source.path(), &to("two"));

    service.kill();
    place.configure("", &text("three"));
    let service = place.start();
    service.order(&["start", "copy", "--wait"]);
    expect_same(source.path(), &to("three"));

    // As if its disk were not mounted, and then after a restart as well.
    fs::remove_file(to("three").join("f")).expect("remove a file");
    let refused = |service: &Service<'_>| {
        let outcome = service.fairbat(&["start", "copy", "--wait"]);
        outcome.expect_code(1).expect_said(&["nothing is in"]);
    };
    refused(&service);
    let (status, _) = service.terminate();
    assert!(status.success(), "{status}");
    refused(&place.start());
}

#[test]
fn a_restore_of_a_job_that_is_not_configured_any_more_is_given_up() {
    let (source, store, back) = (dir(), dir(), dir());
    write(source.path(), "f", &vec![7; 8_000_000]);
    let home = job("home", &shown(source.path()), "disk:home", "");
    let slow = job(
        "home",
        &shown(source.path()),
        "disk:home",
        "limit_rate = \"500K\"",
    );
    let place = Place::new();
    place.configure("", &(disk(store.path()) + &home));
    let mut service = place.start();
    service.order(&["start", "home", "--wait"]);
    place.configure("", &(disk(store.path()) + &slow));
    service.signal("HUP");
    place.wait_for_log("changed, from its next run on", 1);
    let to = back.path().join("new");
    let id = service.order(&["restore", "home", "--to", &shown(&to)]);
    service.order(&["pause", &id]);
    service.wait_for_task("paused", &id, |task| task["phase"] == "paused");
    place.configure("", &disk(store.path()));
    service.signal("HUP");
    wait_until("the job to leave", SOON, || service.task("home").is_none());
    service.order(&["resume", &id]);
    let task = service.wait_for_task("given up", &id, |task| task["phase"] == "failed");
    let problem = task["last"]["problem"].as_str().expect("a problem");
    assert!(problem.contains("home is not configured"), "{task:#}");
    assert!(task["next"].is_null(), "{task:#}");
}
