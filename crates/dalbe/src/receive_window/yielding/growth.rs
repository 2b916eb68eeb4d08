//! How the window grows while no queue is met.
//!
//! Vulture's `rwndThresh` is remembered: growth is fast up to the window at
//! which a queue was last met, and careful beyond, until nothing has been met
//! for some time. Decides neither whether there is a queue, nor whose it is.

use crate::receive_window::{LIMITING_SHARE, MIN_WINDOW_SEGMENTS, no_queue};

/// Growth per step near the threshold, segments, times the square root of the
/// window: smaller flows grow more for their size, and shares become equal; ...
const CAREFUL: f64 = 0.11;
/// ... at most additive increase (RFC 5681 section 3.1), segments.
pub(crate) const MOST_CAREFUL: f64 = 1.0;

/// Growth per step far below the threshold (slow start, RFC 5681).
const FAST: f64 = 2.0;
/// Where "far below" ends.
const NEAR: f64 = 0.95;

/// After so many steps with no queue at all more of the path must have become
/// free, ...
const QUIET_STEPS: u32 = 3;
/// ... and growth doubles within so many steps; ...
const QUIET_DOUBLING: f64 = 1.3;
/// ... but beyond the most that was carried of late it is no more than this
/// share of the window: what comes of it shows two round trips later.
const QUIET_MOST: f64 = 0.5;

/// While nothing is known of the path growth waits until this share of the
/// window is used, ...
const USED_FIRST: f64 = 0.7;
/// ... and near the threshold until this is: what the last step brings is on
/// its way.
const USED_NEAR: f64 = 0.85;

/// The window is never more than this many times what is used.
const AHEAD: f64 = 2.0;

/// The threshold is the mean of the old one and the window at which the queue
/// is met again: who comes and goes shall not shut us out for long.
const MEMORY: f64 = 0.7;

/// See the module.
#[derive(Debug, Clone, Default)]
pub(crate) struct Growth {
    /// Window at which a queue was met, bytes.
    threshold: Option<f64>,
    /// Whether the window has not grown since.
    has_met: bool,
    /// Steps without any queue, on the way up as well.
    quiet: u32,
}

impl Growth {
    /// Whether a queue holds the window down.
    pub(crate) fn has_met(&self) -> bool {
        self.has_met
    }

    /// A queue was met at this window, bytes. If others have `stayed` since the
    /// last time, what was possible without them says nothing now.
    pub(crate) fn meet(&mut self, window: f64, stayed: bool) {
        self.quiet = 0;
        if !self.has_met {
            let memory = if stayed { 0.0 } else { MEMORY };
            let mean = |old: f64| window.max(memory * old + (1.0 - memory) * window);
            self.threshold = Some(self.threshold.map_or(window, mean));
            self.has_met = true;
        }
    }

    /// The window has grown although there is a queue.
    pub(crate) fn grown(&mut self) {
        self.has_met = false;
    }

    /// Where fast growth ends, segments; `None` while that is unknown. With a
    /// threshold of at least so many segments.
    pub(crate) fn near(&self, segment: f64, least: f64) -> Option<f64> {
        let threshold = self.threshold?;
        Some(NEAR * (threshold / segment).max(least))
    }

    /// The next window, segments. While somebody `has_come` it goes no faster
    /// than carefully beyond the most that the path is known to carry.
    pub(crate) fn grow(&mut self, step: &WindowStep, near: Option<f64>, has_come: bool) -> f64 {
        let is_known = !has_come && step.window < NEAR * step.capacity * step.base;
        self.quiet = if is_known || step.is_clear() {
            self.quiet.saturating_add(1)
        } else {
            self.quiet.min(QUIET_STEPS - 1)
        };
        let window = step.window;
        let Some(near) = near else {
            return if step.fills(USED_FIRST) {
                window * FAST
            } else {
                window
            };
        };
        if window < near {
            self.has_met = false;
            return (window * FAST).min(near.max(window + 1.0));
        }
        let quiet = f64::from(self.quiet) - f64::from(QUIET_STEPS);
        if !step.fills(if quiet > 1.0 {
            LIMITING_SHARE
        } else {
            USED_NEAR
        }) {
            return window;
        }
        self.has_met = false;
        let careful = (CAREFUL * window.sqrt()).min(MOST_CAREFUL);
        let known = (step.capacity * step.base - window).max(careful);
        let most = if has_come {
            known
        } else {
            known.max(QUIET_MOST * window)
        };
        let growth = (quiet / QUIET_DOUBLING).exp2().max(careful).min(most);
        (window + growth)
            .min(AHEAD * step.used.max(window / 2.0).max(MIN_WINDOW_SEGMENTS))
            .max(MIN_WINDOW_SEGMENTS)
    }
}

/// A window that is so many times as wide as one that limits the flow does not,
/// for sure.
const WIDER: f64 = 1.05;
/// A sender sends whole segments, two by two: so many may be left over.
const LEFT_OVER: f64 = 2.5;
/// A window of fewer segments is small: what is left over of it counts.
pub(crate) const SMALL: f64 = 10.0;
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
pub(crate) struct WindowStep {
    pub(crate) window: f64,
    /// What the path carries in a round trip without a queue.
    pub(crate) carried: f64,
    /// The same over a longer time; as much as that, if it is not known.
    pub(crate) carried_steadily: f64,
    /// What was used of the window.
    pub(crate) used: f64,
    pub(crate) base: f64,
    /// The most that the path is known to carry, segments per second.
    pub(crate) capacity: f64,
    /// The queue that stood through the last round trip.
    pub(crate) queue: f64,
}

impl WindowStep {
    /// Whether at least this share of the window was used.
    pub(crate) fn fills(&self, share: f64) -> bool {
        self.used >= (share * self.window).min(self.window - LEFT_OVER)
    }

    /// Whether nothing is to be seen of a queue.
    pub(crate) fn is_clear(&self) -> bool {
        self.queue < no_queue(self.base)
    }

    /// As much as the path carries without a queue, and our own part of one.
    pub(crate) fn full(&self) -> f64 {
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
    pub(crate) fn least(&self) -> f64 {
        let rate = self.carried.max(self.carried_steadily) / self.base;
        self.window - (self.queue * rate).max(MOST_DECREASE * self.window)
    }

    /// A window that is just too wide to limit the flow.
    pub(crate) fn unlimiting(&self) -> f64 {
        WIDER * self.used / LIMITING_SHARE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: f64 = 1448.0;

    /// A window that is used up without any queue, where the path is known to
    /// carry `known` segments in a round trip.
    fn used_up(window: f64, known: f64) -> WindowStep {
        WindowStep {
            window,
            carried: window,
            carried_steadily: window,
            used: window,
            base: 0.1,
            capacity: known / 0.1,
            queue: 0.0,
        }
    }

    fn met(at: f64) -> Growth {
        let mut growth = Growth::default();
        growth.meet(at * SEGMENT, false);
        growth
    }

    /// The next window where this one is used up.
    fn grown(growth: &mut Growth, window: f64, known: f64, has_come: bool) -> f64 {
        let near = growth.near(SEGMENT, 0.0);
        growth.grow(&used_up(window, known), near, has_come)
    }

    #[test]
    fn before_anything_was_met_it_doubles_what_is_used() {
        let mut growth = Growth::default();
        assert_eq!(grown(&mut growth, 40.0, 40.0, false), 80.0);
        let unused = WindowStep {
            used: 40.0,
            ..used_up(80.0, 40.0)
        };
        assert_eq!(growth.grow(&unused, None, false), 80.0);
    }

    #[test]
    fn it_is_fast_as_far_as_the_threshold_and_careful_beyond() {
        let mut growth = met(80.0);
        assert_eq!(grown(&mut growth, 20.0, 80.0, false), 40.0);
        assert_eq!(grown(&mut growth, 40.0, 80.0, false), 76.0);
        let beyond = grown(&mut met(80.0), 80.0, 80.0, false);
        assert!((80.5..=81.0).contains(&beyond), "{beyond}");
    }

    #[test]
    fn when_nothing_is_met_for_long_it_is_fast_again() {
        let windows = |has_come, known| {
            let mut growth = met(20.0);
            let mut windows = vec![20.0];
            for _ in 0..12 {
                let last = windows[windows.len() - 1];
                windows.push(grown(&mut growth, last, known, has_come));
            }
            windows
        };
        let known = windows(false, 80.0);
        assert!(known[12] > 80.0, "{known:?}");
        let unknown = windows(false, 0.0);
        assert!(unknown[12] > 80.0, "{unknown:?}");
        let steepest = unknown.windows(2).map(|two| two[1] / two[0]);
        assert!(steepest.fold(0.0, f64::max) <= 1.5, "{unknown:?}");
        // Somebody has just come: no faster than carefully beyond what the path
        // is known to carry.
        let beside = windows(true, 30.0);
        assert!(beside[12] < 36.0, "{beside:?}");
    }

    #[test]
    fn who_comes_and_goes_is_forgotten_and_who_stays_is_not() {
        let near = |stayed| {
            let mut growth = met(80.0);
            grown(&mut growth, 40.0, 80.0, false);
            growth.meet(20.0 * SEGMENT, stayed);
            growth.near(SEGMENT, 0.0).unwrap()
        };
        assert!((near(false) - 0.95 * 62.0).abs() < 1e-9, "{}", near(false));
        assert!((near(true) - 0.95 * 20.0).abs() < 1e-9, "{}", near(true));
        assert_eq!(met(20.0).near(SEGMENT, 60.0), Some(57.0));
    }
}

#[cfg(test)]
mod step_tests {
    use super::*;

    fn step(window: f64, carried: f64, queue: f64) -> WindowStep {
        WindowStep {
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
        let moment = WindowStep {
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
