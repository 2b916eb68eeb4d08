//! What shares the link: six greedy sources that come and go, and the rate of
//! any source.
//!
//! DA-LBE (Hayes et al. 2017, NEAT D3.2 Appendix B) Table I and eqs (15)–(18).
//! Rates are in units of which the link carries at most 100.

use std::ops::Range;

/// What the link carries at most, c_l. No source sends faster.
pub(super) const MOST: f64 = 100.0;

/// Length of a step, s.
pub(super) const STEP: f64 = 0.1;

/// gamma, how far a source moves in one step towards the rate that its price
/// calls for; the paper's value.
const APPROACH: f64 = 0.02;

/// alpha of TCP: its utility has the derivative x^-2.
pub(super) const TCP: f64 = 2.0;

/// When each greedy source sends, s (Table I).
pub(super) const GREEDY: [Range<f64>; 6] = [
    0.0..600.0,
    200.0..1000.0,
    800.0..1000.0,
    1010.0..1600.0,
    1200.0..2000.0,
    1400.0..1800.0,
];

/// When the DA-LBE source starts, s.
pub(super) const START: f64 = 400.0;

/// Its soft deadline, s.
pub(super) const DEADLINE: f64 = 1700.0;

/// From its start to its deadline, s.
pub(super) const WINDOW: f64 = DEADLINE - START;

/// When no greedy source sends, s.
pub(super) const GAP: Range<f64> = 1000.0..1010.0;

/// The price at which an `alpha`-fair source has this rate, U'(x) = x^-alpha
/// (eqs 12 and 16).
pub(super) fn price_for(rate: f64, alpha: f64) -> f64 {
    rate.powf(-alpha)
}

/// The rate that a price calls for, (U')^-1 (eqs 5 and 17).
pub(super) fn rate_for(price: f64, alpha: f64) -> f64 {
    price.powf(-1.0 / alpha).min(MOST)
}

/// The rate one step later (eq. 18).
pub(super) fn approach(rate: f64, wanted: f64) -> f64 {
    rate + APPROACH * (wanted - rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_and_rates_are_inverse() {
        for alpha in [1.2, TCP] {
            let rate = rate_for(price_for(20.0, alpha), alpha);
            assert!((rate - 20.0).abs() < 1e-9, "{rate}");
        }
        assert_eq!(rate_for(0.0, TCP), MOST);
    }

    #[test]
    fn the_gap_is_the_only_time_without_competition() {
        for second in 0..2000 {
            let t = f64::from(second);
            let competing = GREEDY.iter().any(|times| times.contains(&t));
            assert_eq!(!competing, GAP.contains(&t), "{t}");
        }
    }
}
