//! What is used of pauses and taken in turns, by their length, and what a weight
//! takes: a panel for each. Filled dots: the server sends with CUBIC; hollow
//! ones: with another.

use std::path::Path;

use crate::report::select::{FILLED, Runs, color, colors};
use crate::report::words::title;
use crate::report::yielding::claims::{Claim, Measure, weight_claims, written};
use crate::report::yielding::{Column, is_of};
use crate::results::MatrixRecord;
use crate::verdict::Bound;
use lab_run::chart::{ChartResult, Grid, MARK, RGBColor, Sheet};

const GRID: Grid = Grid {
    columns: 3,
    panel: (290, 230),
    pitch: (365, 330),
    first: (60, 170),
};

/// The round-trip time at which weights are shown, ms.
const RTT_MS: u32 = 100;

/// What a panel shows.
struct Content {
    title: &'static str,
    axis: &'static str,
    /// Largest value of the upright axis, %.
    most: f64,
    /// Where dots stand: what is written below, what they are of, what is required, and
    /// what Vulture's report says.
    places: Vec<(String, Claim, Option<f64>, Option<f64>)>,
}

/// Draws all of it into an SVG file.
///
/// # Errors
/// What plotters says.
pub(crate) fn draw(matrices: &[MatrixRecord], path: &Path) -> ChartResult<()> {
    let runs = Runs::of(matrices);
    let contents = contents();
    let words = "yielding: what is used of pauses and taken in turns, and what a weight takes";
    let lines = [
        "Median over the seeds; thin lines from least to most. Filled: the server sends with \
         CUBIC, hollow: with another.",
        "Dashed: what is required (pauses: at least, turns: at most, weights: the model); dotted: \
         Vulture's report.",
    ];
    let sheet = Sheet::headed(path, GRID.size(contents.len()), words, &lines)?;
    let colors = named_colors(matrices);
    let named = colors.iter().map(|(name, color)| (title(name), *color));
    sheet.legend(&named.collect::<Vec<_>>(), 92, true)?;
    for (index, content) in contents.iter().enumerate() {
        let places: Vec<_> = content.places.iter().map(|it| it.1.place()).collect();
        let columns = Column::all(&runs, &places);
        let spread = |column: &Column<'_>, claim: &Claim| Some(column.found(claim, &runs)?.spread);
        let all = content.places.iter();
        let all = all.flat_map(|it| columns.iter().filter_map(|one| spread(one, &it.1)));
        let most = all
            .map(|spread| 1.05 * spread.most)
            .fold(content.most, f64::max);
        let width = content.places.len() as f64;
        let mut plot = sheet.plot(GRID.frame(index), 0.0..width, 0.0..most, (0, 6))?;
        plot.above(content.title, 16)?;
        for (number, (words, ..)) in content.places.iter().enumerate() {
            plot.mark(number as f64 + 0.5, words)?;
        }
        plot.axis(content.axis, 36)?;
        let required = content.places.iter().map(|it| (it.2, 4));
        let reported = content.places.iter().map(|it| (it.3, 1));
        for (number, (value, length)) in required.enumerate().chain(reported.enumerate()) {
            if let Some(value) = value {
                let ends = [0.05, 0.95].map(|part| (number as f64 + part, value));
                plot.dashed(ends, length, MARK)?;
            }
        }
        for (place, (_, claim, ..)) in content.places.iter().enumerate() {
            for (number, column) in columns.iter().enumerate() {
                let Some(spread) = spread(column, claim) else {
                    continue;
                };
                let part = (number as f64 + 1.0) / (columns.len() as f64 + 1.0);
                let color = color(&colors, column.contender);
                let is_hollow = column.server != Some(FILLED);
                plot.spread(place as f64 + part, spread, color, is_hollow)?;
            }
        }
    }
    sheet.finish()
}

fn contents() -> Vec<Content> {
    let turns = |measure| {
        let claims = written().into_iter();
        let claims = claims.filter(move |claim| claim.measure == measure);
        let places = claims.map(|claim| {
            let required = match claim.bound {
                Some(Bound::AtLeast(value) | Bound::AtMost(value)) => Some(value),
                _ => None,
            };
            let reported = claim.paper.parse().ok();
            (claim.label().to_owned(), claim, required, reported)
        });
        places.collect()
    };
    let weights = weight_claims(RTT_MS).map(|(weight, claim)| {
        let model = 100.0 * weight / (1.0 + weight);
        (weight.to_string(), claim, Some(model), None)
    });
    vec![
        Content {
            title: "pauses of a greedy flow in use, %",
            axis: "length of its turns and pauses",
            most: 105.0,
            places: turns(Measure::OffUse),
        },
        Content {
            title: "share of the payload in its turns, %",
            axis: "length of its turns and pauses",
            most: 40.0,
            places: turns(Measure::OnShare),
        },
        Content {
            title: "share beside one greedy flow at RTT 100 ms, %",
            axis: "weight",
            most: 65.0,
            places: weights.collect(),
        },
    ]
}

/// The colours of all contenders of all matrices.
fn named_colors(matrices: &[MatrixRecord]) -> Vec<(&str, RGBColor)> {
    let own = matrices.iter().filter(|matrix| is_of(matrix));
    let mut all: Vec<(&str, RGBColor)> = Vec::new();
    for (name, color) in own.flat_map(colors) {
        if !all.iter().any(|(known, _)| *known == name) {
            all.push((name, color));
        }
    }
    all
}
