//! The runs of a contender at a point, all seeds together: what they say of its
//! means, and how exactly.
//!
//! Runs of different seeds are independent of each other. Contenders meet the same
//! arrivals with the same seed, so that what differs between them is compared seed
//! by seed. Fewer than [`ENOUGH`] seeds are cut into the tenths of
//! [`WebFigures::batches`](crate::jobs::WebFigures), which are taken for
//! independent.

use crate::jobs::JobsFigures;
use crate::record::Summary;
use crate::report::MatrixRecord;
use crate::statistics::{Interval, Moments, Spread, mean};

use super::point::Point;

/// So many seeds are compared as they are.
const ENOUGH: usize = 3;

/// Of so many seeds, how much happened to arrive says more than it costs to find out
/// what that does.
const MANY: usize = 5;

/// A contender at a point.
pub(super) struct Group<'a> {
    point: Point<'a>,
    runs: Vec<(u64, &'a Summary, &'a JobsFigures)>,
}

/// A ratio, and how exact it is where that is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ratio {
    pub(super) value: f64,
    /// Half of the 95 % interval; `None` of one seed.
    pub(super) half: Option<f64>,
}

impl<'a> Group<'a> {
    /// Of the runs that did not fail.
    pub(super) fn of(matrix: &'a MatrixRecord, point: Point<'a>, contender: &str) -> Self {
        let runs = matrix.runs.iter().filter(|run| {
            run.scenario == point.name && run.contender == contender && run.failure.is_none()
        });
        let mut runs: Vec<_> = runs
            .filter_map(|run| Some((run.seed, &run.summary, run.summary.jobs.as_ref()?)))
            .collect();
        runs.sort_by_key(|(seed, ..)| *seed);
        Self { point, runs }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    pub(super) fn seeds(&self) -> usize {
        self.runs.len()
    }

    /// The figures of each run.
    pub(super) fn figures(&self) -> impl Iterator<Item = &'a JobsFigures> {
        self.runs.iter().map(|(_, _, jobs)| *jobs)
    }

    /// Mean time of a fetch, s. The size of fetches, whose true mean is known, takes
    /// away what a seed owes to fetches that happen to be large. With [`MANY`] seeds
    /// there is more to take away what a seed owes to its arrivals: how long fetches
    /// take at an ideal link ([`JobsFigures::ideal`]), and where there is none, how
    /// much arrived ([`JobsFigures::arrived_share`]).
    pub(super) fn delay(&self) -> Option<Interval> {
        let moments = self.moments();
        let slope = Moments::slope(&moments)?;
        let delay = |one: Moments| one.controlled(slope, self.point.web_kb);
        let controlled = |control: &dyn Fn(&JobsFigures) -> Option<(f64, f64)>| {
            let counted = self.figures().filter(|jobs| jobs.web.moments.count > 0);
            let pairs: Option<Vec<_>> = counted.map(control).collect();
            pairs.filter(|pairs| pairs.len() >= MANY)
        };
        let ideal = controlled(&|jobs| Some((jobs.ideal?.mean_s, jobs.web.moments.mean_y)));
        let expected = self.mean(|jobs| Some(jobs.ideal?.expected_s));
        if let Some((pairs, expected)) = ideal.zip(expected) {
            return Interval::of_controlled(&pairs, expected);
        }
        if let Some(pairs) =
            controlled(&|jobs| Some((jobs.arrived_share?, delay(jobs.web.moments))))
        {
            return Interval::of_controlled(&pairs, 1.0);
        }
        let values: Vec<f64> = if moments.len() >= ENOUGH {
            let all = moments.iter();
            all.map(|one| one.controlled(slope, self.point.web_kb))
                .collect()
        } else {
            let batches = self.figures().flat_map(|jobs| &jobs.web.batches);
            batches
                .map(|(kb, s)| s - slope * (kb - self.point.web_kb))
                .collect()
        };
        Interval::of(&values)
    }

    /// Mean time of a fetch in parts of another contender's, with the same seeds.
    pub(super) fn delay_against(&self, other: &Self) -> Option<Interval> {
        let pairs = self.pairs(other);
        if pairs.len() >= ENOUGH {
            let delay = |jobs: &JobsFigures| jobs.web.moments.mean_y;
            let delays = pairs.iter().map(|(one, other)| (delay(one), delay(other)));
            return Interval::of_ratio(&delays.collect::<Vec<_>>());
        }
        let batches = pairs.iter().flat_map(|(one, other)| {
            let tenths = one.web.batches.iter().zip(&other.web.batches);
            tenths.map(|(one, other)| (one.1, other.1))
        });
        Interval::of_ratio(&batches.collect::<Vec<_>>())
    }

    /// By how many per cent the mean fetch takes less time than another contender's.
    pub(super) fn improvement(&self, other: &Self) -> Option<Interval> {
        let ratio = self.delay_against(other)?;
        Some(ratio.scaled(-100.0, 100.0))
    }

    /// Chunks on the network in parts of another contender's.
    pub(super) fn active_against(&self, other: &Self) -> Option<Ratio> {
        let pairs = self.pairs(other);
        let pairs = pairs.iter();
        let pairs: Vec<_> = pairs
            .map(|(one, other)| (one.active.mean, other.active.mean))
            .collect();
        if let Some(interval) = Interval::of_ratio(&pairs) {
            return Some(Ratio {
                value: interval.mean,
                half: Some(interval.half),
            });
        }
        let value = pairs.first().map(|(one, other)| one / other)?;
        value.is_finite().then_some(Ratio { value, half: None })
    }

    /// Variance of the times of all fetches of all seeds, in parts of another
    /// contender's.
    pub(super) fn variance_against(&self, other: &Self) -> Option<f64> {
        let variance = |group: &Self| Moments::pooled(&group.moments()).variance_y;
        let ratio = variance(self) / variance(other);
        ratio.is_finite().then_some(ratio)
    }

    /// The same of each seed.
    pub(super) fn variances_against(&self, other: &Self) -> Option<Spread> {
        let pairs = self.pairs(other).into_iter();
        let variance = |jobs: &JobsFigures| jobs.web.moments.variance_y;
        let ratios = pairs.map(|(one, other)| variance(one) / variance(other));
        Spread::of(&ratios.collect::<Vec<_>>())
    }

    /// Mean over the seeds; `None` where no run has it.
    pub(super) fn mean(&self, figure: impl Fn(&JobsFigures) -> Option<f64>) -> Option<f64> {
        mean(&self.figures().filter_map(figure).collect::<Vec<_>>())
    }

    /// The most of all seeds.
    pub(super) fn most(&self, figure: impl Fn(&JobsFigures) -> Option<f64>) -> Option<f64> {
        self.figures().filter_map(figure).reduce(f64::max)
    }

    /// Mean over the seeds of each quarter; `None` where no run has it.
    pub(super) fn quarters(
        &self,
        figure: impl Fn(&JobsFigures) -> Option<[f64; 4]>,
    ) -> Option<[f64; 4]> {
        let all: Vec<[f64; 4]> = self.figures().filter_map(figure).collect();
        let of = |quarter: usize| {
            let sum: f64 = all.iter().map(|one| one[quarter]).sum();
            sum / all.len() as f64
        };
        (!all.is_empty()).then(|| [0, 1, 2, 3].map(of))
    }

    /// Payload that the background moved over the link in parts of what arrived
    /// meanwhile, mean over the seeds.
    pub(super) fn carried(&self) -> Option<f64> {
        let shares = self.runs.iter().filter_map(|(_, summary, jobs)| {
            let share = summary.background_mbit / jobs.chunks.offered_mbit;
            share.is_finite().then_some(share)
        });
        mean(&shares.collect::<Vec<_>>())
    }

    fn moments(&self) -> Vec<Moments> {
        let all = self.figures().map(|jobs| jobs.web.moments);
        all.filter(|moments| moments.count > 0).collect()
    }

    /// The runs of both with the same seed.
    fn pairs<'b>(&'b self, other: &'b Self) -> Vec<(&'b JobsFigures, &'b JobsFigures)> {
        let all = self.runs.iter().filter_map(|(seed, _, jobs)| {
            let same = other.runs.iter().find(|(its, ..)| its == seed)?;
            (jobs.web.moments.count > 0 && same.2.web.moments.count > 0).then_some((*jobs, same.2))
        });
        all.collect()
    }
}
