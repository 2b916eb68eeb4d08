//! How soon our limit on active connections found its value, and how well it
//! kept it.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::within;
use crate::record::ControlSample;
use crate::statistics::{deviation, mean};

/// A limit is smoothed over so long, s: it steers by chunks that come and go at
/// random, and one sample says little.
const SMOOTHED_S: f64 = 10.0;

/// How far from its value it may be, in parts of that.
const NEAR: f64 = 0.2;

/// So many mean chunk times it has to stay there to have found it.
const STAYS: f64 = 20.0;

/// Steps of a course.
const STEPS: u32 = 100;

/// The limit m of a run from a cold start.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LimitFigures {
    /// Its value, connections; see [`LimitCourse::value`].
    pub value: f64,
    /// Its standard deviation over the same half, not smoothed, connections.
    pub deviation: f64,
    /// Share of that half in which the smoothed limit was within 20 % of its value,
    /// 0 to 1.
    pub near_share: f64,
    /// How it went.
    pub course: LimitCourse,
}

/// The limit from the first arrival to the end of the measured part, in equal steps.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LimitCourse {
    /// Length of a step, s.
    pub every_s: f64,
    /// The limit in each step, on average, connections.
    pub m: Vec<f64>,
}

impl LimitFigures {
    /// Of the samples of a span that begins with the first arrival; `None` of too
    /// few.
    pub(super) fn of(samples: &[ControlSample], span: &Range<f64>) -> Option<Self> {
        let every_s = (span.end - span.start) / f64::from(STEPS);
        let mut course = LimitCourse {
            every_s,
            m: Vec::new(),
        };
        for step in 0..STEPS {
            let from = span.start + f64::from(step) * every_s;
            let m: Vec<f64> = within(samples, &(from..from + every_s))
                .map(|sample| sample.m)
                .collect();
            // Without a sample it is what it was.
            let last = course.m.last().copied();
            course.m.extend(mean(&m).map(rounded).or(last));
        }
        let middle = f64::midpoint(span.start, span.end);
        let half = within(samples, span).filter(|sample| sample.t >= middle);
        let half: Vec<f64> = half.map(|sample| sample.m).collect();
        let value = course.value()?;
        Some(Self {
            value,
            deviation: deviation(&half)?,
            near_share: course.near_share(value),
            course,
        })
    }
}

impl LimitCourse {
    /// The mean of several, step by step, as far as all of them go; `None` of none.
    #[must_use]
    pub fn mean<'a>(courses: impl IntoIterator<Item = &'a Self>) -> Option<Self> {
        let courses: Vec<_> = courses.into_iter().collect();
        let steps = courses.iter().map(|course| course.m.len()).min()?;
        let at = |step: usize| mean(&courses.iter().map(|one| one.m[step]).collect::<Vec<_>>());
        let lengths: Vec<f64> = courses.iter().map(|course| course.every_s).collect();
        Some(Self {
            every_s: mean(&lengths)?,
            m: (0..steps).filter_map(at).collect(),
        })
    }

    /// What it is in the end: its mean over the last half; `None` without steps.
    #[must_use]
    pub fn value(&self) -> Option<f64> {
        mean(&self.m[self.m.len() / 2..])
    }

    /// When it had found its value, in mean chunk times after the first arrival; each
    /// is so many seconds long. That is the first step from which on the limit,
    /// smoothed over the ten seconds that follow, stays within 20 % of its value for
    /// 20 chunk times. That a random swing takes it out for a while much later is
    /// another matter. `None` if it never did, or it could not be seen to stay.
    #[must_use]
    pub fn found(&self, chunk_s: f64) -> Option<f64> {
        let value = self.value()?;
        let near: Vec<bool> = self.near(value).collect();
        let stays = (STAYS * chunk_s / self.every_s).ceil() as usize;
        let found = near
            .windows(stays.max(1))
            .position(|steps| steps.iter().all(|near| *near));
        Some(found? as f64 * self.every_s / chunk_s)
    }

    /// Whether the smoothed limit is within 20 % of this, step by step.
    fn near(&self, value: f64) -> impl Iterator<Item = bool> {
        let smoothed = (SMOOTHED_S / self.every_s).ceil() as usize;
        let windows = self.m.windows(smoothed.max(1));
        windows.map(move |steps| {
            let mean = steps.iter().sum::<f64>() / steps.len() as f64;
            (mean - value).abs() <= NEAR * value
        })
    }

    fn near_share(&self, value: f64) -> f64 {
        let half: Vec<bool> = self.near(value).skip(self.m.len() / 2).collect();
        let near = half.iter().filter(|near| **near).count();
        near as f64 / half.len().max(1) as f64
    }
}

/// To the hundredth of a connection.
fn rounded(connections: f64) -> f64 {
    (connections * 100.0).round() / 100.0
}
