//! What a lane publishes once a second, and the mean rate in it.

use std::collections::VecDeque;
use std::time::Duration;

use super::stream::StreamSample;

/// What the controller has decided.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ControlSample {
    /// n of FAIRBAT, chunks.
    pub(crate) n: f64,
    /// m of FAIRBAT, connections.
    pub(crate) m: f64,
    /// Weight of each flow that carries it.
    pub(crate) w: f64,
    /// Mean rate since the last sample, byte/s.
    pub(crate) rate: f64,
}

/// A lane at a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LaneSample {
    /// n of FAIRBAT, chunks.
    pub n: f64,
    /// m of FAIRBAT, connections.
    pub m: f64,
    /// Connections in use.
    pub active: usize,
    /// Requests that wait for a connection.
    pub waiting: usize,
    /// Weight of each flow, 0.02 to 1.
    pub w: f64,
    /// What the deadlines ask for, byte/s; `None` without any.
    pub zeta: Option<f64>,
    /// Mean rate since the last sample, byte/s.
    pub rate: f64,
    /// Mean rate over the last minute in which connections were in use, byte/s;
    /// `None` before anything has moved, and when nothing has for a minute.
    pub mean: Option<f64>,
    /// Mean round-trip time of the connections in use.
    pub rtt: Option<Duration>,
    /// Window of the connections in use, bytes: the congestion window of what is
    /// sent, the receive window of what comes.
    pub window: Option<f64>,
    /// CDG's back-off scale G, mean of the connections that back off by the gradient of the
    /// delay, ms; `None` without one.
    pub g_ms: Option<f64>,
    /// What the path carries when nobody else uses it, as far as was observed,
    /// byte/s; 0 before anything is known.
    pub capacity: f64,
    /// What the flows at their full weight have shown that they can carry, or the limit on
    /// the rate, where the deadlines ask for more, byte/s.
    pub attainable: Option<f64>,
    /// The transfers of its stream. Where others share the lane, n, m and w above are of them.
    pub stream: StreamSample,
}

impl Default for LaneSample {
    fn default() -> Self {
        Self {
            n: 0.0,
            m: 1.0,
            active: 0,
            waiting: 0,
            w: 1.0,
            zeta: None,
            rate: 0.0,
            mean: None,
            rtt: None,
            window: None,
            g_ms: None,
            capacity: 0.0,
            attainable: None,
            stream: StreamSample::default(),
        }
    }
}

impl LaneSample {
    /// Before the first sample of a lane whose stream has this tau.
    pub(crate) fn first(tau: f64) -> Self {
        let stream = StreamSample {
            tau,
            ..StreamSample::default()
        };
        Self {
            stream,
            ..Self::default()
        }
    }

    /// Two lanes of one run as one: what they have and carry adds up, and w is the larger.
    #[must_use]
    pub(crate) fn beside(self, other: &Self) -> Self {
        let sum = |a: Option<f64>, b: Option<f64>| match (a, b) {
            (Some(a), Some(b)) => Some(a + b),
            (a, b) => a.or(b),
        };
        Self {
            n: self.n + other.n,
            m: self.m + other.m,
            active: self.active + other.active,
            waiting: self.waiting + other.waiting,
            w: self.w.max(other.w),
            zeta: sum(self.zeta, other.zeta),
            rate: self.rate + other.rate,
            mean: sum(self.mean, other.mean),
            capacity: self.capacity + other.capacity,
            ..self
        }
    }

    /// The same with n, m and w of the stream.
    #[must_use]
    pub fn of_stream(self) -> Self {
        let StreamSample { n, m, w, .. } = self.stream;
        Self { n, m, w, ..self }
    }

    /// The rate that forecasts are made with, byte/s: what the flows at their full weight
    /// have shown, or the limit, where that is not enough; otherwise the mean of the last
    /// minute. `None` when nothing moves.
    #[must_use]
    pub fn forecast_rate(&self) -> Option<f64> {
        self.mean.map(|mean| self.attainable.unwrap_or(mean))
    }

    /// Whether flows below their full weight had something to move: something
    /// moved, or waited for its turn.
    #[must_use]
    pub fn is_yielding(&self) -> bool {
        let others = self.active.saturating_sub(self.stream.active);
        let holds_back = match self.stream.active {
            0 => self.w < 1.0,
            _ => self.stream.w < 1.0 || (self.w < 1.0 && others > 0),
        };
        holds_back && (self.rate > 0.0 || self.waiting > 0)
    }
}

/// The mean is taken over this time.
const MEAN_OVER: Duration = Duration::from_secs(60);

/// The rate over the last minute of moving, which predictions are made from. Time in which
/// no connection is in use says nothing about the path and does not count. After a minute
/// without a byte the rate is unknown.
#[derive(Debug, Default)]
pub(crate) struct RecentRate {
    /// Length and bytes of each span; the oldest first.
    spans: VecDeque<(Duration, u64)>,
    /// Bytes since the last sample.
    bytes: u64,
    sampled: Duration,
    /// When the last byte was seen.
    moved: Duration,
}

impl RecentRate {
    /// Counts bytes.
    pub(crate) fn moved(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Ends a span, in which connections were in use or not.
    pub(crate) fn sample(&mut self, now: Duration, is_in_use: bool) {
        let span = now.saturating_sub(self.sampled);
        let bytes = std::mem::take(&mut self.bytes);
        self.sampled = now;
        if bytes > 0 {
            self.moved = now;
        } else if now.saturating_sub(self.moved) >= MEAN_OVER {
            self.spans.clear();
            return;
        }
        // Before the first byte there was only the time to reach the server.
        let is_known = bytes > 0 || !self.spans.is_empty();
        if bytes > 0 || (is_in_use && is_known) {
            self.spans.push_back((span, bytes));
        }
        while self.length() > MEAN_OVER && self.spans.len() > 1 {
            self.spans.pop_front();
        }
    }

    /// The mean, byte/s; more than 0.
    pub(crate) fn rate(&self) -> Option<f64> {
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

    #[test]
    fn who_has_nothing_to_move_does_not_yield() {
        let idle = LaneSample {
            w: 0.02,
            active: 1,
            ..LaneSample::default()
        };
        assert!(!idle.is_yielding());
        assert!(LaneSample { rate: 1.0, ..idle }.is_yielding());
        assert!(LaneSample { waiting: 1, ..idle }.is_yielding());
        let full = LaneSample {
            w: 1.0,
            rate: 1.0,
            ..idle
        };
        assert!(!full.is_yielding());
    }

    #[test]
    fn ends_are_foretold_by_what_was_shown_and_never_when_nothing_moves() {
        let shown = LaneSample {
            attainable: Some(10.0),
            ..LaneSample::default()
        };
        assert_eq!(shown.forecast_rate(), None);
        let mean = Some(7.0);
        assert_eq!(LaneSample { mean, ..shown }.forecast_rate(), Some(10.0));
        let attainable = None;
        assert_eq!(
            LaneSample {
                mean,
                attainable,
                ..shown
            }
            .forecast_rate(),
            mean
        );
    }
}

#[cfg(test)]
mod recent_rate_tests {
    use super::*;

    /// A lane that is looked at once a second.
    #[derive(Default)]
    struct Seconds(RecentRate, u64);

    impl Seconds {
        fn pass(&mut self, seconds: u64, bytes: u64, is_in_use: bool) -> Option<f64> {
            for _ in 0..seconds {
                self.1 += 1;
                self.0.moved(bytes);
                self.0.sample(Duration::from_secs(self.1), is_in_use);
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
