//! Vulture's algorithms 2 and 3: what the packet-interval variations of one
//! round trip say, whether others are there (the mode), and how much each of
//! the variations is.

/// Where each band but the first begins, µs, for the absolute value: 1, 2, 3
/// and 5 jiffies of 4 ms (`cLow`, `cHigh`, `aLow`, `aHigh`). What is `aLow` is
/// still low.
const BANDS_US: [u64; 4] = [4_000, 8_000, 12_001, 20_000];

/// Packet-interval variations, counted: all that algorithms 2 and 3 need of
/// them, so that they can be gathered where the packets are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IntervalCounts {
    /// By absolute value: below 4 ms, from 4 to below 8 ms, from 8 to 12 ms,
    /// above 12 and below 20 ms, and from 20 ms.
    pub bands: [u64; 5],
    /// How many are above 0.
    pub positive: u64,
    /// Sum, µs.
    pub sum_us: i64,
}

/// Whether the queue is ours alone (section 0.3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VultureMode {
    /// There are others: only a short queue is borne.
    Conservative,
    /// There is nobody else: a longer one is borne.
    Aggressive,
}

/// The variations of one round trip, judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassifiedIntervals {
    /// By which thresholds.
    pub mode: VultureMode,
    /// Too high.
    pub high: u64,
    /// Just fine.
    pub middle: u64,
    /// Too low.
    pub low: u64,
}

impl IntervalCounts {
    /// One more, µs.
    pub fn add(&mut self, variation_us: i64) {
        let length = variation_us.unsigned_abs();
        let band = BANDS_US.partition_point(|&begin| begin <= length);
        self.bands[band] = self.bands[band].saturating_add(1);
        if variation_us > 0 {
            self.positive = self.positive.saturating_add(1);
        }
        self.sum_us = self.sum_us.saturating_add(variation_us);
    }

    /// Those counted elsewhere as well.
    pub fn merge(&mut self, more: &Self) {
        for (band, more) in self.bands.iter_mut().zip(more.bands) {
            *band = band.saturating_add(more);
        }
        self.positive = self.positive.saturating_add(more.positive);
        self.sum_us = self.sum_us.saturating_add(more.sum_us);
    }

    /// How many there are: `pivCount`.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.bands.iter().copied().fold(0, u64::saturating_add)
    }

    /// Algorithm 2, and 3: conservative when the sum is positive, or more
    /// than half of them are.
    #[must_use]
    pub fn classify(&self) -> ClassifiedIntervals {
        let [a, b, c, d, e] = self.bands;
        let sum = |parts: &[u64]| parts.iter().copied().fold(0, u64::saturating_add);
        if self.sum_us > 0 || self.positive > self.count() / 2 {
            ClassifiedIntervals {
                mode: VultureMode::Conservative,
                high: sum(&[c, d, e]),
                middle: b,
                low: a,
            }
        } else {
            ClassifiedIntervals {
                mode: VultureMode::Aggressive,
                high: e,
                middle: d,
                low: sum(&[a, b, c]),
            }
        }
    }
}

impl ClassifiedIntervals {
    /// How many there are: `pivCount`.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.high
            .saturating_add(self.middle)
            .saturating_add(self.low)
    }
}

impl FromIterator<i64> for IntervalCounts {
    /// Of variations in µs.
    fn from_iter<I: IntoIterator<Item = i64>>(variations: I) -> Self {
        let mut counts = Self::default();
        variations.into_iter().for_each(|one| counts.add(one));
        counts
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(variations_ms: &[f64]) -> IntervalCounts {
        variations_ms.iter().map(|ms| (ms * 1e3) as i64).collect()
    }

    fn classes(variations_ms: &[f64]) -> (VultureMode, [u64; 3]) {
        let ClassifiedIntervals {
            mode,
            high,
            middle,
            low,
        } = of(variations_ms).classify();
        (mode, [high, middle, low])
    }

    #[test]
    fn a_positive_sum_is_conservative_at_8_and_4_ms() {
        let (mode, classes) = classes(&[8.0, -8.0, 25.0, 7.9, -4.0, 4.0, 3.9, -3.9, 0.0]);
        assert_eq!(mode, VultureMode::Conservative);
        assert_eq!(classes, [3, 3, 3]);
    }

    #[test]
    fn else_it_is_aggressive_at_20_and_12_ms() {
        let (mode, classes) = classes(&[-20.0, 20.0, -30.0, 19.9, -12.1, 12.0, -12.0, 5.0, 0.0]);
        assert_eq!(mode, VultureMode::Aggressive);
        assert_eq!(classes, [3, 2, 4]);
    }

    #[test]
    fn more_than_half_above_zero_is_conservative_whatever_the_sum() {
        let mode = |variations: &[f64]| classes(variations).0;
        assert_eq!(mode(&[1.0, 1.0, -9.0]), VultureMode::Conservative);
        assert_eq!(mode(&[1.0, 1.0, -9.0, 0.0]), VultureMode::Aggressive);
        assert_eq!(
            mode(&[1.0, 1.0, 1.0, -9.0, -9.0]),
            VultureMode::Conservative
        );
        assert_eq!(mode(&[]), VultureMode::Aggressive);
        assert_eq!(mode(&[5.0, -5.0]), VultureMode::Aggressive);
        assert_eq!(mode(&[5.0, -4.9]), VultureMode::Conservative);
    }

    proptest! {
        #[test]
        fn counting_in_parts_is_counting_all(
            one in prop::collection::vec(any::<i32>().prop_map(i64::from), 0..50),
            other in prop::collection::vec(-40_000..40_000_i64, 0..50),
        ) {
            let mut parts: IntervalCounts = one.iter().copied().collect();
            parts.merge(&other.iter().copied().collect());
            let all: IntervalCounts = one.iter().chain(&other).copied().collect();
            prop_assert_eq!(parts, all);
            prop_assert_eq!(all.count(), (one.len() + other.len()) as u64);
            prop_assert_eq!(all.classify().count(), all.count());
        }

        #[test]
        fn any_counts_are_borne(bands in any::<[u64; 5]>(), positive: u64, sum_us: i64) {
            let mut counts = IntervalCounts { bands, positive, sum_us };
            counts.merge(&counts.clone());
            counts.add(i64::MIN);
            let classified = counts.classify();
            prop_assert!(classified.count() >= classified.high);
        }
    }
}
