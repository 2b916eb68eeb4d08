//! What web fetches and background chunks had of each other where chunks arrive
//! at random, in figures: FAIRBAT's evaluation. Pure: from what a record holds of
//! fetches and of the contenders, without links.

mod ideal;
mod limit;

use std::ops::Range;

use serde::{Deserialize, Serialize};

pub use crate::jobs::ideal::IdealFigures;
pub use crate::jobs::limit::{Found, LimitCourse, LimitFigures, SOON};
use crate::link::{PAYLOAD_SHARE, bytes_per_s};
use crate::samples::{BackgroundRecord, ControlSample, Fetch};
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
    /// Chunks that wait outside of it; `None` for a contender without our queue.
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
            arrived_share: share(setup, fetches, &jobs, window.end),
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
    pub(crate) fn of(
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
    pub(crate) fn of(samples: &[ControlSample], window: &Range<f64>) -> Option<Self> {
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
pub(crate) fn active(samples: &[ControlSample], jobs: &[Fetch], span: &Range<f64>) -> Option<f64> {
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
pub(crate) fn waiting_over(samples: &[ControlSample], span: &Range<f64>) -> Option<f64> {
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

/// Bytes of fetches and chunks together that arrived before this moment, in parts
/// of those that their loads let expect: 1 on average. `None` where none are to be
/// expected.
pub(crate) fn share(
    setup: &Scenario,
    fetches: &[Fetch],
    jobs: &[Fetch],
    until: f64,
) -> Option<f64> {
    let rate = |link: usize| {
        let link = setup.link.get(link)?;
        Some(bytes_per_s(link.rate_mbit) * PAYLOAD_SHARE)
    };
    let mut expected = 0.0;
    for foreground in &setup.foreground {
        if let Traffic::Web { load, .. } = foreground.traffic {
            let span = foreground.active();
            let time = (span.end.min(until) - span.start).max(0.0);
            let link = foreground.link.map_or(0, |link| link - 1);
            expected += load * rate(link)? * time;
        }
    }
    if let Some(chunks) = setup.background.jobs {
        let end = chunks.until_s.unwrap_or(setup.duration_s).min(until);
        let time = (end - setup.background.start_s).max(0.0);
        expected += chunks.load * rate(0)? * time;
    }
    let arrived = fetches.iter().chain(jobs).filter(|one| one.t < until);
    let bytes: f64 = arrived.map(|one| one.bytes as f64).sum();
    let share = bytes / expected;
    share.is_finite().then_some(share)
}

/// Steps of a course.
const STEPS: u32 = 100;

/// The whole run, step by step.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct JobsCourse {
    /// Length of a step, s.
    pub every_s: f64,
    /// Chunks on the network in each step, on average; none of a step without samples.
    pub active: Vec<Option<f64>>,
    /// Chunks in our queue likewise; empty for a contender without one.
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

    pub(crate) fn of(samples: &[ControlSample], jobs: &[Fetch], duration_s: f64) -> Self {
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

#[cfg(test)]
mod tests;
