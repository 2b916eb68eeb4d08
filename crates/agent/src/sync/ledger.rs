//! What of a job is left, and what is under way: told to its lane once a second,
//! and to whoever asks how it stands.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fairbat::lane::{Backlog, Member, MemberForecast};
use fairbat::transport::{RateLimit, RequestContext};

use crate::status::Retries;
use crate::store::StoreErrorKind;

/// What a request has moved so far is in the buffers of this machine and of the
/// path up to here, bytes: two or three pieces of 64 KiB, and what is in flight.
const IN_BUFFERS: u64 = 256 * 1024;

/// How a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProgressTotals {
    /// Files that there were to move.
    pub files: u64,
    /// Those of them that are done, one way or the other.
    pub files_done: u64,
    /// Bytes that there were to move.
    pub bytes: u64,
    /// Bytes of them that are done.
    pub bytes_done: u64,
    /// Bytes that were moved for that, by this process, those that had to be
    /// moved again included: they add up to those of the lane.
    pub bytes_moved: u64,
    /// Requests that have carried data.
    pub requests: u64,
    /// Tries that failed and were followed by another.
    pub retries: Retries,
    /// Whether it is known what there is to do.
    pub is_planned: bool,
    /// Whether more may come than is known: a file whose size nobody tells.
    pub is_open_ended: bool,
}

/// See the module. Clones are the same ledger.
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<Mutex<Book>>);

#[derive(Debug, Default)]
struct Book {
    standing: ProgressTotals,
    flights: HashMap<u64, (u64, Arc<AtomicU64>)>,
    flown: u64,
    /// Bytes that all requests together have moved.
    carried: Arc<AtomicU64>,
    /// Requests that were no flights.
    untold: Arc<AtomicU64>,
    forecast: Option<MemberForecast>,
}

impl Progress {
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

    /// It has a place in a lane.
    pub(crate) fn joins(&self, member: &Member) {
        self.book().forecast = Some(member.forecast());
    }

    /// Its prospects there.
    pub(crate) fn forecast(&self) -> Option<MemberForecast> {
        self.book().forecast.clone()
    }

    /// Something has failed, and is tried again.
    pub(crate) fn retried(&self, why: StoreErrorKind) {
        let retries = &mut self.book().standing.retries;
        match why {
            StoreErrorKind::Network => retries.network += 1,
            StoreErrorKind::Busy => retries.busy += 1,
            StoreErrorKind::Integrity => retries.integrity += 1,
            _ => retries.server += 1,
        }
    }

    /// Where requests that have carried data are counted that are not told one by
    /// one.
    pub(crate) fn chunks(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.book().untold)
    }

    /// What requests are part of that are not told one by one.
    pub(crate) fn passage(&self, ceilings: &[Arc<RateLimit>]) -> RequestContext {
        RequestContext {
            ceilings: ceilings.to_vec(),
            moved: Arc::default(),
            job: Some(Arc::clone(&self.book().carried)),
        }
    }

    /// Something that is one file stands so, what was there before included.
    pub(crate) fn is_at(&self, done: u64, all: Option<u64>) {
        let mut book = self.book();
        let standing = &mut book.standing;
        standing.is_planned = true;
        standing.files = 1;
        standing.is_open_ended = all.is_none();
        standing.bytes = all.unwrap_or(done);
        standing.bytes_done = done;
    }

    /// A request begins that moves so many bytes, within these ceilings.
    pub(super) fn take_off(&self, bytes: u64, ceilings: &[Arc<RateLimit>]) -> Flight {
        let mut book = self.book();
        let number = book.flown;
        book.flown += 1;
        let passage = RequestContext {
            ceilings: ceilings.to_vec(),
            moved: Arc::default(),
            job: Some(Arc::clone(&book.carried)),
        };
        let moved = Arc::clone(&passage.moved);
        book.flights.insert(number, (bytes, moved));
        Flight {
            ledger: self.clone(),
            number,
            bytes,
            passage,
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
    pub fn standing(&self) -> ProgressTotals {
        let book = self.book();
        let mut standing = book.standing;
        standing.bytes_done += book.aloft();
        standing.bytes_moved = book.carried.load(Ordering::Relaxed);
        standing.requests = book.flown + book.untold.load(Ordering::Relaxed);
        standing
    }

    /// What is left, where a large file is sent in parts of this size, bytes. The
    /// last of what a request has moved may be in buffers as yet, and is left until
    /// it is answered: else the flow would weigh nothing just then.
    pub(super) fn backlog(&self, part: u64) -> Backlog {
        let standing = self.standing();
        let (active, buffered) = {
            let book = self.book();
            (book.flights.len() as u64, book.buffered())
        };
        let left = standing.bytes.saturating_sub(standing.bytes_done);
        let bytes = (left + buffered).min(standing.bytes);
        let files = standing.files.saturating_sub(standing.files_done);
        Backlog {
            bytes,
            inactive: (files + left / part).saturating_sub(active),
            ..Backlog::default()
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

    /// Bytes of these that may not have arrived.
    fn buffered(&self) -> u64 {
        let flights = self.flights.values();
        flights
            .map(|(bytes, moved)| moved.load(Ordering::Relaxed).min(*bytes).min(IN_BUFFERS))
            .sum()
    }
}

/// A request under way. What it moved counts only when it has landed.
#[derive(Debug)]
pub(super) struct Flight {
    ledger: Progress,
    number: u64,
    bytes: u64,
    passage: RequestContext,
}

impl Flight {
    /// What the request is part of.
    pub(super) fn passage(&self) -> RequestContext {
        self.passage.clone()
    }

    /// All its bytes are where they belong.
    pub(super) fn landed(self) {
        let mut book = self.ledger.book();
        book.standing.bytes_done += self.bytes;
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.ledger.book().flights.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use fairbat::lane::{Lane, LaneSettings};

    use super::*;

    #[tokio::test]
    async fn what_has_landed_counts_for_good_and_what_broke_off_does_not() {
        let ledger = Progress::default();
        let lane = Lane::start(LaneSettings {
            max_connections: 1,
            weight: 1.0,
            limit_rate: None,
            is_held: false,
        });
        let lane = lane.unwrap();
        ledger.expect(3, 1000);
        let flight = ledger.take_off(400, &[]);
        flight.passage().count(150, &lane);
        assert_eq!(ledger.standing().bytes_done, 150);
        drop(flight);
        assert_eq!(ledger.standing().bytes_done, 0);
        let flight = ledger.take_off(400, &[]);
        // More than its bytes, with what was sent twice.
        flight.passage().count(700, &lane);
        assert_eq!(ledger.standing().bytes_done, 400);
        let backlog = ledger.backlog(100);
        // It may still be in buffers.
        assert_eq!((backlog.bytes, backlog.inactive), (1000, 3 + 6 - 1));
        flight.landed();
        ledger.file_done(0);
        ledger.file_done(500);
        let standing = ledger.standing();
        assert_eq!((standing.files_done, standing.bytes_done), (2, 900));
        assert_eq!(standing.bytes_moved, 850, "all that went over the wire");
        assert_eq!(lane.bytes(), 850, "and the lane counts the same");
    }

    #[test]
    fn what_was_there_before_is_done_and_was_not_moved() {
        let ledger = Progress::default();
        ledger.is_at(700, Some(1000));
        let standing = ledger.standing();
        assert_eq!((standing.bytes_done, standing.bytes_moved), (700, 0));
        assert!(!standing.is_open_ended);
        ledger.is_at(800, None);
        assert!(ledger.standing().is_open_ended);
    }

    #[test]
    fn each_reason_is_counted_as_what_it_is() {
        let ledger = Progress::default();
        let kinds = [
            StoreErrorKind::Network,
            StoreErrorKind::Server,
            StoreErrorKind::Busy,
            StoreErrorKind::Busy,
            StoreErrorKind::Integrity,
        ];
        for kind in kinds {
            ledger.retried(kind);
        }
        let expected = Retries {
            network: 1,
            server: 1,
            busy: 2,
            integrity: 1,
        };
        assert_eq!(ledger.standing().retries, expected);
    }
}
