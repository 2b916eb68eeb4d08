//! What web fetches and background chunks had of each other where chunks arrive
//! at random, in figures: FAIRBAT's evaluation. Pure: from what a record holds of
//! fetches and of the contenders, without links.

mod active;
mod arrived;
mod course;
mod ideal;
mod limit;

use std::ops::Range;

use serde::{Deserialize, Serialize};

pub use self::active::{ActiveFigures, WaitingFigures};
pub use self::course::JobsCourse;
pub use self::ideal::IdealFigures;
pub use self::limit::{Found, LimitCourse, LimitFigures, SOON};
use crate::record::{BackgroundRecord, ControlSample, Fetch};
use crate::scenario::{Scenario, Traffic};
use crate::statistics::{Moments, mean, percentile};

/// A course is kept beside so many long-lived flows or more: there LEDBAT's
/// connections pile up.
const COURSE_FLOWS: u32 = 3;

/// The figures of a run, over its measured part unless they say otherwise.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct JobsFigures {
    /// Fetches of the foreground.
    pub web: WebFigures,
    /// Chunks of the background.
    pub chunks: ChunkFigures,
    /// What arrived of both from the beginning until the end of the measured part, by
    /// bytes, in parts of what their loads let expect: 1 on average. `None` where
    /// nothing was to be expected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrived_share: Option<f64>,
    /// How long fetches would take at an ideal link; `None` with more than one link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ideal: Option<IdealFigures>,
    /// Chunks that are on the network: the background's flows. `None` where samples are
    /// missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<ActiveFigures>,
    /// Chunks that wait outside of it; `None` for whoever has no queue of ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<WaitingFigures>,
    /// Our limit on active connections; `None` likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<LimitFigures>,
    /// How both went over time; `None` with fewer than three long-lived flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub course: Option<JobsCourse>,
}

/// Web fetches that began in the measured part. One that was not over at the end
/// of the run counts with the time it had taken so far.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WebFigures {
    /// Their size (x, kB) and how long they took (y, s).
    pub moments: Moments,
    /// 95th percentile of how long they took, s.
    pub p95_s: Option<f64>,
}

/// Chunks of the background. As with the others, records of an older lab are read, so
/// that figures can be taken anew.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChunkFigures {
    /// How many arrived in the whole run.
    pub arrived: usize,
    /// Of these, how many were there at its end.
    pub served: usize,
    /// Bytes of all that had arrived.
    pub arrived_bytes: u64,
    /// Bytes of those that were there.
    pub served_bytes: u64,
    /// What arrived in the measured part, Mbit/s.
    pub offered_mbit: f64,
    /// Mean time from arrival until it was there, s, of those that arrived in the
    /// measured part, waiting included; counted as fetches are.
    pub mean_s: Option<f64>,
    /// Mean time on the network, s: the mean number of those in progress over how
    /// many a second were done with (Little 1961). `None` when none was, or that number is
    /// not known.
    pub on_network_s: Option<f64>,
}

impl JobsFigures {
    /// Of this run; `None` without chunks that arrive at random.
    #[must_use]
    pub fn of(
        setup: &Scenario,
        fetches: &[Fetch],
        background: &[BackgroundRecord],
    ) -> Option<Self> {
        setup.background.jobs?;
        let window = setup.measured();
        let jobs = background.iter().flat_map(|one| &one.jobs);
        let jobs: Vec<Fetch> = jobs.copied().collect();
        let mut samples = background.iter().map(|one| one.control.as_slice());
        let samples = samples.find(|all| !all.is_empty()).unwrap_or(&[]);
        let active = ActiveFigures::of(samples, &jobs, &window);
        let chunks = ChunkFigures::of(
            &jobs,
            active.as_ref().map(|it| it.mean),
            setup.duration_s,
            &window,
        );
        let first = jobs.iter().map(|job| job.t).reduce(f64::min);
        let course = (long_lived(setup) >= COURSE_FLOWS)
            .then(|| JobsCourse::of(samples, &jobs, setup.duration_s));
        Some(Self {
            arrived_share: arrived::share(setup, fetches, &jobs, window.end),
            ideal: IdealFigures::of(setup, fetches, &jobs),
            web: WebFigures::of(fetches, setup.duration_s, &window),
            limit: first.and_then(|first| {
                LimitFigures::of(samples, &(first..window.end), chunks.on_network_s)
            }),
            waiting: WaitingFigures::of(samples, &window),
            course,
            active,
            chunks,
        })
    }
}

impl WebFigures {
    fn of(fetches: &[Fetch], end: f64, window: &Range<f64>) -> Self {
        let fetches = fetches.iter().filter(|fetch| window.contains(&fetch.t));
        let pairs = fetches.map(|fetch| (fetch.bytes as f64 / 1e3, time(fetch, end)));
        let pairs: Vec<_> = pairs.collect();
        let times: Vec<f64> = pairs.iter().map(|pair| pair.1).collect();
        Self {
            moments: Moments::of(&pairs),
            p95_s: percentile(&times, 0.95),
        }
    }
}

impl ChunkFigures {
    fn of(jobs: &[Fetch], active: Option<f64>, end: f64, window: &Range<f64>) -> Self {
        let over = jobs.iter().filter(|job| job.seconds.is_some());
        let length = window.end - window.start;
        let here: Vec<_> = jobs.iter().filter(|job| window.contains(&job.t)).collect();
        let offered: u64 = here.iter().map(|job| job.bytes).sum();
        let times: Vec<f64> = here.iter().map(|job| time(job, end)).collect();
        let done = over.clone().filter_map(|job| Some(job.t + job.seconds?));
        let done = done.filter(|moment| window.contains(moment)).count();
        Self {
            arrived: jobs.len(),
            served: over.clone().count(),
            arrived_bytes: jobs.iter().map(|job| job.bytes).sum(),
            served_bytes: over.map(|job| job.bytes).sum(),
            offered_mbit: offered as f64 * 8e-6 / length,
            mean_s: mean(&times),
            on_network_s: active
                .filter(|_| done > 0)
                .map(|active| active * length / done as f64),
        }
    }
}

/// How long it took, or had taken at the end, s.
fn time(fetch: &Fetch, end: f64) -> f64 {
    fetch.seconds.unwrap_or(end - fetch.t)
}

/// Greedy flows of the foreground.
fn long_lived(setup: &Scenario) -> u32 {
    let flows = setup.foreground.iter().map(|one| match one.traffic {
        Traffic::Greedy { flows } => flows,
        _ => 0,
    });
    flows.sum()
}

/// Those within a span.
fn within<'a>(
    samples: &'a [ControlSample],
    span: &'a Range<f64>,
) -> impl Iterator<Item = &'a ControlSample> {
    samples.iter().filter(|sample| span.contains(&sample.t))
}

/// To the hundredth of a chunk or a connection: more digits than a picture has.
fn rounded(count: f64) -> f64 {
    (count * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests;
