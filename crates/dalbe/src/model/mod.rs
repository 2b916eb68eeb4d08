//! DA-LBE's controllers and price models, equation by equation (Hayes et al.
//! 2017, NEAT D3.2 Appendix B).
//!
//! - [`Pid`]: w without a model of the network, eqs (7) to (10).
//! - [`Mbc`]: w from a price and a price model, eqs (11) to (14).
//! - [`PriceModel`]: from a rate to a price and back, for five congestion
//!   controls, eqs (5), (11) and (12).
//! - [`Phi`]: the effective price ratio, eqs (22) to (26).
//! - [`RateMeasurement`] and [`IncreaseLimiter`] (eq. 19): shared by both.
//!
//! The controllers turn a target rate and a measured rate into w, the weight
//! of a flow: 1 is as aggressive as one best-effort flow, w_min as gentle as
//! the lever allows (eqs 5 and 10). All of them are pure: no clock, no
//! randomness, and equal inputs give equal outputs.

mod mbc;
mod phi;
mod pid;
mod price;

use std::time::Duration;

pub use self::mbc::{Mbc, MbcSample, MbcSettings};
pub use self::phi::{CongestionSignal, Phi, PhiSample, PhiSettings};
pub use self::pid::{Pid, PidSample, PidSettings};
pub use self::price::{PriceModel, cdg_scale, cdg_share};

/// Smallest w_min. Weights are inverted (a price is inflated by 1/w), so 0 has
/// no meaning; 1e-6 is far below what any lever resolves.
const WEIGHT_FLOOR: f64 = 1e-6;

/// The measured rate of the last period, and the rate that is wanted now.
///
/// A measurement without meaning ([`is_news`](Self::is_news)) leaves every
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
    /// Whether the measurement has a meaning: the period is not empty, the rates
    /// are at least 0, and they are not both infinite.
    #[must_use]
    pub fn is_news(&self) -> bool {
        // Comparisons with NaN are false.
        !self.period.is_zero()
            && self.zeta >= 0.0
            && self.rate >= 0.0
            && !(self.zeta.is_infinite() && self.rate.is_infinite())
    }
}

/// w_min within (0, 1]; the smallest value if it is not a number.
pub(crate) fn min_weight(w_min: f64) -> f64 {
    // Comparisons with NaN are false.
    if w_min > WEIGHT_FLOOR {
        w_min.min(1.0)
    } else {
        WEIGHT_FLOOR
    }
}

/// A weight to start from, within [w_min, 1]; w_min if it is not a number.
pub(crate) fn first_weight(w_start: f64, w_min: f64) -> f64 {
    if w_start > w_min {
        w_start.min(1.0)
    } else {
        w_min
    }
}

/// l_w, the largest increase of w in one update as a share of the wanted
/// weight; the paper's value (fig. 2).
pub const MAX_WEIGHT_INCREASE: f64 = 0.05;

/// l_phi, the same for the price ratio phi; the paper's value (fig. 8).
pub const MAX_PHI_INCREASE: f64 = 0.1;

/// Limits the increase of a value, but not its decrease.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IncreaseLimiter {
    /// Largest increase in one update, as a share of the wanted value; above
    /// 0, and from 1 on nothing is limited.
    pub step: f64,
}

/// The result of a limiter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LimitedValue {
    /// The value to use.
    pub value: f64,
    /// Whether it is less than the wanted value.
    pub limited: bool,
}

impl IncreaseLimiter {
    /// Eq. (19): `wanted`, or `before + step * wanted` when that is less.
    ///
    /// The step is a share of the wanted value, so a value can rise from 0. Both
    /// values are at least 0 and finite.
    #[must_use]
    pub fn limit(&self, before: f64, wanted: f64) -> LimitedValue {
        let limited = wanted - before > self.step * wanted;
        LimitedValue {
            value: if limited {
                before + self.step * wanted
            } else {
                wanted
            },
            limited,
        }
    }
}

#[cfg(test)]
mod measurement_tests {
    use super::*;

    #[test]
    fn a_meaningless_measurement_does_not_count() {
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
        assert_eq!(min_weight(f64::NAN), WEIGHT_FLOOR);
        assert_eq!(min_weight(0.0), WEIGHT_FLOOR);
        assert_eq!(min_weight(7.0), 1.0);
        assert_eq!(first_weight(f64::NAN, 0.1), 0.1);
        assert_eq!(first_weight(0.0, 0.1), 0.1);
        assert_eq!(first_weight(0.5, 0.1), 0.5);
    }
}

#[cfg(test)]
mod limiter_tests {
    use super::*;

    const LIMITER: IncreaseLimiter = IncreaseLimiter {
        step: MAX_WEIGHT_INCREASE,
    };

    #[test]
    fn a_rise_is_limited_to_a_share_of_what_is_wanted() {
        let LimitedValue { value, limited } = LIMITER.limit(0.2, 0.6);
        assert!(limited && (value - 0.23).abs() < 1e-12, "{value}");
        let small = LIMITER.limit(0.59, 0.6);
        assert_eq!((small.value, small.limited), (0.6, false));
    }

    #[test]
    fn a_fall_is_not_limited() {
        let fall = LIMITER.limit(1.0, 0.01);
        assert_eq!((fall.value, fall.limited), (0.01, false));
    }

    #[test]
    fn a_rise_takes_one_over_the_step_updates() {
        let mut value = 0.0;
        for _ in 0..19 {
            value = LIMITER.limit(value, 1.0).value;
        }
        assert!((value - 0.95).abs() < 1e-12, "{value}");
        assert!(!LIMITER.limit(value + 1e-9, 1.0).limited);
    }
}
