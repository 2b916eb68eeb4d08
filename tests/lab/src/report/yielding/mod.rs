//! All matrices about yielding as one page: what is required, what is measured,
//! and what Vulture's report says of the same.

mod lines;
mod picture;

use std::fmt::Write;

use crate::matrix::Variant;
use crate::record::Summary;
use crate::report::select::rows;
use crate::report::verdict::Bound;
use crate::report::words;
use crate::report::words::{NOTHING, cell, failed, measured, server, shown, title};
use crate::report::yielding::lines::Line;
pub(crate) use crate::report::yielding::picture::draw;
use crate::report::{ALONE, MatrixRecord, RunSummary};
use crate::statistics::Spread;

/// What the page and its picture are called, without suffix; names of matrices
/// that have no page of their own begin with it.
pub(crate) const NAME: &str = "yielding";

/// The matrix of other paths, whose variants these are.
pub(crate) const UNSEEN: &str = "yielding-unseen";

/// Matrices with pages of their own that have figures for this one.
const OTHERS: [&str; 2] = ["lever", "deadlines"];

/// Whether a matrix has no other page.
pub(crate) fn is_of(matrix: &MatrixRecord) -> bool {
    matrix.name.starts_with(NAME)
}

/// Those that the page is made of, of all there are.
pub(crate) fn relevant(all: &[MatrixRecord]) -> Vec<MatrixRecord> {
    let those = all
        .iter()
        .filter(|matrix| is_of(matrix) || OTHERS.contains(&matrix.name.as_str()));
    those.cloned().collect()
}

/// The page, with the variants of [`UNSEEN`].
pub(crate) fn page(matrices: &[MatrixRecord], unseen: &[Variant]) -> String {
    let tables = tables(matrices);
    let files: Vec<_> = matrices
        .iter()
        .map(|matrix| format!("{}.jsonl", matrix.name))
        .collect();
    let mut text = format!(
        "# {NAME}\n\n<!-- Made by `lab report` from {}, where every run is. -->\n\n",
        files.join(", ")
    );
    text.push_str(READING);
    text.push_str(&overview(&tables));
    for table in &tables {
        text.push_str(&table.markdown());
    }
    text.push_str("\n## Scenarios\n\n");
    let own = matrices.iter().filter(|matrix| is_of(matrix));
    let mut known = Vec::new();
    for matrix in own {
        let variants = if matrix.name == UNSEEN { unseen } else { &[] };
        for (name, scenario) in &matrix.scenarios {
            // On other paths it is another scenario.
            if !known.contains(&name) || words::is_elsewhere(matrix, name, variants) {
                known.push(name);
                text.push_str(&words::line(matrix, (name, scenario), variants));
            }
        }
    }
    text.push_str(&failures(matrices));
    text.push_str("\n## How\n");
    for matrix in matrices {
        text.push_str(&measured(matrix));
    }
    text
}

/// Runs that failed, under a heading if there are any.
fn failures(matrices: &[MatrixRecord]) -> String {
    let own = matrices.iter().filter(|matrix| is_of(matrix));
    let lines = own.flat_map(|matrix| {
        let names = matrix.scenarios.keys();
        names.flat_map(|name| {
            let rows = rows(matrix, name);
            let failed = rows.iter().flat_map(failed);
            let lines = failed.map(|words| format!("- {name}: {words}\n"));
            lines.collect::<Vec<_>>()
        })
    });
    let lines: String = lines.collect();
    if lines.is_empty() {
        return lines;
    }
    format!("\n## Failed\n\n{lines}")
}

/// How the tables are to be read.
const READING: &str = include_str!("../../text/yielding-reading.md");

/// What was measured, in the order of the page.
fn tables(matrices: &[MatrixRecord]) -> Vec<Table<'_>> {
    let runs = Runs::of(matrices);
    let unseen = matrices.iter().filter(|matrix| matrix.name == UNSEEN);
    let mut variants = Vec::new();
    for variant in unseen
        .flat_map(|matrix| &matrix.runs)
        .filter_map(|run| run.variant.as_ref())
    {
        if !variants.contains(variant) {
            variants.push(variant.clone());
        }
    }
    let lines = lines::lines(&variants).into_iter();
    let mut tables: Vec<_> = lines.map(|line| Table::of(line, &runs)).collect();
    tables.push(lines::table(&runs));
    tables.push(lines::pressed_table(&runs));
    tables.retain(|table| !table.is_empty());
    tables
}

/// Who was measured: a contender, and the congestion control of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Who<'a> {
    pub(crate) contender: &'a str,
    pub(crate) server: Option<&'a str>,
}

/// What was measured: a scenario, in one of the ways to run it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Where {
    pub(crate) scenario: String,
    pub(crate) variant: Option<String>,
}

/// What is taken from a run.
#[derive(Clone, Copy)]
pub(crate) enum Measure {
    /// From its own figures.
    Own(fn(&Summary) -> Option<f64>),
    /// From its own and from those of the foreground alone.
    Alone(fn(&Summary, &Summary) -> Option<f64>),
    /// From its own and from those of the same in another variant.
    Beside(&'static str, fn(&Summary, &Summary) -> Option<f64>),
}

/// All runs that did not fail.
pub(crate) struct Runs<'a> {
    all: Vec<&'a RunSummary>,
}

impl<'a> Runs<'a> {
    pub(crate) fn of(matrices: &'a [MatrixRecord]) -> Self {
        let all = matrices.iter().flat_map(|matrix| &matrix.runs);
        Self {
            all: all.filter(|run| run.failure.is_none()).collect(),
        }
    }

    /// Who was measured there, in the order of first appearance.
    pub(crate) fn who<'b>(&self, places: impl Iterator<Item = &'b Where>) -> Vec<Who<'a>> {
        let places: Vec<_> = places.collect();
        let mut found = Vec::new();
        for run in &self.all {
            let who = who(run);
            let is_there = places.iter().any(|place| place.is_of(run));
            if is_there && run.contender != ALONE && !found.contains(&who) {
                found.push(who);
            }
        }
        found
    }

    /// A figure over the seeds; `None` where nothing was measured.
    pub(crate) fn spread(&self, place: &Where, who: Who<'_>, measure: Measure) -> Option<Spread> {
        Spread::of(&self.values(place, who, measure))
    }

    /// A figure of each run that has it.
    pub(crate) fn values(&self, place: &Where, who: Who<'_>, measure: Measure) -> Vec<f64> {
        let own = self.all.iter().filter(|run| place.is_of(run));
        let own = own.filter(|run| crate::report::yielding::who(run) == who);
        let figures = own.filter_map(|run| {
            let summary = &run.summary;
            match measure {
                Measure::Own(figure) => figure(summary),
                Measure::Alone(figure) => {
                    let alone = self.all.iter().find(|other| {
                        other.contender == ALONE && place.is_of(other) && other.seed == run.seed
                    });
                    figure(summary, &alone?.summary)
                }
                Measure::Beside(variant, figure) => {
                    let other = self.all.iter().find(|other| {
                        other.scenario == run.scenario
                            && other.variant.as_deref() == Some(variant)
                            && crate::report::yielding::who(other) == who
                            && other.seed == run.seed
                    });
                    figure(summary, &other?.summary)
                }
            }
        });
        figures.collect()
    }
}

impl Where {
    /// A scenario as it stands.
    pub(crate) fn plain(scenario: &str) -> Self {
        Self {
            scenario: scenario.to_owned(),
            variant: None,
        }
    }

    /// A scenario in one of several variants.
    pub(crate) fn varied(scenario: &str, variant: &str) -> Self {
        Self {
            variant: Some(variant.to_owned()),
            ..Self::plain(scenario)
        }
    }

    fn is_of(&self, run: &RunSummary) -> bool {
        self.scenario == run.scenario && self.variant == run.variant
    }
}

fn who(run: &RunSummary) -> Who<'_> {
    Who {
        contender: &run.contender,
        server: run.congestion_control.as_deref(),
    }
}

#[cfg(test)]
mod runs_tests {
    use super::*;
    use crate::report::tests::synthetic::{matrix, run};

    #[test]
    fn figures_are_of_the_same_seed_and_the_same_way() {
        let varied = |seed, variant: &str, kept| {
            let mut run = run("constant", "curl", seed, &[kept]);
            run.variant = Some(variant.to_owned());
            run
        };
        let mut first = matrix();
        first.runs = vec![
            run("constant", "none", 1, &[6.0]),
            run("constant", "none", 2, &[5.0]),
            run("constant", "curl", 1, &[3.0]),
            run("constant", "curl", 2, &[5.0]),
            run("constant", "curl", 3, &[1.0]),
        ];
        let mut second = matrix();
        second.runs = vec![varied(1, "w 1", 4.0), varied(1, "w 0.02", 5.0)];
        second.runs.push(RunSummary {
            failure: Some("no route".to_owned()),
            ..varied(2, "w 0.02", 9.0)
        });
        let matrices = [first, second];
        let runs = Runs::of(&matrices);
        let place = Where::plain("constant");
        let all = runs.who([&place, &Where::plain("web")].into_iter());
        let curl = Who {
            contender: "curl",
            server: Some("cubic"),
        };
        assert_eq!(all, [curl]);
        let goodput = |it: &Summary| Some(it.foreground_together_mbit);
        let spread = runs.spread(&place, curl, Measure::Own(goodput)).unwrap();
        assert_eq!((spread.least, spread.most), (1.0, 5.0));
        let kept = |it: &Summary, other: &Summary| {
            Some(it.foreground_together_mbit / other.foreground_together_mbit)
        };
        let spread = runs.spread(&place, curl, Measure::Alone(kept)).unwrap();
        assert_eq!((spread.least, spread.most), (0.5, 1.0));
        let place = Where::varied("constant", "w 0.02");
        let spread = runs.spread(&place, curl, Measure::Beside("w 1", kept));
        assert_eq!(spread.unwrap().median, 1.25);
        assert_eq!(runs.spread(&place, curl, Measure::Alone(kept)), None);
    }
}

/// One subject.
pub(crate) struct Table<'a> {
    pub(crate) title: &'static str,
    pub(crate) columns: Vec<Who<'a>>,
    pub(crate) rows: Vec<Row>,
}

/// One figure of everybody.
pub(crate) struct Row {
    pub(crate) what: String,
    pub(crate) bound: Option<Bound>,
    pub(crate) paper: &'static str,
    pub(crate) digits: usize,
    /// By the columns of the table.
    pub(crate) cells: Vec<Option<Spread>>,
}

impl<'a> Table<'a> {
    /// Of what was measured; figures that nobody has are left out.
    pub(crate) fn of(line: Line, runs: &Runs<'a>) -> Self {
        let columns = runs.who(line.figures.iter().map(|figure| &figure.place));
        let rows = line.figures.into_iter().map(|figure| {
            let cells = columns.iter();
            let cells = cells.map(|who| runs.spread(&figure.place, *who, figure.measure));
            Row {
                cells: cells.collect(),
                what: figure.what,
                bound: figure.bound,
                paper: figure.paper,
                digits: figure.digits,
            }
        });
        let mut rows: Vec<_> = rows.collect();
        rows.retain(|row| row.cells.iter().any(Option::is_some));
        Self {
            title: line.title,
            columns,
            rows,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// How many bounds hold, of how many that were measured, in the column of
    /// this one; `None` if it has no figures with bounds here.
    pub(crate) fn held(&self, who: Who<'_>) -> Option<(usize, usize)> {
        let column = self.columns.iter().position(|one| *one == who)?;
        let bounds = self.rows.iter().filter_map(|row| row.holds(column));
        let bounds: Vec<_> = bounds.collect();
        let held = bounds.iter().filter(|holds| **holds).count();
        (!bounds.is_empty()).then_some((held, bounds.len()))
    }

    /// As Markdown, with its heading.
    pub(crate) fn markdown(&self) -> String {
        let has_paper = self.rows.iter().any(|row| !row.paper.is_empty());
        let paper = |words: &str| {
            if has_paper {
                format!(" {words} |")
            } else {
                String::new()
            }
        };
        let names: Vec<_> = self.columns.iter().map(|who| who.name()).collect();
        let dashes = "---|".repeat(names.len() + 2 + usize::from(has_paper));
        let mut text = format!(
            "\n## {}\n\n| | bound |{} {} |\n|{dashes}\n",
            self.title,
            paper("Vulture's report"),
            names.join(" | ")
        );
        for row in &self.rows {
            let cells = (0..row.cells.len()).map(|column| row.cell(column));
            let bound = row.bound.map(|bound| bound.words(row.digits.max(1) + 1));
            let _ = writeln!(
                text,
                "| {} | {} |{} {} |",
                row.what,
                bound.unwrap_or_default(),
                paper(row.paper),
                cells.collect::<Vec<_>>().join(" | ")
            );
        }
        text
    }
}

impl Row {
    /// Whether the bound holds; `None` without a bound or a figure.
    fn holds(&self, column: usize) -> Option<bool> {
        Some(self.bound?.holds(self.cells[column]?))
    }

    fn cell(&self, column: usize) -> String {
        let text = shown(self.cells[column], self.digits);
        if self.holds(column) == Some(false) {
            return format!("**{text}**");
        }
        text
    }
}

impl Who<'_> {
    /// What people call it.
    pub(crate) fn name(self) -> String {
        format!("{}, {}", cell(title(self.contender)), server(self.server))
    }
}

/// How many bounds hold of each table, for everybody.
pub(crate) fn overview(tables: &[Table<'_>]) -> String {
    let mut everybody: Vec<Who<'_>> = Vec::new();
    for who in tables.iter().flat_map(|table| &table.columns) {
        if !everybody.contains(who) {
            everybody.push(*who);
        }
    }
    let names: Vec<_> = everybody.iter().map(|who| who.name()).collect();
    let dashes = "---|".repeat(names.len() + 1);
    let mut text = format!(
        "\n## What holds\n\n| | {} |\n|{dashes}\n",
        names.join(" | ")
    );
    for table in tables {
        let cells = everybody.iter().map(|who| match table.held(*who) {
            None => NOTHING.to_owned(),
            Some((held, all)) if held == all => format!("{held} of {all}"),
            Some((held, all)) => format!("**{held} of {all}**"),
        });
        let cells: Vec<_> = cells.collect();
        let _ = writeln!(text, "| {} | {} |", table.title, cells.join(" | "));
    }
    text
}

#[cfg(test)]
mod tests;
