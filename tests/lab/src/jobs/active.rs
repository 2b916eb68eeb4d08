//! How many chunks are on the network, and how many wait outside of it: on
//! average, in each quarter and at the end, so that growth is seen.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::within;
use crate::record::{ControlSample, Fetch};
use crate::statistics::mean;

/// Chunks on the network: all that have arrived and are not over, or with a queue
/// of ours those that have left it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ActiveFigures {
    /// How many at a time, on average.
    pub mean: f64,
    /// The same in each quarter.
    pub quarters: [f64; 4],
}

/// Chunks in our queue.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WaitingFigures {
    /// How many at a time, on average.
    pub mean: f64,
    /// The same in each quarter.
    pub quarters: [f64; 4],
    /// The most there were.
    pub most: f64,
    /// Share of the time in which there was none, 0 to 1.
    pub empty_share: f64,
}

impl ActiveFigures {
    /// Of samples of our control loop where there are any, else of the chunks; `None`
    /// where a quarter is without samples.
    pub(super) fn of(
        samples: &[ControlSample],
        jobs: &[Fetch],
        window: &Range<f64>,
    ) -> Option<Self> {
        let over = |span: &Range<f64>| active(samples, jobs, span);
        Some(Self {
            mean: over(window)?,
            quarters: in_quarters(window, over)?,
        })
    }
}

impl WaitingFigures {
    /// `None` where a quarter is without samples.
    pub(super) fn of(samples: &[ControlSample], window: &Range<f64>) -> Option<Self> {
        let waiting: Vec<f64> = within(samples, window).map(|sample| sample.n).collect();
        let empty = waiting.iter().filter(|n| **n <= 0.0).count();
        Some(Self {
            mean: mean(&waiting)?,
            quarters: in_quarters(window, |quarter| waiting_over(samples, quarter))?,
            most: waiting.iter().copied().fold(0.0, f64::max),
            empty_share: empty as f64 / waiting.len() as f64,
        })
    }
}

/// How many are on the network over a span, on average; `None` where there are
/// samples, but not of this span.
pub(super) fn active(samples: &[ControlSample], jobs: &[Fetch], span: &Range<f64>) -> Option<f64> {
    if samples.is_empty() {
        let times = jobs.iter().map(|job| {
            let until = job.seconds.map_or(span.end, |seconds| job.t + seconds);
            (until.min(span.end) - job.t.max(span.start)).max(0.0)
        });
        return Some(times.sum::<f64>() / (span.end - span.start));
    }
    let active = within(samples, span).map(|sample| f64::from(sample.active));
    mean(&active.collect::<Vec<_>>())
}

/// How many wait over a span, on average; `None` without samples.
pub(super) fn waiting_over(samples: &[ControlSample], span: &Range<f64>) -> Option<f64> {
    let waiting: Vec<f64> = within(samples, span).map(|sample| sample.n).collect();
    mean(&waiting)
}

/// A figure of each quarter; `None` where one of them has none.
fn in_quarters(
    window: &Range<f64>,
    figure: impl Fn(&Range<f64>) -> Option<f64>,
) -> Option<[f64; 4]> {
    let quarter = (window.end - window.start) / 4.0;
    let from = |number: f64| window.start + number * quarter;
    let of = |number: f64| figure(&(from(number)..from(number + 1.0)));
    Some([of(0.0)?, of(1.0)?, of(2.0)?, of(3.0)?])
}
