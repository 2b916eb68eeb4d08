//! CDG's share beside CUBIC by its back-off scale G and the round-trip time, a
//! table and a panel for each of the latter, with what its paper says (Tangenes
//! et al. 2017, Table I).

use std::fmt::Write;
use std::path::Path;

use fairbat_tests::chart::{
    AROUND, BLUE, Canvas, ChartResult, FROM, GREY, INK, LABEL, MARK, TITLE, bold, panel, text,
};
use plotters::prelude::*;

use super::super::grid::Grid;
use super::super::words::shown;
use super::super::{MatrixRecord, RunSummary};
use crate::scenario::{Scenario, Traffic};
use crate::statistics::Spread;

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

/// Where the panels are.
const GRID: Grid = Grid {
    columns: 4,
    panel: (220, 170),
    pitch: (285, 270),
    first: (60, 130),
};

/// Radius of a dot, px.
const DOT: i32 = 4;

/// What goes below the head of the page.
pub(super) fn section(matrix: &MatrixRecord) -> String {
    let mut text = format!(
        "The share is what both flows that follow CDG get of the payload of all four, %, without \
         the datagrams. The paper's ends are those of its Table I. Its upper end, at G = 120 ms, \
         is read as that of the same share. Its lower end, at G = 0.1 ms, is ambiguous: it \
         \u{201c}assumes only one CDG flow\u{201d} of its fig. 3, which shows the share of two, \
         and the text speaks of shares per flow; here it is taken as it is printed, for what both \
         get, and nothing is judged by it. {}\n\n\
         ![The share by G, a panel for each round-trip time]({}.svg)\n\n",
        window(matrix),
        matrix.name
    );
    let scales = scales(matrix);
    let names: Vec<_> = scales.iter().map(|g| format!("G {g} ms")).collect();
    let dashes = "---|".repeat(scales.len() + 2);
    let _ = writeln!(
        text,
        "| base RTT, ms | {} | paper, lower\u{2013}upper |\n|{dashes}",
        names.join(" | ")
    );
    for (rtt, name) in scenarios(matrix) {
        let cells = scales.iter().map(|g| shown(share(matrix, name, *g), 1));
        let cells: Vec<_> = cells.collect();
        let ends = paper(rtt).map_or(String::new(), |(low, high)| format!("{low}\u{2013}{high}"));
        let _ = writeln!(text, "| {rtt} | {} | {ends} |", cells.join(" | "));
    }
    text
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

/// By round-trip time, ms.
pub(super) fn scenarios(matrix: &MatrixRecord) -> Vec<(u128, &str)> {
    let all = matrix.scenarios.iter();
    let mut found: Vec<_> = all
        .map(|(name, scenario)| (scenario.base_rtt().as_millis(), name.as_str()))
        .collect();
    found.sort_unstable();
    found
}

/// All scales, ascending, ms.
pub(super) fn scales(matrix: &MatrixRecord) -> Vec<f64> {
    let mut scales: Vec<_> = matrix.runs.iter().filter_map(|run| run.g_ms).collect();
    scales.sort_by(f64::total_cmp);
    scales.dedup();
    scales
}

pub(super) fn paper(rtt: u128) -> Option<(f64, f64)> {
    let found = PAPER.iter().find(|(at, ..)| *at == rtt);
    found.map(|&(_, low, high)| (low, high))
}

/// Over the seeds, %.
fn share(matrix: &MatrixRecord, scenario: &str, g_ms: f64) -> Option<Spread> {
    Spread::of(&shares(matrix, scenario, g_ms))
}

/// With each seed, %.
pub(super) fn shares(matrix: &MatrixRecord, scenario: &str, g_ms: f64) -> Vec<f64> {
    let Some(setup) = matrix.scenarios.get(scenario) else {
        return Vec::new();
    };
    let runs = matrix
        .runs
        .iter()
        .filter(|run| run.scenario == scenario && run.g_ms == Some(g_ms) && run.failure.is_none());
    runs.filter_map(|run| of_run(setup, run)).collect()
}

fn of_run(setup: &Scenario, run: &RunSummary) -> Option<f64> {
    let flows = setup.flows().filter(|flow| !flow.backward);
    let greedy = flows.zip(&run.summary.foreground_mbit);
    let greedy = greedy.filter(|(flow, _)| matches!(flow.traffic, Traffic::Greedy { .. }));
    let theirs: f64 = greedy.map(|(_, rate)| rate).sum();
    let ours = run.summary.goodput_mbit();
    let all = ours + theirs;
    (all > 0.0).then(|| 100.0 * ours / all)
}

/// Draws it into an SVG file.
///
/// # Errors
/// What plotters says.
pub(super) fn draw(matrix: &MatrixRecord, path: &Path) -> ChartResult<()> {
    let scenarios = scenarios(matrix);
    let canvas = SVGBackend::new(path, GRID.size(scenarios.len())).into_drawing_area();
    canvas.fill(&WHITE)?;
    let words = "cdg: the share of two flows that follow CDG beside two of CUBIC, %, by G";
    canvas.draw_text(words, &bold(TITLE, INK, FROM), (20, 24))?;
    let words = "Median over the seeds; thin lines from least to most. Dashed: the upper end of \
                 the tuning range in the paper's Table I; dotted: its lower end, which may be one \
                 flow's.";
    canvas.draw_text(words, &text(LABEL, GREY, FROM), (20, 46))?;
    for (index, (rtt, name)) in scenarios.into_iter().enumerate() {
        one(&canvas, index, matrix, rtt, name)?;
    }
    canvas.present()?;
    Ok(())
}

fn one(
    canvas: &Canvas<'_>,
    index: usize,
    matrix: &MatrixRecord,
    rtt: u128,
    scenario: &str,
) -> ChartResult<()> {
    let frame = GRID.frame(index);
    let scales = scales(matrix);
    let count = scales.len().max(1) as f64;
    let mut panel = panel(canvas, frame, 0.0..count, 0.0..60.0, (0, 6))?;
    let style = text(LABEL, INK, FROM);
    let words = format!("base RTT {rtt} ms");
    canvas.draw_text(&words, &style, (frame.left, frame.top - 16))?;
    let (low, high) = paper(rtt).unwrap_or_default();
    // The lower end is not so certain.
    for (value, dash) in [(low, 1), (high, 4)] {
        let ends = [(0.0, value), (count, value)];
        panel.draw_series(DashedLineSeries::new(ends, dash, 4, MARK.into()))?;
    }
    let style = text(LABEL, INK, AROUND);
    let mut line = Vec::new();
    for (number, g) in scales.iter().enumerate() {
        let x = number as f64 + 0.5;
        let below = (panel.backend_coord(&(x, 0.0)).0, frame.bottom + 14);
        canvas.draw_text(&g.to_string(), &style, below)?;
        let Some(spread) = share(matrix, scenario, *g) else {
            continue;
        };
        line.push((x, spread.median));
        let range = [(x, spread.least), (x, spread.most)];
        panel.draw_series(LineSeries::new(range, BLUE.stroke_width(1)))?;
        panel.draw_series([Circle::new((x, spread.median), DOT, BLUE.filled())])?;
    }
    panel.draw_series(LineSeries::new(line, BLUE.stroke_width(2)))?;
    let below = ((frame.left + frame.right) / 2, frame.bottom + 34);
    canvas.draw_text("G, ms", &style, below)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::super::synthetic::{matrix, run};
    use super::super::{Kind, page};
    use super::*;

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
        assert_eq!(Kind::of(&matrix), Some(Kind::Scales));
        let page = page(Kind::Scales, &matrix, &[]);
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
}
