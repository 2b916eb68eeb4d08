//! Push, change, push, pull.

use std::fs;
use std::path::Path;

use fairbat_agent::store::{S3Settings, StoreSettings};
use fairbat_agent::sync::{Delete, MaxDelete, Problem, Report};
use fairbat_tests::stores::{S3, S3Kind};
use tempfile::TempDir;

use crate::agent::Agent;
use crate::tree::{Names, expect_same, make};

const MIRROR: Delete = Delete::Mirror {
    max: MaxDelete::Share(0.5),
};

pub(crate) fn dir() -> TempDir {
    tempfile::tempdir().expect("a temp dir")
}

pub(crate) fn clean(report: Report) -> Report {
    assert!(report.is_clean(), "{report:#?}");
    report
}

/// Everything that must hold of any store.
pub(crate) async fn works(settings: &StoreSettings, names: Names, files: usize) {
    let (source, states) = (dir(), dir());
    make(source.path(), names, files, 12_000_000, 7);
    let agent = Agent::new(settings, &states.path().join("state"));

    let report = clean(agent.push(source.path(), MIRROR).await);
    assert_eq!(report.sent, files as u64, "{report:#?}");
    let pulled = dir();
    clean(agent.pull(pulled.path(), Delete::Never).await);
    expect_same(source.path(), pulled.path());

    let report = clean(agent.push(source.path(), MIRROR).await);
    assert_eq!((report.sent, report.noted), (0, 0), "{report:#?}");
    let report = clean(agent.pull(pulled.path(), Delete::Never).await);
    assert_eq!(report.sent, 0, "{report:#?}");

    change(source.path());
    let report = clean(agent.push(source.path(), MIRROR).await);
    assert_eq!((report.sent, report.deleted), (3, 2), "{report:#?}");
    let report = clean(agent.pull(pulled.path(), MIRROR).await);
    assert_eq!(report.sent, 3, "{report:#?}");
    expect_same(source.path(), pulled.path());

    // Another machine, that knows nothing but the store.
    drop(agent);
    let agent = Agent::new(settings, &states.path().join("another"));
    let report = clean(agent.push(source.path(), MIRROR).await);
    assert_eq!((report.sent, report.same), (0, files as u64), "{report:#?}");
    let fresh = dir();
    clean(agent.pull(&fresh.path().join("made"), Delete::Never).await);
    expect_same(source.path(), &fresh.path().join("made"));
}

/// A file that is changed, one that is added, one that is removed, one that has
/// another mode, a file that becomes a directory, and a link that leads elsewhere.
fn change(source: &Path) {
    fs::write(source.join("a+b/file"), "changed").expect("change a file");
    fs::write(source.join("added"), "new").expect("add a file");
    fs::remove_file(source.join("a,b/file")).expect("remove a file");
    let becomes = source.join("con/file");
    fs::remove_file(&becomes).expect("remove a file");
    fs::create_dir(&becomes).expect("make a directory");
    fs::write(becomes.join("inside"), "x").expect("add a file");
    let link = source.join("links/@");
    fs::remove_file(&link).expect("remove a link");
    std::os::unix::fs::symlink("elsewhere", &link).expect("make a link");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o640);
    fs::set_permissions(source.join("a&b=c;d/file"), mode).expect("set a mode");
}

#[tokio::test(flavor = "multi_thread")]
async fn through_a_local_directory() {
    let store = dir();
    works(
        &StoreSettings::Local(store.path().to_owned()),
        Names::All,
        2_000,
    )
    .await;
    let unfinished = store.path().join(".fairbat/unfinished");
    let left = fs::read_dir(unfinished).expect("it was made").count();
    assert_eq!(left, 0, "nothing is left unfinished");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_deleted_for_a_source_that_is_empty_or_lost_too_much() {
    let (store, source, states) = (dir(), dir(), dir());
    make(source.path(), Names::All, 100, 1, 3);
    let settings = StoreSettings::Local(store.path().to_owned());
    let agent = Agent::new(&settings, &states.path().join("state"));
    clean(agent.push(source.path(), MIRROR).await);
    let before = crate::tree::look(store.path());

    let empty = dir();
    let report = agent.push(empty.path(), MIRROR).await;
    assert!(
        matches!(report.problem, Some(Problem::EmptySource(_))),
        "{report:#?}"
    );
    fs::write(empty.path().join("one"), "x").expect("write a file");
    let report = agent.push(empty.path(), MIRROR).await;
    let problem = report.problem.as_ref();
    assert!(
        matches!(problem, Some(Problem::TooManyDeletions { .. })),
        "{report:#?}"
    );
    let missing = agent.push(&source.path().join("missing"), MIRROR).await;
    assert!(
        matches!(missing.problem, Some(Problem::Scan(_))),
        "{missing:#?}"
    );

    let after = crate::tree::look(store.path());
    for path in before.keys() {
        assert!(after.contains_key(path), "{path:?}");
    }
}

/// How the agent reaches a server.
pub(crate) fn s3(server: &S3, endpoint: &str) -> StoreSettings {
    StoreSettings::S3(Box::new(S3Settings {
        endpoint: Some(endpoint.parse().expect("a URL")),
        region: server.region().to_owned(),
        bucket: server.bucket().to_owned(),
        prefix: "hosts/alpha".to_owned(),
        path_style: true,
        access_key_id: server.access_key().to_owned(),
        secret_access_key: server.secret_key().to_owned(),
        session_token: None,
    }))
}

#[tokio::test(flavor = "multi_thread")]
async fn through_s3s() {
    let server = S3::start(S3Kind::S3sFs);
    works(&s3(&server, &server.endpoint()), Names::Simple, 300).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn through_moto() {
    let server = S3::start(S3Kind::Moto);
    works(&s3(&server, &server.endpoint()), Names::All, 2_000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_is_replaced_by_a_link_is_kept_unless_it_may_be_deleted() {
    let (store, source, states) = (dir(), dir(), dir());
    let photos = source.path().join("photos");
    fs::create_dir(&photos).expect("make a directory");
    for i in 0..10 {
        fs::write(photos.join(format!("f{i}")), "x").expect("write a file");
    }
    let settings = StoreSettings::Local(store.path().to_owned());
    let agent = Agent::new(&settings, &states.path().join("state"));
    clean(agent.push(source.path(), Delete::Never).await);
    fs::rename(&photos, states.path().join("moved")).expect("move a directory");
    std::os::unix::fs::symlink("elsewhere", &photos).expect("make a link");

    let report = clean(agent.push(source.path(), Delete::Never).await);
    assert_eq!(report.deleted, 0, "{report:#?}");
    let kept = || fs::read_dir(store.path().join("home/photos")).map_or(0, Iterator::count);
    assert_eq!(kept(), 10);
    let pulled = dir();
    clean(agent.pull(pulled.path(), Delete::Never).await);
    expect_same(source.path(), pulled.path());
}
