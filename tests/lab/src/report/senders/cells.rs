//! Figures of a matrix by contender and place, and tables of them. Knows no
//! figure.

use std::fmt::Write;

use super::super::words::{cell, shown, title};
use super::super::{ALONE, MatrixRecord, RunSummary};
use crate::record::Summary;
use crate::statistics::Spread;

/// What is taken from a run.
#[derive(Clone, Copy)]
pub(super) enum Figure {
    /// From its own figures.
    Own(fn(&Summary) -> Option<f64>),
    /// From its own and from those of this contender at the same place with the
    /// same seed.
    Beside(&'static str, fn(&Summary, &Summary) -> Option<f64>),
}

/// A scenario, in one of the ways to run it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place<'a> {
    pub(super) scenario: &'a str,
    pub(super) variant: Option<&'a str>,
}

impl Place<'_> {
    fn is_of(&self, run: &RunSummary) -> bool {
        self.scenario == run.scenario && self.variant == run.variant.as_deref()
    }
}

/// Contenders other than nobody, in the order of first appearance.
pub(super) fn contenders(matrix: &MatrixRecord) -> Vec<&str> {
    let mut found = Vec::new();
    for run in &matrix.runs {
        let name = run.contender.as_str();
        if name != ALONE && !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

/// Places in the order of the scenarios' names, then of first appearance.
pub(super) fn places(matrix: &MatrixRecord) -> Vec<Place<'_>> {
    let mut found = Vec::new();
    for scenario in matrix.scenarios.keys() {
        for run in matrix.runs.iter().filter(|run| run.scenario == *scenario) {
            let place = Place {
                scenario,
                variant: run.variant.as_deref(),
            };
            if !found.contains(&place) {
                found.push(place);
            }
        }
    }
    found
}

/// The runs of a contender at a place that did not fail.
pub(super) fn runs<'a>(
    matrix: &'a MatrixRecord,
    place: Place<'_>,
    contender: &str,
) -> Vec<&'a RunSummary> {
    let all = all_runs(matrix, place, contender);
    all.filter(|run| run.failure.is_none()).collect()
}

/// The runs of a contender at a place, whatever became of them.
pub(super) fn all_runs<'a>(
    matrix: &'a MatrixRecord,
    place: Place<'_>,
    contender: &str,
) -> impl Iterator<Item = &'a RunSummary> {
    let all = matrix.runs.iter();
    all.filter(move |run| run.contender == contender && place.is_of(run))
}

/// A figure with each seed that has it.
pub(super) fn figures(
    matrix: &MatrixRecord,
    place: Place<'_>,
    contender: &str,
    figure: Figure,
) -> Vec<f64> {
    let own = runs(matrix, place, contender).into_iter();
    let values = own.filter_map(|run| match figure {
        Figure::Own(of) => of(&run.summary),
        Figure::Beside(other, of) => {
            let others = runs(matrix, place, other);
            let other = others.into_iter().find(|other| other.seed == run.seed)?;
            of(&run.summary, &other.summary)
        }
    });
    values.collect()
}

/// A table of a figure over the seeds, to so many digits, under a heading.
pub(super) fn table(
    matrix: &MatrixRecord,
    heading: &str,
    name: impl Fn(Place<'_>) -> String,
    figure: Figure,
    digits: usize,
) -> String {
    table_of(matrix, heading, name, |place, contender| {
        let values = figures(matrix, place, contender, figure);
        shown(Spread::of(&values), digits)
    })
}

/// A table under a heading: a row for each contender, a column for each place.
pub(super) fn table_of(
    matrix: &MatrixRecord,
    heading: &str,
    name: impl Fn(Place<'_>) -> String,
    words: impl Fn(Place<'_>, &str) -> String,
) -> String {
    let places = places(matrix);
    let names: Vec<_> = places.iter().map(|place| cell(&name(*place))).collect();
    let dashes = "---|".repeat(places.len() + 1);
    let mut text = format!("\n## {heading}\n\n| | {} |\n|{dashes}\n", names.join(" | "));
    for contender in contenders(matrix) {
        let cells = places.iter().map(|place| words(*place, contender));
        let cells: Vec<_> = cells.collect();
        let _ = writeln!(
            text,
            "| {} | {} |",
            cell(title(contender)),
            cells.join(" | ")
        );
    }
    text
}
