//! Pulls that meet a push, each other, and what stands in their way.

mod processes;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fairbat::transport::RateLimit;
use fairbat_agent::filter::EntryFilter;
use fairbat_agent::sync::{Delete, Detect, EntryFailure, MaxDelete, PullSettings, RunProblem};
use fairbat_tests::poll::wait_until;
use fairbat_tests::stores::{Fault, FaultProxy, Requests, S3, S3Kind};
use fairbat_tests::tmpfs::TmpFs;
use tempfile::TempDir;
use tokio::sync::watch;

use crate::agent::{Agent, local_store};
use crate::faults::refusal;
use crate::round_trip::{clean, dir, s3};
use crate::tree::expect_same;

/// Mirrors whatever there is.
const MIRROR: Delete = Delete::Mirror {
    max: MaxDelete::Share(1.0),
};

/// Long enough for whatever a test waits for.
const PATIENCE: Duration = Duration::from_secs(60);

fn write(path: impl AsRef<Path>, content: impl AsRef<[u8]>) {
    let path = path.as_ref();
    let parent = path.parent().expect("a parent");
    fs::create_dir_all(parent).expect("make a directory");
    fs::write(path, content).expect("write a file");
}

fn mode(path: impl AsRef<Path>, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("set a mode");
}

fn names(directory: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(directory).expect("read a directory");
    let name = |entry: std::io::Result<fs::DirEntry>| {
        let name = entry.expect("an entry").file_name();
        name.into_string().expect("a plain name")
    };
    entries.map(name).collect()
}

/// A local directory as a store, and what is pushed to it.
struct Scene {
    source: TempDir,
    store: TempDir,
    _states: TempDir,
    agent: Agent,
}

fn scene() -> Scene {
    let (source, store, states) = (dir(), dir(), dir());
    let settings = local_store(store.path());
    let agent = Agent::new(&settings, &states.path().join("state"));
    Scene {
        source,
        store,
        _states: states,
        agent,
    }
}

impl Scene {
    async fn push(&self) {
        clean(self.agent.push(self.source.path(), Delete::Never).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_under_way_is_waited_for_and_nothing_is_fetched_twice() {
    let (source, states, pulled) = (dir(), dir(), dir());
    for name in ["a", "b", "changed", "d"] {
        write(source.path().join(name), name);
    }
    let server = S3::start(S3Kind::S3sFs);
    let proxy = FaultProxy::start(server.address());
    let agent = Agent::new(&s3(&server, &proxy.url()), &states.path().join("state"));
    clean(agent.push(source.path(), Delete::Never).await);

    // A push that ends before it could tell.
    write(source.path().join("changed"), "another content");
    let refused = Fault::Answer(refusal(400, "InvalidRequest"));
    proxy.on(Requests::of("PUT").containing("manifest"), refused);
    let report = agent.push(source.path(), Delete::Never).await;
    assert!(report.problem.is_some(), "{report:#?}");

    write(pulled.path().join("mine"), "mine");
    let gets = || {
        let exchanges = proxy.exchanges();
        let of_file = |exchange: &&fairbat_tests::stores::Exchange| {
            exchange.method == "GET" && exchange.target.contains("home/changed")
        };
        exchanges.iter().filter(of_file).count()
    };
    let report = agent
        .pull_with(pulled.path(), |settings| {
            settings.run.delete = MIRROR;
            settings.pauses = vec![Duration::from_millis(10); 3];
        })
        .await;
    assert_eq!((report.sent, report.failed), (3, 1), "{report:#?}");
    assert_eq!((report.changed, report.retries.integrity), (1, 0));
    assert_eq!(report.failures[0].1, EntryFailure::Newer, "{report:#?}");
    assert!(report.failures[0].1.hint().contains("push"), "{report:#?}");
    assert_eq!(gets(), 1, "the same content is not asked for again");
    assert_eq!(
        names(pulled.path()),
        ["a", "b", "d", "mine"].map(String::from).into()
    );

    // One that tells while a pull waits for it.
    fs::remove_file(pulled.path().join("a")).expect("remove a file");
    let pull = agent.pull_with(pulled.path(), |settings| {
        settings.run.delete = MIRROR;
        settings.pauses = vec![Duration::from_millis(500); 100];
    });
    let push = async {
        // It is asked for in the pass that brings this, and not later.
        while gets() < 2 || !pulled.path().join("a").exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        proxy.heal();
        clean(agent.push(source.path(), Delete::Never).await);
    };
    let (report, ()) = tokio::join!(pull, push);
    let report = clean(report);
    assert_eq!((report.sent, report.deleted), (2, 1), "{report:#?}");
    assert_eq!(gets(), 3);
    expect_same(source.path(), pulled.path());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_first_push_has_not_reached_is_not_gone() {
    const FILES: usize = 50;
    let scene = scene();
    write(scene.source.path().join("a"), "a");
    for i in 0..FILES {
        write(scene.source.path().join(format!("f{i}")), vec![7; 100_000]);
    }
    let told = scene
        .store
        .path()
        .join("home/.fairbat/manifest/current.json");
    let first = scene.agent.push_with(scene.source.path(), |settings| {
        settings.run.rate_limits = vec![Arc::new(RateLimit::new(200_000))];
        settings.publish_interval = Duration::from_millis(50);
    });
    tokio::select! {
        report = first => panic!("it is not stopped: {report:#?}"),
        () = async {
            while !told.exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        } => {}
    }

    let (mirror, restored) = (dir(), dir());
    // What is there of the same tree, and a directory in the way of a file.
    let last = mirror.path().join(format!("f{}", FILES - 1));
    write(&last, "of yesterday");
    write(mirror.path().join("a/own"), "own");
    let pull = |settings: &mut PullSettings| {
        settings.run.delete = MIRROR;
        settings.pauses = vec![Duration::from_millis(10); 2];
    };
    let report = scene.agent.pull_with(mirror.path(), pull).await;
    assert_eq!(report.problem, Some(RunProblem::FirstPush), "{report:#?}");
    assert!(RunProblem::FirstPush.hint().contains("push"));
    assert_eq!(report.deleted, 0, "{report:#?}");
    assert!(last.exists() && mirror.path().join("a/own").exists());
    let report = scene.agent.pull(restored.path(), Delete::Never).await;
    assert_eq!(report.problem, Some(RunProblem::FirstPush), "{report:#?}");
    let some = names(restored.path()).len();
    assert!((1..=FILES).contains(&some), "{some} files are told");

    // An agent that knows nothing of the first one goes on with its push.
    let states = dir();
    let settings = local_store(scene.store.path());
    let agent = Agent::new(&settings, &states.path().join("state"));
    clean(agent.push(scene.source.path(), Delete::Never).await);
    for to in [mirror.path(), restored.path()] {
        clean(agent.pull_with(to, pull).await);
        expect_same(scene.source.path(), to);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_excluded_is_neither_fetched_nor_deleted() {
    let scene = scene();
    for name in ["a/keep", "a/junk.tmp", "cache/x", "gone"] {
        write(scene.source.path().join(name), name);
    }
    scene.push().await;
    let pulled = dir();
    for name in ["a/own.tmp", "cache/own", "other"] {
        write(pulled.path().join(name), "own");
    }
    let exclude = ["*.tmp", "/cache/"].map(String::from);
    let report = scene
        .agent
        .pull_with(pulled.path(), |settings| {
            settings.run.filter = EntryFilter::new(&[], &exclude).expect("a filter");
            settings.run.delete = MIRROR;
        })
        .await;
    let report = clean(report);
    assert_eq!((report.sent, report.deleted), (2, 1), "{report:#?}");
    assert_eq!(
        names(pulled.path()),
        ["a", "cache", "gone"].map(String::from).into()
    );
    assert_eq!(
        names(&pulled.path().join("a")),
        ["keep", "own.tmp"].map(String::from).into()
    );
    assert_eq!(
        names(&pulled.path().join("cache")),
        ["own".to_owned()].into()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_does_not_show_is_found_by_content() {
    let scene = scene();
    write(scene.source.path().join("f"), "right");
    write(scene.source.path().join("same"), "same");
    scene.push().await;
    let pulled = dir();
    clean(scene.agent.pull(pulled.path(), Delete::Never).await);
    let file = fs::File::options()
        .write(true)
        .open(pulled.path().join("f"));
    let mut file = file.expect("open a file");
    let modified = file.metadata().and_then(|found| found.modified());
    std::io::Write::write_all(&mut file, b"wrong").expect("write a file");
    file.set_modified(modified.expect("a time"))
        .expect("set a time");
    // Another time alone is no other content.
    let same = fs::File::open(pulled.path().join("same")).expect("open a file");
    same.set_modified(std::time::SystemTime::UNIX_EPOCH)
        .expect("set a time");

    let report = scene
        .agent
        .pull_with(pulled.path(), |settings| {
            settings.run.detect = Detect::Content;
        })
        .await;
    let report = clean(report);
    assert_eq!((report.sent, report.same), (1, 1), "{report:#?}");
    expect_same(scene.source.path(), pulled.path());
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_deleted_for_a_store_with_nothing_in_it_nor_fetched_for_a_lost_disk() {
    let empty = scene();
    empty.push().await;
    let pulled = dir();
    write(pulled.path().join("f"), "f");
    let report = empty.agent.pull(pulled.path(), MIRROR).await;
    assert_eq!(report.problem, Some(RunProblem::EmptyOrigin), "{report:#?}");
    assert!(pulled.path().join("f").exists());

    let full = scene();
    write(full.source.path().join("f"), "f");
    full.push().await;
    // Nor for a pattern that leaves nothing.
    let report = full
        .agent
        .pull_with(pulled.path(), |settings| {
            settings.run.filter = EntryFilter::new(&[], &["*".to_owned()]).expect("a filter");
            settings.run.delete = MIRROR;
        })
        .await;
    assert_eq!((report.sent, report.deleted), (0, 0), "{report:#?}");
    assert!(pulled.path().join("f").exists());

    let lost = dir();
    for to in [lost.path().to_owned(), lost.path().join("missing")] {
        let report = full
            .agent
            .pull_with(&to, |settings| settings.was_filled = true)
            .await;
        let problem = report.problem.expect("a problem");
        assert_eq!(problem, RunProblem::EmptyTarget(to));
        assert!(problem.hint().contains("mount"), "{problem}");
    }
    assert_eq!(names(lost.path()), BTreeSet::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mirror_that_is_stopped_deletes_nothing_more() {
    let scene = scene();
    write(scene.source.path().join("f"), "f");
    scene.push().await;
    let pulled = dir();
    // Who stops it may come too late, and then there was nothing to be stopped.
    for _ in 0..10 {
        if is_stopped_in_time(&scene, pulled.path()).await {
            return;
        }
    }
    panic!("it was always through before");
}

/// Stops a mirror that has many files to delete once it has deleted one; false if
/// that was too late. Panics when it goes on.
async fn is_stopped_in_time(scene: &Scene, pulled: &Path) -> bool {
    const FILES: usize = 30_000;
    let path = |i: usize| pulled.join(format!("x{i:05}"));
    for i in 0..FILES {
        fs::File::create(path(i)).expect("make a file");
    }
    let (run, stop) = watch::channel(false);
    let mirror = |settings: &mut PullSettings| settings.run.delete = MIRROR;
    let pull = scene.agent.pull_until(pulled, mirror, stop);
    let (last, at) = (path(FILES - 1), pulled.to_owned());
    let stopping = tokio::task::spawn_blocking(move || {
        wait_until("the first is deleted", PATIENCE, || !last.exists());
        // Nobody hears it when it is through.
        let _ = run.send(true);
        fs::read_dir(at).expect("a directory").count()
    });
    let report = pull.await;
    let left = stopping.await.expect("it was stopped");
    // Whatever works for a run has ended when this is gone.
    let unfinished = pulled.join(".fairbat-unfinished");
    wait_until("the run has ended", PATIENCE, || !unfinished.exists());
    let are_left = names(pulled).len() > 1;
    // It was through, or so near its end that it was before it heard of the stop.
    if !are_left && (report.problem.is_none() || left < FILES / 10) {
        return false;
    }
    assert_eq!(report.problem, Some(RunProblem::Stopped), "{report:#?}");
    assert!(are_left, "all are deleted");
    true
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_takes_nothing_ends_the_run() {
    let scene = scene();
    for i in 0..200 {
        write(scene.source.path().join(format!("f{i}")), vec![7; 20_000]);
    }
    scene.push().await;
    let Some(disk) = TmpFs::mount(1024 * 1024) else {
        return;
    };
    let report = scene.agent.pull(disk.path(), Delete::Never).await;
    let problem = report.problem.as_ref().expect("a problem");
    assert!(matches!(problem, RunProblem::Disk(_)), "{report:#?}");
    assert!(problem.to_string().contains("space"), "{problem}");
    assert!(problem.hint().contains("room"), "{problem}");
    assert_eq!(report.failed, 0, "{report:#?}");
    let unfinished = disk.path().join(".fairbat-unfinished");
    wait_until("nothing is left unfinished", PATIENCE, || {
        !unfinished.exists()
    });
    for name in names(disk.path()) {
        let content = fs::read(disk.path().join(name)).expect("read a file");
        assert_eq!(content, [7; 20_000]);
    }

    disk.make_read_only();
    let report = scene.agent.pull(disk.path(), Delete::Never).await;
    assert!(
        matches!(report.problem, Some(RunProblem::Disk(_))),
        "{report:#?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_stands_in_the_way_of_one_file_fails_that_file_alone() {
    let scene = scene();
    for name in ["a", "b", "c"] {
        write(scene.source.path().join(name), name);
    }
    scene.push().await;
    let pulled = dir();
    write(pulled.path().join("b/own"), "own");
    let report = scene.agent.pull(pulled.path(), Delete::Never).await;
    assert_eq!((report.sent, report.failed), (2, 1), "{report:#?}");
    assert!(report.problem.is_none(), "{report:#?}");
    assert_eq!(report.failures[0].0.to_string(), "b");
    assert!(pulled.path().join("b/own").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mirror_makes_room_for_what_has_taken_the_place_of_a_directory() {
    let scene = scene();
    let source = scene.source.path();
    for name in ["a/in/f", "b/f", "c", "d", "e"] {
        write(source.join(name), name);
    }
    scene.push().await;
    let pulled = dir();
    clean(scene.agent.pull(pulled.path(), MIRROR).await);
    for name in ["a", "b"] {
        fs::remove_dir_all(source.join(name)).expect("remove a directory");
    }
    write(source.join("a"), "a file");
    std::os::unix::fs::symlink("c", source.join("b")).expect("make a link");
    clean(scene.agent.push(source, MIRROR).await);

    let few = Delete::Mirror {
        max: MaxDelete::Files(1),
    };
    let report = scene.agent.pull(pulled.path(), few).await;
    assert_eq!((report.failed, report.deleted), (2, 0), "{report:#?}");
    assert!(pulled.path().join("b/f").exists());

    let report = clean(scene.agent.pull(pulled.path(), MIRROR).await);
    assert_eq!(report.deleted, 2, "{report:#?}");
    expect_same(source, pulled.path());
}
