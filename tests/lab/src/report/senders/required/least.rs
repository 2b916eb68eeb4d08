//! The least weight fills what is free and disturbs nobody; a new weight acts
//! soon.

use super::super::super::MatrixRecord;
use super::super::super::bound::Bound;
use super::super::cells::{Figure, places, spread};
use super::super::figures::{self, acted, changes, variant};
use super::{OURS, Part, Requirement};
use crate::statistics::Spread;

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
    let parts = places(matrix).into_iter().map(|place| Part {
        place: variant(place),
        figure: spread(matrix, place, OURS, figure),
        bound,
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
    let what = "until 90 % of what becomes free are taken, s,";
    vec![everywhere(
        matrix,
        what,
        figures::TAKEN,
        Bound::AtMost(TAKEN),
        2,
    )]
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
    let parts = places(matrix).into_iter().flat_map(|place| {
        let scenario = matrix.scenarios.get(place.scenario);
        let changes = scenario.map_or(Vec::new(), |scenario| changes(&scenario.background));
        let part = move |change: figures::Change| Part {
            place: change.words(),
            figure: Spread::of(&acted(matrix, place, OURS, &change)),
            bound: Bound::AtMost(ACTS),
        };
        changes.into_iter().map(part)
    });
    let parts: Vec<_> = parts.collect();
    let what = format!(
        "until a new weight acts, s, {}",
        Bound::AtMost(ACTS).words(1)
    );
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
            ratio.ends_with("\u{2265} 97 | 20 ms **96.88** | **does not hold** |"),
            "{ratio}"
        );
        let queue = line(&text, "| alone: standing");
        assert!(
            queue.ends_with("\u{2264} 5 | 20 ms 5.00 | holds |"),
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
        assert!(
            taken.ends_with("\u{2264} 2.5 | 20 ms 2.50 | holds |"),
            "{taken}"
        );
        let text = judged("sender-released", vec![of("greedy", OURS, 3)]);
        let taken = line(&text, "| until 90 %");
        assert!(
            taken.ends_with("| 20 ms **9.00** | **does not hold** |"),
            "{taken}"
        );
    }

    #[test]
    fn a_stream_keeps_nearly_all() {
        let mut alone = of("constant", ALONE, 1);
        alone.summary.foreground_together_mbit = 6.0;
        alone.summary.rtt_mean_ms = Some(100.0);
        let text = judged("sender-constant", vec![alone, of("constant", OURS, 1)]);
        let kept = line(&text, "| beside a stream: it keeps");
        assert!(
            kept.ends_with("\u{2265} 99.5 | 20 ms 99.50 | holds |"),
            "{kept}"
        );
        let longer = line(&text, "| beside a stream: round");
        assert!(
            longer.ends_with("\u{2264} 8 | 20 ms 8.00 | holds |"),
            "{longer}"
        );
        let used = line(&text, "| beside a stream: used");
        assert!(
            used.ends_with("| 20 ms **93.00** | **does not hold** |"),
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
        let words = "| 1 \u{2192} 0.1 1.00; 0.1 \u{2192} 1 0.40 | holds |";
        assert!(acts.ends_with(words), "{acts}");
        // The last is a kind of its own, and the rate stayed the same.
        let text = judged(&format!(
            "[{there}, {{ at_s = 29, weight = 0.1 }}, {{ at_s = 39, weight = 0.5 }}]"
        ));
        let acts = line(&text, "| until a new weight");
        let words = "0.1 \u{2192} 0.5 \u{2013} | **not measured** |";
        assert!(acts.ends_with(words), "{acts}");
    }
}
