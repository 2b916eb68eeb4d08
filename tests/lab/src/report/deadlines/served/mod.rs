//! Downloads that both ends hold back beside those that the receiver holds back
//! alone: by pairs of the same scenario and seed, whether they are as gentle and as
//! punctual.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::report::deadlines::Outcome;
use crate::report::select::{beyond, has_greedy, has_web};
use crate::report::verdict::Verdict;
use crate::report::words::{shown, title};
use crate::report::{MatrixRecord, OURS, RunSummary};
use crate::scenario::Scenario;
use crate::statistics::{Spread, median, sign_test};

/// Who is held back at both ends.
pub(crate) const SERVED: &str = "fairbat-served";

/// Congestion control of the server of those that they are compared with: that
/// which servers have where nobody asks for another.
const SERVER: &str = "cubic";

/// A p below this says that it is hardly chance that more pairs are worse.
const UNLIKELY: f64 = 0.05;

/// Fetches may take so much longer in the median where that may be chance, in
/// parts of the time.
const LONGER: f64 = 0.02;

/// Greedy flows may lose so much more in the median where that may be chance,
/// points.
const MORE: f64 = 1.0;

/// Two runs that differ in who holds back.
struct Pair<'a> {
    served: &'a Outcome<'a>,
    alone: &'a Outcome<'a>,
}

impl Pair<'_> {
    /// The mean time of a fetch in times of what it is with the receiver alone.
    fn fetches(&self) -> Option<f64> {
        let mean = |outcome: &Outcome<'_>| outcome.run.summary.fetch_mean_s;
        let alone = mean(self.alone).filter(|time| *time > 0.0)?;
        Some(mean(self.served)? / alone)
    }

    /// What greedy flows lose more beyond the bytes, % of what they have without
    /// anybody.
    fn lost(&self) -> Option<f64> {
        let lost = |outcome: &Outcome<'_>| {
            let nobody = &outcome.alone?.summary;
            beyond(outcome.scenario, &outcome.run.summary, nobody)
        };
        Some(100.0 * (lost(self.served)? - lost(self.alone)?))
    }

    /// How much later it is, % of the time that there was.
    fn later(&self) -> f64 {
        100.0 * (self.served.figures.late_share - self.alone.figures.late_share)
    }

    /// 1 where only the receiver alone met the deadline, -1 where only both did.
    fn missed(&self) -> f64 {
        let met = |outcome: &Outcome<'_>| f64::from(u8::from(outcome.figures.met));
        met(self.alone) - met(self.served)
    }
}

/// A pair that there is to be.
struct Meant<'a> {
    scenario: &'a Scenario,
    /// `None` where one of its runs failed, or was never made.
    pair: Option<Pair<'a>>,
}

/// What the runs of a pair have in common: scenario, variant and seed.
type Key<'a> = (&'a str, Option<&'a str>, u64);

fn key(run: &RunSummary) -> Key<'_> {
    (run.scenario.as_str(), run.variant.as_deref(), run.seed)
}

fn is_served(run: &RunSummary) -> bool {
    run.contender == SERVED
}

/// Whether this is what those are compared with.
fn is_other(run: &RunSummary) -> bool {
    run.contender == OURS && run.congestion_control.as_deref() == Some(SERVER)
}

/// All pairs that there are to be, in the order of the runs.
fn pairs<'a>(matrix: &'a MatrixRecord, outcomes: &'a [Outcome<'a>]) -> Vec<Meant<'a>> {
    let mut keys = Vec::new();
    for run in &matrix.runs {
        if (is_served(run) || is_other(run)) && !keys.contains(&key(run)) {
            keys.push(key(run));
        }
    }
    let find = |is_it: fn(&RunSummary) -> bool, of: Key<'_>| {
        outcomes
            .iter()
            .find(|one| is_it(one.run) && key(one.run) == of)
    };
    let pairs = keys.into_iter().filter_map(|of| {
        let both = find(is_served, of).zip(find(is_other, of));
        Some(Meant {
            scenario: matrix.scenarios.get(of.0)?,
            pair: both.map(|(served, alone)| Pair { served, alone }),
        })
    });
    pairs.collect()
}

/// What the two of a pair are compared by; more of it is worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Figure {
    Fetches,
    Lost,
    Later,
    Missed,
}

impl Figure {
    const ALL: [Self; 4] = [Self::Fetches, Self::Lost, Self::Later, Self::Missed];

    fn words(self) -> &'static str {
        match self {
            Self::Fetches => "fetch mean, times the other's",
            Self::Lost => "greedy flows lose more beyond the bytes, points",
            Self::Later => "later, % of the time that there was",
            Self::Missed => "missed what the other met (1), or the other way round (-1)",
        }
    }

    /// Whether there is such a thing in this scenario.
    fn is_in(self, scenario: &Scenario) -> bool {
        match self {
            Self::Fetches => has_web(scenario),
            Self::Lost => has_greedy(scenario),
            Self::Later | Self::Missed => true,
        }
    }

    fn of(self, pair: &Pair<'_>) -> Option<f64> {
        match self {
            Self::Fetches => pair.fetches(),
            Self::Lost => pair.lost(),
            Self::Later => Some(pair.later()),
            Self::Missed => Some(pair.missed()),
        }
    }

    /// What it is where both do the same.
    fn same(self) -> f64 {
        match self {
            Self::Fetches => 1.0,
            Self::Lost | Self::Later | Self::Missed => 0.0,
        }
    }

    fn digits(self) -> usize {
        match self {
            Self::Fetches => 2,
            Self::Lost | Self::Later => 1,
            Self::Missed => 0,
        }
    }
}

/// A figure of all pairs that have it.
struct Compared {
    figure: Figure,
    values: Vec<f64>,
    /// How many seeds these are of.
    seeds: usize,
    /// How many pairs there are to be that have it.
    meant: usize,
}

impl Compared {
    fn of(figure: Figure, pairs: &[Meant<'_>]) -> Self {
        let meant = pairs.iter().filter(|one| figure.is_in(one.scenario));
        let meant: Vec<_> = meant.collect();
        let both = meant.iter().filter_map(|one| one.pair.as_ref());
        let found = both.filter_map(|pair| Some((pair.served.run.seed, figure.of(pair)?)));
        let (seeds, values): (BTreeSet<_>, Vec<_>) = found.unzip();
        Self {
            figure,
            values,
            seeds: seeds.len(),
            meant: meant.len(),
        }
    }

    /// How many pairs have it, of how many.
    fn counts(&self) -> String {
        format!("{} of {}", self.values.len(), self.meant)
    }

    fn better(&self) -> usize {
        let same = self.figure.same();
        self.values.iter().filter(|value| **value < same).count()
    }

    fn worse(&self) -> usize {
        let same = self.figure.same();
        self.values.iter().filter(|value| **value > same).count()
    }

    /// That of the sign test.
    fn p(&self) -> f64 {
        sign_test(self.better(), self.worse()).unwrap_or(1.0)
    }

    /// Whether the median is no worse, or by no more than this, which may be chance.
    fn is_as_gentle(&self, margin: f64) -> Option<bool> {
        let worse = median(&self.values)? - self.figure.same();
        let is_sure = worse > 0.0 && self.p() < UNLIKELY;
        Some(!is_sure && worse <= margin)
    }

    /// What holds of some pairs is not measured where others are missing.
    fn verdict(&self, holds: Option<bool>) -> Verdict {
        let missing = self.values.len() < self.meant;
        let missing = missing.then_some(Verdict::NotMeasured);
        let found = Verdict::of_seeds(holds, self.seeds, false);
        Verdict::of_all(missing.into_iter().chain([found]))
    }
}

/// What is required of them beside the others; `None` if nobody is held back at both
/// ends.
pub(crate) fn section(matrix: &MatrixRecord, outcomes: &[Outcome<'_>]) -> Option<String> {
    if !matrix.runs.iter().any(is_served) {
        return None;
    }
    let pairs = pairs(matrix, outcomes);
    let mut text = format!(
        "\nOf \u{201c}{}\u{201d} beside \u{201c}{}\u{201d} from a server with {SERVER}: as gentle \
         and as punctual, at least. A pair is of the same scenario and seed, and there is none where \
         a run failed; what holds of some pairs is not measured while others are missing. It is not \
         as gentle if the median of the pairs is worse and p is below {UNLIKELY}, or if the median is \
         worse by more than {:.0} % (fetches) or by more than {MORE} point (greedy flows), whatever p \
         is. p is that of the sign test, two-sided: how likely so uneven a number of better and worse \
         pairs is if nothing makes them so.\n\n",
        title(SERVED),
        title(OURS),
        100.0 * LONGER
    );
    text.push_str(&verdicts(&pairs));
    text.push_str(&table(&pairs));
    Some(text)
}

fn verdicts(pairs: &[Meant<'_>]) -> String {
    let mut text = "| | measured | |\n|---|---|---|\n".to_owned();
    let mut add = |what: &str, measured: &str, compared: &Compared, holds: Option<bool>| {
        let (counts, verdict) = (compared.counts(), compared.verdict(holds).words());
        let _ = writeln!(text, "| {what} | {measured}{counts} pairs | {verdict} |");
    };
    let both: Vec<_> = pairs.iter().filter_map(|one| one.pair.as_ref()).collect();
    let met = |of: fn(&Pair<'_>) -> bool| both.iter().filter(|pair| of(pair)).count();
    let served = met(|pair| pair.served.figures.met);
    let alone = met(|pair| pair.alone.figures.met);
    let is_any = !both.is_empty();
    let measured = if is_any {
        format!("{served}, the other {alone}; ")
    } else {
        String::new()
    };
    let missed = Compared::of(Figure::Missed, pairs);
    let holds = is_any.then_some(served >= alone);
    add(
        "punctual: no fewer deadlines met",
        &measured,
        &missed,
        holds,
    );
    for (figure, margin, digits) in [(Figure::Fetches, LONGER, 3), (Figure::Lost, MORE, 2)] {
        let compared = Compared::of(figure, pairs);
        if compared.meant == 0 {
            continue;
        }
        let measured = median(&compared.values).map_or(String::new(), |median| {
            format!("{median:.digits$}, p {:.3}; ", compared.p())
        });
        let what = format!("gentle: {}, median", figure.words());
        let holds = compared.is_as_gentle(margin);
        add(&what, &measured, &compared, holds);
    }
    text
}

/// Each figure over the pairs, and how many of them are better and worse.
fn table(pairs: &[Meant<'_>]) -> String {
    let mut text = "\n| | pairs | median (least\u{2013}most) | better | worse | p |\n\
                    |---|---|---|---|---|---|\n"
        .to_owned();
    for figure in Figure::ALL {
        let compared = Compared::of(figure, pairs);
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {:.3} |",
            figure.words(),
            compared.counts(),
            shown(Spread::of(&compared.values), figure.digits()),
            compared.better(),
            compared.worse(),
            compared.p()
        );
    }
    text
}

#[cfg(test)]
mod tests;
