//! A weight means what it says, beside one flow.

use super::super::super::MatrixRecord;
use super::super::super::bound::Bound;
use super::super::super::weights::{shares, weights};
use super::super::scales::scenarios;
use super::{Curve, OURS, Part, Requirement};

/// From this weight on a share is to be w/(1 + w).
const MEANT_FROM: f64 = 0.25;
/// How far from it a share may be, in parts of it.
const OFF: f64 = 0.25;
/// The least weight.
const LEAST: f64 = 0.02;
/// What that may have at most where round trips are shorter than [`LONG_MS`], %.
const LEAST_SHORT: f64 = 7.0;
/// The same of longer ones, %.
const LEAST_LONG: f64 = 4.0;
/// Round trips from here on are long, ms.
const LONG_MS: u128 = 50;

pub(super) fn all(matrix: &MatrixRecord) -> Vec<Requirement> {
    let paths = scenarios(matrix);
    let of = |name: &str, w| shares(matrix, (name, OURS, None), w);
    let curves = paths.iter().map(|(rtt, name)| Curve {
        place: format!("{rtt} ms"),
        points: weights(matrix)
            .into_iter()
            .map(|w| (w, of(name, w)))
            .collect(),
    });
    let mut all = vec![Requirement::rising(
        "no larger weight with a lesser share, at any round-trip time",
        &curves.collect::<Vec<_>>(),
    )];
    for (rtt, name) in &paths {
        let meant = weights(matrix).into_iter().filter(|w| *w >= MEANT_FROM);
        let bound = Bound::Within(-100.0 * OFF, 100.0 * OFF);
        let parts = meant.map(|w| {
            let off = of(name, w).into_iter().map(|share| off(share, w));
            Part::over(format!("w {w}"), &off.collect::<Vec<_>>(), bound)
        });
        all.push(Requirement::of(
            format!(
                "{rtt} ms: from w = {MEANT_FROM} on a share within {:.0} % of w/(1 + w); by how much \
                 it is above, %",
                100.0 * OFF
            ),
            1,
            &parts.collect::<Vec<_>>(),
        ));
    }
    let least = paths.iter().map(|(rtt, name)| {
        let most = if *rtt < LONG_MS {
            LEAST_SHORT
        } else {
            LEAST_LONG
        };
        let place = format!("{rtt} ms");
        Part::over(place, &of(name, LEAST), Bound::AtMost(most))
    });
    all.push(Requirement::of(
        format!(
            "w = {LEAST}: a share of at most {LEAST_LONG} %, and {LEAST_SHORT} % at less than {LONG_MS} ms; %"
        ),
        2,
        &least.collect::<Vec<_>>(),
    ));
    all
}

/// How far a share is above what its weight is to get, % of that.
fn off(share: f64, w: f64) -> f64 {
    let meant = w / (1.0 + w);
    share / meant - 100.0
}

#[cfg(test)]
mod tests {
    use super::super::super::super::synthetic::{line, matrix, run};
    use super::super::section;
    use super::*;
    use crate::report::RunSummary;

    fn weighed(contender: &str, w: f64, share: f64, seed: u64) -> RunSummary {
        let mut run = run("greedy", contender, seed, &[100.0 - share]);
        (run.weight, run.congestion_control) = (Some(w), None);
        run.summary.background_mbit = 1.1 * share;
        run.summary.received_mbit = Some(share);
        run
    }

    /// At 100 ms.
    fn judged(shares: [f64; 4]) -> String {
        let mut matrix = matrix();
        matrix.name = "sender-weights".to_owned();
        matrix.scenarios.retain(|name, _| name == "greedy");
        let all = [0.02, 0.1, 0.25, 1.0].into_iter().zip(shares);
        let runs = all.flat_map(|(w, share)| {
            (1..=3).flat_map(move |seed| {
                let other = weighed("sender-paced", w, 99.0, seed);
                [weighed(OURS, w, share, seed), other]
            })
        });
        matrix.runs = runs.collect();
        section(&matrix)
    }

    #[test]
    fn shares_are_judged_by_what_a_weight_is_to_get() {
        let text = judged([4.0, 8.0, 24.9, 40.0]);
        assert!(
            line(&text, "| no larger").ends_with("| 1 of 1 | holds |"),
            "{text}"
        );
        let meant = line(&text, "| 100 ms: from w = 0.25");
        assert!(
            meant.ends_with("| w 0.25 24.5; w 1 -20.0 | holds |"),
            "{meant}"
        );
        assert!(
            line(&text, "| w = 0.02").ends_with("| 100 ms 4.00 | holds |"),
            "{text}"
        );
        let text = judged([4.1, 4.0, 20.0, 37.0]);
        let falls = line(&text, "| no larger");
        let words = "| 100 ms **4.10 at 0.02, 4.00 at 0.1** | **does not hold** |";
        assert!(falls.ends_with(words), "{falls}");
        let meant = line(&text, "| 100 ms: from w = 0.25");
        let words = "| w 0.25 0.0; w 1 **-26.0** | **does not hold** |";
        assert!(meant.ends_with(words), "{meant}");
        let least = line(&text, "| w = 0.02");
        assert!(
            least.ends_with("| 100 ms **4.10** | **does not hold** |"),
            "{least}"
        );
    }
}
