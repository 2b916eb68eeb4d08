//! The transfers that arrive at random where a scenario asks for jobs: all of
//! them drawn before the run, so that nothing in it can change them; and what
//! is recorded of them. Knows nothing of who moves them.

use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::StdRng;

use super::site::Site;
use crate::arrivals::{self, Arrival};
use crate::link::PAYLOAD_SHARE;
use crate::link::rate::bytes_per_s;
use crate::record::Fetch;
use crate::scenario::Jobs;

/// Keeps these draws apart from others of the same seed.
const STREAM: u64 = 0x006a_6f62_7300;

/// The scenario's jobs, or without any its one transfer.
pub(super) fn arrivals(site: &Site) -> Vec<Arrival> {
    let start = Duration::from_secs_f64(site.background.start_s);
    let stop = Duration::from_secs_f64(site.duration_s);
    match site.background.jobs {
        Some(jobs) => draw(jobs, site.first_mbit, (start, stop), site.seed),
        None => vec![Arrival {
            at: start,
            bytes: site.size(),
        }],
    }
}

/// What is recorded at `now`, s, of those that have arrived, each with the
/// moment, s, at which it was over.
pub(super) fn fetches(arrivals: &[Arrival], ends: &[Option<f64>], now: f64) -> Vec<Fetch> {
    let all = arrivals.iter().zip(ends);
    all.map(|(arrival, end)| (arrival.at.as_secs_f64(), arrival.bytes, end))
        .filter(|(t, ..)| *t <= now)
        .map(|(t, bytes, end)| Fetch {
            t,
            bytes,
            seconds: end.map(|end| end - t),
        })
        .collect()
}

/// All arrivals between two moments, until none arrives any more. Together they
/// are the given share of a link's rate (Mbit/s), headers of full packets included.
fn draw(jobs: Jobs, link_mbit: f64, (start, end): (Duration, Duration), seed: u64) -> Vec<Arrival> {
    let until = jobs.until_s.map(Duration::from_secs_f64);
    let between = (start, until.map_or(end, |until| until.min(end)));
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
        until_s: None,
    };

    fn drawn(to_s: u64, seed: u64) -> Vec<Arrival> {
        drawn_of(JOBS, to_s, seed)
    }

    fn drawn_of(jobs: Jobs, to_s: u64, seed: u64) -> Vec<Arrival> {
        let between = (Duration::from_secs(2), Duration::from_secs(to_s));
        draw(jobs, 10.0, between, seed)
    }

    #[test]
    fn the_same_seed_draws_the_same() {
        assert_eq!(drawn(100, 7), drawn(100, 7));
        assert_ne!(drawn(100, 7), drawn(100, 8));
    }

    #[test]
    fn none_arrives_from_the_end_of_arrivals_on() {
        let until = |until_s| Jobs {
            until_s: Some(until_s),
            ..JOBS
        };
        assert_eq!(drawn_of(until(60.0), 100, 7), drawn(60, 7));
        assert_eq!(drawn_of(until(160.0), 100, 7), drawn(100, 7));
    }

    #[test]
    fn what_has_not_arrived_is_not_recorded() {
        let arrivals = [1.0, 2.0, 3.0].map(|at| Arrival {
            at: Duration::from_secs_f64(at),
            bytes: 10,
        });
        let recorded = fetches(&arrivals, &[None, Some(2.25), None], 2.5);
        let seconds: Vec<_> = recorded.iter().map(|job| (job.t, job.seconds)).collect();
        assert_eq!(seconds, [(1.0, None), (2.0, Some(0.25))]);
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
