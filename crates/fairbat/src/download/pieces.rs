//! What one transfer has to fetch: the bytes that wait, and those that a connection has
//! taken.
//!
//! Chunks are never stored. A transfer is a set of waiting byte ranges, and a chunk is cut
//! off its front when a connection asks for one. A file of a terabyte therefore costs as
//! much memory as one of a gigabyte. Offsets ascend. Which transfer comes next is the
//! lane's business.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::ops::Range;

use crate::ranges::RangeSet;

/// Names one lease; a transfer never gives the same twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId(u64);

/// What one request is to fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// These bytes.
    Range(Range<u64>),
    /// The whole file, from the first byte: the source serves no ranges.
    Stream,
}

/// A piece of work that a connection has taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// What to report its fate under.
    pub id: LeaseId,
    /// What to fetch.
    pub piece: Piece,
}

/// What a transfer has to fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work {
    /// These bytes, in any number of chunks.
    Ranges(RangeSet),
    /// The whole file in one request that starts over when it fails; with its size in
    /// bytes, if the source said it.
    Stream(Option<u64>),
}

impl Work {
    /// What is missing of a file of `total` bytes (if known) of which `have` is there;
    /// `None` if nothing is. `ranges` says whether ranges of it can be fetched, and
    /// trusted to be of one version.
    #[must_use]
    pub fn missing(total: Option<u64>, ranges: bool, have: &RangeSet) -> Option<Self> {
        match total {
            Some(0) => None,
            Some(total) if ranges => {
                let mut missing = RangeSet::new();
                for gap in have.gaps(total) {
                    missing.insert(gap);
                }
                (!missing.is_empty()).then_some(Self::Ranges(missing))
            }
            Some(_) | None => Some(Self::Stream(total)),
        }
    }
}

/// A report that does not fit what is leased; nothing was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LeaseError {
    /// The lease has ended, or never was.
    #[error("lease {} does not exist (any more)", .0.0)]
    Unknown(LeaseId),
    /// Progress before the bytes known to be written, or beyond the lease.
    #[error("progress to byte {upto} is outside the unwritten {from}..{end} of the lease")]
    Outside {
        /// The reported end of the written bytes.
        upto: u64,
        /// End of what was written before.
        from: u64,
        /// End of the lease.
        end: u64,
    },
    /// A finish before the last byte of the lease was written.
    #[error("{0} bytes of the finished lease are not written")]
    Unfinished(u64),
}

/// The waiting and the leased bytes of one transfer.
#[derive(Debug, Clone)]
pub struct Pieces {
    waiting: Waiting,
    /// Bytes of each lease that are not known to be written. The end of a stream of
    /// unknown size is as far as offsets go.
    leases: BTreeMap<LeaseId, Range<u64>>,
    leases_given: u64,
    /// Unwritten bytes on lease; of a stream only if its size is known.
    leased: u64,
}

#[derive(Debug, Clone)]
enum Waiting {
    Ranges(RangeSet),
    Stream { size: Option<u64>, waits: bool },
}

impl Pieces {
    /// Nothing is leased yet.
    #[must_use]
    pub fn new(work: Work) -> Self {
        Self {
            waiting: match work {
                Work::Ranges(ranges) => Waiting::Ranges(ranges),
                Work::Stream(size) => Waiting::Stream { size, waits: true },
            },
            leases: BTreeMap::new(),
            leases_given: 0,
            leased: 0,
        }
    }

    /// Whether [`Self::lease`] would find something.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        match &self.waiting {
            Waiting::Ranges(ranges) => !ranges.is_empty(),
            Waiting::Stream { waits, .. } => *waits,
        }
    }

    /// Whether nothing waits and nothing is leased.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.leases.is_empty() && !self.is_waiting()
    }

    /// Leases the next chunk, of at most `chunk_len` bytes.
    pub fn lease(&mut self, chunk_len: NonZeroU64) -> Option<Lease> {
        let (piece, unwritten) = match &mut self.waiting {
            Waiting::Ranges(ranges) => {
                let range = ranges.take_first(chunk_len.get())?;
                (Piece::Range(range.clone()), range)
            }
            Waiting::Stream { size, waits } => {
                std::mem::take(waits).then_some(())?;
                (Piece::Stream, 0..size.unwrap_or(u64::MAX))
            }
        };
        let id = LeaseId(self.leases_given);
        self.leases_given += 1;
        self.leased += self.known_len(&unwritten);
        self.leases.insert(id, unwritten);
        Some(Lease { id, piece })
    }

    /// The bytes of a lease before the file offset `upto` are written. They are never
    /// leased again, except as part of a stream that starts over.
    ///
    /// # Errors
    /// [`LeaseError::Unknown`]; [`LeaseError::Outside`] when `upto` is beyond the lease
    /// or before an earlier report.
    pub fn advance(&mut self, lease: LeaseId, upto: u64) -> Result<(), LeaseError> {
        let unwritten = self.leases.get_mut(&lease);
        let unwritten = unwritten.ok_or(LeaseError::Unknown(lease))?;
        let Range { start: from, end } = *unwritten;
        if !(from..=end).contains(&upto) {
            return Err(LeaseError::Outside { upto, from, end });
        }
        unwritten.start = upto;
        self.leased -= self.known_len(&(from..upto));
        Ok(())
    }

    /// Ends a lease whose bytes are all written.
    ///
    /// # Errors
    /// [`LeaseError::Unknown`]; [`LeaseError::Unfinished`] when bytes are missing. Then
    /// it stays leased, and [`Self::fail`] gives it back.
    pub fn finish(&mut self, lease: LeaseId) -> Result<(), LeaseError> {
        let unwritten = self.leases.get(&lease).ok_or(LeaseError::Unknown(lease))?;
        match self.known_len(unwritten) {
            0 => {
                self.leases.remove(&lease);
                Ok(())
            }
            missing => Err(LeaseError::Unfinished(missing)),
        }
    }

    /// Ends a lease early: what is not written waits again; of a stream, everything.
    ///
    /// # Errors
    /// [`LeaseError::Unknown`].
    pub fn fail(&mut self, lease: LeaseId) -> Result<(), LeaseError> {
        let unwritten = self.leases.remove(&lease);
        let unwritten = unwritten.ok_or(LeaseError::Unknown(lease))?;
        self.leased -= self.known_len(&unwritten);
        match &mut self.waiting {
            Waiting::Ranges(ranges) => ranges.insert(unwritten),
            Waiting::Stream { waits, .. } => *waits = true,
        }
        Ok(())
    }

    /// How many leases of `chunk_len` the waiting work is worth: FAIRBAT's inactive
    /// chunks. Costs a step per run of adjacent bytes, not per chunk.
    #[must_use]
    pub fn inactive_chunks(&self, chunk_len: NonZeroU64) -> u64 {
        match &self.waiting {
            Waiting::Ranges(ranges) => ranges
                .iter()
                .map(|run| (run.end - run.start).div_ceil(chunk_len.get()))
                .sum(),
            Waiting::Stream { waits, .. } => u64::from(*waits),
        }
    }

    /// Bytes that wait; 0 for a stream of unknown size.
    #[must_use]
    pub fn waiting_bytes(&self) -> u64 {
        match self.waiting {
            Waiting::Ranges(ref ranges) => ranges.total(),
            Waiting::Stream { size, waits } => size.filter(|_| waits).unwrap_or(0),
        }
    }

    /// Unwritten bytes, waiting or leased, as far as they are known.
    #[must_use]
    pub fn unwritten_bytes(&self) -> u64 {
        self.waiting_bytes().saturating_add(self.leased)
    }

    /// The same; `None` for a stream of unknown size that is not finished.
    #[must_use]
    pub fn remaining(&self) -> Option<u64> {
        match self.waiting {
            Waiting::Stream { size: None, .. } if !self.is_drained() => None,
            _ => Some(self.unwritten_bytes()),
        }
    }

    /// Length of a part of this work; 0 if no end of it is known.
    fn known_len(&self, part: &Range<u64>) -> u64 {
        match self.waiting {
            Waiting::Stream { size: None, .. } => 0,
            Waiting::Ranges(_) | Waiting::Stream { .. } => part.end - part.start,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(ranges: &[Range<u64>]) -> RangeSet {
        let mut set = RangeSet::new();
        for range in ranges {
            set.insert(range.clone());
        }
        set
    }

    #[test]
    #[allow(
        clippy::single_range_in_vec_init,
        reason = "a set of one range is meant"
    )]
    fn only_what_is_missing_is_fetched() {
        let have = set(&[0..10, 50..60]);
        assert_eq!(
            Work::missing(Some(100), true, &have),
            Some(Work::Ranges(set(&[10..50, 60..100])))
        );
        assert_eq!(Work::missing(Some(60), true, &set(&[0..60])), None);
        assert_eq!(Work::missing(Some(0), false, &set(&[])), None);
    }

    #[test]
    fn without_ranges_the_whole_file_is_one_stream() {
        let stream = Work::Stream;
        assert_eq!(
            Work::missing(Some(100), false, &set(&[])),
            Some(stream(Some(100)))
        );
        assert_eq!(Work::missing(None, true, &set(&[])), Some(stream(None)));
    }
}
