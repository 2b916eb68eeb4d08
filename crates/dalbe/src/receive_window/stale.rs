//! Whether a new connection would be faster than the present one.
//!
//! While a flow yields, it shares the losses of the other traffic, and they cut
//! its sender's congestion window (CUBIC, RFC 9438: by 30 % each time). A
//! bandwidth estimate (BBR) forgets the capacity within ten round trips. When
//! the path is free again, the receiver can offer any window, but CUBIC grows
//! back over seconds, and BBR by a quarter in eight round trips. A new
//! connection doubles its window each round trip, from ten segments on (slow
//! start, RFC 5681 and RFC 6928).
//!
//! [`super::ConnectionRenewals`] decides how often a new connection may be
//! tried.

use std::collections::VecDeque;
use std::time::Duration;

use super::{ConnectionSample, SHORT_QUEUE};
use crate::weight::CapacityEstimate;

/// A delay beyond a short queue by this share of the base is a queue. For a
/// flow that is nearly at rest, the round-trip time is not known better.
const QUEUE_SHARE: f64 = 0.05;

/// A yield is detected over this time. Shorter yields cost the sender little.
const YIELD_PERIOD: Duration = Duration::from_secs(1);
/// A yield is a period with a queue in more than this share of the samples with
/// data, ...
const MIN_QUEUED_SHARE: f64 = 0.5;
/// ... in which the window was at most this share of the present one.
const MAX_HELD_SHARE: f64 = 0.5;
/// A yield explains a slow sender for this time. CUBIC is back at its old
/// window by then (RFC 9438: K = 5.3 s for a window of 200 segments).
const YIELD_EFFECT: Duration = Duration::from_secs(10);

/// The sender must be slow over this many round trips: BBR probes once in
/// eight, and a step of the window shows one round trip later.
const MIN_SLOW_ROUND_TRIPS: usize = 4;
/// A sender is slow below this share of the window.
const MAX_SLOW_SHARE: f64 = 0.7;
/// A sender catches up if the second half of these round trips carries this
/// many times the first half. Slow start has a factor of 4, or 2.25 with
/// delayed acknowledgements.
const CATCH_UP_FACTOR: f64 = 1.5;
/// No loss for this time: with losses, slow start ends early too.
const MIN_LOSSLESS_TIME: Duration = Duration::from_secs(1);

/// At least this many windows must remain. A new connection costs a handshake,
/// a request and discarded data: two and a half round trips.
const MIN_REMAINING_WINDOWS: f64 = 20.0;

/// Whether the sender of a connection lags behind a path that has become free.
#[derive(Debug, Clone, Default)]
pub(crate) struct StaleSender {
    /// What the connection has carried.
    carried: CapacityEstimate,
    /// At the last look.
    bytes: Option<u64>,
    out_of_order: u32,
    last_loss: Duration,
    period: Option<YieldPeriod>,
    yields: VecDeque<PastYield>,
    round: Option<RoundTrip>,
    /// The latest round trips, as long as there was no queue.
    rounds: VecDeque<RoundRate>,
    /// The window now, bytes.
    window: f64,
    rtt: f64,
    meets_queue: bool,
}

/// A stretch of time in which it may have yielded.
#[derive(Debug, Clone, Copy)]
struct YieldPeriod {
    began: Duration,
    /// Samples with data.
    samples: u32,
    /// Samples with a queue.
    queued: u32,
    /// Widest window, bytes.
    window: f64,
}

#[derive(Debug, Clone, Copy)]
struct PastYield {
    until: Duration,
    /// Widest window meanwhile, bytes.
    window: f64,
    /// The most that had been carried by then, byte/s.
    carried: f64,
}

/// The round trip at hand.
#[derive(Debug, Clone, Copy)]
struct RoundTrip {
    began: Duration,
    bytes: u64,
    /// The window at its beginning, bytes.
    window: f64,
    /// The window one round trip earlier: what comes now was sent under it.
    offered: f64,
    min_queueing: f64,
}

/// A round trip that is over, or the mean of some.
#[derive(Debug, Clone, Copy, Default)]
struct RoundRate {
    /// byte/s
    rate: f64,
    /// What the window would have allowed, byte/s.
    offered: f64,
}

impl StaleSender {
    /// Another connection over the path has carried this, byte/s.
    pub(crate) fn learn(&mut self, at: Duration, carried: f64) {
        self.carried.learn(at, carried);
    }

    /// The most that was carried of late, byte/s; 0 while nothing is known.
    pub(crate) fn carried(&self, now: Duration) -> f64 {
        self.carried.rate(now)
    }

    /// Whether there was a queue at the last look.
    pub(crate) fn meets_queue(&self) -> bool {
        self.meets_queue
    }

    /// The next response is awaited, or w is 1: what comes now says
    /// nothing.
    pub(crate) fn pause(&mut self, bytes: u64) {
        self.bytes = Some(bytes);
        self.round = None;
        self.period = None;
    }

    /// Takes a sample. The window on offer is `window` bytes.
    pub(crate) fn update(&mut self, now: Duration, sample: &ConnectionSample, window: f64) {
        let before = self.bytes.replace(sample.bytes).unwrap_or(sample.bytes);
        self.carried
            .record(now, sample.bytes.saturating_sub(before));
        (self.window, self.rtt) = (window, sample.rtt.as_secs_f64());
        self.meets_queue = sample
            .queueing
            .is_some_and(|queueing| is_queue(queueing, sample.base));
        if sample.out_of_order != self.out_of_order {
            self.out_of_order = sample.out_of_order;
            self.last_loss = now;
            self.rounds.clear();
        }
        self.note_yield(now, sample);
        self.note_round(now, sample);
    }

    fn note_yield(&mut self, now: Duration, sample: &ConnectionSample) {
        let period = self.period.get_or_insert(YieldPeriod {
            began: now,
            samples: 0,
            queued: 0,
            window: 0.0,
        });
        period.samples += u32::from(sample.queueing.is_some());
        period.queued += u32::from(self.meets_queue);
        period.window = period.window.max(self.window);
        if now < period.began + YIELD_PERIOD {
            return;
        }
        let YieldPeriod {
            samples,
            queued,
            window,
            ..
        } = *period;
        self.period = None;
        if f64::from(queued) > MIN_QUEUED_SHARE * f64::from(samples) {
            self.yields.push_back(PastYield {
                until: now,
                window,
                carried: self.carried(now),
            });
        }
        while self
            .yields
            .front()
            .is_some_and(|old| old.until + YIELD_EFFECT < now)
        {
            self.yields.pop_front();
        }
    }

    fn note_round(&mut self, now: Duration, sample: &ConnectionSample) {
        let (window, rtt) = (self.window, self.rtt);
        let began = |offered| RoundTrip {
            began: now,
            bytes: sample.bytes,
            window,
            offered,
            min_queueing: f64::INFINITY,
        };
        let round = self.round.get_or_insert_with(|| began(window));
        if let Some(queueing) = sample.queueing {
            round.min_queueing = round.min_queueing.min(queueing);
        }
        let elapsed = now.saturating_sub(round.began).as_secs_f64();
        if elapsed < rtt {
            return;
        }
        let over = std::mem::replace(round, began(round.window));
        if over.min_queueing.is_infinite() {
            // Nothing came: the sender has paused, or there is no reader.
            self.rounds.clear();
        } else if is_queue(over.min_queueing, sample.base) {
            self.rounds.clear();
        } else {
            self.rounds.push_back(RoundRate {
                rate: sample.bytes.saturating_sub(over.bytes) as f64 / elapsed,
                offered: over.offered / rtt,
            });
        }
        if self.rounds.len() > MIN_SLOW_ROUND_TRIPS {
            self.rounds.pop_front();
        }
    }

    /// The rate of the sender, byte/s, if it is so far behind what the path
    /// may carry that a fresh connection would do better; `remaining` bytes
    /// are still to come, over whatever connection.
    pub(crate) fn rate(&self, now: Duration, remaining: u64) -> Option<f64> {
        if self.rounds.len() < MIN_SLOW_ROUND_TRIPS
            || self.meets_queue
            || now < self.last_loss + MIN_LOSSLESS_TIME
        {
            return None;
        }
        let former = RoundRate::mean(self.rounds.range(..MIN_SLOW_ROUND_TRIPS / 2));
        let later = RoundRate::mean(self.rounds.range(MIN_SLOW_ROUND_TRIPS / 2..));
        let is_short = |half: RoundRate| half.rate < MAX_SLOW_SHARE * half.offered;
        if !is_short(former) || !is_short(later) || later.rate >= CATCH_UP_FACTOR * former.rate {
            return None;
        }
        let rate = later.rate;
        let yields = self.yields.iter().filter(|old| {
            now <= old.until + YIELD_EFFECT && old.window <= MAX_HELD_SHARE * self.window
        });
        let before = yields.map(|old| old.carried).reduce(f64::max)?;
        // What it exceeds already is no measure of the path.
        if rate < before && rate > MAX_SLOW_SHARE * before {
            return None;
        }
        let window = self.window.max(before * self.rtt);
        (remaining as f64 >= MIN_REMAINING_WINDOWS * window).then_some(rate)
    }
}

impl RoundRate {
    fn mean<'a>(rounds: impl Iterator<Item = &'a Self>) -> Self {
        let (mut sum, mut count) = (Self::default(), 0.0);
        for round in rounds {
            sum.rate += round.rate;
            sum.offered += round.offered;
            count += 1.0;
        }
        Self {
            rate: sum.rate / count,
            offered: sum.offered / count,
        }
    }
}

/// Whether this delay, s, over this base is a queue.
fn is_queue(queueing: f64, base: Duration) -> bool {
    queueing > SHORT_QUEUE + QUEUE_SHARE * base.as_secs_f64()
}

#[cfg(test)]
mod tests;
