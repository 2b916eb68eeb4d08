//! When a fresh connection would do better than the one at hand.
//!
//! While a flow yields, the others' losses are its own too, and they cut its
//! sender's congestion window (CUBIC, RFC 9438: by 30 % each time); a
//! bandwidth estimate (BBR) forgets what the path carries within ten round
//! trips. When the path is free again the receiver may offer what it likes:
//! CUBIC grows back over seconds, BBR by a quarter in eight round trips. A
//! new connection doubles its window each round trip from ten segments on
//! (slow start, RFC 5681 and RFC 6928).
//!
//! Knows nothing of requests, nor how often a path may bear it
//! ([`super::ConnectionRenewals`]).

use std::collections::VecDeque;
use std::time::Duration;

use super::SHORT_QUEUE;
use super::yielding::ConnectionSample;
use crate::weight::CapacityEstimate;

/// A queueing delay that is longer than a short one by this share of the base
/// is a queue: of a flow that is nearly at rest a round-trip time is known no
/// better.
const QUEUE_SHARE: f64 = 0.05;

/// What counts as a yield is decided over this time: shorter ones cost the
/// sender little.
const PERIOD: Duration = Duration::from_secs(1);
/// A yield is a period in which a queue was seen at more than this share of
/// the looks at which anything had come ...
const QUEUED: f64 = 0.5;
/// ... and in which the window was at most this share of today's.
const HELD: f64 = 0.5;
/// A yield explains a slow sender for this time: CUBIC is back at its old
/// window by then (RFC 9438: K = 5.3 s for a window of 200 segments).
const EXPLAINS: Duration = Duration::from_secs(10);

/// RoundTrip trips over which the sender has to fall short: BBR probes once in
/// eight, and the window's own steps show one round trip later.
const ROUNDS: usize = 4;
/// It falls short with less than this share of the window.
const SHORT: f64 = 0.7;
/// It does not catch up either if the later half of the round trips brings
/// less than this many times the former half: slow start has 4, or 2.25 with
/// delayed acknowledgements.
const CATCHES_UP: f64 = 1.5;
/// Nothing may have been lost for this time: where losses go on, slow start
/// ends early too.
const LOSSLESS: Duration = Duration::from_secs(1);

/// So many windows have to be left for a handshake, a request and what is
/// thrown away (two round trips and a half) to be little.
const WORTH: f64 = 20.0;

/// What is seen of a connection, look by look.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SenderSample {
    /// RoundTrip-trip time, s.
    pub(crate) rtt: f64,
    /// RoundTrip-trip time without a queue, s.
    pub(crate) base: f64,
    /// Queueing delay since the last look, s; `None` if nothing came.
    pub(crate) queueing: Option<f64>,
    /// Bytes received since the connection was opened.
    pub(crate) bytes: u64,
    /// Segments received out of order since the connection was opened.
    pub(crate) out_of_order: u32,
    /// The window offered, bytes.
    pub(crate) window: f64,
}

impl SenderSample {
    /// What was seen under this window, bytes.
    pub(crate) fn of(seen: &ConnectionSample, window: f64) -> Self {
        Self {
            rtt: seen.rtt.as_secs_f64(),
            base: seen.base.as_secs_f64(),
            queueing: seen.queueing,
            bytes: seen.bytes,
            out_of_order: seen.out_of_order,
            window,
        }
    }
}

/// Whether a connection's sender lags behind a path that has become free.
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
    /// Looks at which something had come.
    looks: u32,
    /// Those at which there was a queue.
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
    least_queueing: f64,
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

    /// The next response is awaited, or there is no brake: what comes now says
    /// nothing.
    pub(crate) fn pause(&mut self, bytes: u64) {
        self.bytes = Some(bytes);
        self.round = None;
        self.period = None;
    }

    /// Looks at the connection.
    pub(crate) fn update(&mut self, now: Duration, look: &SenderSample) {
        let before = self.bytes.replace(look.bytes).unwrap_or(look.bytes);
        self.carried.record(now, look.bytes.saturating_sub(before));
        (self.window, self.rtt) = (look.window, look.rtt);
        self.meets_queue = look
            .queueing
            .is_some_and(|queueing| look.is_queue(queueing));
        if look.out_of_order != self.out_of_order {
            self.out_of_order = look.out_of_order;
            self.last_loss = now;
            self.rounds.clear();
        }
        self.note_yield(now, look);
        self.note_round(now, look);
    }

    fn note_yield(&mut self, now: Duration, look: &SenderSample) {
        let period = self.period.get_or_insert(YieldPeriod {
            began: now,
            looks: 0,
            queued: 0,
            window: 0.0,
        });
        period.looks += u32::from(look.queueing.is_some());
        period.queued += u32::from(self.meets_queue);
        period.window = period.window.max(look.window);
        if now < period.began + PERIOD {
            return;
        }
        let YieldPeriod {
            looks,
            queued,
            window,
            ..
        } = *period;
        self.period = None;
        if f64::from(queued) > QUEUED * f64::from(looks) {
            self.yields.push_back(PastYield {
                until: now,
                window,
                carried: self.carried(now),
            });
        }
        while self
            .yields
            .front()
            .is_some_and(|old| old.until + EXPLAINS < now)
        {
            self.yields.pop_front();
        }
    }

    fn note_round(&mut self, now: Duration, look: &SenderSample) {
        let began = |offered| RoundTrip {
            began: now,
            bytes: look.bytes,
            window: look.window,
            offered,
            least_queueing: f64::INFINITY,
        };
        let round = self.round.get_or_insert_with(|| began(look.window));
        if let Some(queueing) = look.queueing {
            round.least_queueing = round.least_queueing.min(queueing);
        }
        let elapsed = now.saturating_sub(round.began).as_secs_f64();
        if elapsed < look.rtt {
            return;
        }
        let over = std::mem::replace(round, began(round.window));
        if over.least_queueing.is_infinite() {
            // Nothing came: the sender has paused, or nobody reads.
            self.rounds.clear();
        } else if look.is_queue(over.least_queueing) {
            self.rounds.clear();
        } else {
            self.rounds.push_back(RoundRate {
                rate: look.bytes.saturating_sub(over.bytes) as f64 / elapsed,
                offered: over.offered / look.rtt,
            });
        }
        if self.rounds.len() > ROUNDS {
            self.rounds.pop_front();
        }
    }

    /// The rate of the sender, byte/s, if it is so far behind what the path
    /// may carry that a fresh connection would do better; `remaining` bytes
    /// are still to come, over whatever connection.
    pub(crate) fn rate(&self, now: Duration, remaining: u64) -> Option<f64> {
        if self.rounds.len() < ROUNDS || self.meets_queue || now < self.last_loss + LOSSLESS {
            return None;
        }
        let former = RoundRate::mean(self.rounds.range(..ROUNDS / 2));
        let later = RoundRate::mean(self.rounds.range(ROUNDS / 2..));
        let is_short = |half: RoundRate| half.rate < SHORT * half.offered;
        if !is_short(former) || !is_short(later) || later.rate >= CATCHES_UP * former.rate {
            return None;
        }
        let rate = later.rate;
        let yields = self
            .yields
            .iter()
            .filter(|old| now <= old.until + EXPLAINS && old.window <= HELD * self.window);
        let before = yields.map(|old| old.carried).reduce(f64::max)?;
        // What it exceeds already is no measure of the path.
        if rate < before && rate > SHORT * before {
            return None;
        }
        let window = self.window.max(before * self.rtt);
        (remaining as f64 >= WORTH * window).then_some(rate)
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

impl SenderSample {
    fn is_queue(&self, queueing: f64) -> bool {
        queueing > SHORT_QUEUE + QUEUE_SHARE * self.base
    }
}

#[cfg(test)]
mod tests;
