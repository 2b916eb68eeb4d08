//! How the limit m settles, as a picture: a panel for each law and load.

use std::path::Path;

use lab_run::chart::{BLUE, ChartResult, Color, FAINT, Frame, GREEN, INK, MARK, Sheet};

/// Width of the picture, px.
const WIDTH: u32 = 980;
/// Left and right edge of the panels, px; labels stand to the right of them.
const SIDES: (i32, i32) = (56, 820);
/// Height of a panel, and room for its title and its numbers, px.
const HEIGHT: (i32, i32) = (150, 58);
/// Room for the head, and for the time axis at the bottom, px.
const ENDS: (i32, i32) = (40, 34);

/// One law and one load.
pub(crate) struct Panel {
    pub(crate) title: String,
    /// Mean over seeds of m, per chunk time.
    pub(crate) mean: Vec<f64>,
    /// m of one of them.
    pub(crate) one: Vec<f64>,
    /// The limit.
    pub(crate) limit: f64,
    /// How far from it is near, as a share of it.
    pub(crate) band: f64,
}

/// Draws the panels below each other into an SVG file.
pub(crate) fn draw_panels(title: &str, panels: &[Panel], path: &Path) -> ChartResult<()> {
    let each = HEIGHT.0 + HEIGHT.1;
    let height = ENDS.0 + each * panels.len() as i32 + ENDS.1;
    let sheet = Sheet::new(path, (WIDTH, height as u32))?;
    sheet.title(title, INK, (SIDES.0, ENDS.0 / 2))?;
    for (index, panel) in panels.iter().enumerate() {
        let top = ENDS.0 + each * index as i32;
        sheet.write(&panel.title, INK, (SIDES.0, top + 16))?;
        let frame = Frame {
            left: SIDES.0,
            right: SIDES.1,
            top: top + 30,
            bottom: top + 30 + HEIGHT.0,
        };
        draw_course(&sheet, frame, panel)?;
    }
    let below = ((SIDES.0 + SIDES.1) / 2, height - 14);
    sheet.write_around("mean chunk times", INK, below)?;
    sheet.finish()
}

fn draw_course(sheet: &Sheet<'_>, frame: Frame, panel: &Panel) -> ChartResult<()> {
    let end = panel.mean.len() as f64;
    let top = panel.mean.iter().chain(&panel.one).copied();
    let top = 1.1 * top.fold(panel.limit, f64::max);
    let mut plot = sheet.plot(frame, 0.0..end, 0.0..top, (10, 5))?;
    let band = [1.0 - panel.band, 1.0 + panel.band].map(|share| share * panel.limit);
    plot.boxes([[(0.0, band[0]), (end, band[1])]], FAINT.filled())?;
    plot.dashed([(0.0, panel.limit), (end, panel.limit)], 4, GREEN)?;
    // A bin is drawn in its middle.
    let points = |values: &[f64]| -> Vec<(f64, f64)> {
        let bins = values.iter().enumerate();
        bins.map(|(bin, &m)| (bin as f64 + 0.5, m)).collect()
    };
    plot.line(&points(&panel.one), MARK, 1)?;
    plot.line(&points(&panel.mean), BLUE, 2)?;
    let last = |values: &[f64]| values.last().copied().unwrap_or(0.0);
    plot.label(["mean of the runs".to_owned()], BLUE, last(&panel.mean));
    plot.label(["one run".to_owned()], MARK, last(&panel.one));
    plot.label(["limit, \u{b1}20 %".to_owned()], GREEN, panel.limit);
    plot.finish((0, 0))
}

#[cfg(test)]
mod tests {
    use std::fs;

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
        draw_panels("a head", &[panel(), panel()], &path).unwrap();
        let svg = fs::read_to_string(&path).unwrap();
        assert!(!svg.contains("NaN") && !svg.contains("inf "));
        assert_eq!(svg.matches("a title").count(), 2);
        assert_eq!(svg.matches("mean of the runs").count(), 2);
    }
}
