//! Senders of the least weight, alone, beside a stream and when a link becomes
//! free, and weights that change: a table for each figure.

use std::fmt::Write;

use super::super::words::{cell, title};
use super::super::{ALONE, MatrixRecord};
use super::Kind;
use super::awaited::Awaited;
use super::cells::{self, Figure, Place, contenders, places, table, table_of};
use crate::scenario::{Background, Scenario};
use crate::yielding::CHANGED;

/// Whom those that are alone are compared with.
const REFERENCE: &str = "sender-kernel-cubic";

/// Goodput of one that is alone in parts of the kernel's CUBIC, %.
pub(super) const RATIO: Figure = Figure::Beside(REFERENCE, |own, other| {
    percent(own.goodput_mbit(), other.goodput_mbit())
});

/// The standing queue, ms.
pub(super) const QUEUE: Figure = Figure::Own(|it| Some(it.yielding?.queue_median_ms));

/// What a stream keeps, %.
pub(super) const KEPT: Figure = Figure::Beside(ALONE, |own, alone| {
    percent(own.foreground_together_mbit, alone.foreground_together_mbit)
});

/// How much longer a round trip is than beside the stream alone, %.
pub(super) const LONGER: Figure = Figure::Beside(ALONE, |own, alone| {
    Some(percent(own.rtt_mean_ms?, alone.rtt_mean_ms?)? - 1e2)
});

/// What is used of what a stream leaves, %.
pub(super) const USED: Figure = Figure::Own(|it| Some(1e2 * it.yielding?.spare_used));

/// What goes below the head of the page.
pub(super) fn section(kind: Kind, matrix: &MatrixRecord) -> String {
    match kind {
        Kind::Alone => alone(matrix),
        Kind::Released => released(matrix),
        Kind::Constant => constant(matrix),
        _ => steps(matrix),
    }
}

/// A way to run the scenario, which there is one of.
pub(super) fn variant(place: Place<'_>) -> String {
    place.variant.unwrap_or(place.scenario).to_owned()
}

fn alone(matrix: &MatrixRecord) -> String {
    let mut text =
        "What the receiver got over the whole time from the start of the transfer on, which \
                    is that of the start-up too.\n"
            .to_owned();
    let goodput = Figure::Own(|it| Some(it.goodput_mbit()));
    text.push_str(&table(matrix, "Goodput, Mbit/s", variant, goodput, 2));
    text.push_str(&table(
        matrix,
        "Of the kernel's CUBIC, %",
        variant,
        RATIO,
        1,
    ));
    let heading = "Standing queue, median, ms";
    text.push_str(&table(matrix, heading, variant, QUEUE, 2));
    let full = Figure::Own(|it| Some(it.yielding?.full_rate_s));
    let heading = "Seconds until it has 95 % of the link";
    text.push_str(&table(matrix, heading, variant, full, 2));
    text
}

fn released(matrix: &MatrixRecord) -> String {
    let mut text = "From the moment at which the greedy flow stops sending, as what it had in the \
                    queue still comes, to the one from which on 90 % of the link are held: the \
                    middle of the first of three means over half a second in a row of which none is \
                    less. Who never gets there before the run ends is later than anybody.\n"
        .to_owned();
    let heading = "Seconds until 90 % of the link are taken";
    let words = |place: Place<'_>, contender: &str| taken(matrix, place, contender).words(2);
    text.push_str(&table_of(matrix, heading, variant, words));
    let share = Figure::Own(|it| Some(1e2 * it.beside.as_ref()?.flows.first()?.ratio));
    let heading = "Payload beside the flow while it is there, % of the flow's";
    text.push_str(&table(matrix, heading, variant, share, 1));
    text
}

/// How soon what becomes free is taken with each seed.
pub(super) fn taken(matrix: &MatrixRecord, place: Place<'_>, contender: &str) -> Awaited {
    let scenario = matrix.scenarios.get(place.scenario);
    let within = scenario.map_or(f64::INFINITY, |scenario| {
        let stops = scenario.foreground.iter().filter_map(|one| one.stop_s);
        scenario.duration_s - stops.fold(0.0, f64::max)
    });
    let figure = Figure::Own(|it| it.beside.as_ref()?.taken_s);
    let values = cells::figures(matrix, place, contender, figure);
    Awaited::of(values.into_iter().map(Some), within)
}

fn constant(matrix: &MatrixRecord) -> String {
    let mut text = "Relative is relative to the stream alone with the same seed.\n".to_owned();
    text.push_str(&table(matrix, "What the stream keeps, %", variant, KEPT, 1));
    let first = Figure::Beside(ALONE, |own, alone| {
        percent(own.foreground_first_mbit?, alone.foreground_first_mbit?)
    });
    let heading = "What the stream keeps in the first 10 s beside the sender, %";
    text.push_str(&table(matrix, heading, variant, first, 1));
    let heading = "More round-trip time than alone, mean, %";
    text.push_str(&table(matrix, heading, variant, LONGER, 1));
    text.push_str(&table(matrix, "Used of the rest, %", variant, USED, 1));
    text
}

/// `own` in parts of `other`, %.
fn percent(own: f64, other: f64) -> Option<f64> {
    (other > 0.0).then(|| 1e2 * own / other)
}

/// A row for each kind of change, a column for each contender.
fn steps(matrix: &MatrixRecord) -> String {
    let contenders = contenders(matrix);
    let names: Vec<_> = contenders.iter().map(|one| cell(title(one))).collect();
    let dashes = "---|".repeat(names.len() + 1);
    let mut text = format!(
        "Seconds until the rate is half-way from what it was to what it becomes: to the middle of \
         the first of three means over half a second in a row that are beyond. Every change from \
         and to the same counts. A rate that stays much the same, by less than {:.0} % of the larger, \
         has not done what was asked for: it never acted, and is later than any other. Changes before \
         the sender begins or after the run are not judged, nor those to a weight whose share, \
         w/(1 + w), is much the same.\n\n| weight | {} |\n|{dashes}\n",
        100.0 * CHANGED,
        names.join(" | ")
    );
    for place in places(matrix) {
        let Some(scenario) = matrix.scenarios.get(place.scenario) else {
            continue;
        };
        for change in changes(scenario) {
            let cells = contenders.iter().map(|contender| {
                let acted = acted(matrix, place, contender, &change);
                format!("{}, {}", acted.times.words(2), acted.counts())
            });
            let cells: Vec<_> = cells.collect();
            let _ = writeln!(text, "| {} | {} |", change.words(), cells.join(" | "));
        }
    }
    text
}

/// Changes of a weight from and to the same.
pub(super) struct Change {
    from: Option<f64>,
    to: f64,
    /// Which of the scenario's they are.
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
    pub(super) fn words(&self) -> String {
        let from = self.from.map_or(String::new(), |w| format!("{w} "));
        format!("{from}\u{2192} {}", self.to)
    }

    /// Whether so different a weight is to have a rate that is different enough to
    /// say when it acted: that TCP has by itself is as much as [`CHANGED`].
    pub(super) fn can_be_judged(&self) -> bool {
        let share = |w: f64| w / (1.0 + w);
        let shares = self.from.map(|from| (share(from), share(self.to)));
        shares.is_none_or(|(one, other)| (one - other).abs() >= CHANGED * one.max(other))
    }
}

/// In the order in which there is one of them first.
pub(super) fn changes(scenario: &Scenario) -> Vec<Change> {
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
pub(super) struct Acted {
    pub(super) times: Awaited,
    /// How many there were, judged or not.
    all: usize,
}

impl Acted {
    pub(super) fn counts(&self) -> String {
        format!("{} of {} judged", self.times.len(), self.all)
    }
}

/// How long each of them took with each seed.
pub(super) fn acted(
    matrix: &MatrixRecord,
    place: Place<'_>,
    contender: &str,
    change: &Change,
) -> Acted {
    let runs = cells::runs(matrix, place, contender).into_iter();
    let figures: Vec<_> = runs.filter_map(|run| run.summary.beside.as_ref()).collect();
    let all = figures.len() * change.steps.len();
    let is_judged = |step: &&Step| step.stays_s.is_some() && change.can_be_judged();
    let judged: Vec<_> = change.steps.iter().filter(is_judged).collect();
    let within = judged.iter().filter_map(|step| step.stays_s);
    // The shortest: what took as long elsewhere did not act in time here.
    let within = within.fold(f64::INFINITY, f64::min);
    let times = figures.iter().flat_map(|figures| {
        let of = |step: &&Step| figures.acted_s.get(step.index).copied().flatten();
        judged.iter().map(of)
    });
    Acted {
        times: Awaited::of(times, within),
        all,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::synthetic::{matrix, run};
    use super::super::page;
    use super::*;
    use crate::report::RunSummary;
    use crate::yielding::{BesideFigures, FlowFigures};

    fn varied(contender: &str, seed: u64, background: f64) -> RunSummary {
        let mut run = run("constant", contender, seed, &[5.4]);
        run.variant = Some("20 ms".to_owned());
        run.summary.background_mbit = background;
        run.summary.rtt_mean_ms = Some(110.0);
        run.summary.beside = Some(BesideFigures {
            flows: vec![FlowFigures {
                name: "greedy".to_owned(),
                seconds: 18.0,
                ratio: 0.05,
            }],
            taken_s: Some(1.5),
            acted_s: vec![Some(0.5), Some(0.8)],
            ..BesideFigures::default()
        });
        run
    }

    fn lines(kind: Kind, matrix: &MatrixRecord) -> Vec<String> {
        let page = page(kind, matrix, &[]);
        page.lines()
            .filter(|line| line.starts_with('|'))
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn those_that_are_alone_are_compared_with_the_kernel() {
        let mut matrix = matrix();
        matrix.runs = vec![varied(REFERENCE, 1, 9.6), varied("sender-vegas", 1, 9.12)];
        let lines = lines(Kind::Alone, &matrix);
        let ours = title("sender-vegas");
        assert!(lines.contains(&format!("| {ours} | 9.12 |")), "{lines:?}");
        assert!(lines.contains(&format!("| {ours} | 95.0 |")), "{lines:?}");
    }

    #[test]
    fn what_becomes_free_and_a_stream_have_tables() {
        let mut matrix = matrix();
        let mut alone = varied(ALONE, 1, 0.0);
        alone.summary.foreground_together_mbit = 6.0;
        alone.summary.rtt_mean_ms = Some(100.0);
        alone.summary.foreground_first_mbit = Some(5.0);
        let mut ours = varied("sender-vegas", 1, 3.0);
        ours.summary.foreground_first_mbit = Some(4.0);
        matrix.runs = vec![alone, ours];
        let ours = title("sender-vegas");
        let released = lines(Kind::Released, &matrix);
        assert!(
            released.contains(&format!("| {ours} | 1.50 |")),
            "{released:?}"
        );
        assert!(
            released.contains(&format!("| {ours} | 5.0 |")),
            "{released:?}"
        );
        let constant = lines(Kind::Constant, &matrix);
        assert!(
            constant.contains(&format!("| {ours} | 90.0 |")),
            "{constant:?}"
        );
        assert!(
            constant.contains(&format!("| {ours} | 80.0 |")),
            "{constant:?}"
        );
        assert!(
            constant.contains(&format!("| {ours} | 10.0 |")),
            "{constant:?}"
        );
    }

    #[test]
    fn every_kind_of_change_of_a_weight_has_a_row() {
        let mut matrix = matrix();
        let scenario = matrix.scenarios.get_mut("constant").unwrap();
        scenario.background = toml::from_str(
            "weight = 1
             weights = [{ at_s = 9, weight = 0.02 }, { at_s = 19, weight = 1 }, \
             { at_s = 29, weight = 0.02 }, { at_s = 39, weight = 0.5 }]",
        )
        .unwrap();
        let mut ours = varied("sender-vegas", 1, 3.0);
        let beside = ours.summary.beside.as_mut().unwrap();
        beside.acted_s = vec![Some(0.5), Some(0.8), Some(0.7), None];
        matrix.runs = vec![ours];
        let lines = lines(Kind::Steps, &matrix);
        assert_eq!(
            lines[2..],
            [
                "| 1 \u{2192} 0.02 | 0.60 (0.50\u{2013}0.70), 2 of 2 judged |",
                "| 0.02 \u{2192} 1 | 0.80, 1 of 1 judged |",
                "| 0.02 \u{2192} 0.5 | not within 21 s, 1 of 1 judged |"
            ]
        );
    }
}
