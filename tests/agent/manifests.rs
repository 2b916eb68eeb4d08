//! Manifests that are so large that a store takes them in parts.

use std::os::unix::fs::symlink;
use std::path::Path;

use fairbat_agent::sync::Delete;
use fairbat_tests::stores::{Dav, DavKind, Fault, Requests};
use rand::SeedableRng;
use rand::distr::{Alphanumeric, SampleString};
use rand::rngs::StdRng;

use crate::agent::Agent;
use crate::pushes::{Scene, done, refusal};
use crate::round_trip::{clean, dav, dir};
use crate::tree::expect_same;

const SEED: u64 = 13;

/// A source without a file: what is to be told of it, though hardly to be
/// compressed, is more than a part.
fn make(source: &Path) {
    println!("seed {SEED}");
    let mut rng = StdRng::seed_from_u64(SEED);
    for i in 0..2_500 {
        let target = Alphanumeric.sample_string(&mut rng, 4_000);
        symlink(target, source.join(format!("link{i}"))).expect("make a link");
    }
}

fn scene() -> Scene {
    let scene = Scene::new();
    make(scene.source.path());
    scene
}

async fn expect_in_step(scene: &Scene) {
    let pending = scene.agent.store.pending("home").await;
    assert_eq!(pending.expect("list uploads"), []);
    let pulled = dir();
    clean(scene.agent.pull(pulled.path(), Delete::Never).await);
    expect_same(scene.source.path(), pulled.path());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_upload_of_one_that_is_refused_is_given_up_at_once() {
    let scene = scene();
    let refused = Fault::Answer(refusal(400, "InvalidRequest"));
    let second = Requests::of("PUT").containing("partNumber=2");
    scene.proxy.on(second, refused);
    let report = scene.push().await;
    assert!(report.problem.is_some(), "{report:#?}");
    let pending = scene.agent.store.pending("home").await;
    assert_eq!(pending.expect("list uploads"), []);
    scene.proxy.heal();
    clean(scene.push().await);
    expect_in_step(&scene).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_upload_of_one_that_was_under_way_at_a_kill_is_given_up_by_the_next_run() {
    let scene = scene();
    scene.refuse(Requests::of("PUT").containing("partNumber=2"));
    scene.killed_after(done("PUT", "partNumber=1")).await;
    scene.proxy.heal();
    let pending = scene.agent.store.pending("home").await;
    assert_eq!(pending.expect("list uploads").len(), 1);
    let report = clean(scene.push().await);
    assert_eq!(report.orphans, 1, "{report:#?}");
    expect_in_step(&scene).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_whose_last_answer_was_lost_has_come() {
    let scene = scene();
    let complete = Requests::of("POST").containing("uploadId=");
    let completed = complete.clone().nth(0..1);
    scene.proxy.on(completed, Fault::LoseResponse);
    let gone = Fault::Answer(refusal(404, "NoSuchUpload"));
    scene.proxy.on(complete.nth(1..2), gone);
    clean(scene.push().await);
    expect_in_step(&scene).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_takes_no_parts_gets_it_in_one_piece() {
    let (source, states, pulled) = (dir(), dir(), dir());
    make(source.path());
    let server = Dav::start(DavKind::Wsgidav);
    let settings = dav(&server, &server.url());
    let agent = Agent::new(&settings, &states.path().join("state"));
    clean(agent.push(source.path(), Delete::Never).await);
    clean(agent.pull(pulled.path(), Delete::Never).await);
    expect_same(source.path(), pulled.path());
}
