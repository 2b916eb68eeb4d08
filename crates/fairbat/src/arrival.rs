//! Shortest transfer time first (STTF): over which way a chunk will have arrived first.
//!
//! The prediction is that of NEAT D3.2, appendix C, listing 1: a window that doubles with each round
//! trip up to the threshold of slow start, and grows by one segment after it. Listing 1 counts
//! packets of bursts; here chunks are long, so there are three more facts:
//! - the window grows no further than what the path, the lever or a limit lets through in a
//!   round trip;
//! - a request takes a round trip before its first byte, and a new connection some more;
//! - what is queued there goes first: the rest of the chunks under way.
//!
//! A receiver does not see the window of the sender. It takes what has arrived within the last
//! round trips for it ([`WayState::window`]), and knows nothing of the threshold: a connection
//! whose rate no longer doubles has passed it.
//!
//! Pure.

use std::time::Duration;

/// Bytes that a server may send at first: ten segments (RFC 6928).
pub const INITIAL_WINDOW: f64 = 10.0 * SEGMENT;

/// A full segment on most paths, bytes.
const SEGMENT: f64 = 1448.0;

/// Shortest round trip that is reckoned with, s.
const MIN_RTT: f64 = 1e-5;

/// Lowest rate that is reckoned with, byte/s.
const MIN_RATE: f64 = 1.0;

/// What is known of a way: a source over a path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WayState {
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// What arrives within a round trip at present, bytes; [`INITIAL_WINDOW`] of a cold connection.
    pub window: f64,
    /// Slow start ends at this window, bytes; infinite while nobody knows, and at most `window`
    /// once it has ended.
    pub threshold: f64,
    /// The highest rate that the way carries or is allowed, byte/s; infinite while nobody knows.
    pub max_rate: f64,
    /// Bytes that come first: the rest of the chunks that are under way there.
    pub queued: f64,
    /// Round trips before the first byte of the chunk: one for the request, and two or three more
    /// where a connection has to be opened.
    pub round_trips: f64,
    /// Whether a chunk can begin there at once. Elsewhere it begins when what is queued is there.
    pub is_free: bool,
}

impl WayState {
    /// How long it will take until a chunk of so many bytes is there, with all that is queued
    /// before it.
    #[must_use]
    pub fn transfer_time(&self, bytes: f64) -> Duration {
        let rtt = self.rtt.as_secs_f64().max(MIN_RTT);
        let seconds = rtt * self.round_trips + self.stream_time(rtt, self.queued + bytes);
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }

    /// The time from the first byte to the last one, s.
    fn stream_time(&self, rtt: f64, bytes: f64) -> f64 {
        let most = (self.max_rate.max(MIN_RATE) * rtt).max(1.0);
        let window = self.window.max(1.0);
        if window >= most {
            return bytes / (most / rtt);
        }
        let threshold = self.threshold.clamp(window, most);
        // Slow start: 1, 2, 4, ... windows.
        let doublings = (threshold / window).log2();
        let in_slow_start = window * (doublings.exp2() - 1.0);
        if bytes <= in_slow_start {
            return rtt * (bytes / window + 1.0).log2();
        }
        let (mut left, mut time) = (bytes - in_slow_start, rtt * doublings);
        // One segment more in each round trip.
        let rounds = ((most - threshold) / SEGMENT).min(f64::MAX.sqrt());
        let sum = |rounds: f64| rounds * threshold + SEGMENT * rounds * rounds / 2.0;
        if left <= sum(rounds) {
            let root = (threshold * threshold + 2.0 * SEGMENT * left).sqrt();
            return time + rtt * (root - threshold) / SEGMENT;
        }
        left -= sum(rounds);
        time += rtt * rounds;
        time + left / (most / rtt)
    }
}

/// Where the next chunk goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// Over this way, now.
    Now(usize),
    /// Over this way, which is busy: all others would bring it later.
    Wait(usize),
}

/// The way on which a chunk of so many bytes will have arrived first; `None` without any. Among
/// equals, the first counts.
#[must_use]
pub fn first(ways: &[WayState], bytes: f64) -> Option<Choice> {
    let times = ways.iter().map(|way| way.transfer_time(bytes));
    let (index, _) = times.enumerate().min_by_key(|(_, time)| *time)?;
    Some(match ways[index].is_free {
        true => Choice::Now(index),
        false => Choice::Wait(index),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn way(rtt_ms: u64) -> WayState {
        WayState {
            rtt: Duration::from_millis(rtt_ms),
            window: INITIAL_WINDOW,
            threshold: f64::INFINITY,
            max_rate: f64::INFINITY,
            queued: 0.0,
            round_trips: 1.0,
            is_free: true,
        }
    }

    /// The same, round trip by round trip.
    fn simulated(way: &WayState, bytes: f64) -> f64 {
        let rtt = way.rtt.as_secs_f64();
        let most = way.max_rate * rtt;
        let (mut window, mut left, mut time) = (way.window.min(most), way.queued + bytes, 0.0);
        while left > window && time < 1e6 {
            left -= window;
            time += rtt;
            window = if window < way.threshold {
                (2.0 * window).min(way.threshold)
            } else {
                window + SEGMENT
            };
            window = window.min(most);
        }
        time + rtt * left / window + rtt * way.round_trips
    }

    proptest! {
        #[test]
        fn the_formula_is_the_sum_of_the_round_trips(
            rtt in 1_u64..300,
            window in 1.0..1e6,
            threshold in 1e4..1e8,
            rate in 1e4..1e9,
            bytes in 1.0..1e8,
            queued in 0.0..1e7,
        ) {
            let way = WayState { window, threshold, max_rate: rate, queued, ..way(rtt) };
            let (here, there) = (way.transfer_time(bytes).as_secs_f64(), simulated(&way, bytes));
            let apart = (here - there).abs();
            // Rounds are whole there, and one of them may be cut at the threshold.
            prop_assert!(apart <= 0.1 * there + 2.0 * way.rtt.as_secs_f64(), "{here} {there}");
        }

        #[test]
        fn more_takes_longer_whatever_is_known(
            window in prop::num::f64::ANY,
            threshold in prop::num::f64::ANY,
            rate in prop::num::f64::ANY,
            bytes in 0.0..1e12,
        ) {
            let way = WayState { window, threshold, max_rate: rate, ..way(10) };
            let (less, more) = (way.transfer_time(bytes), way.transfer_time(2.0 * bytes));
            prop_assert!(less <= more, "{less:?} {more:?}");
        }
    }

    #[test]
    fn a_short_chunk_waits_for_a_fast_way_and_a_long_one_does_not() {
        let fast = WayState {
            max_rate: 1.25e6,
            queued: 100_000.0,
            is_free: false,
            ..way(10)
        };
        let slow = WayState {
            max_rate: 1.25e6,
            ..way(200)
        };
        // 15 segments are there after three round trips of 100 ms, or behind 80 ms of others.
        assert_eq!(first(&[fast, slow], 15.0 * SEGMENT), Some(Choice::Wait(0)));
        let busy = WayState {
            queued: 10e6,
            ..fast
        };
        assert_eq!(first(&[busy, slow], 1e6), Some(Choice::Now(1)));
        assert_eq!(first(&[], 1.0), None);
    }

    #[test]
    fn a_warm_connection_is_preferred_to_a_cold_one_of_the_same_path() {
        let cold = WayState {
            round_trips: 3.0,
            ..way(100)
        };
        let warm = WayState {
            window: 1e6,
            threshold: 1e6,
            ..way(100)
        };
        assert_eq!(first(&[cold, warm], 1e6), Some(Choice::Now(1)));
    }
}
