//! The queue of inactive chunks of one lane (FAIRBAT, section III: chunks
//! wait inactive at the edge until they are admitted).
//!
//! Chunks are never kept: a transfer is a set of pending byte ranges, and a
//! chunk is cut off its front when a connection asks for one. A file of a
//! terabyte therefore costs as much memory as one of a gigabyte. Transfers
//! with a deadline go first, the earliest deadline first; then the others,
//! first come first served; within a transfer offsets ascend.
//!
//! The queue knows nothing of connections, hosts, time or files: the caller
//! says which transfers are eligible, how long a chunk is, and what became of
//! it.

use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroU64;
use std::ops::Range;

use dalbe::deadline::Deadline;

use crate::ranges::RangeSet;

/// Number of a transfer within one run, given in the order of arrival: first
/// come first served is by this number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransferId(pub u64);

/// Names one lease; never given twice by the same queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId(u64);

/// What one request is to fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// These bytes.
    Range(Range<u64>),
    /// All there is, from the first byte: the source serves no ranges.
    Stream,
}

/// A piece of work that a connection has taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// What to report its fate under.
    pub id: LeaseId,
    /// The transfer it belongs to.
    pub transfer: TransferId,
    /// What to fetch.
    pub piece: Piece,
}

/// What a transfer has to fetch when it enters the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work {
    /// These bytes, in any number of chunks.
    Ranges(RangeSet),
    /// Everything in one request that starts over when it fails, of this many
    /// bytes if the source said so.
    Stream(Option<u64>),
}

/// A report that does not fit the queue's books; nothing was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QueueError {
    /// The transfer is in the queue already.
    #[error("transfer {} is queued already", .0.0)]
    Duplicate(TransferId),
    /// No such lease: finished, failed, or its transfer was removed.
    #[error("lease {} does not exist (any more)", .0.0)]
    UnknownLease(LeaseId),
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

/// The inactive and the leased work of one lane.
#[derive(Debug, Clone, Default)]
pub struct Queue {
    transfers: BTreeMap<Rank, Transfer>,
    ranks: HashMap<TransferId, Rank>,
    leases: BTreeMap<LeaseId, Active>,
    leases_given: u64,
}

/// Place of a transfer in the queue: by deadline if it has one, then by
/// arrival.
type Rank = (Due, TransferId);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    By(std::time::Duration),
    Never,
}

impl Due {
    fn of(deadline: Option<Deadline>) -> Self {
        deadline.map_or(Self::Never, |deadline| Self::By(deadline.by()))
    }
}

#[derive(Debug, Clone)]
struct Transfer {
    deadline: Option<Deadline>,
    pending: Pending,
    /// Unwritten bytes on lease; of a stream, only if its size is known.
    leased: u64,
    leases: usize,
}

#[derive(Debug, Clone)]
enum Pending {
    Ranges(RangeSet),
    Stream { size: Option<u64>, waiting: bool },
}

/// A lease from the queue's side.
#[derive(Debug, Clone)]
struct Active {
    rank: Rank,
    /// Bytes not known to be written; the end of a stream of unknown size is
    /// as far as offsets go.
    unwritten: Range<u64>,
}

impl Queue {
    /// An empty queue.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Enters a transfer.
    ///
    /// # Errors
    /// [`QueueError::Duplicate`] when it is there already.
    pub fn insert(
        &mut self,
        transfer: TransferId,
        deadline: Option<Deadline>,
        work: Work,
    ) -> Result<(), QueueError> {
        if self.ranks.contains_key(&transfer) {
            return Err(QueueError::Duplicate(transfer));
        }
        let rank = (Due::of(deadline), transfer);
        let pending = match work {
            Work::Ranges(pending) => Pending::Ranges(pending),
            Work::Stream(size) => Pending::Stream {
                size,
                waiting: true,
            },
        };
        self.ranks.insert(transfer, rank);
        self.transfers.insert(
            rank,
            Transfer {
                deadline,
                pending,
                leased: 0,
                leases: 0,
            },
        );
        Ok(())
    }

    /// Takes a transfer out, with all its work; returns its leases, which
    /// from now on do not exist.
    pub fn remove(&mut self, transfer: TransferId) -> Vec<LeaseId> {
        let Some(rank) = self.ranks.remove(&transfer) else {
            return Vec::new();
        };
        self.transfers.remove(&rank);
        let (gone, kept) = std::mem::take(&mut self.leases)
            .into_iter()
            .partition::<BTreeMap<_, _>, _>(|(_, active)| active.rank == rank);
        self.leases = kept;
        gone.into_keys().collect()
    }

    /// Gives every transfer another deadline, or none.
    pub fn reorder(&mut self, deadline_of: impl Fn(TransferId) -> Option<Deadline>) {
        let rank = |id| (Due::of(deadline_of(id)), id);
        for active in self.leases.values_mut() {
            active.rank = rank(active.rank.1);
        }
        for (id, old) in &mut self.ranks {
            *old = rank(*id);
        }
        self.transfers = std::mem::take(&mut self.transfers)
            .into_iter()
            .map(|((_, id), transfer)| {
                let deadline = deadline_of(id);
                (
                    rank(id),
                    Transfer {
                        deadline,
                        ..transfer
                    },
                )
            })
            .collect();
    }

    /// Leases the next chunk, of at most `chunk_len` bytes, of the first
    /// transfer in the queue's order that has work waiting and is `eligible`.
    pub fn lease(
        &mut self,
        chunk_len: NonZeroU64,
        mut eligible: impl FnMut(TransferId) -> bool,
    ) -> Option<Lease> {
        let (&rank, transfer) = self
            .transfers
            .iter_mut()
            .find(|((_, id), transfer)| transfer.pending.is_waiting() && eligible(*id))?;
        let (piece, unwritten) = transfer.pending.take(chunk_len)?;
        let id = LeaseId(self.leases_given);
        self.leases_given += 1;
        transfer.leases += 1;
        transfer.leased += transfer.pending.known_len(&unwritten);
        self.leases.insert(id, Active { rank, unwritten });
        Some(Lease {
            id,
            transfer: rank.1,
            piece,
        })
    }

    /// Whether [`Self::lease`] would find something.
    #[must_use]
    pub fn has_waiting(&self, mut eligible: impl FnMut(TransferId) -> bool) -> bool {
        self.transfers
            .iter()
            .any(|((_, id), transfer)| transfer.pending.is_waiting() && eligible(*id))
    }

    /// Notes that the bytes of a lease before the file offset `upto` are
    /// written: they are never leased again (except as part of a stream that
    /// starts over).
    ///
    /// # Errors
    /// [`QueueError::UnknownLease`]; [`QueueError::Outside`] when `upto` is
    /// beyond the lease or before an earlier report.
    pub fn advance(&mut self, lease: LeaseId, upto: u64) -> Result<(), QueueError> {
        let unknown = QueueError::UnknownLease(lease);
        let active = self.leases.get_mut(&lease).ok_or(unknown)?;
        let transfer = self.transfers.get_mut(&active.rank).ok_or(unknown)?;
        let Range { start: from, end } = active.unwritten;
        if !(from..=end).contains(&upto) {
            return Err(QueueError::Outside { upto, from, end });
        }
        active.unwritten.start = upto;
        transfer.leased -= transfer.pending.known_len(&(from..upto));
        Ok(())
    }

    /// Ends a lease whose bytes are all written.
    ///
    /// # Errors
    /// [`QueueError::UnknownLease`]; [`QueueError::Unfinished`] when bytes
    /// are missing (it stays leased; [`Self::fail`] gives it back).
    pub fn finish(&mut self, lease: LeaseId) -> Result<(), QueueError> {
        let unknown = QueueError::UnknownLease(lease);
        let active = self.leases.get(&lease).ok_or(unknown)?;
        let transfer = self.transfers.get_mut(&active.rank).ok_or(unknown)?;
        match transfer.pending.known_len(&active.unwritten) {
            0 => {
                transfer.leases -= 1;
                self.leases.remove(&lease);
                Ok(())
            }
            missing => Err(QueueError::Unfinished(missing)),
        }
    }

    /// Ends a lease early: what is not written waits again; of a stream,
    /// everything.
    ///
    /// # Errors
    /// [`QueueError::UnknownLease`].
    pub fn fail(&mut self, lease: LeaseId) -> Result<(), QueueError> {
        let unknown = QueueError::UnknownLease(lease);
        let active = self.leases.remove(&lease).ok_or(unknown)?;
        let transfer = self.transfers.get_mut(&active.rank).ok_or(unknown)?;
        transfer.leases -= 1;
        transfer.leased -= transfer.pending.known_len(&active.unwritten);
        match &mut transfer.pending {
            Pending::Ranges(pending) => pending.insert(active.unwritten),
            Pending::Stream { waiting, .. } => *waiting = true,
        }
        Ok(())
    }

    /// FAIRBAT's n under immediate release: how many leases of `chunk_len`
    /// the waiting work is worth. Costs a step per transfer and run, not per
    /// chunk.
    #[must_use]
    pub fn inactive_chunks(&self, chunk_len: NonZeroU64) -> u64 {
        self.sum(|transfer| transfer.pending.chunks(chunk_len))
    }

    /// Bytes waiting in all transfers; streams of unknown size count none.
    #[must_use]
    pub fn pending_bytes(&self) -> u64 {
        self.sum(|transfer| transfer.pending.bytes())
    }

    /// Unwritten bytes on lease in all transfers; streams of unknown size
    /// count none.
    #[must_use]
    pub fn leased_bytes(&self) -> u64 {
        self.sum(|transfer| transfer.leased)
    }

    /// Unwritten bytes of a transfer, waiting or on lease; `None` for a
    /// stream of unknown size that is not finished, and for a transfer that
    /// is not in the queue.
    #[must_use]
    pub fn remaining(&self, transfer: TransferId) -> Option<u64> {
        self.transfers
            .get(self.ranks.get(&transfer)?)
            .and_then(Transfer::remaining)
    }

    /// Whether nothing of a transfer is waiting or on lease; so also for a
    /// transfer that is not in the queue.
    #[must_use]
    pub fn is_drained(&self, transfer: TransferId) -> bool {
        self.ranks
            .get(&transfer)
            .and_then(|rank| self.transfers.get(rank))
            .is_none_or(Transfer::is_drained)
    }

    /// Deadline and unwritten bytes of each transfer that has a deadline and
    /// a known size, the earliest deadline first: what
    /// [`Demand::of`](dalbe::deadline::Demand::of) takes.
    pub fn due(&self) -> impl Iterator<Item = (Deadline, u64)> {
        self.transfers
            .values()
            .map_while(|transfer| Some((transfer.deadline?, transfer.remaining())))
            .filter_map(|(deadline, remaining)| Some((deadline, remaining?)))
    }

    /// Sum over all transfers. Sizes are what servers claim: the sum saturates.
    fn sum(&self, of: impl Fn(&Transfer) -> u64) -> u64 {
        self.transfers
            .values()
            .fold(0, |sum: u64, transfer| sum.saturating_add(of(transfer)))
    }
}

impl Transfer {
    fn remaining(&self) -> Option<u64> {
        match self.pending {
            Pending::Stream { size: None, .. } if !self.is_drained() => None,
            _ => Some(self.pending.bytes() + self.leased),
        }
    }

    fn is_drained(&self) -> bool {
        self.leases == 0 && !self.pending.is_waiting()
    }
}

impl Pending {
    fn is_waiting(&self) -> bool {
        match self {
            Self::Ranges(pending) => !pending.is_empty(),
            Self::Stream { waiting, .. } => *waiting,
        }
    }

    /// Cuts the next piece off; with the bytes it stands for.
    fn take(&mut self, chunk_len: NonZeroU64) -> Option<(Piece, Range<u64>)> {
        match self {
            Self::Ranges(pending) => {
                let range = pending.take_first(chunk_len.get())?;
                Some((Piece::Range(range.clone()), range))
            }
            Self::Stream { size, waiting } => {
                *waiting = false;
                Some((Piece::Stream, 0..size.unwrap_or(u64::MAX)))
            }
        }
    }

    fn chunks(&self, chunk_len: NonZeroU64) -> u64 {
        match self {
            Self::Ranges(pending) => pending
                .iter()
                .map(|run| (run.end - run.start).div_ceil(chunk_len.get()))
                .sum(),
            Self::Stream { waiting, .. } => u64::from(*waiting),
        }
    }

    fn bytes(&self) -> u64 {
        match *self {
            Self::Ranges(ref pending) => pending.total(),
            Self::Stream { size, waiting } => size.filter(|_| waiting).unwrap_or(0),
        }
    }

    /// Length of a part of this work; 0 if no end of it is known.
    fn known_len(&self, part: &Range<u64>) -> u64 {
        match self {
            Self::Stream { size: None, .. } => 0,
            Self::Ranges(_) | Self::Stream { .. } => part.end - part.start,
        }
    }
}
