//! The runs of a contender at a point, all seeds together: what they say of its
//! means, and how exactly.
//!
//! Runs of different seeds are independent of each other. Contenders meet the same
//! arrivals with the same seed, so that what differs between them is compared seed
//! by seed. Of fewer than [`MIN_SEEDS`] seeds a mean has no interval: parts of one run
//! depend on each other where loads are high.

use std::collections::BTreeSet;

use crate::report::fairbat::points::{BASELINE, Point, contenders};
use crate::report::words::seeds;
use crate::results::MatrixRecord;
use crate::verdict::MIN_SEEDS;
use lab_run::jobs::JobsFigures;
use lab_run::record::Summary;
use lab_run::statistics::{Interval, Moments, Spread, mean};
use lab_run::table::or_nothing;

/// Of so many seeds, how much happened to arrive says more than it costs to find out
/// what that does.
const MIN_CONTROLLED: usize = 5;

/// A contender at a point.
pub(crate) struct Group<'a> {
    point: Point<'a>,
    runs: Vec<(u64, &'a Summary, &'a JobsFigures)>,
    /// Seeds that were to be run.
    expected: usize,
}

/// A mean or a ratio, and how exact it is where that is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Estimate {
    pub(crate) value: f64,
    /// Half of the 95 % interval; `None` of too few seeds.
    pub(crate) half: Option<f64>,
}

impl Estimate {
    fn of(interval: Interval) -> Self {
        Self {
            value: interval.mean,
            half: Some(interval.half),
        }
    }

    /// The mean of values of one seed each.
    fn of_values(values: &[f64]) -> Option<Self> {
        if values.len() >= MIN_SEEDS {
            return Interval::of(values).map(Self::of);
        }
        Some(Self {
            value: mean(values)?,
            half: None,
        })
    }

    /// The ratio of the means of pairs of one seed each.
    fn of_ratio(pairs: &[(f64, f64)]) -> Option<Self> {
        if pairs.len() >= MIN_SEEDS {
            return Interval::of_ratio(pairs).map(Self::of);
        }
        let sum = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>();
        let value = sum(|pair| pair.0) / sum(|pair| pair.1);
        value.is_finite().then_some(Self { value, half: None })
    }

    /// What becomes of it when it is taken times a factor and something is added.
    pub(crate) fn scaled(self, factor: f64, added: f64) -> Self {
        Self {
            value: factor * self.value + added,
            half: self.half.map(|half| factor.abs() * half),
        }
    }

    /// Where it is known how exact it is.
    pub(crate) fn interval(self) -> Option<Interval> {
        Some(Interval {
            mean: self.value,
            half: self.half?,
        })
    }

    /// Whether its interval reaches to both sides of a bound.
    pub(crate) fn is_crossing(self, bound: f64) -> bool {
        let interval = self.interval();
        interval.is_some_and(|it| it.low() < bound && bound < it.high())
    }
}

impl<'a> Group<'a> {
    /// Of the runs that did not fail.
    pub(crate) fn of(matrix: &'a MatrixRecord, point: Point<'a>, contender: &str) -> Self {
        let runs = matrix.runs.iter().filter(|run| {
            run.scenario == point.name && run.contender == contender && run.failure.is_none()
        });
        let mut runs: Vec<_> = runs
            .filter_map(|run| Some((run.seed, &run.summary, run.summary.jobs.as_ref()?)))
            .collect();
        runs.sort_by_key(|(seed, ..)| *seed);
        Self {
            point,
            runs,
            expected: planned(matrix, point, contender),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    pub(crate) fn seeds(&self) -> usize {
        self.runs.len()
    }

    /// Whether it has a run that did not fail with every seed that was to be run.
    pub(crate) fn is_whole(&self) -> bool {
        self.runs.len() == self.expected
    }

    /// The figures of each run.
    pub(crate) fn figures(&self) -> impl Iterator<Item = &'a JobsFigures> {
        self.runs.iter().map(|(_, _, jobs)| *jobs)
    }

    /// Mean time of a fetch, s. The size of fetches, whose true mean is known, takes
    /// away what a seed owes to fetches that happen to be large. With [`MIN_CONTROLLED`] seeds
    /// there is more to take away what a seed owes to its arrivals: how long fetches
    /// take at an ideal link ([`JobsFigures::ideal`]), and where there is none, how
    /// much arrived ([`JobsFigures::arrived_share`]).
    pub(crate) fn delay(&self) -> Option<Estimate> {
        let moments = self.moments();
        let slope = Moments::slope(&moments)?;
        let delay = |one: Moments| one.controlled(slope, self.point.web_kb);
        let controlled = |control: &dyn Fn(&JobsFigures) -> Option<(f64, f64)>| {
            let counted = self.figures().filter(|jobs| jobs.web.moments.count > 0);
            let pairs: Option<Vec<_>> = counted.map(control).collect();
            pairs.filter(|pairs| pairs.len() >= MIN_CONTROLLED)
        };
        let ideal = controlled(&|jobs| Some((jobs.ideal?.mean_s, jobs.web.moments.mean_y)));
        let expected = self.mean(|jobs| Some(jobs.ideal?.expected_s));
        let error = self.most(|jobs| Some(jobs.ideal?.expected_error_s));
        let by_ideal = ideal.zip(expected).zip(error);
        let by_ideal = by_ideal.and_then(|((pairs, expected), error)| {
            Interval::of_controlled(&pairs, expected, error)
        });
        let by_arrived = || {
            let pairs = controlled(&|jobs| Some((jobs.arrived_share?, delay(jobs.web.moments))))?;
            Interval::of_controlled(&pairs, 1.0, 0.0)
        };
        if let Some(interval) = by_ideal.or_else(by_arrived) {
            return Some(Estimate::of(interval));
        }
        Estimate::of_values(&moments.iter().map(|one| delay(*one)).collect::<Vec<_>>())
    }

    /// Mean time of a fetch in parts of another contender's, with the same seeds.
    pub(crate) fn delay_against(&self, other: &Self) -> Option<Estimate> {
        let pairs = self.pairs(other).into_iter();
        let delay = |jobs: &JobsFigures| jobs.web.moments.mean_y;
        let delays = pairs.map(|(one, other)| (delay(one), delay(other)));
        Estimate::of_ratio(&delays.collect::<Vec<_>>())
    }

    /// By how many per cent the mean fetch takes less time than another contender's.
    pub(crate) fn improvement(&self, other: &Self) -> Option<Estimate> {
        let ratio = self.delay_against(other)?;
        Some(ratio.scaled(-100.0, 100.0))
    }

    /// Chunks on the network in parts of another contender's.
    pub(crate) fn active_against(&self, other: &Self) -> Option<Estimate> {
        let pairs = self.pairs(other).into_iter();
        let mean = |jobs: &JobsFigures| Some(jobs.active.as_ref()?.mean);
        let pairs = pairs.filter_map(|(one, other)| Some((mean(one)?, mean(other)?)));
        Estimate::of_ratio(&pairs.collect::<Vec<_>>())
    }

    /// Variance of the times of all fetches of all seeds that both have, in parts of
    /// another contender's.
    pub(crate) fn variance_against(&self, other: &Self) -> Option<f64> {
        let (own, its): (Vec<_>, Vec<_>) = self
            .pairs(other)
            .into_iter()
            .map(|(one, other)| (one.web.moments, other.web.moments))
            .unzip();
        let ratio = Moments::pooled(&own).variance_y / Moments::pooled(&its).variance_y;
        ratio.is_finite().then_some(ratio)
    }

    /// The same of each seed.
    pub(crate) fn variances_against(&self, other: &Self) -> Option<Spread> {
        let pairs = self.pairs(other).into_iter();
        let variance = |jobs: &JobsFigures| jobs.web.moments.variance_y;
        let ratios = pairs.map(|(one, other)| variance(one) / variance(other));
        Spread::of(&ratios.collect::<Vec<_>>())
    }

    /// Mean over the seeds; `None` where no run has it.
    pub(crate) fn mean(&self, figure: impl Fn(&JobsFigures) -> Option<f64>) -> Option<f64> {
        mean(&self.figures().filter_map(figure).collect::<Vec<_>>())
    }

    /// The most of all seeds.
    pub(crate) fn most(&self, figure: impl Fn(&JobsFigures) -> Option<f64>) -> Option<f64> {
        self.figures().filter_map(figure).reduce(f64::max)
    }

    /// Mean over the seeds of each quarter; `None` where no run has it.
    pub(crate) fn quarters(
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

    /// Bytes of chunks that were there at the end in parts of those of all that had
    /// arrived, all seeds together.
    pub(crate) fn served(&self) -> Option<f64> {
        let sum = |of: fn(&JobsFigures) -> u64| self.figures().map(of).sum::<u64>() as f64;
        let share = sum(|jobs| jobs.chunks.served_bytes) / sum(|jobs| jobs.chunks.arrived_bytes);
        share.is_finite().then_some(share)
    }

    /// Payload that the background moved over the link in the measured part in parts of
    /// what arrived meanwhile, all seeds together.
    pub(crate) fn carried(&self) -> Option<f64> {
        let carried: f64 = self.runs.iter().map(|(_, it, _)| it.background_mbit).sum();
        let offered: f64 = self.figures().map(|jobs| jobs.chunks.offered_mbit).sum();
        let share = carried / offered;
        share.is_finite().then_some(share)
    }

    /// Goodput of the last so many flows of the foreground together, Mbit/s, as a mean over
    /// the seeds.
    pub(crate) fn last_flows_mbit(&self, flows: usize) -> Option<f64> {
        let all = self.runs.iter().map(|(_, it, _)| &it.foreground_mbit);
        let sums = all.map(|flow| flow.iter().rev().take(flows).sum::<f64>());
        mean(&sums.collect::<Vec<_>>())
    }

    /// Share that was carried, of each seed.
    pub(crate) fn carried_by_seed(&self) -> Vec<f64> {
        let shares = self.runs.iter().map(|(_, it, jobs)| {
            let offered = jobs.chunks.offered_mbit;
            it.background_mbit / offered
        });
        shares.filter(|share| share.is_finite()).collect()
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

/// A contender at a point beside the baseline there.
pub(crate) struct Cell<'a> {
    pub(crate) point: Point<'a>,
    pub(crate) name: &'a str,
    pub(crate) group: Group<'a>,
    pub(crate) baseline: Group<'a>,
}

impl<'a> Cell<'a> {
    /// `None` where the contender has no runs.
    pub(crate) fn of(matrix: &'a MatrixRecord, point: Point<'a>, name: &'a str) -> Option<Self> {
        let cell = Self {
            point,
            name,
            group: Group::of(matrix, point, name),
            baseline: Group::of(matrix, point, BASELINE),
        };
        (!cell.group.is_empty()).then_some(cell)
    }

    /// A contender at each of these points.
    pub(crate) fn at(matrix: &'a MatrixRecord, points: &[Point<'a>], name: &'a str) -> Vec<Self> {
        let points = points.iter();
        points
            .filter_map(|point| Self::of(matrix, *point, name))
            .collect()
    }

    /// All that was measured, point by point, the baseline first.
    pub(crate) fn all(matrix: &'a MatrixRecord) -> Vec<Self> {
        let names: Vec<_> = [BASELINE].into_iter().chain(contenders(matrix)).collect();
        let points = Point::all(matrix).into_iter();
        let all = points.flat_map(|point| {
            let of = |name: &&'a str| Self::of(matrix, point, name);
            names.iter().filter_map(of).collect::<Vec<_>>()
        });
        all.collect()
    }

    /// What it is compared with; the baseline is not compared with itself.
    pub(crate) fn beside(&self) -> Option<&Group<'a>> {
        (self.name != BASELINE).then_some(&self.baseline)
    }
}

/// How many seeds a contender was to have at a point.
fn planned(matrix: &MatrixRecord, point: Point<'_>, contender: &str) -> usize {
    let of_point = matrix.planned.get(point.name);
    let planned = of_point.and_then(|contenders| contenders.get(contender));
    planned.map_or_else(|| seeds(matrix).len(), BTreeSet::len)
}

/// The mean, and half of its interval where that is known.
pub(crate) fn estimate(figure: Option<Estimate>, digits: usize) -> String {
    or_nothing(figure.map(|Estimate { value, half }| {
        let half = half.map(|half| format!(" \u{b1} {half:.digits$}"));
        format!("{value:.digits$}{}", half.unwrap_or_default())
    }))
}

/// Four numbers, one after the other.
pub(crate) fn quarters(figures: Option<[f64; 4]>) -> String {
    or_nothing(figures.map(|all| all.map(|value| format!("{value:.1}")).join(", ")))
}
