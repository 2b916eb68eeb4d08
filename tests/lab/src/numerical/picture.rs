//! Experiments as pictures: the rates of all sources over time, as in the
//! paper's figures, and w below them. Knows traces, and nothing of what makes
//! them.

use std::path::Path;

use fairbat_tests::chart;
use fairbat_tests::chart::{
    AROUND, BLUE, Canvas, ChartResult, FROM, Frame, GREEN, GREY, INK, LABEL, Label, MARK, TITLE,
    VERMILION, bold, text, write_labels,
};
use plotters::prelude::*;

use crate::numerical::{DEADLINE, GREEDY, MAX_RATE, STEP, Step, Trace};

/// Width of a picture, px.
const WIDTH: u32 = 980;
/// Left and right edge of the panels, px; labels stand to the right of them.
const SIDES: (i32, i32) = (56, 820);
/// Height of a panel of rates and of one of weights, px.
const HEIGHTS: (i32, i32) = (190, 60);
/// Room for the title of a pair of panels, px.
const TITLE_LINE: i32 = 40;
/// From the rates to the weights below them, px.
const GAP: i32 = 22;
/// Room for the head, and for the time axis at the bottom, px.
const ENDS: (i32, i32) = (48, 54);

/// What is drawn, s: as much as in the paper.
const UNTIL: f64 = 2000.0;

/// Steps that are drawn as one point, 5 s: as long as the capacity stays.
const POINT: usize = 50;

/// Rates above the capacity are drawn up to here; w up to 1.
const TOP: (f64, f64) = (105.0, 1.1);

/// Colours of the greedy sources in turn: at most three send at a time.
const GREEDY_COLORS: [RGBColor; 3] = [VERMILION, GREEN, INK];

/// A trace and what to call it.
pub(crate) struct Panel<'a> {
    pub(crate) title: String,
    pub(crate) trace: &'a Trace,
}

/// Draws the panels below each other into an SVG file.
pub(crate) fn draw(title: &str, panels: &[Panel<'_>], path: &Path) -> ChartResult<()> {
    let pair = TITLE_LINE + HEIGHTS.0 + GAP + HEIGHTS.1;
    let height = ENDS.0 + pair * panels.len() as i32 + ENDS.1;
    let canvas = SVGBackend::new(path, (WIDTH, height as u32)).into_drawing_area();
    canvas.fill(&WHITE)?;
    canvas.draw_text(title, &bold(TITLE, INK, FROM), (SIDES.0, ENDS.0 / 2))?;
    let mut top = ENDS.0;
    for (index, panel) in panels.iter().enumerate() {
        let words = &panel.title;
        canvas.draw_text(words, &text(LABEL, INK, FROM), (SIDES.0, top + 16))?;
        top += TITLE_LINE;
        rates(&canvas, frame(top, HEIGHTS.0), panel.trace)?;
        top += HEIGHTS.0 + GAP;
        let is_last = index + 1 == panels.len();
        weight(&canvas, frame(top, HEIGHTS.1), panel.trace, is_last)?;
        top += HEIGHTS.1;
    }
    let below = ((SIDES.0 + SIDES.1) / 2, height - 16);
    canvas.draw_text("seconds", &text(LABEL, INK, AROUND), below)?;
    canvas.present()?;
    Ok(())
}

fn frame(top: i32, height: i32) -> Frame {
    Frame {
        left: SIDES.0,
        right: SIDES.1,
        top,
        bottom: top + height,
    }
}

fn rates(canvas: &Canvas<'_>, frame: Frame, trace: &Trace) -> ChartResult<()> {
    let mut panel = chart::panel(canvas, frame, 0.0..UNTIL, 0.0..TOP.0, (0, 6))?;
    let mut line = |points: &[(f64, f64)], style: ShapeStyle| -> ChartResult<()> {
        for piece in chart::clipped(points, TOP.0) {
            panel.draw_series(LineSeries::new(piece, style))?;
        }
        Ok(())
    };
    line(&points(trace, |step| Some(step.capacity)), MARK.into())?;
    for (source, times) in GREEDY.iter().enumerate() {
        let sends = |step: &Step| times.contains(&step.t).then_some(step.greedy[source]);
        let color = GREEDY_COLORS[source % GREEDY_COLORS.len()];
        line(&points(trace, sends), color.into())?;
    }
    let ours = points(trace, |step| step.w.map(|_| step.ours));
    line(&ours, BLUE.stroke_width(2))?;
    let ends = [(DEADLINE, 0.0), (DEADLINE, TOP.0)];
    panel.draw_series(DashedLineSeries::new(ends, 4, 4, GREY.into()))?;
    for (source, times) in GREEDY.iter().enumerate() {
        // Its number stands where it starts.
        let color = GREEDY_COLORS[source % GREEDY_COLORS.len()];
        let place = panel.backend_coord(&(times.start, MAX_RATE));
        let words = format!("{}", source + 1);
        canvas.draw_text(
            &words,
            &text(LABEL, color, FROM),
            (place.0 + 3, place.1 + 4),
        )?;
    }
    let middle = |value: f64| frame.bottom - (value / TOP.0 * f64::from(HEIGHTS.0)) as i32;
    let label = |words: &[&str], color, value: f64| Label {
        lines: words.iter().map(|&line| line.to_owned()).collect(),
        color,
        y: middle(value),
    };
    let labels = vec![
        label(&["capacity"], GREY, 92.0),
        label(&["TCP 1 to 6, from", "their numbers on"], VERMILION, 55.0),
        label(&["DA-LBE"], BLUE, 20.0),
    ];
    write_labels(canvas, frame.right + 14, frame.top..frame.bottom, labels)
}

fn weight(canvas: &Canvas<'_>, frame: Frame, trace: &Trace, is_last: bool) -> ChartResult<()> {
    let marks = if is_last { 10 } else { 0 };
    let mut panel = chart::panel(canvas, frame, 0.0..UNTIL, 0.0..TOP.1, (marks, 2))?;
    let points = points(trace, |step| step.w);
    panel.draw_series(LineSeries::new(points, BLUE.stroke_width(2)))?;
    let label = Label {
        lines: vec!["w of DA-LBE".to_owned()],
        color: BLUE,
        y: (frame.top + frame.bottom) / 2,
    };
    write_labels(
        canvas,
        frame.right + 14,
        frame.top..frame.bottom,
        vec![label],
    )
}

/// Means of a value while there is one, in the middle of their time.
fn points(trace: &Trace, value: impl Fn(&Step) -> Option<f64>) -> Vec<(f64, f64)> {
    let shown = trace.within(0.0..UNTIL).chunks(POINT);
    shown
        .filter_map(|steps| {
            let values: Option<Vec<f64>> = steps.iter().map(&value).collect();
            let values = values?;
            let middle = steps[0].t + POINT as f64 * STEP / 2.0;
            Some((middle, values.iter().sum::<f64>() / values.len() as f64))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerical::{Control, Experiment};

    #[test]
    fn a_trace_is_drawn_small_and_whole() {
        let experiment = Experiment {
            eta: 0.1,
            control: Control::Mbc,
            delay_based: false,
            seed: 1,
        };
        let trace = experiment.run();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("figure.svg");
        let panel = || Panel {
            title: "a title".to_owned(),
            trace: &trace,
        };
        draw("a head", &[panel(), panel()], &path).unwrap();
        let svg = std::fs::read_to_string(&path).unwrap();
        assert!(svg.len() < 150_000, "{} bytes", svg.len());
        assert!(!svg.contains("NaN") && !svg.contains("inf "));
        assert_eq!(svg.matches("a title").count(), 2);
        assert_eq!(svg.matches("DA-LBE").count(), 4);
    }
}
