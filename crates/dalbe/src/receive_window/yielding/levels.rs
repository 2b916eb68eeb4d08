//! What a flow knows of its path: how much it carries, at which levels queues were met,
//! how long a queue may be, and so how far the window grows. Levels and windows are in
//! segments, times in seconds. All functions follow from their arguments.

use std::time::Duration;

use super::ceiling::Ceiling;
use super::depth::QueueDepth;
use super::jitter::Jitter;
use super::step::Step;
use super::variation::Variation;

use crate::receive_window::bursts::Bursts;
use crate::receive_window::rounds::{MIN_ROUND, REPAIR_ROUND_TRIPS, Round};
use crate::receive_window::{ArrivalWatch, KEPT_AFTER_LOSS, LIMITING_SHARE, MIN_WINDOW_SEGMENTS};

/// The target of the queueing delay: so many packet times, since a packet of another
/// flow ahead of ours is no queue, ...
const TARGET_PACKETS: f64 = 1.1;
/// ... and at least this, s: the timestamps tick in milliseconds, ...
const MIN_TARGET: f64 = 0.001;
/// ... plus this share of the base, since the bursts of a window grow with the path.
const TARGET_SHARE: f64 = 0.007;
/// In a buffer that overflows, it is at most this share of its length.
const TARGET_PER_BUFFER: f64 = 0.22;

/// The smallest round-trip time of full segments exceeds that of the handshake by the
/// time of one packet at the bottleneck, and by no more than this noise, s.
const PACKET_NOISE: f64 = 0.0003;
/// No packet takes longer than this, s: 1500 bytes at 0.5 Mbit/s.
const MAX_PACKET: f64 = 0.024;

/// The capacity counts for this time, ...
const CAPACITY_MEMORY: Duration = Duration::from_secs(60);
/// ... and loses this share in each round trip afterwards.
const CAPACITY_FADING: f64 = 0.02;

/// CUBIC after a loss: window = C (t - K)^3 + W, with K = cbrt(W (1 - beta) / C), and
/// beta = 0.7 and C = 0.4 (RFC 9438, sections 4.1 and 4.6).
const RECOVERY_PER_WINDOW: f64 = 0.3 / 0.4;

/// A test takes this many times the time in which CUBIC is back at its window from
/// before a loss in a short queue, ...
const TEST_PER_RECOVERY: f64 = 1.3;
/// ... and at least this many round trips, ...
const MIN_TEST_ROUND_TRIPS: f64 = 10.0;
/// ... and at least this long, s: a flow that came last does not know the window of
/// the whole path.
const MIN_TEST: f64 = 4.0;
/// ... and at most this long, s.
const MAX_TEST: f64 = 8.0;
/// Where queues hide nobody, so many round trips are enough.
const MIN_TEST_OF_NOBODY: f64 = 4.0;

/// A little more than what CUBIC leaves free after a loss shows that nobody takes all.
const MORE_THAN_LEFT: f64 = 0.05;
/// The share of a path without queues that CUBIC leaves free.
const MOST_LEFT_FREE: f64 = 1.0 - KEPT_AFTER_LOSS;
/// The least window that a climb is worth, segments.
const MIN_LEFT: f64 = MIN_WINDOW_SEGMENTS + 1.0;

/// A climb takes this share of the capacity in a step, ...
const CLIMB_SHARE: f64 = 0.1;
/// ... or this share of the window, ...
const CLIMB_GROWTH: f64 = 0.25;
/// ... and from this many times what others leave on, this share, ...
const CLEAR_OF_OTHERS: f64 = 1.3;
const CLEAR_CLIMB_GROWTH: f64 = 0.575;
/// ... up to this share of the capacity.
const TOP_SHARE: f64 = 0.8;
/// Once the others have left, a climb doubles the window in a step (slow start, RFC
/// 5681), up to this share.
const FREE_TOP_SHARE: f64 = 0.92;

/// A level is proven from this share of it on.
const PROVEN_SHARE: f64 = 0.9;

/// A test holds this share of the level at which a queue was met, ...
const TESTED_SHARE: f64 = 0.8;
/// ... this share as somebody has come, and where others come and go, ...
const TESTED_SHARE_BESIDE_CHANGE: f64 = 0.5;
/// ... this share near a level that was proven before, ...
const TESTED_SHARE_OF_PROVEN: f64 = 0.95;
/// ... and this share after a loss.
pub(crate) const TESTED_SHARE_AFTER_LOSS: f64 = 0.9;

/// Growth near the level that was last met, segments per step, times the square root of
/// the window. Small flows grow more for their size, so shares become equal.
const CAREFUL_GROWTH: f64 = 0.0825;
/// Limit on this growth: additive increase, segments (RFC 5681, section 3.1), ...
const MAX_CAREFUL_GROWTH: f64 = 1.0;
/// ... or this share of a large window.
const MAX_CAREFUL_SHARE: f64 = 0.002;
/// From this share of the level on, ...
const NEAR_BELOW: f64 = 0.9;
/// ... and up to this share, growth is careful.
const NEAR_ABOVE: f64 = 1.05;
/// Queues that are met at levels this close to each other, as a share, come from
/// something steady.
const STEADY_SHARE: f64 = 0.3;
/// Who carries this share of the capacity leaves little to others.
const MOST_SHARE: f64 = 0.8;

/// Where the rate varies by itself, the window is this share of what the path carries at
/// best: a queue of the flow itself in place of a link that idles when its rate has grown.
const VARYING_TOP_SHARE: f64 = 1.1;
/// Growth where others or the rate come and go, as a share of the window.
const GROWTH_BESIDE_CHANGE: f64 = 0.4;
/// Growth below, as a share of the window: where a test has found nobody (slow start,
/// RFC 5681), ...
const GROWTH_BELOW_PROVEN: f64 = 1.0;
/// ... and elsewhere.
const GROWTH_BELOW: f64 = 0.27;
/// Growth above: this many segments at first, ...
const FIRST_GROWTH: f64 = 0.5;
/// ... twice as much every this many steps, ...
const DOUBLING_STEPS: f64 = 3.0;
/// ... up to this share of the window: its effect shows two round trips later.
const MAX_GROWTH_SHARE: f64 = 0.25;

/// In a buffer that overflows, a window does not grow by more than its length at once, but
/// by so many segments: hardly any buffer is shorter.
const MIN_BURST: f64 = 4.0;

/// A window grows only if this share of it is used: the effect of the last step must
/// have arrived.
const USED_SHARE: f64 = 0.85;
/// Below this many segments, whole segments and pairs of them leave more of a window
/// unused, ...
const SMALL_WINDOW: f64 = 10.0;
/// ... and up to this many in any.
const UNUSED_SEGMENTS: f64 = 2.5;

/// What a flow knows of its path.
#[derive(Debug, Clone)]
pub(crate) struct Levels {
    /// The most that was carried over some round trips, segments per second.
    capacity: f64,
    capacity_at: Duration,
    /// Round-trip time without a queue, s.
    base: f64,
    /// What the last round trip without a hole carried, and whether it was the last of all.
    whole: f64,
    is_whole: bool,
    /// When segments last came out of order.
    holes: Option<Duration>,
    depth: QueueDepth,
    bursts: Bursts,
    /// The share of the path that CUBIC may leave free after a loss.
    left_free: f64,
    /// The longest delay before a loss, s.
    buffer: Option<f64>,
    /// The level at which a queue was last met.
    pub(super) met: f64,
    /// Whether the one before was met at about the same level.
    is_steady: bool,
    /// The level at which a test has found nobody.
    proven: f64,
    ceiling: Ceiling,
    variation: Variation,
    jitter: Jitter,
    /// Steps beyond the level that was met.
    beyond: u32,
    /// The longest delay of the last round trip, s.
    last_max: f64,
}

impl Default for Levels {
    fn default() -> Self {
        Self {
            capacity: 0.0,
            capacity_at: Duration::ZERO,
            base: 0.0,
            whole: 0.0,
            is_whole: false,
            holes: None,
            depth: QueueDepth::default(),
            bursts: Bursts::default(),
            left_free: MOST_LEFT_FREE,
            buffer: None,
            met: 0.0,
            is_steady: true,
            proven: f64::INFINITY,
            ceiling: Ceiling::default(),
            variation: Variation::default(),
            jitter: Jitter::default(),
            beyond: 0,
            last_max: 0.0,
        }
    }
}

impl Levels {
    /// Segments have become this many times as many.
    pub(crate) fn scale(&mut self, factor: f64) {
        self.capacity *= factor;
        self.whole *= factor;
        self.met *= factor;
        self.proven *= factor;
        self.variation.scale(factor);
        self.ceiling.scale(factor);
    }

    /// Takes a round trip that carried so much, on a path of this base. While the flow
    /// `yields`, it carries little, whatever the path carries.
    pub(crate) fn learn(
        &mut self,
        now: Duration,
        round: &Round,
        carried: f64,
        base: f64,
        yields: bool,
    ) {
        let repair = Duration::from_secs_f64(REPAIR_ROUND_TRIPS * (base + round.mean));
        let longest = self.last_max.max(round.max);
        // What comes later in a repair, and after single holes, has met a queue that drains.
        if round.is_lost() && self.holes.is_none_or(|at| now > at + repair) && longest > 0.0 {
            self.buffer = Some(self.buffer.map_or(longest, |old| 0.5 * (old + longest)));
        }
        self.last_max = round.max;
        if round.out_of_order > 0 {
            self.holes = Some(now);
        }
        self.is_whole = self.holes.is_none_or(|at| now > at + repair);
        if self.is_whole {
            self.whole = carried;
        }
        if self.is_whole && round.steady > self.capacity {
            (self.capacity, self.capacity_at) = (round.steady, now);
        } else if !yields && now > self.capacity_at + CAPACITY_MEMORY {
            self.capacity *= 1.0 - CAPACITY_FADING;
        }
        self.base = base;
    }

    /// Takes the delay of a sample with data, s, where one up to `target`, s, is no queue.
    pub(crate) fn see_delay(&mut self, now: Duration, delay: Option<f64>, target: f64) {
        if let Some(delay) = delay.filter(|_| target > 0.0) {
            self.jitter.see(now, delay - self.between_bursts(), target);
        }
    }

    /// Takes the delays of a round trip; returns the standing queue, s.
    pub(crate) fn learn_queue(&mut self, now: Duration, delays: &Round, target: f64) -> f64 {
        let queue = self.jitter.learn(delays, target);
        self.variation.see(now, queue, target);
        queue
    }

    /// Takes the shortest queue of a round trip that is not in a knock, s.
    pub(crate) fn learn_depth(&mut self, shortest: f64, target: f64, base: f64) {
        self.depth.learn(shortest, target);
        self.left_free = self.depth.left_free(base);
    }

    /// Whether queues are so long that one that has gone was of somebody who has gone.
    pub(crate) fn hides_nobody(&self) -> bool {
        self.left_free == 0.0
    }

    /// Whether others come and go: queues that hide nobody are met at ever other levels.
    pub(crate) fn is_beside_change(&self) -> bool {
        self.hides_nobody() && !self.is_steady
    }

    /// Whether a queue while so much is carried may be the flow's own, as the rate varies by
    /// itself.
    pub(crate) fn explains(&self, now: Duration, carried: f64) -> bool {
        self.variation.explains(now, carried)
    }

    /// Whether so much was carried when data last came without holes that nobody else can
    /// have had much.
    pub(crate) fn leaves_little(&self) -> bool {
        self.whole >= MOST_SHARE * self.full()
    }

    /// Whether the rate of the path varies by itself.
    pub(crate) fn varies(&self) -> bool {
        self.variation.is_known()
    }

    /// Time of a packet at the bottleneck, s, where the segments of data take longer than
    /// the handshake by `excess`, s.
    pub(crate) fn packet(&self, excess: f64) -> f64 {
        (1.0 / self.capacity.max(1.0)).min((excess + PACKET_NOISE).min(MAX_PACKET))
    }

    /// The longest queueing delay that is no sign of others, s.
    pub(crate) fn target(&self, packet: f64, base: f64) -> f64 {
        let max = self
            .buffer
            .map_or(f64::INFINITY, |length| TARGET_PER_BUFFER * length);
        (TARGET_PACKETS * packet).min(max).max(MIN_TARGET) + TARGET_SHARE * base
    }

    /// How long a test takes on a path of this round-trip time, s.
    pub(crate) fn test_length(&self, rtt: f64) -> Duration {
        // CUBIC is then back at the window of the whole path.
        let recovery = (RECOVERY_PER_WINDOW * self.full().max(1.0)).cbrt();
        let long = (TEST_PER_RECOVERY * recovery)
            .max(MIN_TEST_ROUND_TRIPS * rtt)
            .clamp(MIN_TEST, MAX_TEST);
        // The less of the path it leaves free, the sooner that shows.
        let length = (long * self.left_free / MOST_LEFT_FREE).max(MIN_TEST_OF_NOBODY * rtt);
        Duration::from_secs_f64(length)
    }

    /// A queue was met with this window, or a loss.
    pub(crate) fn meet(&mut self, carried: f64, window: f64, is_lost: bool) {
        let carried = if is_lost {
            carried.max(self.whole)
        } else {
            carried
        };
        let before = std::mem::replace(&mut self.met, carried.min(window));
        if is_lost {
            self.variation.forget();
        }
        self.is_steady = (self.met - before).abs() <= STEADY_SHARE * before;
        self.beyond = 0;
    }

    /// How much of the level that was met a test holds. The first test of a flow only waits,
    /// unless data was lost.
    pub(crate) fn tested_share(&self, is_first: bool, step: &Step) -> f64 {
        if step.has_come || self.varies() {
            TESTED_SHARE_BESIDE_CHANGE
        } else if step.is_lost {
            TESTED_SHARE_AFTER_LOSS
        } else if is_first {
            1.0
        } else if self.is_beside_change() {
            TESTED_SHARE_BESIDE_CHANGE
        } else if self.is_proven(self.met) {
            TESTED_SHARE_OF_PROVEN
        } else {
            TESTED_SHARE
        }
    }

    /// Whether an [`ArrivalWatch`] is due.
    pub(crate) fn begin_watch(&mut self, now: Duration) -> bool {
        let bursts = &mut self.bursts;
        self.is_whole && bursts.begin_watch(now, self.whole, self.capacity, self.base)
    }

    /// Takes a watch that is over, with segments of so many bytes.
    pub(crate) fn take_watch(&mut self, now: Duration, watch: &ArrivalWatch, segment: f64) {
        let bursts = &mut self.bursts;
        bursts.learn(now, watch, self.capacity, segment, self.base);
    }

    /// The time between two bursts, s; 0 without bursts.
    pub(crate) fn between_bursts(&self) -> f64 {
        self.bursts.between()
    }

    /// What was carried when data last came without holes.
    pub(crate) fn whole(&self) -> f64 {
        self.whole
    }

    /// The level at which a queue was last met.
    pub(crate) fn met(&self) -> f64 {
        self.met
    }

    /// Whether a window is at the level at which a queue was last met, or little above.
    pub(crate) fn is_near(&self, window: f64) -> bool {
        (NEAR_BELOW * self.met..NEAR_ABOVE * self.met).contains(&window)
    }

    /// Nobody else wants the level that was met.
    pub(crate) fn prove(&mut self) {
        self.proven = self.met;
    }

    /// A test at the level that was met has found nobody.
    pub(crate) fn prove_by_test(&mut self, now: Duration, by_loss: bool) {
        self.prove();
        self.variation.learn(now, self.met, self.full());
        self.ceiling = if by_loss {
            Ceiling::after_loss(now, self.met, self.full())
        } else {
            Ceiling::default()
        };
    }

    /// A climb has come to its top, after all others had left.
    pub(crate) fn prove_all(&mut self) {
        self.met = self.full();
        self.proven = self.full();
        self.ceiling = Ceiling::default();
    }

    /// Others were found: nothing is proven any more.
    pub(crate) fn disprove(&mut self) {
        self.proven = f64::INFINITY;
        self.variation.forget();
    }

    /// Whether nobody was found at any level.
    pub(crate) fn is_unknown(&self) -> bool {
        self.proven.is_infinite()
    }

    /// Whether nobody was found near this level, segments.
    pub(crate) fn is_proven(&self, level: f64) -> bool {
        level > PROVEN_SHARE * self.proven
    }

    /// What the path carries in a round trip without a queue, at the capacity.
    pub(crate) fn full(&self) -> f64 {
        self.capacity * self.base
    }

    /// The level below which a queue may be that of somebody who takes all.
    pub(crate) fn left_by_others(&self) -> f64 {
        ((self.left_free + MORE_THAN_LEFT) * self.full()).max(MIN_LEFT)
    }

    /// Where a climb ends.
    pub(crate) fn top_of_climb(&self, is_free: bool) -> f64 {
        let share = if is_free { FREE_TOP_SHARE } else { TOP_SHARE };
        share * self.full()
    }

    /// The most by which a window may grow at once, segments: what the buffer holds, where
    /// it is known.
    pub(crate) fn burst(&self) -> f64 {
        self.buffer.map_or(f64::INFINITY, |length| {
            (length * self.capacity).max(MIN_BURST)
        })
    }

    /// The next window of a climb, on a path of this round-trip time, s.
    pub(crate) fn climb(&self, window: f64, rtt: f64, is_free: bool) -> f64 {
        let more = if is_free {
            window.max(CLIMB_SHARE * self.full())
        } else if window < CLEAR_OF_OTHERS * self.left_by_others() {
            (CLIMB_SHARE * self.full()).max(CLIMB_GROWTH * window)
        } else {
            CLEAR_CLIMB_GROWTH * window
        };
        // It opens in the course of a round trip.
        let bursts = (rtt / MIN_ROUND.as_secs_f64()).max(1.0);
        let more = more.min(bursts * self.burst()).max(1.0);
        (window + more).min(self.top_of_climb(is_free).max(window + 1.0))
    }

    /// The widest window that does not lose data again, as far as it is known.
    pub(crate) fn ceiling(&self, now: Duration) -> f64 {
        self.ceiling.window(now)
    }

    /// The next window without a queue, of which so much was used. A sender that `may_lag`
    /// behind a path that has become free need not use as much.
    pub(crate) fn fill(&mut self, now: Duration, window: f64, used: f64, may_lag: bool) -> f64 {
        let share = if may_lag || window < SMALL_WINDOW {
            LIMITING_SHARE
        } else {
            USED_SHARE
        };
        if used < (share * window).min(window - UNUSED_SEGMENTS) {
            return window;
        }
        let careful = (CAREFUL_GROWTH * window.sqrt())
            .min(MAX_CAREFUL_GROWTH.max(MAX_CAREFUL_SHARE * window));
        let free = FREE_TOP_SHARE * self.full() - window;
        let full = self.full() * (1.0 + self.jitter.range() / self.base);
        let top = self.varies().then_some(VARYING_TOP_SHARE * full);
        let is_late = self.jitter.range() > 0.0 && self.proven.is_finite();
        let to = top.or(is_late.then_some(full));
        let growth = if let Some(to) = to.filter(|to| *to > window) {
            (to - window).min(GROWTH_BESIDE_CHANGE * window)
        } else if self.is_beside_change() && free > 0.0 {
            free.min(GROWTH_BESIDE_CHANGE * window).max(careful)
        } else if window < NEAR_BELOW * self.met {
            let below = NEAR_BELOW * self.met - window;
            let share = if self.proven.is_finite() {
                GROWTH_BELOW_PROVEN
            } else {
                GROWTH_BELOW
            };
            below.min(share * window).max(careful)
        } else if window < NEAR_ABOVE * self.met {
            careful
        } else {
            self.beyond = self.beyond.saturating_add(1);
            let growth = FIRST_GROWTH * (f64::from(self.beyond) / DOUBLING_STEPS).exp2();
            growth.min((MAX_GROWTH_SHARE * window).max(1.0))
        };
        let most = self.ceiling(now).min(top.unwrap_or(f64::INFINITY));
        (window + growth).min(most.max(window))
    }
}

#[cfg(test)]
mod tests;
