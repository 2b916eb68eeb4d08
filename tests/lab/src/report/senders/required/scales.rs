//! CDG's tuning range: as wide as its paper says, and in order.

use super::super::super::MatrixRecord;
use super::super::super::bound::Bound;
use super::super::scales::{paper, scales, scenarios, shares};
use super::{Curve, Part, Requirement};

/// The scale at which CDG's paper has its upper ends, ms.
const MOST: f64 = 120.0;
/// Points of the share that may be between that and ours.
const POINTS: f64 = 5.0;

pub(super) fn all(matrix: &MatrixRecord) -> Vec<Requirement> {
    let ends = scenarios(matrix).into_iter().filter_map(|(rtt, name)| {
        let (_, high) = paper(rtt)?;
        let above = shares(matrix, name, MOST)
            .into_iter()
            .map(|share| share - high);
        let bound = Bound::Within(-POINTS, POINTS);
        Some(Part::over(
            format!("{rtt} ms"),
            &above.collect::<Vec<_>>(),
            bound,
        ))
    });
    let curves = scenarios(matrix).into_iter().map(|(rtt, name)| {
        let scales = scales(matrix).into_iter();
        let point = |g| (g, shares(matrix, name, g));
        Curve {
            place: format!("{rtt} ms"),
            points: scales.map(point).collect(),
        }
    });
    vec![
        Requirement::of(
            format!(
                "CDG as published: the share at G = {MOST} ms within {POINTS} points of the paper's upper end; \
                 by how much it is above, points"
            ),
            1,
            &ends.collect::<Vec<_>>(),
        ),
        Requirement::rising(
            "CDG as published: no larger G with a lesser share, at any round-trip time",
            &curves.collect::<Vec<_>>(),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::super::super::synthetic::{line, matrix, run};
    use super::super::section;
    use crate::report::RunSummary;

    fn scaled(g_ms: f64, share: f64, seed: u64) -> RunSummary {
        let mut run = run("greedy", "sender-cdg-paper", seed, &[100.0 - share]);
        run.g_ms = Some(g_ms);
        run.summary.background_mbit = share;
        run
    }

    /// At 100 ms, where the paper has 37.3 %.
    fn judged(shares: [f64; 3]) -> String {
        let mut matrix = matrix();
        matrix.name = "cdg".to_owned();
        matrix.scenarios.retain(|name, _| name == "greedy");
        let scales = [0.1, 2.0, 120.0].into_iter();
        matrix.runs = scales
            .zip(shares)
            .flat_map(|(g, share)| (1..=3).map(move |seed| scaled(g, share, seed)))
            .collect();
        section(&matrix)
    }

    #[test]
    fn the_upper_end_and_the_order_are_judged() {
        let text = judged([4.0, 9.0, 33.0]);
        let end = line(&text, "| CDG as published: the share");
        assert!(end.ends_with("| 100 ms -4.3 | holds |"), "{end}");
        let order = line(&text, "| CDG as published: no larger");
        assert!(order.ends_with("| 1 of 1 | holds |"), "{order}");
        let text = judged([4.0, 3.0, 43.0]);
        let end = line(&text, "| CDG as published: the share");
        assert!(
            end.ends_with("| 100 ms **5.7** | **does not hold** |"),
            "{end}"
        );
        let order = line(&text, "| CDG as published: no larger");
        assert!(
            order.ends_with("| 100 ms **4.00 at 0.1, 3.00 at 2** | **does not hold** |"),
            "{order}"
        );
    }
}
