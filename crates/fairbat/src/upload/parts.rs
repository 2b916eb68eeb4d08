//! The bytes of an upload in parts: those that wait, and those that have come. Pure.

use std::ops::Range;

use crate::ranges::RangeSet;

/// The bytes of an upload in parts.
#[derive(Debug, Default)]
pub(super) struct Parts {
    /// Those that no path has taken.
    pub(super) waiting: RangeSet,
    /// Parts that a path has taken.
    pub(super) under_way: usize,
    /// Bytes that have come.
    pub(super) done: u64,
}

impl Parts {
    /// A path takes a part of this length, if any.
    pub(super) fn take(&mut self, length: u64) -> Option<Range<u64>> {
        let part = self.waiting.take_first(length)?;
        self.under_way += 1;
        Some(part)
    }

    /// A part has come, or waits again.
    pub(super) fn settle(&mut self, part: Range<u64>, has_come: bool) {
        self.under_way -= 1;
        if has_come {
            self.done += part.end - part.start;
        } else {
            self.waiting.insert(part);
        }
    }

    pub(super) fn is_complete(&self) -> bool {
        self.waiting.is_empty() && self.under_way == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_comes_or_waits_again() {
        let mut parts = Parts::default();
        assert!(parts.is_complete() && parts.take(1).is_none());
        parts.waiting.insert(0..10);
        let (first, second) = (parts.take(4).unwrap(), parts.take(100).unwrap());
        assert_eq!((first.clone(), second.clone()), (0..4, 4..10));
        assert!(parts.take(1).is_none() && !parts.is_complete());
        parts.settle(first, false);
        parts.settle(second, true);
        assert_eq!((parts.done, parts.is_complete()), (6, false));
        let again = parts.take(100).unwrap();
        assert_eq!(again, 0..4);
        parts.settle(again, true);
        assert_eq!((parts.done, parts.is_complete()), (10, true));
    }
}
