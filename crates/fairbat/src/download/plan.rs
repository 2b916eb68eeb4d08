//! From what is known of a file to what has to be fetched. Pure.

use crate::ranges::RangeSet;

/// What has to be fetched of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Plan {
    /// Nothing: every byte is there.
    Nothing,
    /// These bytes, in ranges of any length.
    Ranges(RangeSet),
    /// The whole file in one go: its server serves no ranges, or nothing
    /// tells two versions of it apart.
    Stream,
}

impl Plan {
    /// Plans a file of `total` bytes (if known) of which `have` is there.
    /// `ranges` says whether ranges of it can be fetched and trusted.
    #[must_use]
    pub(crate) fn new(total: Option<u64>, ranges: bool, have: &RangeSet) -> Self {
        match total {
            Some(0) => Self::Nothing,
            Some(total) if ranges => {
                let mut missing = RangeSet::new();
                for gap in have.gaps(total) {
                    missing.insert(gap);
                }
                if missing.is_empty() {
                    Self::Nothing
                } else {
                    Self::Ranges(missing)
                }
            }
            Some(_) | None => Self::Stream,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(ranges: &[std::ops::Range<u64>]) -> RangeSet {
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
            Plan::new(Some(100), true, &have),
            Plan::Ranges(set(&[10..50, 60..100]))
        );
        assert_eq!(Plan::new(Some(60), true, &set(&[0..60])), Plan::Nothing);
        assert_eq!(Plan::new(Some(0), false, &set(&[])), Plan::Nothing);
    }

    #[test]
    fn without_ranges_the_whole_file_is_one_stream() {
        assert_eq!(Plan::new(Some(100), false, &set(&[])), Plan::Stream);
        assert_eq!(Plan::new(None, true, &set(&[])), Plan::Stream);
    }
}
