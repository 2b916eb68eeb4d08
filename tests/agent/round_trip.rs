//! Push, change, push, pull.

use std::fs;
use std::path::Path;

use fairbat_agent::config::credentials::{Origin, SecretText, Spec, StoreCredentials, Wanted};
use fairbat_agent::config::{self, StoreConfig};
use fairbat_agent::sync::{Delete, MaxDelete, RunProblem, RunReport};
use fairbat_tests::stores::{Dav, DavKind, Exchange, FaultProxy, S3, S3Kind, Serve};
use tempfile::TempDir;

use crate::agent::{Agent, StoreAccess, local_store};
use crate::tree::{Names, Shape, expect_same, make};

const MIRROR: Delete = Delete::Mirror {
    max: MaxDelete::Share(0.5),
};

pub(crate) fn dir() -> TempDir {
    tempfile::tempdir().expect("a temp dir")
}

pub(crate) fn clean(report: RunReport) -> RunReport {
    assert!(report.is_clean(), "{report:#?}");
    report
}

/// 2,000 files, of which a few are large and one is very large.
const FULL: Shape = Shape {
    names: Names::All,
    files: 2_000,
    large: &[300_000_000, 60_000_000, 30_000_000, 20_000_000],
};

/// As odd, but small.
const SMALL: Shape = Shape {
    names: Names::All,
    files: 300,
    large: &[12_000_000],
};

/// Everything that must hold of any store. What moves is counted by a proxy before
/// it, if it is behind one.
async fn works(settings: &StoreAccess, shape: Shape, proxy: Option<&FaultProxy>) {
    let (source, states) = (dir(), dir());
    make(source.path(), shape, 7);
    let files = shape.files as u64;
    let agent = Agent::new(settings, &states.path().join("state"));

    let report = clean(agent.push(source.path(), MIRROR).await);
    assert_eq!(report.sent, files, "{report:#?}");
    let pulled = dir();
    clean(agent.pull(pulled.path(), Delete::Never).await);
    expect_same(source.path(), pulled.path());

    let before = proxy.map_or(0, |proxy| proxy.exchanges().len());
    let report = clean(agent.push(source.path(), MIRROR).await);
    assert_eq!((report.sent, report.noted), (0, 0), "{report:#?}");
    let report = clean(agent.pull(pulled.path(), Delete::Never).await);
    assert_eq!((report.sent, report.same), (0, files), "{report:#?}");
    if let Some(proxy) = proxy {
        expect_nothing_moved(&proxy.exchanges()[before..]);
    }

    change(source.path());
    let report = clean(agent.push(source.path(), Delete::Never).await);
    assert_eq!((report.sent, report.deleted), (3, 1), "{report:#?}");
    let report = clean(agent.pull(pulled.path(), Delete::Never).await);
    assert_eq!((report.sent, report.deleted), (3, 0), "{report:#?}");
    assert!(pulled.path().join("a,b/file").exists(), "it is kept");
    let report = clean(agent.push(source.path(), MIRROR).await);
    assert_eq!((report.sent, report.deleted), (0, 1), "{report:#?}");
    let report = clean(agent.pull(pulled.path(), MIRROR).await);
    assert_eq!((report.sent, report.deleted), (0, 1), "{report:#?}");
    expect_same(source.path(), pulled.path());

    // Another machine, that knows nothing but the store.
    drop(agent);
    let agent = Agent::new(settings, &states.path().join("another"));
    let report = clean(agent.push(source.path(), MIRROR).await);
    assert_eq!((report.sent, report.same), (0, files), "{report:#?}");
}

/// No content of a file goes to a store, nor comes from it.
fn expect_nothing_moved(exchanges: &[Exchange]) {
    let is_ours = |exchange: &Exchange| exchange.target.contains("/.fairbat/manifest/");
    let moved = exchanges
        .iter()
        .filter(|exchange| ["PUT", "POST", "GET"].contains(&exchange.method.as_str()))
        .filter(|exchange| !is_ours(exchange) && !exchange.target.contains("?uploads"));
    let moved: Vec<_> = moved.collect();
    assert!(moved.is_empty(), "{moved:#?}");
    let sent: u64 = exchanges.iter().map(|exchange| exchange.body_bytes).sum();
    assert!(sent < 10_000, "{sent} bytes");
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
    let settings = local_store(store.path());
    works(&settings, FULL, None).await;
    let unfinished = store.path().join(".fairbat/unfinished");
    let left = fs::read_dir(unfinished).expect("it was made").count();
    assert_eq!(left, 0, "nothing is left unfinished");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_deleted_for_a_source_that_is_empty_or_lost_too_much() {
    let (store, source, states) = (dir(), dir(), dir());
    make(source.path(), SMALL, 3);
    let settings = local_store(store.path());
    let agent = Agent::new(&settings, &states.path().join("state"));
    clean(agent.push(source.path(), MIRROR).await);
    let before = crate::tree::look(store.path());

    let empty = dir();
    let report = agent.push(empty.path(), MIRROR).await;
    assert!(
        matches!(report.problem, Some(RunProblem::EmptySource(_))),
        "{report:#?}"
    );
    fs::write(empty.path().join("one"), "x").expect("write a file");
    let report = agent.push(empty.path(), MIRROR).await;
    let problem = report.problem.as_ref();
    assert!(
        matches!(problem, Some(RunProblem::TooManyDeletions { .. })),
        "{report:#?}"
    );
    let missing = agent.push(&source.path().join("missing"), MIRROR).await;
    assert!(
        matches!(missing.problem, Some(RunProblem::Scan(_))),
        "{missing:#?}"
    );

    let after = crate::tree::look(store.path());
    for path in before.keys() {
        assert!(after.contains_key(path), "{path:?}");
    }
}

/// How the agent reaches a server.
pub(crate) fn s3(server: &S3, endpoint: &str) -> StoreAccess {
    let store = StoreConfig::S3(config::S3 {
        endpoint: Some(endpoint.parse().expect("a URL")),
        region: server.region().to_owned(),
        bucket: server.bucket().to_owned(),
        prefix: "hosts/alpha".to_owned(),
        path_style: true,
        credentials: from_environment(Wanted::Keys),
        cacert: None,
    });
    let credentials = StoreCredentials::Keys {
        access_key_id: server.access_key().to_owned(),
        secret_access_key: SecretText::new(server.secret_key().to_owned()),
        session_token: None,
    };
    (store, credentials)
}

/// How the agent reaches a WebDAV server.
pub(crate) fn dav(server: &Dav, url: &str) -> StoreAccess {
    let credentials = StoreCredentials::Password {
        user: server.user().to_owned(),
        password: SecretText::new(server.password().to_owned()),
    };
    (StoreConfig::Webdav(http(url)), credentials)
}

fn http(url: &str) -> config::Http {
    config::Http {
        url: url.parse().expect("a URL"),
        credentials: from_environment(Wanted::Login),
        cacert: None,
    }
}

/// Not read: the tests give the credentials.
fn from_environment(wanted: Wanted) -> Spec {
    Spec {
        wanted,
        origin: Origin::Environment,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn through_moto() {
    let server = S3::start(S3Kind::Moto);
    let proxy = FaultProxy::start(server.address());
    works(&s3(&server, &proxy.url()), FULL, Some(&proxy)).await;
}

/// It keeps what it knows of an object in a file named by the key in Base64, and
/// fails with keys that are too long for that. No store of the trade does.
#[tokio::test(flavor = "multi_thread")]
async fn through_s3s() {
    let shape = Shape {
        names: Names::Short,
        ..SMALL
    };
    let server = S3::start(S3Kind::S3sFs);
    let proxy = FaultProxy::start(server.address());
    works(&s3(&server, &proxy.url()), shape, Some(&proxy)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn through_wsgidav() {
    let server = Dav::start(DavKind::Wsgidav);
    let proxy = FaultProxy::start(server.address());
    works(&dav(&server, &proxy.url()), SMALL, Some(&proxy)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn through_rclone() {
    let server = Dav::start(DavKind::Rclone);
    let proxy = FaultProxy::start(server.address());
    works(&dav(&server, &proxy.url()), SMALL, Some(&proxy)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn through_fairbat() {
    let server = Serve::start();
    let proxy = FaultProxy::start(server.address());
    let credentials = StoreCredentials::Token(SecretText::new(server.token().to_owned()));
    let settings = (StoreConfig::Fairbat(http(&proxy.url())), credentials);
    works(&settings, SMALL, Some(&proxy)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_is_replaced_by_a_link_is_kept_unless_it_may_be_deleted() {
    let (store, source, states) = (dir(), dir(), dir());
    let photos = source.path().join("photos");
    fs::create_dir(&photos).expect("make a directory");
    for i in 0..10 {
        fs::write(photos.join(format!("f{i}")), "x").expect("write a file");
    }
    let settings = local_store(store.path());
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

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_is_kept_is_in_the_way_of_a_file_and_the_hint_says_so() {
    let (local, source) = (dir(), dir());
    let server = Dav::start(DavKind::Wsgidav);
    let directory = local_store(local.path());
    let stores = [
        (directory, local.path().to_owned()),
        (dav(&server, &server.url()), server.root()),
    ];
    let photos = source.path().join("photos");
    for (settings, root) in stores {
        let states = dir();
        let agent = Agent::new(&settings, &states.path().join("state"));
        fs::create_dir(&photos).expect("make a directory");
        fs::write(photos.join("f"), "x").expect("write a file");
        clean(agent.push(source.path(), Delete::Never).await);
        fs::remove_dir_all(&photos).expect("remove a directory");
        fs::write(&photos, "now a file").expect("write a file");

        let report = agent.push(source.path(), Delete::Never).await;
        assert_eq!((report.failed, report.deleted), (1, 0), "{report:#?}");
        let (path, failure) = &report.failures[0];
        assert_eq!(path.to_string(), "photos");
        assert!(failure.hint().contains("directory"), "{report:#?}");
        fs::remove_dir_all(root.join("home/photos")).expect("remove it by hand");
        let report = clean(agent.push(source.path(), Delete::Never).await);
        assert_eq!(report.sent, 1, "{report:#?}");
        fs::remove_file(&photos).expect("remove a file");
    }
}
