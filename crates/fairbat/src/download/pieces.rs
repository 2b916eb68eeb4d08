//! What one transfer has to fetch: the bytes that wait, and those that a connection has
//! taken.
//!
//! Chunks are never stored. A transfer is a set of waiting byte ranges, and a chunk is cut
//! off its front when a connection asks for one. A file of a terabyte therefore costs as
//! much memory as one of a gigabyte. Offsets ascend. Which transfer comes next is the
//! lane's business.
//!
//! `ChunkSizer` says how long the next chunk is. A chunk is the unit in which the limit
//! on connections acts, because a running one is not interrupted for it. It lasts a few
//! seconds, so that the limit acts soon, yet so long that the silence between two requests
//! of a connection (one round trip and the server's thinking time) stays under one per
//! cent of the time.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::ops::Range;
use std::time::Duration;

use crate::ranges::RangeSet;

#[cfg(test)]
mod tests;

/// A connection that yields keeps a lease of which no more than this is left, bytes: another
/// one needs a round trip to ask for it.
pub(crate) const MIN_RELIEVED: u64 = 16 * 1024;

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
                let missing: RangeSet = have.gaps(total).collect();
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

    /// Bytes of a lease that are not written yet.
    #[must_use]
    pub fn left_of(&self, lease: LeaseId) -> u64 {
        let range = self.leases.get(&lease);
        range.map_or(0, |range| range.end - range.start)
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
        Some(self.add_lease(piece, unwritten))
    }

    /// Leases the waiting bytes at the beginning of `range`, up to the first that does not wait;
    /// `None` if its first byte does not wait.
    pub fn lease_at(&mut self, range: Range<u64>) -> Option<Lease> {
        let Waiting::Ranges(ranges) = &mut self.waiting else {
            return None;
        };
        let run = ranges.iter().find(|run| run.contains(&range.start))?;
        let taken = range.start..range.end.min(run.end);
        ranges.remove(taken.clone());
        Some(self.add_lease(Piece::Range(taken.clone()), taken))
    }

    /// These bytes, which had been written, wait again.
    pub fn give_back(&mut self, range: Range<u64>) {
        if let Waiting::Ranges(ranges) = &mut self.waiting {
            ranges.insert(range);
        }
    }

    fn add_lease(&mut self, piece: Piece, unwritten: Range<u64>) -> Lease {
        let id = LeaseId(self.leases_given);
        self.leases_given += 1;
        self.leased += self.known_len(&unwritten);
        self.leases.insert(id, unwritten);
        Lease { id, piece }
    }

    /// Where the next chunk begins.
    #[must_use]
    pub fn next_offset(&self) -> Option<u64> {
        match &self.waiting {
            Waiting::Ranges(ranges) => Some(ranges.first()?.start),
            Waiting::Stream { waits, .. } => waits.then_some(0),
        }
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

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Length of the first chunk, when no rate is known, bytes: about a second at 10 Mbit/s, the
/// paper's link.
const FIRST_LENGTH: u64 = MIB;
/// Shortest chunk, bytes: below it request headers and round trips outweigh data.
const MIN_LENGTH: u64 = 256 * KIB;
/// Longest natural length, bytes: bounds what one lease holds of a transfer. A lease of a
/// connection that is alone and not pressed is several times as long.
const MAX_LENGTH: u64 = 1 << 30;
/// Lengths are multiples of this, bytes, so that writes stay page-aligned.
const MULTIPLE: u64 = 64 * KIB;
/// Largest step up after one finished chunk: the first rate may be that of a burst.
const MAX_GROWTH: u64 = 4;
/// Shortest time that a chunk should last, s.
const MIN_DURATION: f64 = 4.0;
/// A chunk lasts at least this many times the gap before its first byte, which is then
/// under 1 % of the time.
const GAPS_PER_CHUNK: f64 = 100.0;
/// Time constant of the mean rate, s: two chunks. The mean is over time, not over chunks,
/// because servers let the first bytes of a response pass at full speed: a short chunk says
/// little, however fast it was.
const MEMORY: f64 = 2.0 * MIN_DURATION;
/// Weight of a chunk in the moving average of the gap.
const GAP_WEIGHT: f64 = 0.5;
/// Shortest duration that is believed, s: below it clocks measure themselves.
const MIN_TIME: f64 = 1e-6;

/// A finished chunk, as it was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FinishedChunk {
    /// Bytes it brought.
    pub bytes: u64,
    /// From the request to the last byte.
    pub duration: Duration,
    /// From the request to the first byte; a part of `duration`.
    pub gap: Duration,
}

impl FinishedChunk {
    /// That of a request that brought nothing.
    pub(crate) const NOTHING: Self = Self {
        bytes: 0,
        duration: Duration::ZERO,
        gap: Duration::ZERO,
    };
}

/// Chunk length from the rate and the request gap of single flows.
#[derive(Debug, Clone)]
pub(crate) struct ChunkSizer {
    fixed: Option<NonZeroU64>,
    /// Length the rate asks for, bytes.
    length: u64,
    flow: Option<Flow>,
}

/// Moving averages over finished chunks.
#[derive(Debug, Clone, Copy)]
struct Flow {
    /// Bytes of the remembered time.
    bytes: f64,
    /// The remembered time, without gaps, s; above 0.
    time: f64,
    /// s
    gap: f64,
}

impl ChunkSizer {
    /// Chunks that follow the rate, or have this fixed length in bytes.
    #[must_use]
    pub(crate) fn new(fixed: Option<NonZeroU64>) -> Self {
        Self {
            fixed,
            length: FIRST_LENGTH,
            flow: None,
        }
    }

    /// The length the user wants, bytes.
    #[must_use]
    pub(crate) fn fixed(&self) -> Option<NonZeroU64> {
        self.fixed
    }

    /// Length that the rate asks for, also where a fixed one overrides it, bytes: 256 KiB to
    /// 1 GiB in multiples of 64 KiB. It is the unit of a shortfall, so that FAIRBAT's gains
    /// mean the same whatever pieces the user cuts files into.
    #[must_use]
    pub(crate) fn natural_length(&self) -> NonZeroU64 {
        NonZeroU64::new(self.length).unwrap_or(NonZeroU64::MIN)
    }

    /// The mean rate of the flow while bytes came, byte/s, if a chunk has ended.
    #[must_use]
    pub(crate) fn rate(&self) -> Option<f64> {
        self.flow.map(|flow| flow.bytes / flow.time)
    }

    /// Learns from a finished chunk.
    pub(crate) fn finished(&mut self, chunk: FinishedChunk) {
        if chunk.bytes == 0 {
            return;
        }
        let gap = chunk.gap.min(chunk.duration).as_secs_f64();
        let body = chunk.duration.as_secs_f64() - gap;
        // A body that came with its first byte says nothing without the gap.
        let time = if body > MIN_TIME { body } else { body + gap };
        let time = time.max(MIN_TIME);
        let kept = (-time / MEMORY).exp();
        let old = self.flow.unwrap_or(Flow {
            bytes: 0.0,
            time: 0.0,
            gap,
        });
        let flow = Flow {
            bytes: old.bytes * kept + chunk.bytes as f64,
            time: old.time * kept + time,
            gap: old.gap + GAP_WEIGHT * (gap - old.gap),
        };
        self.flow = Some(flow);
        let wanted = flow.bytes / flow.time * (flow.gap * GAPS_PER_CHUNK).max(MIN_DURATION);
        // The cast saturates; the value is positive and finite.
        let bounded = (wanted as u64)
            .min(self.length.saturating_mul(MAX_GROWTH))
            .clamp(MIN_LENGTH, MAX_LENGTH);
        self.length = bounded / MULTIPLE * MULTIPLE;
    }
}
