//! Uploads that nobody goes on with are given up, and those of others are not.

use std::fs;

use fairbat_agent::config::StoreConfig;
use fairbat_agent::sync::Delete;
use fairbat_tests::stores::{Fault, FaultProxy, Requests, S3, S3Kind};

use crate::agent::{Agent, local_store};
use crate::pushes::{Scene, done};
use crate::round_trip::{clean, dir, s3};

const MIB: usize = 1024 * 1024;

/// A push that was killed when the store had a part of `z`.
async fn killed() -> Scene {
    let scene = Scene::new();
    scene.write("z", vec![1; 12 * MIB]);
    scene.refuse(Requests::of("PUT").containing("partNumber=2"));
    scene.killed_after(done("PUT", "partNumber=1")).await;
    scene.proxy.heal();
    assert_eq!(pending(&scene.agent, "home").await.len(), 1);
    scene
}

async fn pending(agent: &Agent, prefix: &str) -> Vec<String> {
    let pending = agent.store.pending(prefix).await.expect("list uploads");
    pending.into_iter().map(|pending| pending.key).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_upload_of_another_version_is_given_up_though_the_store_fails_once() {
    let scene = killed().await;
    scene.write("z", vec![2; 12 * MIB]);
    scene.refuse(Requests::of("DELETE").nth(0..1));
    let report = clean(scene.push().await);
    assert_eq!(report.sent, 1, "{report:#?}");
    assert_eq!(pending(&scene.agent, "home").await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_upload_of_a_file_that_is_gone_is_given_up() {
    let scene = killed().await;
    fs::remove_file(scene.source.path().join("z")).expect("remove a file");
    clean(scene.push().await);
    assert_eq!(pending(&scene.agent, "home").await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_store_does_not_give_up_now_is_given_up_later() {
    let scene = killed().await;
    scene.write("z", vec![2; 12 * MIB]);
    // However long it may fail: nothing waits for that.
    scene.refuse(Requests::of("DELETE"));
    let report = clean(scene.push().await);
    assert_eq!(report.retries, Default::default(), "{report:#?}");
    assert_eq!(pending(&scene.agent, "home").await, ["home/z"]);
    scene.proxy.heal();
    // It is known without a list.
    scene.refuse(Requests::of("GET").containing("uploads"));
    let report = clean(scene.push().await);
    assert_eq!(report.orphans, 1, "{report:#?}");
    scene.proxy.heal();
    assert_eq!(pending(&scene.agent, "home").await, [""; 0]);
    assert_eq!(scene.agent.collect("home").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_does_not_list_its_uploads_gets_the_files() {
    let scene = Scene::new();
    scene.write("z", vec![1; 12 * MIB]);
    // It begins one that nobody hears of.
    let begin = Requests::of("POST").containing("uploads");
    scene.proxy.on(begin.nth(0..1), Fault::LoseResponse);
    clean(scene.push().await);
    scene.write("y", "y");
    scene.refuse(Requests::of("GET").containing("uploads"));
    let report = clean(scene.push().await);
    assert_eq!((report.sent, report.orphans), (1, 0), "{report:#?}");
    assert_eq!(report.retries, Default::default(), "{report:#?}");
    scene.proxy.heal();
    assert_eq!(pending(&scene.agent, "home").await, ["home/z"]);
    let report = clean(scene.push().await);
    assert_eq!(report.orphans, 1, "it is looked for until it is found");
    assert_eq!(pending(&scene.agent, "home").await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn at_the_root_of_a_bucket_only_our_own_uploads_are_given_up() {
    let (source, states) = (dir(), dir());
    let server = S3::start(S3Kind::Moto);
    let proxy = FaultProxy::start(server.address());
    let mut settings = s3(&server, &proxy.url());
    if let StoreConfig::S3(s3) = &mut settings.0 {
        s3.prefix.clear();
    }
    let agent = Agent::new(&settings, &states.path().join("state"));
    fs::write(source.path().join("z"), vec![1; 12 * MIB]).expect("write a file");
    for key in ["hosts/beta/x", "x"] {
        let begun = agent.store.begin(key, "").await;
        begun.expect("begin an upload of somebody else");
    }
    // The store begins one that nobody hears of.
    let begin = Requests::of("POST").containing("uploads");
    proxy.on(begin.nth(0..1), Fault::LoseResponse);
    let push = || agent.push_with(source.path(), |settings| settings.run.prefix.clear());
    clean(push().await);
    assert_eq!(pending(&agent, "").await, ["hosts/beta/x", "x", "z"]);
    let report = clean(push().await);
    assert_eq!(report.orphans, 1, "{report:#?}");
    assert_eq!(agent.collect("").await, 0);
    assert_eq!(pending(&agent, "").await, ["hosts/beta/x", "x"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_push_leaves_the_uploads_of_others_and_goes_on_with_its_own() {
    let scene = killed().await;
    let others = [("home-2/x", "home-2"), ("home/y", "home")];
    for (key, _) in others {
        let begun = scene.agent.store.begin(key, "").await;
        begun.expect("begin an upload of somebody else");
    }
    let before = scene.proxy.exchanges().len();
    clean(scene.push().await);
    let again = &scene.proxy.exchanges()[before..];
    assert!(
        !again.iter().any(done("PUT", "partNumber=1&")),
        "{again:#?}"
    );
    for (key, prefix) in others {
        assert_eq!(pending(&scene.agent, prefix).await, [key]);
    }
    // Asked to, it gives up what is at its place and nobody remembers.
    assert_eq!(scene.agent.collect("home").await, 1);
    assert_eq!(pending(&scene.agent, "home").await, [""; 0]);
    assert_eq!(pending(&scene.agent, "home-2").await, ["home-2/x"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_directory_only_what_is_below_the_place_is_given_up() {
    let (store, source, states) = (dir(), dir(), dir());
    let unfinished = store.path().join(".fairbat/unfinished");
    fs::create_dir_all(&unfinished).expect("make a directory");
    let names = ["home%2Fx~1-0-0", "elsewhere%2Fx~1-0-0", "what is this"];
    for name in names {
        fs::write(unfinished.join(name), "half").expect("write a file");
    }
    fs::write(source.path().join("x"), "whole").expect("write a file");
    let settings = local_store(store.path());
    let agent = Agent::new(&settings, &states.path().join("state"));
    let report = clean(agent.push(source.path(), Delete::Never).await);
    assert_eq!(report.orphans, 1, "{report:#?}");
    let left = names.map(|name| unfinished.join(name).exists());
    assert_eq!(left, [false, true, true]);
}
