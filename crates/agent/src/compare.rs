//! What has changed in a tree: a walk of it, merged with the record of what was
//! synced last time. Both are sorted by path, so neither is ever in memory.
//!
//! Pure: it must not know where the record is kept, nor read a file.

use std::iter::Peekable;

use crate::entry::{Entry, EntryKind, Moment, TreePath};
use crate::scan::Unreadable;

/// A change is trusted to have been whole when it was so many seconds old. Linux
/// stamps a file when a write begins, by a clock that steps each jiffy: another
/// change within that has the same time, and so has the end of a write that waits
/// for the disk.
pub(crate) const SETTLE_TIME_S: i64 = 2;

/// An entry as it was when it was synced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownEntry {
    /// What a walk said of it.
    pub entry: Entry,
    /// SHA-256 of the content of a regular file; not looked at here.
    pub sha256: Option<[u8; 32]>,
}

/// What there is to say of an entry, or of what was one.
#[derive(Debug)]
pub enum EntryChange {
    /// It is as it was.
    Same(KnownEntry),
    /// It is new.
    Added(Entry),
    /// Its content, its target or its kind is another. What was below a directory
    /// that is none any more follows as removed.
    Changed {
        /// As it is.
        entry: Entry,
        /// As it was.
        old: KnownEntry,
    },
    /// A regular file whose content may or may not be another: what else speaks
    /// for a change, the size and the time of the last change do not.
    Touched {
        /// As it is.
        entry: Entry,
        /// As it was.
        old: KnownEntry,
    },
    /// Only the attributes are others; the content is certainly the same.
    Attributes {
        /// As it is.
        entry: Entry,
        /// As it was.
        old: KnownEntry,
    },
    /// It is gone.
    Removed(KnownEntry),
    /// What is here, and below it, is not known. There is no word of what the
    /// record has there.
    Unknown(Unreadable),
}

/// Merges a walk with the record of the last one; see [`compare`].
pub struct Compare<S: Iterator, K: Iterator> {
    scan: Peekable<S>,
    known: Peekable<K>,
    /// What was changed before was whole when it was read.
    trusted_before: Moment,
    /// Where nothing counts as removed. The last such place is enough: the
    /// record has passed the others.
    unknown: Option<TreePath>,
}

/// Merges `scan` with `known`, both sorted by path. `last_scan` is the moment,
/// by the clock that stamps files, at which the walk began that `known` is
/// from: a file that had changed less than two seconds before, or after, may
/// have changed on at the same time, and counts as [`EntryChange::Touched`] at least.
///
/// A file that is as it was but for the number of its device counts as touched,
/// for the numbers of devices change when a machine starts anew.
pub fn compare<S, K, E>(scan: S, known: K, last_scan: Moment) -> Compare<S::IntoIter, K::IntoIter>
where
    S: IntoIterator<Item = Result<Entry, Unreadable>>,
    K: IntoIterator<Item = Result<KnownEntry, E>>,
{
    Compare {
        scan: scan.into_iter().peekable(),
        known: known.into_iter().peekable(),
        trusted_before: surely_before(last_scan),
        unknown: None,
    }
}

impl<S, K, E> Iterator for Compare<S, K>
where
    S: Iterator<Item = Result<Entry, Unreadable>>,
    K: Iterator<Item = Result<KnownEntry, E>>,
{
    /// An error is one of the record.
    type Item = Result<EntryChange, E>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let next = match self.scan.peek() {
                Some(Ok(entry)) => Some(&entry.path),
                Some(Err(unreadable)) => Some(&unreadable.path),
                None => None,
            };
            // What the record has before that is gone.
            let is_before = |known: &Result<KnownEntry, E>| match (known, next) {
                (Ok(known), Some(next)) => known.entry.path < *next,
                (Ok(_), None) | (Err(_), _) => true,
            };
            if self.known.peek().is_some_and(is_before) {
                let known = match self.known.next()? {
                    Ok(known) => known,
                    Err(error) => return Some(Err(error)),
                };
                let path = &known.entry.path;
                let covers = |unknown: &TreePath| path.is_at_or_below(unknown);
                // A directory in which something is known to be is there.
                let is_around = next.is_some_and(|next| next.is_at_or_below(path));
                if is_around || self.unknown.as_ref().is_some_and(covers) {
                    continue;
                }
                return Some(Ok(EntryChange::Removed(known)));
            }
            return match self.scan.next()? {
                Err(unreadable) => Some(Ok(self.pass(unreadable))),
                Ok(entry) => self.met(entry).transpose(),
            };
        }
    }
}

impl<S, K, E> Compare<S, K>
where
    S: Iterator<Item = Result<Entry, Unreadable>>,
    K: Iterator<Item = Result<KnownEntry, E>>,
{
    fn pass(&mut self, unreadable: Unreadable) -> EntryChange {
        let path = &unreadable.path;
        let is_covered = |unknown: &TreePath| path.is_at_or_below(unknown);
        if !self.unknown.as_ref().is_some_and(is_covered) {
            self.unknown = Some(path.clone());
        }
        EntryChange::Unknown(unreadable)
    }

    /// An entry that nothing in the record is before.
    fn met(&mut self, entry: Entry) -> Result<Option<EntryChange>, E> {
        let is_same = |known: &Result<KnownEntry, E>| match known {
            Ok(known) => known.entry.path == entry.path,
            Err(_) => true,
        };
        let old = self.known.next_if(is_same).transpose()?;
        Ok(Some(match old {
            None => EntryChange::Added(entry),
            Some(old) => judge(entry, old, self.trusted_before),
        }))
    }
}

fn judge(entry: Entry, old: KnownEntry, trusted_before: Moment) -> EntryChange {
    let before = &old.entry;
    let is_same_content = match (&entry.kind, &before.kind) {
        (EntryKind::File(now), EntryKind::File(then)) => {
            let is_same_time = entry.attributes.modified == before.attributes.modified;
            if !is_same_time || (now.size, now.inode) != (then.size, then.inode) {
                false
            } else if now != then || then.changed >= trusted_before {
                return EntryChange::Touched { entry, old };
            } else {
                true
            }
        }
        (EntryKind::Directory, EntryKind::Directory) => true,
        (EntryKind::Symlink(now), EntryKind::Symlink(then)) => now == then,
        _ => false,
    };
    if !is_same_content {
        EntryChange::Changed { entry, old }
    } else if entry.attributes != before.attributes {
        EntryChange::Attributes { entry, old }
    } else {
        EntryChange::Same(old)
    }
}

fn surely_before(moment: Moment) -> Moment {
    Moment {
        seconds: moment.seconds.saturating_sub(SETTLE_TIME_S),
        ..moment
    }
}

#[cfg(test)]
mod tests;
