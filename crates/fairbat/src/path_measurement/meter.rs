//! Counts what arrives in a measurement.

use std::collections::VecDeque;
use std::time::Duration;

use super::forecast::Rates;

/// How long after the first answer what arrives does not count for the mean,
/// s: slow start takes some ten round trips up to common rates, a second at
/// 100 ms.
const WARM_UP: Duration = Duration::from_secs(1);

/// What the highest rate is taken over, s: longer than a round trip and than
/// the bursts that a queue on the way lets through, short enough to find a gap
/// that others leave.
const SHORT_WHILE: Duration = Duration::from_millis(500);

/// Counts what arrives.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    /// When the first bytes came.
    opened: Duration,
    /// Up to when the mean is taken.
    polite_until: Duration,
    /// Bytes so far.
    total: u64,
    /// Those of them after the warm-up, up to `polite_until`.
    warm: u64,
    /// Those up to `polite_until`.
    polite: u64,
    /// The arrivals of the last short while, and their bytes.
    recent: VecDeque<(Duration, u64)>,
    recent_bytes: u64,
    /// The most bytes that ever arrived within a short while.
    max_short: u64,
}

impl Meter {
    /// A measurement whose first bytes came at `opened`, and whose connection
    /// yields until `polite_until`.
    pub(crate) fn new(opened: Duration, polite_until: Duration) -> Self {
        Self {
            opened,
            polite_until,
            ..Self::default()
        }
    }

    /// So many bytes have arrived at `now`, which never goes back.
    pub(crate) fn arrived(&mut self, now: Duration, bytes: u64) {
        self.total += bytes;
        if now <= self.polite_until {
            self.polite += bytes;
            if now > self.opened + WARM_UP {
                self.warm += bytes;
            }
        }
        self.recent.push_back((now, bytes));
        self.recent_bytes += bytes;
        while let Some(&(at, old)) = self.recent.front()
            && at + SHORT_WHILE <= now
        {
            self.recent.pop_front();
            self.recent_bytes -= old;
        }
        self.max_short = self.max_short.max(self.recent_bytes);
    }

    /// Bytes so far.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// What it comes to at `end`; `None` when nothing has arrived.
    ///
    /// A measurement that ends within a short while after the warm-up counts
    /// from its beginning, connection set-up included: too low is the safer
    /// side.
    pub(crate) fn rates(&self, end: Duration) -> Option<Rates> {
        if self.total == 0 {
            return None;
        }
        let polite_end = end.min(self.polite_until);
        let warm_for = polite_end.saturating_sub(self.opened + WARM_UP);
        let (bytes, time) = if warm_for >= SHORT_WHILE {
            (self.warm, warm_for)
        } else {
            (self.polite, polite_end)
        };
        // Nothing arrives in no time but by a coarse clock.
        let time = time.max(Duration::from_micros(1));
        let polite = bytes as f64 / time.as_secs_f64();
        let peak = self.max_short as f64 / SHORT_WHILE.as_secs_f64();
        Some(Rates {
            polite,
            peak: peak.max(polite),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Feeds `bytes` every 10 ms from `from` to `to`, in ms.
    fn feed(meter: &mut Meter, from: u32, to: u32, bytes: u64) {
        for ms in (from..to).step_by(10) {
            meter.arrived(MS * (ms + 10), bytes);
        }
    }

    #[test]
    fn the_first_second_does_not_count_for_the_mean() {
        let mut meter = Meter::new(MS * 200, Duration::MAX);
        feed(&mut meter, 200, 1200, 1);
        feed(&mut meter, 1200, 3200, 10);
        let rates = meter.rates(MS * 3200).unwrap();
        assert!((rates.polite - 1000.0).abs() < 1e-9, "{rates:?}");
        assert!((rates.peak - 1000.0).abs() < 1e-9, "{rates:?}");
        assert_eq!(meter.total, 2100);
    }

    #[test]
    fn the_peak_is_the_best_half_second() {
        let mut meter = Meter::new(Duration::ZERO, Duration::MAX);
        feed(&mut meter, 0, 3000, 10);
        feed(&mut meter, 3000, 3500, 50);
        feed(&mut meter, 3500, 11_000, 10);
        let rates = meter.rates(MS * 11_000).unwrap();
        assert!((rates.peak - 5000.0).abs() < 1e-9, "{rates:?}");
        assert!((rates.polite - 1200.0).abs() < 1e-9, "{rates:?}");
    }

    #[test]
    fn data_without_yielding_counts_only_for_the_peak() {
        let mut meter = Meter::new(Duration::ZERO, MS * 3000);
        feed(&mut meter, 0, 3000, 10);
        feed(&mut meter, 3000, 4000, 50);
        let rates = meter.rates(MS * 4000).unwrap();
        assert!((rates.polite - 1000.0).abs() < 1e-9, "{rates:?}");
        assert!((rates.peak - 5000.0).abs() < 1e-9, "{rates:?}");
        assert_eq!(meter.total, 8000);
    }

    #[test]
    fn silence_after_the_warm_up_counts() {
        let mut meter = Meter::new(Duration::ZERO, Duration::MAX);
        feed(&mut meter, 0, 2000, 10);
        let rates = meter.rates(MS * 5000).unwrap();
        assert!((rates.polite - 250.0).abs() < 1e-9, "{rates:?}");
    }

    #[test]
    fn a_short_measurement_counts_from_its_beginning() {
        let mut meter = Meter::new(MS * 100, Duration::MAX);
        feed(&mut meter, 100, 200, 100);
        let rates = meter.rates(MS * 200).unwrap();
        assert!((rates.polite - 5000.0).abs() < 1e-9, "{rates:?}");
        assert!((rates.peak - rates.polite).abs() < 1e-9, "{rates:?}");
    }

    #[test]
    fn no_data_gives_no_rate() {
        assert_eq!(
            Meter::new(Duration::ZERO, Duration::MAX).rates(MS * 5000),
            None
        );
    }

    proptest! {
        #[test]
        fn rates_are_finite_and_the_peak_is_at_least_the_mean(
            opened in 0_u32..3000,
            gaps in prop::collection::vec((0_u32..900, 1_u64..1 << 40), 1..60),
            rest in 0_u32..900,
            polite in 0_u32..60_000,
        ) {
            let mut meter = Meter::new(MS * opened, MS * polite);
            let mut now = opened;
            for (gap, bytes) in gaps {
                now += gap;
                meter.arrived(MS * now, bytes);
            }
            let rates = meter.rates(MS * (now + rest)).unwrap();
            prop_assert!(rates.polite.is_finite() && rates.polite >= 0.0);
            prop_assert!(rates.peak >= rates.polite);
        }
    }
}
