//! What is told of a lane once a second.

use std::time::Duration;

/// A lane after a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LaneSample {
    /// n of FAIRBAT, chunks.
    pub n: f64,
    /// m of FAIRBAT, connections.
    pub m: f64,
    /// Connections in use.
    pub active: usize,
    /// Chunks that somebody stands ready to move as soon as there is a
    /// connection for them.
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
    /// What the path carries when nobody else uses it, as far as has been seen,
    /// byte/s; 0 before anything is known.
    pub capacity: f64,
    /// What the flows at their full weight have shown that they can carry, or
    /// the ceiling, where one of them is less than what the deadlines ask for,
    /// byte/s.
    pub foreseen: Option<f64>,
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
            capacity: 0.0,
            foreseen: None,
        }
    }
}

impl LaneSample {
    /// The rate that ends are foretold by, byte/s: what the flows at their full
    /// weight have shown, or the ceiling, where that is not enough; otherwise the
    /// mean of the last minute. `None` when nothing moves.
    #[must_use]
    pub fn outlook(&self) -> Option<f64> {
        self.mean.map(|mean| self.foreseen.unwrap_or(mean))
    }

    /// Whether flows below their full weight had something to move: something
    /// moved, or waited for its turn.
    #[must_use]
    pub fn is_yielding(&self) -> bool {
        self.w < 1.0 && (self.rate > 0.0 || self.waiting > 0)
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
            foreseen: Some(10.0),
            ..LaneSample::default()
        };
        assert_eq!(shown.outlook(), None);
        let mean = Some(7.0);
        assert_eq!(LaneSample { mean, ..shown }.outlook(), Some(10.0));
        let foreseen = None;
        assert_eq!(
            LaneSample {
                mean,
                foreseen,
                ..shown
            }
            .outlook(),
            mean
        );
    }
}
