//! How late what was due has come, counted in steps: of packets of a link, and of the
//! processors themselves.

use std::time::Duration;

use crate::samples::Lateness;

/// Width of a step.
const STEP: Duration = Duration::from_micros(10);

/// Steps; later than all of them is counted in the last.
const STEPS: usize = 1000;

/// Counted delays.
#[derive(Debug)]
pub struct Histogram {
    counts: Vec<u64>,
    max: Duration,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            counts: vec![0; STEPS],
            max: Duration::ZERO,
        }
    }
}

impl Histogram {
    /// Counts one delay.
    pub fn count(&mut self, late: Duration) {
        let step = (late.as_nanos() / STEP.as_nanos()) as usize;
        self.counts[step.min(STEPS - 1)] += 1;
        self.max = self.max.max(late);
    }

    /// Upper bounds of the steps that hold the percentiles.
    pub fn summary(&self) -> Lateness {
        let total: u64 = self.counts.iter().sum();
        let percentile = |share: f64| {
            let rank = (total as f64 * share).ceil().max(1.0) as u64;
            let mut seen = 0;
            let step = self.counts.iter().position(|count| {
                seen += count;
                seen >= rank
            });
            let bound = match step {
                // The last step has no upper bound.
                Some(step) if step + 1 < STEPS => STEP * (step as u32 + 1),
                _ => self.max,
            };
            bound.min(self.max).as_secs_f64() * 1e3
        };
        Lateness {
            median_ms: percentile(0.5),
            p99_ms: percentile(0.99),
            max_ms: self.max.as_secs_f64() * 1e3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_upper_bounds() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.summary(), Lateness::default());
        for micros in 0..1000 {
            histogram.count(Duration::from_micros(micros));
        }
        histogram.count(Duration::from_millis(30));
        let summary = histogram.summary();
        assert!((summary.median_ms - 0.51).abs() < 1e-9, "{summary:?}");
        assert!((summary.p99_ms - 1.0).abs() < 1e-9, "{summary:?}");
        assert!((summary.max_ms - 30.0).abs() < 1e-9, "{summary:?}");
        let mut late = Histogram::default();
        late.count(Duration::from_millis(30));
        assert!((late.summary().p99_ms - 30.0).abs() < 1e-9);
        (0..5000).for_each(|_| late.count(Duration::from_millis(1)));
        let both = late.summary();
        assert!((both.p99_ms - 1.01).abs() < 1e-9, "{both:?}");
        assert!((both.max_ms - 30.0).abs() < 1e-9, "{both:?}");
    }
}
