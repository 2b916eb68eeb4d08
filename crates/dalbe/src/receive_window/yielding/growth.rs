//! The growth of the window while there is no queue.
//!
//! The window at which a queue was last met is the threshold (Vulture's
//! `rwndThresh`). Growth is fast up to the threshold and careful beyond it,
//! until no queue has been met for some time. [`WindowStep`] holds the
//! measurements of one step, in segments and seconds.

use crate::receive_window::{LIMITING_SHARE, MIN_WINDOW_SEGMENTS, no_queue};

/// Growth per step near the threshold, segments, times the square root of the
/// window. Small flows grow more for their size, so shares become equal.
const CAREFUL_GROWTH: f64 = 0.11;
/// Limit on this growth: additive increase, segments (RFC 5681, section 3.1).
pub(crate) const MAX_CAREFUL_GROWTH: f64 = 1.0;

/// Factor per step far below the threshold (slow start, RFC 5681).
const FAST_FACTOR: f64 = 2.0;
/// Fast growth ends at this share of the threshold.
const NEAR_SHARE: f64 = 0.95;

/// After this many steps without a queue, more of the path must have become
/// free, ...
const QUIET_STEPS: u32 = 3;
/// ... and growth doubles every this many steps.
const QUIET_DOUBLING_STEPS: f64 = 1.3;
/// Beyond the highest recent rate, growth is limited to this share of the
/// window: its effect shows two round trips later.
const MAX_QUIET_GROWTH_SHARE: f64 = 0.5;

/// While the path is unknown, the window grows only if this share of it is
/// used, ...
const USED_SHARE_UNKNOWN_PATH: f64 = 0.7;
/// ... and near the threshold only if this share is used. The effect of the
/// last step must have arrived.
const USED_SHARE_NEAR: f64 = 0.85;

/// The window is at most this many times the used part.
const MAX_WINDOW_PER_USED: f64 = 2.0;

/// Weight of the old threshold in the mean with a new one. Short-lived traffic
/// must not lower the threshold for long.
const THRESHOLD_MEMORY: f64 = 0.7;

/// The threshold, and the growth around it.
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

    /// A queue was met at this window, bytes. If the other traffic has `stayed`
    /// since the last time, the old threshold does not count.
    pub(crate) fn meet(&mut self, window: f64, stayed: bool) {
        self.quiet = 0;
        if !self.has_met {
            let memory = if stayed { 0.0 } else { THRESHOLD_MEMORY };
            let mean = |old: f64| window.max(memory * old + (1.0 - memory) * window);
            self.threshold = Some(self.threshold.map_or(window, mean));
            self.has_met = true;
        }
    }

    /// The window has grown with a queue.
    pub(crate) fn grown(&mut self) {
        self.has_met = false;
    }

    /// Where fast growth ends, segments; `None` while it is unknown. The
    /// threshold counts as at least `min` segments.
    pub(crate) fn near(&self, segment: f64, min: f64) -> Option<f64> {
        let threshold = self.threshold?;
        Some(NEAR_SHARE * (threshold / segment).max(min))
    }

    /// The next window, segments. After other traffic `has_come`, growth beyond
    /// the known capacity stays careful.
    pub(crate) fn grow(&mut self, step: &WindowStep, near: Option<f64>, has_come: bool) -> f64 {
        let is_known = !has_come && step.window < NEAR_SHARE * step.capacity * step.base;
        self.quiet = if is_known || step.is_clear() {
            self.quiet.saturating_add(1)
        } else {
            self.quiet.min(QUIET_STEPS - 1)
        };
        let window = step.window;
        let Some(near) = near else {
            return if step.fills(USED_SHARE_UNKNOWN_PATH) {
                window * FAST_FACTOR
            } else {
                window
            };
        };
        if window < near {
            self.has_met = false;
            return (window * FAST_FACTOR).min(near.max(window + 1.0));
        }
        let quiet = f64::from(self.quiet) - f64::from(QUIET_STEPS);
        if !step.fills(if quiet > 1.0 {
            LIMITING_SHARE
        } else {
            USED_SHARE_NEAR
        }) {
            return window;
        }
        self.has_met = false;
        let careful = (CAREFUL_GROWTH * window.sqrt()).min(MAX_CAREFUL_GROWTH);
        let known = (step.capacity * step.base - window).max(careful);
        let max = if has_come {
            known
        } else {
            known.max(MAX_QUIET_GROWTH_SHARE * window)
        };
        let growth = (quiet / QUIET_DOUBLING_STEPS).exp2().max(careful).min(max);
        (window + growth)
            .min(MAX_WINDOW_PER_USED * step.used.max(window / 2.0).max(MIN_WINDOW_SEGMENTS))
            .max(MIN_WINDOW_SEGMENTS)
    }
}

/// A window this many times as wide as a limiting one does not limit the flow.
const UNLIMITING_FACTOR: f64 = 1.05;
/// A sender sends whole segments in pairs, so up to this many segments of the
/// window stay unused.
const MAX_UNUSED_SEGMENTS: f64 = 2.5;
/// Below this many segments a window is small, and unused segments count.
pub(crate) const SMALL_WINDOW: f64 = 10.0;
/// A small window counts as used up from this share on.
const USED_SHARE_SMALL: f64 = 0.85;

/// Our own part of the queue, segments (alpha of Vegas and FAST_FACTOR), times the
/// square root of the window. n flows then keep a queue that is only sqrt(n)
/// times as long, and shares become equal.
const OWN_QUEUE: f64 = 0.28;

/// Limit on the decrease beyond our part of the queue, as a share of the
/// window. A rate that asks for more lasts only a moment.
const MAX_DECREASE_SHARE: f64 = 0.15;

/// The measurements of one step of the window. Windows are in segments, times in
/// seconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WindowStep {
    pub(crate) window: f64,
    /// The data of a round trip without a queue.
    pub(crate) carried: f64,
    /// The same over a longer time; equal to `carried` while it is unknown.
    pub(crate) carried_steadily: f64,
    /// The used part of the window.
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
        self.used >= (share * self.window).min(self.window - MAX_UNUSED_SEGMENTS)
    }

    /// Whether there is no sign of a queue.
    pub(crate) fn is_clear(&self) -> bool {
        self.queue < no_queue(self.base)
    }

    /// What the path carries without a queue, plus our own part of a queue.
    pub(crate) fn full(&self) -> f64 {
        let carried = self.carried.max(self.carried_steadily);
        // Whole segments do not fill a small window, but it still limits the flow.
        let carried = if self.window < SMALL_WINDOW && self.fills(USED_SHARE_SMALL) {
            carried.max(self.window * self.base / (self.base + self.queue))
        } else {
            carried
        };
        carried + OWN_QUEUE * carried.max(1.0).sqrt()
    }

    /// The smallest window after a decrease for a short queue.
    pub(crate) fn min_decreased(&self) -> f64 {
        let rate = self.carried.max(self.carried_steadily) / self.base;
        self.window - (self.queue * rate).max(MAX_DECREASE_SHARE * self.window)
    }

    /// The smallest window that does not limit the flow.
    pub(crate) fn unlimiting(&self) -> f64 {
        UNLIMITING_FACTOR * self.used / LIMITING_SHARE
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
    fn a_window_that_met_no_queue_doubles() {
        let mut growth = Growth::default();
        assert_eq!(grown(&mut growth, 40.0, 40.0, false), 80.0);
        let unused = WindowStep {
            used: 40.0,
            ..used_up(80.0, 40.0)
        };
        assert_eq!(growth.grow(&unused, None, false), 80.0);
    }

    #[test]
    fn growth_is_fast_up_to_the_threshold_and_careful_beyond() {
        let mut growth = met(80.0);
        assert_eq!(grown(&mut growth, 20.0, 80.0, false), 40.0);
        assert_eq!(grown(&mut growth, 40.0, 80.0, false), 76.0);
        let beyond = grown(&mut met(80.0), 80.0, 80.0, false);
        assert!((80.5..=81.0).contains(&beyond), "{beyond}");
    }

    #[test]
    fn growth_is_fast_again_after_a_long_time_without_a_queue() {
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
    fn only_traffic_that_stays_lowers_the_threshold_for_long() {
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
    fn a_decrease_takes_the_queue_or_a_little() {
        let least = step(85.0, 40.0, 0.004).min_decreased();
        assert!((least - 0.85 * 85.0).abs() < 1e-9, "{least}");
        let least = step(160.0, 83.3, 0.060).min_decreased();
        assert!((least - 110.0).abs() < 0.1, "{least}");
    }

    #[test]
    fn a_small_window_is_filled_by_whole_segments() {
        // Two of four segments in each round trip: two more do not fit.
        assert!(step(4.0, 2.0, 0.0).fills(0.9));
        assert!(!step(40.0, 20.0, 0.0).fills(0.9));
    }
}
