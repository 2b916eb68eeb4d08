//! How the defaults of FAIRBAT's law for streams of jobs were chosen: the law
//! itself, on a link that is only calculated.
//!
//! Flows share the link equally (processor sharing), chunks and web flows
//! arrive as Poisson processes with exponential sizes: the paper's loads with
//! nothing of TCP in it, so that thousands of runs take seconds. The chunks
//! wait in a queue and are admitted by the real [`fairbat::lane`],
//! decided on once a second as in a lane. Everything follows from the seed.
//!
//! None of the loads is among those on which FAIRBAT is evaluated.

mod load;
mod picture;
mod report;
mod simulation;

use serde::Serialize;

use crate::tuning::load::{Load, Scenario};
pub(crate) use crate::tuning::report::RARELY;
pub use crate::tuning::report::write_all;
use crate::tuning::simulation::{Bin, run};
use fairbat::lane::{AdmissionSettings, Gain};
use lab_run::statistics::median;
use lab_run::stream_law::{self, BAND, SMOOTH, SOON, STAYS, stream_law};

/// More than any limit here.
const M_MAX: u32 = 64;

/// A law and what to call it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Law {
    pub(crate) name: &'static str,
    pub(crate) settings: AdmissionSettings,
}

/// The defaults.
pub(crate) fn defaults() -> AdmissionSettings {
    AdmissionSettings {
        m_max: M_MAX,
        ..stream_law()
    }
}

/// Eq. (2) as it is in the paper, with the constant gamma that settles soonest.
pub(crate) fn undamped() -> AdmissionSettings {
    AdmissionSettings {
        m_max: M_MAX,
        ..stream_law::undamped()
    }
}

/// A gamma that settles once the limit is near, and rises again after a step in
/// load.
fn settling(initial: f64, floor: f64, half_after: f64) -> Gain {
    Gain::Settling {
        initial,
        floor,
        half_after,
        far: 30.0,
        empty_after: 3,
    }
}

/// All that are compared; the first is the defaults.
pub(crate) fn all() -> Vec<Law> {
    let defaults = defaults();
    let usual = defaults.gain;
    let blind = Gain::Settling {
        initial: 0.02,
        floor: 0.001,
        half_after: 10.0,
        far: 1e9,
        empty_after: u32::MAX,
    };
    let kesten = Gain::Decreasing {
        initial: 0.05,
        floor: 0.001,
        restore_after: 250,
    };
    // Name, tau, kappa, gamma.
    let others = [
        ("tau 10", 10.0, 1.0, usual),
        ("tau 30", 30.0, 1.0, usual),
        ("kappa 0.5", 20.0, 0.5, usual),
        ("kappa 1.5", 20.0, 1.5, usual),
        ("gamma from 0.05", 20.0, 1.0, settling(0.05, 0.0025, 10.0)),
        ("gamma from 0.01", 20.0, 1.0, settling(0.01, 0.0005, 10.0)),
        (
            "gamma down to 0.0003",
            20.0,
            1.0,
            settling(0.02, 0.0003, 10.0),
        ),
        ("half after 5", 20.0, 1.0, settling(0.02, 0.001, 5.0)),
        ("half after 20", 20.0, 1.0, settling(0.02, 0.001, 20.0)),
        ("no step in load seen", 20.0, 1.0, blind),
        ("constant, as at first", 20.0, 1.0, Gain::Constant(0.02)),
        ("constant, weak", 20.0, 0.1, Gain::Constant(0.001)),
        ("undamped, gamma 0.05", 20.0, 0.0, Gain::Constant(0.05)),
        ("undamped, gamma 0.01", 20.0, 0.0, Gain::Constant(0.01)),
        ("undamped, settling", 20.0, 0.0, usual),
        ("undamped, Kesten's rule", 20.0, 0.0, kesten),
    ];
    let others = others.map(|(name, tau, kappa, gain)| Law {
        name,
        settings: AdmissionSettings {
            tau,
            kappa,
            gain,
            ..defaults
        },
    });
    let name = "defaults";
    let settings = defaults;
    [Law { name, settings }].into_iter().chain(others).collect()
}

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
pub(crate) struct Steady {
    /// Mean of m: its limit.
    pub(crate) m: f64,
    /// Standard deviation of m.
    pub(crate) m_deviation: f64,
    /// Mean queue, chunks.
    pub(crate) n: f64,
    /// Longest queue, chunks.
    pub(crate) n_most: f64,
    /// Share of the time when the queue is empty.
    pub(crate) empty: f64,
    /// Chunks that ended, as a share of those that arrived.
    pub(crate) served: f64,
    /// Mean time of a web flow beside that of one beside a constant m at the
    /// fluid model's limit; below 1 where the queue is often empty. `None` if the web reacts.
    pub(crate) web: Option<f64>,
}

/// How m settles.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Course {
    /// After how many chunk times the mean over seeds stays within the band;
    /// `None` if it does not.
    pub(crate) after: Option<usize>,
    /// Median over seeds of when a run is first within it, chunk times; `None`
    /// if half of them never are.
    pub(crate) first: Option<f64>,
    /// Share of the runs that are by [`SOON`].
    pub(crate) soon: f64,
    /// The mean over seeds, per chunk time.
    #[serde(skip)]
    pub(crate) mean: Vec<f64>,
    /// The first run.
    #[serde(skip)]
    pub(crate) one: Vec<f64>,
}

impl Steady {
    pub(crate) fn of(scenario: &Scenario, settings: AdmissionSettings) -> Self {
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
    pub(crate) fn cold(scenario: &Scenario, law: (AdmissionSettings, f64), seeds: u64) -> Self {
        let (settings, limit) = law;
        let time = scenario.chunk_time(&scenario.load);
        let runs = (FIRST_SEED..=seeds).map(|seed| run(scenario, settings, seed, (time, COURSE)));
        Self::of(&runs.map(|bins| limits(&bins)).collect::<Vec<_>>(), limit)
    }

    /// From a step in load on, to `to`.
    pub(crate) fn step(
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
pub(crate) fn limits(bins: &[Bin]) -> Vec<f64> {
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
pub(crate) fn known(load: &Load) -> f64 {
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
