//! The transfers that arrive at random where a scenario asks for jobs: all of
//! them drawn before the run, so that nothing in it can change them.

use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::arrivals::{self, Arrival};
use crate::link::PAYLOAD_SHARE;
use crate::link::rate::bytes_per_s;
use crate::scenario::Jobs;

/// Keeps these draws apart from others of the same seed.
const STREAM: u64 = 0x006a_6f62_7300;

/// All arrivals between two moments. Together they are the given share of a
/// link's rate (Mbit/s), headers of full packets included.
pub(super) fn draw(
    jobs: Jobs,
    link_mbit: f64,
    between: (Duration, Duration),
    seed: u64,
) -> Vec<Arrival> {
    let mut random = StdRng::seed_from_u64(seed ^ STREAM);
    let mean_bytes = jobs.mean_kb * 1000.0;
    let rate = jobs.load * bytes_per_s(link_mbit) * PAYLOAD_SHARE / mean_bytes;
    arrivals::draw(&mut random, between, rate, mean_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOBS: Jobs = Jobs {
        load: 0.3,
        mean_kb: 300.0,
    };

    fn drawn(to_s: u64, seed: u64) -> Vec<Arrival> {
        let between = (Duration::from_secs(2), Duration::from_secs(to_s));
        draw(JOBS, 10.0, between, seed)
    }

    #[test]
    fn the_same_seed_draws_the_same() {
        assert_eq!(drawn(100, 7), drawn(100, 7));
        assert_ne!(drawn(100, 7), drawn(100, 8));
    }

    #[test]
    fn the_load_is_what_was_asked_for() {
        let drawn = drawn(200_002, 1);
        let bytes: u64 = drawn.iter().map(|arrival| arrival.bytes).sum();
        let load = bytes as f64 * 8.0 / PAYLOAD_SHARE / 1e7 / 200e3;
        assert!((load / 0.3 - 1.0).abs() < 0.02, "{load}");
        let mean = bytes as f64 / drawn.len() as f64;
        assert!((mean / 300e3 - 1.0).abs() < 0.02, "{mean}");
    }
}
