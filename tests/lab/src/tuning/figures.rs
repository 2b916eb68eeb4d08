//! What runs came to: how the law is once it has settled, and how fast it
//! gets there.
//!
//! The unit of time is the mean chunk time at the limit. How m settles is told
//! twice. The mean over seeds is the law without chance. A single run is
//! ruled by chance: it has seen so few arrivals that no law could know its
//! limit (see [`known`]).

use fairbat::lane::AdmissionSettings;
use serde::Serialize;

use super::scenario::{Load, Scenario};
use super::simulation::{Bin, run};
use crate::statistics::median;

/// m has to be within this share of its limit...
pub(super) const BAND: f64 = 0.2;
/// ...and the mean over seeds to stay there for so many chunk times.
const STAYS: usize = 10;
/// In a single run m is the mean over so many chunk times.
const SMOOTH: usize = 5;
/// It should take no longer, chunk times.
pub(crate) const SOON: usize = 20;

/// A steady load: chunk times that are run, and at first left out.
const STEADY: (usize, usize) = (6000, 500);
/// How long m has to settle, chunk times.
const COURSE: usize = 100;
/// How long it has had before a step in load, chunk times of before.
const BEFORE: f64 = 200.0;
/// Seeds of courses; a steady load has the first.
const FIRST_SEED: u64 = 1;

/// A law under a steady load.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Steady {
    /// Mean of m: its limit.
    pub(super) m: f64,
    /// Standard deviation of m.
    pub(super) m_deviation: f64,
    /// Mean queue, chunks.
    pub(super) n: f64,
    /// Longest queue, chunks.
    pub(super) n_most: f64,
    /// Share of the time when the queue is empty.
    pub(super) empty: f64,
    /// Chunks that ended, as a share of those that arrived.
    pub(super) served: f64,
    /// Mean time of a web flow beside that of one beside a constant m at the
    /// fluid model's limit; below 1 where the queue is often empty. `None` if the web reacts.
    pub(super) web: Option<f64>,
}

/// How m settles.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Course {
    /// After how many chunk times the mean over seeds stays within the band;
    /// `None` if it does not.
    pub(super) after: Option<usize>,
    /// Median over seeds of when a run is first within it, chunk times; `None`
    /// if half of them never are.
    pub(super) first: Option<f64>,
    /// Share of the runs that are by [`SOON`].
    pub(super) soon: f64,
    /// The mean over seeds, per chunk time.
    #[serde(skip)]
    pub(super) mean: Vec<f64>,
    /// The first run.
    #[serde(skip)]
    pub(super) one: Vec<f64>,
}

impl Steady {
    pub(super) fn of(scenario: &Scenario, settings: AdmissionSettings) -> Self {
        let time = scenario.chunk_time(&scenario.load);
        let bins = run(scenario, settings, FIRST_SEED, (time, STEADY.0));
        let bins = &bins[STEADY.1..];
        let sum = |of: fn(&Bin) -> f64| bins.iter().map(of).sum::<f64>();
        let mean = |of| sum(of) / bins.len() as f64;
        let m = mean(|bin| bin.m);
        let time = sum(|bin| bin.web.0) / sum(|bin| bin.web.1);
        Self {
            m,
            m_deviation: (mean(|bin| bin.m_squared) - m * m).max(0.0).sqrt(),
            n: mean(|bin| bin.n),
            n_most: bins.iter().map(|bin| bin.n_most).fold(0.0, f64::max),
            empty: mean(|bin| bin.empty),
            served: sum(|bin| bin.chunks.1.into()) / sum(|bin| bin.chunks.0.into()),
            web: scenario.load.web_time().map(|beside| time / beside),
        }
    }
}

impl Course {
    /// From a cold start.
    pub(super) fn cold(scenario: &Scenario, law: (AdmissionSettings, f64), seeds: u64) -> Self {
        let (settings, limit) = law;
        let time = scenario.chunk_time(&scenario.load);
        let runs = (FIRST_SEED..=seeds).map(|seed| run(scenario, settings, seed, (time, COURSE)));
        Self::of(&runs.map(|bins| limits(&bins)).collect::<Vec<_>>(), limit)
    }

    /// From a step in load on, to `to`.
    pub(super) fn step(
        scenario: &Scenario,
        to: Load,
        law: (AdmissionSettings, f64),
        seeds: u64,
    ) -> Self {
        let (settings, limit) = law;
        let time = scenario.chunk_time(&to);
        let before = (BEFORE * scenario.chunk_time(&scenario.load) / time).ceil();
        let scenario = Scenario {
            step: Some((before * time, to)),
            ..*scenario
        };
        // Whole and small.
        let before = before as usize;
        let runs = (FIRST_SEED..=seeds).map(|seed| {
            let bins = run(&scenario, settings, seed, (time, before + COURSE));
            limits(&bins[before..])
        });
        Self::of(&runs.collect::<Vec<_>>(), limit)
    }

    fn of(runs: &[Vec<f64>], limit: f64) -> Self {
        let is_near = |m: f64| (m / limit - 1.0).abs() <= BAND;
        let at = |bin: usize| runs.iter().map(|run| run[bin]).sum::<f64>() / runs.len() as f64;
        let mean: Vec<f64> = (0..COURSE).map(at).collect();
        let firsts: Vec<f64> = runs.iter().map(|run| first(run, is_near)).collect();
        let soon = firsts.iter().filter(|&&first| first <= SOON as f64).count();
        Self {
            after: mean
                .windows(STAYS)
                .position(|means| means.iter().all(|&m| is_near(m)))
                // The bin has passed.
                .map(|bin| bin + 1),
            first: median(&firsts).filter(|first| first.is_finite()),
            soon: soon as f64 / runs.len() as f64,
            mean,
            one: runs.first().cloned().unwrap_or_default(),
        }
    }
}

/// m in each bin.
pub(super) fn limits(bins: &[Bin]) -> Vec<f64> {
    bins.iter().map(|bin| bin.m).collect()
}

/// After how many bins a run is first near its limit; infinite if never.
fn first(run: &[f64], is_near: impl Fn(f64) -> bool) -> f64 {
    let smooth = |end: usize| {
        let from = end.saturating_sub(SMOOTH);
        run[from..end].iter().sum::<f64>() / (end - from) as f64
    };
    let end = (1..=run.len()).find(|&end| is_near(smooth(end)));
    end.map_or(f64::INFINITY, |end| end as f64)
}

/// After how many chunk times the chunks that have arrived and ended tell the
/// limit to within the band, at one standard deviation: where both are Poisson
/// processes, their difference over t has a variance of 2 m t, and one
/// connection too many shows as B t = k / (m + k) t. No law that sees the
/// queue alone can be surer.
pub(super) fn known(load: &Load) -> f64 {
    let m = load.limit();
    let share = f64::from(load.long) / (m + f64::from(load.long));
    2.0 * m / (share * BAND * m).powi(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_course_is_over_when_the_mean_stays_near_the_limit() {
        let mut one = vec![10.0; COURSE];
        let mut other = one.clone();
        one[..4].fill(1.0);
        other[..2].fill(1.0);
        other[8] = 1.0;
        let course = Course::of(&[one.clone(), one.clone()], 10.0);
        assert_eq!((course.after, course.soon), (Some(5), 1.0));
        // At 8 the mean is 5.5.
        assert_eq!(Course::of(&[one, other], 10.0).after, Some(10));
        let never = Course::of(&[vec![1.0; COURSE]], 10.0);
        assert_eq!((never.after, never.soon), (None, 0.0));
        assert_eq!(never.first, None);
    }
}
