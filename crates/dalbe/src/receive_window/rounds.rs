//! What a round trip has shown: rate, queue and losses.

use std::collections::VecDeque;
use std::time::Duration;

use crate::receive_window::ConnectionSample;

/// A round takes at least this long: a shorter one holds too few samples.
pub(crate) const MIN_ROUND: Duration = Duration::from_millis(20);

/// So many samples in a row of a long queue end a round at once.
const LONG_QUEUE_SAMPLES: u32 = 3;

/// The steady rate is a mean over this many round trips.
const STEADY_ROUND_TRIPS: f64 = 3.0;

/// Bytes are remembered for this many round trips, ...
const KEPT_ROUND_TRIPS: f64 = 4.0;
/// ... and for at least this time.
const MIN_KEPT: Duration = Duration::from_millis(200);

/// From this many segments out of order on, a segment counts as lost. Fewer
/// have overtaken each other (RFC 5681, section 3.2).
pub(crate) const MIN_LOST_SEGMENTS: u32 = 3;

/// Until so many round trips after a loss, data arrives in holes, ...
pub(crate) const REPAIR_ROUND_TRIPS: f64 = 4.0;
/// ... and for at least this time, s (RFC 6298: Linux retransmits after 200 ms).
pub(crate) const MIN_REPAIR: f64 = 0.25;

/// A standing queue is there all the time, a burst is not: the standing queue is between
/// the smallest and the mean delay of a round, and closer to the smallest.
const WEIGHT_OF_MIN: f64 = 0.7;

/// One round trip.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Round {
    /// Byte/s, over exactly one round trip: a window arrives in bunches, and over any
    /// other time the rate would seem to swing.
    pub(crate) rate: f64,
    /// Segments per second, over some of them.
    pub(crate) steady: f64,
    /// Least, mean and longest queueing delay, s.
    pub(crate) min: f64,
    pub(crate) mean: f64,
    pub(crate) max: f64,
    /// Segments that came out of order.
    pub(crate) out_of_order: u32,
}

impl Round {
    pub(crate) fn is_lost(&self) -> bool {
        self.out_of_order >= MIN_LOST_SEGMENTS
    }

    /// The same delays as far as they are longer than `wait`, s: a packet that waits for
    /// its burst is in no queue.
    pub(crate) fn beyond(&self, wait: f64) -> Self {
        Self {
            min: (self.min - wait).max(0.0),
            mean: (self.mean - wait).max(0.0),
            max: (self.max - wait).max(0.0),
            ..*self
        }
    }

    /// The standing queue, s.
    pub(crate) fn standing(&self) -> f64 {
        WEIGHT_OF_MIN * self.min + (1.0 - WEIGHT_OF_MIN) * self.mean
    }
}

/// The present round trip.
#[derive(Debug, Clone, Copy)]
struct Present {
    began: Duration,
    bytes: u64,
    out_of_order: u32,
    delays: Delays,
    /// The latest samples, as far as all of them have a long queue.
    long: Delays,
}

/// Queueing delays, s.
#[derive(Debug, Clone, Copy)]
struct Delays {
    min: f64,
    max: f64,
    sum: f64,
    count: u32,
}

impl Delays {
    const NONE: Self = Self {
        min: f64::INFINITY,
        max: 0.0,
        sum: 0.0,
        count: 0,
    };

    fn add(&mut self, delay: f64) {
        self.min = self.min.min(delay);
        self.max = self.max.max(delay);
        self.sum += delay;
        self.count += 1;
    }
}

/// The round trips of one connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rounds {
    present: Option<Present>,
    /// When how many bytes had come.
    bytes: VecDeque<(Duration, u64)>,
    /// Newest queueing delay, s.
    newest: f64,
    /// Rate of the last round trip, byte/s.
    rate: f64,
}

impl Rounds {
    /// Rate of the last round trip, byte/s.
    pub(crate) fn rate(&self) -> f64 {
        self.rate
    }

    /// The round-trip time now.
    pub(crate) fn rtt(&self, base: Duration) -> Duration {
        base + Duration::from_secs_f64(self.newest)
    }

    /// Takes a sample that is no part of a round trip to go by.
    pub(crate) fn skip(&mut self, now: Duration, sample: &ConnectionSample) {
        self.record(now, sample);
        self.begin(now, sample);
    }

    /// Takes a sample; returns the round trip that is over with it. A queue of more than
    /// `long`, s, is seen before a round trip is over.
    pub(crate) fn update(
        &mut self,
        now: Duration,
        sample: &ConnectionSample,
        long: f64,
    ) -> Option<Round> {
        self.record(now, sample);
        let Some(present) = &mut self.present else {
            self.begin(now, sample);
            return None;
        };
        if let Some(queueing) = sample.queueing {
            present.delays.add(queueing);
            if queueing > long {
                present.long.add(queueing);
            } else {
                present.long = Delays::NONE;
            }
        }
        let present = *present;
        let elapsed = now.saturating_sub(present.began);
        let is_over = elapsed >= self.rtt(sample.base).max(MIN_ROUND) && present.delays.count > 0;
        let is_long = present.long.count >= LONG_QUEUE_SAMPLES;
        if !is_over && !is_long {
            return None;
        }
        let delays = if is_long {
            present.long
        } else {
            present.delays
        };
        let mean = delays.sum / f64::from(delays.count);
        let all = sample.bytes.saturating_sub(present.bytes) as f64 / elapsed.as_secs_f64();
        let rtt = sample.base + Duration::from_secs_f64(mean);
        let steady = self.mean_rate(rtt.mul_f64(STEADY_ROUND_TRIPS));
        self.rate = self.mean_rate(rtt).unwrap_or(all);
        self.begin(now, sample);
        Some(Round {
            rate: self.rate,
            steady: steady.unwrap_or(all) / sample.segment,
            min: delays.min,
            mean,
            max: delays.max,
            out_of_order: sample.out_of_order.wrapping_sub(present.out_of_order),
        })
    }

    fn begin(&mut self, now: Duration, sample: &ConnectionSample) {
        self.present = Some(Present {
            began: now,
            bytes: sample.bytes,
            out_of_order: sample.out_of_order,
            delays: Delays::NONE,
            long: Delays::NONE,
        });
    }

    fn record(&mut self, now: Duration, sample: &ConnectionSample) {
        self.newest = sample.queueing.unwrap_or(self.newest);
        self.bytes.push_back((now, sample.bytes));
        let keep = self.rtt(sample.base).mul_f64(KEPT_ROUND_TRIPS);
        while self.bytes.len() > 1 && self.bytes[0].0 + keep.max(MIN_KEPT) < now {
            self.bytes.pop_front();
        }
    }

    /// Mean rate over the last `time`, byte/s; `None` while that is longer than what is
    /// remembered.
    fn mean_rate(&self, time: Duration) -> Option<f64> {
        let &(now, last) = self.bytes.back()?;
        let from = now.checked_sub(time)?;
        let after = self.bytes.iter().position(|(at, _)| *at > from)?;
        let (before, bytes_before) = *self.bytes.get(after.checked_sub(1)?)?;
        let (after, bytes_after) = self.bytes[after];
        let share = (from - before).div_duration_f64(after - before);
        let bytes = bytes_after.saturating_sub(bytes_before) as f64;
        let since = last.saturating_sub(bytes_before) as f64 - bytes * share;
        Some(since / time.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: Duration = Duration::from_millis(100);

    /// Samples every 20 ms with these delays in ms, at 125 kB/s; the rounds that end.
    fn rounds(delays: &[Option<f64>], long: f64) -> Vec<Round> {
        let mut rounds = Rounds::default();
        let mut ended = Vec::new();
        for (number, delay) in (0..).zip(delays) {
            let sample = ConnectionSample {
                rtt: BASE,
                base: BASE,
                queueing: delay.map(|ms| ms * 1e-3),
                segment: 1448.0,
                bytes: 2500 * number,
                out_of_order: if number > 7 { 3 } else { 0 },
                excess: 0.0,
            };
            let now = Duration::from_secs(1) + 20 * number as u32 * Duration::from_millis(1);
            ended.extend(rounds.update(now, &sample, long));
        }
        ended
    }

    #[test]
    fn a_round_is_a_round_trip() {
        let ended = rounds(&[Some(0.0); 13], f64::INFINITY);
        assert_eq!(ended.len(), 2);
        for round in &ended {
            assert!((round.rate - 125_000.0).abs() < 1e-3, "{round:?}");
        }
        assert!(!ended[0].is_lost() && ended[1].is_lost());
    }

    #[test]
    fn a_burst_is_no_standing_queue() {
        let burst: Vec<_> = (0..7)
            .map(|n| Some(if n == 3 { 12.0 } else { 0.0 }))
            .collect();
        let ended = rounds(&burst, f64::INFINITY);
        assert!(ended[0].standing() < 0.001, "{ended:?}");
        assert_eq!(ended[0].max, 0.012);
        let stands = rounds(&[Some(12.0); 8], f64::INFINITY);
        assert!((stands[0].standing() - 0.012).abs() < 1e-9, "{stands:?}");
    }

    #[test]
    fn a_long_queue_is_seen_within_a_round_trip() {
        let mut delays = vec![Some(0.0); 6];
        delays.extend([Some(30.0); 3]);
        let ended = rounds(&delays, 0.02);
        assert_eq!(ended.len(), 2);
        assert_eq!((ended[1].min, ended[1].max), (0.03, 0.03));
    }

    #[test]
    fn a_round_without_data_goes_on() {
        assert!(rounds(&[None; 20], f64::INFINITY).is_empty());
    }
}
