//! Whether two paths of this machine share a bottleneck, by the queueing delays over both.
//!
//! As in RFC 8382, delays are summed up over intervals of 350 ms, and a path has a bottleneck where
//! they are seldom below their mean: a queue stands there (section 3.2.1, skewness). The RFC then
//! compares summaries, since its flows may end at different hosts. Here both end in one process and
//! are timed by one clock, so the means themselves are compared: one queue rises and falls for all
//! who wait in it at the same time. Two queues that look alike, as those of two equal links under
//! equal load do, still rise and fall at different times.
//!
//! Pure.

use std::collections::VecDeque;
use std::time::Duration;

/// T: length of an interval (RFC 8382, section 4.3).
const INTERVAL: Duration = Duration::from_millis(350);

/// N: so many intervals are compared (RFC 8382, section 4.3).
const COMPARED: usize = 50;

/// The queueing delays over one path.
#[derive(Debug, Clone, Default)]
pub struct QueueHistory {
    /// The last intervals with data, the newest last. It may be going on.
    intervals: VecDeque<Interval>,
}

/// What was seen in an interval.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Interval {
    /// Its number since time began.
    number: u64,
    samples: f64,
    /// Sum of the delays, s.
    sum: f64,
}

impl Interval {
    fn mean(&self) -> f64 {
        self.sum / self.samples
    }
}

impl QueueHistory {
    /// Data has come that waited so long, s.
    pub fn observe(&mut self, now: Duration, queueing: f64) {
        let number = (now.as_nanos() / INTERVAL.as_nanos()) as u64;
        if self
            .intervals
            .back()
            .is_none_or(|last| last.number < number)
        {
            if let Some(last) = self.intervals.back() {
                tracing::trace!(number = last.number, mean_ms = last.mean() * 1e3, samples = last.samples, "an interval of delays");
            }
            self.intervals.push_back(Interval {
                number,
                samples: 0.0,
                sum: 0.0,
            });
        }
        if let Some(last) = self.intervals.back_mut() {
            last.samples += 1.0;
            last.sum += queueing;
        }
        while self.intervals.len() > COMPARED + 1 {
            self.intervals.pop_front();
        }
    }
}
