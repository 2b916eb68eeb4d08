//! Pages of the matrices about senders: each has figures of its own, by the
//! matrix's name.

mod cdg;
mod least;
mod load;
pub(crate) mod required;
mod table1;

use std::fmt::Write;
use std::path::Path;

use fairbat_tests::chart::ChartResult;

use crate::matrix::Variant;
use crate::record::Summary;
use crate::report::select::rows;
use crate::report::words;
use crate::report::words::{cell, failures, head, how, seeds, shown, title};
use crate::report::{ALONE, MatrixRecord, RunSummary};
use crate::statistics::Spread;

/// What a matrix about senders is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// CDG's back-off scale, beside its paper.
    Scales,
    /// Senders that are alone.
    Alone,
    /// A link that becomes free.
    Released,
    /// A live stream.
    Constant,
    /// Weights that change.
    Steps,
    /// DA-LBE's Table I.
    Table1,
    /// DA-LBE's fig. 10.
    Load,
}

impl Kind {
    /// Of this matrix; `None` if it is about something else.
    pub(crate) fn of(matrix: &MatrixRecord) -> Option<Self> {
        Some(match matrix.name.as_str() {
            "cdg" => Self::Scales,
            "sender-alone" => Self::Alone,
            "sender-released" => Self::Released,
            "sender-constant" => Self::Constant,
            "sender-steps" => Self::Steps,
            "dalbe" | "dalbe-beyond" => Self::Table1,
            "dalbe-load" => Self::Load,
            _ => return None,
        })
    }
}

/// The page, with what the variants of the matrix are.
pub(crate) fn page(kind: Kind, matrix: &MatrixRecord, variants: &[Variant]) -> String {
    let mut text = head(matrix);
    // Transfers are counted over all seeds.
    if seeds(matrix).len() > 1 && kind != Kind::Load {
        text.push_str(&format!(
            "A figure is the median over {} seeds (least\u{2013}most). ",
            seeds(matrix).len()
        ));
    }
    text.push_str(&match kind {
        Kind::Scales => cdg::section(matrix),
        Kind::Table1 => table1::section(matrix),
        Kind::Load => load::section(matrix),
        Kind::Alone | Kind::Released | Kind::Constant | Kind::Steps => least::section(kind, matrix),
    });
    text.push_str(&required::section(matrix));
    text.push_str("\n## Scenarios\n\n");
    text.push_str(&words::lines(matrix, variants));
    for name in matrix.scenarios.keys() {
        text.push_str(&failures(&rows(matrix, name)));
    }
    text.push_str(&how(matrix));
    text
}

/// Whether there is a picture beside the page.
pub(crate) fn has_picture(kind: Kind) -> bool {
    matches!(kind, Kind::Scales | Kind::Table1 | Kind::Load)
}

/// Draws it into an SVG file; of the others nothing.
///
/// # Errors
/// What plotters says.
pub(crate) fn draw(kind: Kind, matrix: &MatrixRecord, path: &Path) -> ChartResult<()> {
    match kind {
        Kind::Scales => cdg::draw(matrix, path),
        Kind::Table1 => table1::draw(matrix, path),
        Kind::Load => load::draw(matrix, path),
        Kind::Alone | Kind::Released | Kind::Constant | Kind::Steps => Ok(()),
    }
}

/// What is taken from a run.
#[derive(Clone, Copy)]
pub(crate) enum Figure {
    /// From its own figures.
    Own(fn(&Summary) -> Option<f64>),
    /// From its own and from those of this contender at the same place with the
    /// same seed.
    Beside(&'static str, fn(&Summary, &Summary) -> Option<f64>),
}

/// A scenario, in one of the ways to run it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place<'a> {
    pub(crate) scenario: &'a str,
    pub(crate) variant: Option<&'a str>,
}

impl Place<'_> {
    fn is_of(&self, run: &RunSummary) -> bool {
        self.scenario == run.scenario && self.variant == run.variant.as_deref()
    }
}

/// Contenders other than nobody, in the order of first appearance.
pub(crate) fn contenders(matrix: &MatrixRecord) -> Vec<&str> {
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
pub(crate) fn places(matrix: &MatrixRecord) -> Vec<Place<'_>> {
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
pub(crate) fn runs<'a>(
    matrix: &'a MatrixRecord,
    place: Place<'_>,
    contender: &str,
) -> Vec<&'a RunSummary> {
    let all = all_runs(matrix, place, contender);
    all.filter(|run| run.failure.is_none()).collect()
}

/// The runs of a contender at a place, whatever became of them.
pub(crate) fn all_runs<'a>(
    matrix: &'a MatrixRecord,
    place: Place<'_>,
    contender: &str,
) -> impl Iterator<Item = &'a RunSummary> {
    let all = matrix.runs.iter();
    all.filter(move |run| run.contender == contender && place.is_of(run))
}

/// A figure with each seed that has it.
pub(crate) fn values(
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
pub(crate) fn table(
    matrix: &MatrixRecord,
    heading: &str,
    name: impl Fn(Place<'_>) -> String,
    figure: Figure,
    digits: usize,
) -> String {
    table_of(matrix, heading, name, |place, contender| {
        let values = values(matrix, place, contender, figure);
        shown(Spread::of(&values), digits)
    })
}

/// A table under a heading: a row for each contender, a column for each place.
pub(crate) fn table_of(
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
