//! How m settles, as a picture: the mean over seeds, one run, and the band
//! around the limit. Knows series of m, and nothing of what makes them.

use std::path::Path;

use fairbat_tests::chart::{
    self, AROUND, BLUE, ChartResult, FAINT, FROM, Frame, GREEN, INK, LABEL, Label, MARK, TITLE,
    bold, text, write_labels,
};
use plotters::prelude::*;

/// Width of the picture, px.
const WIDTH: u32 = 980;
/// Left and right edge of the panels, px; labels stand to the right of them.
const SIDES: (i32, i32) = (56, 820);
/// Height of a panel, and room for its title and its numbers, px.
const HEIGHT: (i32, i32) = (150, 58);
/// Room for the head, and for the time axis at the bottom, px.
const ENDS: (i32, i32) = (40, 34);

/// One law and one load.
pub(super) struct Panel {
    pub(super) title: String,
    /// Mean over seeds of m, per chunk time.
    pub(super) mean: Vec<f64>,
    /// m of one of them.
    pub(super) one: Vec<f64>,
    /// The limit.
    pub(super) limit: f64,
    /// How far from it is near, as a share of it.
    pub(super) band: f64,
}

/// Draws the panels below each other into an SVG file.
pub(super) fn draw(title: &str, panels: &[Panel], path: &Path) -> ChartResult<()> {
    let each = HEIGHT.0 + HEIGHT.1;
    let height = ENDS.0 + each * panels.len() as i32 + ENDS.1;
    let canvas = SVGBackend::new(path, (WIDTH, height as u32)).into_drawing_area();
    canvas.fill(&WHITE)?;
    canvas.draw_text(title, &bold(TITLE, INK, FROM), (SIDES.0, ENDS.0 / 2))?;
    for (index, panel) in panels.iter().enumerate() {
        let top = ENDS.0 + each * index as i32;
        let style = text(LABEL, INK, FROM);
        canvas.draw_text(&panel.title, &style, (SIDES.0, top + 16))?;
        let frame = Frame {
            left: SIDES.0,
            right: SIDES.1,
            top: top + 30,
            bottom: top + 30 + HEIGHT.0,
        };
        course(&canvas, frame, panel)?;
    }
    let below = ((SIDES.0 + SIDES.1) / 2, height - 14);
    canvas.draw_text("mean chunk times", &text(LABEL, INK, AROUND), below)?;
    canvas.present()?;
    Ok(())
}

fn course(canvas: &chart::Canvas<'_>, frame: Frame, panel: &Panel) -> ChartResult<()> {
    let end = panel.mean.len() as f64;
    let top = panel.mean.iter().chain(&panel.one).copied();
    let top = 1.1 * top.fold(panel.limit, f64::max);
    let mut area = chart::panel(canvas, frame, 0.0..end, 0.0..top, (10, 5))?;
    let band = [1.0 - panel.band, 1.0 + panel.band].map(|share| share * panel.limit);
    let band = Rectangle::new([(0.0, band[0]), (end, band[1])], FAINT.filled());
    area.draw_series([band])?;
    let limit = [(0.0, panel.limit), (end, panel.limit)];
    area.draw_series(DashedLineSeries::new(limit, 4, 4, GREEN.into()))?;
    // A bin is drawn in its middle.
    let points = |values: &[f64]| -> Vec<(f64, f64)> {
        let bins = values.iter().enumerate();
        bins.map(|(bin, &m)| (bin as f64 + 0.5, m)).collect()
    };
    area.draw_series(LineSeries::new(points(&panel.one), MARK))?;
    area.draw_series(LineSeries::new(points(&panel.mean), BLUE.stroke_width(2)))?;
    let label = |words: &[&str], color, m: f64| Label {
        lines: words.iter().map(|&line| line.to_owned()).collect(),
        color,
        y: area.backend_coord(&(0.0, m)).1,
    };
    let last = |values: &[f64]| values.last().copied().unwrap_or(0.0);
    let labels = vec![
        label(&["mean of the runs"], BLUE, last(&panel.mean)),
        label(&["one run"], MARK, last(&panel.one)),
        label(&["limit, ±20 %"], GREEN, panel.limit),
    ];
    write_labels(canvas, frame.right + 14, frame.top..frame.bottom, labels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panels_are_drawn_whole() {
        let panel = || Panel {
            title: "a title".to_owned(),
            mean: vec![1.0, 2.0, 3.0],
            one: vec![1.0, 4.0, 2.0],
            limit: 3.0,
            band: 0.2,
        };
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tuning.svg");
        draw("a head", &[panel(), panel()], &path).unwrap();
        let svg = std::fs::read_to_string(&path).unwrap();
        assert!(!svg.contains("NaN") && !svg.contains("inf "));
        assert_eq!(svg.matches("a title").count(), 2);
        assert_eq!(svg.matches("mean of the runs").count(), 2);
    }
}
