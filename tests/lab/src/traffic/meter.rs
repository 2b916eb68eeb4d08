//! Counts what a receiver's application gets, by 100 ms.
//!
//! Whoever reads counts into the interval of that very moment. So nothing has
//! to wake up in time to take samples, and none is taken late.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::clock::Clock;

/// The intervals of [`crate::record::FlowRecord::received`].
const INTERVAL: Duration = Duration::from_millis(100);

/// The bytes of one flow. Clones count together.
#[derive(Debug, Clone)]
pub(crate) struct Meter {
    clock: Clock,
    intervals: Arc<[AtomicU64]>,
}

impl Meter {
    /// For a run of this length. What comes after the last whole interval is
    /// not counted.
    pub(crate) fn new(clock: Clock, length: Duration) -> Self {
        let count = length.as_nanos() / INTERVAL.as_nanos();
        Self {
            clock,
            intervals: (0..count).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// So many bytes came now.
    pub(crate) fn count(&self, bytes: usize) {
        self.count_at(self.clock.now(), bytes);
    }

    fn count_at(&self, moment: Duration, bytes: usize) {
        let interval = usize::try_from(moment.as_nanos() / INTERVAL.as_nanos());
        if let Some(count) = interval.ok().and_then(|i| self.intervals.get(i)) {
            count.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }

    /// What had come by the end of each interval, bytes.
    pub(crate) fn received(&self) -> Vec<u64> {
        self.intervals
            .iter()
            .scan(0, |total, count| {
                *total += count.load(Ordering::Relaxed);
                Some(*total)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_into_the_interval_of_the_moment() {
        let meter = Meter::new(Clock::start(), Duration::from_millis(350));
        for (ms, bytes) in [(0, 1), (99, 2), (100, 4), (299, 8), (300, 16)] {
            meter.count_at(Duration::from_millis(ms), bytes);
        }
        assert_eq!(meter.received(), [3, 7, 15]);
    }

    #[test]
    fn has_as_many_elements_as_whole_intervals() {
        for (seconds, count) in [(0.7, 7), (2.3, 23), (1.1, 11), (30.0, 300), (0.25, 2)] {
            let meter = Meter::new(Clock::start(), Duration::from_secs_f64(seconds));
            assert_eq!(meter.received(), vec![0; count], "{seconds} s");
        }
    }
}
