//! Samples of a connection over the last few round trips. They give its rate, its
//! standing queue, and the rise of the queue beyond the growth of our window.

use std::collections::VecDeque;
use std::time::Duration;

/// Samples are kept for this many round trips. A larger window shows in the
/// delay one round trip after it takes effect, and is visible for another.
const KEPT_ROUND_TRIPS: f64 = 4.0;

/// Samples are kept for at least this time.
const MIN_KEPT: Duration = Duration::from_millis(200);

/// A sample is fresh for this share of a round trip, ...
const FRESH_SHARE: f64 = 0.25;
/// ... and for at least two sampling intervals.
const MIN_FRESH: Duration = Duration::from_millis(40);

/// With at most this many samples in a round trip, a single one may be wrong.
const FEW_SAMPLES: usize = 4;

/// The standing queue is the delay at rank 1/8 from the lowest. A standing
/// queue is there all the time; a queue of bursts is not.
const STANDING_RANK: usize = 8;

/// One sample: bytes, delay and window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct QueueObservation {
    pub(crate) at: Duration,
    /// Bytes received since the connection was opened.
    pub(crate) bytes: u64,
    /// Queueing delay of the data since the last sample, s; `None` without data.
    pub(crate) queueing: Option<f64>,
    /// Window on offer, bytes.
    pub(crate) window: f64,
}

/// The samples of one connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    samples: VecDeque<QueueObservation>,
}

impl History {
    /// Adds a sample. Samples older than some round trips are forgotten.
    pub(crate) fn add(&mut self, sample: QueueObservation, rtt: Duration) {
        self.samples.push_back(sample);
        let keep = rtt.mul_f64(KEPT_ROUND_TRIPS).max(MIN_KEPT);
        while self.samples.len() > 1 && self.samples[0].at + keep < sample.at {
            self.samples.pop_front();
        }
    }

    /// The newest queueing delay, s; 0 if there is none.
    pub(crate) fn newest(&self) -> f64 {
        let newest_first = self.samples.iter().rev();
        newest_first
            .filter_map(|sample| sample.queueing)
            .next()
            .unwrap_or(0.0)
    }

    /// Mean rate over the last `time`, byte/s; `None` while that is longer
    /// than what is remembered. A window arrives in bunches, one in each round
    /// trip: over any other time the rate would seem to swing.
    pub(crate) fn rate(&self, time: Duration) -> Option<f64> {
        let last = self.samples.back()?;
        let from = last.at.checked_sub(time)?;
        let after = self.samples.iter().position(|sample| sample.at > from)?;
        let (before, after) = (
            self.samples.get(after.checked_sub(1)?)?,
            self.samples[after],
        );
        let bytes = after.bytes.saturating_sub(before.bytes) as f64;
        let share = (from - before.at).div_duration_f64(after.at - before.at);
        let since = last.bytes.saturating_sub(before.bytes) as f64 - bytes * share;
        Some(since / time.as_secs_f64())
    }

    /// The queueing delay that has been there all through the last round trip,
    /// s. Of a flow that carries little (`is_small`) a single measurement may be
    /// wrong.
    pub(crate) fn standing(&self, rtt: Duration, is_small: bool) -> f64 {
        let Some(now) = self.samples.back().map(|sample| sample.at) else {
            return 0.0;
        };
        let mut delays: Vec<f64> = self.delays(now.saturating_sub(rtt), now).collect();
        let place = if delays.is_empty() || is_small && delays.len() <= FEW_SAMPLES {
            let newest_first = self.samples.iter().rev();
            delays = newest_first
                .filter_map(|sample| sample.queueing)
                .take(3)
                .collect();
            delays.len() / 2
        } else {
            delays.len() / STANDING_RANK
        };
        delays.sort_by(f64::total_cmp);
        delays.get(place).copied().unwrap_or(0.0)
    }

    /// The recent rise of the queueing delay, s; `None` if nothing is known.
    pub(crate) fn rise(&self, rtt: Duration) -> Option<f64> {
        let last = self.samples.back()?;
        last.queueing?;
        let fresh = MIN_FRESH.max(rtt.mul_f64(FRESH_SHARE));
        let split = last.at.saturating_sub(fresh);
        let new = self.delays(split, last.at).reduce(f64::min)?;
        let from = split.saturating_sub(rtt.mul_f64(2.0));
        let before = self.delays(from, split.saturating_sub(Duration::from_nanos(1)));
        Some(new - before.reduce(f64::min)?)
    }

    /// By how much our own window has grown, bytes: the most by which it was
    /// ever above what it had been before.
    pub(crate) fn growth(&self) -> f64 {
        let (mut min, mut growth) = (f64::INFINITY, 0.0_f64);
        for sample in &self.samples {
            min = min.min(sample.window);
            growth = growth.max(sample.window - min);
        }
        growth
    }

    /// Queueing delays that were seen between two moments, both included, s.
    fn delays(&self, from: Duration, until: Duration) -> impl Iterator<Item = f64> {
        let within = self.samples.iter();
        let within = within.filter(move |sample| (from..=until).contains(&sample.at));
        within.filter_map(|sample| sample.queueing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Looks every 20 ms, with these delays in ms.
    fn history(delays: &[Option<f64>]) -> History {
        let mut history = History::default();
        for (number, delay) in (0..).zip(delays) {
            let look = QueueObservation {
                at: at(1000 + 20 * number),
                bytes: 2500 * number,
                queueing: delay.map(|ms| ms * 1e-3),
                window: 50_000.0,
            };
            history.add(look, RTT);
        }
        history
    }

    #[test]
    fn a_rate_is_a_mean_over_the_given_time() {
        let history = history(&[Some(0.0); 12]);
        for time in [20, 50, 100, 133] {
            let rate = history.rate(at(time)).unwrap();
            assert!((rate - 125_000.0).abs() < 1e-3, "{rate} over {time} ms");
        }
        assert_eq!(history.rate(at(500)), None, "so much is not remembered");
    }

    #[test]
    fn a_queue_stands_if_it_is_always_there() {
        let standing = |delays: &[Option<f64>]| (history(delays).standing(RTT, true) * 1e3).round();
        assert_eq!(
            standing(&[
                Some(0.0),
                Some(9.0),
                Some(9.0),
                Some(0.0),
                Some(9.0),
                Some(9.0)
            ]),
            0.0
        );
        assert_eq!(standing(&[Some(9.0); 6]), 9.0);
        // One of few is wrong.
        let few = [
            Some(60.0),
            None,
            None,
            None,
            Some(0.0),
            None,
            None,
            None,
            Some(58.0),
        ];
        assert_eq!(standing(&few), 58.0);
        assert_eq!(standing(&[None; 5]), 0.0);
    }

    #[test]
    fn a_rise_is_the_new_delay_minus_the_old() {
        let mut delays = vec![Some(3.0); 10];
        assert_eq!(history(&delays).rise(RTT), Some(0.0));
        delays.extend([Some(15.0); 3]);
        let rise = history(&delays).rise(RTT).unwrap();
        assert!((rise - 0.012).abs() < 1e-9, "{rise}");
        delays.push(None);
        assert_eq!(history(&delays).rise(RTT), None, "nothing has come");
    }

    #[test]
    fn a_window_that_shrinks_has_not_grown() {
        let mut history = History::default();
        for (number, window) in (0..).zip([30.0, 30.0, 10.0, 14.0, 12.0]) {
            let look = QueueObservation {
                at: at(20 * number),
                bytes: 0,
                queueing: None,
                window,
            };
            history.add(look, RTT);
        }
        assert_eq!(history.growth(), 4.0);
    }

    #[test]
    fn old_samples_and_their_growth_are_forgotten() {
        let mut history = History::default();
        for number in 0..60 {
            let look = QueueObservation {
                at: at(20 * number),
                bytes: 0,
                queueing: None,
                window: if number < 10 { 10.0 } else { 30.0 },
            };
            history.add(look, RTT);
            if number == 20 {
                assert_eq!(history.growth(), 20.0);
            }
        }
        assert_eq!(history.growth(), 0.0);
    }
}
