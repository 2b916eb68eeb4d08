//! Everything random about the foreground: drawn from the seed alone, so that
//! nothing that happens on the network, and no other source, changes it.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::Span;

/// The random source of one entry of a scenario's foreground.
pub(super) fn of_source(seed: u64, index: usize) -> StdRng {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..16].copy_from_slice(&(index as u64).to_le_bytes());
    StdRng::from_seed(key)
}

/// A value of the exponential distribution with this mean.
pub(super) fn exponential(rng: &mut StdRng, mean: f64) -> f64 {
    // 1 − u is in (0, 1]: the logarithm is finite.
    -mean * (1.0 - rng.random::<f64>()).ln()
}

/// A fetch to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Arrival {
    /// When it begins.
    pub(super) at: Duration,
    /// Its size, bytes; at least 1.
    pub(super) bytes: u64,
}

/// Arrivals during `span` as a Poisson process of this rate, 1/s, with sizes
/// of exponential distribution around this mean, bytes.
pub(super) fn arrivals(rng: &mut StdRng, span: Span, rate: f64, mean_bytes: f64) -> Vec<Arrival> {
    let length = span.length().as_secs_f64();
    let mut arrivals = Vec::new();
    let mut after = 0.0;
    loop {
        after += exponential(rng, 1.0 / rate);
        let bytes = exponential(rng, mean_bytes).round().max(1.0) as u64;
        if after >= length {
            return arrivals;
        }
        let at = span.start + Duration::from_secs_f64(after);
        arrivals.push(Arrival { at, bytes });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: Span = Span {
        start: Duration::from_secs(3),
        stop: Duration::from_secs(1003),
    };

    fn drawn(seed: u64, index: usize) -> Vec<Arrival> {
        arrivals(&mut of_source(seed, index), SPAN, 5.0, 30_000.0)
    }

    #[test]
    fn same_seed_same_arrivals() {
        assert_eq!(drawn(7, 1), drawn(7, 1));
        assert_ne!(drawn(7, 1), drawn(7, 2));
        assert_ne!(drawn(7, 1), drawn(8, 1));
    }

    #[test]
    fn a_longer_span_begins_like_a_shorter_one() {
        let longer = Span {
            stop: 2 * SPAN.stop,
            ..SPAN
        };
        let longer = arrivals(&mut of_source(7, 1), longer, 5.0, 30_000.0);
        assert!(longer.starts_with(&drawn(7, 1)));
    }

    #[test]
    fn rate_and_sizes_are_as_asked() {
        let drawn = drawn(1, 0);
        // 5000 expected; the standard deviation of the count is 71.
        assert!((4700..5300).contains(&drawn.len()), "{}", drawn.len());
        let total: u64 = drawn.iter().map(|arrival| arrival.bytes).sum();
        let mean = total as f64 / drawn.len() as f64;
        // The standard deviation of the mean is 30000/sqrt(5000) = 424.
        assert!((28_000.0..32_000.0).contains(&mean), "{mean}");
        assert!(drawn.iter().all(|arrival| arrival.bytes >= 1));
        assert!(drawn.is_sorted_by_key(|arrival| arrival.at));
        assert!(drawn[0].at >= SPAN.start);
        assert!(drawn[drawn.len() - 1].at < SPAN.stop);
    }
}
