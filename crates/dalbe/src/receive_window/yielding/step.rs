//! What is known when the window is set anew, in segments and seconds, and
//! what it would have to be for the path to be just full.

use super::super::limits::{USED, no_queue};

/// A window that is so many times as wide as one that limits the flow does not,
/// for sure.
const WIDER: f64 = 1.05;
/// A sender sends whole segments, two by two: so many may be left over.
const LEFT_OVER: f64 = 2.5;
/// A window of fewer segments is small: what is left over of it counts.
pub(super) const SMALL: f64 = 10.0;
/// Of a small window, from this share on it is used up.
const USED_SMALL: f64 = 0.85;

/// Our own part of the queue, segments (alpha of Vegas and FAST), times the
/// square root of the window. One flow then leaves as short a queue as it can
/// regulate, n flows one that is only sqrt(n) times as long; and smaller
/// flows have more of it for their size, so that shares become equal.
const OWN_QUEUE: f64 = 0.28;

/// At most this share of the window is taken away beyond what the queue holds
/// of it: a rate that asks for more is one of a moment.
const MOST_DECREASE: f64 = 0.15;

/// See the module.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    pub(super) window: f64,
    /// What the path carries in a round trip without a queue.
    pub(super) carried: f64,
    /// The same over a longer time; as much as that, if it is not known.
    pub(super) carried_steadily: f64,
    /// What was used of the window.
    pub(super) used: f64,
    pub(super) base: f64,
    /// The most that the path is known to carry, segments per second.
    pub(super) capacity: f64,
    /// The queue that stood through the last round trip.
    pub(super) queue: f64,
}

impl Step {
    /// Whether at least this share of the window was used.
    pub(super) fn fills(&self, share: f64) -> bool {
        self.used >= (share * self.window).min(self.window - LEFT_OVER)
    }

    /// Whether nothing is to be seen of a queue.
    pub(super) fn is_clear(&self) -> bool {
        self.queue < no_queue(self.base)
    }

    /// As much as the path carries without a queue, and our own part of one.
    pub(super) fn full(&self) -> f64 {
        let carried = self.carried.max(self.carried_steadily);
        // A small window is not used up by whole segments, and carries what it
        // is good for nevertheless.
        let carried = if self.window < SMALL && self.fills(USED_SMALL) {
            carried.max(self.window * self.base / (self.base + self.queue))
        } else {
            carried
        };
        carried + OWN_QUEUE * carried.max(1.0).sqrt()
    }

    /// The least that may be left of the window for a queue that is short.
    pub(super) fn least(&self) -> f64 {
        let rate = self.carried.max(self.carried_steadily) / self.base;
        self.window - (self.queue * rate).max(MOST_DECREASE * self.window)
    }

    /// A window that is just too wide to limit the flow.
    pub(super) fn unlimiting(&self) -> f64 {
        WIDER * self.used / USED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(window: f64, carried: f64, queue: f64) -> Step {
        Step {
            window,
            carried,
            carried_steadily: carried,
            used: carried * (0.1 + queue) / 0.1,
            base: 0.1,
            capacity: 833.0,
            queue,
        }
    }

    #[test]
    fn a_full_path_has_a_queue_of_a_few_segments() {
        let full = step(85.0, 83.3, 0.002).full();
        assert!((83.3 + 2.0..83.3 + 4.0).contains(&full), "{full}");
        // What was carried over a longer time counts if that is more.
        let moment = Step {
            carried_steadily: 83.3,
            ..step(85.0, 75.0, 0.002)
        };
        assert_eq!(moment.full(), full);
    }

    #[test]
    fn no_more_is_taken_away_than_the_queue_holds_or_a_little() {
        let least = step(85.0, 40.0, 0.004).least();
        assert!((least - 0.85 * 85.0).abs() < 1e-9, "{least}");
        let least = step(160.0, 83.3, 0.060).least();
        assert!((least - 110.0).abs() < 0.1, "{least}");
    }

    #[test]
    fn of_a_small_window_whole_segments_are_used() {
        // Two of four segments in each round trip: two more do not fit.
        assert!(step(4.0, 2.0, 0.0).fills(0.9));
        assert!(!step(40.0, 20.0, 0.0).fills(0.9));
    }
}
