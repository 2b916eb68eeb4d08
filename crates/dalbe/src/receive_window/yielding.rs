//! The receive window of a flow that yields to anybody, yet fills an idle
//! link.
//!
//! Three rules on one window:
//! - *Filling.* A delay-based rule after FAST TCP (Wei, Jin, Low and Hegde
//!   2006, eq. 1) and TCP Vegas (Brakmo and Peterson 1995): with a short queue
//!   the window goes to what the path carries without one, plus a little;
//!   without a queue it grows.
//! - *YieldingWindow.* A queue that grows by more than our own window has grown is
//!   somebody else's (an active test: only our own part of the delay follows
//!   our window), and so is one that is longer than ours ever gets. The window
//!   is halved at once, and in every round trip in which the queue still
//!   stands.
//! - *Looking.* The base of the delay is only seen when the queue is empty. A
//!   flow that has not seen it for some time makes room for a moment (the
//!   periodic slow-down of LEDBAT++, RFC 9840 and its companions).
//!
//! Knows nothing of weights, deadlines or sockets, nor where its delays come
//! from.

mod growth;

use std::time::Duration;

use self::growth::{Growth, MOST_CAREFUL, SMALL, WindowStep};
use super::history::{History, QueueObservation};
use super::{INITIAL_WINDOW, LIMITING_SHARE, MIN_WINDOW_SEGMENTS, no_queue, short_queue};

/// A queue that is longer than ours by this much is somebody else's, s: with
/// what is short that is more than eight flows of ours together make at
/// 10 Mbit/s.
const FOREIGN: f64 = 0.008;
/// The same while others have just come.
const FOREIGN_SOON: f64 = 0.004;
/// How long others have "just" come: the start of a TCP flow.
const SOON: Duration = Duration::from_secs(3);

/// A rise of the delay that our growth does not explain is somebody who
/// comes: this long, s, ...
const RISE: f64 = 0.0075;
/// ... or this share of the base, if that is longer.
const RISE_SHARE: f64 = 0.03;

/// Of a window that a queue keeps short, from this share on it is used up.
const USED_UP: f64 = 0.9;

/// A rate is known better over so many round trips than over one.
const STEADY: f64 = 3.0;

/// What is left of the window when others are there.
const YIELD: f64 = 0.5;

/// What is left of it after a loss without a queue: of noise rather than of
/// too much traffic (random loss, a policer).
const LOSS_ALONE: f64 = 0.85;

/// So many segments out of order are a loss, and fewer are packets that have
/// overtaken each other (the duplicate acknowledgements of RFC 5681 section
/// 3.2).
const REORDERED: u32 = 3;

/// Round trips from one step to the next, for its effect to show: after
/// growth and yielding, ...
const AFTER_STEP: f64 = 1.2;
/// ... after going down to what the path carries, ...
const AFTER_DECREASE: f64 = 1.8;
/// ... after a time in which it was not in force: what it is good for comes
/// one round trip later, and is measured over another, ...
const AFTER_WAIT: f64 = 2.2;
/// ... and after a loss.
const AFTER_LOSS: f64 = 2.0;
/// The same after making room: the queue is empty for a round trip.
const AFTER_ROOM: f64 = 2.0;
/// Round trips in which no growth follows on somebody who has come.
const HOLD: f64 = 3.0;

/// The base has not been seen for this long: time to make room.
const UNSEEN: Duration = Duration::from_secs(15);
/// The window then, as a share of what the path carries.
const ROOM: f64 = 0.88;

/// What the connection reports.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ConnectionSample {
    /// Round-trip time, smoothed.
    pub(crate) rtt: Duration,
    /// Round-trip time without a queue.
    pub(crate) base: Duration,
    /// Queueing delay of what came since the last look, s; `None` if nothing
    /// came.
    pub(crate) queueing: Option<f64>,
    /// Largest segment, bytes.
    pub(crate) segment: f64,
    /// Bytes received since the connection was opened.
    pub(crate) bytes: u64,
    /// Segments received out of order since the connection was opened.
    pub(crate) out_of_order: u32,
    /// What the path carries when nobody else uses it, byte/s; 0 while
    /// nothing is known of it.
    pub(crate) capacity: f64,
    /// How much of the path is filled fast when it becomes free, whatever
    /// there was before: 0, as far as the threshold, to 1, all of it.
    pub(crate) eagerness: f64,
}

/// See the module.
#[derive(Debug, Clone)]
pub(crate) struct YieldingWindow {
    history: History,
    /// Bytes.
    window: f64,
    growth: Growth,
    /// Mean rate in the last round trip, byte/s.
    rate: f64,
    /// Bytes by which the sender has sped up since the last step, in a round
    /// trip, while the window did not hold it back.
    faster: f64,
    /// When the window was lowered for somebody, last: what was carried before
    /// is not carried now.
    lowered: Duration,
    /// Whether the window was what limited the flow at the last step.
    is_limiting: bool,
    /// Whether there was a queue at the last step.
    was_queued: bool,
    /// When somebody came, last.
    came: Option<Duration>,
    next_step: Duration,
    /// No growth before.
    hold: Duration,
    /// No rise of the delay counts before.
    calm: Duration,
    /// When the base was seen last.
    clear: Option<Duration>,
    /// At the last step.
    out_of_order: Option<u32>,
}

impl YieldingWindow {
    pub(crate) fn new() -> Self {
        Self {
            history: History::default(),
            window: INITIAL_WINDOW,
            growth: Growth::default(),
            rate: 0.0,
            faster: 0.0,
            lowered: Duration::ZERO,
            is_limiting: false,
            was_queued: false,
            came: None,
            next_step: Duration::ZERO,
            hold: Duration::ZERO,
            calm: Duration::ZERO,
            clear: None,
            out_of_order: None,
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

    /// The window, while it is not in force and says nothing: bytes.
    pub(crate) fn wait(&mut self, now: Duration, seen: &ConnectionSample) -> f64 {
        let rtt = self.look(now, seen);
        self.out_of_order = Some(seen.out_of_order);
        self.next_step = now + rtt.mul_f64(AFTER_WAIT);
        self.calm = self.next_step;
        (self.faster, self.was_queued) = (0.0, false);
        self.window
    }

    /// Looks at the connection; returns the window in bytes. May be called as
    /// often as one likes: it steps about once in a round trip.
    pub(crate) fn update(&mut self, now: Duration, seen: &ConnectionSample) -> f64 {
        let rtt = self.look(now, seen);
        if seen.queueing.is_none() {
            return self.window;
        }
        if self.is_limiting
            && now >= self.calm
            && self.window > 2.0 * MIN_WINDOW_SEGMENTS * seen.segment
            && self.has_risen(seen, rtt)
        {
            let has_just_come = self.has_just_come(now);
            self.meet(seen.base.as_secs_f64(), has_just_come);
            (self.came, self.lowered) = (Some(now), now);
            let used = (self.rate * rtt.as_secs_f64()).min(self.window);
            self.window = (used * YIELD).max(MIN_WINDOW_SEGMENTS * seen.segment);
            self.hold = now + rtt.mul_f64(HOLD);
            self.calm = now + rtt.mul_f64(AFTER_STEP);
            self.next_step = self.calm;
        } else if now >= self.next_step
            && let Some(rate) = self.history.rate(rtt)
        {
            self.faster = if self.rate > 0.0 && !self.is_limiting {
                (rate - self.rate).max(0.0) * seen.base.as_secs_f64()
            } else {
                0.0
            };
            self.rate = rate;
            let (window, round_trips) = self.step(now, seen, rtt);
            self.window = window * seen.segment;
            self.next_step = now + rtt.mul_f64(round_trips);
            self.out_of_order = Some(seen.out_of_order);
        }
        self.window
    }

    /// Takes note of what is to be seen; returns the round-trip time now.
    fn look(&mut self, now: Duration, seen: &ConnectionSample) -> Duration {
        let base = seen.base.as_secs_f64();
        if seen.queueing.is_some_and(|queue| queue < no_queue(base)) {
            self.clear = Some(now);
        }
        let rtt = seen.base + Duration::from_secs_f64(self.history.newest());
        let look = QueueObservation {
            at: now,
            bytes: seen.bytes,
            queueing: seen.queueing,
            window: self.window,
        };
        self.history.add(look, rtt);
        seen.base + Duration::from_secs_f64(self.history.newest())
    }

    /// Whether the delay has risen by more than our growth explains.
    fn has_risen(&self, seen: &ConnectionSample, rtt: Duration) -> bool {
        let limit = RISE.max(RISE_SHARE * seen.base.as_secs_f64());
        let rise = self.history.rise(rtt);
        rise.is_some_and(|rise| rise - self.own_queue() > limit)
    }

    fn has_just_come(&self, now: Duration) -> bool {
        self.came.is_some_and(|came| now < came + SOON)
    }

    /// Delay that our own growth explains, s: of the window, or of what a
    /// sender that does not use all of it sends.
    fn own_queue(&self) -> f64 {
        let growth = self.history.growth().max(self.faster);
        growth / self.rate.max(1.0)
    }

    /// A queue was met by what was carried in the last round trip.
    fn meet(&mut self, base: f64, stayed: bool) {
        self.growth
            .meet((self.rate * base).min(self.window), stayed);
    }

    /// The next window, segments, and the round trips until the one after.
    fn step(&mut self, now: Duration, seen: &ConnectionSample, rtt: Duration) -> (f64, f64) {
        let in_segments = |bytes: f64| bytes / seen.segment;
        let base = seen.base.as_secs_f64();
        let carried = in_segments(self.rate * base);
        let queue = self.history.standing(rtt, carried < SMALL);
        let over = rtt.mul_f64(STEADY);
        let steady = self.history.rate(over);
        let steady = steady.filter(|_| now >= self.lowered + over);
        let step = WindowStep {
            // The kernel's idea of a segment grows in the first round trips.
            window: in_segments(self.window),
            carried,
            carried_steadily: in_segments(steady.unwrap_or(self.rate) * base),
            used: in_segments(self.rate * (base + queue)),
            base,
            capacity: in_segments(seen.capacity.max(self.rate)),
            queue,
        };
        self.is_limiting = step.fills(LIMITING_SHARE);
        let short = short_queue(base);
        let was_queued = std::mem::replace(&mut self.was_queued, queue > short);
        let lost = self
            .out_of_order
            .is_some_and(|before| seen.out_of_order >= before.saturating_add(REORDERED));
        if lost {
            let kept = if queue > short { YIELD } else { LOSS_ALONE };
            self.meet(base, false);
            (self.hold, self.lowered) = (now + rtt.mul_f64(AFTER_LOSS), now);
            return ((step.window * kept).max(MIN_WINDOW_SEGMENTS), AFTER_LOSS);
        }
        let has_just_come = self.has_just_come(now);
        let (foreign, own) = if has_just_come {
            (FOREIGN_SOON, 0.0)
        } else {
            (FOREIGN, self.own_queue())
        };
        if queue - own > short + foreign {
            self.meet(base, has_just_come);
            self.lowered = now;
            let yielded = (step.window.min(step.used) * YIELD).min(step.carried);
            return (yielded.max(MIN_WINDOW_SEGMENTS), AFTER_STEP);
        }
        let is_held = now < self.hold || !self.is_limiting;
        let unseen = self.clear.is_some_and(|clear| now >= clear + UNSEEN);
        if unseen && !is_held {
            (self.clear, self.lowered) = (Some(now), now);
            self.calm = now + rtt.mul_f64(2.0 * AFTER_ROOM);
            let room = (ROOM * step.carried).min(step.window);
            return (room.max(MIN_WINDOW_SEGMENTS), AFTER_ROOM);
        }
        let filled = in_segments(seen.eagerness * seen.capacity * base);
        let near = self.growth.near(seen.segment, filled);
        if queue > short {
            let is_far = near.is_none_or(|near| step.window < near);
            // The bursts of a slow start make a queue for a moment.
            return if !is_far || was_queued || queue > short + foreign {
                self.fill(&step, seen.segment, is_held)
            } else {
                (step.window, AFTER_STEP)
            };
        }
        if is_held {
            return (step.window, AFTER_STEP);
        }
        (self.growth.grow(&step, near, has_just_come), AFTER_STEP)
    }

    /// With a short queue: as much as the path carries without one, and our
    /// own part of it.
    fn fill(&mut self, step: &WindowStep, segment: f64, is_held: bool) -> (f64, f64) {
        let full = step.full();
        let target = full.max(step.least());
        if !self.is_limiting {
            // What the sender may still add to that queue is taken from it.
            return (target.max(step.unlimiting()).min(step.window), AFTER_STEP);
        }
        if target < step.window - 1.0 {
            self.growth.meet((full * segment).min(self.window), false);
            return (target.max(MIN_WINDOW_SEGMENTS), AFTER_DECREASE);
        }
        if step.fills(USED_UP) && !is_held {
            let next = target
                .min(step.window + MOST_CAREFUL)
                .max(MIN_WINDOW_SEGMENTS);
            if next > step.window {
                self.growth.grown();
            }
            return (next, AFTER_STEP);
        }
        (step.window, AFTER_STEP)
    }
}
