//! The receive window of a flow that yields to all other traffic and still
//! fills an idle link.
//!
//! Three rules act on one window:
//!
//! - *Filling.* A delay-based rule after FAST TCP (Wei, Jin, Low and Hegde
//!   2006, eq. 1) and TCP Vegas (Brakmo and Peterson 1995). With a short queue
//!   the window goes to what the path carries without a queue, plus a little.
//!   Without a queue it grows.
//! - *Yielding.* A queue belongs to other traffic if it grows by more than our
//!   window has grown. This is an active test: only our part of the delay
//!   follows our window. A queue that is longer than ours ever gets belongs to
//!   other traffic too. The window is halved at once, and again in every round
//!   trip in which the queue stays.
//! - *Making room.* The delay without a queue is visible only when the queue is
//!   empty. If the flow has not seen it for some time, it lowers its window for
//!   a moment (the periodic slow-down of LEDBAT++, RFC 9840).
//!
//! The rule knows nothing of weights, deadlines or sockets, nor of the source
//! of its delays.

mod growth;

use std::time::Duration;

use self::growth::{Growth, MAX_CAREFUL_GROWTH, SMALL_WINDOW, WindowStep};
use super::history::{History, QueueObservation};
use super::{
    ConnectionSample, INITIAL_WINDOW, LIMITING_SHARE, MIN_WINDOW_SEGMENTS, no_queue, short_queue,
};

/// A queue that exceeds ours by this delay belongs to other traffic, s.
/// Together with a short queue this is more than eight of our flows make at 10
/// Mbit/s.
const FOREIGN_QUEUE: f64 = 0.008;
/// The same shortly after other traffic has arrived, s.
const FOREIGN_QUEUE_AFTER_ARRIVAL: f64 = 0.004;
/// Other traffic counts as newly arrived for this time: the start of a TCP
/// flow.
const ARRIVAL_PERIOD: Duration = Duration::from_secs(3);

/// A rise of the delay beyond what our growth explains means new traffic if it
/// exceeds this delay, s, ...
const MIN_RISE: f64 = 0.0075;
/// ... and this share of the base.
const MIN_RISE_SHARE: f64 = 0.03;

/// With a short queue, the window counts as used up from this share on.
const USED_UP_SHARE: f64 = 0.9;

/// A steady rate is a mean over this many round trips.
const STEADY_ROUND_TRIPS: f64 = 3.0;

/// Factor on the window when other traffic is present.
const YIELD_FACTOR: f64 = 0.5;

/// Factor on the window after a loss without a queue. Such a loss comes from
/// noise or a policer rather than from too much traffic.
const LOSS_WITHOUT_QUEUE_FACTOR: f64 = 0.85;

/// From this many segments out of order on, a segment counts as lost. Fewer
/// have overtaken each other (RFC 5681, section 3.2).
const MIN_LOST_SEGMENTS: u32 = 3;

/// Round trips from one step to the next, until its effect shows: after growth
/// and yielding, ...
const AFTER_STEP: f64 = 1.2;
/// ... after going down to what the path carries, ...
const AFTER_DECREASE: f64 = 1.8;
/// ... after a time in which the window was not in force: its effect arrives
/// one round trip later and is measured over another, ...
const AFTER_WAIT: f64 = 2.2;
/// ... and after a loss.
const AFTER_LOSS: f64 = 2.0;
/// The same after making room: the queue is empty for one round trip.
const AFTER_ROOM: f64 = 2.0;
/// Round trips without growth after other traffic has arrived.
const HOLD_ROUND_TRIPS: f64 = 3.0;

/// The flow makes room when it has not seen the base for this time.
const MAX_BASE_UNSEEN: Duration = Duration::from_secs(15);
/// The window while making room, as a share of what the path carries.
const ROOM_SHARE: f64 = 0.88;

/// The window of a flow that yields.
#[derive(Debug, Clone, Default)]
pub(crate) struct YieldingWindow {
    history: History,
    /// Bytes.
    window: f64,
    growth: Growth,
    /// Mean rate in the last round trip, byte/s.
    rate: f64,
    /// Bytes per round trip by which the sender has sped up since the last
    /// step, while the window did not limit it.
    faster: f64,
    /// When the window was last lowered for other traffic. Rates from before do
    /// not count afterwards.
    lowered: Duration,
    /// Whether the window was what limited the flow at the last step.
    is_limiting: bool,
    /// Whether there was a queue at the last step.
    was_queued: bool,
    /// When other traffic last arrived.
    came: Option<Duration>,
    next_step: Duration,
    /// No growth before this time.
    hold: Duration,
    /// No rise of the delay counts before this time.
    calm: Duration,
    /// When the base was last sample.
    clear: Option<Duration>,
    /// At the last step.
    out_of_order: Option<u32>,
}

impl YieldingWindow {
    pub(crate) fn new() -> Self {
        Self {
            window: INITIAL_WINDOW,
            ..Self::default()
        }
    }

    /// Mean rate in the last round trip, byte/s.
    pub(crate) fn rate(&self) -> f64 {
        self.rate
    }

    /// Whether a queue holds the window down.
    pub(crate) fn sees_queue(&self) -> bool {
        self.growth.has_met()
    }

    /// Takes a sample while the window is not in force; returns the window,
    /// bytes.
    pub(crate) fn wait(&mut self, now: Duration, sample: &ConnectionSample) -> f64 {
        let rtt = self.record(now, sample);
        self.out_of_order = Some(sample.out_of_order);
        self.next_step = now + rtt.mul_f64(AFTER_WAIT);
        self.calm = self.next_step;
        (self.faster, self.was_queued) = (0.0, false);
        self.window
    }

    /// Takes a sample; returns the window, bytes. Can be called at any rate:
    /// the window takes about one step in a round trip.
    pub(crate) fn update(&mut self, now: Duration, sample: &ConnectionSample) -> f64 {
        let rtt = self.record(now, sample);
        if sample.queueing.is_none() {
            return self.window;
        }
        if self.is_limiting
            && now >= self.calm
            && self.window > 2.0 * MIN_WINDOW_SEGMENTS * sample.segment
            && self.has_risen(sample, rtt)
        {
            let has_just_come = self.has_just_come(now);
            self.meet(sample.base.as_secs_f64(), has_just_come);
            (self.came, self.lowered) = (Some(now), now);
            let used = (self.rate * rtt.as_secs_f64()).min(self.window);
            self.window = (used * YIELD_FACTOR).max(MIN_WINDOW_SEGMENTS * sample.segment);
            self.hold = now + rtt.mul_f64(HOLD_ROUND_TRIPS);
            self.calm = now + rtt.mul_f64(AFTER_STEP);
            self.next_step = self.calm;
        } else if now >= self.next_step
            && let Some(rate) = self.history.rate(rtt)
        {
            self.faster = if self.rate > 0.0 && !self.is_limiting {
                (rate - self.rate).max(0.0) * sample.base.as_secs_f64()
            } else {
                0.0
            };
            self.rate = rate;
            let (window, round_trips) = self.step(now, sample, rtt);
            self.window = window * sample.segment;
            self.next_step = now + rtt.mul_f64(round_trips);
            self.out_of_order = Some(sample.out_of_order);
        }
        self.window
    }

    /// Records the sample; returns the round-trip time now.
    fn record(&mut self, now: Duration, sample: &ConnectionSample) -> Duration {
        let base = sample.base.as_secs_f64();
        if sample.queueing.is_some_and(|queue| queue < no_queue(base)) {
            self.clear = Some(now);
        }
        let rtt = sample.base + Duration::from_secs_f64(self.history.newest());
        let observation = QueueObservation {
            at: now,
            bytes: sample.bytes,
            queueing: sample.queueing,
            window: self.window,
        };
        self.history.add(observation, rtt);
        sample.base + Duration::from_secs_f64(self.history.newest())
    }

    /// Whether the delay has risen by more than our growth explains.
    fn has_risen(&self, sample: &ConnectionSample, rtt: Duration) -> bool {
        let limit = MIN_RISE.max(MIN_RISE_SHARE * sample.base.as_secs_f64());
        let rise = self.history.rise(rtt);
        rise.is_some_and(|rise| rise - self.own_queue() > limit)
    }

    fn has_just_come(&self, now: Duration) -> bool {
        self.came.is_some_and(|came| now < came + ARRIVAL_PERIOD)
    }

    /// Delay that our own growth explains, s: the growth of the window, or the
    /// growth of the sender's rate below it.
    fn own_queue(&self) -> f64 {
        let growth = self.history.growth().max(self.faster);
        growth / self.rate.max(1.0)
    }

    /// Notes a queue at the rate of the last round trip.
    fn meet(&mut self, base: f64, stayed: bool) {
        self.growth
            .meet((self.rate * base).min(self.window), stayed);
    }

    /// The next window, segments, and the round trips until the one after.
    fn step(&mut self, now: Duration, sample: &ConnectionSample, rtt: Duration) -> (f64, f64) {
        let in_segments = |bytes: f64| bytes / sample.segment;
        let base = sample.base.as_secs_f64();
        let carried = in_segments(self.rate * base);
        let queue = self.history.standing(rtt, carried < SMALL_WINDOW);
        let over = rtt.mul_f64(STEADY_ROUND_TRIPS);
        let steady = self.history.rate(over);
        let steady = steady.filter(|_| now >= self.lowered + over);
        let step = WindowStep {
            // The kernel's idea of a segment grows in the first round trips.
            window: in_segments(self.window),
            carried,
            carried_steadily: in_segments(steady.unwrap_or(self.rate) * base),
            used: in_segments(self.rate * (base + queue)),
            base,
            capacity: in_segments(sample.capacity.max(self.rate)),
            queue,
        };
        self.is_limiting = step.fills(LIMITING_SHARE);
        let short = short_queue(base);
        let was_queued = std::mem::replace(&mut self.was_queued, queue > short);
        let lost = self
            .out_of_order
            .is_some_and(|before| sample.out_of_order >= before.saturating_add(MIN_LOST_SEGMENTS));
        if lost {
            let kept = if queue > short {
                YIELD_FACTOR
            } else {
                LOSS_WITHOUT_QUEUE_FACTOR
            };
            self.meet(base, false);
            (self.hold, self.lowered) = (now + rtt.mul_f64(AFTER_LOSS), now);
            return ((step.window * kept).max(MIN_WINDOW_SEGMENTS), AFTER_LOSS);
        }
        let has_just_come = self.has_just_come(now);
        let (foreign, own) = if has_just_come {
            (FOREIGN_QUEUE_AFTER_ARRIVAL, 0.0)
        } else {
            (FOREIGN_QUEUE, self.own_queue())
        };
        if queue - own > short + foreign {
            self.meet(base, has_just_come);
            self.lowered = now;
            let yielded = (step.window.min(step.used) * YIELD_FACTOR).min(step.carried);
            return (yielded.max(MIN_WINDOW_SEGMENTS), AFTER_STEP);
        }
        let is_held = now < self.hold || !self.is_limiting;
        let is_unseen = self
            .clear
            .is_some_and(|clear| now >= clear + MAX_BASE_UNSEEN);
        if is_unseen && !is_held {
            (self.clear, self.lowered) = (Some(now), now);
            self.calm = now + rtt.mul_f64(2.0 * AFTER_ROOM);
            let room = (ROOM_SHARE * step.carried).min(step.window);
            return (room.max(MIN_WINDOW_SEGMENTS), AFTER_ROOM);
        }
        let filled = in_segments(sample.eagerness * sample.capacity * base);
        let near = self.growth.near(sample.segment, filled);
        if queue > short {
            let is_far = near.is_none_or(|near| step.window < near);
            // The bursts of a slow start make a queue for a moment.
            return if !is_far || was_queued || queue > short + foreign {
                self.fill(&step, sample.segment, is_held)
            } else {
                (step.window, AFTER_STEP)
            };
        }
        if is_held {
            return (step.window, AFTER_STEP);
        }
        (self.growth.grow(&step, near, has_just_come), AFTER_STEP)
    }

    /// The step with a short queue: to what the path carries without a queue,
    /// plus our own part of it.
    fn fill(&mut self, step: &WindowStep, segment: f64, is_held: bool) -> (f64, f64) {
        let full = step.full();
        let target = full.max(step.min_decreased());
        if !self.is_limiting {
            // The decrease covers the data that the sender may still add to the queue.
            return (target.max(step.unlimiting()).min(step.window), AFTER_STEP);
        }
        if target < step.window - 1.0 {
            self.growth.meet((full * segment).min(self.window), false);
            return (target.max(MIN_WINDOW_SEGMENTS), AFTER_DECREASE);
        }
        if step.fills(USED_UP_SHARE) && !is_held {
            let next = target
                .min(step.window + MAX_CAREFUL_GROWTH)
                .max(MIN_WINDOW_SEGMENTS);
            if next > step.window {
                self.growth.grown();
            }
            return (next, AFTER_STEP);
        }
        (step.window, AFTER_STEP)
    }
}
