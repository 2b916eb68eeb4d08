//! What must hold for a pull from any store: `current.json`, and the manifests that it
//! names.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use fairbat::lane::{Lane, LaneSettings, Service};
use fairbat::transport::RequestContext;
use fairbat_agent::filter::EntryFilter;
use fairbat_agent::store::{
    ContentStream, ListPlace, ListedPage, PendingUpload, Store, StoreError, StoreErrorKind,
};
use fairbat_agent::sync::{
    Delete, Detect, LaneStore, MaxDelete, PullSettings, RunProgress, RunSettings, pull,
};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::sync::watch;

use crate::sealed;

/// Panics if the pull changes anything but its own directory, installs more files than
/// the manifests have lines, or lets a file run as another user.
///
/// The first line of the input is `current.json`, the others are the manifests. Each
/// file in the store has the same content.
pub(crate) fn check(data: &[u8]) {
    let end = data.iter().position(|&byte| byte == b'\n');
    let (pointer, lines) = data.split_at(end.unwrap_or(data.len()));
    let lines = lines.strip_prefix(b"\n").unwrap_or_default();
    let store = InputStore {
        pointer: pointer.to_vec().into(),
        manifests: sealed::manifests(lines)
            .into_iter()
            .map(Bytes::from)
            .collect(),
        next: AtomicUsize::new(0),
    };
    let place = Place::make();
    let files = pull_to(store, &place.directory.path().join("to"));
    assert!(files <= data.len() as u64);
    place.check();
}

/// Where nothing but `to` may change.
struct Place {
    directory: TempDir,
}

const CANARY: &str = "nobody writes here";

impl Place {
    fn make() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let outside = directory.path().join("outside");
        fs::create_dir(&outside).expect("make a directory");
        fs::write(outside.join("canary"), CANARY).expect("write a file");
        let to = directory.path().join("to");
        fs::create_dir(&to).expect("make a directory");
        // A trap of whoever else may write there.
        symlink("../outside", to.join("trap")).expect("make a link");
        Self { directory }
    }

    fn check(&self) {
        let names = |path: &Path| {
            let entries = fs::read_dir(path).expect("read a directory");
            let names = entries.map(|entry| entry.expect("an entry").file_name());
            let mut names: Vec<_> = names.collect();
            names.sort();
            names
        };
        let outside = self.directory.path().join("outside");
        assert_eq!(names(self.directory.path()), ["outside", "to"]);
        assert_eq!(names(&outside), ["canary"]);
        let canary = fs::read_to_string(outside.join("canary")).expect("read a file");
        assert_eq!(canary, CANARY);
        check_modes(&self.directory.path().join("to"));
    }
}

/// Asserts that no file has set-user-ID or set-group-ID bits. A directory may have the
/// latter, which gives nobody rights.
fn check_modes(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten() {
        let entry = entry.expect("an entry");
        let metadata = entry.metadata().expect("look at an entry");
        let refused = if metadata.is_dir() { 0o4000 } else { 0o6000 };
        assert_eq!(metadata.mode() & refused, 0, "{:?}", entry.path());
        if metadata.is_dir() {
            check_modes(&entry.path());
        }
    }
}

/// How many files a pull from this store has installed.
fn pull_to(store: InputStore, to: &Path) -> u64 {
    static SCENE: LazyLock<Mutex<(Runtime, Lane)>> = LazyLock::new(|| {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().expect("a runtime");
        let settings = LaneSettings {
            weight: 1.0,
            ..LaneSettings::new(4)
        };
        let lane = runtime.block_on(async { Lane::start(settings) });
        Mutex::new((runtime, lane.expect("a lane")))
    });
    let settings = PullSettings {
        run: RunSettings {
            prefix: "home".to_owned(),
            key_file: None,
            filter: EntryFilter::everything(),
            detect: Detect::Metadata,
            delete: Delete::Mirror {
                max: MaxDelete::Share(1.0),
            },
            weight: 1.0,
            service: Service::Scavenge,
            rate_limits: Vec::new(),
            connections: 4,
            seed: 1,
        },
        to: to.to_owned(),
        setuid: false,
        was_filled: false,
        pusher: None,
        pauses: Vec::new(),
    };
    let scene = SCENE.lock().unwrap_or_else(PoisonError::into_inner);
    let (runtime, lane) = &*scene;
    let origin = LaneStore {
        store: Arc::new(store),
        host: "store".to_owned(),
        lane: lane.clone(),
    };
    let (_run, stop) = watch::channel(false);
    let report = runtime.block_on(pull(origin, settings, RunProgress::default(), stop));
    report.sent
}

/// A store of the input.
#[derive(Debug)]
struct InputStore {
    pointer: Bytes,
    manifests: Vec<Bytes>,
    /// The manifest that is asked for next.
    next: AtomicUsize,
}

#[async_trait]
impl Store for InputStore {
    async fn get(&self, key: &str, _: RequestContext) -> Result<ContentStream, StoreError> {
        let content = if key.ends_with("/manifest/current.json") {
            self.next.store(0, Ordering::Relaxed);
            Some(self.pointer.clone())
        } else if key.ends_with(".jsonl.gz") {
            let next = self.next.fetch_add(1, Ordering::Relaxed);
            self.manifests.get(next).cloned()
        } else {
            Some(Bytes::from_static(sealed::CONTENT))
        };
        let missing = || StoreError::new(StoreErrorKind::Missing, format!("{key} is not there"));
        let content = content.ok_or_else(missing)?;
        Ok(Box::pin(futures_util::stream::iter([Ok(content)])))
    }

    async fn put(&self, key: &str, _: Bytes, _: RequestContext) -> Result<(), StoreError> {
        Err(StoreError::new(StoreErrorKind::Refused, key))
    }

    async fn list(&self, _: &ListPlace) -> Result<ListedPage, StoreError> {
        Ok(ListedPage::default())
    }

    async fn delete(&self, _: Vec<String>) -> Result<(), StoreError> {
        Err(StoreError::new(
            StoreErrorKind::Refused,
            "nothing is deleted",
        ))
    }

    async fn pending(&self, _: &str) -> Result<Vec<PendingUpload>, StoreError> {
        Ok(Vec::new())
    }

    async fn abort(&self, _: &str, _: &str) -> Result<(), StoreError> {
        Ok(())
    }
}
