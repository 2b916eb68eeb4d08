//! Stores that fail: tried again, or reported with what helps.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fairbat_agent::store::StoreErrorKind;
use fairbat_agent::sync::{Delete, Failure, Problem};
use fairbat_tests::message::Reply;
use fairbat_tests::stores::{Fault, FaultProxy, Requests, S3, S3Kind};

use crate::agent::Agent;
use crate::round_trip::{clean, dir, s3};

/// An answer with an error document of S3.
fn refusal(status: u16, code: &str) -> Reply {
    let body = format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code></Error>");
    Reply::status(status).body(body.into_bytes())
}

struct Scene {
    source: tempfile::TempDir,
    _states: tempfile::TempDir,
    _server: S3,
    proxy: FaultProxy,
    agent: Agent,
}

fn scene() -> Scene {
    let (source, states) = (dir(), dir());
    fs::write(source.path().join("small"), "small").expect("write a file");
    fs::write(source.path().join("large"), vec![7; 12 * 1024 * 1024]).expect("write a file");
    let server = S3::start(S3Kind::S3sFs);
    let proxy = FaultProxy::start(server.address());
    let agent = Agent::new(&s3(&server, &proxy.url()), &states.path().join("state"));
    Scene {
        source,
        _states: states,
        _server: server,
        proxy,
        agent,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_passes_is_tried_again() {
    let scene = scene();
    let slow_down = refusal(503, "SlowDown").header("Retry-After", "1");
    let puts = || Requests::of("PUT");
    scene.proxy.on(
        puts().containing("small").nth(0..1),
        Fault::Answer(slow_down),
    );
    scene.proxy.on(
        puts().containing("partNumber=2").nth(0..1),
        Fault::CutRequest(100_000),
    );
    scene.proxy.on(
        puts().containing("partNumber=3").nth(0..1),
        Fault::LoseResponse,
    );
    let internal = Fault::Answer(refusal(500, "InternalError"));
    scene.proxy.on(Requests::of("POST").nth(0..1), internal);
    let report = clean(scene.agent.push(scene.source.path(), Delete::Never).await);
    assert_eq!(report.sent, 2, "{report:#?}");
    assert_eq!(report.retries.busy, 1, "{report:#?}");
    assert!(report.retries.network >= 2, "{report:#?}");
    assert!(report.retries.server >= 1, "{report:#?}");
    let pulled = dir();
    clean(scene.agent.pull(pulled.path(), Delete::Never).await);
    crate::tree::expect_same(scene.source.path(), pulled.path());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_pass_ends_the_run_and_says_what_helps() {
    let refusals = [
        (403, "RequestTimeTooSkewed", StoreErrorKind::Clock, "clock"),
        (400, "ExpiredToken", StoreErrorKind::Credentials, "renew"),
        (507, "XMinioStorageFull", StoreErrorKind::Full, "room"),
    ];
    for (status, code, kind, hint) in refusals {
        let scene = scene();
        let refused = Fault::Answer(refusal(status, code));
        scene.proxy.on(Requests::of("PUT"), refused);
        let report = scene.agent.push(scene.source.path(), Delete::Never).await;
        let Some(Problem::Store(error)) = &report.problem else {
            panic!("{code}: {report:#?}");
        };
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.message.contains(code), "{error}");
        assert!(error.hint.contains(hint), "{}", error.hint);
        // It goes well as soon as it can.
        scene.proxy.heal();
        let report = clean(scene.agent.push(scene.source.path(), Delete::Never).await);
        assert!(report.sent >= 1, "{report:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_file_that_is_refused_does_not_hold_up_the_others() {
    let scene = scene();
    let refused = Fault::Answer(refusal(400, "InvalidRequest"));
    scene
        .proxy
        .on(Requests::of("PUT").containing("small"), refused);
    let report = scene.agent.push(scene.source.path(), Delete::Never).await;
    assert_eq!((report.sent, report.failed), (1, 1), "{report:#?}");
    assert!(report.problem.is_none(), "{report:#?}");
    let (path, failure) = &report.failures[0];
    assert_eq!(path.to_string(), "small");
    assert!(matches!(failure, Failure::Store(_)), "{failure:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_written_all_the_time_is_not_stored() {
    let scene = scene();
    let path = scene.source.path().join("busy");
    fs::write(&path, "0").expect("write a file");
    let is_enough = Arc::new(AtomicBool::new(false));
    let stop = Arc::clone(&is_enough);
    let writer = tokio::task::spawn_blocking(move || {
        let mut byte = 0_u8;
        while !stop.load(Ordering::Relaxed) {
            byte = byte.wrapping_add(1);
            fs::write(&path, vec![byte; 100_000]).expect("write a file");
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    let report = scene.agent.push(scene.source.path(), Delete::Never).await;
    is_enough.store(true, Ordering::Relaxed);
    writer.await.expect("the writer does not panic");
    assert_eq!((report.changed, report.failed), (1, 1), "{report:#?}");
    let report = clean(scene.agent.push(scene.source.path(), Delete::Never).await);
    assert_eq!(report.sent, 1, "{report:#?}");
    let pulled = dir();
    clean(scene.agent.pull(pulled.path(), Delete::Never).await);
    crate::tree::expect_same(scene.source.path(), pulled.path());
}
