//! Vulture's algorithms 2 to 5: the classes of the packet-interval variations,
//! the decision, and its application. The observer measures the variations
//! (algorithm 1) and the sender's congestion window (algorithm 6) where the
//! packets arrive (`src/bpf/intervals.h`).

/// `PSI`: packets sent at least so long after one another make a pair, µs;
/// 5 jiffies of 4 ms.
pub(crate) const PSI_US: i64 = 20_000;

/// Where each band but the first begins, µs, for the absolute value: 1, 2, 3
/// and 5 jiffies of 4 ms (`cLow`, `cHigh`, `aLow`, `aHigh`). What is `aLow` is
/// still low.
const BANDS_US: [u64; 4] = [4_000, 8_000, 12_001, 20_000];

/// Packet-interval variations, counted: all that algorithms 2 and 3 need of
/// them, so that they can be gathered where the packets are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct IntervalCounts {
    /// By absolute value: below 4 ms, from 4 to below 8 ms, from 8 to 12 ms,
    /// above 12 and below 20 ms, and from 20 ms.
    pub(crate) bands: [u64; 5],
    /// How many are above 0.
    pub(crate) positive: u64,
    /// Sum, µs.
    pub(crate) sum_us: i64,
}

/// Whether the queue is ours alone (section 0.3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VultureMode {
    /// There are others: only a short queue is borne.
    Conservative,
    /// There is no other traffic: a longer queue is accepted.
    Aggressive,
}

/// The variations of one round trip, judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClassifiedIntervals {
    /// By which thresholds.
    pub(crate) mode: VultureMode,
    /// Too high.
    pub(crate) high: u64,
    /// Just fine.
    pub(crate) middle: u64,
    /// Too low.
    pub(crate) low: u64,
}

impl IntervalCounts {
    /// One more, µs.
    pub(crate) fn add(&mut self, variation_us: i64) {
        let length = variation_us.unsigned_abs();
        let band = BANDS_US.partition_point(|&begin| begin <= length);
        self.bands[band] = self.bands[band].saturating_add(1);
        if variation_us > 0 {
            self.positive = self.positive.saturating_add(1);
        }
        self.sum_us = self.sum_us.saturating_add(variation_us);
    }

    /// Those counted elsewhere as well.
    pub(crate) fn merge(&mut self, more: &Self) {
        for (band, more) in self.bands.iter_mut().zip(more.bands) {
            *band = band.saturating_add(more);
        }
        self.positive = self.positive.saturating_add(more.positive);
        self.sum_us = self.sum_us.saturating_add(more.sum_us);
    }

    /// How many there are: `pivCount`.
    pub(crate) fn count(&self) -> u64 {
        self.bands.iter().copied().fold(0, u64::saturating_add)
    }

    /// Algorithm 2, and 3: conservative when the sum is positive, or more
    /// than half of them are.
    pub(crate) fn classify(&self) -> ClassifiedIntervals {
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
    pub(crate) fn count(&self) -> u64 {
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

/// What becomes of `rwnd` until the next decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WindowPolicy {
    /// It doubles within a round trip.
    Double,
    /// It grows by one segment.
    Increase,
    /// It is halved within a round trip.
    Halve,
    /// It stays.
    Fix,
}

/// Decides. More than 7/8 (alpha of the paper) of the variations have to
/// agree; below `thresh`, the window before it was last reduced, or without
/// one, it may double. Windows in bytes.
pub(crate) fn decide(round: &ClassifiedIntervals, rwnd: f64, thresh: Option<f64>) -> WindowPolicy {
    let is_most = |part: u64| u128::from(part) * 8 > u128::from(round.count()) * 7;
    if is_most(round.high) {
        WindowPolicy::Halve
    } else if !is_most(round.low) {
        WindowPolicy::Fix
    } else if thresh.is_none_or(|thresh| rwnd < thresh) {
        WindowPolicy::Double
    } else {
        WindowPolicy::Increase
    }
}

/// A decision under way. Windows in bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PolicyApplication {
    policy: WindowPolicy,
    /// Where it ends.
    target: f64,
}

impl PolicyApplication {
    /// Nothing is under way.
    pub(crate) fn none() -> Self {
        Self {
            policy: WindowPolicy::Fix,
            target: 0.0,
        }
    }

    /// Begins at the window `rwnd`, with segments of this size; does not go
    /// below `floor`.
    pub(crate) fn of(policy: WindowPolicy, rwnd: f64, segment: f64, floor: f64) -> Self {
        let target = match policy {
            WindowPolicy::Double => 2.0 * rwnd,
            WindowPolicy::Increase => rwnd + segment,
            WindowPolicy::Halve => (rwnd / 2.0).max(floor),
            WindowPolicy::Fix => rwnd,
        };
        Self { policy, target }
    }

    /// What is under way.
    pub(crate) fn policy(&self) -> WindowPolicy {
        self.policy
    }

    /// The window after `bytes` more have been acknowledged.
    pub(crate) fn acknowledged(&self, rwnd: f64, bytes: u64) -> f64 {
        if bytes == 0 {
            return rwnd;
        }
        let bytes = bytes as f64;
        match self.policy {
            WindowPolicy::Double => (rwnd + bytes).min(self.target).max(rwnd),
            // At once, with the first acknowledgement.
            WindowPolicy::Increase => self.target.max(rwnd),
            WindowPolicy::Halve => (rwnd - bytes).max(self.target).min(rwnd),
            WindowPolicy::Fix => rwnd,
        }
    }
}

#[cfg(test)]
mod tests;
