//! Sources that change, vanish or are unmounted while they are pushed: nothing wrong
//! is stored, nothing is deleted, and the report says it.

use std::fs;
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use fairbat_agent::sync::{Delete, MaxDelete, RunProblem, RunReport};
use fairbat_tests::stores::{Action, Fault, Requests, S3Kind};
use fairbat_tests::tmpfs::Bind;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::agent::{Agent, local_store};
use crate::faults::Scene;
use crate::round_trip::{clean, dir};
use crate::tree::look;

/// Nothing but what is told of the source keeps it from deleting.
const ANYTHING: Delete = Delete::Mirror {
    max: MaxDelete::Share(1.0),
};

const LARGE: usize = 12 * 1024 * 1024;

/// A byte that it still has when it is truncated.
const LAST: u64 = 6_999_999;

/// Changes `large` in a source, given the source.
type Change = fn(&Path);

/// Another byte each time, by one short write: while a long one goes on, a file
/// looks like a version of itself.
fn rewrite(source: &Path) {
    let file = fs::File::options()
        .read(true)
        .write(true)
        .open(source.join("large"));
    let file = file.expect("open a file");
    let mut byte = [0];
    file.read_exact_at(&mut byte, LAST).expect("read a file");
    let other = [byte[0].wrapping_add(1)];
    file.write_all_at(&other, LAST).expect("write a file");
}

fn truncate(source: &Path) {
    let file = fs::File::options().write(true).open(source.join("large"));
    let file = file.expect("open a file");
    file.set_len(7_000_000).expect("truncate a file");
}

/// What takes the place of `large` in one step.
fn replace(source: &Path, make: impl FnOnce(&Path)) {
    let new = source.join("new");
    make(&new);
    fs::rename(new, source.join("large")).expect("replace a file");
}

fn replace_by_file(source: &Path) {
    replace(source, |new| {
        fs::write(new, vec![9; LARGE]).expect("write a file");
    });
}

fn replace_by_link(source: &Path) {
    replace(source, |new| {
        symlink("/etc/passwd", new).expect("make a link");
    });
}

fn replace_by_fifo(source: &Path) {
    replace(source, |new| {
        let made = Command::new("mkfifo").arg(new).status();
        assert!(made.expect("start mkfifo").success());
    });
}

fn remove(source: &Path) {
    fs::remove_file(source.join("large")).expect("remove a file");
}

/// At such a request some of `large` is on its way, and some is still to be read.
fn midway(scene: &Scene) -> Requests {
    match scene.takes_parts() {
        true => Requests::of("PUT").containing("partNumber=2"),
        false => Requests::of("PUT").containing("large"),
    }
}

/// Pushes a source in which something becomes of `large` while it is sent, be it the
/// first time or each time, when the store has an older one.
async fn push_changing(scene: &Scene, change: Change, is_once: bool) -> RunReport {
    clean(scene.agent.push(scene.source.path(), Delete::Never).await);
    rewrite(scene.source.path());
    let source = scene.source.path().to_owned();
    let requests = midway(scene);
    let requests = if is_once {
        requests.nth(0..1)
    } else {
        requests
    };
    let action = Action::new(move || change(&source));
    scene.proxy.on(requests, Fault::First(action));
    let report = scene.agent.push(scene.source.path(), ANYTHING).await;
    scene.proxy.heal();
    report
}

/// What the store has of `large`, which was pushed before and then changed.
async fn stored(scene: &Scene) -> Vec<u8> {
    let pulled = dir();
    clean(scene.agent.pull(pulled.path(), Delete::Never).await);
    fs::read(pulled.path().join("large")).expect("read what was pulled")
}

async fn what_is_rewritten_each_time_stays_what_it_was(scene: Scene) {
    let before = fs::read(scene.source.path().join("large")).expect("read a file");
    let report = push_changing(&scene, rewrite, false).await;
    assert_eq!((report.changed, report.failed), (1, 1), "{report:#?}");
    assert_eq!((report.deleted, &report.problem), (0, &None), "{report:#?}");
    assert!(stored(&scene).await == before, "the store has the old one");
    clean(scene.agent.push(scene.source.path(), ANYTHING).await);
    scene.expect_in_step().await;
}

async fn what_changes_once_is_sent_anew(scene: Scene) {
    for change in [rewrite, truncate, replace_by_file] as [Change; 3] {
        let report = clean(push_changing(&scene, change, true).await);
        assert_eq!(
            (report.sent, report.gone, report.deleted),
            (1, 0, 0),
            "{report:#?}"
        );
        scene.expect_in_step().await;
    }
}

async fn what_is_no_file_any_more_is_not_stored(scene: Scene) {
    for change in [replace_by_link, replace_by_fifo, remove] as [Change; 3] {
        let before = fs::read(scene.source.path().join("large")).expect("read a file");
        let report = push_changing(&scene, change, true).await;
        assert_eq!(
            (report.sent, report.gone, report.deleted),
            (0, 1, 0),
            "{report:#?}"
        );
        assert!(stored(&scene).await == before, "the store has the old one");
        // What is in its place is seen by the next scan.
        let report = clean(scene.agent.push(scene.source.path(), ANYTHING).await);
        assert_eq!((report.sent, report.deleted), (0, 1), "{report:#?}");
        let _ = fs::remove_file(scene.source.path().join("large"));
        clean(scene.agent.push(scene.source.path(), ANYTHING).await);
        scene.expect_in_step().await;
        fs::write(scene.source.path().join("large"), vec![3; LARGE]).expect("write a file");
    }
}

macro_rules! with_each {
    ($($check:ident: $by_parts:ident, $by_stream:ident;)*) => {
        $(
            #[tokio::test(flavor = "multi_thread")]
            async fn $by_parts() {
                $check(Scene::s3(S3Kind::S3sFs)).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn $by_stream() {
                $check(Scene::dav()).await;
            }
        )*
    };
}

with_each! {
    what_is_rewritten_each_time_stays_what_it_was: rewritten_in_parts, rewritten_in_a_stream;
    what_changes_once_is_sent_anew: changed_in_parts, changed_in_a_stream;
    what_is_no_file_any_more_is_not_stored: replaced_in_parts, replaced_in_a_stream;
}

/// A source with a store that has all of it.
struct Pushed {
    work: tempfile::TempDir,
    store: tempfile::TempDir,
    agent: Agent,
}

impl Pushed {
    fn new() -> Self {
        let (work, store) = (dir(), dir());
        for i in 0..40 {
            let directory = work.path().join(format!("disk/d{i}"));
            fs::create_dir_all(&directory).expect("make a directory");
            for j in 0..50 {
                fs::write(directory.join(format!("f{j}")), "x").expect("write a file");
            }
        }
        for name in ["source/a", "source/mounted", "source/z"] {
            fs::create_dir_all(work.path().join(name)).expect("make a directory");
            fs::write(work.path().join(name).with_extension("txt"), "y").expect("write a file");
        }
        let settings = local_store(store.path());
        let agent = Agent::new(&settings, &work.path().join("state"));
        Self { work, store, agent }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.work.path().join(name)
    }

    fn mount(&self, at: &str) -> Option<Bind> {
        Bind::mount(&self.path("disk"), &self.path(at))
    }

    async fn push(&self) -> RunReport {
        self.agent.push(&self.path("source"), ANYTHING).await
    }

    /// Files that the store has, but for what the agent keeps there of its own.
    fn stored(&self) -> Vec<PathBuf> {
        let stored = look(&self.store.path().join("home")).into_keys();
        stored
            .filter(|path| !path.starts_with(".fairbat"))
            .collect()
    }
}

/// Pushes while what is mounted there, and was pushed, goes away at some moment:
/// before, while, or after the source is scanned.
async fn goes_away(at: &str) {
    const SEED: u64 = 5;
    println!("seed {SEED}");
    let mut rng = StdRng::seed_from_u64(SEED);
    let scene = Pushed::new();
    let Some(mounted) = scene.mount(at) else {
        return;
    };
    clean(scene.push().await);
    let stored = scene.stored();
    drop(mounted);

    let is_missed = |report: &RunReport| !report.is_clean();
    let report = scene.push().await;
    assert!(is_missed(&report), "{report:#?}");
    assert_eq!(report.deleted, 0, "{report:#?}");
    for _ in 0..10 {
        let mounted = scene.mount(at);
        let delay = Duration::from_micros(rng.random_range(0..60_000));
        let leaving = std::thread::spawn(move || {
            std::thread::sleep(delay);
            drop(mounted);
        });
        let report = scene.push().await;
        leaving.join().expect("it does not panic");
        assert_eq!(
            (report.sent, report.deleted),
            (0, 0),
            "{delay:?}: {report:#?}"
        );
        assert_eq!(scene.stored(), stored, "{delay:?}: {report:#?}");
    }
    let _mounted = scene.mount(at);
    let report = clean(scene.push().await);
    assert_eq!((report.sent, report.deleted), (0, 0), "{report:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_deleted_for_a_disk_in_the_source_that_is_not_mounted() {
    goes_away("source/mounted").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_deleted_for_a_source_that_is_not_mounted() {
    goes_away("source").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_vanishes_while_it_is_sent_is_reported() {
    let scene = Scene::s3(S3Kind::S3sFs);
    clean(scene.agent.push(scene.source.path(), Delete::Never).await);
    rewrite(scene.source.path());
    for i in 0..50 {
        fs::write(scene.source.path().join(format!("z{i}")), "z").expect("write a file");
    }
    let source = scene.source.path().to_owned();
    let aside = source.with_extension("aside");
    let (from, to) = (source.clone(), aside.clone());
    let action = Action::new(move || fs::rename(&from, &to).expect("move the source"));
    scene.proxy.on(
        Requests::of("PUT").containing("z10").nth(0..1),
        Fault::First(action),
    );
    let report = scene.agent.push(&source, ANYTHING).await;
    assert!(
        matches!(report.problem, Some(RunProblem::Scan(_))),
        "{report:#?}"
    );
    assert_eq!(report.deleted, 0, "{report:#?}");
    let report = scene.agent.push(&source, ANYTHING).await;
    assert!(
        matches!(report.problem, Some(RunProblem::Scan(_))),
        "{report:#?}"
    );
    fs::rename(&aside, &source).expect("move the source back");
    clean(scene.agent.push(&source, ANYTHING).await);
    scene.expect_in_step().await;
}
