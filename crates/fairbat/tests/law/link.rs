//! A bottleneck that all its flows share equally (processor sharing), the
//! fluid image of TCP flows of equal round-trip time on one link.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A link with some long-lived flows, which never end, and any number of
/// finite ones, each with a label.
///
/// Because all flows get the same, each ends when the bytes served *per
/// flow* reach what they were at its start plus its size: one number to
/// advance, and a heap to find the next end in O(log n).
#[derive(Debug)]
pub(crate) struct Link<L> {
    /// byte/s
    capacity: f64,
    long_lived: usize,
    /// Bytes that a flow present from the beginning would have got.
    served_per_flow: f64,
    /// Served-per-flow at which each flow ends (as the bits of a positive
    /// f64, which sort like the number), and its label.
    ends: BinaryHeap<Reverse<(u64, L)>>,
}

impl<L: Ord> Link<L> {
    pub(crate) fn new(capacity: f64, long_lived: usize) -> Self {
        Self {
            capacity,
            long_lived,
            served_per_flow: 0.0,
            ends: BinaryHeap::new(),
        }
    }

    /// Starts a flow of this many bytes.
    pub(crate) fn start(&mut self, bytes: f64, label: L) {
        let end = self.served_per_flow + bytes;
        self.ends.push(Reverse((end.to_bits(), label)));
    }

    /// Seconds until the next flow ends, if no other starts before.
    pub(crate) fn next_end(&self) -> f64 {
        self.ends.peek().map_or(f64::INFINITY, |Reverse((end, _))| {
            let left = f64::from_bits(*end) - self.served_per_flow;
            left.max(0.0) * self.flows() / self.capacity
        })
    }

    /// Lets time pass, no more than until the next end.
    pub(crate) fn advance(&mut self, seconds: f64) {
        if self.flows() > 0.0 {
            self.served_per_flow += seconds * self.capacity / self.flows();
        }
    }

    /// Ends the flow that [`Self::next_end`] announced.
    pub(crate) fn end_next(&mut self) -> Option<L> {
        let Reverse((end, label)) = self.ends.pop()?;
        self.served_per_flow = f64::from_bits(end);
        Some(label)
    }

    fn flows(&self) -> f64 {
        (self.long_lived + self.ends.len()) as f64
    }
}
