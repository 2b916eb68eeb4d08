//! Whether a file can be there by its deadline, and when its download has to start at the
//! latest: the rate that the deadline needs against the rates of a measurement.
//!
//! The rate that is needed is zeta of DA-LBE (Hayes et al. 2017, NEAT D3.2
//! Appendix B, eq. (6)), aimed a little early, as [`dalbe::deadline`] has it.
//! Pure.

use std::time::Duration;

use dalbe::deadline::{Deadline, Demand};
use serde::Serialize;

/// Share of the measured mean that may be needed for a deadline to be called
/// comfortable: the same share below which the lab calls a load feasible. The
/// rest is for what others want of the path later.
const COMFORTABLE_SHARE: f64 = 0.8;

/// Precision of the latest start.
const PRECISION: Duration = Duration::from_millis(1);

/// The rates of a measured path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// Mean rate of one polite connection, byte/s.
    pub polite: f64,
    /// The highest rate it had for a short while, the time when it did not
    /// yield included, byte/s: an estimate of what the path gives to one
    /// best-effort connection; at least `polite`.
    pub peak: f64,
}

/// Whether a deadline can be met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// With at most 80 % of what a polite connection got.
    Comfortable,
    /// With more than that, but no more than the path carried at its best.
    Tight,
    /// Not by one best-effort connection, or the deadline is over.
    Impossible,
    /// The size is not known, or nothing was measured.
    Unknown,
}

/// The forecast of a download before it starts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Forecast {
    /// The lowest rate that still meets the deadline when the download starts
    /// now, byte/s; `None` when the size is unknown or the deadline over.
    pub needed: Option<f64>,
    /// Whether the deadline can be met.
    pub verdict: Verdict,
    /// How long before the deadline the download has to start at the latest,
    /// if it keeps the polite rate throughout: its own margin before the
    /// deadline is part of it. `None` when size or rate are unknown, or the
    /// rate is 0.
    pub lead: Option<Duration>,
}

impl Forecast {
    /// The forecast for `bytes` (if known) due in `left`, which is zero when
    /// the deadline is over, on a path of these rates (if measured).
    #[must_use]
    pub fn new(left: Duration, bytes: Option<u64>, rates: Option<Rates>) -> Self {
        let needed = bytes
            .filter(|_| !left.is_zero())
            .map(|bytes| bytes as f64 / usable(left));
        Self {
            needed,
            verdict: verdict(left, needed, rates),
            lead: bytes.and_then(|bytes| lead(bytes, rates)),
        }
    }
}

fn verdict(left: Duration, needed: Option<f64>, rates: Option<Rates>) -> Verdict {
    match (needed, rates) {
        _ if left.is_zero() => Verdict::Impossible,
        // Of an empty file there is nothing to measure.
        (Some(0.0), _) => Verdict::Comfortable,
        (Some(needed), Some(rates)) if needed <= COMFORTABLE_SHARE * rates.polite => {
            Verdict::Comfortable
        }
        (Some(needed), Some(rates)) if needed <= rates.peak => Verdict::Tight,
        (Some(_), Some(_)) => Verdict::Impossible,
        (None, _) | (_, None) => Verdict::Unknown,
    }
}

/// The shortest window before the deadline in which `bytes` fit at the polite
/// rate.
fn lead(bytes: u64, rates: Option<Rates>) -> Option<Duration> {
    if bytes == 0 {
        return Some(Duration::ZERO);
    }
    let busy = bytes as f64 / rates?.polite;
    // Half of a window at most is margin, so twice the work always fits.
    let mut short = Duration::try_from_secs_f64(busy).ok()?;
    let mut enough = short.checked_mul(2)?;
    while enough.saturating_sub(short) > PRECISION {
        let middle = short + (enough - short) / 2;
        if usable(middle) < busy {
            short = middle;
        } else {
            enough = middle;
        }
    }
    Some(enough)
}

/// Seconds that a download has which starts this long before its deadline:
/// what a demand of one byte is spread over. At least 0.1.
fn usable(window: Duration) -> f64 {
    let deadline = Deadline::new(Duration::ZERO, window);
    Demand::of(Duration::ZERO, [(deadline, 1)]).map_or(0.0, |demand| demand.zeta.recip())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RATES: Rates = Rates {
        polite: 1000.0,
        peak: 1500.0,
    };

    fn secs(s: u64) -> Duration {
        Duration::from_secs(s)
    }

    fn forecast(left: u64, bytes: u64) -> Forecast {
        Forecast::new(secs(left), Some(bytes), Some(RATES))
    }

    #[test]
    fn the_verdict_compares_the_needed_rate_with_mean_and_peak() {
        // 1000 s less 10 % are 900 s.
        for (bytes, needed, verdict) in [
            (90_000, 100.0, Verdict::Comfortable),
            (719_900, 799.9, Verdict::Comfortable),
            (720_900, 801.0, Verdict::Tight),
            (1_349_900, 1499.9, Verdict::Tight),
            (1_350_900, 1501.0, Verdict::Impossible),
        ] {
            let forecast = forecast(1000, bytes);
            assert_eq!(forecast.verdict, verdict, "{bytes}");
            let got = forecast.needed.unwrap();
            assert!((got - needed).abs() < 0.1, "{bytes}: {got}");
        }
    }

    #[test]
    fn missing_values_give_an_unknown_verdict() {
        let no_size = Forecast::new(secs(100), None, Some(RATES));
        assert_eq!(no_size.verdict, Verdict::Unknown);
        assert_eq!((no_size.needed, no_size.lead), (None, None));
        let no_rates = Forecast::new(secs(100), Some(9000), None);
        assert_eq!(no_rates.verdict, Verdict::Unknown);
        assert!((no_rates.needed.unwrap() - 100.0).abs() < 0.1);
        assert_eq!(no_rates.lead, None);
    }

    #[test]
    fn a_deadline_in_the_past_is_always_impossible() {
        for (bytes, rates) in [(None, None), (Some(0), None), (Some(1), Some(RATES))] {
            let over = Forecast::new(Duration::ZERO, bytes, rates);
            assert_eq!((over.verdict, over.needed), (Verdict::Impossible, None));
        }
    }

    #[test]
    fn an_empty_file_needs_nothing() {
        let empty = Forecast::new(secs(1), Some(0), None);
        assert_eq!(empty.verdict, Verdict::Comfortable);
        assert_eq!(empty.needed, Some(0.0));
        assert_eq!(empty.lead, Some(Duration::ZERO));
    }

    #[test]
    fn the_latest_start_leaves_the_margin_of_a_run_that_starts_then() {
        // bytes at 1000 byte/s, and the window: 10 % of it are the margin, at
        // least 2 s, at most half.
        for (bytes, window) in [(900_000, 1000.0), (10_000, 12.0), (1000, 2.0)] {
            let lead = forecast(86_400, bytes).lead.unwrap().as_secs_f64();
            assert!((lead - window).abs() < 0.002, "{bytes}: {lead}");
        }
    }

    #[test]
    fn a_path_that_carried_nothing_has_no_latest_start() {
        let stuck = Rates {
            polite: 0.0,
            peak: 10.0,
        };
        let forecast = Forecast::new(secs(1000), Some(100), Some(stuck));
        assert_eq!(
            (forecast.verdict, forecast.lead),
            (Verdict::Tight, None),
            "{forecast:?}"
        );
    }

    proptest! {
        #[test]
        fn the_start_is_in_time_exactly_if_the_polite_rate_suffices(
            left in 1_u64..10_000_000,
            bytes in 1_u64..1 << 50,
            polite in 1.0..1e9_f64,
            more in 1.0..10.0_f64,
        ) {
            let left = Duration::from_millis(left);
            let rates = Rates { polite, peak: polite * more };
            let forecast = Forecast::new(left, Some(bytes), Some(rates));
            let needed = forecast.needed.unwrap();
            let lead = forecast.lead.unwrap();
            prop_assume!((needed / polite - 1.0).abs() > 1e-6);
            prop_assume!(lead.abs_diff(left) > 2 * PRECISION);
            // Below 0.1 s the demand is spread over more than there is.
            prop_assume!(left > Duration::from_millis(200));
            prop_assert_eq!(lead <= left, needed <= polite);
            prop_assert!(forecast.verdict != Verdict::Impossible || needed > polite);
        }

        #[test]
        fn more_bytes_or_less_time_never_look_better(
            left in 0_u64..100_000,
            bytes in any::<u64>(),
            fewer in any::<u64>(),
            later in 0_u64..100_000,
            polite in 0.0..1e12_f64,
            more in 1.0..10.0_f64,
        ) {
            let rates = Some(Rates { polite, peak: polite * more });
            let rank = |verdict| match verdict {
                Verdict::Comfortable => 0,
                Verdict::Tight => 1,
                Verdict::Impossible => 2,
                Verdict::Unknown => 3,
            };
            let hard = Forecast::new(secs(left), Some(bytes), rates);
            let easy = Forecast::new(secs(left.max(later)), Some(bytes.min(fewer)), rates);
            prop_assert!(rank(easy.verdict) <= rank(hard.verdict));
            prop_assert!(hard.needed.is_none_or(|needed| needed.is_finite() && needed >= 0.0));
        }
    }
}
