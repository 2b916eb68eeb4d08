//! All matrices about yielding as one page: what is required, what is measured,
//! and what Vulture's report says of the same.

mod claims;
mod picture;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use crate::matrix::Variant;
use crate::report::select::{Figure, Place, Runs, distinct, rows};
use crate::report::words::{failed, is_elsewhere, line, measured, title, variants};
use crate::report::yielding::claims::{Claim, subjects};
use crate::report::yielding::picture::draw;
use crate::results::{ALONE, MatrixRecord};
use crate::verdict::{Bound, Verdict};
use lab_run::statistics::Spread;
use lab_run::table::{Table, or_nothing, shown};

/// What the page and its picture are called, without suffix; names of matrices
/// that have no page of their own begin with it.
const NAME: &str = "yielding";

/// The matrix of other paths, whose variants these are.
const UNSEEN: &str = "yielding-unseen";

/// The matrix of Vulture's own rules, which have a page of their own as well.
const VULTURE: &str = "yielding-vulture";

/// The matrix of weights, which has a page of its own and figures for this one.
const WEIGHTS: &str = "lever";

/// Whether a matrix has no other page.
pub(crate) fn is_of(matrix: &MatrixRecord) -> bool {
    matrix.name.starts_with(NAME)
}

/// Makes the page and its picture if there is anything for it, and the page on Vulture's own
/// rules, and returns where they are.
///
/// # Errors
/// When one cannot be written.
pub(crate) fn write(
    all: &[MatrixRecord],
    directory: &Path,
) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    if !all.iter().any(is_of) {
        return Ok(Vec::new());
    }
    let all = all.iter();
    let matrices = all.filter(|matrix| is_of(matrix) || matrix.name == WEIGHTS);
    let matrices: Vec<_> = matrices.cloned().collect();
    let path = directory.join(format!("{NAME}.md"));
    let picture = path.with_extension("svg");
    fs::write(&path, page(&matrices, &variants(UNSEEN)))?;
    draw(&matrices, &picture)?;
    let mut written = vec![path, picture];
    if let Some(matrix) = matrices.iter().find(|matrix| matrix.name == VULTURE) {
        let path = directory.join("vulture.md");
        fs::write(&path, vulture(matrix))?;
        written.push(path);
    }
    Ok(written)
}

/// How the tables are to be read.
const READING: &str = include_str!("../../text/yielding-reading.md");

/// The page, with the variants of [`UNSEEN`].
fn page(matrices: &[MatrixRecord], unseen: &[Variant]) -> String {
    let runs = Runs::of(matrices);
    let others = matrices.iter().filter(|matrix| matrix.name == UNSEEN);
    let names = others.flat_map(|matrix| &matrix.runs);
    let names = distinct(names.filter_map(|run| run.variant.as_deref()));
    let subjects = subjects(&runs, &names);
    let tables = subjects.iter().map(Subject::section);
    let tables: String = tables.collect();
    let body = [READING, &overview(&subjects), &tables].concat();
    framed(NAME, &body, matrices, unseen)
}

/// The page on Vulture's own rules beside its report.
fn vulture(matrix: &MatrixRecord) -> String {
    let matrices = std::slice::from_ref(matrix);
    let runs = Runs::of(matrices);
    let subjects = subjects(&runs, &[]).into_iter();
    let subjects = subjects.filter_map(Subject::beside_the_report);
    let tables: String = subjects.map(|it| it.section()).collect();
    let text = include_str!("../../text/vulture.md");
    framed("vulture", &[text, &tables].concat(), matrices, &[])
}

/// A page of this name on these matrices, with what all pages have around their own.
fn framed(name: &str, body: &str, matrices: &[MatrixRecord], unseen: &[Variant]) -> String {
    let files = matrices
        .iter()
        .map(|matrix| format!("{}.jsonl", matrix.name));
    format!(
        "# {name}\n\n<!-- Made by `lab report` from {}, where every run is. -->\n\n{body}\
         \n## Scenarios\n\n{}{}\n## How\n{}",
        files.collect::<Vec<_>>().join(", "),
        scenarios(matrices, unseen),
        failures(matrices),
        matrices.iter().map(measured).collect::<String>()
    )
}

fn scenarios(matrices: &[MatrixRecord], unseen: &[Variant]) -> String {
    let mut text = String::new();
    let mut known = Vec::new();
    for matrix in matrices.iter().filter(|matrix| is_of(matrix)) {
        let variants = if matrix.name == UNSEEN { unseen } else { &[] };
        for (name, scenario) in &matrix.scenarios {
            // On other paths it is another scenario.
            if !known.contains(&name) || is_elsewhere(matrix, name, variants) {
                known.push(name);
                text.push_str(&line(matrix, (name, scenario), variants));
            }
        }
    }
    text
}

/// Runs that failed, under a heading if there are any.
fn failures(matrices: &[MatrixRecord]) -> String {
    let mut lines = String::new();
    for matrix in matrices.iter().filter(|matrix| is_of(matrix)) {
        for name in matrix.scenarios.keys() {
            let failed = rows(matrix, name)
                .iter()
                .flat_map(failed)
                .collect::<Vec<_>>();
            lines.extend(
                failed
                    .into_iter()
                    .map(|words| format!("- {name}: {words}\n")),
            );
        }
    }
    match lines.is_empty() {
        true => lines,
        false => format!("\n## Failed\n\n{lines}"),
    }
}

/// A column: a contender, and the congestion control of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Column<'a> {
    contender: &'a str,
    server: Option<&'a str>,
}

impl<'a> Column<'a> {
    /// Those that were measured there, in the order of first appearance.
    fn all(runs: &Runs<'a>, places: &[Place]) -> Vec<Self> {
        let all = runs.iter().filter(|run| run.contender != ALONE);
        let all = all.filter(|run| places.iter().any(|place| place.is_of(run)));
        distinct(all.map(|run| Self {
            contender: &run.contender,
            server: run.congestion_control.as_deref(),
        }))
    }

    /// What people call it.
    fn name(self) -> String {
        format!("{}, {}", title(self.contender), or_nothing(self.server))
    }

    /// A figure of each of its runs at a place that has it.
    fn values(self, place: &Place, figure: Figure, runs: &Runs<'_>) -> Vec<f64> {
        runs.values(
            |run| {
                run.contender == self.contender
                    && run.congestion_control.as_deref() == self.server
                    && place.is_of(run)
            },
            figure,
        )
    }

    /// What a claim is on, over the seeds; `None` where nothing was measured.
    fn found(self, claim: &Claim, runs: &Runs<'_>) -> Option<Found> {
        Found::of(&self.values(&claim.place(), claim.measure.figure(), runs))
    }
}

/// A figure, and of how many seeds it is.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Found {
    spread: Spread,
    seeds: usize,
}

impl Found {
    /// Of a value for each seed; `None` without any.
    fn of(values: &[f64]) -> Option<Self> {
        Some(Self {
            spread: Spread::of(values)?,
            seeds: values.len(),
        })
    }
}

/// One subject of the page.
struct Subject<'a> {
    title: String,
    columns: Vec<Column<'a>>,
    lines: Vec<Line>,
}

/// One figure of all columns.
struct Line {
    what: String,
    bound: Option<Bound>,
    paper: String,
    digits: usize,
    /// By the columns of the subject.
    cells: Vec<Option<Found>>,
}

impl<'a> Subject<'a> {
    /// Of what was measured.
    fn of(title: &str, claims: &[Claim], runs: &Runs<'a>) -> Self {
        let places: Vec<_> = claims.iter().map(Claim::place).collect();
        let mut subject = Self {
            title: title.to_owned(),
            columns: Column::all(runs, &places),
            lines: Vec::new(),
        };
        let lines = claims.iter().map(|claim| {
            let cells = subject.columns.iter();
            claim.line(cells.map(|column| column.found(claim, runs)).collect())
        });
        let lines: Vec<_> = lines.collect();
        subject.extend(lines);
        subject
    }

    /// With more lines. Figures that nobody has are left out.
    fn extend(&mut self, lines: impl IntoIterator<Item = Line>) {
        let lines = lines.into_iter();
        self.lines
            .extend(lines.filter(|line| line.cells.iter().any(Option::is_some)));
    }

    /// How many bounds hold, of how many that were measured, in a column.
    fn held(&self, column: &Column<'_>) -> Option<String> {
        let column = self.columns.iter().position(|one| one == column)?;
        let verdicts = self.lines.iter().map(|line| line.verdict(column));
        Verdict::held(&verdicts.collect::<Vec<_>>())
    }

    /// What Vulture's report has too, without bounds, which are those of the project's own
    /// rules.
    fn beside_the_report(mut self) -> Option<Self> {
        self.lines.retain(|line| !line.paper.is_empty());
        for line in &mut self.lines {
            line.bound = None;
        }
        (!self.lines.is_empty()).then_some(self)
    }

    fn section(&self) -> String {
        let has_bound = self.lines.iter().any(|line| line.bound.is_some());
        let has_paper = self.lines.iter().any(|line| !line.paper.is_empty());
        let table = Table::over(&self.lines)
            .column("", |line| line.what.clone())
            .column_if(has_bound, "bound", |line| {
                let bound = line.bound.map(|bound| bound.words(line.digits.max(1) + 1));
                bound.unwrap_or_default()
            })
            .column_if(has_paper, "Vulture's report", |line| line.paper.clone())
            .columns(
                self.columns.iter().enumerate(),
                |(_, column)| column.name(),
                |line, (number, _)| line.cell(*number),
            );
        format!("\n## {}\n\n{table}", self.title)
    }
}

impl Line {
    /// Whether the bound holds.
    fn verdict(&self, column: usize) -> Verdict {
        let Some((bound, found)) = self.bound.zip(self.cells[column]) else {
            return Verdict::NoBound;
        };
        let crosses = bound.is_crossed_by(found.spread);
        Verdict::of_seeds(Some(bound.holds(found.spread)), found.seeds, crosses)
    }

    fn cell(&self, column: usize) -> String {
        let spread = self.cells[column].map(|found| found.spread);
        self.verdict(column).marked(&shown(spread, self.digits))
    }
}

/// How many bounds of each subject hold, in each column.
fn overview(subjects: &[Subject<'_>]) -> String {
    let columns = distinct(subjects.iter().flat_map(|subject| &subject.columns));
    let table = Table::over(subjects)
        .column("", |subject| subject.title.clone())
        .columns(
            columns,
            |column| column.name(),
            |subject, column| or_nothing(subject.held(column)),
        );
    format!("\n## What holds\n\n{table}")
}

#[cfg(test)]
mod tests;
