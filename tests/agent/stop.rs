//! SIGTERM: the agent ends in time whatever it waits for, and goes on with its next
//! start.

use std::fs;
use std::process::Command;
use std::time::Duration;

use fairbat_tests::stores::{Fault, FaultProxy, Requests, S3, S3Kind};

use crate::round_trip::dir;
use crate::service::{Place, s3_store, write_keys};
use crate::tree::expect_same;

/// What systemd and people may rely on.
const IN_TIME: Duration = Duration::from_secs(5);

#[test]
fn beside_a_store_that_does_not_answer() {
    let source = dir();
    fs::write(source.path().join("small"), "x").expect("write a file");
    fs::write(source.path().join("large"), vec![7; 12_000_000]).expect("write a file");
    let server = S3::start(S3Kind::S3sFs);
    let proxy = FaultProxy::start(server.address());
    let place = Place::new();
    write_keys(&place.join("keys"), &server, server.secret_key());
    // By hand only: nothing but what it remembers makes it go on.
    let job = format!(
        "{}[[jobs]]\nname = \"home\"\nsource = {:?}\ndestination = \"s3:home\"\n",
        s3_store(&server, &proxy, &place.join("keys")),
        source.path(),
    );
    place.configure("", &job);
    let service = place.start();
    let never = Fault::Delay(Duration::from_secs(600));
    proxy.on(Requests::all().containing("small"), never.clone());
    proxy.on(Requests::of("POST"), never);
    service.order(&["start", "home"]);
    place.wait_for_log("scanned", 1);
    let (status, took) = service.terminate();
    assert!(status.success(), "{status}");
    assert!(took < IN_TIME, "{took:?}: {}", place.log());

    proxy.heal();
    let service = place.start();
    place.wait_for_log("done task=\"home\"", 1);
    let back = dir();
    service.order(&[
        "restore",
        "home",
        "--wait",
        "--to",
        &back.path().display().to_string(),
    ]);
    expect_same(source.path(), back.path());
}

#[test]
fn while_a_scan_runs() {
    /// It takes a while to look at so many.
    const FILES: usize = 100_000;
    let (source, store) = (dir(), dir());
    for i in 0..FILES {
        if i % 1_000 == 0 {
            fs::create_dir(source.path().join(format!("{}", i / 1_000))).expect("a directory");
        }
        let name = format!("{}/{i}", i / 1_000);
        fs::File::create(source.path().join(name)).expect("make a file");
    }
    let place = Place::new();
    let job = format!(
        "[stores.disk]\ntype = \"local\"\npath = {:?}\n[[jobs]]\nname = \"home\"\nsource = {:?}\n\
         destination = \"disk:home\"\n",
        store.path(),
        source.path()
    );
    place.configure("", &job);
    // The disk is to have no more to do than what the agent wants of it.
    let synced = Command::new("sync").arg("-f").arg(source.path()).status();
    assert!(synced.expect("start sync").success());
    let service = place.start();
    service.order(&["start", "home"]);
    place.wait_for_log("begins task=home", 1);
    let (status, took) = service.terminate();
    assert!(status.success(), "{status}");
    assert!(took < IN_TIME, "{took:?}: {}", place.log());
    assert!(
        !place.log().contains("scanned"),
        "it was through: {}",
        place.log()
    );
    let _service = place.start();
    place.wait_for_log("scanned", 1);
}
