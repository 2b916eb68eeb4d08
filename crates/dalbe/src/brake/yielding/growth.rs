//! How the window grows while no queue is met.
//!
//! Vulture's `rwndThresh` is remembered: growth is fast up to the window at
//! which a queue was last met, and careful beyond, until nothing has been met
//! for some time. Knows nothing of delays, nor who was met.

use super::super::limits::FLOOR;
use super::step::{Step, USED};

/// Growth per step near the threshold, segments, times the square root of the
/// window: smaller flows grow more for their size, and shares become equal; ...
const CAREFUL: f64 = 0.11;
/// ... at most additive increase (RFC 5681 section 3.1), segments.
pub(super) const MOST_CAREFUL: f64 = 1.0;

/// Growth per step far below the threshold (slow start, RFC 5681).
const FAST: f64 = 2.0;
/// Where "far below" ends.
const NEAR: f64 = 0.95;

/// After so many steps with no queue at all more of the path must have become
/// free, ...
const QUIET_STEPS: u32 = 3;
/// ... and growth doubles within so many steps; ...
const QUIET_DOUBLING: f64 = 1.3;
/// ... but beyond the most that was ever carried it is no more than this share
/// of the window: what comes of it shows two round trips later.
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
pub(super) struct Growth {
    /// Window at which a queue was met, bytes.
    threshold: Option<f64>,
    /// Whether the window has not grown since.
    has_met: bool,
    /// Steps since any queue was seen.
    quiet: u32,
}

impl Growth {
    /// Whether a queue holds the window down.
    pub(super) fn has_met(&self) -> bool {
        self.has_met
    }

    /// A queue was met at this window, bytes. If others have `stayed` since the
    /// last time, what was possible without them says nothing now.
    pub(super) fn meet(&mut self, window: f64, stayed: bool) {
        self.quiet = 0;
        if !self.has_met {
            let memory = if stayed { 0.0 } else { MEMORY };
            let mean = |old: f64| window.max(memory * old + (1.0 - memory) * window);
            self.threshold = Some(self.threshold.map_or(window, mean));
            self.has_met = true;
        }
    }

    /// Where fast growth ends, segments; `None` while that is unknown. Never
    /// below what fills this much of the path, segments.
    pub(super) fn near(&self, segment: f64, least: f64) -> Option<f64> {
        let threshold = self.threshold?;
        Some(NEAR * (threshold / segment).max(least))
    }

    /// The next window, segments. While somebody `has_come` it goes no faster
    /// than carefully beyond the most that the path is known to carry.
    pub(super) fn grow(&mut self, step: &Step, near: Option<f64>, has_come: bool) -> f64 {
        self.quiet = if step.is_clear() {
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
        if !step.fills(if quiet > 1.0 { USED } else { USED_NEAR }) {
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
            .min(AHEAD * step.used.max(window / 2.0).max(FLOOR))
            .max(FLOOR)
    }
}
