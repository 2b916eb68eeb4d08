//! How long the queues of a path get, and so how well somebody who takes all can be told
//! from somebody who comes and goes.
//!
//! After a loss, CUBIC goes on with 0.7 of its window (RFC 9438, section 4.6). In a short
//! queue, or one that CoDel keeps short, it then leaves a part of the link free for some
//! seconds, and looks as if it had gone. From a queue of 0.43 round trips on, it leaves
//! nothing: a queue that has gone there was that of somebody who has gone. All functions
//! follow from their arguments.

use std::collections::VecDeque;

use crate::receive_window::KEPT_AFTER_LOSS;

/// The longest of so many queues counts. Slow start makes a queue once that an active
/// queue management (CoDel, PIE) does not let anybody repeat.
const REMEMBERED: usize = 8;

/// The queues of a path, s.
#[derive(Debug, Clone, Default)]
pub(crate) struct QueueDepth {
    /// The present one so far; 0 without one.
    present: f64,
    /// Those before, the latest last.
    past: VecDeque<f64>,
}

impl QueueDepth {
    /// Takes the least queueing delay of a round trip, s, where one up to `target` is no
    /// queue.
    pub(crate) fn learn(&mut self, least: f64, target: f64) {
        if least > target {
            self.present = self.present.max(least);
        } else if self.present > 0.0 {
            self.past.push_back(self.present);
            if self.past.len() > REMEMBERED {
                self.past.pop_front();
            }
            self.present = 0.0;
        }
    }

    /// The share of a path of this base, s, that CUBIC may leave free after a loss: 0.3
    /// without a queue, 0 with a long one.
    pub(crate) fn left_free(&self, base: f64) -> f64 {
        let depth = self.past.iter().copied().fold(self.present, f64::max);
        (1.0 - KEPT_AFTER_LOSS * (1.0 + depth / base)).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: f64 = 0.1;
    const TARGET: f64 = 0.002;

    fn after(queues: &[f64]) -> QueueDepth {
        let mut depth = QueueDepth::default();
        for &queue in queues {
            depth.learn(queue, TARGET);
            depth.learn(0.5 * queue, TARGET);
            depth.learn(0.0, TARGET);
        }
        depth
    }

    #[test]
    fn what_is_left_free_shrinks_with_the_queue() {
        let left = |queues: &[f64]| after(queues).left_free(BASE);
        assert!((left(&[]) - 0.3).abs() < 1e-9);
        assert!((left(&[0.001]) - 0.3).abs() < 1e-9, "no queue");
        assert!((left(&[0.02]) - 0.16).abs() < 1e-9);
        assert!((left(&[0.02, 0.01]) - 0.16).abs() < 1e-9);
        assert_eq!(left(&[0.043]), 0.0);
    }

    #[test]
    fn a_queue_counts_before_it_is_gone() {
        let mut depth = QueueDepth::default();
        depth.learn(0.05, TARGET);
        assert_eq!(depth.left_free(BASE), 0.0);
    }

    #[test]
    fn a_long_queue_that_nobody_repeats_is_forgotten() {
        let mut queues = vec![0.05];
        queues.extend([0.01; REMEMBERED - 1]);
        assert_eq!(after(&queues).left_free(BASE), 0.0);
        queues.push(0.01);
        assert!((after(&queues).left_free(BASE) - 0.23).abs() < 1e-9);
    }
}
