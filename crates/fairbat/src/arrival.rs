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

/// Steps of a bisection: to a billionth of where it began.
const STEPS: usize = 30;

/// Lowest rate that is reckoned with, byte/s.
const MIN_RATE: f64 = 1.0;

/// A piece over a way brings at least so much, bytes: less is there sooner over one that is in use.
pub const MIN_SHARE: f64 = 64.0 * 1024.0;

/// A piece that several ways share is at least so long, bytes, and takes so many round trips.
const MIN_PIECE: f64 = 256.0 * 1024.0;
const ROUND_TRIPS: f64 = 10.0;

/// What is known of a way: a source over a path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WayState {
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// What arrives within a round trip at present, bytes; [`INITIAL_WINDOW`] of a cold connection.
    pub window: f64,
    /// Slow start ends at this window, bytes, or at the highest rate; infinite while nobody knows,
    /// and at most `window` once it has ended.
    pub threshold: f64,
    /// The highest rate that the way carries or is allowed, byte/s; infinite while nobody knows.
    pub max_rate: f64,
    /// Bytes that come first: the rest of the chunks that are under way there.
    pub queued: f64,
    /// Round trips before the first byte of the chunk: one for the request, and two or three more
    /// where a connection has to be opened.
    pub round_trips: f64,
}

impl WayState {
    /// The same, of which no more is to be expected than this rate, byte/s.
    #[must_use]
    pub fn at_most(self, rate: f64) -> Self {
        let max_rate = self.max_rate.min(rate);
        let window = self.window.min(max_rate * self.rtt.as_secs_f64());
        Self {
            window,
            max_rate,
            ..self
        }
    }

    /// The same, of which at least this rate is to be expected, byte/s.
    #[must_use]
    pub fn at_least(self, rate: f64) -> Self {
        let max_rate = self.max_rate.max(rate);
        Self {
            window: self.window.max(rate * self.rtt.as_secs_f64()),
            max_rate,
            ..self
        }
    }

    /// How long it will take until a chunk of so many bytes is there, with all that is queued
    /// before it.
    #[must_use]
    pub fn transfer_time(&self, bytes: f64) -> Duration {
        let rtt = self.rtt.as_secs_f64().max(MIN_RTT);
        let seconds = rtt * self.round_trips + self.stream_time(rtt, self.queued + bytes);
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }

    /// How many bytes of a chunk are there after this time, s, behind those that are queued.
    fn bytes_within(&self, time: f64) -> f64 {
        let rtt = self.rtt.as_secs_f64().max(MIN_RTT);
        let time = time - rtt * self.round_trips;
        if time <= 0.0 {
            return 0.0;
        }
        (self.streamed(rtt, time) - self.queued).max(0.0)
    }

    /// The inverse of [`Self::stream_time`]: bytes that come within this time, s.
    fn streamed(&self, rtt: f64, time: f64) -> f64 {
        let most = (self.max_rate.max(MIN_RATE) * rtt).max(1.0);
        let window = self.window.max(1.0);
        if window >= most {
            return time * most / rtt;
        }
        let threshold = self.threshold.clamp(window, most);
        let doublings = (threshold / window).log2();
        let mut rounds = time / rtt;
        if rounds <= doublings {
            return window * (rounds.exp2() - 1.0);
        }
        rounds -= doublings;
        let growing = ((most - threshold) / SEGMENT).min(rounds);
        let grown = growing * threshold + SEGMENT * growing * growing / 2.0;
        (threshold - window) + grown + (rounds - growing) * most
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

/// How many of `bytes` this way takes now, `most` at once, while the others take the rest: as many
/// as it brings no later than they bring theirs. It is little or nothing where a faster way that
/// is busy brings all of it sooner.
#[must_use]
pub fn share(way: &WayState, others: &[WayState], bytes: f64, most: f64) -> f64 {
    let is_in_time = |taken: f64| way.transfer_time(taken) <= finish(others, bytes - taken);
    let most = most.min(bytes);
    if is_in_time(most) {
        return most;
    }
    let (mut least, mut most) = (0.0, most);
    for _ in 0..STEPS {
        let middle = (least + most) / 2.0;
        if is_in_time(middle) {
            least = middle;
        } else {
            most = middle;
        }
    }
    least
}

/// How long the next piece over this way is, bytes, of `waiting` ones, `most` at once, while the
/// others take the rest. `None` where they bring all of it sooner.
#[must_use]
pub fn next_piece(way: &WayState, others: &[WayState], waiting: f64, most: f64) -> Option<f64> {
    let taken = share(way, others, waiting, 2.0 * most);
    let alone = way.transfer_time(waiting);
    let is_first = || others.iter().all(|it| alone <= it.transfer_time(waiting));
    if taken < MIN_SHARE && !is_first() {
        return None;
    }
    // The others bring none of it: further requests would cost a round trip each.
    if waiting - taken < MIN_SHARE {
        return Some(waiting);
    }
    // Half of it now: by then more is known. But no request is so short that its round trip
    // counts.
    let shortest = (way.max_rate * way.rtt.as_secs_f64() * ROUND_TRIPS).max(MIN_PIECE);
    let length = (taken / 2.0).max(shortest).min(taken.max(MIN_SHARE));
    // Nor is a rest left over that is worth no request.
    Some(match waiting - length < MIN_SHARE {
        true => waiting,
        false => length,
    })
}

/// When so many bytes will be there that come over all of these ways together; never without any.
#[must_use]
pub fn finish(ways: &[WayState], bytes: f64) -> Duration {
    let arrived = |time: f64| ways.iter().map(|way| way.bytes_within(time)).sum::<f64>();
    let alone = ways.iter().map(|way| way.transfer_time(bytes));
    let Some(longest) = alone.min() else {
        return Duration::MAX;
    };
    let (mut early, mut late) = (0.0, longest.as_secs_f64());
    for _ in 0..STEPS {
        let middle = (early + late) / 2.0;
        if arrived(middle) < bytes {
            early = middle;
        } else {
            late = middle;
        }
    }
    Duration::try_from_secs_f64(late).unwrap_or(Duration::MAX)
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
        }
    }

    /// Ways of all kinds, of which everything is known.
    fn ways() -> impl Strategy<Value = WayState> {
        let known = (1_u64..300, 1.0..1e6, 1e4..1e8, 1e4..1e9, 0.0..1e7);
        known.prop_map(|(rtt, window, threshold, max_rate, queued)| WayState {
            window,
            threshold,
            max_rate,
            queued,
            ..way(rtt)
        })
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
        fn the_formula_is_the_sum_of_the_round_trips(way in ways(), bytes in 1.0..1e8) {
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

    proptest! {
        #[test]
        fn what_has_come_is_the_inverse_of_the_time_that_it_takes(way in ways(), bytes in 1.0..1e8) {
            let there = way.bytes_within(way.transfer_time(bytes).as_secs_f64());
            prop_assert!((there - bytes).abs() <= 1e-3 * (bytes + way.queued) + 1.0, "{there} {bytes}");
        }

        #[test]
        fn two_ways_end_together(rates in (1e5..1e7, 1e5..1e7), bytes in 1e6..1e8) {
            let of = |rate| WayState { window: f64::INFINITY, max_rate: rate, ..way(10) };
            let (here, there) = (of(rates.0), of(rates.1));
            let taken = share(&here, &[there], bytes, bytes);
            let expected = bytes * rates.0 / (rates.0 + rates.1);
            prop_assert!((taken - expected).abs() < 0.01 * bytes, "{taken} {expected}");
        }
    }

    #[test]
    fn a_slow_way_takes_nothing_of_what_a_fast_one_brings_sooner() {
        let fast = WayState {
            window: 12_500.0,
            threshold: 12_500.0,
            max_rate: 1.25e6,
            queued: 100_000.0,
            ..way(10)
        };
        let slow = WayState {
            max_rate: 1.25e6,
            ..way(200)
        };
        // 15 segments are there behind 80 ms of others, or after two round trips of 200 ms.
        assert!(share(&slow, &[fast], 15.0 * SEGMENT, 1e6) < 1.0);
        // Of 10 MB it takes nearly half.
        let taken = share(&slow, &[fast], 10e6, 10e6);
        assert!((4.5e6..5e6).contains(&taken), "{taken}");
        assert!(share(&slow, &[], 1e6, 1e5) >= 1e5);
    }

    #[test]
    fn pieces_are_half_of_a_share_and_leave_no_crumbs() {
        let known = |rate: f64, rtt| WayState {
            window: f64::INFINITY,
            max_rate: rate,
            ..way(rtt)
        };
        let (here, there) = (known(1e6, 10), known(1e6, 10));
        let piece = |bytes, most| next_piece(&here, &[there], bytes, most);
        let half = piece(20e6, 20e6).unwrap();
        assert!((4.9e6..5.1e6).contains(&half), "{half}");
        assert_eq!(piece(20e6, 4e6), Some(4e6));
        assert_eq!(next_piece(&here, &[], 300_000.0, 4e6), Some(300_000.0));
        // A slow way takes nothing of what a fast one brings sooner.
        assert_eq!(
            next_piece(&known(1e4, 200), &[known(1e7, 10)], 100_000.0, 1e6),
            None
        );
    }

    #[test]
    fn a_cold_way_knows_only_its_round_trip_time() {
        // Nothing is known of either: the near one brings a short file alone.
        let (near, far) = (way(10), way(200));
        assert!(share(&far, &[near], 100_000.0, 1e6) < 1.0);
        assert!(share(&near, &[far], 100_000.0, 1e6) > 99_900.0);
    }
}
