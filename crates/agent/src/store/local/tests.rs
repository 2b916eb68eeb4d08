use std::time::Duration;

use fairbat::lane::{Lane, LaneSettings, Service};
use fairbat::settings::HttpSettings;
use fairbat::transport::{LeverPolicy, RateLimit};

use super::*;

fn store(root: &Path) -> LocalStore {
    open(root, &Lane::start(LaneSettings::new(1)).unwrap())
}

fn open(root: &Path, lane: &Lane) -> LocalStore {
    let local = config::Local {
        path: root.to_owned(),
        file_mode: config::DEFAULT_FILE_MODE,
    };
    let http = HttpSettings::default();
    let wanted = LeverPolicy::Sender(Default::default());
    let client = LaneClient::start(&http, lane, wanted, 1, Service::Stream).unwrap();
    LocalStore::open(&local, client).unwrap()
}

async fn put(store: &LocalStore, key: &str, length: usize) -> Result<(), StoreError> {
    let content = Bytes::from(vec![7; length]);
    store.put(key, content, RequestContext::default()).await
}

#[tokio::test]
async fn small_files_have_a_rate_as_large_ones_have() {
    for length in [1, PIECE + 1] {
        let root = tempfile::tempdir().unwrap();
        let lane = Lane::start(LaneSettings::new(1)).unwrap();
        let store = open(root.path(), &lane);
        put(&store, "a", length).await.unwrap();
        let mut samples = lane.samples();
        let seen = samples.wait_for(|sample| sample.mean.is_some());
        let seen = tokio::time::timeout(Duration::from_secs(60), seen).await;
        assert!(seen.is_ok(), "{length} bytes do not show");
    }
}

fn unfinished(root: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(root.join(UNFINISHED)).unwrap();
    let name = |entry: io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
    entries
        .map(|entry| name(entry).into_string().unwrap())
        .collect()
}

#[tokio::test]
async fn what_cannot_be_stored_leaves_nothing() {
    let root = tempfile::tempdir().unwrap();
    let store = store(root.path());
    std::fs::write(root.path().join("file"), b"").unwrap();
    for length in [1, PIECE + 1, 4 * PIECE] {
        // A file is no directory.
        let failed = put(&store, "file/a", length).await;
        assert!(failed.is_err(), "{failed:?}");
        assert_eq!(unfinished(root.path()), [""; 0]);
    }
    // A put that is dropped while it waits for a rate limit leaves nothing either.
    let context = RequestContext {
        rate_limits: vec![RateLimit::new(1).into()],
        ..RequestContext::default()
    };
    let content = Bytes::from(vec![7; 4 * PIECE]);
    let mut storing = Box::pin(store.put("a", content, context));
    while !root.path().join(UNFINISHED).exists() || unfinished(root.path()).is_empty() {
        tokio::select! {
            stored = &mut storing => panic!("it is stored: {stored:?}"),
            () = tokio::time::sleep(Duration::from_millis(1)) => {}
        }
    }
    drop(storing);
    // The thread that has made the file may not have told of it yet, and deletes it then.
    let is_gone = async {
        while !unfinished(root.path()).is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let is_gone = tokio::time::timeout(Duration::from_secs(60), is_gone).await;
    assert!(is_gone.is_ok(), "{:?}", unfinished(root.path()));
}

#[tokio::test]
async fn what_a_process_with_the_same_number_has_left_is_pending() {
    let root = tempfile::tempdir().unwrap();
    let store = store(root.path());
    let own = store.begin("home/own", "").await.unwrap();
    let left = format!("home%2Fa~{}-0-0", std::process::id());
    std::fs::write(root.path().join(key_of(&left)), b"half").unwrap();
    let pending = store.pending("home").await.unwrap();
    let names: Vec<_> = pending.into_iter().map(|pending| pending.upload).collect();
    assert_eq!(names, [left]);
    assert!(root.path().join(key_of(&own)).exists());
}
