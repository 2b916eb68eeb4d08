//! What is used of pauses and taken in turns, by their length, and what a weight
//! takes: a panel for each. Filled dots: the server sends with CUBIC; hollow
//! ones: with another.

use std::path::Path;

use fairbat_tests::chart::{
    AROUND, Canvas, ChartResult, FROM, GREY, INK, LABEL, MARK, Panel, TITLE, bold, panel, text,
};
use plotters::prelude::*;

use crate::report::MatrixRecord;
use crate::report::chart::{Grid, color, colors};
use crate::report::words::title;
use crate::report::yielding;
use crate::report::yielding::lines;
use crate::report::yielding::lines::{
    OFF_USE, ON, ON_SHARE, SHARE, TURNS, WEIGHTS, on_off_scenario,
};
use crate::report::yielding::{Measure, Runs, Where, Who};
use crate::statistics::Spread;

/// Where the panels are.
const GRID: Grid = Grid {
    columns: 3,
    panel: (290, 230),
    pitch: (365, 330),
    first: (60, 170),
};
/// Mean width of a letter, px.
const LETTER: f64 = 7.0;
/// Radius of a dot, px.
const DOT: i32 = 4;
/// The congestion control whose dots are filled.
const FILLED: &str = "cubic";

/// What a panel shows.
struct Content {
    title: &'static str,
    axis: &'static str,
    /// Largest value of the upright axis, %.
    most: f64,
    measure: Measure,
    /// Where dots stand: what is written below, and what they are of.
    places: Vec<(String, Where)>,
    /// What is required, and what Vulture's report says, at each place.
    required: Vec<f64>,
    reported: Vec<f64>,
}

/// Draws all of it into an SVG file.
///
/// # Errors
/// What plotters says.
pub(crate) fn draw(matrices: &[MatrixRecord], path: &Path) -> ChartResult<()> {
    let runs = Runs::of(matrices);
    let contents = contents();
    let canvas = SVGBackend::new(path, GRID.size(contents.len())).into_drawing_area();
    canvas.fill(&WHITE)?;
    let colors = named_colors(matrices);
    head(&canvas, &colors)?;
    for (index, content) in contents.iter().enumerate() {
        one(&canvas, index, content, &runs, &colors)?;
    }
    canvas.present()?;
    Ok(())
}

fn contents() -> Vec<Content> {
    let turns = || {
        let places = TURNS.iter().map(|(seconds, ..)| {
            let place = Where::plain(&on_off_scenario(*seconds));
            (format!("{seconds} s"), place)
        });
        places.collect::<Vec<_>>()
    };
    let reported = TURNS.iter().filter_map(|(.., paper)| paper.parse().ok());
    let weights = WEIGHTS.iter();
    let model = weights
        .clone()
        .map(|weight| 100.0 * weight / (1.0 + weight));
    vec![
        Content {
            title: "pauses of a greedy flow in use, %",
            axis: "length of its turns and pauses",
            most: 105.0,
            measure: OFF_USE,
            places: turns(),
            required: TURNS.iter().map(|(_, least, _)| *least).collect(),
            reported: reported.collect(),
        },
        Content {
            title: "share of the payload in its turns, %",
            axis: "length of its turns and pauses",
            most: 40.0,
            measure: ON,
            places: turns(),
            required: vec![ON_SHARE; TURNS.len()],
            reported: Vec::new(),
        },
        Content {
            title: "share beside one greedy flow at RTT 100 ms, %",
            axis: "weight",
            most: 65.0,
            measure: SHARE,
            places: weights
                .map(|weight| (weight.to_string(), lines::place(100, *weight)))
                .collect(),
            required: model.collect(),
            reported: Vec::new(),
        },
    ]
}

/// The colours of all contenders of all matrices.
fn named_colors(matrices: &[MatrixRecord]) -> Vec<(&str, RGBColor)> {
    let own = matrices.iter().filter(|matrix| yielding::is_of(matrix));
    let mut all: Vec<(&str, RGBColor)> = Vec::new();
    for (name, color) in own.flat_map(colors) {
        if !all.iter().any(|(known, _)| *known == name) {
            all.push((name, color));
        }
    }
    all
}

fn head(canvas: &Canvas<'_>, colors: &[(&str, RGBColor)]) -> ChartResult<()> {
    let words = "yielding: what is used of pauses and taken in turns, and what a weight takes";
    canvas.draw_text(words, &bold(TITLE, INK, FROM), (20, 24))?;
    let lines = [
        "Median over the seeds; thin lines from least to most. Filled: the server sends with \
         CUBIC, hollow: with another.",
        "Dashed: what is required (pauses: at least, turns: at most, weights: the model); dotted: \
         Vulture's report.",
    ];
    for (line, y) in lines.into_iter().zip([46, 64]) {
        canvas.draw_text(line, &text(LABEL, GREY, FROM), (20, y))?;
    }
    let mut x = 26;
    for (contender, color) in colors {
        canvas.draw(&Circle::new((x, 92), DOT, color.filled()))?;
        let words = title(contender);
        canvas.draw_text(words, &text(LABEL, *color, FROM), (x + 10, 92))?;
        x += 40 + (words.chars().count() as f64 * LETTER) as i32;
    }
    Ok(())
}

fn one(
    canvas: &Canvas<'_>,
    index: usize,
    content: &Content,
    runs: &Runs<'_>,
    colors: &[(&str, RGBColor)],
) -> ChartResult<()> {
    let frame = GRID.frame(index);
    let columns = runs.who(content.places.iter().map(|(_, place)| place));
    let spread = |who: Who<'_>, place: &Where| runs.spread(place, who, content.measure);
    let largest = columns.iter().flat_map(|who| {
        let spreads = content.places.iter();
        spreads.filter_map(|(_, place)| Some(1.05 * spread(*who, place)?.most))
    });
    let most = largest.fold(content.most, f64::max);
    let count = content.places.len() as f64;
    let mut panel = panel(canvas, frame, 0.0..count, 0.0..most, (0, 6))?;
    let style = text(LABEL, INK, FROM);
    canvas.draw_text(content.title, &style, (frame.left, frame.top - 16))?;
    let style = text(LABEL, INK, AROUND);
    for (number, (words, _)) in content.places.iter().enumerate() {
        let x = panel.backend_coord(&(number as f64 + 0.5, 0.0)).0;
        canvas.draw_text(words, &style, (x, frame.bottom + 14))?;
    }
    let below = ((frame.left + frame.right) / 2, frame.bottom + 36);
    canvas.draw_text(content.axis, &style, below)?;
    for (values, length) in [(&content.required, 4), (&content.reported, 1)] {
        for (number, value) in values.iter().enumerate() {
            let ends = [0.05, 0.95].map(|part| (number as f64 + part, *value));
            panel.draw_series(DashedLineSeries::new(ends, length, 4, MARK.into()))?;
        }
    }
    for (place_number, (_, place)) in content.places.iter().enumerate() {
        for (number, who) in columns.iter().enumerate() {
            let Some(spread) = spread(*who, place) else {
                continue;
            };
            let part = (number as f64 + 1.0) / (columns.len() as f64 + 1.0);
            dot(&mut panel, place_number as f64 + part, spread, *who, colors)?;
        }
    }
    Ok(())
}

fn dot(
    panel: &mut Panel<'_>,
    x: f64,
    spread: Spread,
    who: Who<'_>,
    colors: &[(&str, RGBColor)],
) -> ChartResult<()> {
    let color = color(colors, who.contender);
    let range = [(x, spread.least), (x, spread.most)];
    panel.draw_series(LineSeries::new(range, color.stroke_width(1)))?;
    let style = if who.server == Some(FILLED) {
        color.filled()
    } else {
        color.stroke_width(1)
    };
    panel.draw_series([Circle::new((x, spread.median), DOT, style)])?;
    Ok(())
}
