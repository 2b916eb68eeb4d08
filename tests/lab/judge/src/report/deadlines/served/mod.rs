//! Downloads that both ends hold back beside those that the receiver holds back
//! alone: by pairs of the same scenario and seed, whether they are as gentle and as
//! punctual.

use std::collections::BTreeSet;

use crate::report::deadlines::{Outcome, key};
use crate::report::select::{FAIRBAT, distinct, has_greedy, has_web};
use crate::report::words::title;
use crate::requirement::Requirement;
use crate::results::{MatrixRecord, RunSummary};
use crate::verdict::Verdict;
use lab_run::scenario::Scenario;
use lab_run::statistics::{Spread, median, sign_test};
use lab_run::table::{Table, shown};

/// The contender that is held back at both ends.
pub(crate) const SERVED: &str = "fairbat-served";

/// Congestion control of the server of those that they are compared with: that
/// which servers have where nobody asks for another.
const SERVER: &str = "cubic";

/// A p below this says that it is hardly chance that more pairs are worse.
const UNLIKELY: f64 = 0.05;

/// Two runs that differ in the ends that hold back.
struct Pair<'a> {
    served: &'a Outcome<'a>,
    alone: &'a Outcome<'a>,
}

/// A pair that there is to be.
struct Meant<'a> {
    scenario: &'a Scenario,
    /// `None` where one of its runs failed, or was never made.
    pair: Option<Pair<'a>>,
}

fn is_served(run: &RunSummary) -> bool {
    run.contender == SERVED
}

/// Whether this is what those are compared with.
fn is_other(run: &RunSummary) -> bool {
    run.contender == FAIRBAT && run.congestion_control.as_deref() == Some(SERVER)
}

/// All pairs that there are to be, in the order of the runs.
fn pairs<'a>(matrix: &'a MatrixRecord, outcomes: &'a [Outcome<'a>]) -> Vec<Meant<'a>> {
    let runs = matrix.runs.iter();
    let keys = distinct(runs.filter(|run| is_served(run) || is_other(run)).map(key));
    let pairs = keys.into_iter().filter_map(|of| {
        let find = |is_it: fn(&RunSummary) -> bool| {
            let mut outcomes = outcomes.iter();
            outcomes.find(|one| is_it(one.run) && one.key() == of)
        };
        let both = find(is_served).zip(find(is_other));
        Some(Meant {
            scenario: matrix.scenarios.get(of.0)?,
            pair: both.map(|(served, alone)| Pair { served, alone }),
        })
    });
    pairs.collect()
}

/// What the two of a pair are compared by. More of it is worse.
struct Figure {
    words: &'static str,
    /// Whether there is such a thing in this scenario.
    is_in: fn(&Scenario) -> bool,
    of: fn(&Pair<'_>) -> Option<f64>,
    /// What it is where both do the same.
    same: f64,
    /// By how much more the median may be worse where that may be chance.
    margin: f64,
    digits: usize,
}

const FETCHES: Figure = Figure {
    words: "fetch mean, times the other's",
    is_in: has_web,
    of: |pair| {
        let mean = |outcome: &Outcome<'_>| outcome.run.summary.fetch_mean_s;
        let alone = mean(pair.alone).filter(|time| *time > 0.0)?;
        Some(mean(pair.served)? / alone)
    },
    same: 1.0,
    margin: 0.02,
    digits: 2,
};

const LOST: Figure = Figure {
    words: "greedy flows lose more beyond the bytes, points",
    is_in: has_greedy,
    of: |pair| Some(100.0 * (pair.served.lost()? - pair.alone.lost()?)),
    same: 0.0,
    margin: 1.0,
    digits: 1,
};

const LATER: Figure = Figure {
    words: "later, % of the time that there was",
    is_in: |_| true,
    of: |pair| Some(100.0 * (pair.served.figures.late_share - pair.alone.figures.late_share)),
    same: 0.0,
    margin: 0.0,
    digits: 1,
};

const MISSED: Figure = Figure {
    words: "missed what the other met (1), or the other way round (-1)",
    is_in: |_| true,
    of: |pair| {
        let met = |outcome: &Outcome<'_>| f64::from(u8::from(outcome.figures.met));
        Some(met(pair.alone) - met(pair.served))
    },
    same: 0.0,
    margin: 0.0,
    digits: 0,
};

/// A figure of all pairs that have it.
struct Compared<'a> {
    figure: &'a Figure,
    values: Vec<f64>,
    /// How many seeds these are of.
    seeds: usize,
    /// How many pairs there are to be that have it.
    meant: usize,
}

impl<'a> Compared<'a> {
    fn of(figure: &'a Figure, pairs: &[Meant<'_>]) -> Self {
        let meant = pairs.iter().filter(|one| (figure.is_in)(one.scenario));
        let both = meant.clone().filter_map(|one| one.pair.as_ref());
        let found = both.filter_map(|pair| Some((pair.served.run.seed, (figure.of)(pair)?)));
        let (seeds, values): (BTreeSet<_>, Vec<_>) = found.unzip();
        Self {
            figure,
            values,
            seeds: seeds.len(),
            meant: meant.count(),
        }
    }

    /// How many pairs have it, of how many.
    fn counts(&self) -> String {
        format!("{} of {}", self.values.len(), self.meant)
    }

    fn better(&self) -> usize {
        let values = self.values.iter();
        values.filter(|value| **value < self.figure.same).count()
    }

    fn worse(&self) -> usize {
        let values = self.values.iter();
        values.filter(|value| **value > self.figure.same).count()
    }

    /// That of the sign test.
    fn p(&self) -> f64 {
        sign_test(self.better(), self.worse()).unwrap_or(1.0)
    }

    /// Whether the median is no worse, or by no more than may be chance.
    fn is_as_gentle(&self) -> Option<bool> {
        let worse = median(&self.values)? - self.figure.same;
        let is_sure = worse > 0.0 && self.p() < UNLIKELY;
        Some(!is_sure && worse <= self.figure.margin)
    }

    /// What holds of some pairs is not measured where others are missing.
    fn requirement(&self, what: String, measured: &str, holds: Option<bool>) -> Requirement {
        let missing = self.values.len() < self.meant;
        let missing = missing.then_some(Verdict::NotMeasured);
        let found = Verdict::of_seeds(holds, self.seeds, false);
        let verdict = Verdict::of_all(missing.into_iter().chain([found]));
        Requirement::new(what, format!("{measured}{} pairs", self.counts()), verdict)
    }
}

/// What is required of them beside the others; `None` if nobody is held back at both
/// ends.
pub(crate) fn section(matrix: &MatrixRecord, outcomes: &[Outcome<'_>]) -> Option<String> {
    if !matrix.runs.iter().any(is_served) {
        return None;
    }
    let pairs = pairs(matrix, outcomes);
    let figures = [&FETCHES, &LOST, &LATER, &MISSED];
    let table = Table::over(figures.map(|figure| Compared::of(figure, &pairs)))
        .column("", |it| it.figure.words.to_owned())
        .column("pairs", Compared::counts)
        .column("median (least\u{2013}most)", |it| {
            shown(Spread::of(&it.values), it.figure.digits)
        })
        .column("better", |it| it.better().to_string())
        .column("worse", |it| it.worse().to_string())
        .column("p", |it| format!("{:.3}", it.p()));
    Some(format!(
        include_str!("../../../text/deadlines-served.md"),
        served = title(SERVED),
        other = title(FAIRBAT),
        server = SERVER,
        unlikely = UNLIKELY,
        longer = 100.0 * FETCHES.margin,
        more = LOST.margin,
        required = Requirement::table(requirements(&pairs)),
        table = table
    ))
}

fn requirements(pairs: &[Meant<'_>]) -> Vec<Requirement> {
    let both: Vec<_> = pairs.iter().filter_map(|one| one.pair.as_ref()).collect();
    let met = |of: fn(&Pair<'_>) -> bool| both.iter().filter(|pair| of(pair)).count();
    let served = met(|pair| pair.served.figures.met);
    let alone = met(|pair| pair.alone.figures.met);
    let is_any = !both.is_empty();
    let words = is_any.then(|| format!("{served}, the other {alone}; "));
    let punctual = Compared::of(&MISSED, pairs).requirement(
        "punctual: no fewer deadlines met".to_owned(),
        &words.unwrap_or_default(),
        is_any.then_some(served >= alone),
    );
    let gentle = [&FETCHES, &LOST].into_iter().filter_map(|figure| {
        let compared = Compared::of(figure, pairs);
        let digits = figure.digits + 1;
        let words = median(&compared.values).map(|median| {
            let p = compared.p();
            format!("{median:.digits$}, p {p:.3}; ")
        });
        let what = format!("gentle: {}, median", figure.words);
        let holds = compared.is_as_gentle();
        (compared.meant > 0).then(|| compared.requirement(what, &words.unwrap_or_default(), holds))
    });
    [punctual].into_iter().chain(gentle).collect()
}

#[cfg(test)]
mod tests;
