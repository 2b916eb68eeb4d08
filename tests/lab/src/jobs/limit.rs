//! How soon our limit on active connections found its value, and how well it
//! kept it.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::within;
use crate::record::ControlSample;
use crate::statistics::{deviation, mean};

/// A limit is smoothed over so many samples: it steers by chunks that come and go
/// at random, and one sample says little.
const SMOOTHED: usize = 10;

/// How far from its value it may be, in parts of that.
const NEAR: f64 = 0.2;

/// So many mean chunk times it has to stay there to have found it.
const STAYS: f64 = 20.0;

/// The limit m of a run from a cold start.
///
/// Its value is its mean over the last half of the time in which chunks arrive and
/// figures are taken. At each sample it is smoothed over this one and the nine that
/// follow, so that nothing of the time before counts. It has found its value at the
/// first sample from which on the smoothed limit stays within 20 % of it for 20 mean
/// chunk times. That a random swing takes it out for a while much later is another
/// matter, which `near_share` tells.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LimitFigures {
    /// Its value, connections.
    pub value: f64,
    /// Its standard deviation over the same half, not smoothed, connections.
    pub deviation: f64,
    /// Time from the first arrival until it had found its value, in mean chunk
    /// times ([`ChunkFigures::on_network_s`](super::ChunkFigures)); `None` if it
    /// never did.
    pub found_chunks: Option<f64>,
    /// Share of the time after that, or of the last half if it never did, that the
    /// smoothed limit was within 20 % of it, 0 to 1.
    pub near_share: f64,
}

impl LimitFigures {
    /// Of the samples of a span that begins with the first arrival, with the mean
    /// time of a chunk on the network, s; `None` of too few.
    pub(super) fn of(samples: &[ControlSample], span: Range<f64>, chunk_s: f64) -> Option<Self> {
        let samples: Vec<_> = within(samples, &span).collect();
        let middle = f64::midpoint(span.start, span.end);
        let half = samples.iter().filter(|sample| sample.t >= middle);
        let half: Vec<f64> = half.map(|sample| sample.m).collect();
        let value = mean(&half)?;
        let windows = samples.windows(SMOOTHED);
        let smoothed: Vec<(f64, bool)> = windows
            .map(|window| {
                let sum: f64 = window.iter().map(|sample| sample.m).sum();
                let away = (sum / SMOOTHED as f64 - value).abs();
                (window[0].t, away <= NEAR * value)
            })
            .collect();
        let stays = STAYS * chunk_s;
        let last = smoothed.last()?.0;
        let found = smoothed.iter().find(|(from, _)| {
            // What is cut off by the end has not been seen to stay.
            from + stays <= last && all_near(&smoothed, *from..from + stays)
        });
        let found = found.map(|(moment, _)| *moment);
        let from = found.unwrap_or(middle);
        let after: Vec<_> = smoothed.iter().filter(|(t, _)| *t >= from).collect();
        let near = after.iter().filter(|(_, is_near)| *is_near).count();
        Some(Self {
            value,
            deviation: deviation(&half)?,
            found_chunks: found.map(|moment| (moment - span.start) / chunk_s),
            near_share: near as f64 / after.len().max(1) as f64,
        })
    }
}

fn all_near(smoothed: &[(f64, bool)], span: Range<f64>) -> bool {
    let mut inside = smoothed.iter().filter(|(t, _)| span.contains(t));
    inside.all(|(_, is_near)| *is_near)
}
