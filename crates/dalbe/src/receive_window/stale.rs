//! Whether a new connection would be faster than the present one, and how often
//! one may be tried.
//!
//! While a flow yields, it shares the losses of the other traffic, and they cut
//! its sender's congestion window (CUBIC, RFC 9438: by 30 % each time). A
//! bandwidth estimate (BBR) forgets the capacity within ten round trips. When
//! the path is free again, the receiver can offer any window, but CUBIC grows
//! back over seconds, and BBR by a quarter in eight round trips. A new
//! connection doubles its window each round trip, from ten segments on (slow
//! start, RFC 5681 and RFC 6928).
//!
//! [`StaleSender`] finds the slow sender. [`ConnectionRenewals`] decides how often
//! a new connection may take its place.

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
    /// The rate of the connection.
    carried: CapacityEstimate,
    /// Bytes and segments out of order at the last sample.
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

/// A period in which the flow may have yielded.
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
    /// The highest rate until then, byte/s.
    carried: f64,
}

/// The present round trip.
#[derive(Debug, Clone, Copy)]
struct RoundTrip {
    began: Duration,
    bytes: u64,
    /// The window at its beginning, bytes.
    window: f64,
    /// The window one round trip earlier. The data of this round trip was sent under
    /// it.
    offered: f64,
    min_queueing: f64,
}

/// A complete round trip, or the mean of several.
#[derive(Debug, Clone, Copy, Default)]
struct RoundRate {
    /// byte/s
    rate: f64,
    /// The rate that the window allowed, byte/s.
    offered: f64,
}

impl StaleSender {
    /// Takes the rate of another connection over the path, byte/s.
    pub(crate) fn learn(&mut self, at: Duration, carried: f64) {
        self.carried.learn(at, carried);
    }

    /// The highest recent rate, byte/s; 0 while it is unknown.
    pub(crate) fn carried(&self, now: Duration) -> f64 {
        self.carried.rate(now)
    }

    /// Whether there was a queue at the last sample.
    pub(crate) fn meets_queue(&self) -> bool {
        self.meets_queue
    }

    /// Skips data that does not count: the next response is awaited, or w is 1.
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

    /// The rate of the sender, byte/s, if it is so far below the capacity of the path
    /// that a new connection would be faster. `remaining` bytes are still to come.
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
        // A rate that the sender already exceeds does not measure the path.
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

/// Least time between two trials. It doubles after each trial in vain.
const MIN_RENEWAL_INTERVAL: Duration = Duration::from_secs(5);
/// After this many trials in vain in a row, the server limits its rate itself,
/// and there are no more trials.
const MAX_FAILED_TRIALS: u32 = 3;
/// This many trials without a clear result count as one in vain.
const UNCLEAR_PER_FAILURE: u32 = 4;
/// A new connection is faster if it carries this many times the old rate.
const SUCCESS_FACTOR: f64 = 1.3;
/// The judgement begins after this time: slow start is over, and a server that
/// leaves the first second of a response unlimited (nginx's `limit_rate_after`)
/// has begun to limit it.
const SETTLING_TIME: Duration = Duration::from_secs(1);
/// The judgement takes this time.
const JUDGEMENT_TIME: Duration = Duration::from_secs(1);

/// The trials of new connections on one path.
#[derive(Debug, Clone, Copy, Default)]
pub struct ConnectionRenewals {
    /// No other trial before this time.
    not_before: Duration,
    /// Failed trials since the last success, in parts of [`UNCLEAR_PER_FAILURE`].
    failures: u32,
    trial: Option<RenewalTrial>,
}

/// A new connection under judgement.
#[derive(Debug, Clone, Copy)]
struct RenewalTrial {
    /// Rate of the old connection, byte/s.
    old: f64,
    began: Duration,
    /// When the judgement began, and the bytes then.
    from: Option<(Duration, u64)>,
    samples: u32,
    /// Samples with a queue.
    queued: u32,
}

impl ConnectionRenewals {
    /// Whether a new connection may be tried now.
    #[must_use]
    pub fn allows(&self, now: Duration) -> bool {
        now >= self.not_before && self.failures < MAX_FAILED_TRIALS * UNCLEAR_PER_FAILURE
    }

    /// Begins a trial: a new connection replaces one with the rate `old`, byte/s.
    pub fn begin(&mut self, now: Duration, old: f64) {
        self.failures += u32::from(self.trial.is_some());
        self.trial = Some(RenewalTrial {
            old,
            began: now,
            from: None,
            samples: 0,
            queued: 0,
        });
        self.postpone(now);
    }

    /// Whether a new connection is under judgement.
    #[must_use]
    pub fn is_on_trial(&self) -> bool {
        self.trial.is_some()
    }

    /// Judges the new connection, which has received `bytes` since it was opened. If
    /// it meets a queue, the path is no longer free.
    pub fn observe(&mut self, now: Duration, bytes: u64, meets_queue: bool) {
        let Some(trial) = &mut self.trial else {
            return;
        };
        if now < trial.began + SETTLING_TIME {
            return;
        }
        let (from, before) = *trial.from.get_or_insert((now, bytes));
        trial.samples += 1;
        trial.queued += u32::from(meets_queue);
        let elapsed = now.saturating_sub(from);
        if elapsed < JUDGEMENT_TIME {
            return;
        }
        let rate = bytes.saturating_sub(before) as f64 / elapsed.as_secs_f64();
        let is_disturbed = 2 * trial.queued > trial.samples;
        let began = trial.began;
        self.failures = if rate >= SUCCESS_FACTOR * trial.old {
            0
        } else {
            self.failures + if is_disturbed { 1 } else { UNCLEAR_PER_FAILURE }
        };
        self.postpone(began);
        self.trial = None;
    }

    /// Sets the time of the next trial after one that began at this time.
    fn postpone(&mut self, began: Duration) {
        let in_vain = (self.failures / UNCLEAR_PER_FAILURE).min(MAX_FAILED_TRIALS);
        self.not_before = began + MIN_RENEWAL_INTERVAL * (1 << in_vain);
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod renewal_tests {
    use super::*;

    const OLD: f64 = 100_000.0;

    fn s(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    /// A trial at this moment, of a connection with this rate; until it is
    /// judged.
    fn trial(renewals: &mut ConnectionRenewals, at: f64, rate: f64, meets_queue: bool) {
        assert!(renewals.allows(s(at)), "{at}: {renewals:?}");
        renewals.begin(s(at), OLD);
        for look in 1..150 {
            let after = f64::from(look) * 0.02;
            // As nginx under `limit_rate`: a second's worth at once.
            let bytes = rate * (after + 1.0);
            renewals.observe(s(at + after), bytes as u64, meets_queue);
        }
        assert!(!renewals.is_on_trial());
    }

    /// Seconds until the next may be tried; `None` if never.
    fn pause(renewals: &ConnectionRenewals, at: f64) -> Option<f64> {
        (1..1000)
            .map(f64::from)
            .find(|pause| renewals.allows(s(at + pause)))
    }

    #[test]
    fn a_successful_trial_may_be_repeated() {
        let mut renewals = ConnectionRenewals::default();
        for trial_at in [3.0, 8.0, 13.0, 100.0, 105.0] {
            trial(&mut renewals, trial_at, 5.0 * OLD, false);
            assert_eq!(pause(&renewals, trial_at), Some(5.0));
        }
    }

    #[test]
    fn a_server_that_limits_its_rate_gets_three_trials() {
        let mut renewals = ConnectionRenewals::default();
        trial(&mut renewals, 3.0, OLD, false);
        assert_eq!(pause(&renewals, 3.0), Some(10.0));
        trial(&mut renewals, 13.0, OLD, false);
        assert_eq!(pause(&renewals, 13.0), Some(20.0));
        trial(&mut renewals, 33.0, OLD, false);
        assert_eq!(pause(&renewals, 33.0), None);
    }

    #[test]
    fn one_success_makes_up_for_failures() {
        let mut renewals = ConnectionRenewals::default();
        trial(&mut renewals, 3.0, OLD, false);
        trial(&mut renewals, 13.0, OLD, false);
        trial(&mut renewals, 33.0, 1.5 * OLD, false);
        assert_eq!(pause(&renewals, 33.0), Some(5.0));
    }

    #[test]
    fn a_disturbed_trial_counts_as_a_part_of_a_failure() {
        let mut renewals = ConnectionRenewals::default();
        let mut at = 0.0;
        let mut trials = 0;
        while let Some(after) = pause(&renewals, at) {
            at += after;
            trial(&mut renewals, at, 0.5 * OLD, true);
            trials += 1;
        }
        assert_eq!(trials, MAX_FAILED_TRIALS * UNCLEAR_PER_FAILURE);
    }

    #[test]
    fn a_new_connection_that_never_came_counts_as_disturbed() {
        let mut renewals = ConnectionRenewals::default();
        for trial in 0..MAX_FAILED_TRIALS * UNCLEAR_PER_FAILURE {
            let at = s(100.0 * f64::from(trial));
            assert!(renewals.allows(at));
            renewals.begin(at, OLD);
        }
        trial(&mut renewals, 2000.0, 2.0 * OLD, false);
        assert_eq!(pause(&renewals, 2000.0), Some(5.0));
    }
}
