//! What kind of queue the bottleneck of a path has, from what a receiver sees without
//! privilege.
//!
//! Losses tell the kinds apart, by the queue in which they come: a full queue loses data
//! at its longest delay, whether it is deep or short. A managed queue (CoDel, PIE) lets
//! the delay rise first, and then loses data far below. A policer loses data without any
//! delay. Without losses, only two kinds show: a rate that swings although data waits, and
//! a sender that does not fill the path.
//!
//! One connection cannot see a queue for each connection (fair queueing): it sees its own
//! queue, whatever others do. And a queue that marks packets in place of dropping them
//! stays unknown, as marks do not show at a receiver.

use std::time::Duration;

use super::bottleneck_kind::{BottleneckKind, PathFindings};
use super::rounds::{MIN_REPAIR, REPAIR_ROUND_TRIPS, Round, Rounds};
use super::{ConnectionSample, KEPT_AFTER_LOSS, TIMESTAMP_TICK};

/// The last packet before a hole may have come so many round trips ago, with this one.
const ROUNDS_OF_LOSS: usize = 3;

/// Delays are known to a tick of the timestamps. A delay that lasts for a round trip and is
/// shorter than this share of a tick is none, ...
const NO_QUEUE_TICKS: f64 = 0.5;
/// ... and one that is longer than this share of it is a queue, ...
const LEAST_QUEUE_TICKS: f64 = 0.9;
/// ... both and this share of the base (half of what the law allows for a single delay).
const NOISE_SHARE: f64 = 0.005;

/// From this share of the longest delay on, a loss is that of a full queue. Queues hold
/// bytes or packets, and lose a few packets' time below their longest delay.
const FULL_SHARE: f64 = 0.8;
/// Up to this share, ...
const LOW_SHARE: f64 = 0.4;
/// ... and so many packets below the longest delay, as a single burst lengthens it by a
/// few, a loss is that of a managed queue, ...
const LOW_PACKETS: f64 = 6.0;
/// ... if the delay is at least this, s: CoDel drops above 5 ms (RFC 8289, section 4.2),
/// PIE aims at 15 ms (RFC 8033, section 4.2). A tick and some noise are off.
const LEAST_MANAGED: f64 = 0.0035;
/// A queue that was never longer than so many packets may be managed although its losses
/// come at its longest delay: on slow links, CoDel's 5 ms are less than a packet.
const FEW_PACKETS: f64 = 4.0;
/// So many such losses, ...
const LOW_EVENTS: usize = 3;
/// ... and this share of those that came with a delay, tell. The first losses often come
/// in a burst of the sender, whose first packet has measured no queue yet.
const TELLING_SHARE: f64 = 0.6;

/// Losses of a full queue that tell, if it is deep and the rate is steady, so that nobody
/// else is there. If it is short, which noise may be as well, or if the rate is not known
/// to be steady, one more each.
const FULL_EVENTS: usize = 2;

/// Losses of one kind that tell beside others, which have losses and queues of their own,
/// ...
const EVENTS_BESIDE_OTHERS: usize = 5;
/// ... and the share of the longest delay that those of a managed queue then have.
const LOW_SHARE_BESIDE_OTHERS: f64 = 0.35;
/// Up to this share, losses may be those of a managed queue beside others.
const UNCERTAIN_SHARE: f64 = 0.65;

/// A queue that is shorter than this share of the base is short: what CUBIC keeps of its
/// window after a loss fills the link only if the queue was longer.
const SHORT_SHARE: f64 = 1.0 / KEPT_AFTER_LOSS - 1.0;

/// Losses without a delay that tell.
const EVENTS_WITHOUT_QUEUE: usize = 3;

/// Data waits at the bottleneck in a round whose least delay is this, s, ...
const WAITING: f64 = 0.002;
/// ... and so many packet times.
const WAITING_PACKETS: f64 = 3.0;
/// The rate of such rounds tells after so many.
const STEADY_ROUNDS: u32 = 10;
/// A flow that is alone carries all of the link: its rate differs by less than this share
/// (0.06 at the most in the simulated cells, 0.1 beside any other flow).
const STEADY_SHARE: f64 = 0.05;
/// A rate that differs by more than this share varies, ...
const VARYING_SHARE: f64 = 0.1;
/// ... and swings if so many rounds ...
const SWINGING_ROUNDS: u32 = 30;
/// ... differ from their neighbours by this much of that share. Of independent values it
/// is 1.13 or so. Beside flows that grow and yield slowly it was at most 0.72 in the
/// simulated cells, on radio at least 0.78.
const SWINGING_RATIO: f64 = 0.75;

/// A sender limits a flow that its window does not limit, and that meets neither queue
/// nor loss in this time, except after silences of the sender, ...
const UNLIMITED_TIME: Duration = Duration::from_secs(8);
/// ... and whose rate does not grow by more than this factor from one half of it to the
/// other. Slow start doubles in a round trip; CUBIC needs no more than 8 s to grow by a
/// tenth in all of the simulated cells.
const UNLIMITED_GROWTH: f64 = 1.1;

/// Samples that are further apart come from a machine whose processors were taken away.
/// Delays and losses of such a time are its own. The lever takes one every 20 ms.
const MAX_GAP: Duration = Duration::from_millis(60);

/// A sender that has nothing to send is silent for longer than a round trip. A delay after
/// that is its own. A silence counts for this time.
const SILENCE_TIME: Duration = Duration::from_secs(1);

/// Evidence counts for this time, and twice as long at the most: a path may change.
const EVIDENCE_TIME: Duration = Duration::from_secs(300);

/// Loss events that are remembered.
const MAX_EVENTS: usize = 64;

/// The evidence of one connection for the kind of its bottleneck.
#[derive(Debug, Clone, Default)]
pub(crate) struct BottleneckEvidence {
    rounds: Rounds,
    /// When the last sample was taken.
    sampled: Duration,
    /// Bytes so far, and when the last of them were seen.
    arrived: (u64, Duration),
    /// Whether data came between all samples of the present round.
    is_continuous: bool,
    /// Bytes; 0 before the first round.
    segment: f64,
    present: PeriodEvidence,
    /// When the present period began, and what the one before has shown.
    began: Duration,
    before: Option<BottleneckKind>,
}

/// What some time has shown. Delays are standing ones, s, rates segments per second.
#[derive(Debug, Clone, Default)]
struct PeriodEvidence {
    base: f64,
    /// The longest, which may be an accident of one round, and the longest but one. Each
    /// is used where it leaves more unknown.
    highest: f64,
    longest: f64,
    /// The highest rate without holes.
    rate: f64,
    /// The delays of the last rounds, the newest last.
    recent: [f64; ROUNDS_OF_LOSS],
    /// When data was last lost.
    lost: Option<Duration>,
    /// The delay at each loss event.
    events: Vec<f64>,
    waiting: WaitingRates,
    unlimited: Option<Unlimited>,
    /// When the sender was last silent for a round trip.
    silent: Option<Duration>,
}

/// The rates of rounds in which data waited.
#[derive(Debug, Clone, Copy, Default)]
struct WaitingRates {
    count: u32,
    sum: f64,
    squares: f64,
    /// Sum of the differences from one to the next.
    steps: f64,
    last: Option<f64>,
}

/// A time in which neither window, queue nor loss limited the flow.
#[derive(Debug, Clone, Copy)]
struct Unlimited {
    since: Duration,
    bytes: u64,
    /// Bytes half-way.
    half: Option<(Duration, u64)>,
    is_sender: bool,
}

impl BottleneckEvidence {
    /// Takes a sample while the window is not in force.
    pub(crate) fn skip(&mut self, now: Duration, sample: &ConnectionSample) {
        self.sampled = now;
        self.rounds.skip(now, sample);
        self.present.unlimited = None;
    }

    /// Takes a sample. `is_free` says whether the window leaves the flow to its sender.
    pub(crate) fn update(&mut self, now: Duration, sample: &ConnectionSample, is_free: bool) {
        let gap = now.saturating_sub(std::mem::replace(&mut self.sampled, now));
        if gap > MAX_GAP {
            self.skip(now, sample);
            self.present.lost = Some(now);
            return;
        }
        if sample.bytes > self.arrived.0 {
            self.arrived = (sample.bytes, now);
        } else {
            self.is_continuous = false;
            if now >= self.arrived.1 + sample.base {
                self.present.silent = Some(now);
            }
        }
        let Some(round) = self.rounds.update(now, sample, f64::INFINITY) else {
            return;
        };
        let is_continuous = std::mem::replace(&mut self.is_continuous, true);
        if now >= self.began + EVIDENCE_TIME {
            self.before = self.present.kind();
            self.present = PeriodEvidence::default();
            self.began = now;
        }
        if sample.segment != self.segment {
            self.present.scale(self.segment / sample.segment);
            self.segment = sample.segment;
        }
        self.present.learn(now, sample, &round, is_continuous);
        self.present
            .look_at_sender(now, sample.bytes, &round, is_free);
    }

    /// What is known by now; `None` before the first round trip.
    pub(crate) fn findings(&self) -> Option<PathFindings> {
        let present = &self.present;
        (present.base > 0.0).then(|| PathFindings {
            kind: self.kind(),
            rate: present.rate * self.segment,
            base: Duration::from_secs_f64(present.base),
            longest_queue: Duration::from_secs_f64(present.longest),
        })
    }

    /// The kind of the bottleneck, if it is known.
    pub(crate) fn kind(&self) -> Option<BottleneckKind> {
        self.present.kind().or(self.before)
    }
}

impl PeriodEvidence {
    /// Segments have become this many times as many.
    fn scale(&mut self, factor: f64) {
        self.rate *= factor;
        self.waiting = WaitingRates::default();
    }

    fn learn(
        &mut self,
        now: Duration,
        sample: &ConnectionSample,
        round: &Round,
        is_continuous: bool,
    ) {
        self.base = sample.base.as_secs_f64();
        let standing = round.standing();
        let second = self.longest.max(standing.min(self.highest));
        (self.longest, self.highest) = (second, self.highest.max(standing));
        self.recent.rotate_left(1);
        self.recent[ROUNDS_OF_LOSS - 1] = standing;
        let repair = REPAIR_ROUND_TRIPS * (self.base + round.mean);
        let since_loss = self
            .lost
            .map_or(f64::INFINITY, |at| now.saturating_sub(at).as_secs_f64());
        if round.is_lost() {
            // Else it is of the same event.
            if since_loss > repair + MIN_REPAIR && self.events.len() < MAX_EVENTS {
                self.events
                    .push(self.recent.into_iter().fold(0.0, f64::max));
            }
            self.lost = Some(now);
        } else if since_loss > repair {
            self.rate = self.rate.max(round.steady);
            let packets = WAITING_PACKETS / round.steady.max(1.0);
            if is_continuous && round.min > WAITING.max(packets) {
                self.waiting.add(round.rate / sample.segment);
            }
        }
    }

    fn look_at_sender(&mut self, now: Duration, bytes: u64, round: &Round, is_free: bool) {
        let silent = self.silent.is_some_and(|at| now < at + SILENCE_TIME);
        let has_queue = round.standing() >= self.least_queue() && !silent;
        let is_unlimited = is_free && !round.is_lost() && !has_queue;
        self.unlimited = match self.unlimited {
            _ if !is_unlimited => None,
            None => Some(Unlimited {
                since: now,
                bytes,
                half: None,
                is_sender: false,
            }),
            Some(unlimited) => Some(unlimited.go_on(now, bytes)),
        };
    }

    /// The longest standing delay that is no queue, s.
    fn no_queue(&self) -> f64 {
        NO_QUEUE_TICKS * TIMESTAMP_TICK.as_secs_f64() + NOISE_SHARE * self.base
    }

    /// The shortest that is one, s.
    fn least_queue(&self) -> f64 {
        LEAST_QUEUE_TICKS * TIMESTAMP_TICK.as_secs_f64() + NOISE_SHARE * self.base
    }

    fn kind(&self) -> Option<BottleneckKind> {
        if self.events.is_empty() && self.unlimited.is_some_and(|time| time.is_sender) {
            return Some(BottleneckKind::SenderLimited);
        }
        if self.longest <= self.no_queue() {
            let has_losses = self.events.len() >= EVENTS_WITHOUT_QUEUE;
            return has_losses.then_some(BottleneckKind::LossWithoutQueue);
        }
        let queued = self.count(|delay| delay > self.no_queue());
        let has_most_without = 2 * queued < self.events.len();
        if self.longest < self.least_queue() || has_most_without {
            return None;
        }
        let tell = |events: usize, least: usize| {
            events >= least && events as f64 >= TELLING_SHARE * queued as f64
        };
        let has_others = self.waiting.varies();
        let packet = 1.0 / self.rate.max(1.0);
        let low = |share: f64| {
            let bursts = LOW_PACKETS * packet;
            let max = (share * self.longest).min(self.longest - bursts);
            self.count(|delay| (LEAST_MANAGED..=max).contains(&delay))
        };
        if tell(low(LOW_SHARE), LOW_EVENTS) {
            let is_certain =
                !has_others || tell(low(LOW_SHARE_BESIDE_OTHERS), EVENTS_BESIDE_OTHERS);
            return is_certain.then_some(BottleneckKind::ManagedQueue);
        }
        let is_deep = self.longest >= SHORT_SHARE * self.base;
        let least = match (is_deep, self.waiting.is_steady()) {
            _ if has_others => EVENTS_BESIDE_OTHERS,
            (true, true) => FULL_EVENTS,
            (false, true) | (true, false) => FULL_EVENTS + 1,
            (false, false) => FULL_EVENTS + 2,
        };
        if tell(
            self.count(|delay| delay >= FULL_SHARE * self.highest),
            least,
        ) {
            return match is_deep {
                _ if (LEAST_MANAGED..FEW_PACKETS * packet).contains(&self.longest) => None,
                true => Some(BottleneckKind::DeepQueue),
                // Others may keep a queue that looks like a longer path.
                false => (!has_others).then_some(BottleneckKind::ShortQueue),
            };
        }
        let may_be_managed = tell(low(UNCERTAIN_SHARE), LOW_EVENTS);
        let swings = self.waiting.swings() && !may_be_managed;
        swings.then_some(BottleneckKind::VaryingRate)
    }

    /// Loss events with such a delay.
    fn count(&self, is_counted: impl Fn(f64) -> bool) -> usize {
        self.events
            .iter()
            .filter(|delay| is_counted(**delay))
            .count()
    }
}

impl WaitingRates {
    fn add(&mut self, rate: f64) {
        if let Some(last) = self.last.replace(rate) {
            self.steps += (rate - last).abs();
        }
        self.count += 1;
        self.sum += rate;
        self.squares += rate * rate;
    }

    /// By how much the rates differ, as a share of their mean; `None` while there are few.
    fn spread(&self) -> Option<f64> {
        let mean = self.sum / f64::from(self.count);
        let variance = self.squares / f64::from(self.count) - mean * mean;
        (self.count >= STEADY_ROUNDS && mean > 0.0).then(|| variance.max(0.0).sqrt() / mean)
    }

    fn is_steady(&self) -> bool {
        self.spread().is_some_and(|spread| spread <= STEADY_SHARE)
    }

    fn varies(&self) -> bool {
        self.spread().is_some_and(|spread| spread > VARYING_SHARE)
    }

    /// Whether the rate differs from one round to the next about as much as at all.
    fn swings(&self) -> bool {
        let Some(spread) = self.spread() else {
            return false;
        };
        let mean = self.sum / f64::from(self.count);
        let step = self.steps / f64::from(self.count - 1) / mean;
        self.count >= SWINGING_ROUNDS && self.varies() && step >= SWINGING_RATIO * spread
    }
}

impl Unlimited {
    fn go_on(mut self, now: Duration, bytes: u64) -> Self {
        let elapsed = now.saturating_sub(self.since);
        if elapsed >= UNLIMITED_TIME {
            if let Some((at, half)) = self.half {
                let rate = |from: (Duration, u64), to: (Duration, u64)| {
                    to.1.saturating_sub(from.1) as f64 / (to.0 - from.0).as_secs_f64()
                };
                let first = rate((self.since, self.bytes), (at, half));
                let second = rate((at, half), (now, bytes));
                self.is_sender = second <= UNLIMITED_GROWTH * first;
                // The next span begins half-way.
                (self.since, self.bytes) = (at, half);
            }
            self.half = Some((now, bytes));
        } else if self.half.is_none() && elapsed >= UNLIMITED_TIME / 2 {
            self.half = Some((now, bytes));
        }
        self
    }
}

#[cfg(test)]
mod tests;
