//! Rates and weights over time, a panel for each run of the first seed.

use std::path::Path;

use fairbat_tests::chart::{
    BLUE, Canvas, ChartResult, FROM, Frame, GREEN, GREY, INK, LABEL, MARK, TITLE, bold, clipped,
    panel, text,
};
use plotters::prelude::*;

use super::super::grid::Grid;
use super::super::words::title;
use super::super::{MatrixRecord, RunSummary};
use crate::course::Course;
use crate::scenario::Scenario;

/// Where the panels are.
const GRID: Grid = Grid {
    columns: 4,
    panel: (250, 150),
    pitch: (320, 230),
    first: (60, 130),
};

/// Draws it into an SVG file.
///
/// # Errors
/// What plotters says.
pub(super) fn draw(matrix: &MatrixRecord, path: &Path) -> ChartResult<()> {
    let first = matrix.runs.iter().map(|run| run.seed).min();
    let runs = matrix.runs.iter().filter(|run| Some(run.seed) == first);
    let mut runs: Vec<_> = runs
        .filter_map(|run| Some((run, run.summary.course.as_ref()?)))
        .collect();
    // A row for each scenario and controller.
    runs.sort_by_key(|(run, _)| (run.scenario.clone(), run.variant.clone()));
    let canvas = SVGBackend::new(path, GRID.size(runs.len())).into_drawing_area();
    canvas.fill(&WHITE)?;
    let words = format!("{}: rates and weights over time", matrix.name);
    canvas.draw_text(&words, &bold(TITLE, INK, FROM), (20, 24))?;
    let lines = [
        ("grey: payload of all others, Mbit/s", GREY),
        ("blue: payload of the transfer, Mbit/s", BLUE),
        ("green: its weight, of the height of the panel", GREEN),
        ("dashed: its deadline", MARK),
    ];
    for ((words, color), x) in lines.into_iter().zip([20, 280, 540, 850]) {
        canvas.draw_text(words, &text(LABEL, color, FROM), (x, 50))?;
    }
    for (index, (run, course)) in runs.into_iter().enumerate() {
        if let Some(scenario) = matrix.scenarios.get(&run.scenario) {
            one(&canvas, GRID.frame(index), scenario, run, course)?;
        }
    }
    canvas.present()?;
    Ok(())
}

fn one(
    canvas: &Canvas<'_>,
    frame: Frame,
    scenario: &Scenario,
    run: &RunSummary,
    course: &Course,
) -> ChartResult<()> {
    let most = scenario.link.last().map_or(1.0, |link| link.rate_mbit);
    let time = scenario.duration_s;
    let mut panel = panel(canvas, frame, 0.0..time, 0.0..most, (5, 5))?;
    let variant = run.variant.as_deref().unwrap_or_default();
    let above = format!("{}, {variant}", run.scenario);
    let style = text(LABEL, INK, FROM);
    canvas.draw_text(&above, &style, (frame.left, frame.top - 32))?;
    let name = title(&run.contender);
    canvas.draw_text(name, &style, (frame.left, frame.top - 14))?;
    let background = &scenario.background;
    if let Some(window) = background.window_s() {
        let due = background.start_s + window;
        let ends = [(due, 0.0), (due, most)];
        panel.draw_series(DashedLineSeries::new(ends, 4, 4, MARK.into()))?;
    }
    let weights: Vec<f64> = course.w.iter().map(|w| w * most).collect();
    let lines = [
        (&course.foreground_mbit, MARK, 1),
        (&course.background_mbit, BLUE, 2),
        (&weights, GREEN, 1),
    ];
    for (values, color, width) in lines {
        let middles = (0..).map(|step| (f64::from(step) + 0.5) * course.every_s);
        let points: Vec<_> = middles.zip(values.iter().copied()).collect();
        for piece in clipped(&points, most) {
            panel.draw_series(LineSeries::new(piece, color.stroke_width(width)))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::table1::tests::example;
    use super::*;

    #[test]
    fn every_run_has_a_panel() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("dalbe.svg");
        draw(&example(), &path).unwrap();
        let svg = std::fs::read_to_string(&path).unwrap();
        assert_eq!(svg.matches(title("sender-cdg")).count(), 2);
        assert!(svg.contains("greedy, PID") && !svg.contains("NaN"));
    }
}
