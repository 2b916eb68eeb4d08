//! What every deadline controller is told once per period, and the range of
//! the weight that it answers with.
//!
//! The controllers ([`crate::model`], [`crate::model`]) turn a target rate and
//! a measured one into w, the weight of a flow: 1 is as aggressive as one
//! best-effort flow, w_min as gentle as the lever allows (DA-LBE, Hayes et
//! al. 2017, NEAT D3.2 Appendix B, eqs 5 and 10). Both are pure: no clock, no
//! randomness, the same inputs give the same outputs. They know nothing of
//! connections, deadlines or levers.

use std::time::Duration;

/// Smallest w_min there can be. Weights are inverted (a price is inflated by
/// 1/w), so 0 has no meaning; 1e-6 is far below what any lever resolves.
const WEIGHT_FLOOR: f64 = 1e-6;

/// What was measured over the period that has just ended, and what is wanted
/// now.
///
/// A measurement that says nothing ([`is_news`](Self::is_news)) leaves every
/// controller as it was.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateMeasurement {
    /// T_w, the time since the previous measurement; above 0.
    pub period: Duration,
    /// zeta(t_n, t_D), the rate that meets the deadline from now on, byte/s;
    /// at least 0, infinite when there is no time left.
    pub zeta: f64,
    /// x̄(t_{n-1}, t_n), the mean rate over the period, byte/s; at least 0.
    pub rate: f64,
}

impl RateMeasurement {
    /// Whether it says anything: it took time, its rates are rates, and they
    /// are not both infinite.
    #[must_use]
    pub fn is_news(&self) -> bool {
        // Comparisons with NaN are false.
        !self.period.is_zero()
            && self.zeta >= 0.0
            && self.rate >= 0.0
            && !(self.zeta.is_infinite() && self.rate.is_infinite())
    }
}

/// A w_min within (0, 1]; what is not a number becomes the smallest.
pub(crate) fn least_weight(w_min: f64) -> f64 {
    // Comparisons with NaN are false.
    if w_min > WEIGHT_FLOOR {
        w_min.min(1.0)
    } else {
        WEIGHT_FLOOR
    }
}

/// A weight to start from, within [w_min, 1]; w_min for what is not a number.
pub(crate) fn first_weight(w_start: f64, w_min: f64) -> f64 {
    if w_start > w_min {
        w_start.min(1.0)
    } else {
        w_min
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_is_no_news() {
        let sound = RateMeasurement {
            period: Duration::from_secs(1),
            zeta: 1.0,
            rate: 0.0,
        };
        assert!(sound.is_news());
        let (nan, inf) = (f64::NAN, f64::INFINITY);
        assert!(RateMeasurement { zeta: inf, ..sound }.is_news());
        assert!(RateMeasurement { rate: inf, ..sound }.is_news());
        for (zeta, rate) in [(nan, 1.0), (1.0, nan), (-1.0, 1.0), (1.0, -1.0), (inf, inf)] {
            assert!(
                !RateMeasurement {
                    zeta,
                    rate,
                    ..sound
                }
                .is_news(),
                "{zeta} {rate}"
            );
        }
        let period = Duration::ZERO;
        assert!(!RateMeasurement { period, ..sound }.is_news());
    }

    #[test]
    fn weights_are_within_their_range() {
        assert_eq!(least_weight(f64::NAN), WEIGHT_FLOOR);
        assert_eq!(least_weight(0.0), WEIGHT_FLOOR);
        assert_eq!(least_weight(7.0), 1.0);
        assert_eq!(first_weight(f64::NAN, 0.1), 0.1);
        assert_eq!(first_weight(0.0, 0.1), 0.1);
        assert_eq!(first_weight(0.5, 0.1), 0.5);
    }
}
