//! Senders of the least weight, alone, beside a stream and when a link becomes
//! free, and weights that change: a table for each figure.

use std::fmt::Write;

use crate::report::senders;
use crate::report::senders::required::{Awaited, OURS, Part, Requirement};
use crate::report::senders::{Figure, Kind, Place, contenders, places, table, table_of};
use crate::report::verdict::Bound;
use crate::report::words::{cell, title};
use crate::report::{ALONE, MatrixRecord};
use crate::scenario::{Background, Scenario};
use crate::yielding::CHANGED;

/// Whom those that are alone are compared with.
const REFERENCE: &str = "sender-kernel-cubic";

/// Goodput of one that is alone in parts of the kernel's CUBIC, %.
pub(crate) const RATIO: Figure = Figure::Beside(REFERENCE, |own, other| {
    percent(own.goodput_mbit(), other.goodput_mbit())
});

/// The standing queue, ms.
pub(crate) const QUEUE: Figure = Figure::Own(|it| Some(it.yielding?.queue_median_ms));

/// What a stream keeps, %.
pub(crate) const KEPT: Figure = Figure::Beside(ALONE, |own, alone| {
    percent(own.foreground_together_mbit, alone.foreground_together_mbit)
});

/// How much longer a round trip is than beside the stream alone, %.
pub(crate) const LONGER: Figure = Figure::Beside(ALONE, |own, alone| {
    Some(percent(own.rtt_mean_ms?, alone.rtt_mean_ms?)? - 1e2)
});

/// What is used of what a stream leaves, %.
pub(crate) const USED: Figure = Figure::Own(|it| Some(1e2 * it.yielding?.spare_used));

/// What goes below the head of the page.
pub(crate) fn section(kind: Kind, matrix: &MatrixRecord) -> String {
    match kind {
        Kind::Alone => alone(matrix),
        Kind::Released => released(matrix),
        Kind::Constant => constant(matrix),
        _ => steps(matrix),
    }
}

/// A way to run the scenario, which there is one of.
pub(crate) fn variant(place: Place<'_>) -> String {
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
pub(crate) fn taken(matrix: &MatrixRecord, place: Place<'_>, contender: &str) -> Awaited {
    let scenario = matrix.scenarios.get(place.scenario);
    let within = scenario.map_or(f64::INFINITY, |scenario| {
        let stops = scenario.foreground.iter().filter_map(|one| one.stop_s);
        scenario.duration_s - stops.fold(0.0, f64::max)
    });
    let figure = Figure::Own(|it| it.beside.as_ref()?.taken_s);
    let values = senders::values(matrix, place, contender, figure);
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
pub(crate) struct Change {
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
    pub(crate) fn words(&self) -> String {
        let from = self.from.map_or(String::new(), |w| format!("{w} "));
        format!("{from}\u{2192} {}", self.to)
    }

    /// Whether so different a weight is to have a rate that is different enough to
    /// say when it acted: that TCP has by itself is as much as [`CHANGED`].
    pub(crate) fn can_be_judged(&self) -> bool {
        let share = |w: f64| w / (1.0 + w);
        let shares = self.from.map(|from| (share(from), share(self.to)));
        shares.is_none_or(|(one, other)| (one - other).abs() >= CHANGED * one.max(other))
    }
}

/// In the order in which there is one of them first.
pub(crate) fn changes(scenario: &Scenario) -> Vec<Change> {
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
pub(crate) struct Acted {
    pub(crate) times: Awaited,
    /// How many there were, judged or not.
    all: usize,
}

impl Acted {
    pub(crate) fn counts(&self) -> String {
        format!("{} of {} judged", self.times.len(), self.all)
    }
}

/// How long each of them took with each seed.
pub(crate) fn acted(
    matrix: &MatrixRecord,
    place: Place<'_>,
    contender: &str,
    change: &Change,
) -> Acted {
    let runs = senders::runs(matrix, place, contender).into_iter();
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
    use super::*;
    use crate::report::RunSummary;
    use crate::report::senders::page;
    use crate::report::tests::synthetic::{matrix, run};
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

/// Goodput alone in parts of that of the kernel's CUBIC, %.
const MIN_OF_CUBIC: f64 = 97.0;
/// The standing queue, ms.
const MAX_QUEUE_MS: f64 = 5.0;
/// Until what becomes free is taken, s.
const MAX_TAKEN_S: f64 = 2.5;
/// What a stream keeps, %.
const MIN_KEPT: f64 = 99.5;
/// How much longer its round trips may be, %.
const MAX_LONGER: f64 = 8.0;
/// What is to be used of the rest, %.
const MIN_USED: f64 = 93.0;
/// Until a new weight acts, s.
const MAX_ACTS_S: f64 = 1.0;

/// The same bound wherever it is measured.
fn everywhere(
    matrix: &MatrixRecord,
    what: &str,
    figure: Figure,
    bound: Bound,
    digits: usize,
) -> Requirement {
    let parts = places(matrix).into_iter().map(|place| {
        let values = senders::values(matrix, place, OURS, figure);
        Part::over(variant(place), &values, bound)
    });
    let parts: Vec<_> = parts.collect();
    let what = format!("{what} {}", bound.words(1));
    Requirement::of(what, digits, &parts)
}

pub(crate) fn alone_requirements(matrix: &MatrixRecord) -> Vec<Requirement> {
    let what = "alone, over the whole transfer: goodput in parts of the kernel's CUBIC, %,";
    let standing = "alone: standing queue, median, ms,";
    vec![
        everywhere(matrix, what, RATIO, Bound::AtLeast(MIN_OF_CUBIC), 2),
        everywhere(matrix, standing, QUEUE, Bound::AtMost(MAX_QUEUE_MS), 2),
    ]
}

pub(crate) fn released_requirements(matrix: &MatrixRecord) -> Vec<Requirement> {
    let bound = Bound::AtMost(MAX_TAKEN_S);
    let parts = places(matrix).into_iter().map(|place| {
        let times = taken(matrix, place, OURS);
        let seeds = times.len();
        Part::awaited(variant(place), times, seeds, bound)
    });
    let what = format!(
        "until 90 % of what becomes free are taken, s, {}",
        bound.words(1)
    );
    vec![Requirement::of(what, 2, &parts.collect::<Vec<_>>())]
}

pub(crate) fn constant_requirements(matrix: &MatrixRecord) -> Vec<Requirement> {
    let (kept, longer) = (
        "beside a stream: it keeps, %,",
        "beside a stream: round trips longer by, %,",
    );
    let used = "beside a stream: used of the rest, %,";
    vec![
        everywhere(matrix, kept, KEPT, Bound::AtLeast(MIN_KEPT), 2),
        everywhere(matrix, longer, LONGER, Bound::AtMost(MAX_LONGER), 2),
        everywhere(matrix, used, USED, Bound::AtLeast(MIN_USED), 2),
    ]
}

pub(crate) fn steps_requirements(matrix: &MatrixRecord) -> Vec<Requirement> {
    let bound = Bound::AtMost(MAX_ACTS_S);
    let (mut parts, mut left_out) = (Vec::new(), Vec::new());
    for place in places(matrix) {
        let seeds = senders::runs(matrix, place, OURS).len();
        let scenario = matrix.scenarios.get(place.scenario);
        for change in scenario.map_or(Vec::new(), changes) {
            let acted = acted(matrix, place, OURS, &change);
            let place = format!("{}, {}:", change.words(), acted.counts());
            if change.can_be_judged() {
                parts.push(Part::awaited(place, acted.times, seeds, bound));
            } else {
                left_out.push(change.words());
            }
        }
    }
    let mut what = format!("until a new weight acts, s, {}", bound.words(1));
    if !left_out.is_empty() {
        what.push_str(&format!(
            "; too little to be judged: {}",
            left_out.join(", ")
        ));
    }
    vec![Requirement::of(what, 2, &parts)]
}

#[cfg(test)]
mod least_tests {
    use super::*;
    use crate::report::senders::required::section;
    use crate::report::tests::synthetic::{line, matrix, run};
    use crate::report::{ALONE, RunSummary};
    use crate::yielding::{BesideFigures, YieldFigures};

    fn of(name: &str, contender: &str, seed: u64) -> RunSummary {
        let mut run = run(name, contender, seed, &[5.97]);
        run.variant = Some("20 ms".to_owned());
        run.summary.received_mbit = Some(9.3);
        run.summary.rtt_mean_ms = Some(108.0);
        run.summary.yielding = Some(YieldFigures {
            spare_used: 0.92996,
            queue_median_ms: 5.0,
            ..YieldFigures::default()
        });
        run.summary.beside = Some(BesideFigures {
            taken_s: Some([2.4, 2.5, 9.0][seed as usize - 1]),
            acted_s: vec![Some(1.1), Some(0.4), Some(0.9), None],
            ..BesideFigures::default()
        });
        run
    }

    fn judged(name: &str, runs: Vec<RunSummary>) -> String {
        let mut matrix = matrix();
        matrix.name = name.to_owned();
        matrix.runs = runs;
        section(&matrix)
    }

    #[test]
    fn who_is_alone_is_compared_with_the_kernel() {
        let mut cubic = of("alone", "sender-kernel-cubic", 1);
        cubic.summary.received_mbit = Some(9.6);
        let text = judged("sender-alone", vec![cubic, of("alone", OURS, 1)]);
        let ratio = line(&text, "| alone, over");
        assert!(
            ratio.ends_with("\u{2265} 97 | 20 ms **96.88** | **does not hold**, of 1 seed |"),
            "{ratio}"
        );
        let queue = line(&text, "| alone: standing");
        assert!(
            queue.ends_with("\u{2264} 5 | 20 ms 5.00 | holds, of 1 seed |"),
            "{queue}"
        );
        let text = judged("sender-alone", vec![of("alone", OURS, 1)]);
        let ratio = line(&text, "| alone, over");
        assert!(ratio.ends_with("| **not measured** |"), "{ratio}");
    }

    #[test]
    fn the_median_over_the_seeds_decides_when_something_is_taken() {
        let runs = (1..=3).map(|seed| of("greedy", OURS, seed));
        let text = judged("sender-released", runs.collect());
        let taken = line(&text, "| until 90 %");
        let figure = "\u{2264} 2.5 | 20 ms 2.50 (2.40\u{2013}9.00) |";
        assert!(taken.contains(figure), "{taken}");
        assert!(taken.ends_with("5 seeds are due |"), "{taken}");
        let text = judged("sender-released", vec![of("greedy", OURS, 3)]);
        let taken = line(&text, "| until 90 %");
        assert!(
            taken.ends_with("| 20 ms **9.00** | **does not hold**, of 1 seed |"),
            "{taken}"
        );
    }

    #[test]
    fn who_never_takes_what_becomes_free_is_later_than_anybody() {
        let mut matrix = matrix();
        matrix.name = "sender-released".to_owned();
        let scenario = matrix.scenarios.get_mut("greedy").unwrap();
        scenario.foreground[0].stop_s = Some(40.0);
        let timed = |seed: u64, taken_s| {
            let mut run = of("greedy", OURS, 1);
            (run.seed, run.summary.beside.as_mut().unwrap().taken_s) = (seed, Some(taken_s));
            run
        };
        let mut judged = |times: &[f64]| {
            let runs = (1..).zip(times).map(|(seed, time)| timed(seed, *time));
            matrix.runs = runs.collect();
            line(&section(&matrix), "| until 90 %").to_owned()
        };
        let often = judged(&[20.0, 0.5, 20.0]);
        let words =
            "| 20 ms **not within 20 s (0.50\u{2013}not within 20 s)** | **does not hold**, but";
        assert!(often.contains(words), "{often}");
        let once = judged(&[20.0, 0.5, 0.7, 0.6, 0.5]);
        let words = "| 20 ms 0.60 (0.50\u{2013}not within 20 s) | holds |";
        assert!(once.ends_with(words), "{once}");
        let always = judged(&[20.0, 20.0]);
        let words = "| 20 ms **not within 20 s** | **does not hold**, of 2 seeds |";
        assert!(always.ends_with(words), "{always}");
    }

    #[test]
    fn a_stream_keeps_nearly_all() {
        let mut alone = of("constant", ALONE, 1);
        alone.summary.foreground_together_mbit = 6.0;
        alone.summary.rtt_mean_ms = Some(100.0);
        let text = judged("sender-constant", vec![alone, of("constant", OURS, 1)]);
        let kept = line(&text, "| beside a stream: it keeps");
        assert!(
            kept.ends_with("\u{2265} 99.5 | 20 ms 99.50 | holds, of 1 seed |"),
            "{kept}"
        );
        let longer = line(&text, "| beside a stream: round");
        assert!(
            longer.ends_with("\u{2264} 8 | 20 ms 8.00 | holds, of 1 seed |"),
            "{longer}"
        );
        let used = line(&text, "| beside a stream: used");
        assert!(
            used.ends_with("| 20 ms **93.00** | **does not hold**, of 1 seed |"),
            "{used}"
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
            matrix.runs = vec![of("greedy", OURS, 1)];
            section(&matrix)
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
        let words =
            "0.1 \u{2192} 0.5, 1 of 1 judged: **not within 21 s** | **does not hold**, of 1 seed |";
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
