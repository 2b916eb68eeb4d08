//! The network of the experiments: when the greedy sources send, how a source
//! follows a price, and the prices of the queue.

use std::ops::Range;

/// What the link carries at most, c_l. No source sends faster.
pub(crate) const MAX_RATE: f64 = 100.0;

/// Length of a step, s.
pub(crate) const STEP: f64 = 0.1;

/// gamma, how far a source moves in one step towards the rate that its price
/// calls for; the paper's value.
const APPROACH: f64 = 0.02;

/// alpha of TCP: its utility has the derivative x^-2.
pub(crate) const TCP: f64 = 2.0;

/// When each greedy source sends, s.
pub(crate) type Schedule = [Range<f64>; 6];

/// Table I's.
pub(crate) const GREEDY: Schedule = [
    0.0..600.0,
    200.0..1000.0,
    800.0..1000.0,
    1010.0..1600.0,
    1200.0..2000.0,
    1400.0..1800.0,
];

/// When the DA-LBE source starts, s.
pub(crate) const START: f64 = 400.0;

/// Its soft deadline, s.
pub(crate) const DEADLINE: f64 = 1700.0;

/// From its start to its deadline, s.
pub(crate) const WINDOW: f64 = DEADLINE - START;

/// When no greedy source sends, s.
pub(crate) const GAP: Range<f64> = 1000.0..1010.0;

/// The price at which an `alpha`-fair source has this rate, U'(x) = x^-alpha
/// (eqs 12 and 16).
pub(crate) fn price_for(rate: f64, alpha: f64) -> f64 {
    rate.powf(-alpha)
}

/// The rate that a price calls for, (U')^-1 (eqs 5 and 17).
pub(crate) fn rate_for(price: f64, alpha: f64) -> f64 {
    price.powf(-1.0 / alpha).min(MAX_RATE)
}

/// The rate one step later (eq. 18).
pub(crate) fn approach(rate: f64, wanted: f64) -> f64 {
    rate + APPROACH * (wanted - rate)
}

/// The prices of a step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Prices {
    /// P[loss].
    pub(crate) loss: f64,
    /// P[queue > 10].
    pub(crate) delay: f64,
}

/// K, places in the queue.
const PLACES: i32 = 100;

/// Q_T, the queue beyond which a delay-based source counts congestion.
const TARGET: i32 = 10;

/// The probability that a packet finds the queue full, at the load `rho`, at
/// least 0.
pub(crate) fn loss(rho: f64) -> f64 {
    at_least(PLACES, rho)
}

/// The probability that the queue is longer than the target of a delay-based
/// source.
pub(crate) fn long(rho: f64) -> f64 {
    at_least(TARGET + 1, rho)
}

/// The probability that at least `n` of K places are taken,
/// (rho^n − rho^(K+1)) / (1 − rho^(K+1)).
fn at_least(n: i32, rho: f64) -> f64 {
    // Near 1 the quotient loses its digits; its limit is good to 1e-6 there.
    if (rho - 1.0).abs() < 1e-8 {
        f64::from(PLACES + 1 - n) / f64::from(PLACES + 1)
    } else if rho < 1.0 {
        let full = rho.powi(PLACES + 1);
        (rho.powi(n) - full) / (1.0 - full)
    } else {
        // The same with powers that do not overflow.
        let r = 1.0 / rho;
        (1.0 - r.powi(PLACES + 1 - n)) / (1.0 - r.powi(PLACES + 1))
    }
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
        assert_eq!(rate_for(0.0, TCP), MAX_RATE);
    }

    #[test]
    fn the_gap_is_the_only_time_without_competition() {
        for second in 0..2000 {
            let t = f64::from(second);
            let competing = GREEDY.iter().any(|times| times.contains(&t));
            assert_eq!(!competing, GAP.contains(&t), "{t}");
        }
    }

    #[test]
    fn probabilities_are_those_of_the_queue() {
        assert_eq!(loss(0.0), 0.0);
        assert!((loss(1.0) - 1.0 / 101.0).abs() < 1e-12);
        // What the link cannot carry is lost.
        assert!((loss(2.0) - 0.5).abs() < 1e-12);
        assert!((long(0.5) - 0.5_f64.powi(11)).abs() < 1e-12);
        assert!((long(1.0) - 90.0 / 101.0).abs() < 1e-12);
    }

    #[test]
    fn they_rise_with_the_load_without_a_jump() {
        for price in [loss, long] {
            let mut before = 0.0_f64;
            for load in 0..30_000 {
                let now = price(f64::from(load) * 1e-4);
                // Rounding may take back a little.
                let rise = now - before;
                assert!((-1e-9..0.01).contains(&rise), "{load}: {before} to {now}");
                before = now;
            }
        }
        assert!((loss(1.0 + 1e-7) / loss(1.0) - 1.0).abs() < 1e-4);
        assert!((loss(1.0 - 1e-7) / loss(1.0) - 1.0).abs() < 1e-4);
    }
}
