//! What has changed in a tree: a scan, merged with the entries of the last sync. Both
//! are sorted by path, so neither has to be in memory. Pure.

use std::iter::Peekable;

use crate::entry::{EntryKind, Moment, TreeEntry, TreePath};
use crate::scan::Unreadable;

/// Age at which a change is complete, s. Linux stamps a file when a write begins, by a
/// clock that ticks each jiffy. A second change within a tick has the same time, and so
/// has the end of a write that waits for the disk.
pub(crate) const SETTLE_TIME_S: i64 = 2;

/// An entry as it was at the last sync.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownEntry {
    /// The entry, as scanned.
    pub entry: TreeEntry,
    /// SHA-256 of a regular file. Not used here.
    pub sha256: Option<[u8; 32]>,
}

/// How an entry has changed.
#[derive(Debug)]
pub enum EntryChange {
    /// It is unchanged.
    Same(KnownEntry),
    /// It is new.
    Added(TreeEntry),
    /// Its content, target or kind has changed. If it was a directory, its members
    /// follow as removed.
    Changed {
        /// The entry now.
        entry: TreeEntry,
        /// The entry at the last sync.
        old: KnownEntry,
    },
    /// A regular file whose content may have changed. Its size and time of change are
    /// the same.
    Touched {
        /// The entry now.
        entry: TreeEntry,
        /// The entry at the last sync.
        old: KnownEntry,
    },
    /// Only its attributes have changed.
    Attributes {
        /// The entry now.
        entry: TreeEntry,
        /// The entry at the last sync.
        old: KnownEntry,
    },
    /// It is gone.
    Removed(KnownEntry),
    /// It is unreadable. Nothing is said about the known entries there.
    Unknown(Unreadable),
}

/// The iterator of [`compare`].
pub struct Compare<S: Iterator, K: Iterator> {
    scan: Peekable<S>,
    known: Peekable<K>,
    /// Changes before this time were complete when the file was read.
    trusted_before: Moment,
    /// The last unreadable path. Nothing below it counts as removed.
    unknown: Option<TreePath>,
}

/// Merges `scan` with `known`, both sorted by path. `last_scan` is when the scan of
/// `known` began, by the clock that stamps files. A file that changed less than two
/// seconds before that, or later, may have changed again with the same time, so it is
/// at least [`EntryChange::Touched`].
///
/// A file that differs only in its device number counts as touched: device numbers
/// change when a machine restarts.
pub fn compare<S, K, E>(scan: S, known: K, last_scan: Moment) -> Compare<S::IntoIter, K::IntoIter>
where
    S: IntoIterator<Item = Result<TreeEntry, Unreadable>>,
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
    S: Iterator<Item = Result<TreeEntry, Unreadable>>,
    K: Iterator<Item = Result<KnownEntry, E>>,
{
    /// An error comes from `known`.
    type Item = Result<EntryChange, E>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let next = match self.scan.peek() {
                Some(Ok(entry)) => Some(&entry.path),
                Some(Err(unreadable)) => Some(&unreadable.path),
                None => None,
            };
            // Known entries before the next scanned one are gone.
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
                // A directory with a scanned member exists.
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
    S: Iterator<Item = Result<TreeEntry, Unreadable>>,
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

    /// Handles a scanned entry. All known entries before it are done.
    fn met(&mut self, entry: TreeEntry) -> Result<Option<EntryChange>, E> {
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

fn judge(entry: TreeEntry, old: KnownEntry, trusted_before: Moment) -> EntryChange {
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
