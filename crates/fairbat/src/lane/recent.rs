//! The rate of a lane over its last minute of moving: what a prediction is made
//! from. Pure; moments are durations since the lane's start.
//!
//! Time in which no connection is in use says nothing of the path, and does not
//! count. But after a minute without a single byte the rate is an old story.

use std::collections::VecDeque;
use std::time::Duration;

/// The mean is taken over so long.
const OVER: Duration = Duration::from_secs(60);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Recent {
    /// How long, and how many bytes then; the oldest first.
    spans: VecDeque<(Duration, u64)>,
    /// Bytes since the last look.
    bytes: u64,
    looked: Duration,
    /// When the last byte was seen.
    moved: Duration,
}

impl Recent {
    /// So many bytes more.
    pub(super) fn moved(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// A while is over, in which connections were in use or not.
    pub(super) fn look(&mut self, now: Duration, is_in_use: bool) {
        let span = now.saturating_sub(self.looked);
        let bytes = std::mem::take(&mut self.bytes);
        self.looked = now;
        if bytes > 0 {
            self.moved = now;
        } else if now.saturating_sub(self.moved) >= OVER {
            self.spans.clear();
            return;
        }
        // Before the first byte there was only the way to the server.
        let is_known = bytes > 0 || !self.spans.is_empty();
        if bytes > 0 || (is_in_use && is_known) {
            self.spans.push_back((span, bytes));
        }
        while self.length() > OVER && self.spans.len() > 1 {
            self.spans.pop_front();
        }
    }

    /// byte/s, more than 0.
    pub(super) fn rate(&self) -> Option<f64> {
        let bytes: u64 = self.spans.iter().map(|&(_, bytes)| bytes).sum();
        let rate = bytes as f64 / self.length().as_secs_f64();
        (rate.is_finite() && rate > 0.0).then_some(rate)
    }

    fn length(&self) -> Duration {
        self.spans.iter().map(|&(span, _)| span).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A lane that is looked at once a second.
    #[derive(Default)]
    struct Seconds(Recent, u64);

    impl Seconds {
        fn pass(&mut self, seconds: u64, bytes: u64, is_in_use: bool) -> Option<f64> {
            for _ in 0..seconds {
                self.1 += 1;
                self.0.moved(bytes);
                self.0.look(Duration::from_secs(self.1), is_in_use);
            }
            self.0.rate()
        }
    }

    #[test]
    fn a_gust_does_not_change_it_much_and_a_minute_does() {
        let mut lane = Seconds::default();
        assert_eq!(lane.pass(5, 0, true), None, "nothing has moved yet");
        assert_eq!(lane.pass(60, 100, true), Some(100.0));
        assert_eq!(lane.pass(6, 1_000, true), Some(190.0));
        assert_eq!(lane.pass(60, 50, true), Some(50.0));
    }

    #[test]
    fn a_pause_does_not_count_and_a_long_one_makes_it_unknown() {
        let mut lane = Seconds::default();
        lane.pass(60, 100, true);
        assert_eq!(lane.pass(59, 0, false), Some(100.0));
        assert_eq!(lane.pass(1, 0, false), None);
        assert_eq!(lane.pass(1, 300, true), Some(300.0), "it begins anew");
    }

    #[test]
    fn connections_on_which_nothing_moves_do_count() {
        let mut lane = Seconds::default();
        lane.pass(30, 100, true);
        assert_eq!(lane.pass(30, 0, true), Some(50.0));
        assert_eq!(lane.pass(30, 0, true), None);
    }
}
