//! A link that all flows on it share equally, whatever they are. Exact: what a
//! flow has been served by a moment is the same for all, so one number tells
//! when each ends. Knows nothing of what the flows carry.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// The link, in bytes and seconds; `T` tells one flow's kind from another's.
#[derive(Debug)]
pub(crate) struct SharedLink<T> {
    /// Bytes per second.
    rate: f64,
    /// Flows that never end.
    lasting: u32,
    /// What each flow that was there from the first has been served, bytes.
    served: f64,
    flows: BinaryHeap<Flow<T>>,
}

/// A flow that ends.
#[derive(Debug)]
struct Flow<T> {
    /// It ends when [`SharedLink::served`] is here, bytes.
    end: f64,
    kind: T,
}

impl<T> Ord for Flow<T> {
    /// The first to end is the greatest: what a heap has on top.
    fn cmp(&self, other: &Self) -> Ordering {
        other.end.total_cmp(&self.end)
    }
}

impl<T> PartialOrd for Flow<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Flow<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Flow<T> {}

impl<T> SharedLink<T> {
    /// A link of this rate, byte/s, and nothing on it.
    pub(crate) fn new(rate: f64) -> Self {
        Self {
            rate,
            lasting: 0,
            served: 0.0,
            flows: BinaryHeap::new(),
        }
    }

    /// So many flows never end, from now on.
    pub(crate) fn lasting(&mut self, flows: u32) {
        self.lasting = flows;
    }

    /// A flow of so many bytes begins.
    pub(crate) fn begin(&mut self, bytes: f64, kind: T) {
        let end = self.served + bytes;
        self.flows.push(Flow { end, kind });
    }

    /// How long it takes until the next flow ends if none begins, s.
    pub(crate) fn until_end(&self) -> f64 {
        let next = self.flows.peek();
        next.map_or(f64::INFINITY, |flow| {
            (flow.end - self.served).max(0.0) / self.share()
        })
    }

    /// Lets so much time pass, s; at most until a flow ends.
    pub(crate) fn pass(&mut self, seconds: f64) {
        if seconds > 0.0 {
            self.served += seconds * self.share();
        }
    }

    /// Ends the flow whose turn it is.
    pub(crate) fn end(&mut self) -> Option<T> {
        let flow = self.flows.pop()?;
        self.served = flow.end;
        Some(flow.kind)
    }

    /// What each flow gets, byte/s.
    fn share(&self) -> f64 {
        let flows = self.lasting as usize + self.flows.len();
        self.rate / flows.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_shared_equally() {
        let mut link = SharedLink::new(100.0);
        link.begin(100.0, 'a');
        link.begin(200.0, 'b');
        assert_eq!(link.until_end(), 2.0);
        link.pass(2.0);
        assert_eq!(link.end(), Some('a'));
        // 100 bytes are left of it, and half of the link.
        link.lasting(1);
        assert_eq!(link.until_end(), 2.0);
        link.lasting(0);
        link.pass(0.5);
        assert_eq!(link.until_end(), 0.5);
        link.pass(0.5);
        assert_eq!(link.end(), Some('b'));
        assert_eq!(link.until_end(), f64::INFINITY);
        assert_eq!(link.end(), None);
    }
}
