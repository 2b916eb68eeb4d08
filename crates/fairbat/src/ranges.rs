//! Sets of bytes of one file, kept as ranges: bytes that are written, or still to fetch. A
//! set costs memory per run of adjacent bytes, never per byte or per chunk.

use std::collections::BTreeMap;
use std::ops::Range;

/// A set of byte offsets, kept as sorted half-open ranges that do not touch.
///
/// Empty and inverted ranges are allowed as arguments and mean no bytes.
/// Changes cost O(log n) for n runs, plus one step per run they swallow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RangeSet {
    /// Start of each run to its end.
    runs: BTreeMap<u64, u64>,
    /// Sum of the lengths of the runs.
    total: u64,
}

impl RangeSet {
    /// The empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds these bytes; those that were in the set already stay once.
    pub fn insert(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let (mut start, mut end) = (range.start, range.end);
        if let Some((run_start, run_end)) = self.run_from_at_most(start)
            && run_end >= start
        {
            start = run_start;
            end = end.max(run_end);
            self.cut(run_start);
        }
        // Runs that begin inside the new one, or right at its end.
        while let Some((&run_start, &run_end)) = self.runs.range(start..=end).next() {
            end = end.max(run_end);
            self.cut(run_start);
        }
        self.put(start, end);
    }

    /// Takes these bytes out, as far as they are in the set.
    pub fn remove(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        if let Some((run_start, run_end)) = self.run_from_at_most(range.start)
            && run_end > range.start
        {
            self.cut(run_start);
            self.put(run_start, range.start);
            self.put(range.end, run_end);
        }
        while let Some((&run_start, &run_end)) = self.runs.range(range.clone()).next() {
            self.cut(run_start);
            self.put(range.end, run_end);
        }
    }

    /// Takes up to `len` bytes off the front of the lowest run and returns
    /// them; `None` when there is nothing to take.
    pub fn take_first(&mut self, len: u64) -> Option<Range<u64>> {
        let Range { start, end } = self.first()?;
        let middle = start.saturating_add(len).min(end);
        if middle == start {
            return None;
        }
        self.cut(start);
        self.put(middle, end);
        Some(start..middle)
    }

    /// Whether every byte of `range` is in the set.
    #[must_use]
    pub fn contains_range(&self, range: &Range<u64>) -> bool {
        range.is_empty()
            || self
                .run_from_at_most(range.start)
                .is_some_and(|(_, end)| end >= range.end)
    }

    /// Number of bytes in the set.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Whether no byte is in the set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Number of runs.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.runs.len()
    }

    /// The lowest run.
    #[must_use]
    pub fn first(&self) -> Option<Range<u64>> {
        self.iter().next()
    }

    /// The runs, ascending; no two touch.
    pub fn iter(&self) -> impl Iterator<Item = Range<u64>> {
        self.runs.iter().map(|(&start, &end)| start..end)
    }

    /// The runs of bytes of `0..len` that are not in the set, ascending.
    pub fn gaps(&self, len: u64) -> impl Iterator<Item = Range<u64>> {
        let mut from = 0;
        self.iter()
            .chain(std::iter::once(len..len))
            .map_while(move |run| {
                let gap = from..run.start.min(len);
                from = run.end;
                (gap.start <= len).then_some(gap)
            })
            .filter(|gap| !gap.is_empty())
    }

    /// The last run that starts at or before `offset`.
    fn run_from_at_most(&self, offset: u64) -> Option<(u64, u64)> {
        let (&start, &end) = self.runs.range(..=offset).next_back()?;
        Some((start, end))
    }

    /// Adds a run that touches no other; nothing if it is empty.
    fn put(&mut self, start: u64, end: u64) {
        if start < end {
            self.runs.insert(start, end);
            self.total += end - start;
        }
    }

    /// Removes the run that starts here.
    fn cut(&mut self, start: u64) {
        if let Some(end) = self.runs.remove(&start) {
            self.total -= end - start;
        }
    }
}

impl FromIterator<Range<u64>> for RangeSet {
    fn from_iter<I: IntoIterator<Item = Range<u64>>>(ranges: I) -> Self {
        let mut set = Self::new();
        for range in ranges {
            set.insert(range);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Bytes of the bitmap model.
    const SPACE: u64 = 48;

    #[derive(Debug, Clone)]
    enum Op {
        Insert(Range<u64>),
        Remove(Range<u64>),
        TakeFirst(u64),
    }

    fn ops() -> impl Strategy<Value = Vec<Op>> {
        let range = || (0..SPACE, 0..SPACE).prop_map(|(start, end)| start..end);
        let op = prop_oneof![
            3 => range().prop_map(Op::Insert),
            2 => range().prop_map(Op::Remove),
            1 => (0..SPACE).prop_map(Op::TakeFirst),
        ];
        prop::collection::vec(op, 0..40)
    }

    /// The runs of bytes whose bit is `wanted`.
    fn runs_of(bits: &[bool], wanted: bool) -> Vec<Range<u64>> {
        let mut runs: Vec<Range<u64>> = Vec::new();
        for (offset, _) in (0_u64..).zip(bits).filter(|&(_, &bit)| bit == wanted) {
            match runs.last_mut() {
                Some(run) if run.end == offset => run.end += 1,
                _ => runs.push(offset..offset + 1),
            }
        }
        runs
    }

    fn apply(op: Op, set: &mut RangeSet, bits: &mut [bool]) {
        let (range, bit) = match op {
            Op::Insert(range) => {
                set.insert(range.clone());
                (range, true)
            }
            Op::Remove(range) => {
                set.remove(range.clone());
                (range, false)
            }
            Op::TakeFirst(len) => {
                let expected = runs_of(bits, true)
                    .first()
                    .map(|run| run.start..run.end.min(run.start + len))
                    .filter(|taken| !taken.is_empty());
                assert_eq!(set.take_first(len), expected);
                (expected.unwrap_or(0..0), false)
            }
        };
        for offset in range {
            bits[usize::try_from(offset).unwrap()] = bit;
        }
    }

    proptest! {
        #[test]
        fn behaves_like_a_bitmap(ops in ops(), len in 0..SPACE, probe in (0..SPACE, 0..SPACE)) {
            let mut set = RangeSet::new();
            let mut bits = vec![false; usize::try_from(SPACE).unwrap()];
            for op in ops {
                apply(op, &mut set, &mut bits);
                let expected = runs_of(&bits, true);
                prop_assert_eq!(set.total(), expected.iter().map(|run| run.end - run.start).sum::<u64>());
                prop_assert_eq!(set.iter().count(), expected.len());
                prop_assert_eq!(set.is_empty(), expected.is_empty());
                prop_assert_eq!(set.first(), expected.first().cloned());
                prop_assert_eq!(set.iter().collect::<Vec<_>>(), expected);
            }
            let short = &bits[..usize::try_from(len).unwrap()];
            prop_assert_eq!(set.gaps(len).collect::<Vec<_>>(), runs_of(short, false));
            let bit = |offset: u64| bits[usize::try_from(offset).unwrap()];
            prop_assert_eq!(set.contains_range(&(probe.0..probe.0 + 1)), bit(probe.0));
            let range = probe.0..probe.1;
            prop_assert_eq!(set.contains_range(&range), range.clone().all(bit));
        }
    }

    #[test]
    fn reaches_the_ends_of_the_offset_space() {
        let mut set: RangeSet = std::iter::once(0..u64::MAX).collect();
        assert_eq!(set.total(), u64::MAX);
        set.remove(1..u64::MAX - 1);
        assert_eq!(
            set.iter().collect::<Vec<_>>(),
            [0..1, u64::MAX - 1..u64::MAX]
        );
        assert_eq!(set.take_first(u64::MAX), Some(0..1));
        assert_eq!(set.take_first(u64::MAX), Some(u64::MAX - 1..u64::MAX));
        assert_eq!(set.take_first(u64::MAX), None);
    }
}
