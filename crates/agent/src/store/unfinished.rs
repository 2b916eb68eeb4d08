//! Unfinished files of stores that write a file under a temporary name first: the
//! names, and the cleaning up.
//!
//! A name begins with the key, so that a cleaner sees which job it belongs to. It
//! ends with a token that no other process and no other attempt has.

use std::collections::{BTreeSet, VecDeque};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::percent;

/// An unfinished upload, or an unfinished file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingUpload {
    /// The key it is for; empty if that is unknown.
    pub key: String,
    /// Its name.
    pub upload: String,
}

/// The directory of unfinished files, below the root of a store.
pub(crate) const UNFINISHED: &str = ".fairbat/unfinished";

/// Longest beginning of an encoded key in a name, bytes. File systems take names of
/// 255 bytes, and the token needs the rest.
const MAX_HEAD: usize = 150;

/// Abandoned files that are deleted before an upload. An upload leaves one at most.
const TAKEN_AT_ONCE: usize = 4;

/// Abandoned files that are remembered. The next run looks for all others.
const MAX_LEFT: usize = 64;

/// Marks a key that was cut. No encoded key ends with it.
const CUT: char = '%';

/// The unfinished files that this process has in a store.
#[derive(Debug)]
pub(crate) struct UnfinishedFiles(Mutex<UnfinishedNames>);

#[derive(Debug)]
struct UnfinishedNames {
    /// Unique to this process.
    token: u64,
    next: u64,
    under_way: BTreeSet<String>,
    /// Abandoned files, to be deleted.
    left: VecDeque<String>,
}

impl UnfinishedFiles {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(UnfinishedNames {
            token: token(),
            next: 0,
            under_way: BTreeSet::new(),
            left: VecDeque::new(),
        })))
    }

    /// Names a new file for a key.
    pub(crate) fn name(self: &Arc<Self>, key: &str) -> UnfinishedObject {
        let mut names = self.names();
        let name = format!("{}~{:016x}-{}", head(key), names.token, names.next);
        names.next += 1;
        names.under_way.insert(name.clone());
        drop(names);
        UnfinishedObject {
            files: Arc::clone(self),
            name,
            is_placed: false,
        }
    }

    /// Takes the names of the abandoned files, some at a time, in turn.
    pub(crate) fn take_left(&self) -> Vec<String> {
        let left = &mut self.names().left;
        let taken = left.len().min(TAKEN_AT_ONCE);
        left.drain(..taken).collect()
    }

    /// Returns a name whose file may still exist.
    pub(crate) fn leave(&self, name: String) {
        let left = &mut self.names().left;
        left.push_back(name);
        if left.len() > MAX_LEFT {
            left.pop_front();
        }
    }

    pub(crate) fn is_under_way(&self, name: &str) -> bool {
        self.names().under_way.contains(name)
    }

    fn names(&self) -> MutexGuard<'_, UnfinishedNames> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An unfinished file. Dropped before it is placed, it counts as abandoned and is
/// deleted later.
#[derive(Debug)]
pub(crate) struct UnfinishedObject {
    files: Arc<UnfinishedFiles>,
    name: String,
    /// Whether the file has its final name.
    pub(crate) is_placed: bool,
}

impl UnfinishedObject {
    /// The key of the file itself.
    pub(crate) fn key(&self) -> String {
        key_of(&self.name)
    }
}

impl Drop for UnfinishedObject {
    fn drop(&mut self) {
        self.files.names().under_way.remove(&self.name);
        if !self.is_placed {
            self.files.leave(std::mem::take(&mut self.name));
        }
    }
}

/// A large file that a store has received. It still has to be placed under its
/// key. If it is dropped before, its content is deleted later.
#[derive(Debug)]
pub struct StagedFile {
    /// Its key.
    pub(crate) key: String,
    /// `None` if the store has placed it already.
    pub(crate) unfinished: Option<UnfinishedObject>,
    /// Whether a request to place it was sent whose answer is unknown.
    pub(crate) is_in_doubt: bool,
}

/// A random number.
pub(crate) fn token() -> u64 {
    // The standard library seeds its hash tables from the system's random source.
    RandomState::new().build_hasher().finish()
}

/// The key of the unfinished file of this name.
pub(crate) fn key_of(name: &str) -> String {
    format!("{UNFINISHED}/{name}")
}

/// Reads a name. `None` if it is not ours, or its key is not below `prefix`.
pub(crate) fn pending(name: &str, prefix: &str) -> Option<PendingUpload> {
    let (head, _) = name.rsplit_once('~')?;
    let (head, is_cut) = match head.strip_suffix(CUT) {
        Some(head) => (head, true),
        None => (head, false),
    };
    let key = String::from_utf8(percent::decode(head)?).ok()?;
    let is_below = match key.strip_prefix(prefix) {
        Some(_) if prefix.is_empty() => true,
        Some(rest) => rest.starts_with('/'),
        None => false,
    };
    is_below.then(|| PendingUpload {
        key: if is_cut { String::new() } else { key },
        upload: name.to_owned(),
    })
}

/// The beginning of a name for a key: encoded, and cut if long.
pub(crate) fn head(key: &str) -> String {
    let encoded = percent::encode(key.as_bytes(), |_, character| character != '/');
    if encoded.len() <= MAX_HEAD {
        return encoded;
    }
    format!("{}{CUT}", percent::head(&encoded, MAX_HEAD))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_whose_it_is() {
        let files = UnfinishedFiles::new();
        let name = |key: &str| files.name(key).name.clone();
        for key in ["a", "home/a~b/c%20d", "home/%", "home/a%", "é/日本"] {
            let name = name(key);
            assert!(!name.contains('/'), "{name}");
            assert_eq!(pending(&name, "").unwrap().key, key);
        }
        let name = name("home/a");
        assert_eq!(pending(&name, "home").unwrap().upload, name);
        for prefix in ["ho", "home/a", "other"] {
            assert_eq!(pending(&name, prefix), None, "{prefix}");
        }
        for foreign in ["", "x", "%~1", "a%zz~1", "%FF~1"] {
            assert_eq!(pending(foreign, "home"), None, "{foreign}");
        }
    }

    #[test]
    fn long_keys_are_cut_between_characters() {
        let files = UnfinishedFiles::new();
        for length in 130..160 {
            for filler in ["x", "é", "%25", "/y"] {
                let key = format!("home/{}{}", "a".repeat(length), filler.repeat(100));
                let name = files.name(&key).name.clone();
                assert!(name.len() < 200, "{name}");
                let pending = pending(&name, "home").unwrap();
                assert_eq!((pending.key.as_str(), &pending.upload), ("", &name));
            }
        }
    }

    #[test]
    fn what_is_not_placed_is_left() {
        let files = UnfinishedFiles::new();
        let (mut first, second) = (files.name("a"), files.name("a"));
        assert_ne!(first.name, second.name);
        let name = second.name.clone();
        assert!(files.is_under_way(&name));
        first.is_placed = true;
        drop((first, second));
        assert!(!files.is_under_way(&name));
        assert_eq!(files.take_left(), [name]);
        assert!(files.take_left().is_empty());
    }

    #[test]
    fn a_server_that_deletes_nothing_is_asked_a_few_times_an_upload() {
        let files = UnfinishedFiles::new();
        for _ in 0..1000 {
            let taken = files.take_left();
            assert!(taken.len() <= TAKEN_AT_ONCE, "{taken:?}");
            for name in taken {
                files.leave(name);
            }
            drop(files.name("a"));
        }
        assert_eq!(files.names().left.len(), MAX_LEFT);
    }
}
