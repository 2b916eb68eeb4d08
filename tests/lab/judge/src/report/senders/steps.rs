//! How soon a sender heeds a weight that changes: a row for each kind of change.

use crate::report::select::{Place, contenders};
use crate::report::senders::runs;
use crate::report::words::title;
use crate::requirement::{Awaited, Part, Requirement};
use crate::results::MatrixRecord;
use crate::verdict::Bound;
use lab_run::scenario::{Background, Scenario};
use lab_run::table::Table;
use lab_run::yielding::CHANGED;

/// Until a new weight acts, s.
const MAX_ACTS_S: f64 = 1.0;

/// What goes below the head of the page.
pub(crate) fn section(matrix: &MatrixRecord) -> String {
    let table = Table::over(all_changes(matrix))
        .column("weight", |(_, change)| change.words())
        .columns(
            contenders(matrix),
            |contender| title(contender).to_owned(),
            |(place, change), contender| {
                let acted = Acted::of(matrix, place, contender, change);
                format!("{}, {}", acted.times.words(2), acted.counts())
            },
        );
    format!(
        "Seconds until the rate is half-way from what it was to what it becomes: to the middle of \
         the first of three means over half a second in a row that are beyond. Every change from \
         and to the same counts. A rate that stays much the same, by less than {:.0} % of the larger, \
         has not done what was asked for: it never acted, and is later than any other. Changes before \
         the sender begins or after the run are not judged, nor those to a weight whose share, \
         w/(1 + w), is much the same.\n\n{table}",
        100.0 * CHANGED
    )
}

pub(crate) fn requirements(matrix: &MatrixRecord, law: &str) -> Vec<Requirement> {
    let bound = Bound::AtMost(MAX_ACTS_S);
    let (judged, left_out): (Vec<_>, Vec<_>) = all_changes(matrix)
        .into_iter()
        .partition(|(_, change)| change.can_be_judged());
    let parts = judged.iter().map(|(place, change)| {
        let acted = Acted::of(matrix, place, law, change);
        let seeds = runs(matrix, place, law).len();
        let words = format!("{}, {}:", change.words(), acted.counts());
        Part::awaited(words, &acted.times, seeds, bound)
    });
    let parts: Vec<_> = parts.collect();
    let mut what = format!("until a new weight acts, s, {}", bound.words(1));
    if !left_out.is_empty() {
        let words: Vec<_> = left_out.iter().map(|(_, change)| change.words()).collect();
        what.push_str(&format!("; too little to be judged: {}", words.join(", ")));
    }
    vec![Requirement::of_parts(what, 2, &parts)]
}

/// Changes of a weight from and to the same.
struct Change {
    from: Option<f64>,
    to: f64,
    steps: Vec<Step>,
}

/// One of the changes of a scenario.
struct Step {
    /// Its place among them.
    index: usize,
    /// How long the weight stays, s; `None` where nobody is there to heed it.
    stays_s: Option<f64>,
}

impl Change {
    fn words(&self) -> String {
        let from = self.from.map_or(String::new(), |w| format!("{w} "));
        format!("{from}\u{2192} {}", self.to)
    }

    /// Whether so different a weight is to have a rate that is different enough to
    /// say when it acted: that TCP has by itself is as much as [`CHANGED`].
    fn can_be_judged(&self) -> bool {
        let share = |w: f64| w / (1.0 + w);
        let shares = self.from.map(|from| (share(from), share(self.to)));
        shares.is_none_or(|(one, other)| (one - other).abs() >= CHANGED * one.max(other))
    }
}

/// Each kind of change at each place.
fn all_changes(matrix: &MatrixRecord) -> Vec<(Place, Change)> {
    let places = Place::all(matrix).into_iter();
    let all = places.flat_map(|place| {
        let scenario = matrix.scenarios.get(&place.scenario);
        let changes = scenario.map_or(Vec::new(), changes).into_iter();
        changes.map(move |change| (place.clone(), change))
    });
    all.collect()
}

/// In the order in which there is one of them first.
fn changes(scenario: &Scenario) -> Vec<Change> {
    let mut found: Vec<Change> = Vec::new();
    let Background {
        start_s,
        weight: mut from,
        ref weights,
        ..
    } = scenario.background;
    for (index, step) in weights.iter().enumerate() {
        let next = weights.get(index + 1).map(|next| next.at_s);
        let until = next.unwrap_or(scenario.duration_s);
        let is_there = step.at_s > start_s && until > step.at_s;
        let one = Step {
            index,
            stays_s: is_there.then_some(until - step.at_s),
        };
        let is_same = |one: &&mut Change| (one.from, one.to) == (from, step.weight);
        match found.iter_mut().find(is_same) {
            Some(change) => change.steps.push(one),
            None => found.push(Change {
                from,
                to: step.weight,
                steps: vec![one],
            }),
        }
        from = Some(step.weight);
    }
    found
}

/// How changes from and to the same acted, of all seeds.
struct Acted {
    times: Awaited,
    /// How many there were, judged or not.
    all: usize,
}

impl Acted {
    fn counts(&self) -> String {
        format!("{} of {} judged", self.times.len(), self.all)
    }

    /// How long each of them took with each seed.
    fn of(matrix: &MatrixRecord, place: &Place, contender: &str, change: &Change) -> Self {
        let runs = runs(matrix, place, contender).into_iter();
        let figures: Vec<_> = runs.filter_map(|run| run.summary.beside.as_ref()).collect();
        let is_judged = |step: &&Step| step.stays_s.is_some() && change.can_be_judged();
        let judged: Vec<_> = change.steps.iter().filter(is_judged).collect();
        let within = judged.iter().filter_map(|step| step.stays_s);
        // The shortest: what took as long elsewhere did not act in time here.
        let within = within.fold(f64::INFINITY, f64::min);
        let times = figures.iter().flat_map(|figures| {
            let of = |step: &&Step| figures.acted_s.get(step.index).copied().flatten();
            judged.iter().map(of)
        });
        Self {
            times: Awaited::of(times, within),
            all: figures.len() * change.steps.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::senders::{DEFAULT_LAW, required};
    use crate::report::tests::synthetic::{line, matrix, run};
    use crate::results::RunSummary;
    use lab_run::yielding::BesideFigures;

    fn acted(seed: u64, acted_s: &[Option<f64>]) -> RunSummary {
        let mut run = run("greedy", DEFAULT_LAW, seed, &[5.97]);
        run.summary.beside = Some(BesideFigures {
            acted_s: acted_s.to_vec(),
            ..BesideFigures::default()
        });
        run
    }

    #[test]
    fn every_kind_of_change_of_a_weight_has_a_row() {
        let mut matrix = matrix();
        let scenario = matrix.scenarios.get_mut("greedy").unwrap();
        scenario.background = toml::from_str(
            "weight = 1
             weights = [{ at_s = 9, weight = 0.02 }, { at_s = 19, weight = 1 }, \
             { at_s = 29, weight = 0.02 }, { at_s = 39, weight = 0.5 }]",
        )
        .unwrap();
        matrix.runs = vec![acted(1, &[Some(0.5), Some(0.8), Some(0.7), None])];
        let section = section(&matrix);
        let lines = section.lines().filter(|line| line.starts_with('|'));
        let lines: Vec<_> = lines.collect();
        assert_eq!(
            lines[2..],
            [
                "| 1 \u{2192} 0.02 | 0.60 (0.50\u{2013}0.70), 2 of 2 judged |",
                "| 0.02 \u{2192} 1 | 0.80, 1 of 1 judged |",
                "| 0.02 \u{2192} 0.5 | not within 21 s, 1 of 1 judged |"
            ]
        );
    }

    #[test]
    fn every_kind_of_change_acts_within_a_second() {
        let mut matrix = matrix();
        matrix.name = "sender-steps".to_owned();
        let mut judged = |steps: &str| {
            let scenario = matrix.scenarios.get_mut("greedy").unwrap();
            scenario.background =
                toml::from_str(&format!("weight = 1\nweights = {steps}")).unwrap();
            matrix.runs = vec![acted(1, &[Some(1.1), Some(0.4), Some(0.9), None])];
            required(&matrix)
        };
        let there = "{ at_s = 9, weight = 0.1 }, { at_s = 19, weight = 1 }";
        let text = judged(&format!("[{there}, {{ at_s = 29, weight = 0.1 }}]"));
        let acts = line(&text, "| until a new weight");
        let words = "| 1 \u{2192} 0.1, 2 of 2 judged: 1.00 (0.90\u{2013}1.10); \
                     0.1 \u{2192} 1, 1 of 1 judged: 0.40 | holds, but";
        assert!(acts.contains(words), "{acts}");
        // The last is a kind of its own, and the rate stayed the same: it never
        // acted.
        let text = judged(&format!(
            "[{there}, {{ at_s = 29, weight = 0.1 }}, {{ at_s = 39, weight = 0.5 }}]"
        ));
        let acts = line(&text, "| until a new weight");
        let words = "0.1 \u{2192} 0.5, 1 of 1 judged: **not within 21 s** | **does not hold**, of one seed |";
        assert!(acts.ends_with(words), "{acts}");
        // After the end there is nobody to act.
        let text = judged(&format!(
            "[{there}, {{ at_s = 29, weight = 0.1 }}, {{ at_s = 61, weight = 0.5 }}]"
        ));
        let acts = line(&text, "| until a new weight");
        let words = "0.1 \u{2192} 0.5, 0 of 1 judged: \u{2013} | **not measured** |";
        assert!(acts.ends_with(words), "{acts}");
        // From a half to three quarters the rate changes by less than says anything.
        let text = judged("[{ at_s = 9, weight = 0.5 }, { at_s = 19, weight = 0.75 }]");
        let acts = line(&text, "| until a new weight");
        let words = "too little to be judged: 0.5 \u{2192} 0.75 | 1 \u{2192} 0.5, 1 of 1 judged";
        assert!(acts.contains(words), "{acts}");
    }
}
