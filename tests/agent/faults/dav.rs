//! The same over WebDAV.

use std::fs;
use std::time::Duration;

use fairbat_agent::store::StoreErrorKind;
use fairbat_agent::sync::{Delete, EntryFailure, RunProblem};
use fairbat_tests::message::Reply;
use fairbat_tests::stores::{Fault, Requests};

use super::{Scene, busy};
use crate::round_trip::{clean, dir};
use crate::tree::expect_same;

#[tokio::test(flavor = "multi_thread")]
async fn what_passes_is_tried_again() {
    let scene = Scene::dav();
    // A file comes under a name of its own, which its key is a part of.
    let first = |method, file| Requests::of(method).containing(file).nth(0..1);
    let on = |requests, fault| scene.proxy.on(requests, fault);
    on(first("PUT", "small"), busy(Reply::status(503), 2));
    on(first("PUT", "large"), Fault::CutRequest(3_000_000));
    let second = Requests::of("PUT").containing("large").nth(1..2);
    on(second, Fault::StallRequest(3_000_000));
    on(first("MOVE", "small"), Fault::LoseResponse);
    on(first("MOVE", "large"), Fault::Answer(Reply::status(423)));
    let wrong = Fault::Header("etag".to_owned(), "\"wrong\"".to_owned());
    on(Requests::of("PUT").containing("large").nth(2..3), wrong);
    let report = clean(scene.agent.push(scene.source.path(), Delete::Never).await);
    assert_eq!((report.sent, report.retries.busy), (2, 1), "{report:#?}");
    assert!(report.retries.network >= 2, "{report:#?}");
    assert!(report.retries.server >= 1, "{report:#?}");
    scene.expect_pause("PUT", "small", Duration::from_secs(2));
    scene.expect_in_step().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_breaks_off_on_its_way_back_is_fetched_again() {
    let scene = Scene::dav();
    clean(scene.agent.push(scene.source.path(), Delete::Never).await);
    let gets = |file: &str| Requests::of("GET").containing(file);
    let on = |requests: Requests, fault| scene.proxy.on(requests, fault);
    on(gets("large").nth(0..1), Fault::CutResponse(5_000_000));
    on(gets("large").nth(1..2), Fault::StallResponse(9_000_000));
    on(gets("small").nth(0..1), busy(Reply::status(503), 1));
    let pulled = dir();
    let report = clean(scene.agent.pull(pulled.path(), Delete::Never).await);
    assert_eq!(
        (report.retries.network, report.retries.busy),
        (2, 1),
        "{report:#?}"
    );
    expect_same(scene.source.path(), pulled.path());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_pass_ends_the_run_and_says_what_helps() {
    let scene = Scene::dav();
    let refusals = [
        (401, StoreErrorKind::Credentials, "credentials"),
        (507, StoreErrorKind::Full, "room"),
    ];
    for (status, kind, hint) in refusals {
        fs::write(scene.source.path().join("small"), status.to_string()).expect("write a file");
        let refused = Fault::Answer(Reply::status(status));
        scene.proxy.on(Requests::of("PUT"), refused);
        let report = scene.agent.push(scene.source.path(), Delete::Never).await;
        let Some(RunProblem::Store(error)) = &report.problem else {
            panic!("{status}: {report:#?}");
        };
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.message.contains(&status.to_string()), "{error}");
        assert!(error.hint.contains(hint), "{}", error.hint);
        scene.proxy.heal();
        clean(scene.agent.push(scene.source.path(), Delete::Never).await);
        scene.expect_in_step().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_file_that_is_refused_does_not_hold_up_the_others() {
    let scene = Scene::dav();
    let refused = Fault::Answer(Reply::status(403));
    scene
        .proxy
        .on(Requests::of("MOVE").containing("small"), refused);
    let report = scene.agent.push(scene.source.path(), Delete::Never).await;
    assert_eq!((report.sent, report.failed), (1, 1), "{report:#?}");
    let [(path, EntryFailure::Store(_))] = report.failures.as_slice() else {
        panic!("{report:#?}");
    };
    assert_eq!(path.to_string(), "small");
}
