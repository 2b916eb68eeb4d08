//! Files that a server has under a name aside, before they come under their key:
//! what they are called, and what becomes of those that never get there.
//!
//! A name begins with the key, so that who cleans up sees whose it is, and ends
//! with what no other process, and no other try, has.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::super::PendingUpload;
use crate::percent;

/// Where they are.
pub(super) const UNFINISHED: &str = ".fairbat/unfinished";

/// So much of an encoded key is in a name, bytes: file systems take names of 255.
const HEAD_MOST: usize = 150;

/// What stands at the end of a key that was cut. No encoded key ends with it.
const CUT: char = '%';

/// What is under a name aside, as far as this process knows.
#[derive(Debug)]
pub(super) struct Aside(Mutex<Names>);

#[derive(Debug)]
struct Names {
    /// Differs from process to process.
    token: u64,
    next: u64,
    under_way: BTreeSet<String>,
    /// Those that nobody wants any more.
    left: Vec<String>,
}

impl Aside {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(Names {
            token: token(),
            next: 0,
            under_way: BTreeSet::new(),
            left: Vec::new(),
        })))
    }

    /// A new name for the file under a key.
    pub(super) fn name(self: &Arc<Self>, key: &str) -> Unfinished {
        let mut names = self.names();
        let name = format!("{}~{:016x}-{}", head(key), names.token, names.next);
        names.next += 1;
        names.under_way.insert(name.clone());
        drop(names);
        Unfinished {
            aside: Arc::clone(self),
            name,
            is_placed: false,
        }
    }

    /// Takes the names that nobody wants any more.
    pub(super) fn take_left(&self) -> Vec<String> {
        std::mem::take(&mut self.names().left)
    }

    /// This one may still be there.
    pub(super) fn leave(&self, name: String) {
        self.names().left.push(name);
    }

    pub(super) fn is_under_way(&self, name: &str) -> bool {
        self.names().under_way.contains(name)
    }

    fn names(&self) -> MutexGuard<'_, Names> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A file under a name aside. One that is dropped before it is placed is left to
/// be deleted.
#[derive(Debug)]
pub(super) struct Unfinished {
    aside: Arc<Aside>,
    name: String,
    is_placed: bool,
}

impl Unfinished {
    /// Where it is.
    pub(super) fn key(&self) -> String {
        key_of(&self.name)
    }

    /// It has another name now.
    pub(super) fn placed(&mut self) {
        self.is_placed = true;
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let mut names = self.aside.names();
        names.under_way.remove(&self.name);
        if !self.is_placed {
            names.left.push(std::mem::take(&mut self.name));
        }
    }
}

/// What nobody else has.
pub(in crate::store) fn token() -> u64 {
    // The standard library keys its hash tables from the system's random source.
    RandomState::new().build_hasher().finish()
}

/// The key of what is called so.
pub(super) fn key_of(name: &str) -> String {
    format!("{UNFINISHED}/{name}")
}

/// What a name says, if it is one of ours for a key below this prefix.
pub(in crate::store) fn pending(name: &str, prefix: &str) -> Option<PendingUpload> {
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

/// A key as the beginning of a name: encoded, and cut where it is long.
pub(in crate::store) fn head(key: &str) -> String {
    let encoded = percent::encode(key.as_bytes(), |_, character| character != '/');
    if encoded.len() <= HEAD_MOST {
        return encoded;
    }
    let mut end = encoded.floor_char_boundary(HEAD_MOST);
    if let Some(sign) = encoded[..end].rfind('%')
        && sign + 3 > end
    {
        end = sign;
    }
    format!("{}{CUT}", &encoded[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_whose_it_is() {
        let aside = Aside::new();
        let name = |key: &str| aside.name(key).name.clone();
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
        let aside = Aside::new();
        for length in 130..160 {
            for filler in ["x", "é", "%25", "/y"] {
                let key = format!("home/{}{}", "a".repeat(length), filler.repeat(100));
                let name = aside.name(&key).name.clone();
                assert!(name.len() < 200, "{name}");
                let pending = pending(&name, "home").unwrap();
                assert_eq!((pending.key.as_str(), &pending.upload), ("", &name));
            }
        }
    }

    #[test]
    fn what_is_not_placed_is_left() {
        let aside = Aside::new();
        let (mut first, second) = (aside.name("a"), aside.name("a"));
        assert_ne!(first.name, second.name);
        let name = second.name.clone();
        assert!(aside.is_under_way(&name));
        first.placed();
        drop((first, second));
        assert!(!aside.is_under_way(&name));
        assert_eq!(aside.take_left(), [name]);
        assert!(aside.take_left().is_empty());
    }
}
