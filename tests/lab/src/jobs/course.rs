//! How many chunks were on the network and how many waited over time, in so few
//! numbers that results can keep them.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::active::{active, waiting_over};
use super::rounded;
use crate::record::{ControlSample, Fetch};
use crate::statistics::mean;

/// Steps of a course.
const STEPS: u32 = 100;

/// The whole run, step by step.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct JobsCourse {
    /// Length of a step, s.
    pub every_s: f64,
    /// Chunks on the network in each step, on average; none of a step without samples.
    pub active: Vec<Option<f64>>,
    /// Chunks in our queue likewise; empty for whoever has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<Option<f64>>,
}

impl JobsCourse {
    /// The mean of several runs, step by step, as far as all of them go; `None` of none.
    /// A run that does not know a step does not count there. Where none knows it the
    /// step before stands.
    #[must_use]
    pub fn mean<'a>(courses: impl IntoIterator<Item = &'a Self>) -> Option<Self> {
        let courses: Vec<_> = courses.into_iter().collect();
        let of = |series: fn(&Self) -> &Vec<Option<f64>>| {
            let all = courses.iter().map(|course| series(course));
            let all: Vec<_> = all.filter(|series| !series.is_empty()).collect();
            let steps = all.iter().map(|series| series.len()).min().unwrap_or(0);
            let mut last = 0.0;
            let mut at = |step: usize| {
                let known: Vec<f64> = all.iter().filter_map(|series| series[step]).collect();
                last = mean(&known).unwrap_or(last);
                Some(last)
            };
            (0..steps).map(&mut at).collect()
        };
        Some(Self {
            every_s: courses.first()?.every_s,
            active: of(|course| &course.active),
            waiting: of(|course| &course.waiting),
        })
    }

    pub(super) fn of(samples: &[ControlSample], jobs: &[Fetch], duration_s: f64) -> Self {
        let every_s = duration_s / f64::from(STEPS);
        let mut course = Self {
            every_s,
            ..Self::default()
        };
        for step in 0..STEPS {
            let from = f64::from(step) * every_s;
            let span: Range<f64> = from..from + every_s;
            course
                .active
                .push(active(samples, jobs, &span).map(rounded));
            if !samples.is_empty() {
                course
                    .waiting
                    .push(waiting_over(samples, &span).map(rounded));
            }
        }
        course
    }
}
