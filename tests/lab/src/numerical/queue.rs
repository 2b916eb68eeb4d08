//! The bottleneck as a queue with random arrivals: M/M/1/K.
//!
//! The price that sources meet is a probability in its steady state (DA-LBE,
//! Hayes et al. 2017, NEAT D3.2 Appendix B, section III-C and IV-A1). Knows no
//! sources.

/// K, places in the queue.
const PLACES: i32 = 100;

/// Q_T, the queue beyond which a delay-based source counts congestion.
const TARGET: i32 = 10;

/// The probability that a packet finds the queue full, at the load `rho`, at
/// least 0.
pub(super) fn loss(rho: f64) -> f64 {
    at_least(PLACES, rho)
}

/// The probability that the queue is longer than the target of a delay-based
/// source.
pub(super) fn long(rho: f64) -> f64 {
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
