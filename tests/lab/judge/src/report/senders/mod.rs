//! Pages of the matrices about senders. Each has figures of its own, by the matrix's
//! name.

mod cdg;
mod ctrltcp;
mod errors;
mod live;
mod load;
mod steps;
mod table1;
mod weights;

use crate::matrix::Variant;
use crate::report::select::{Draw, Figure, Place, Runs, contenders};
use crate::report::words::{all_failures, head, how, lines, median_over, title};
use crate::requirement::{Curve, Requirement};
use crate::results::{MatrixRecord, RunSummary};
use crate::verdict::{MIN_DIVIDED_SEEDS, MIN_SEEDS};
use lab_run::statistics::Spread;
use lab_run::table::{Table, shown};

pub(crate) use crate::report::senders::weights::{is_about_weights, page as weights_page};

/// The law that is taken where nobody asks for another.
const DEFAULT_LAW: &str = "sender-vegas";

/// The law that could take its place.
const OTHER_LAW: &str = "sender-cdg";

/// The matrices whose figures count all transfers of all seeds: by this project's
/// controller, and by the paper's.
const LOAD: &str = "dalbe-load";
const FIG10: &str = "dalbe-fig10";

/// What goes below the head of a page.
type Section = fn(&MatrixRecord) -> String;

/// The page of a matrix about senders, with its variants, and what draws its picture.
/// `None` if it is about something else.
pub(crate) fn page(
    matrix: &MatrixRecord,
    variants: impl FnOnce(&str) -> Vec<Variant>,
) -> Option<(String, Option<Draw>)> {
    let (section, draw): (Section, Option<Draw>) = match matrix.name.as_str() {
        "cdg" => (cdg::section, Some(cdg::draw)),
        "ctrltcp" => (ctrltcp::section, None),
        "sender-alone" => (live::alone, None),
        "sender-released" => (live::released, None),
        "sender-constant" => (live::constant, None),
        "sender-steps" => (steps::section, None),
        "dalbe" | "dalbe-beyond" | "dalbe-simulated" => (table1::section, Some(table1::draw)),
        LOAD => (load::own, Some(load::draw)),
        FIG10 => (load::published, Some(load::draw)),
        _ => return None,
    };
    let median = median_over(matrix).filter(|_| ![LOAD, FIG10].contains(&&*matrix.name));
    let median = median.map_or(String::new(), |words| format!("A figure is {words}. "));
    let text = format!(
        "{}{median}{}{}\n## Scenarios\n\n{}{}{}",
        head(matrix),
        section(matrix),
        required(matrix),
        lines(matrix, &variants(&matrix.name)),
        all_failures(matrix),
        how(matrix)
    );
    Some((text, draw))
}

/// What is required of a matrix, and what of it holds, under a heading. Empty if
/// nothing is. What is required of a law is asked of the other one too.
fn required(matrix: &MatrixRecord) -> String {
    let by_law = |law| match matrix.name.as_str() {
        "sender-weights" => weights::requirements(matrix, law),
        "sender-alone" => live::everywhere(matrix, law, &live::ALONE_BOUNDS),
        "sender-released" => live::released_requirements(matrix, law),
        "sender-constant" => live::everywhere(matrix, law, &live::CONSTANT_BOUNDS),
        "sender-steps" => steps::requirements(matrix, law),
        _ => Vec::new(),
    };
    let all = match matrix.name.as_str() {
        "cdg" => cdg::requirements(matrix),
        "ctrltcp" => ctrltcp::requirements(matrix),
        "dalbe" | "dalbe-beyond" | "dalbe-simulated" => table1::requirements(matrix),
        LOAD => load::requirements(matrix),
        _ => by_law(DEFAULT_LAW),
    };
    if all.is_empty() {
        return String::new();
    }
    let has_other = matrix.runs.iter().any(|run| run.contender == OTHER_LAW);
    let asked = Some(by_law(OTHER_LAW)).filter(|asked| has_other && !asked.is_empty());
    let other = asked.map_or(String::new(), |asked| {
        format!(
            "\nThe same of \u{201c}{}\u{201d}:\n\n{}",
            title(OTHER_LAW),
            Requirement::table(asked)
        )
    });
    format!(
        concat!(
            "\n## What is required\n\n",
            include_str!("../../text/senders-required.md"),
            "\n{table}{other}"
        ),
        law = title(DEFAULT_LAW),
        divided = MIN_DIVIDED_SEEDS,
        enough = MIN_SEEDS,
        table = Requirement::table(all),
        other = other
    )
}

/// The scenarios by round-trip time, ms.
fn by_rtt(matrix: &MatrixRecord) -> Vec<(u128, &str)> {
    let all = matrix.scenarios.iter();
    let mut found: Vec<_> = all
        .map(|(name, scenario)| (scenario.base_rtt().as_millis(), name.as_str()))
        .collect();
    found.sort_unstable();
    found
}

/// All values of what is varied, ascending.
fn ascending(matrix: &MatrixRecord, of: fn(&RunSummary) -> Option<f64>) -> Vec<f64> {
    let mut all: Vec<_> = matrix.runs.iter().filter_map(of).collect();
    all.sort_by(f64::total_cmp);
    all.dedup();
    all
}

/// At each round-trip time the shares of a scenario by what is varied.
fn curves(
    matrix: &MatrixRecord,
    varied: &[f64],
    shares: impl Fn(&str, f64) -> Vec<f64>,
) -> Vec<Curve> {
    let curves = by_rtt(matrix).into_iter().map(|(rtt, name)| Curve {
        place: format!("{rtt} ms"),
        points: varied.iter().map(|x| (*x, shares(name, *x))).collect(),
    });
    curves.collect()
}

/// The runs of a contender at a place that did not fail.
fn runs<'a>(matrix: &'a MatrixRecord, place: &Place, contender: &str) -> Vec<&'a RunSummary> {
    let all = all_runs(matrix, place, contender);
    all.filter(|run| run.failure.is_none()).collect()
}

/// The runs of a contender at a place, whatever became of them.
fn all_runs<'a>(
    matrix: &'a MatrixRecord,
    place: &Place,
    contender: &str,
) -> impl Iterator<Item = &'a RunSummary> {
    let all = matrix.runs.iter();
    all.filter(move |run| run.contender == contender && place.is_of(run))
}

/// A figure of each seed that has it.
fn values(matrix: &MatrixRecord, place: &Place, contender: &str, figure: Figure) -> Vec<f64> {
    let is_one = |run: &RunSummary| run.contender == contender && place.is_of(run);
    Runs::of([matrix]).values(is_one, figure)
}

/// A table of a figure over the seeds, to so many digits, under a heading.
fn figures(matrix: &MatrixRecord, heading: &str, figure: Figure, digits: usize) -> String {
    by_place(matrix, heading, |place, contender| {
        let values = values(matrix, place, contender, figure);
        shown(Spread::of(&values), digits)
    })
}

/// A table under a heading: a row for each contender, a column for each place.
fn by_place(
    matrix: &MatrixRecord,
    heading: &str,
    words: impl Fn(&Place, &str) -> String,
) -> String {
    let table = Table::over(contenders(matrix))
        .column("", |contender| title(contender).to_owned())
        .columns(Place::all(matrix), variant, |contender, place| {
            words(place, contender)
        });
    format!("\n## {heading}\n\n{table}")
}

/// The way to run the scenario, of which there is one.
fn variant(place: &Place) -> String {
    place.variant.as_ref().unwrap_or(&place.scenario).clone()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::synthetic;

    #[test]
    fn of_other_matrices_nothing_is_required() {
        let mut matrix = synthetic::matrix();
        assert_eq!(required(&matrix), "");
        assert!(page(&matrix, |_| Vec::new()).is_none());
        matrix.name = "sender-alone".to_owned();
        assert!(required(&matrix).contains("not measured"));
    }
}
