//! A table of figures beside their bounds, a column for everybody who was
//! measured.

use std::fmt::Write;

use super::super::bound::Bound;
use super::super::words::{NOTHING, cell, server, shown, title};
use super::lines::Line;
use super::runs::{Runs, Who};
use crate::statistics::Spread;

/// One subject.
pub(super) struct Table<'a> {
    pub(super) title: &'static str,
    pub(super) columns: Vec<Who<'a>>,
    pub(super) rows: Vec<Row>,
}

/// One figure of everybody.
pub(super) struct Row {
    pub(super) what: String,
    pub(super) bound: Option<Bound>,
    pub(super) paper: &'static str,
    pub(super) digits: usize,
    /// By the columns of the table.
    pub(super) cells: Vec<Option<Spread>>,
}

impl<'a> Table<'a> {
    /// Of what was measured; figures that nobody has are left out.
    pub(super) fn of(line: Line, runs: &Runs<'a>) -> Self {
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

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// How many bounds hold, of how many that were measured, in the column of
    /// this one; `None` if it has no figures with bounds here.
    pub(super) fn held(&self, who: Who<'_>) -> Option<(usize, usize)> {
        let column = self.columns.iter().position(|one| *one == who)?;
        let bounds = self.rows.iter().filter_map(|row| row.holds(column));
        let bounds: Vec<_> = bounds.collect();
        let held = bounds.iter().filter(|holds| **holds).count();
        (!bounds.is_empty()).then_some((held, bounds.len()))
    }

    /// As Markdown, with its heading.
    pub(super) fn markdown(&self) -> String {
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
    pub(super) fn name(self) -> String {
        format!("{}, {}", cell(title(self.contender)), server(self.server))
    }
}

/// How many bounds hold of each table, for everybody.
pub(super) fn overview(tables: &[Table<'_>]) -> String {
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
