//! The receive window of a flow that yields to anybody, yet fills an idle
//! link.
//!
//! A delay-based rule on the window, after FAST TCP (Wei, Jin, Low and Hegde
//! 2006, eq. 1) and TCP Vegas (Brakmo and Peterson 1995): with a queue on the
//! path the window goes to what the path carries without one, plus a few
//! segments; without a queue it grows. Vulture's `rwndThresh` is remembered:
//! growth is fast up to the window at which the queue was last met, and
//! careful beyond, unless time presses. Knows nothing of weights, deadlines or sockets.

use std::time::Duration;

use super::base_rtt::BaseRtt;

/// Least window, segments: with less, a delayed acknowledgement stops the
/// sender (RFC 9840 section 4.2.2 uses the same floor).
const FLOOR: f64 = 2.0;

/// Window to begin with, bytes: what Linux offers at the handshake and cannot
/// take back.
const INITIAL: f64 = 65_536.0;

/// A delay above the base that is a queue: this long, and ...
const QUEUE: Duration = Duration::from_micros(1500);
/// ... this share of the base (clock ticks and jitter grow with the path).
const QUEUE_SHARE: f64 = 0.01;

/// Segments of our own that may wait in the queue (alpha of Vegas and FAST):
/// this share of what fills the path, ...
const OWN_QUEUE_SHARE: f64 = 0.035;
/// ... but not less than this, for a window moves in whole segments, ...
const OWN_QUEUE_LEAST: f64 = 0.5;
/// ... nor more than Vegas allows.
const OWN_QUEUE_MOST: f64 = 3.0;

/// Growth per step far below the window at which the queue was met.
const FAST_GROWTH: f64 = 1.5;
/// Where "far below" ends.
const NEAR: f64 = 0.9;
/// After so many steps without any queue more of the path must have become
/// free ...
const QUIET_STEPS: u32 = 8;
/// ... and the window grows by this factor per step.
const QUIET_GROWTH: f64 = 1.25;

/// So many segments out of order are a loss, and fewer are packets that have
/// overtaken each other (the duplicate acknowledgements of RFC 5681 section
/// 3.2).
const REORDERED: u32 = 3;

/// The window moves only if at least this share of it was used: else it is
/// not what limits the flow.
const USED: f64 = 0.6;

/// Round trips from one step to the next, for its effect to show: after
/// growth, ...
const AFTER_GROWTH: f64 = 1.2;
/// ... after going down, ...
const AFTER_DECREASE: f64 = 1.8;
/// ... and after a loss.
const AFTER_LOSS: f64 = 2.0;

/// What the connection reports.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Seen {
    /// Round-trip time now.
    pub(super) rtt: Duration,
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
    base: BaseRtt,
    /// Bytes.
    window: f64,
    /// Window at which the queue was last met, bytes.
    threshold: Option<f64>,
    /// Steps since a queue was last met.
    quiet: u32,
    /// Counters at the last step.
    mark: Option<Mark>,
    next_step: Duration,
    /// Mean rate between the last two steps, byte/s.
    rate: f64,
}

#[derive(Debug, Clone, Copy)]
struct Mark {
    at: Duration,
    bytes: u64,
    out_of_order: u32,
}

impl Yielding {
    pub(super) fn new() -> Self {
        Self {
            base: BaseRtt::default(),
            window: INITIAL,
            threshold: None,
            quiet: 0,
            mark: None,
            next_step: Duration::ZERO,
            rate: 0.0,
        }
    }

    /// Round-trip time without a queue, as another connection over the same
    /// path has seen it.
    pub(super) fn learn_base(&mut self, now: Duration, rtt: Duration) {
        self.base.update(now, rtt);
    }

    /// When the least round-trip time was seen, and it; once it is known.
    pub(super) fn base(&self) -> Option<(Duration, Duration)> {
        self.base.least()
    }

    /// Mean rate between the last two steps, byte/s.
    pub(super) fn rate(&self) -> f64 {
        self.rate
    }

    /// The window, while it is not in force and says nothing: bytes.
    pub(super) fn wait(&mut self, now: Duration, seen: &Seen) -> f64 {
        self.mark = Some(Mark::of(now, seen));
        self.next_step = now + seen.rtt.mul_f64(AFTER_GROWTH);
        self.window
    }

    /// Looks at the connection; returns the window in bytes. May be called as
    /// often as one likes: it steps about once in a round trip.
    pub(super) fn update(&mut self, now: Duration, seen: &Seen) -> f64 {
        let base = self.base.update(now, seen.rtt);
        let mark = *self.mark.get_or_insert(Mark::of(now, seen));
        let elapsed = now.saturating_sub(mark.at);
        let bytes = seen.bytes.saturating_sub(mark.bytes);
        if now >= self.next_step && elapsed >= seen.rtt && !elapsed.is_zero() && bytes > 0 {
            self.rate = bytes as f64 / elapsed.as_secs_f64();
            let (window, round_trips) = self.step(base, mark, seen);
            self.window = window * seen.segment;
            self.next_step = now + seen.rtt.mul_f64(round_trips);
            self.mark = Some(Mark::of(now, seen));
        } else if bytes == 0 {
            // Nothing came: no pause of the sender shall count as slowness.
            self.mark = Some(Mark::of(now, seen));
        }
        self.window
    }

    /// The next window, segments, and the round trips until the one after.
    fn step(&mut self, base: Duration, mark: Mark, seen: &Seen) -> (f64, f64) {
        // The kernel's idea of a segment grows in the first round trips.
        let window = self.window / seen.segment;
        let in_segments = |rate: f64, time: Duration| rate * time.as_secs_f64() / seen.segment;
        if seen.out_of_order >= mark.out_of_order.saturating_add(REORDERED) {
            self.quiet = 0;
            let half = (window / 2.0).max(FLOOR);
            self.threshold = Some(half * seen.segment);
            return (half, AFTER_LOSS);
        }
        if in_segments(self.rate, seen.rtt) < USED * window {
            return (window, AFTER_GROWTH);
        }
        let queue = seen.rtt.saturating_sub(base);
        if queue > QUEUE + base.mul_f64(QUEUE_SHARE) {
            self.quiet = 0;
            let own_queue = (OWN_QUEUE_SHARE * in_segments(seen.capacity, base))
                .clamp(OWN_QUEUE_LEAST, OWN_QUEUE_MOST);
            let target = (in_segments(self.rate, base) + own_queue).max(FLOOR);
            if target < window - 1.0 {
                self.threshold = Some(target * seen.segment);
                return (target, AFTER_DECREASE);
            }
            return (window, AFTER_GROWTH);
        }
        self.quiet += 1;
        let eager = seen.eagerness * in_segments(seen.capacity, base);
        let is_far_below = self
            .threshold
            .is_none_or(|threshold| window < NEAR * (threshold / seen.segment).max(eager));
        let grown = if is_far_below {
            window * FAST_GROWTH
        } else if self.quiet > QUIET_STEPS {
            window * QUIET_GROWTH
        } else {
            window + 1.0
        };
        (grown, AFTER_GROWTH)
    }
}

impl Mark {
    fn of(now: Duration, seen: &Seen) -> Self {
        Self {
            at: now,
            bytes: seen.bytes,
            out_of_order: seen.out_of_order,
        }
    }
}
