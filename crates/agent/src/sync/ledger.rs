//! What of a job is left, and what is under way: told to its lane once a second,
//! and to whoever asks how it stands.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fairbat::carrier::{Ceiling, Passage};
use fairbat::lane::Backlog;

/// How a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Standing {
    /// Files that there were to move.
    pub files: u64,
    /// Those of them that are done, one way or the other.
    pub files_done: u64,
    /// Bytes that there were to move.
    pub bytes: u64,
    /// Bytes of them that are done.
    pub bytes_done: u64,
    /// Bytes that were moved for that, by this process.
    pub bytes_moved: u64,
    /// Whether it is known what there is to do.
    pub is_planned: bool,
}

/// See the module. Clones are the same ledger.
#[derive(Debug, Clone, Default)]
pub struct Ledger(Arc<Mutex<Book>>);

#[derive(Debug, Default)]
struct Book {
    standing: Standing,
    flights: HashMap<u64, (u64, Arc<AtomicU64>)>,
    flown: u64,
}

impl Ledger {
    /// There is so much more to do.
    pub(super) fn expect(&self, files: u64, bytes: u64) {
        let mut book = self.book();
        book.standing.files += files;
        book.standing.bytes += bytes;
        book.standing.is_planned = true;
    }

    /// A file is done, or given up; so many of its bytes were never moved, and
    /// will not be.
    pub(super) fn file_done(&self, unmoved: u64) {
        let mut book = self.book();
        book.standing.files_done += 1;
        book.standing.bytes_done += unmoved;
    }

    /// Something that is one file stands so.
    pub(crate) fn is_at(&self, done: u64, all: Option<u64>) {
        let mut book = self.book();
        let standing = &mut book.standing;
        standing.is_planned = true;
        standing.files = 1;
        standing.bytes = all.unwrap_or(done);
        standing.bytes_moved += done.saturating_sub(standing.bytes_done);
        standing.bytes_done = done;
    }

    /// A request begins that moves so many bytes, within these ceilings.
    pub(super) fn take_off(&self, bytes: u64, ceilings: &[Arc<Ceiling>]) -> Flight {
        let mut book = self.book();
        let number = book.flown;
        book.flown += 1;
        let moved = Arc::new(AtomicU64::new(0));
        book.flights.insert(number, (bytes, Arc::clone(&moved)));
        Flight {
            ledger: self.clone(),
            number,
            bytes,
            passage: Passage {
                ceilings: ceilings.to_vec(),
                moved,
            },
        }
    }

    /// Bytes that were moved before, by another process.
    pub(super) fn found(&self, bytes: u64) {
        self.book().standing.bytes_done += bytes;
    }

    /// A file was expected to have so many bytes, and had others.
    pub(super) fn resized(&self, expected: u64, bytes: u64) {
        let mut book = self.book();
        let standing = &mut book.standing;
        standing.bytes = standing.bytes.saturating_sub(expected) + bytes;
    }

    /// Bytes that had been moved have to be moved again.
    pub(super) fn lost(&self, bytes: u64) {
        let mut book = self.book();
        book.standing.bytes_done = book.standing.bytes_done.saturating_sub(bytes);
    }

    /// How it stands now.
    #[must_use]
    pub fn standing(&self) -> Standing {
        let book = self.book();
        let mut standing = book.standing;
        standing.bytes_done += book.aloft();
        standing
    }

    /// Requests that have carried data.
    pub(super) fn requests(&self) -> u64 {
        self.book().flown
    }

    /// What is left, where a large file is sent in parts of this size, bytes.
    pub(super) fn backlog(&self, part: u64) -> Backlog {
        let standing = self.standing();
        let bytes = standing.bytes.saturating_sub(standing.bytes_done);
        let files = standing.files.saturating_sub(standing.files_done);
        let active = self.book().flights.len() as u64;
        Backlog {
            bytes,
            inactive: (files + bytes / part).saturating_sub(active),
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    /// Bytes that requests under way have moved.
    fn aloft(&self) -> u64 {
        let flights = self.flights.values();
        flights
            .map(|(bytes, moved)| moved.load(Ordering::Relaxed).min(*bytes))
            .sum()
    }
}

/// A request under way. What it moved counts only when it has landed.
#[derive(Debug)]
pub(super) struct Flight {
    ledger: Ledger,
    number: u64,
    bytes: u64,
    passage: Passage,
}

impl Flight {
    /// What the request is part of.
    pub(super) fn passage(&self) -> Passage {
        self.passage.clone()
    }

    /// All its bytes are where they belong.
    pub(super) fn landed(self) {
        let mut book = self.ledger.book();
        book.standing.bytes_done += self.bytes;
        book.standing.bytes_moved += self.bytes;
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.ledger.book().flights.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_landed_counts_for_good_and_what_broke_off_does_not() {
        let ledger = Ledger::default();
        ledger.expect(3, 1000);
        let flight = ledger.take_off(400, &[]);
        flight.passage().moved.fetch_add(150, Ordering::Relaxed);
        assert_eq!(ledger.standing().bytes_done, 150);
        drop(flight);
        assert_eq!(ledger.standing().bytes_done, 0);
        let flight = ledger.take_off(400, &[]);
        // More than its bytes, with what was sent twice.
        flight.passage().moved.fetch_add(700, Ordering::Relaxed);
        assert_eq!(ledger.standing().bytes_done, 400);
        let backlog = ledger.backlog(100);
        assert_eq!((backlog.bytes, backlog.inactive), (600, 3 + 6 - 1));
        flight.landed();
        ledger.file_done(0);
        ledger.file_done(500);
        let standing = ledger.standing();
        assert_eq!((standing.files_done, standing.bytes_done), (2, 900));
    }
}
