//! Harm to others against use of what they leave: a panel for each kind of
//! bottleneck, a dot in it for each contender.

use std::path::Path;

use crate::report::bottlenecks::cell::{Cell, Kind};
use crate::report::bottlenecks::figures::{CURL, Figure, Subject};
use crate::report::select::Runs;
use crate::report::words::title;
use lab_run::chart::{
    BLUE, ChartResult, Color, GREEN, GREY, Grid, INK, ORANGE, PURPLE, RGBColor, Sheet, VERMILION,
};
use lab_run::statistics::{Spread, mean};

const GRID: Grid = Grid {
    columns: 4,
    panel: (230, 190),
    pitch: (300, 300),
    first: (60, 190),
};

/// Names beside each other in the legend.
const ABREAST: usize = 5;

/// The largest harm that every panel shows, %.
const HARM: f64 = 60.0;

/// Colours of contenders that have none of their own.
const OTHERS: [RGBColor; 3] = [ORANGE, GREY, INK];

/// A colour for each contender.
fn colors(subjects: &[Subject<'_>]) -> Vec<RGBColor> {
    let mut others = OTHERS.into_iter().cycle();
    let colors = subjects.iter().map(|subject| match subject.contender {
        CURL => VERMILION,
        "utp" => PURPLE,
        "fairbat-no-deadline" => BLUE,
        "fairbat-served" => GREEN,
        _ => others.next().unwrap_or(INK),
    });
    colors.collect()
}

/// Where a contender stands at the bottlenecks of a kind, %.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Dot {
    /// What others lose: mean, least and most of the bottlenecks.
    pub(crate) harm: Spread,
    /// What is used of what they leave.
    pub(crate) used: Spread,
}

impl Dot {
    /// Of the bottlenecks at which all was measured; `None` without any.
    pub(crate) fn of(subject: Subject<'_>, cells: &[&Cell], runs: &Runs<'_>) -> Option<Self> {
        let points = cells.iter().filter_map(|cell| point(subject, cell, runs));
        let (harm, used): (Vec<_>, Vec<_>) = points.unzip();
        let around_mean = |values: &[f64]| {
            Some(Spread {
                median: mean(values)?,
                ..Spread::of(values)?
            })
        };
        Some(Self {
            harm: around_mean(&harm)?,
            used: around_mean(&used)?,
        })
    }
}

/// Harm and use at one bottleneck.
fn point(subject: Subject<'_>, cell: &Cell, runs: &Runs<'_>) -> Option<(f64, f64)> {
    let spread = |figure: Figure| Spread::of(&figure.values(subject, cell, runs));
    let lost = |figure: Figure| Some((100.0 - spread(figure)?.median).max(0.0));
    let harm = f64::midpoint(lost(Figure::Greedy)?, lost(Figure::Stream)?);
    let alone = spread(Figure::UsedAlone)?.median;
    let beside = spread(Figure::BesideStream)?.median;
    Some((harm, f64::midpoint(alone, beside)))
}

/// Draws all of it into an SVG file.
///
/// # Errors
/// What plotters says.
pub(crate) fn draw(
    runs: &Runs<'_>,
    subjects: &[Subject<'_>],
    cells: &[Cell],
    path: &Path,
) -> ChartResult<()> {
    let colors = colors(subjects);
    let dots = |kind: Kind| {
        let cells: Vec<_> = cells.iter().filter(|cell| cell.kind == kind).collect();
        let all = subjects.iter().zip(&colors);
        let dots =
            all.filter_map(|(subject, color)| Some((Dot::of(*subject, &cells, runs)?, color)));
        dots.collect::<Vec<_>>()
    };
    let panels: Vec<_> = Kind::ALL
        .into_iter()
        .map(|kind| (kind, dots(kind)))
        .collect();
    let panels: Vec<_> = panels
        .into_iter()
        .filter(|(_, dots)| !dots.is_empty())
        .collect();
    let words = "bottlenecks: what others lose, and what is used of what they leave";
    let lines = [
        "Upper left is good: nobody loses anything, and all that is left is used.",
        "A dot for each contender: the mean over the bottlenecks of a kind. Thin lines: from the \
         least to the most of them.",
    ];
    let sheet = Sheet::headed(path, GRID.size(panels.len()), words, &lines)?;
    let named = subjects.iter().zip(&colors);
    let named: Vec<_> = named
        .map(|(one, color)| (title(one.contender), *color))
        .collect();
    for (row, y) in named.chunks(ABREAST).zip((92..).step_by(18)) {
        sheet.legend(row, y, true)?;
    }
    let all = panels.iter().flat_map(|(_, dots)| dots);
    let most = all.map(|(dot, _)| dot.harm.most).fold(HARM, f64::max);
    for (index, (kind, dots)) in panels.iter().enumerate() {
        let mut plot = sheet.plot(GRID.frame(index), 0.0..most, 0.0..105.0, (5, 6))?;
        plot.titles(kind.title(), "used of what others leave, %")?;
        plot.axis("others lose, %", 36)?;
        for (dot, color) in dots {
            let (harm, used) = (dot.harm, dot.used);
            plot.line(
                &[(harm.least, used.median), (harm.most, used.median)],
                **color,
                1,
            )?;
            plot.line(
                &[(harm.median, used.least), (harm.median, used.most)],
                **color,
                1,
            )?;
            plot.dots([(harm.median, used.median)], 5, color.filled())?;
        }
    }
    sheet.finish()
}
