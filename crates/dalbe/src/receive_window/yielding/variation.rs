//! Whether the rate of a path varies by itself, as radio's does, and how far it falls.
//!
//! A queue comes and goes there although nobody else is on the path. Tests find nobody,
//! one after the other, and each at another level. As long as that lasts, a queue is
//! that of the flow itself. A queue that stays is another matter: the path has become
//! narrower. All functions follow from their arguments.

use std::collections::VecDeque;
use std::time::Duration;

/// So many tests in a row have found nobody, ...
const MIN_TESTS: usize = 2;
/// ... at levels that differ by more than this share. The last few count.
const MIN_SPREAD: f64 = 0.2;
const REMEMBERED: usize = 8;

/// A level of less than this share of what the path carries is that of a path with
/// others: a test has met a gap between their transfers.
const MIN_LEVEL: f64 = 0.4;

/// A queue stays if for this time ...
const STEADY_TIME: Duration = Duration::from_secs(2);
/// ... its shortest is more than this share of its longest.
const STEADY_SHARE: f64 = 0.5;

/// For this time after a test that found nobody, a rate that varies by itself explains a
/// queue, ...
const TRUST: Duration = Duration::from_secs(10);
/// ... if what is carried is at least this share of the least that tests have met.
const LEAST_SHARE: f64 = 0.9;

/// What tests and queues say of the rate of a path.
#[derive(Debug, Clone, Default)]
pub(crate) struct Variation {
    /// The levels at which tests have found nobody since others were last found, segments.
    levels: VecDeque<f64>,
    /// When a test last found nobody.
    tested: Duration,
    /// The shortest and the longest queue, s, since it last changed much, and when it did.
    queue: (f64, f64),
    changed: Duration,
}

impl Variation {
    /// Segments have become this many times as many.
    pub(crate) fn scale(&mut self, factor: f64) {
        for level in &mut self.levels {
            *level *= factor;
        }
    }

    /// A test has found nobody at this level of a path that carries `full`.
    pub(crate) fn learn(&mut self, now: Duration, level: f64, full: f64) {
        self.tested = now;
        if level < MIN_LEVEL * full {
            self.forget();
            return;
        }
        self.levels.push_back(level);
        if self.levels.len() > REMEMBERED {
            self.levels.pop_front();
        }
    }

    /// Takes the queue of a round trip, s, where one up to `target` is none.
    pub(crate) fn see(&mut self, now: Duration, queue: f64, target: f64) {
        self.queue = (self.queue.0.min(queue), self.queue.1.max(queue));
        if queue <= target || self.queue.0 < STEADY_SHARE * self.queue.1 {
            self.queue = (queue, queue);
            self.changed = now;
        } else if now >= self.changed + STEADY_TIME {
            self.forget();
        }
    }

    /// Others may be there.
    pub(crate) fn forget(&mut self) {
        self.levels.clear();
    }

    /// Whether the rate varies by itself.
    pub(crate) fn is_known(&self) -> bool {
        self.least().is_some()
    }

    /// Whether a queue while so much is carried may be the flow's own.
    pub(crate) fn explains(&self, now: Duration, carried: f64) -> bool {
        let least = self.least();
        now < self.tested + TRUST && least.is_some_and(|least| carried >= LEAST_SHARE * least)
    }

    /// The least that the path carries, where its rate varies by itself.
    fn least(&self) -> Option<f64> {
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
            variation.learn(Duration::ZERO, level, 80.0);
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
    fn a_queue_is_explained_for_some_time_by_what_the_path_carries_at_least() {
        let variation = after(&[60.0, 45.0]);
        let at = Duration::from_secs;
        assert!(variation.explains(at(9), 41.0) && !variation.explains(at(9), 40.0));
        assert!(
            !variation.explains(at(10), 60.0),
            "it is to be tested again"
        );
        assert!(!after(&[60.0]).explains(at(1), 60.0));
    }

    #[test]
    fn a_gap_between_transfers_of_others_shows_none() {
        assert_eq!(after(&[60.0, 20.0]).least(), None);
        assert_eq!(after(&[60.0, 20.0, 70.0]).least(), None);
    }

    #[test]
    fn a_queue_that_stays_is_not_that_of_a_rate_that_varies() {
        let mut variation = after(&[60.0, 45.0]);
        for round in 0..60 {
            let queue = [0.030, 0.010][round % 2];
            variation.see(Duration::from_millis(100 * round as u64), queue, 0.002);
        }
        assert_eq!(variation.least(), Some(45.0));
        for round in 60..85 {
            variation.see(Duration::from_millis(100 * round), 0.030, 0.002);
        }
        assert_eq!(variation.least(), None);
        // Without a queue, nothing is said.
        let mut variation = after(&[60.0, 45.0]);
        for round in 0..60 {
            variation.see(Duration::from_millis(100 * round), 0.001, 0.002);
        }
        assert_eq!(variation.least(), Some(45.0));
    }

    #[test]
    fn an_old_level_is_forgotten() {
        let mut levels = vec![40.0];
        levels.extend([70.0; REMEMBERED]);
        assert_eq!(after(&levels).least(), None);
    }
}
