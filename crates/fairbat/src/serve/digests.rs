//! SHA-256 digests of whole files (RFC 9530). A thread of the lowest priority
//! computes them in the background, one after the other.
//!
//! A response never waits for a digest. It carries the digest of its file if that
//! is known. If not, and the request asks for it, the digest is computed for
//! later responses.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use http::HeaderValue;
use sha2::{Digest, Sha256};

use crate::file_version::FileVersion;
use crate::http::digest::repr_digest_of;

/// Digests that are kept, the newest ones: some hundred kilobytes.
const MAX_KNOWN: usize = 4096;

/// Open files that wait for their digest. Requests for more are dropped.
const MAX_WAITING: usize = 16;

/// Bytes that are read at once.
const PIECE: usize = 256 * 1024;

/// The niceness of the thread: the lowest priority (setpriority(2)).
const NICENESS: i32 = 19;

/// The known digests, and the thread that computes more.
#[derive(Debug)]
pub(crate) struct Digests {
    state: Arc<Mutex<KnownDigests>>,
    wanted: SyncSender<(File, FileVersion)>,
}

#[derive(Debug, Default)]
struct KnownDigests {
    known: HashMap<FileVersion, HeaderValue>,
    /// The known versions, the oldest first.
    order: VecDeque<FileVersion>,
    /// Versions whose digest is being computed or waits for it.
    pending: HashSet<FileVersion>,
}

impl Digests {
    /// Starts the thread. It ends when this is dropped.
    ///
    /// # Errors
    /// The system allows no more threads.
    pub(crate) fn start() -> io::Result<Self> {
        let state = Arc::<Mutex<KnownDigests>>::default();
        let (wanted, requests) = sync_channel(MAX_WAITING);
        let shared = Arc::clone(&state);
        thread::Builder::new()
            .name("digests".to_owned())
            .spawn(move || compute(&requests, &shared))?;
        Ok(Self { state, wanted })
    }

    /// The value of `Repr-Digest`, if it is known.
    pub(crate) fn of(&self, version: &FileVersion) -> Option<HeaderValue> {
        lock(&self.state).known.get(version).cloned()
    }

    /// Adds the SHA-256 of a version that was computed elsewhere.
    pub(crate) fn add(&self, version: FileVersion, sha256: &[u8; 32]) {
        lock(&self.state).add(version, repr_digest_of(sha256));
    }

    /// Has the digest computed. The version must be settled.
    pub(crate) fn want(&self, file: &File, version: FileVersion) {
        let mut state = lock(&self.state);
        if state.known.contains_key(&version) || state.pending.contains(&version) {
            return;
        }
        let Ok(file) = file.try_clone() else { return };
        if self.wanted.try_send((file, version)).is_ok() {
            state.pending.insert(version);
        }
    }
}

impl KnownDigests {
    fn add(&mut self, version: FileVersion, value: HeaderValue) {
        if self.known.insert(version, value).is_none() {
            self.order.push_back(version);
        }
        if self.order.len() > MAX_KNOWN
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}

/// Computes digests until no more can be wanted.
fn compute(requests: &Receiver<(File, FileVersion)>, state: &Mutex<KnownDigests>) {
    // On Linux this concerns the calling thread alone. If it is not allowed, the
    // thread has the priority of the others.
    let _ = rustix::process::setpriority_process(None, NICENESS);
    while let Ok((file, version)) = requests.recv() {
        let digest = digest(&file, version);
        let mut state = lock(state);
        state.pending.remove(&version);
        match digest {
            Ok(Some(sha256)) => state.add(version, repr_digest_of(&sha256)),
            Ok(None) => {}
            Err(error) => tracing::debug!("cannot compute a digest: {error}"),
        }
    }
}

/// `None` if the file changed while it was read.
fn digest(file: &File, version: FileVersion) -> io::Result<Option<[u8; 32]>> {
    let mut hasher = Sha256::new();
    let mut piece = vec![0; PIECE];
    let mut offset = 0;
    while offset < version.size {
        let read = file.read_at(&mut piece, offset)?;
        if read == 0 || FileVersion::of(&file.metadata()?) != version {
            return Ok(None);
        }
        hasher.update(&piece[..read]);
        offset += read as u64;
    }
    let is_same = offset == version.size && FileVersion::of(&file.metadata()?) == version;
    Ok(is_same.then(|| hasher.finalize().into()))
}

fn lock(state: &Mutex<KnownDigests>) -> MutexGuard<'_, KnownDigests> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_digests_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let mut state = KnownDigests::default();
        let versions: Vec<_> = (0..=MAX_KNOWN)
            .map(|size| {
                let path = directory.path().join("file");
                let file = File::options()
                    .append(true)
                    .create(true)
                    .open(path)
                    .unwrap();
                file.set_len(size as u64).unwrap();
                FileVersion::of(&file.metadata().unwrap())
            })
            .collect();
        for version in &versions {
            state.add(*version, HeaderValue::from_static("x"));
        }
        assert_eq!(state.known.len(), MAX_KNOWN);
        assert!(!state.known.contains_key(&versions[0]));
        assert!(state.known.contains_key(&versions[MAX_KNOWN]));
    }
}
