//! Stores behind a URL: WebDAV servers, and `fairbat serve --writable`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod agent;
mod servers;
mod trouble;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bytes::Bytes;
use fairbat_agent::entry::TreePath;
use fairbat_agent::object_name;
use fairbat_agent::store::{Store, StoreErrorKind};
use fairbat_agent::sync::RunReport;
use futures_util::TryStreamExt;

use self::agent::Agent;
use self::servers::Server;

/// Names that some part of the way could take for something else.
const NAMES: [&[u8]; 22] = [
    b"plain",
    b"a b",
    b" before",
    b"after ",
    b"100%",
    b"%41",
    b"%2e%2e",
    b"a+b",
    b"a&b<c>\"'",
    b"semi;colon=1,2",
    b"#hash",
    b"question?x=y",
    b"back\\slash",
    b"new\nline",
    b".htaccess",
    b"..two",
    b"~tilde~",
    b"empty",
    b"\xff\xfe",
    "na\u{ef}ve".as_bytes(),
    "nai\u{308}ve".as_bytes(),
    "日本語".as_bytes(),
];

/// Bytes that nothing else has.
pub(crate) fn content(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed | 1;
    let next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as u8
    };
    std::iter::repeat_with(next).take(length).collect()
}

/// Odd names at the top, and as directories, and a large file.
fn make(source: &Path) {
    for (i, name) in NAMES.iter().enumerate() {
        let name = OsStr::from_bytes(name);
        let length = if name == "empty" { 0 } else { 1_000 * i };
        fs::write(source.join(name), content(i as u64, length)).unwrap();
        let below = source.join("below").join(name).join("deeper");
        fs::create_dir_all(&below).unwrap();
        fs::write(below.join(name), content(100 + i as u64, 10)).unwrap();
    }
    fs::write(source.join("large"), content(1_000, 20_000_000)).unwrap();
}

/// The files of a tree by their keys.
fn files(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let (mut files, mut directories) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
                continue;
            }
            let names = path.strip_prefix(root).unwrap().as_os_str().as_bytes();
            let names: Vec<u8> = names
                .iter()
                .map(|&b| if b == b'/' { 0 } else { b })
                .collect();
            let key = object_name::encode(&TreePath::from_bytes(&names).unwrap());
            files.insert(key, fs::read(&path).unwrap());
        }
    }
    files
}

pub(crate) fn clean(report: RunReport) -> RunReport {
    assert!(report.is_clean(), "{report:#?}");
    report
}

pub(crate) async fn fetch(store: &dyn Store, key: &str) -> Vec<u8> {
    let content = store.get(key, Default::default()).await.unwrap();
    let pieces: Vec<Bytes> = content.try_collect().await.unwrap();
    pieces.concat()
}

/// Pushes a tree twice, then changes it and pushes it again; the server has what it
/// is to have.
async fn keeps_in_step(server: &Server) {
    let source = tempfile::tempdir().unwrap();
    make(source.path());
    let agent = Agent::new(&server.settings());
    let expected = files(source.path());

    let report = clean(agent.push(source.path()).await);
    assert_eq!(report.sent, expected.len() as u64, "{report:#?}");
    assert_same(server, &expected);
    let report = clean(agent.push(source.path()).await);
    assert_eq!((report.sent, report.noted), (0, 0), "{report:#?}");

    fs::write(source.path().join("plain"), "changed").unwrap();
    fs::write(source.path().join("large"), content(1_001, 19_000_000)).unwrap();
    fs::remove_file(source.path().join("a b")).unwrap();
    fs::create_dir_all(source.path().join("a b/c")).unwrap();
    fs::write(source.path().join("a b/c/d"), "below what was a file").unwrap();
    let report = clean(agent.push(source.path()).await);
    assert_eq!((report.sent, report.deleted), (3, 1), "{report:#?}");
    assert_same(server, &files(source.path()));
    assert_eq!(server.unfinished(), 0);
}

/// What the server has below `home` are these files, and the agent's own.
fn assert_same(server: &Server, expected: &BTreeMap<String, Vec<u8>>) {
    for (key, content) in expected {
        let stored = fs::read(server.files().join("home").join(key));
        let stored = stored.unwrap_or_else(|error| panic!("{key}: {error}"));
        assert!(stored == *content, "{key}: {} bytes", stored.len());
    }
}

/// What is fetched is what was stored, and nothing else is there.
async fn gives_back_what_it_has(server: &Server) {
    let source = tempfile::tempdir().unwrap();
    make(source.path());
    let agent = Agent::new(&server.settings());
    clean(agent.push(source.path()).await);
    let expected = files(source.path());
    let mut stored = 0;
    let mut directories = vec![server.files().join("home")];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.ends_with(".fairbat") {
                continue;
            }
            match path.is_dir() {
                true => directories.push(path),
                false => stored += 1,
            }
        }
    }
    assert_eq!(stored, expected.len());
    for (key, content) in &expected {
        let key = format!("home/{key}");
        assert!(fetch(&*agent.store, &key).await == *content, "{key}");
    }
}

/// What holds of a single object.
async fn stores_and_deletes(server: &Server) {
    let agent = Agent::new(&server.settings());
    let store = &agent.store;
    let put = |key: &'static str, text: &'static str| {
        let content = Bytes::from_static(text.as_bytes());
        store.put(key, content, Default::default())
    };
    put("a/b/c/d", "one").await.unwrap();
    assert_eq!(fetch(&**store, "a/b/c/d").await, b"one");
    put("a/b/c/d", "three").await.unwrap();
    assert_eq!(fetch(&**store, "a/b/c/d").await, b"three");
    for key in ["../x", "a//b", "/a", "a/./b", ""] {
        let refused = put(key, "x").await.unwrap_err();
        assert_eq!(refused.kind, StoreErrorKind::Refused, "{key}: {refused}");
    }

    let keys = ["a/b/c/d", "a/nothing", "not/a/thing"].map(str::to_owned);
    store.delete(keys.to_vec()).await.unwrap();
    assert!(!server.files().join("a/b/c/d").exists());
    let gone = store.get("a/b/c/d", Default::default()).await;
    assert_eq!(gone.err().unwrap().kind, StoreErrorKind::Missing);
    assert_eq!(store.mark("a/b/c/d").await.unwrap(), None);
}

macro_rules! with_each {
    ($check:ident: $($name:ident by $server:ident),* $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                if let Some(server) = Server::$server() {
                    $check(&server).await;
                }
            }
        )*
    };
}

with_each!(keeps_in_step:
    rclone_keeps_in_step by rclone,
    fairbat_keeps_in_step by fairbat,
    nginx_keeps_in_step by nginx,
);

with_each!(gives_back_what_it_has:
    rclone_gives_back_what_it_has by rclone,
    fairbat_gives_back_what_it_has by fairbat,
);

with_each!(stores_and_deletes:
    rclone_stores_and_deletes by rclone,
    fairbat_stores_and_deletes by fairbat,
    nginx_stores_and_deletes by nginx,
);
