//! When transfers were there beside web fetches of several loads: a table, and
//! boxes as in DA-LBE's fig. 10 (Hayes et al. 2017, NEAT D3.2 Appendix B).

use std::fmt::Write;
use std::path::Path;

use fairbat_tests::chart::{
    Canvas, ChartResult, FROM, Frame, GREY, INK, LABEL, MARK, TITLE, bold, panel, text,
};
use plotters::prelude::*;

use super::super::MatrixRecord;
use super::super::colors::{color, colors};
use super::super::grid::Grid;
use super::super::words::{cell, title};
use super::cells::{Place, contenders, places, runs};
use crate::statistics::percentile;

/// Where the panels are.
const GRID: Grid = Grid {
    columns: 4,
    panel: (200, 240),
    pitch: (265, 330),
    first: (60, 130),
};

/// Half of the width of a box in parts of the room for it.
const HALF: f64 = 0.28;

/// Whiskers reach so many times the box beyond it, at most.
const WHISKER: f64 = 1.5;

/// Mean width of a letter, px.
const LETTER: f64 = 7.0;

/// Transfers of one contender beside one load.
struct Times {
    /// Seconds that each took that was there before the run was over, ascending.
    took: Vec<f64>,
    /// How many there were altogether.
    count: usize,
    /// How many were there in time.
    met: usize,
}

impl Times {
    fn of(matrix: &MatrixRecord, place: Place<'_>, contender: &str) -> Self {
        let runs = runs(matrix, place, contender).into_iter();
        let figures = runs.filter_map(|run| run.summary.deadline.as_ref());
        let all: Vec<_> = figures.flat_map(|one| &one.transfers).collect();
        let mut took: Vec<f64> = all.iter().filter_map(|one| one.took_s).collect();
        took.sort_by(f64::total_cmp);
        Self {
            count: all.len(),
            met: all.iter().filter(|one| one.met == Some(true)).count(),
            took,
        }
    }

    /// Lower quartile, median and upper quartile.
    fn quartiles(&self) -> Option<[f64; 3]> {
        let at = |share| percentile(&self.took, share);
        Some([at(0.25)?, at(0.5)?, at(0.75)?])
    }

    /// The outermost values that are not too far from the box.
    fn whiskers(&self) -> Option<(f64, f64)> {
        let [lower, _, upper] = self.quartiles()?;
        let reach = WHISKER * (upper - lower);
        let mut near = self.took.iter().copied();
        let first = near.find(|value| *value >= lower - reach)?;
        let last = self.took.iter().rev().copied();
        let last = last.into_iter().find(|value| *value <= upper + reach)?;
        Some((first, last))
    }
}

/// Seconds that the transfers of a place have.
fn window(matrix: &MatrixRecord, place: Place<'_>) -> Option<f64> {
    matrix.scenarios.get(place.scenario)?.background.window_s()
}

/// What goes below the head of the page.
pub(super) fn section(matrix: &MatrixRecord) -> String {
    let mut text = format!(
        "Each transfer counts for itself. Times are from its start until everything was there, \
         and are of those that were there before the run was over.\n\n\
         ![Times of completion as boxes]({}.svg)\n\n\
         | | | transfers | there in time, % | lower quartile, s | median, s | upper quartile, s | \
         last, s |\n|---|---|---|---|---|---|---|---|\n",
        matrix.name
    );
    for place in places(matrix) {
        for contender in contenders(matrix) {
            let times = Times::of(matrix, place, contender);
            let Some([lower, median, upper]) = times.quartiles() else {
                continue;
            };
            let last = times.took.last().copied().unwrap_or_default();
            let _ = writeln!(
                text,
                "| {} | {} | {} | {:.0} | {lower:.1} | {median:.1} | {upper:.1} | {last:.1}{} |",
                place.scenario,
                cell(title(contender)),
                times.count,
                100.0 * times.met as f64 / times.count as f64,
                match times.count - times.took.len() {
                    0 => String::new(),
                    missing => format!(", {missing} not there"),
                }
            );
        }
    }
    text
}

/// Draws it into an SVG file.
///
/// # Errors
/// What plotters says.
pub(super) fn draw(matrix: &MatrixRecord, path: &Path) -> ChartResult<()> {
    let places = places(matrix);
    let canvas = SVGBackend::new(path, GRID.size(places.len())).into_drawing_area();
    canvas.fill(&WHITE)?;
    let words = format!("{}: seconds until transfers were there", matrix.name);
    canvas.draw_text(&words, &bold(TITLE, INK, FROM), (20, 24))?;
    let words = "Boxes: the middle half, with the median; whiskers: the rest within 1.5 times the \
                 box; dots: what is beyond. Dashed: the deadline.";
    canvas.draw_text(words, &text(LABEL, GREY, FROM), (20, 46))?;
    let colors = colors(matrix);
    let mut x = 26;
    for (contender, color) in &colors {
        let words = title(contender);
        canvas.draw_text(words, &text(LABEL, *color, FROM), (x, 70))?;
        x += 30 + (words.chars().count() as f64 * LETTER) as i32;
    }
    for (index, place) in places.into_iter().enumerate() {
        one(&canvas, GRID.frame(index), matrix, place, &colors)?;
    }
    canvas.present()?;
    Ok(())
}

fn one(
    canvas: &Canvas<'_>,
    frame: Frame,
    matrix: &MatrixRecord,
    place: Place<'_>,
    colors: &[(&str, RGBColor)],
) -> ChartResult<()> {
    let contenders = contenders(matrix);
    let due = window(matrix, place).unwrap_or_default();
    let times: Vec<_> = contenders
        .iter()
        .map(|contender| Times::of(matrix, place, contender))
        .collect();
    let last = times.iter().filter_map(|one| one.took.last());
    let most = last.copied().fold(due, f64::max) * 1.1;
    let count = contenders.len().max(1) as f64;
    let mut panel = panel(canvas, frame, 0.0..count, 0.0..most, (0, 6))?;
    let style = text(LABEL, INK, FROM);
    canvas.draw_text(place.scenario, &style, (frame.left, frame.top - 16))?;
    let ends = [(0.0, due), (count, due)];
    panel.draw_series(DashedLineSeries::new(ends, 4, 4, MARK.into()))?;
    for (number, (contender, times)) in contenders.iter().zip(&times).enumerate() {
        let color = color(colors, contender);
        let middle = number as f64 + 0.5;
        let (Some([lower, median, upper]), Some((first, last))) =
            (times.quartiles(), times.whiskers())
        else {
            continue;
        };
        let (left, right) = (middle - HALF, middle + HALF);
        let area = Rectangle::new([(left, lower), (right, upper)], color.mix(0.25).filled());
        panel.draw_series([area])?;
        let lines = [
            [(left, median), (right, median)],
            [(middle, first), (middle, lower)],
            [(middle, upper), (middle, last)],
        ];
        for line in lines {
            panel.draw_series(LineSeries::new(line, color.stroke_width(2)))?;
        }
        let beyond = times
            .took
            .iter()
            .filter(|one| **one < first || **one > last);
        let dots = beyond.map(|one| Circle::new((middle, *one), 3, color.stroke_width(1)));
        panel.draw_series(dots)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::super::synthetic::{matrix, run};
    use super::super::{Kind, page};
    use super::*;
    use crate::deadline::DeadlineFigures;
    use crate::record::TransferRecord;
    use crate::report::RunSummary;

    fn timed(seed: u64, took: &[f64]) -> RunSummary {
        let mut run = run("web", "sender-vegas", seed, &[3.0]);
        let transfer = |took: &f64| TransferRecord {
            took_s: (*took < 70.0).then_some(*took),
            met: Some(*took <= 60.0),
            ..TransferRecord::default()
        };
        run.summary.deadline = Some(DeadlineFigures {
            transfers: took.iter().map(transfer).collect(),
            ..DeadlineFigures::default()
        });
        run
    }

    fn example() -> MatrixRecord {
        let mut matrix = matrix();
        matrix.name = "dalbe-load".to_owned();
        matrix.runs = vec![timed(1, &[40.0, 50.0, 52.0]), timed(2, &[54.0, 66.0, 99.0])];
        matrix
    }

    #[test]
    fn every_transfer_of_every_seed_counts() {
        let page = page(Kind::Load, &example());
        let line = page.lines().find(|line| line.starts_with("| web |"));
        let expected = format!(
            "| web | {} | 6 | 67 | 50.0 | 52.0 | 54.0 | 66.0, 1 not there |",
            title("sender-vegas")
        );
        assert_eq!(line, Some(expected.as_str()));
    }

    #[test]
    fn what_is_far_from_the_box_is_a_dot() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("load.svg");
        draw(&example(), &path).unwrap();
        let svg = std::fs::read_to_string(&path).unwrap();
        // 40 and 66 s are more than 1.5 times 4 s from the quartiles.
        assert_eq!(svg.matches("<circle").count(), 2);
        assert!(!svg.contains("NaN"));
    }
}
