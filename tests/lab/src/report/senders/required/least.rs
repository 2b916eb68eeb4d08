//! The least weight fills what is free and disturbs nobody; a new weight acts
//! soon.

use super::super::super::MatrixRecord;
use super::super::super::bound::Bound;
use super::super::cells::{self, Figure, places};
use super::super::figures::{self, acted, changes, variant};
use super::{OURS, Part, Requirement};

/// Goodput alone in parts of that of the kernel's CUBIC, %.
const OF_CUBIC: f64 = 97.0;
/// The standing queue, ms.
const QUEUE: f64 = 5.0;
/// Until what becomes free is taken, s.
const TAKEN: f64 = 2.5;
/// What a stream keeps, %.
const KEPT: f64 = 99.5;
/// How much longer its round trips may be, %.
const LONGER: f64 = 8.0;
/// What is to be used of the rest, %.
const USED: f64 = 93.0;
/// Until a new weight acts, s.
const ACTS: f64 = 1.0;

/// The same bound wherever it is measured.
fn everywhere(
    matrix: &MatrixRecord,
    what: &str,
    figure: Figure,
    bound: Bound,
    digits: usize,
) -> Requirement {
    let parts = places(matrix).into_iter().map(|place| {
        let values = cells::figures(matrix, place, OURS, figure);
        Part::over(variant(place), &values, bound)
    });
    let parts: Vec<_> = parts.collect();
    let what = format!("{what} {}", bound.words(1));
    Requirement::of(what, digits, &parts)
}

pub(super) fn alone(matrix: &MatrixRecord) -> Vec<Requirement> {
    let what = "alone, over the whole transfer: goodput in parts of the kernel's CUBIC, %,";
    let standing = "alone: standing queue, median, ms,";
    vec![
        everywhere(matrix, what, figures::RATIO, Bound::AtLeast(OF_CUBIC), 2),
        everywhere(matrix, standing, figures::QUEUE, Bound::AtMost(QUEUE), 2),
    ]
}

pub(super) fn released(matrix: &MatrixRecord) -> Vec<Requirement> {
    let bound = Bound::AtMost(TAKEN);
    let parts = places(matrix).into_iter().map(|place| {
        let times = figures::taken(matrix, place, OURS);
        let seeds = times.len();
        Part::awaited(variant(place), times, seeds, bound)
    });
    let what = format!(
        "until 90 % of what becomes free are taken, s, {}",
        bound.words(1)
    );
    vec![Requirement::of(what, 2, &parts.collect::<Vec<_>>())]
}

pub(super) fn constant(matrix: &MatrixRecord) -> Vec<Requirement> {
    let (kept, longer) = (
        "beside a stream: it keeps, %,",
        "beside a stream: round trips longer by, %,",
    );
    let used = "beside a stream: used of the rest, %,";
    vec![
        everywhere(matrix, kept, figures::KEPT, Bound::AtLeast(KEPT), 2),
        everywhere(matrix, longer, figures::LONGER, Bound::AtMost(LONGER), 2),
        everywhere(matrix, used, figures::USED, Bound::AtLeast(USED), 2),
    ]
}

pub(super) fn steps(matrix: &MatrixRecord) -> Vec<Requirement> {
    let bound = Bound::AtMost(ACTS);
    let (mut parts, mut left_out) = (Vec::new(), Vec::new());
    for place in places(matrix) {
        let seeds = cells::runs(matrix, place, OURS).len();
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
mod tests {
    use super::super::super::super::synthetic::{line, matrix, run};
    use super::super::super::super::{ALONE, RunSummary};
    use super::super::section;
    use super::*;
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
