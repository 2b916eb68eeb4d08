//! The rate of a link over time. Pure.

use std::time::Duration;

use crate::scenario::DirectionSpec;

/// A rate of so many Mbit/s, in byte/s.
#[must_use]
pub fn bytes_per_s(rate_mbit: f64) -> f64 {
    rate_mbit * 1e6 / 8.0
}

/// A rate that may change at given moments.
#[derive(Debug, Clone, PartialEq)]
pub struct Rate {
    /// From when (s) which rate (byte/s) holds; the first from 0.
    steps: Vec<(f64, f64)>,
}

impl Rate {
    /// The rate of this direction.
    #[must_use]
    pub fn of(spec: &DirectionSpec) -> Self {
        let changes = spec
            .schedule
            .iter()
            .map(|step| (step.at_s, bytes_per_s(step.rate_mbit)));
        Self {
            steps: std::iter::once((0.0, bytes_per_s(spec.rate_mbit)))
                .chain(changes)
                .collect(),
        }
    }

    /// When something of so many bytes has been sent, begun at `start`.
    #[must_use]
    pub fn finish(&self, start: Duration, bytes: usize) -> Duration {
        let mut now = start.as_secs_f64();
        let mut left = bytes as f64;
        let begun = self.steps.partition_point(|step| step.0 <= now);
        for index in begun.max(1)..=self.steps.len() {
            let rate = self.steps[index - 1].1;
            let end = now + left / rate;
            match self.steps.get(index) {
                Some(&(change, _)) if end > change => {
                    left -= (change - now) * rate;
                    now = change;
                }
                _ => return Duration::from_secs_f64(end),
            }
        }
        unreachable!("the last rate holds for ever")
    }

    /// Bytes that fit between two moments (s).
    #[must_use]
    pub fn capacity(&self, from: f64, to: f64) -> f64 {
        let ends = self.steps.iter().skip(1).map(|step| step.0);
        self.steps
            .iter()
            .zip(ends.chain(std::iter::once(f64::INFINITY)))
            .map(|(&(begin, rate), end)| (end.min(to) - begin.max(from)).max(0.0) * rate)
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{QueueSpec, RateStep};

    fn rate(mbit: f64, schedule: &[(f64, f64)]) -> Rate {
        Rate::of(&DirectionSpec {
            rate_mbit: mbit,
            delay_ms: 0.0,
            queue: QueueSpec::Packets(1),
            loss: 0.0,
            jitter_ms: 0.0,
            schedule: schedule
                .iter()
                .map(|&(at_s, rate_mbit)| RateStep { at_s, rate_mbit })
                .collect(),
            outage: Vec::new(),
        })
    }

    #[test]
    fn a_packet_takes_its_length_over_the_rate() {
        let start = Duration::from_secs(3);
        let took = rate(10.0, &[]).finish(start, 1500) - start;
        assert_eq!(took, Duration::from_micros(1200));
    }

    #[test]
    fn a_packet_across_a_change_is_sent_at_both_rates() {
        // 1 Mbit/s is 125 kB/s: half a second for 62.5 kB, the rest at twice
        // the rate.
        let rate = rate(1.0, &[(1.0, 2.0), (10.0, 1.0)]);
        let start = Duration::from_millis(500);
        assert_eq!(rate.finish(start, 125_000), Duration::from_millis(1250));
        assert_eq!(
            rate.finish(Duration::from_secs(1), 125_000),
            Duration::from_millis(1500)
        );
        assert_eq!(
            rate.finish(Duration::from_secs(20), 125_000),
            Duration::from_secs(21)
        );
    }

    #[test]
    fn capacity_adds_up_over_changes() {
        let rate = rate(8.0, &[(2.0, 16.0), (4.0, 8.0)]);
        assert!((rate.capacity(1.0, 5.0) - 6e6).abs() < 1e-6);
        assert!((rate.capacity(6.0, 7.0) - 1e6).abs() < 1e-6);
    }
}
