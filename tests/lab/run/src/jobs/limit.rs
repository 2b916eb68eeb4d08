//! How soon our limit on active connections found its value, and how well it
//! kept it.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::jobs::{rounded, within};
use crate::samples::ControlSample;
use crate::statistics::{deviation, mean};
use crate::stream_law;

/// A limit is smoothed over so many mean chunk times: it steers by chunks that come and
/// go at random, and one sample says little. This and the next three are as on the
/// calculated link (`lab tuning`), which counts whole chunk times and knows of no
/// runs.
const SMOOTHED: f64 = stream_law::SMOOTH as f64;

/// How far from its value it may be, in parts of that.
const NEAR: f64 = stream_law::BAND;

/// So many mean chunk times it has to stay there to have found it.
const STAYS: f64 = stream_law::STAYS as f64;

/// In so many mean chunk times it is to be found.
pub const SOON: f64 = stream_law::SOON as f64;

/// Steps of a course.
const STEPS: u32 = 100;

/// The limit m of a run from a cold start.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitFigures {
    /// Its value, connections; see [`LimitCourse::value`].
    pub value: f64,
    /// Its standard deviation over the same half, not smoothed, connections.
    pub deviation: f64,
    /// Share of that half in which the smoothed limit was within 20 % of its value,
    /// 0 to 1; `None` where the mean chunk time is not known.
    pub near_share: Option<f64>,
    /// When the run had found it, where the course is the mean of several runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<Found>,
    /// The limit over time: of this run, or where results were read from a file the
    /// mean of all seeds.
    #[serde(skip_serializing_if = "LimitCourse::is_empty")]
    pub course: LimitCourse,
}

/// When a limit had found its value.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Found {
    /// So many mean chunk times after the first arrival.
    After(f64),
    /// It never did.
    Never,
    /// The run is over before it could be seen to be in time and to stay.
    TooShort,
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
    /// Of the samples of a span that begins with the first arrival, with chunks that are on
    /// the network for so many seconds; `None` of too few.
    pub(crate) fn of(
        samples: &[ControlSample],
        span: &Range<f64>,
        chunk_s: Option<f64>,
    ) -> Option<Self> {
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
            near_share: chunk_s.map(|chunk_s| course.near_share(value, chunk_s)),
            found: None,
            course,
        })
    }

    /// When this run had found its limit, with chunks that are on the network for so
    /// many seconds.
    #[must_use]
    pub fn found(&self, chunk_s: f64) -> Found {
        self.found.unwrap_or_else(|| self.course.found(chunk_s))
    }
}

impl LimitCourse {
    fn is_empty(&self) -> bool {
        self.m.is_empty()
    }

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

    /// When it had found its value, with chunks that are on the network for so many
    /// seconds. That is the end of the first step from which on the limit, smoothed over
    /// the five chunk times before, stays within 20 % of its value for ten. That a random
    /// swing takes it out for a while much later is another matter.
    #[must_use]
    pub fn found(&self, chunk_s: f64) -> Found {
        let steps = |chunks: f64| (chunks * chunk_s / self.every_s).ceil().max(1.0) as usize;
        let Some(value) = self.value().filter(|_| chunk_s > 0.0) else {
            return Found::TooShort;
        };
        if steps(SOON + STAYS) > self.m.len() {
            return Found::TooShort;
        }
        let near: Vec<bool> = self.near(value, chunk_s).collect();
        let found = near
            .windows(steps(STAYS))
            .position(|steps| steps.iter().all(|near| *near));
        found.map_or(Found::Never, |step| {
            Found::After((step + 1) as f64 * self.every_s / chunk_s)
        })
    }

    /// Whether the limit, smoothed over what was before, is within 20 % of this at the end
    /// of each step.
    fn near(&self, value: f64, chunk_s: f64) -> impl Iterator<Item = bool> {
        let smoothed = (SMOOTHED * chunk_s / self.every_s).ceil().max(1.0) as usize;
        (1..=self.m.len()).map(move |end| {
            let steps = &self.m[end.saturating_sub(smoothed)..end];
            let mean = steps.iter().sum::<f64>() / steps.len() as f64;
            (mean - value).abs() <= NEAR * value
        })
    }

    fn near_share(&self, value: f64, chunk_s: f64) -> f64 {
        let half: Vec<bool> = self.near(value, chunk_s).skip(self.m.len() / 2).collect();
        let near = half.iter().filter(|near| **near).count();
        near as f64 / half.len().max(1) as f64
    }
}
