//! What arrives at random: drawn before the run, so that nothing that happens
//! on the network changes it. Knows neither who fetches nor from whom.

use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;

/// A value of the exponential distribution with this mean.
pub(crate) fn exponential(rng: &mut StdRng, mean: f64) -> f64 {
    // 1 − u is in (0, 1]: the logarithm is finite.
    -mean * (1.0 - rng.random::<f64>()).ln()
}

/// A transfer to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// When it begins.
    pub(crate) at: Duration,
    /// Its size, bytes; at least 1.
    pub(crate) bytes: u64,
}

/// Arrivals from `start` until before `stop` as a Poisson process of this
/// rate, 1/s, with sizes of exponential distribution around this mean, bytes.
pub(crate) fn draw(
    rng: &mut StdRng,
    (start, stop): (Duration, Duration),
    rate: f64,
    mean_bytes: f64,
) -> Vec<Arrival> {
    let length = stop.saturating_sub(start).as_secs_f64();
    let mut arrivals = Vec::new();
    let mut after = 0.0;
    loop {
        after += exponential(rng, 1.0 / rate);
        let bytes = exponential(rng, mean_bytes).round().max(1.0) as u64;
        if after >= length {
            return arrivals;
        }
        let at = start + Duration::from_secs_f64(after);
        arrivals.push(Arrival { at, bytes });
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;

    use super::*;

    const START: Duration = Duration::from_secs(3);
    const STOP: Duration = Duration::from_secs(1003);

    fn drawn(seed: u64, stop: Duration) -> Vec<Arrival> {
        let mut rng = StdRng::seed_from_u64(seed);
        draw(&mut rng, (START, stop), 5.0, 30_000.0)
    }

    #[test]
    fn same_source_same_arrivals() {
        assert_eq!(drawn(7, STOP), drawn(7, STOP));
        assert_ne!(drawn(7, STOP), drawn(8, STOP));
    }

    #[test]
    fn a_longer_time_begins_like_a_shorter_one() {
        assert!(drawn(7, 2 * STOP).starts_with(&drawn(7, STOP)));
    }

    #[test]
    fn rate_and_sizes_are_as_asked() {
        let drawn = drawn(1, STOP);
        // 5000 expected; the standard deviation of the count is 71.
        assert!((4700..5300).contains(&drawn.len()), "{}", drawn.len());
        let total: u64 = drawn.iter().map(|arrival| arrival.bytes).sum();
        let mean = total as f64 / drawn.len() as f64;
        // The standard deviation of the mean is 30000/sqrt(5000) = 424.
        assert!((28_000.0..32_000.0).contains(&mean), "{mean}");
        assert!(drawn.iter().all(|arrival| arrival.bytes >= 1));
        assert!(drawn.is_sorted_by_key(|arrival| arrival.at));
        assert!(drawn[0].at >= START);
        assert!(drawn[drawn.len() - 1].at < STOP);
    }
}
