//! What is to happen, in order of time. Events of the same moment happen in the order
//! in which they were added, so that a run is the same each time.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::time::Duration;

/// Events to come.
#[derive(Debug)]
pub(crate) struct Events<E> {
    heap: BinaryHeap<Reverse<Timed<E>>>,
    added: u64,
}

#[derive(Debug)]
struct Timed<E> {
    key: (Duration, u64),
    event: E,
}

impl<E> Events<E> {
    pub(crate) fn new() -> Self {
        Self {
            heap: BinaryHeap::new(),
            added: 0,
        }
    }

    pub(crate) fn add(&mut self, at: Duration, event: E) {
        self.added += 1;
        let key = (at, self.added);
        self.heap.push(Reverse(Timed { key, event }));
    }

    /// The next one before `end`.
    pub(crate) fn next_before(&mut self, end: Duration) -> Option<(Duration, E)> {
        let Reverse(Timed { key, event }) = self.heap.pop()?;
        (key.0 < end).then_some((key.0, event))
    }
}

impl<E> Ord for Timed<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key)
    }
}

impl<E> PartialOrd for Timed<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> PartialEq for Timed<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<E> Eq for Timed<E> {}
