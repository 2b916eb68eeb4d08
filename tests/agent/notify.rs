//! What the service manager hears.

use std::fs;
use std::time::Duration;

use crate::round_trip::dir;
use crate::service::{Manager, Place};

/// Of a moment since the machine was started, µs.
fn monotonic(message: &str) -> u128 {
    let mut lines = message.lines();
    let usec = lines.find_map(|line| line.strip_prefix("MONOTONIC_USEC="));
    usec.expect("a moment").parse().expect("a number")
}

fn now() -> u128 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Duration::try_from(now)
        .expect("after the start")
        .as_micros()
}

#[test]
fn readiness_standing_rounds_reloads_and_the_end_are_told() {
    let (source, store) = (dir(), dir());
    fs::write(source.path().join("f"), "x").expect("write a file");
    let mut place = Place::new();
    let manager = Manager::at(&place.join("notify"));
    place.set("NOTIFY_SOCKET", &place.join("notify").display().to_string());
    place.set("WATCHDOG_USEC", "30000000");
    let jobs = format!(
        "[stores.disk]\ntype = \"local\"\npath = {:?}\n[[jobs]]\nname = \"home\"\nsource = {:?}\n\
         destination = \"disk:home\"\nschedule = \"2099-01-01 03:00\"\n",
        store.path(),
        source.path()
    );
    place.configure("", &jobs);
    let mut service = place.start();
    // All is open by then: it answers.
    let ready = manager.wait_for("READY=1");
    let standing = "STATUS=nothing runs; next home at 2099-01-01 03:00";
    assert!(ready.contains(standing), "{ready}");
    for _ in 0..2 {
        manager.wait_for("WATCHDOG=1");
    }

    let before = now();
    service.signal("HUP");
    let reloading = manager.wait_for("RELOADING=1");
    let told = monotonic(&reloading);
    assert!(before <= told && told <= now(), "{before} {reloading}");
    let ready = manager.wait_for("READY=1");
    assert!(ready.contains(standing), "{ready}");

    fs::write(place.join("agent.toml"), "[agent]\nstat = 1\n").expect("write a file");
    service.signal("HUP");
    manager.wait_for("RELOADING=1");
    let ready = manager.wait_for("READY=1");
    assert!(ready.contains("new configuration refused: "), "{ready}");
    assert!(ready.contains("agent.toml:2:1: "), "{ready}");
    assert!(ready.contains("next home at"), "{ready}");
    place.configure("", &jobs);
    service.signal("HUP");
    manager.wait_for("RELOADING=1");
    let ready = manager.wait_for("READY=1");
    assert!(ready.contains(standing), "{ready}");

    let (status, _) = service.terminate();
    assert!(status.success(), "{status}");
    manager.wait_for("STOPPING=1");
}
