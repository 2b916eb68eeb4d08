//! Experiments as pictures: the rates of all sources over time, as in the
//! paper's figures, and w below them. Knows traces, and nothing of what makes
//! them.

use std::path::Path;

use crate::numerical::{DEADLINE, GREEDY, MAX_RATE, STEP, Step, Trace};
use lab_run::chart::{
    BLUE, ChartResult, Frame, GREEN, GREY, INK, MARK, RGBColor, Sheet, VERMILION,
};

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
pub(crate) struct Panel {
    pub(crate) title: String,
    pub(crate) trace: Trace,
}

/// Draws the panels below each other into an SVG file.
pub(crate) fn draw(title: &str, panels: &[Panel], path: &Path) -> ChartResult<()> {
    let pair = TITLE_LINE + HEIGHTS.0 + GAP + HEIGHTS.1;
    let height = ENDS.0 + pair * panels.len() as i32 + ENDS.1;
    let sheet = Sheet::new(path, (WIDTH, height as u32))?;
    sheet.title(title, INK, (SIDES.0, ENDS.0 / 2))?;
    let mut top = ENDS.0;
    for (index, panel) in panels.iter().enumerate() {
        sheet.write(&panel.title, INK, (SIDES.0, top + 16))?;
        top += TITLE_LINE;
        rates(&sheet, frame(top, HEIGHTS.0), &panel.trace)?;
        top += HEIGHTS.0 + GAP;
        let is_last = index + 1 == panels.len();
        weight(&sheet, frame(top, HEIGHTS.1), &panel.trace, is_last)?;
        top += HEIGHTS.1;
    }
    let below = ((SIDES.0 + SIDES.1) / 2, height - 16);
    sheet.write_around("seconds", INK, below)?;
    sheet.finish()
}

fn frame(top: i32, height: i32) -> Frame {
    Frame {
        left: SIDES.0,
        right: SIDES.1,
        top,
        bottom: top + height,
    }
}

fn rates(sheet: &Sheet<'_>, frame: Frame, trace: &Trace) -> ChartResult<()> {
    let mut plot = sheet.plot(frame, 0.0..UNTIL, 0.0..TOP.0, (0, 6))?;
    plot.line(&points(trace, |step| Some(step.capacity)), MARK, 1)?;
    let colors = GREEDY_COLORS.into_iter().cycle();
    let sources = || GREEDY.iter().enumerate().zip(colors.clone());
    for ((source, times), color) in sources() {
        let sends = |step: &Step| times.contains(&step.t).then_some(step.greedy[source]);
        plot.line(&points(trace, sends), color, 1)?;
    }
    let ours = points(trace, |step| step.w.map(|_| step.ours));
    plot.line(&ours, BLUE, 2)?;
    plot.dashed([(DEADLINE, 0.0), (DEADLINE, TOP.0)], 4, GREY)?;
    for ((source, times), color) in sources() {
        // Its number stands where it starts.
        let (x, y) = plot.place((times.start, MAX_RATE));
        sheet.write(&(source + 1).to_string(), color, (x + 3, y + 4))?;
    }
    plot.label(["capacity".to_owned()], GREY, 92.0);
    let words = ["TCP 1 to 6, from", "their numbers on"].map(str::to_owned);
    plot.label(words, VERMILION, 55.0);
    plot.label(["DA-LBE".to_owned()], BLUE, 20.0);
    plot.finish((0, 0))
}

fn weight(sheet: &Sheet<'_>, frame: Frame, trace: &Trace, is_last: bool) -> ChartResult<()> {
    let marks = if is_last { 10 } else { 0 };
    let mut plot = sheet.plot(frame, 0.0..UNTIL, 0.0..TOP.1, (marks, 2))?;
    plot.line(&points(trace, |step| step.w), BLUE, 2)?;
    plot.label(["w of DA-LBE".to_owned()], BLUE, TOP.1 / 2.0);
    plot.finish((0, 0))
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
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("figure.svg");
        let panel = || Panel {
            title: "a title".to_owned(),
            trace: experiment.run(),
        };
        draw("a head", &[panel(), panel()], &path).unwrap();
        let svg = std::fs::read_to_string(&path).unwrap();
        assert!(svg.len() < 150_000, "{} bytes", svg.len());
        assert!(!svg.contains("NaN") && !svg.contains("inf "));
        assert_eq!(svg.matches("a title").count(), 2);
        assert_eq!(svg.matches("DA-LBE").count(), 4);
    }
}
