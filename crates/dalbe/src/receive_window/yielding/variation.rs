//! Whether the rate of a path varies by itself, as radio's does, and how far it falls.
//!
//! A queue comes and goes there although nobody else is on the path. Tests find nobody,
//! one after the other, and each at another level. As long as that lasts, a queue is
//! that of the flow itself. All functions follow from their arguments.

use std::collections::VecDeque;

/// So many tests in a row have found nobody, ...
const MIN_TESTS: usize = 2;
/// ... at levels that differ by more than this share. The last few count.
const MIN_SPREAD: f64 = 0.2;
const REMEMBERED: usize = 8;

/// A level of less than this share of what the path carries is that of a path with
/// others: a test has met a gap between their transfers.
const MIN_LEVEL: f64 = 0.4;

/// The levels at which tests have found nobody since others were last found, segments.
#[derive(Debug, Clone, Default)]
pub(crate) struct Variation {
    levels: VecDeque<f64>,
}

impl Variation {
    /// Segments have become this many times as many.
    pub(crate) fn scale(&mut self, factor: f64) {
        for level in &mut self.levels {
            *level *= factor;
        }
    }

    /// A test has found nobody at this level of a path that carries `full`.
    pub(crate) fn learn(&mut self, level: f64, full: f64) {
        if level < MIN_LEVEL * full {
            self.forget();
            return;
        }
        self.levels.push_back(level);
        if self.levels.len() > REMEMBERED {
            self.levels.pop_front();
        }
    }

    /// Others may be there.
    pub(crate) fn forget(&mut self) {
        self.levels.clear();
    }

    /// The least that the path carries, where its rate varies by itself.
    pub(crate) fn least(&self) -> Option<f64> {
        let least = self.levels.iter().copied().fold(f64::INFINITY, f64::min);
        let most = self.levels.iter().copied().fold(0.0, f64::max);
        let varies = self.levels.len() >= MIN_TESTS && most - least > MIN_SPREAD * most;
        varies.then_some(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(levels: &[f64]) -> Variation {
        let mut variation = Variation::default();
        for &level in levels {
            variation.learn(level, 80.0);
        }
        variation
    }

    #[test]
    fn tests_that_find_nobody_at_ever_other_levels_show_a_rate_that_varies() {
        assert_eq!(after(&[60.0]).least(), None, "one test");
        assert_eq!(after(&[60.0, 55.0, 62.0]).least(), None, "a steady rate");
        assert_eq!(after(&[60.0, 45.0]).least(), Some(45.0));
        let mut variation = after(&[60.0, 45.0]);
        variation.scale(0.5);
        assert_eq!(variation.least(), Some(22.5));
        variation.forget();
        assert_eq!(variation.least(), None);
    }

    #[test]
    fn a_gap_between_transfers_of_others_shows_none() {
        assert_eq!(after(&[60.0, 20.0]).least(), None);
        assert_eq!(after(&[60.0, 20.0, 70.0]).least(), None);
    }

    #[test]
    fn an_old_level_is_forgotten() {
        let mut levels = vec![40.0];
        levels.extend([70.0; REMEMBERED]);
        assert_eq!(after(&levels).least(), None);
    }
}
