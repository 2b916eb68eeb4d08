//! What a transfer has to fetch, against a model that keeps the state of every byte:
//! whatever happens in whatever order, no byte is lost, and none is fetched again once it
//! is written.

mod pieces_props {
    pub(crate) mod model;
}

use std::num::NonZeroU64;
use std::ops::Range;

use fairbat::download::pieces::{Lease, LeaseError, LeaseId, Piece, Pieces, Work};
use pieces_props::model::{Byte, Model};
use proptest::prelude::*;

#[derive(Debug, Clone, Copy)]
enum Op {
    Lease(u64),
    Advance(prop::sample::Index, u64),
    Finish(prop::sample::Index),
    Fail(prop::sample::Index),
    /// The process dies; the next one resumes from what is written.
    Crash,
}

fn op() -> impl Strategy<Value = Op> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        8 => (1_u64..20).prop_map(Op::Lease),
        6 => (index(), 0_u64..25).prop_map(|(lease, by)| Op::Advance(lease, by)),
        4 => index().prop_map(Op::Finish),
        4 => index().prop_map(Op::Fail),
        1 => Just(Op::Crash),
    ]
}

/// The pieces and the model side by side.
struct Pair {
    pieces: Pieces,
    model: Model,
    /// Leases that are out, with the bytes not yet written.
    leases: Vec<(Lease, Range<u64>)>,
}

fn non_zero(len: u64) -> NonZeroU64 {
    NonZeroU64::new(len).expect("chunk lengths start at 1")
}

impl Pair {
    fn new(stream: bool, size: usize, resumed: Range<usize>) -> Self {
        let mut bytes = vec![Byte::Pending; size];
        if !stream {
            bytes[resumed].fill(Byte::Written);
        }
        // An empty stream is still a request; the model has no byte to show for it.
        let stream = stream && size > 0;
        let model = Model { stream, bytes };
        Self {
            pieces: Pieces::new(model.work()),
            model,
            leases: Vec::new(),
        }
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Lease(chunk_len) => {
                self.lease(chunk_len);
            }
            Op::Advance(index, by) => self.with_lease(&index, |pair, at| pair.advance(at, by)),
            Op::Finish(index) => self.with_lease(&index, Self::finish),
            Op::Fail(index) => self.with_lease(&index, Self::fail),
            Op::Crash => self.crash(),
        }
    }

    fn with_lease(&mut self, index: &prop::sample::Index, act: impl FnOnce(&mut Self, usize)) {
        if !self.leases.is_empty() {
            act(self, index.index(self.leases.len()));
        }
    }

    fn lease(&mut self, chunk_len: u64) -> bool {
        let is_waiting = self.model.pending() > 0;
        assert_eq!(self.pieces.is_waiting(), is_waiting);
        let lease = self.pieces.lease(non_zero(chunk_len));
        assert_eq!(lease.is_some(), is_waiting);
        let Some(lease) = lease else { return false };
        let model = &mut self.model;
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
        let result = self.pieces.advance(lease.id, upto);
        if upto > unwritten.end {
            assert!(matches!(result, Err(LeaseError::Outside { .. })));
            return;
        }
        assert_eq!(result, Ok(()));
        if unwritten.start > 0 {
            let back = self.pieces.advance(lease.id, unwritten.start - 1);
            assert!(by == 0 || matches!(back, Err(LeaseError::Outside { .. })));
        }
        let model = &mut self.model;
        for offset in unwritten.start..upto {
            model.bytes[offset as usize] = Byte::Written;
        }
        unwritten.start = upto;
    }

    fn finish(&mut self, at: usize) {
        let (lease, unwritten) = &self.leases[at];
        let id = lease.id;
        let result = self.pieces.finish(id);
        if unwritten.is_empty() {
            assert_eq!(result, Ok(()));
            self.leases.swap_remove(at);
            self.is_unknown(id);
        } else {
            let missing = unwritten.end - unwritten.start;
            assert_eq!(result, Err(LeaseError::Unfinished(missing)));
        }
    }

    fn fail(&mut self, at: usize) {
        let (lease, unwritten) = self.leases.swap_remove(at);
        assert_eq!(self.pieces.fail(lease.id), Ok(()));
        self.is_unknown(lease.id);
        let model = &mut self.model;
        let start = if model.stream { 0 } else { unwritten.start };
        model.bytes[start as usize..unwritten.end as usize].fill(Byte::Pending);
    }

    fn is_unknown(&mut self, id: LeaseId) {
        let unknown = Err(LeaseError::Unknown(id));
        assert_eq!(self.pieces.advance(id, 0), unknown);
        assert_eq!(self.pieces.finish(id), unknown);
        assert_eq!(self.pieces.fail(id), unknown);
    }

    fn crash(&mut self) {
        self.leases.clear();
        let model = &mut self.model;
        for byte in &mut model.bytes {
            if *byte != Byte::Written || model.stream {
                *byte = Byte::Pending;
            }
        }
        self.pieces = Pieces::new(model.work());
    }

    /// Every question that the pieces answer, answered by counting.
    fn check(&self) {
        let (pending, leased) = (self.model.pending(), self.model.leased());
        assert_eq!(self.pieces.waiting_bytes(), pending);
        assert_eq!(self.pieces.unwritten_bytes(), pending + leased);
        assert_eq!(self.pieces.remaining(), Some(pending + leased));
        for chunk_len in [1, 2, 3, 7, 16, 1000] {
            let chunks = self.pieces.inactive_chunks(non_zero(chunk_len));
            assert_eq!(chunks, self.model.chunks(chunk_len));
        }
        let is_drained = pending + leased == 0 && self.leases.is_empty();
        assert_eq!(self.pieces.is_drained(), is_drained);
    }

    /// Finishes everything, by small leases some of which fail.
    fn drain(&mut self) {
        let mut turn = 0;
        while !self.leases.is_empty() || self.lease(5) {
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
    fn nothing_is_lost_and_nothing_written_is_leased_again(
        stream in prop::bool::weighted(0.2),
        size in 0_usize..40,
        start in 0_usize..40,
        len in 0_usize..20,
        ops in prop::collection::vec(op(), 1..120),
    ) {
        let mut pair = Pair::new(stream, size, start.min(size)..(start + len).min(size));
        for op in ops {
            pair.apply(op);
            pair.check();
        }
        pair.drain();
        prop_assert!(pair.pieces.is_drained());
        prop_assert!(pair.model.bytes.iter().all(|byte| *byte == Byte::Written));
    }
}

#[test]
fn a_stream_of_unknown_size_is_one_lease_that_returns_as_a_whole() {
    let mut pieces = Pieces::new(Work::Stream(None));
    assert_eq!(pieces.remaining(), None);
    assert_eq!(pieces.unwritten_bytes(), 0, "its demand is not known");
    for _ in 0..3 {
        assert_eq!(pieces.inactive_chunks(non_zero(1)), 1);
        let lease = pieces.lease(non_zero(1)).unwrap();
        assert_eq!(lease.piece, Piece::Stream);
        assert_eq!(pieces.inactive_chunks(non_zero(1)), 0);
        assert!(pieces.lease(non_zero(1)).is_none());
        pieces.advance(lease.id, 1 << 40).unwrap();
        assert!(!pieces.is_drained());
        pieces.fail(lease.id).unwrap();
    }
    let last = pieces.lease(non_zero(1)).unwrap();
    pieces.finish(last.id).unwrap();
    assert!(pieces.is_drained());
    assert_eq!(pieces.remaining(), Some(0));
}

#[test]
fn sizes_beyond_all_reason_are_counted_and_not_overflowed() {
    for work in [
        Work::Ranges(std::iter::once(0..u64::MAX).collect()),
        Work::Stream(Some(u64::MAX)),
    ] {
        let mut pieces = Pieces::new(work);
        assert_eq!(pieces.waiting_bytes(), u64::MAX);
        pieces.lease(non_zero(u64::MAX)).unwrap();
        assert_eq!(pieces.unwritten_bytes(), u64::MAX);
        assert_eq!(pieces.waiting_bytes(), 0);
    }
}
