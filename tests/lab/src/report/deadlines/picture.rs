//! When each transfer was there, and what the foreground kept meanwhile: a dot
//! for each run, a panel for each scenario. The upper half to the left of the
//! deadline is good.

use std::path::Path;

use fairbat_tests::chart::{
    AROUND, Canvas, ChartResult, FROM, Frame, GREY, INK, LABEL, MARK, Panel, TITLE, bold, panel,
    text,
};
use plotters::prelude::*;

use crate::report::chart::{Grid, color, colors};
use crate::report::select::{Row, greedy, rows};
use crate::report::words::title;
use crate::report::{ALONE, MatrixRecord, RunSummary};
use crate::scenario::{Foreground, Scenario, Traffic};

/// Where the panels are: the sizes of one foreground beside each other.
const GRID: Grid = Grid {
    columns: 3,
    panel: (270, 200),
    pitch: (345, 310),
    first: (60, 160),
};
/// Mean width of a letter, px.
const LETTER: f64 = 7.0;
/// Radius of a dot, px.
const DOT: i32 = 4;
/// The congestion control whose dots are filled; those of others are hollow.
const FILLED: &str = "cubic";

/// Whether there is anything to be seen: somebody, and nobody to compare with.
pub(crate) fn has_picture(matrix: &MatrixRecord) -> bool {
    matrix.has_alone() && matrix.has_contenders()
}

/// Draws the matrix into an SVG file.
///
/// # Errors
/// What plotters says.
pub(crate) fn draw(matrix: &MatrixRecord, path: &Path) -> ChartResult<()> {
    let all: Vec<_> = matrix
        .scenarios
        .iter()
        .map(|(name, scenario)| (name, scenario, rows(matrix, name)))
        .filter(|(_, _, rows)| !rows.is_empty())
        .collect();
    let canvas = SVGBackend::new(path, GRID.size(all.len())).into_drawing_area();
    canvas.fill(&WHITE)?;
    let colors = colors(matrix);
    head(&canvas, &matrix.name, &colors)?;
    for (index, (name, scenario, rows)) in all.iter().enumerate() {
        let frame = GRID.frame(index);
        one(&canvas, frame, (name, scenario), rows, &colors)?;
    }
    canvas.present()?;
    Ok(())
}

/// What all panels have in common.
fn head(canvas: &Canvas<'_>, name: &str, colors: &[(&str, RGBColor)]) -> ChartResult<()> {
    let words = format!("{name}: when each transfer was there, and what the foreground kept");
    canvas.draw_text(&words, &bold(TITLE, INK, FROM), (20, 24))?;
    let lines = [
        "Left of the upright line: in time. Up: less harm. A dot for each run; filled: the server \
         sends with CUBIC, hollow: with another. At the right edge: not there when the run ended.",
        "Dashed: no harm; dotted, beside greedy flows: what the bytes of the transfer must take.",
    ];
    for (line, y) in lines.into_iter().zip([46, 64]) {
        canvas.draw_text(line, &text(LABEL, GREY, FROM), (20, y))?;
    }
    let mut x = 26;
    for (contender, color) in colors {
        canvas.draw(&Circle::new((x, 88), DOT, color.filled()))?;
        let words = title(contender);
        canvas.draw_text(words, &text(LABEL, *color, FROM), (x + 10, 88))?;
        x += 40 + (words.chars().count() as f64 * LETTER) as i32;
    }
    Ok(())
}

fn one(
    canvas: &Canvas<'_>,
    frame: Frame,
    (name, scenario): (&str, &Scenario),
    rows: &[Row<'_>],
    colors: &[(&str, RGBColor)],
) -> ChartResult<()> {
    let measure = Measure::of(scenario);
    let window = scenario
        .background
        .window_s()
        .unwrap_or(scenario.duration_s);
    let end = 100.0 * (scenario.duration_s - scenario.background.start_s) / window;
    // Room for the dots at the edge, and for what is better than alone.
    let most = (end.max(100.0) * 1.03, 115.0);
    let mut panel = panel(canvas, frame, 0.0..most.0, 0.0..most.1, (7, 6))?;
    let style = bold(LABEL, INK, FROM);
    canvas.draw_text(name, &style, (frame.left, frame.top - 36))?;
    let style = text(LABEL, INK, FROM);
    canvas.draw_text(measure.words(), &style, (frame.left, frame.top - 16))?;
    let below = ((frame.left + frame.right) / 2, frame.bottom + 36);
    let axis = "there after, % of the time there was";
    canvas.draw_text(axis, &text(LABEL, INK, AROUND), below)?;
    dashed(&mut panel, [(100.0, 0.0), (100.0, most.1)], 100)?;
    dashed(&mut panel, [(0.0, 100.0), (most.0, 100.0)], 4)?;
    if let Some(share) = needed(scenario, rows).filter(|_| measure == Measure::Greedy) {
        let left = 100.0 * (1.0 - share).max(0.0);
        dashed(&mut panel, [(0.0, left), (most.0, left)], 1)?;
    }
    for row in rows.iter().filter(|row| row.contender != ALONE) {
        let color = color(colors, row.contender);
        let style = if row.congestion_control == Some(FILLED) {
            color.filled()
        } else {
            color.stroke_width(1)
        };
        let dots = row.succeeded().filter_map(|run| {
            let figures = run.summary.deadline.as_ref()?;
            let kept = measure.kept(scenario, run, row.alone_with(run)?)?;
            Some((
                100.0 * figures.finish_s / window,
                (100.0 * kept).min(most.1),
            ))
        });
        panel.draw_series(dots.map(|dot| Circle::new(dot, DOT, style)))?;
    }
    Ok(())
}

/// A line of dashes of this length, px.
fn dashed(panel: &mut Panel<'_>, ends: [(f64, f64); 2], length: i32) -> ChartResult<()> {
    let gap = if length > 10 { 0 } else { 4 };
    let line = DashedLineSeries::new(ends, length, gap, MARK.into());
    panel.draw_series(line)?;
    Ok(())
}

/// What there is to move in parts of what greedy flows had alone meanwhile; by
/// the first run alone.
fn needed(scenario: &Scenario, rows: &[Row<'_>]) -> Option<f64> {
    let alone = rows.iter().find(|row| row.contender == ALONE)?;
    let had = alone.values(|it| greedy(scenario, it)).first().copied()?;
    let window = scenario.background.window_s()?;
    let sizes = scenario.background.due().into_iter();
    let mbit: f64 = sizes.map(|transfer| transfer.size_mb * 8.0).sum();
    (had > 0.0).then(|| mbit / window / had)
}

/// What is better the higher it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Measure {
    /// Goodput of greedy flows.
    Greedy,
    /// How fast web fetches are.
    Web,
}

impl Measure {
    fn of(scenario: &Scenario) -> Self {
        let greedy = |it: &Foreground| matches!(it.traffic, Traffic::Greedy { .. });
        let mut forward = scenario.foreground.iter().filter(|it| !it.backward);
        if forward.any(greedy) {
            Self::Greedy
        } else {
            Self::Web
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Greedy => "goodput of greedy flows, % of alone",
            Self::Web => "speed of web fetches, % of alone",
        }
    }

    fn kept(self, scenario: &Scenario, own: &RunSummary, alone: &RunSummary) -> Option<f64> {
        let (own, alone) = (&own.summary, &alone.summary);
        let kept = match self {
            Self::Greedy => greedy(scenario, own)? / greedy(scenario, alone)?,
            Self::Web => alone.fetch_mean_s? / own.fetch_mean_s?,
        };
        kept.is_finite().then_some(kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::deadlines::deadlines;

    #[test]
    fn every_run_is_a_dot() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("deadlines.svg");
        draw(&deadlines(), &path).unwrap();
        let svg = std::fs::read_to_string(&path).unwrap();
        assert!(svg.len() < 200_000, "{} bytes", svg.len());
        // Three contenders, two servers, five seeds, two scenarios; and those
        // that say what a colour means.
        assert_eq!(svg.matches("<circle").count(), 3 * 2 * 5 * 2 + 3);
        assert!(svg.contains("fairbat get, no deadline"));
        assert!(!svg.contains("NaN"));
    }
}
