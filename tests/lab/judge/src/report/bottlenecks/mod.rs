//! All matrices about bottlenecks as one page: what downloads that yield leave to
//! others at each, what they make of the rest, and whether that is as it must be.

mod beside_tcp;
mod cell;
mod figures;
mod picture;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use crate::matrix::Variant;
use crate::report::bottlenecks::cell::Cell;
use crate::report::bottlenecks::figures::{CURL, Figure, Judged, Subject, UNTUNED};
use crate::report::bottlenecks::picture::draw;
use crate::report::select::{FILLED, Runs, distinct};
use crate::report::words::{all_failures, measured, title, variants};
use crate::results::{ALONE, MatrixRecord};
use crate::verdict::{Bound, Verdict};
use lab_run::statistics::Spread;
use lab_run::table::{Table, or_nothing, shown};

/// What the page and its picture are called, without suffix; names of matrices
/// that have no page of their own begin with it. It is that of the matrix of chosen
/// bottlenecks, too.
const NAME: &str = "bottlenecks";

/// The matrix of bottlenecks that a seed draws.
const UNSEEN: &str = "bottlenecks-unseen";

/// A line says of no more bottlenecks than this what is harmed there.
const MOST_EXPLAINED: usize = 15;

/// How the page is to be read.
const READING: &str = include_str!("../../text/bottlenecks-reading.md");

/// Whether a matrix has no other page.
pub(crate) fn is_of(matrix: &MatrixRecord) -> bool {
    matrix.name.starts_with(NAME)
}

/// Makes the page and its picture if there is anything for it, and returns where they
/// are.
///
/// # Errors
/// When one cannot be written.
pub(crate) fn write(
    all: &[MatrixRecord],
    directory: &Path,
) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let matrices: Vec<_> = all.iter().filter(|matrix| is_of(matrix)).cloned().collect();
    if matrices.is_empty() {
        return Ok(Vec::new());
    }
    let path = directory.join(format!("{NAME}.md"));
    let picture = path.with_extension("svg");
    let (chosen, drawn) = (cells(&variants(NAME)), cells(&variants(UNSEEN)));
    fs::write(&path, page(&matrices, &chosen, &drawn))?;
    let seen = || matrices.iter().filter(|it| it.name != UNSEEN);
    // Other servers are in the tables.
    let mut shown = subjects(seen());
    shown.retain(|one| one.server.is_none_or(|server| server == FILLED));
    draw(&Runs::of(seen()), &shown, &chosen, &picture)?;
    Ok(vec![path, picture])
}

fn cells(variants: &[Variant]) -> Vec<Cell> {
    variants.iter().filter_map(Cell::of).collect()
}

/// The page, with the bottlenecks that were chosen and those that were drawn.
fn page(matrices: &[MatrixRecord], chosen: &[Cell], drawn: &[Cell]) -> String {
    let files = matrices.iter().map(|it| format!("{}.jsonl", it.name));
    let is_drawn = |it: &&MatrixRecord| it.name == UNSEEN;
    let seen = || matrices.iter().filter(|it| !is_drawn(it));
    let main = subjects(seen().filter(|it| it.name == NAME));
    let mut more = subjects(seen());
    more.retain(|one| !main.contains(one));
    let sections = [
        Section::of("The bottlenecks", seen(), main, chosen, 0.0),
        Section::of("More ways to yield", seen(), more, chosen, 0.0),
        Section::of(
            "Drawn by a seed, within 10 % of the bounds",
            matrices.iter().filter(is_drawn),
            subjects(matrices.iter().filter(is_drawn)),
            drawn,
            UNTUNED,
        ),
    ];
    let sections: Vec<_> = sections.into_iter().filter(|it| !it.is_empty()).collect();
    let all = Section::of("", seen(), Vec::new(), chosen, 0.0);
    format!(
        "# {NAME}\n\n<!-- Made by `lab report` from {}, where every run is. -->\n\n{READING}{}{}{}\
         \n## Why these\n\n{}{}\n## How\n{}",
        files.collect::<Vec<_>>().join(", "),
        sections.iter().map(Section::overview).collect::<String>(),
        beside_tcp::comparison(&all),
        sections.iter().map(Section::tables).collect::<String>(),
        reasons(chosen),
        matrices.iter().map(all_failures).collect::<String>(),
        matrices.iter().map(measured).collect::<String>()
    )
}

/// Why each bottleneck is there.
fn reasons(cells: &[Cell]) -> String {
    let lines = cells.iter();
    lines
        .map(|cell| format!("- {}: {}\n", cell.name, cell.why))
        .collect()
}

/// All contenders but [`ALONE`], in the order of first appearance.
fn subjects<'a>(matrices: impl Iterator<Item = &'a MatrixRecord>) -> Vec<Subject<'a>> {
    let runs = matrices.flat_map(|matrix| &matrix.runs);
    distinct(
        runs.filter(|run| run.contender != ALONE)
            .map(|run| Subject {
                contender: &run.contender,
                server: run.congestion_control.as_deref(),
            }),
    )
}

impl Subject<'_> {
    /// What people call it.
    fn name(self) -> String {
        match self.server {
            Some(server) => format!("{}, {server}", title(self.contender)),
            None => title(self.contender).to_owned(),
        }
    }
}

/// Contenders at bottlenecks.
struct Section<'a> {
    title: &'static str,
    subjects: Vec<Subject<'a>>,
    runs: Runs<'a>,
    /// Those at which anything was measured.
    cells: Vec<&'a Cell>,
    /// How much more room there is than the bounds say, in parts of them.
    room: f64,
}

impl<'a> Section<'a> {
    fn of(
        title: &'static str,
        matrices: impl Iterator<Item = &'a MatrixRecord>,
        subjects: Vec<Subject<'a>>,
        cells: &'a [Cell],
        room: f64,
    ) -> Self {
        let runs = Runs::of(matrices);
        let has = |cell: &&Cell| {
            let mut names = runs.iter().filter_map(|run| run.variant.as_deref());
            names.any(|name| name == cell.name)
        };
        Self {
            cells: cells.iter().filter(has).collect(),
            title,
            subjects,
            runs,
            room,
        }
    }

    fn is_empty(&self) -> bool {
        self.subjects.is_empty() || self.cells.is_empty()
    }

    fn judged(&self, figure: Figure, subject: Subject<'_>, cell: &Cell) -> Option<Judged> {
        figure.judged(subject, cell, &self.runs, self.room)
    }

    /// Each figure in the middle of all bottlenecks and at the worst of them. What others
    /// keep is told without fair queueing as well: no law of delays sees them there.
    fn summary(&self) -> Table<(Figure, bool)> {
        let all = Figure::ALL.iter().flat_map(|(_, figure)| {
            let is_kept = matches!(figure, Figure::Greedy | Figure::Stream);
            std::iter::once((*figure, false)).chain(is_kept.then_some((*figure, true)))
        });
        Table::over(all)
            .column("", |(figure, is_without_fair)| match is_without_fair {
                true => format!("{}, without fair queueing", figure.title()),
                false => figure.title().to_owned(),
            })
            .columns(
                self.subjects.iter().copied(),
                |subject| subject.name(),
                |(figure, is_without_fair), subject| {
                    let cells = self.cells.iter();
                    let cells = cells.filter(|cell| !(*is_without_fair && cell.hides_others()));
                    let all = cells.filter_map(|cell| self.judged(*figure, *subject, cell));
                    let all: Vec<_> = all.map(|one| one.spread.median).collect();
                    or_nothing(Spread::of(&all).map(|it| {
                        let worst = match figure.is_to_be_high() {
                            true => it.least,
                            false => it.most,
                        };
                        format!(
                            "{:.*} ({worst:.*})",
                            figure.digits(),
                            it.median,
                            figure.digits()
                        )
                    }))
                },
            )
    }

    /// What each figure is in the middle, and at how many bottlenecks each line holds.
    fn overview(&self) -> String {
        let table = Table::over(Figure::ALL)
            .column("line", |(line, _)| (*line).to_owned())
            .column("", |(_, figure)| figure.title().to_owned())
            .columns(
                self.subjects.iter().copied(),
                |subject| subject.name(),
                |(_, figure), subject| {
                    let all = self.cells.iter();
                    let all = all.filter_map(|cell| self.judged(*figure, *subject, cell));
                    or_nothing(Verdict::held(
                        &all.map(|one| one.verdict).collect::<Vec<_>>(),
                    ))
                },
            );
        let worse = self.subjects.iter().filter(|one| one.contender != CURL);
        let worse = worse.map(|subject| self.worse_than_curl(*subject));
        let (title, many) = (self.title, self.cells.len());
        format!(
            "\n## {title}: the median of up to {many} (the worst)\n\n{}\
             \n## {title}: at how many of {many} each line holds\n\n{table}\n{}",
            self.summary(),
            worse.collect::<String>()
        )
    }

    /// Where one does more harm than curl.
    fn worse_than_curl(&self, subject: Subject<'_>) -> String {
        let mut places = Vec::new();
        let mut compared = 0;
        for cell in &self.cells {
            let judged: Vec<_> = Figure::HARMS
                .into_iter()
                .filter_map(|it| Some((it, it.is_worse_than_curl(subject, cell, &self.runs)?)))
                .collect();
            compared += usize::from(!judged.is_empty());
            let harmed = judged.iter().filter(|(_, is_worse)| *is_worse);
            let harmed: Vec<_> = harmed.map(|(figure, _)| figure.harmed()).collect();
            if !harmed.is_empty() {
                places.push((cell.name.as_str(), harmed.join(", ")));
            }
        }
        let (name, many) = (subject.name(), places.len());
        let places = places.iter().map(|(cell, harmed)| match many {
            ..=MOST_EXPLAINED => format!("{cell} ({harmed})"),
            _ => (*cell).to_owned(),
        });
        match (compared, many) {
            (0, _) => format!("- {name} was not measured beside curl.\n"),
            (_, 0) => format!("- {name} does more harm than curl nowhere.\n"),
            _ => format!(
                "- {name} does **more harm than curl** at {many} of {compared} bottlenecks: {}.\n",
                places.collect::<Vec<_>>().join("; ")
            ),
        }
    }

    /// Every figure at every bottleneck.
    fn tables(&self) -> String {
        let tables = Figure::ALL.iter().map(|(line, figure)| {
            let is_measured = |cell: &&&Cell| {
                let mut subjects = self.subjects.iter();
                subjects.any(|one| self.judged(*figure, *one, cell).is_some())
            };
            let cells: Vec<_> = self.cells.iter().filter(is_measured).collect();
            if cells.is_empty() {
                return String::new();
            }
            let table = Table::over(cells)
                .column("", |cell| cell.name.clone())
                .column("bound", |cell| {
                    let judged = |one| self.judged(*figure, one, cell)?.bound;
                    let bounds: Vec<Bound> =
                        distinct(self.subjects.iter().filter_map(|one| judged(*one)));
                    let words = bounds.iter().map(|bound| bound.words(figure.digits()));
                    words.collect::<Vec<_>>().join(", ")
                })
                .columns(
                    self.subjects.iter().copied(),
                    |subject| subject.name(),
                    |cell, subject| {
                        let judged = self.judged(*figure, *subject, cell);
                        or_nothing(judged.map(|one| {
                            let text = shown(Some(one.spread), figure.digits());
                            one.verdict.marked(&text)
                        }))
                    },
                );
            format!("\n### {line}: {}\n\n{table}", figure.title())
        });
        format!("\n## {}\n{}", self.title, tables.collect::<String>())
    }
}

#[cfg(test)]
mod tests;
