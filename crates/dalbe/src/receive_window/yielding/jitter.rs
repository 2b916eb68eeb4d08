//! Whether single packets come late by themselves, as on Wi-Fi, where a lost frame is sent
//! again.
//!
//! What follows a late packet waits for it, so delays rise and fall all the time, and the
//! more so the more is sent. But a late packet is over in tens of milliseconds, and a queue
//! of others stays longer, even one of web pages. Where most long delays are gone at once,
//! the least one of some round trips tells of a queue, beyond what lateness explains. All
//! functions follow from their arguments.

use std::collections::VecDeque;
use std::time::Duration;

use crate::receive_window::rounds::Round;

/// A delay is long, and a range of delays is wide, beyond so many targets.
const LONG_TARGETS: f64 = 4.0;
/// Packets come late by themselves if this share of the long delays is gone in the next
/// sample, as a moving average with this gain. Of queues that web pages, streams and greedy
/// flows make, it is at most 0.5, but for two of 27 links on which web pages meet short
/// queues or bursts only.
const MIN_GONE: f64 = 0.6;
const GONE_GAIN: f64 = 0.03;
/// The next sample tells nothing if it comes later than this.
const SOON: Duration = Duration::from_millis(45);

/// The least delay of so many round trips counts.
const REMEMBERED: usize = 3;

/// At full load some packet is always late, so no delay is gone. Packets still come late
/// while the range over the round trips above is wide in more than this share of them, as a
/// moving average with this gain.
const MIN_WIDE: f64 = 0.4;
const WIDE_GAIN: f64 = 1.0 / 32.0;

/// Lateness explains this share of the mean range: at full load, the least delay of some
/// round trips is rarely longer.
const EXPLAINED_SHARE: f64 = 0.5;

/// How late single packets are, on one path.
#[derive(Debug, Clone, Default)]
pub(crate) struct Jitter {
    /// When the last sample was taken, if its delay was long.
    long: Option<Duration>,
    /// The share of long delays that were gone in the next sample.
    gone: f64,
    /// Least and longest delay of the last round trips, s.
    last: VecDeque<(f64, f64)>,
    /// The share of round trips after which the range over the last ones was wide.
    wide: f64,
    /// Mean of this range, s.
    range: f64,
    is_known: bool,
}

impl Jitter {
    /// Takes the delay of one sample, s, where one up to `target`, s, is no queue.
    pub(crate) fn see(&mut self, now: Duration, delay: f64, target: f64) {
        let is_long = delay > LONG_TARGETS * target;
        if self.long.is_some_and(|at| now <= at + SOON) {
            self.gone += GONE_GAIN * (f64::from(u8::from(!is_long)) - self.gone);
        }
        self.long = is_long.then_some(now);
    }

    /// Takes the delays of a round trip, where one up to `target`, s, is no queue. Returns
    /// the standing queue, s.
    pub(crate) fn learn(&mut self, delays: &Round, target: f64) -> f64 {
        self.last.push_back((delays.min, delays.max));
        if self.last.len() > REMEMBERED {
            self.last.pop_front();
        }
        let (min, max) = self
            .last
            .iter()
            .fold((delays.min, delays.max), |all, each| {
                (all.0.min(each.0), all.1.max(each.1))
            });
        let is_wide = f64::from(u8::from(max - min > LONG_TARGETS * target));
        self.wide += WIDE_GAIN * (is_wide - self.wide);
        self.range += WIDE_GAIN * (max - min - self.range);
        self.is_known = self.gone > MIN_GONE || self.is_known && self.wide > MIN_WIDE;
        if self.is_known {
            (min - EXPLAINED_SHARE * self.range).max(0.0)
        } else {
            delays.standing()
        }
    }

    /// The mean range of delays, s, which is about how long data waits for late packets at
    /// full load; 0 where packets come in time.
    pub(crate) fn range(&self) -> f64 {
        if self.is_known { self.range } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: f64 = 0.0014;

    /// Takes so many round trips with samples of these delays, ms, over and over again, each
    /// of this length. Returns the queue of the last round trip, ms.
    fn take_every(
        sample: Duration,
        jitter: &mut Jitter,
        delays: &[f64],
        round_trips: usize,
    ) -> f64 {
        let mut queue = 0.0;
        let mut now = Duration::ZERO;
        let mut delays = delays.iter().map(|ms| ms * 1e-3).cycle();
        for _ in 0..round_trips {
            let seen: Vec<_> = delays.by_ref().take(3).collect();
            for delay in &seen {
                now += sample;
                jitter.see(now, *delay, TARGET);
            }
            let round = Round {
                rate: 0.0,
                steady: 0.0,
                min: seen.iter().copied().fold(f64::INFINITY, f64::min),
                mean: seen.iter().sum::<f64>() / 3.0,
                max: seen.iter().copied().fold(0.0, f64::max),
                out_of_order: 0,
            };
            queue = 1e3 * jitter.learn(&round, TARGET);
        }
        queue
    }

    fn take(jitter: &mut Jitter, delays: &[f64], round_trips: usize) -> f64 {
        take_every(Duration::from_millis(20), jitter, delays, round_trips)
    }

    const LATE: [f64; 6] = [0.0, 20.0, 4.0, 1.0, 2.0, 0.0];

    #[test]
    fn delays_that_are_gone_at_once_are_no_queue_until_they_stay() {
        let mut jitter = Jitter::default();
        assert!(take(&mut jitter, &LATE, 50) < 6.0);
        assert_eq!(jitter.range(), 0.0, "not known yet");
        take(&mut jitter, &LATE, 150);
        let range = jitter.range();
        assert!((0.016..0.022).contains(&range), "{range}");
        assert_eq!(take(&mut jitter, &[25.0], 2), 0.0, "two late round trips");
        assert!(take(&mut jitter, &[25.0], 1) > 14.0, "and a queue");
    }

    #[test]
    fn a_queue_that_comes_and_goes_is_a_queue() {
        let grows = [
            0.0, 1.0, 4.0, 7.0, 10.0, 13.0, 16.0, 19.0, 20.0, 20.0, 19.0, 10.0,
        ];
        let pages = [
            0.0, 0.0, 1.0, 0.0, 6.0, 12.0, 14.0, 18.0, 20.0, 12.0, 9.0, 6.0, 1.0, 0.0, 0.0,
        ];
        for delays in [&grows[..], &pages] {
            let mut jitter = Jitter::default();
            take(&mut jitter, delays, 1000);
            assert_eq!(jitter.range(), 0.0, "{jitter:?}");
        }
    }

    #[test]
    fn samples_that_are_far_apart_do_not_tell() {
        let mut jitter = Jitter::default();
        take_every(Duration::from_millis(100), &mut jitter, &LATE, 1000);
        assert_eq!(jitter.range(), 0.0, "{jitter:?}");
    }

    #[test]
    fn late_packets_are_known_until_delays_are_steady() {
        let mut jitter = Jitter::default();
        take(&mut jitter, &LATE, 200);
        // At full load, some packet is always late.
        let full = [6.0, 8.0, 10.0, 16.0, 18.0, 14.0, 11.0, 12.0, 9.0];
        assert!(take(&mut jitter, &full, 500) < 1.0);
        assert!(jitter.range() > 0.0, "{jitter:?}");
        let steady = [20.0, 21.0, 22.0, 21.0, 20.0, 19.0];
        assert!(take(&mut jitter, &steady, 200) > 18.0);
    }
}
