//! The widest window that does not lose data again. Levels are in segments, times in
//! seconds.

use std::time::Duration;

/// After a proven loss, the window stays below this share of the level that was lost, ...
const SHARE: f64 = 0.93;
/// ... which rises by this much in a second.
const RISE: f64 = 0.01;

/// A loss at less than this share of the capacity was no full path.
const MIN_FULL_SHARE: f64 = 0.8;

/// A level that loses data, and since when it is known; `None` without one.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ceiling(Option<(f64, Duration)>);

impl Ceiling {
    /// A test has found nobody after a loss at this level of a path that carries `full`.
    pub(crate) fn after_loss(now: Duration, level: f64, full: f64) -> Self {
        Self((level > MIN_FULL_SHARE * full).then_some((level, now)))
    }

    /// Segments have become this many times as many.
    pub(crate) fn scale(&mut self, factor: f64) {
        if let Some((level, _)) = &mut self.0 {
            *level *= factor;
        }
    }

    /// The widest window, as far as it is known.
    pub(crate) fn window(self, now: Duration) -> f64 {
        self.0.map_or(f64::INFINITY, |(level, since)| {
            level * (SHARE + RISE * now.saturating_sub(since).as_secs_f64())
        })
    }
}
