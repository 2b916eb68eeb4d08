//! The queue against a model that keeps the state of every byte: whatever
//! happens in whatever order, no byte is lost, and none is fetched again once
//! it is written.

mod queue_props {
    pub(crate) mod model;
    mod reorder;
}

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::ops::Range;
use std::time::Duration;

use dalbe::deadline::Deadline;
use fairbat::download::queue::{Lease, LeaseId, Piece, Queue, QueueError, TransferId, Work};
use fairbat::ranges::RangeSet;
use proptest::prelude::*;
use queue_props::model::{Byte, Model};

#[derive(Debug, Clone)]
enum Op {
    Insert {
        deadline: Option<u64>,
        stream: bool,
        size: usize,
        resumed: Range<usize>,
    },
    Lease {
        chunk_len: u64,
        /// Transfers whose number's bit (modulo 8) is not set are held back.
        eligible: u8,
    },
    Advance(prop::sample::Index, u64),
    Finish(prop::sample::Index),
    Fail(prop::sample::Index),
    Remove(prop::sample::Index),
    /// Another deadline, or none, by a transfer's number (modulo 8).
    Reorder([Option<u64>; 8]),
    /// The process dies; the next one resumes from what is written.
    Crash,
}

fn op() -> impl Strategy<Value = Op> {
    let index = any::<prop::sample::Index>;
    let insert = (
        prop::option::of(0_u64..4),
        prop::bool::weighted(0.2),
        0_usize..40,
        (0_usize..40, 0_usize..20),
    );
    prop_oneof![
        3 => insert.prop_map(|(deadline, stream, size, (start, len))| Op::Insert {
            deadline,
            stream,
            size,
            resumed: start.min(size)..(start + len).min(size),
        }),
        8 => (1_u64..20, any::<u8>(), any::<bool>()).prop_map(|(chunk_len, bits, all)| Op::Lease {
            chunk_len,
            eligible: if all { u8::MAX } else { bits },
        }),
        6 => (index(), 0_u64..25).prop_map(|(lease, by)| Op::Advance(lease, by)),
        4 => index().prop_map(Op::Finish),
        4 => index().prop_map(Op::Fail),
        1 => index().prop_map(Op::Remove),
        1 => prop::array::uniform8(prop::option::of(0_u64..4)).prop_map(Op::Reorder),
        1 => Just(Op::Crash),
    ]
}

/// Queue and model side by side.
#[derive(Default)]
struct Pair {
    queue: Queue,
    model: BTreeMap<TransferId, Model>,
    /// Leases that are out, with the bytes not yet written.
    leases: Vec<(Lease, Range<u64>)>,
    inserted: u64,
}

fn deadline(by: u64) -> Deadline {
    Deadline::new(Duration::ZERO, Duration::from_secs(by))
}

fn non_zero(len: u64) -> NonZeroU64 {
    NonZeroU64::new(len).expect("chunk lengths start at 1")
}

impl Pair {
    fn apply(&mut self, op: Op) {
        match op {
            Op::Insert {
                deadline,
                stream,
                size,
                resumed,
            } => self.insert(deadline, stream, size, resumed),
            Op::Lease {
                chunk_len,
                eligible,
            } => {
                self.lease(chunk_len, |id| eligible >> (id.0 % 8) & 1 == 1);
            }
            Op::Advance(index, by) => self.with_lease(&index, |pair, at| pair.advance(at, by)),
            Op::Finish(index) => self.with_lease(&index, Self::finish),
            Op::Fail(index) => self.with_lease(&index, Self::fail),
            Op::Remove(index) => {
                let ids: Vec<_> = self.model.keys().copied().collect();
                if !ids.is_empty() {
                    self.remove(*index.get(&ids));
                }
            }
            Op::Reorder(deadlines) => self.reorder(|id| deadlines[(id.0 % 8) as usize]),
            Op::Crash => self.crash(),
        }
    }

    fn with_lease(&mut self, index: &prop::sample::Index, act: impl FnOnce(&mut Self, usize)) {
        if !self.leases.is_empty() {
            act(self, index.index(self.leases.len()));
        }
    }

    fn insert(&mut self, by: Option<u64>, stream: bool, size: usize, resumed: Range<usize>) {
        let id = TransferId(self.inserted);
        self.inserted += 1;
        let mut bytes = vec![Byte::Pending; size];
        if !stream {
            bytes[resumed].fill(Byte::Written);
        }
        // An empty stream is still a request; the model has no byte to show
        // for it.
        let stream = stream && size > 0;
        let model = Model {
            deadline: by,
            stream,
            bytes,
        };
        self.queue
            .insert(id, by.map(deadline), model.work())
            .expect("a new transfer");
        let again = self.queue.insert(id, None, Work::Stream(None));
        assert_eq!(again, Err(QueueError::Duplicate(id)));
        self.model.insert(id, model);
    }

    /// The transfers in the order of the queue.
    fn order(&self) -> Vec<TransferId> {
        let mut ids: Vec<_> = self.model.keys().copied().collect();
        ids.sort_by_key(|id| {
            let by = self.model[id].deadline;
            (by.is_none(), by, *id)
        });
        ids
    }

    fn lease(&mut self, chunk_len: u64, eligible: impl Fn(TransferId) -> bool) -> bool {
        let expected = self
            .order()
            .into_iter()
            .find(|id| eligible(*id) && self.model[id].pending() > 0);
        let lease = self.queue.lease(non_zero(chunk_len), &eligible);
        assert_eq!(
            lease.as_ref().map(|lease| lease.transfer),
            expected,
            "order"
        );
        let Some(lease) = lease else { return false };
        let model = self.model.get_mut(&lease.transfer).expect("it was chosen");
        let range = match &lease.piece {
            Piece::Stream => {
                assert!(model.stream);
                0..model.bytes.len() as u64
            }
            Piece::Range(range) => {
                assert!(!model.stream);
                assert!(range.end - range.start <= chunk_len);
                let first = model.bytes.iter().position(|byte| *byte == Byte::Pending);
                assert_eq!(first.map(|at| at as u64), Some(range.start), "ascending");
                range.clone()
            }
        };
        for offset in range.clone() {
            let byte = &mut model.bytes[offset as usize];
            assert_eq!(
                *byte,
                Byte::Pending,
                "byte {offset} is leased twice or again"
            );
            *byte = Byte::Leased(lease.id);
        }
        self.leases.push((lease, range));
        true
    }

    fn advance(&mut self, at: usize, by: u64) {
        let (lease, unwritten) = &mut self.leases[at];
        let upto = unwritten.start + by;
        let result = self.queue.advance(lease.id, upto);
        if upto > unwritten.end {
            assert!(matches!(result, Err(QueueError::Outside { .. })));
            return;
        }
        assert_eq!(result, Ok(()));
        if unwritten.start > 0 {
            let back = self.queue.advance(lease.id, unwritten.start - 1);
            assert!(by == 0 || matches!(back, Err(QueueError::Outside { .. })));
        }
        let model = self.model.get_mut(&lease.transfer).expect("has a lease");
        for offset in unwritten.start..upto {
            model.bytes[offset as usize] = Byte::Written;
        }
        unwritten.start = upto;
    }

    fn finish(&mut self, at: usize) {
        let (lease, unwritten) = &self.leases[at];
        let id = lease.id;
        let result = self.queue.finish(id);
        if unwritten.is_empty() {
            assert_eq!(result, Ok(()));
            self.leases.swap_remove(at);
            self.is_unknown(id);
        } else {
            let missing = unwritten.end - unwritten.start;
            assert_eq!(result, Err(QueueError::Unfinished(missing)));
        }
    }

    fn fail(&mut self, at: usize) {
        let (lease, unwritten) = self.leases.swap_remove(at);
        assert_eq!(self.queue.fail(lease.id), Ok(()));
        self.is_unknown(lease.id);
        let model = self.model.get_mut(&lease.transfer).expect("has a lease");
        let start = if model.stream { 0 } else { unwritten.start };
        model.bytes[start as usize..unwritten.end as usize].fill(Byte::Pending);
    }

    fn is_unknown(&mut self, id: LeaseId) {
        let unknown = Err(QueueError::UnknownLease(id));
        assert_eq!(self.queue.advance(id, 0), unknown);
        assert_eq!(self.queue.finish(id), unknown);
        assert_eq!(self.queue.fail(id), unknown);
    }

    fn remove(&mut self, id: TransferId) {
        self.model.remove(&id);
        let mut expected = Vec::new();
        self.leases.retain(|(lease, _)| {
            let gone = lease.transfer == id;
            expected.extend(gone.then_some(lease.id));
            !gone
        });
        expected.sort_unstable();
        assert_eq!(self.queue.remove(id), expected);
        for lease in expected {
            self.is_unknown(lease);
        }
    }

    fn reorder(&mut self, by: impl Fn(TransferId) -> Option<u64>) {
        self.queue.reorder(|id| by(id).map(deadline));
        for (id, model) in &mut self.model {
            model.deadline = by(*id);
        }
    }

    fn crash(&mut self) {
        self.queue = Queue::new();
        self.leases.clear();
        for (id, model) in &mut self.model {
            for byte in &mut model.bytes {
                if *byte != Byte::Written || model.stream {
                    *byte = Byte::Pending;
                }
            }
            self.queue
                .insert(*id, model.deadline.map(deadline), model.work())
                .expect("a new queue");
        }
    }

    /// Every question the queue answers, answered by counting.
    fn check(&self) {
        let sum = |of: &dyn Fn(&Model) -> u64| self.model.values().map(of).sum::<u64>();
        assert_eq!(self.queue.pending_bytes(), sum(&Model::pending));
        assert_eq!(self.queue.leased_bytes(), sum(&Model::leased));
        for chunk_len in [1, 2, 3, 7, 16, 1000] {
            let chunks = self.queue.inactive_chunks(non_zero(chunk_len));
            assert_eq!(chunks, sum(&|model| model.chunks(chunk_len)));
        }
        for (id, model) in &self.model {
            let remaining = model.pending() + model.leased();
            assert_eq!(self.queue.remaining(*id), Some(remaining));
            let leased = self.leases.iter().any(|(lease, _)| lease.transfer == *id);
            assert_eq!(self.queue.is_drained(*id), remaining == 0 && !leased);
        }
        let due = self.order().into_iter().filter_map(|id| {
            let model = &self.model[&id];
            Some((deadline(model.deadline?), model.pending() + model.leased()))
        });
        assert!(self.queue.due().eq(due));
    }

    /// Finishes everything, by small leases some of which fail.
    fn drain(&mut self) {
        let mut turn = 0;
        while !self.leases.is_empty() || self.lease(5, |_| true) {
            let unwritten = &self.leases[0].1;
            turn += 1;
            if turn % 7 == 0 {
                self.fail(0);
            } else {
                self.advance(0, unwritten.end - unwritten.start);
                self.finish(0);
            }
            self.check();
        }
    }
}

proptest! {
    #[test]
    fn nothing_is_lost_and_nothing_written_is_leased_again(ops in prop::collection::vec(op(), 1..120)) {
        let mut pair = Pair::default();
        for op in ops {
            pair.apply(op);
            pair.check();
        }
        pair.drain();
        for (id, model) in &pair.model {
            prop_assert!(pair.queue.is_drained(*id));
            prop_assert!(model.bytes.iter().all(|byte| *byte == Byte::Written));
        }
    }
}

fn lease_all(queue: &mut Queue, chunk_len: u64) -> Vec<Lease> {
    std::iter::from_fn(|| queue.lease(non_zero(chunk_len), |_| true)).collect()
}

#[test]
fn deadlines_go_first_and_the_earliest_before_the_later() {
    let mut queue = Queue::new();
    for (id, by) in [
        (0, None),
        (1, Some(90)),
        (2, Some(30)),
        (3, None),
        (4, Some(90)),
    ] {
        let work = Work::Ranges(RangeSet::from(0..2));
        queue
            .insert(TransferId(id), by.map(deadline), work)
            .unwrap();
    }
    let order: Vec<_> = lease_all(&mut queue, 1)
        .into_iter()
        .map(|lease| lease.transfer.0)
        .collect();
    assert_eq!(order, [2, 2, 1, 1, 4, 4, 0, 0, 3, 3]);
}

#[test]
fn a_stream_of_unknown_size_is_one_lease_that_returns_as_a_whole() {
    let mut queue = Queue::new();
    let id = TransferId(7);
    queue
        .insert(id, Some(deadline(60)), Work::Stream(None))
        .unwrap();
    assert_eq!(queue.remaining(id), None);
    assert_eq!(queue.due().count(), 0, "its demand is not known");
    for _ in 0..3 {
        assert_eq!(queue.inactive_chunks(non_zero(1)), 1);
        let lease = queue.lease(non_zero(1), |_| true).unwrap();
        assert_eq!(lease.piece, Piece::Stream);
        assert_eq!(queue.inactive_chunks(non_zero(1)), 0);
        assert!(queue.lease(non_zero(1), |_| true).is_none());
        queue.advance(lease.id, 1 << 40).unwrap();
        assert!(!queue.is_drained(id));
        queue.fail(lease.id).unwrap();
    }
    let last = queue.lease(non_zero(1), |_| true).unwrap();
    queue.finish(last.id).unwrap();
    assert!(queue.is_drained(id));
    assert_eq!(queue.remaining(id), Some(0));
}

#[test]
fn sizes_beyond_all_reason_are_counted_and_not_overflowed() {
    let mut queue = Queue::new();
    for id in 0..3 {
        let work = Work::Ranges(RangeSet::from(0..u64::MAX));
        queue.insert(TransferId(id), None, work).unwrap();
    }
    let streams = Work::Stream(Some(u64::MAX));
    queue
        .insert(TransferId(3), Some(deadline(1)), streams)
        .unwrap();
    assert_eq!(queue.pending_bytes(), u64::MAX);
    assert_eq!(queue.inactive_chunks(non_zero(1)), u64::MAX);
    for _ in 0..3 {
        queue.lease(non_zero(u64::MAX), |_| true).unwrap();
    }
    assert_eq!(queue.leased_bytes(), u64::MAX);
}
