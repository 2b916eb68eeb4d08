//! Digests of whole files (RFC 9530), computed in the background, one after
//! the other, by a thread that takes only what nobody else wants of the
//! processors.
//!
//! A response never waits for one. It carries the digest of its file when that
//! is known; where it is not and the request asks for it, it is computed for
//! those that come later.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use http::{HeaderMap, HeaderName, HeaderValue};
use sfv::{BareItem, DictSerializer, Dictionary, KeyRef, ListEntry, Parser};

use crate::checksum::Hasher;
use crate::file_version::FileVersion;
use crate::settings::Checksum;

/// The digest of the whole file (RFC 9530, section 3).
pub(super) const REPR_DIGEST: HeaderName = HeaderName::from_static("repr-digest");

/// Who wants it (RFC 9530, section 4).
const WANT_REPR_DIGEST: HeaderName = HeaderName::from_static("want-repr-digest");

/// Digests that are kept, the newest: some hundred kilobytes.
const MOST_KNOWN: usize = 4096;

/// Files that wait, opened; those beyond have to be asked for again.
const MOST_WAITING: usize = 16;

/// Bytes that are read at once.
const PIECE: usize = 256 * 1024;

/// See the module.
#[derive(Debug)]
pub(super) struct Digests {
    state: Arc<Mutex<State>>,
    wanted: SyncSender<(File, FileVersion)>,
}

#[derive(Debug, Default)]
struct State {
    known: HashMap<FileVersion, HeaderValue>,
    /// Those in the order in which they came to be known.
    order: VecDeque<FileVersion>,
    /// What is computed or waits for it.
    pending: HashSet<FileVersion>,
}

impl Digests {
    /// Starts the thread; it ends with the value returned.
    ///
    /// # Errors
    /// There can be no more threads.
    pub(super) fn start() -> io::Result<Self> {
        let state = Arc::<Mutex<State>>::default();
        let (wanted, inquiries) = sync_channel(MOST_WAITING);
        let shared = Arc::clone(&state);
        thread::Builder::new()
            .name("digests".to_owned())
            .spawn(move || compute(&inquiries, &shared))?;
        Ok(Self { state, wanted })
    }

    /// The value of `Repr-Digest`, if it is known.
    pub(super) fn of(&self, version: &FileVersion) -> Option<HeaderValue> {
        lock(&self.state).known.get(version).cloned()
    }

    /// It has been computed already.
    pub(super) fn know(&self, version: FileVersion, digest: &[u8; 32]) {
        lock(&self.state).remember(version, value(digest));
    }

    /// Has it computed, unless that is under way. The version must be settled.
    pub(super) fn want(&self, file: &File, version: FileVersion) {
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

impl State {
    fn remember(&mut self, version: FileVersion, value: HeaderValue) {
        if self.known.insert(version, value).is_none() {
            self.order.push_back(version);
        }
        if self.order.len() > MOST_KNOWN
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}

/// Whether a request asks for a SHA-256 of the whole file: a preference above
/// 0, which is "not acceptable".
pub(super) fn is_wanted(headers: &HeaderMap) -> bool {
    let mut wants = Dictionary::new();
    for line in headers.get_all(WANT_REPR_DIGEST) {
        match Parser::new(line.as_bytes()).parse::<Dictionary>() {
            Ok(line) => wants.extend(line),
            Err(_) => return false,
        }
    }
    match wants.get("sha-256") {
        Some(ListEntry::Item(item)) => {
            matches!(item.bare_item, BareItem::Integer(preference) if i64::from(preference) > 0)
        }
        _ => false,
    }
}

/// Works through what is wanted until nobody wants anything any more.
fn compute(inquiries: &Receiver<(File, FileVersion)>, state: &Mutex<State>) {
    // Of this thread alone, on Linux; where it is not allowed it is as urgent
    // as the others.
    let _ = rustix::process::setpriority_process(None, 19);
    while let Ok((file, version)) = inquiries.recv() {
        let digest = digest(&file, version);
        let mut state = lock(state);
        state.pending.remove(&version);
        match digest {
            Ok(Some(value)) => state.remember(version, value),
            Ok(None) => {}
            Err(error) => tracing::debug!("cannot compute a digest: {error}"),
        }
    }
}

/// `None` when the file changed meanwhile.
fn digest(file: &File, version: FileVersion) -> io::Result<Option<HeaderValue>> {
    let mut hasher = Hasher::sha256();
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
    if offset != version.size || FileVersion::of(&file.metadata()?) != version {
        return Ok(None);
    }
    Ok(match hasher.finish() {
        Checksum::Sha256(digest) => Some(value(&digest)),
        Checksum::Sha512(_) => None,
    })
}

fn value(digest: &[u8]) -> HeaderValue {
    let mut field = DictSerializer::new();
    let _ = field.bare_item(KeyRef::constant("sha-256"), digest);
    let field = field.finish().expect("it has a member");
    HeaderValue::try_from(field).expect("a structured field is a field value")
}

/// What is known stays right whatever happens to those who look.
fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_is_a_preference_above_0() {
        for (value, expected) in [
            ("sha-256=10", true),
            ("sha-512=3, sha-256=1", true),
            ("sha-256=0", false),
            ("sha-512=10", false),
            ("sha-256", false),
            ("sha-256=1.5", false),
            ("sha-256=1,", false),
        ] {
            let value_of = HeaderValue::from_static(value);
            let headers = HeaderMap::from_iter([(WANT_REPR_DIGEST, value_of)]);
            assert_eq!(is_wanted(&headers), expected, "{value}");
        }
        assert!(!is_wanted(&HeaderMap::new()));
    }

    #[test]
    fn the_newest_digests_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let mut state = State::default();
        let versions: Vec<_> = (0..=MOST_KNOWN)
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
            state.remember(*version, HeaderValue::from_static("x"));
        }
        assert_eq!(state.known.len(), MOST_KNOWN);
        assert!(!state.known.contains_key(&versions[0]));
        assert!(state.known.contains_key(&versions[MOST_KNOWN]));
    }
}
