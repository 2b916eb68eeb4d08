//! Transfers that arrive at random: all of them drawn before the run, so that
//! nothing in it can change them.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::scenario::Jobs;

/// Keeps these draws apart from others of the same seed.
const STREAM: u64 = 0x006a_6f62_7300;

/// Share of a full packet (1500 bytes) that is payload: IPv4 and TCP headers
/// with timestamps take 52 bytes.
const PAYLOAD_SHARE: f64 = 1448.0 / 1500.0;

/// A transfer to be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Arrival {
    /// When, s.
    pub(super) at: f64,
    /// How much, bytes.
    pub(super) bytes: u64,
}

/// All arrivals between two moments (s): a Poisson process, with sizes of
/// exponential distribution. Together they are the given share of a link's
/// rate (Mbit/s), headers of full packets included.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "sizes are far below what a u64 holds"
)]
pub(super) fn draw(jobs: Jobs, link_mbit: f64, from: f64, to: f64, seed: u64) -> Vec<Arrival> {
    let mut random = StdRng::seed_from_u64(seed ^ STREAM);
    let mean_bytes = jobs.mean_kb * 1000.0;
    let mean_gap = mean_bytes / (jobs.load * link_mbit * 1e6 / 8.0 * PAYLOAD_SHARE);
    let mut arrivals = Vec::new();
    let mut at = from;
    loop {
        at += mean_gap * exponential(&mut random);
        if at >= to {
            return arrivals;
        }
        let bytes = (mean_bytes * exponential(&mut random)).ceil() as u64;
        arrivals.push(Arrival {
            at,
            bytes: bytes.max(1),
        });
    }
}

/// Exponential distribution with mean 1, by inversion.
fn exponential(random: &mut StdRng) -> f64 {
    -(1.0 - random.random::<f64>()).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOBS: Jobs = Jobs {
        load: 0.3,
        mean_kb: 300.0,
    };

    #[test]
    fn the_same_seed_draws_the_same() {
        let drawn = draw(JOBS, 10.0, 2.0, 100.0, 7);
        assert_eq!(drawn, draw(JOBS, 10.0, 2.0, 100.0, 7));
        assert_ne!(drawn, draw(JOBS, 10.0, 2.0, 100.0, 8));
        // A longer run begins alike.
        assert!(draw(JOBS, 10.0, 2.0, 200.0, 7).starts_with(&drawn));
    }

    #[test]
    fn the_load_is_what_was_asked_for() {
        let to = 200_000.0;
        let drawn = draw(JOBS, 10.0, 0.0, to, 1);
        let bytes: u64 = drawn.iter().map(|arrival| arrival.bytes).sum();
        let load = bytes as f64 * 8.0 / PAYLOAD_SHARE / 1e7 / to;
        assert!((load / 0.3 - 1.0).abs() < 0.02, "{load}");
        let mean = bytes as f64 / drawn.len() as f64;
        assert!((mean / 300e3 - 1.0).abs() < 0.02, "{mean}");
    }
}
