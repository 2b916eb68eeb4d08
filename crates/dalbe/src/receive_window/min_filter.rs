//! The delay of a path without any queue: the least one seen lately. Knows
//! nothing of windows.

use std::collections::VecDeque;
use std::time::Duration;

/// How long a least delay is remembered. Long enough to meet a
/// moment without a queue beside most traffic, short enough to follow a new
/// route (LEDBAT keeps minutes, RFC 6817 section 3.4.2; BBR keeps 10 s).
const MEMORY: Duration = Duration::from_secs(60);

/// The memory moves on in steps of this length.
const STEP: Duration = Duration::from_secs(6);

/// A least delay that is kept ([`MinFilter::keep`]) is forgotten in the end.
const KEPT: Duration = Duration::from_secs(600);

/// Least value of the last minute.
#[derive(Debug, Clone)]
pub(super) struct MinFilter<T> {
    /// When each step began, and the least value within it.
    steps: VecDeque<(Duration, T)>,
    /// When the least was measured last.
    measured: Duration,
}

impl<T> Default for MinFilter<T> {
    fn default() -> Self {
        Self {
            steps: VecDeque::new(),
            measured: Duration::ZERO,
        }
    }
}

impl<T: Copy + Ord> MinFilter<T> {
    /// Takes a measured delay and returns the least.
    pub(super) fn update(&mut self, now: Duration, delay: T) -> T {
        if self.least().is_none_or(|(_, least)| delay <= least) {
            self.measured = now;
        }
        match self.steps.back_mut() {
            Some((began, least)) if now < *began + STEP => *least = delay.min(*least),
            _ => self.steps.push_back((now, delay)),
        }
        while self.steps.len() > 1 && self.steps[0].0 + MEMORY <= now {
            self.steps.pop_front();
        }
        self.least().map_or(delay, |(_, least)| least)
    }

    /// The least cannot be measured now: others keep a queue, and a flow that
    /// yields to them cannot empty it. It is not forgotten meanwhile, for ten
    /// minutes.
    pub(super) fn keep(&mut self, now: Duration) {
        let measured = self.measured;
        if now < measured + KEPT
            && let Some((_, least)) = self.least()
        {
            self.update(now, least);
            self.measured = measured;
        }
    }

    /// When the step began in which the least was measured, and it; once there
    /// is any.
    pub(super) fn least(&self) -> Option<(Duration, T)> {
        self.steps.iter().copied().min_by_key(|&(_, least)| least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn the_least_of_a_minute_is_kept_and_then_forgotten() {
        let mut base = MinFilter::default();
        assert_eq!(base.least(), None);
        assert_eq!(base.update(ms(0), ms(40)), ms(40));
        for second in 1..60 {
            assert_eq!(base.update(ms(1000 * second), ms(55)), ms(40));
        }
        assert_eq!(base.update(ms(66_000), ms(60)), ms(55));
        assert_eq!(base.update(ms(66_100), ms(41)), ms(41));
    }

    #[test]
    fn what_cannot_be_measured_is_kept_but_not_for_ever() {
        let mut base = MinFilter::default();
        base.update(ms(1000), ms(40));
        let mut kept = Vec::new();
        for second in 2..800 {
            let now = ms(1000 * second);
            base.keep(now);
            kept.push(base.update(now, ms(70)));
        }
        assert_eq!(kept[500], ms(40));
        assert_eq!(kept[797], ms(70));
    }
}
