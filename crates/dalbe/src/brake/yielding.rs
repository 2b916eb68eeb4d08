//! The receive window of a flow that yields to anybody, yet fills an idle
//! link.
//!
//! Three rules on one window:
//! - *Filling.* A delay-based rule after FAST TCP (Wei, Jin, Low and Hegde
//!   2006, eq. 1) and TCP Vegas (Brakmo and Peterson 1995): with a short queue
//!   the window goes to what the path carries without one, plus a little;
//!   without a queue it grows. Vulture's `rwndThresh` is remembered: growth
//!   is fast up to the window at which the queue was last met, and careful
//!   beyond, until nothing has been met for some time.
//! - *Yielding.* A queue that grows by more than our own window has grown is
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

use std::time::Duration;

use super::history::{History, Look};

/// Least window, segments: with less, a delayed acknowledgement stops the
/// sender (RFC 9840 section 4.2.2 uses the same floor).
const FLOOR: f64 = 2.0;

/// Window to begin with, bytes: what Linux offers at the handshake and cannot
/// take back.
const INITIAL: f64 = 65_536.0;

/// A delay above the base that is a queue: this long, s, and ...
const QUEUE: f64 = 0.0015;
/// ... this share of the base (clock ticks and jitter grow with the path).
const QUEUE_SHARE: f64 = 0.01;

/// A delay above the base that is no queue at all: this long, s, and ...
const CLEAR: f64 = 0.0008;
/// ... this share of the base.
const CLEAR_SHARE: f64 = 0.004;

/// A queue that is longer than ours by this much is somebody else's, s. Eight
/// flows of ours together make one of 8 ms.
const FOREIGN: f64 = 0.008;
/// The same while others have just come.
const FOREIGN_SOON: f64 = 0.004;
/// How long others have "just" come: the start of a TCP flow.
const SOON: Duration = Duration::from_secs(3);

/// A rise of the delay that our growth does not explain is somebody who
/// comes: this long, s, ...
const RISE: f64 = 0.006;
/// ... or this share of the base, if that is longer.
const RISE_SHARE: f64 = 0.03;

/// Our own part of the queue, segments (alpha of Vegas and FAST), times the
/// square root of the window. One flow then leaves as short a queue as it can
/// regulate, n flows one that is only sqrt(n) times as long; and smaller
/// flows have more of it for their size, so that shares become equal.
const OWN_QUEUE: f64 = 0.25;

/// Growth per step near the threshold, segments, times the square root of the
/// window, for the same reason; at most [`MOST_GROWTH`].
const GROWTH: f64 = 0.11;
/// Additive increase (RFC 5681 section 3.1), segments.
const MOST_GROWTH: f64 = 1.0;

/// Growth per step far below the threshold (slow start, RFC 5681).
const FAST_GROWTH: f64 = 2.0;
/// Where "far below" ends.
const NEAR: f64 = 0.9;
/// After so many steps with no queue at all more of the path must have become
/// free, ...
const QUIET_STEPS: f64 = 3.0;
/// ... and growth doubles within so many steps.
const QUIET_DOUBLING: f64 = 1.3;

/// What is left of the window when others are there.
const YIELD: f64 = 0.5;

/// What is left of it after a loss without a queue: of noise rather than of
/// too much traffic (random loss, a policer).
const LOSS_ALONE: f64 = 0.85;

/// The threshold is the mean of the old one and the window at which the queue
/// is met again: who comes and goes shall not shut us out for long.
const MEMORY: f64 = 0.7;

/// So many segments out of order are a loss, and fewer are packets that have
/// overtaken each other (the duplicate acknowledgements of RFC 5681 section
/// 3.2).
const REORDERED: u32 = 3;

/// A window of which less than this share is used does not limit the flow, and
/// its delay says nothing of it.
const USED: f64 = 0.6;
/// Near the threshold growth waits until this share is used: that of the last
/// step is on its way.
const USED_NEAR: f64 = 0.85;
/// A sender sends whole segments, two by two: so many may be left over.
const LEFT_OVER: f64 = 2.5;
/// A window of fewer segments is small: what is left over of it counts.
const SMALL: f64 = 10.0;
/// The window is never more than this many times what is used.
const AHEAD: f64 = 2.0;

/// Round trips from one step to the next, for its effect to show: after
/// growth and yielding, ...
const AFTER_STEP: f64 = 1.2;
/// ... after going down to what the path carries, ...
const AFTER_DECREASE: f64 = 1.8;
/// ... and after a loss.
const AFTER_LOSS: f64 = 2.0;
/// Round trips in which no growth follows on somebody who has come.
const HOLD: f64 = 3.0;

/// The base has not been seen for this long: time to make room.
const UNSEEN: Duration = Duration::from_secs(15);
/// The window then, as a share of what the path carries.
const ROOM: f64 = 0.88;

/// What the connection reports.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Seen {
    /// Round-trip time, smoothed.
    pub(super) rtt: Duration,
    /// Round-trip time without a queue.
    pub(super) base: Duration,
    /// Queueing delay of what came since the last look, s; `None` if nothing
    /// came.
    pub(super) queueing: Option<f64>,
    /// Largest segment, bytes.
    pub(super) segment: f64,
    /// Bytes received since the connection was opened.
    pub(super) bytes: u64,
    /// Segments received out of order since the connection was opened.
    pub(super) out_of_order: u32,
    /// What the path carries when nobody else uses it, byte/s; 0 while
    /// nothing is known of it.
    pub(super) capacity: f64,
    /// How much of the path is filled fast when it becomes free, whatever
    /// there was before: 0, as far as the threshold, to 1, all of it.
    pub(super) eagerness: f64,
}

/// See the module.
#[derive(Debug, Clone)]
pub(super) struct Yielding {
    history: History,
    /// Bytes.
    window: f64,
    /// Window at which the queue was met, bytes.
    threshold: Option<f64>,
    /// Whether the window has not grown since.
    has_met: bool,
    /// Steps since any queue was seen.
    quiet: u32,
    /// Mean rate in the last round trip, byte/s.
    rate: f64,
    /// Whether the window was what limited the flow at the last step.
    is_limiting: bool,
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

/// What is known at a step, in segments and seconds.
#[derive(Debug, Clone, Copy)]
struct Step {
    window: f64,
    /// What the path carries in a round trip without a queue.
    carried: f64,
    /// What was used of the window.
    used: f64,
    base: f64,
    /// The queue that stood through the last round trip.
    queue: f64,
}

impl Yielding {
    pub(super) fn new() -> Self {
        Self {
            history: History::default(),
            window: INITIAL,
            threshold: None,
            has_met: false,
            quiet: 0,
            rate: 0.0,
            is_limiting: false,
            came: None,
            next_step: Duration::ZERO,
            hold: Duration::ZERO,
            calm: Duration::ZERO,
            clear: None,
            out_of_order: None,
        }
    }

    /// Mean rate in the last round trip, byte/s.
    pub(super) fn rate(&self) -> f64 {
        self.rate
    }

    /// Whether a queue holds the window down.
    pub(super) fn sees_queue(&self) -> bool {
        self.has_met
    }

    /// The window, while it is not in force and says nothing: bytes.
    pub(super) fn wait(&mut self, now: Duration, seen: &Seen) -> f64 {
        let rtt = self.look(now, seen);
        self.out_of_order = Some(seen.out_of_order);
        self.next_step = now + rtt.mul_f64(AFTER_STEP);
        self.calm = now + rtt.mul_f64(2.0);
        self.window
    }

    /// Looks at the connection; returns the window in bytes. May be called as
    /// often as one likes: it steps about once in a round trip.
    pub(super) fn update(&mut self, now: Duration, seen: &Seen) -> f64 {
        let rtt = self.look(now, seen);
        if seen.queueing.is_none() {
            return self.window;
        }
        if self.is_limiting
            && now >= self.calm
            && self.window > 2.0 * FLOOR * seen.segment
            && self.has_risen(seen, rtt)
        {
            self.came = Some(now);
            let used = (self.rate * rtt.as_secs_f64()).min(self.window);
            self.meet(self.rate * seen.base.as_secs_f64());
            self.window = (used * YIELD).max(FLOOR * seen.segment);
            self.hold = now + rtt.mul_f64(HOLD);
            self.calm = now + rtt.mul_f64(AFTER_STEP);
            self.next_step = self.calm;
        } else if now >= self.next_step
            && let Some(rate) = self.history.rate(rtt)
        {
            self.rate = rate;
            let (window, round_trips) = self.step(now, seen, rtt);
            self.window = window * seen.segment;
            self.next_step = now + rtt.mul_f64(round_trips);
            self.out_of_order = Some(seen.out_of_order);
        }
        self.window
    }

    /// Takes note of what is to be seen; returns the round-trip time now.
    fn look(&mut self, now: Duration, seen: &Seen) -> Duration {
        let base = seen.base.as_secs_f64();
        if seen
            .queueing
            .is_some_and(|queue| queue < CLEAR + CLEAR_SHARE * base)
        {
            self.clear = Some(now);
        }
        let rtt = seen.base + Duration::from_secs_f64(self.history.newest());
        let look = Look {
            at: now,
            bytes: seen.bytes,
            queueing: seen.queueing,
            window: self.window,
        };
        self.history.add(look, rtt);
        seen.base + Duration::from_secs_f64(self.history.newest())
    }

    /// Whether the delay has risen by more than our growth explains.
    fn has_risen(&self, seen: &Seen, rtt: Duration) -> bool {
        let limit = RISE.max(RISE_SHARE * seen.base.as_secs_f64());
        let rise = self.history.rise(rtt);
        rise.is_some_and(|rise| rise - self.own_queue() > limit)
    }

    /// Delay that our own growth explains, s.
    fn own_queue(&self) -> f64 {
        let growth = self.history.growth();
        if growth > 0.0 {
            growth / self.rate.max(1.0)
        } else {
            0.0
        }
    }

    /// A queue was met with so many bytes carried in a round trip.
    fn meet(&mut self, carried: f64) {
        self.quiet = 0;
        if !self.has_met {
            let met = carried.min(self.window);
            let mean = |old: f64| met.max(MEMORY * old + (1.0 - MEMORY) * met);
            self.threshold = Some(self.threshold.map_or(met, mean));
            self.has_met = true;
        }
    }

    /// The next window, segments, and the round trips until the one after.
    fn step(&mut self, now: Duration, seen: &Seen, rtt: Duration) -> (f64, f64) {
        let in_segments = |bytes: f64| bytes / seen.segment;
        let base = seen.base.as_secs_f64();
        let queue = self.history.standing(rtt);
        let step = Step {
            // The kernel's idea of a segment grows in the first round trips.
            window: in_segments(self.window),
            carried: in_segments(self.rate * base),
            used: in_segments(self.rate * (base + queue)),
            base,
            queue,
        };
        self.is_limiting = step.fills(USED);
        let lost = self
            .out_of_order
            .is_some_and(|before| seen.out_of_order >= before.saturating_add(REORDERED));
        if lost {
            let kept = if queue > QUEUE + QUEUE_SHARE * base {
                YIELD
            } else {
                LOSS_ALONE
            };
            self.meet(self.rate * base);
            self.hold = now + rtt.mul_f64(AFTER_LOSS);
            return ((step.window * kept).max(FLOOR), AFTER_LOSS);
        }
        let has_just_come = self.came.is_some_and(|came| now < came + SOON);
        let (foreign, own) = if has_just_come {
            (FOREIGN_SOON, 0.0)
        } else {
            (FOREIGN, self.own_queue())
        };
        let short = QUEUE + QUEUE_SHARE * base;
        if queue - own > short + foreign {
            self.meet(self.rate * base);
            let yielded = (step.window.min(step.used) * YIELD).min(step.carried);
            return (yielded.max(FLOOR), AFTER_STEP);
        }
        let capacity = in_segments(seen.capacity * base);
        let near = self
            .threshold
            .map(|threshold| NEAR * in_segments(threshold).max(seen.eagerness * capacity));
        let is_far = near.is_none_or(|near| step.window < near);
        if queue > short + foreign || (queue > short && !is_far && self.is_limiting) {
            return self.fill(&step, seen.segment);
        }
        if now < self.hold || !self.is_limiting {
            return (step.window, AFTER_STEP);
        }
        let unseen = self.clear.is_some_and(|clear| now >= clear + UNSEEN);
        if unseen {
            self.clear = Some(now);
            self.calm = now + rtt.mul_f64(2.0 * AFTER_LOSS);
            return ((ROOM * step.carried).max(FLOOR), AFTER_LOSS);
        }
        (self.grow(&step, near), AFTER_STEP)
    }

    /// With a short queue: as much as the path carries without one, and our
    /// own part of it.
    fn fill(&mut self, step: &Step, segment: f64) -> (f64, f64) {
        // A small window is not used up by whole segments, and carries what it
        // is good for nevertheless.
        let carried = if step.window < SMALL && step.fills(USED_NEAR) {
            step.carried
                .max(step.window * step.base / (step.base + step.queue))
        } else {
            step.carried
        };
        let target = carried + OWN_QUEUE * carried.max(1.0).sqrt();
        if target < step.window - 1.0 {
            self.meet(target * segment);
            return (target.max(FLOOR), AFTER_DECREASE);
        }
        if step.fills(NEAR) {
            return (target.min(step.window + MOST_GROWTH).max(FLOOR), AFTER_STEP);
        }
        (step.window, AFTER_STEP)
    }

    /// Without a queue: fast up to `near`, where it was met.
    fn grow(&mut self, step: &Step, near: Option<f64>) -> f64 {
        if step.queue < CLEAR + CLEAR_SHARE * step.base {
            self.quiet += 1;
        } else {
            self.quiet = self.quiet.min(QUIET_STEPS as u32 - 1);
        }
        let window = step.window;
        let Some(near) = near else {
            return window * FAST_GROWTH;
        };
        if window < near {
            self.has_met = false;
            return (window * FAST_GROWTH).min(near.max(window + 1.0));
        }
        let quiet = f64::from(self.quiet) - QUIET_STEPS;
        if !step.fills(if quiet > 1.0 { USED } else { USED_NEAR }) {
            return window;
        }
        self.has_met = false;
        let careful = (GROWTH * window.sqrt()).min(MOST_GROWTH);
        let growth = (quiet / QUIET_DOUBLING).exp2().max(careful).min(window);
        (window + growth)
            .min(AHEAD * step.used.max(window / 2.0).max(FLOOR))
            .max(FLOOR)
    }
}

impl Step {
    /// Whether at least this share of the window was used.
    fn fills(&self, share: f64) -> bool {
        self.used >= (share * self.window).min(self.window - LEFT_OVER)
    }
}
