//! CDG's share beside CUBIC by its back-off scale G and the round-trip time, a
//! table and a panel for each of the latter, with what its paper says (Tangenes
//! et al. 2017, Table I).

use std::path::Path;

use crate::report::senders::{ascending, by_rtt, curves};
use crate::requirement::{Part, Requirement};
use crate::results::{MatrixRecord, RunSummary};
use crate::verdict::Bound;
use lab_run::chart::{BLUE, ChartResult, Grid, Sheet};
use lab_run::scenario::Scenario;
use lab_run::statistics::Spread;
use lab_run::table::{Table, shown};

/// The paper's Table I: base RTT, ms, and the ends of the tuning range of the
/// share, %, at G = 0.1 and 120 ms; the former may be that of one flow.
const PAPER: [(u128, f64, f64); 7] = [
    (20, 10.3, 49.0),
    (50, 6.7, 49.0),
    (75, 4.05, 44.5),
    (100, 3.0, 37.3),
    (150, 2.0, 26.3),
    (200, 1.5, 19.6),
    (300, 1.0, 12.3),
];

/// The scale at which CDG's paper has its upper ends, ms.
const UPPER_G_MS: f64 = 120.0;

/// Points of the share that may be between that and ours.
const MAX_POINTS: f64 = 5.0;

const GRID: Grid = Grid {
    columns: 4,
    panel: (220, 170),
    pitch: (285, 270),
    first: (60, 130),
};

/// What goes below the head of the page.
pub(crate) fn section(matrix: &MatrixRecord) -> String {
    let table = Table::over(by_rtt(matrix))
        .column("base RTT, ms", |(rtt, _)| rtt.to_string())
        .columns(
            scales(matrix),
            |g| format!("G {g} ms"),
            |(_, name), g| shown(Spread::of(&shares(matrix, name, *g)), 1),
        )
        .column("paper, lower\u{2013}upper", |(rtt, _)| {
            let ends = paper(*rtt).map(|(low, high)| format!("{low}\u{2013}{high}"));
            ends.unwrap_or_default()
        });
    format!(
        include_str!("../../text/senders-cdg.md"),
        window = window(matrix),
        name = matrix.name,
        table = table
    )
}

/// From when the shares are.
fn window(matrix: &MatrixRecord) -> String {
    let scenario = matrix.scenarios.values().next();
    let words = scenario.map(|scenario| {
        let (length, measured) = (scenario.duration_s, scenario.measured());
        let window = measured.end - measured.start;
        format!(
            "Shares are of the last {window:.0} s of {length:.0}; in the paper, of the last 150 s of 300."
        )
    });
    words.unwrap_or_default()
}

/// All scales, ascending, ms.
fn scales(matrix: &MatrixRecord) -> Vec<f64> {
    ascending(matrix, |run| run.g_ms)
}

fn paper(rtt: u128) -> Option<(f64, f64)> {
    let found = PAPER.iter().find(|(at, ..)| *at == rtt);
    found.map(|&(_, low, high)| (low, high))
}

/// What CDG's flows get with each seed, %.
fn shares(matrix: &MatrixRecord, scenario: &str, g_ms: f64) -> Vec<f64> {
    let Some(setup) = matrix.scenarios.get(scenario) else {
        return Vec::new();
    };
    let runs = matrix
        .runs
        .iter()
        .filter(|run| run.scenario == scenario && run.g_ms == Some(g_ms) && run.failure.is_none());
    runs.filter_map(|run| share(setup, run)).collect()
}

fn share(setup: &Scenario, run: &RunSummary) -> Option<f64> {
    let flows = run.summary.forward(setup);
    let greedy = flows.filter(|(flow, _)| flow.is_greedy());
    let theirs: f64 = greedy.map(|(_, rate)| rate).sum();
    let ours = run.summary.goodput_mbit();
    let all = ours + theirs;
    (all > 0.0).then(|| 100.0 * ours / all)
}

pub(crate) fn requirements(matrix: &MatrixRecord) -> Vec<Requirement> {
    let ends = by_rtt(matrix).into_iter().filter_map(|(rtt, name)| {
        let (_, high) = paper(rtt)?;
        let shares = shares(matrix, name, UPPER_G_MS).into_iter();
        let above: Vec<_> = shares.map(|share| share - high).collect();
        let bound = Bound::Within(-MAX_POINTS, MAX_POINTS);
        Some(Part::over(format!("{rtt} ms"), &above, bound))
    });
    let ends: Vec<_> = ends.collect();
    let curves = curves(matrix, &scales(matrix), |name, g| shares(matrix, name, g));
    let upper = format!(
        "CDG as published: the share at G = {UPPER_G_MS} ms within {MAX_POINTS} points of the paper's \
         upper end; by how much it is above, points"
    );
    let order = "CDG as published: no larger G with a lesser share, at any round-trip time";
    vec![
        Requirement::of_parts(upper, 1, &ends),
        Requirement::rising(order, &curves),
    ]
}

/// Draws it into an SVG file.
///
/// # Errors
/// What plotters says.
pub(crate) fn draw(matrix: &MatrixRecord, path: &Path) -> ChartResult<()> {
    let scenarios = by_rtt(matrix);
    let title = "cdg: the share of two flows that follow CDG beside two of CUBIC, %, by G";
    let line = "Median over the seeds; thin lines from least to most. Dashed: the upper end of \
                the tuning range in the paper's Table I; dotted: its lower end, which may be one \
                flow's.";
    let sheet = Sheet::headed(path, GRID.size(scenarios.len()), title, &[line])?;
    let scales = scales(matrix);
    let count = scales.len().max(1) as f64;
    for (index, (rtt, name)) in scenarios.into_iter().enumerate() {
        let mut plot = sheet.plot(GRID.frame(index), 0.0..count, 0.0..60.0, (0, 6))?;
        plot.above(&format!("base RTT {rtt} ms"), 16)?;
        let (low, high) = paper(rtt).unwrap_or_default();
        // The lower end is not so certain.
        plot.across(low, 1)?;
        plot.across(high, 4)?;
        let mut medians = Vec::new();
        for (number, g) in scales.iter().enumerate() {
            let x = number as f64 + 0.5;
            plot.mark(x, &g.to_string())?;
            if let Some(spread) = Spread::of(&shares(matrix, name, *g)) {
                medians.push((x, spread.median));
                plot.spread(x, spread, BLUE, false)?;
            }
        }
        plot.line(&medians, BLUE, 2)?;
        plot.axis("G, ms", 34)?;
    }
    sheet.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::senders::{page, required};
    use crate::report::tests::synthetic::{line, matrix, run};

    fn scaled(g_ms: f64, seed: u64, background: f64, greedy: f64) -> RunSummary {
        let mut run = run("greedy", "sender-cdg-paper", seed, &[greedy]);
        (run.g_ms, run.variant) = (Some(g_ms), Some(format!("G {g_ms}")));
        run.summary.background_mbit = background;
        run
    }

    fn example() -> MatrixRecord {
        let mut matrix = matrix();
        matrix.name = "cdg".to_owned();
        matrix.scenarios.retain(|name, _| name == "greedy");
        matrix.runs = vec![
            scaled(20.0, 1, 4.0, 4.0),
            scaled(0.1, 1, 0.5, 9.5),
            scaled(0.1, 2, 1.0, 9.0),
        ];
        matrix
    }

    #[test]
    fn shares_stand_beside_the_papers() {
        let matrix = example();
        let (page, _) = page(&matrix, |_| Vec::new()).unwrap();
        let lines: Vec<_> = page.lines().filter(|line| line.starts_with('|')).collect();
        assert_eq!(
            lines[..3],
            [
                "| base RTT, ms | G 0.1 ms | G 20 ms | paper, lower\u{2013}upper |",
                "|---|---|---|---|",
                "| 100 | 7.5 (5.0\u{2013}10.0) | 50.0 | 3\u{2013}37.3 |",
            ]
        );
    }

    #[test]
    fn every_scale_is_a_dot() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cdg.svg");
        draw(&example(), &path).unwrap();
        let svg = std::fs::read_to_string(&path).unwrap();
        assert_eq!(svg.matches("<circle").count(), 2);
        assert!(svg.contains("base RTT 100 ms") && !svg.contains("NaN"));
    }

    fn shared(g_ms: f64, share: f64, seed: u64) -> RunSummary {
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
            .flat_map(|(g, share)| (1..=3).map(move |seed| shared(g, share, seed)))
            .collect();
        required(&matrix)
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
