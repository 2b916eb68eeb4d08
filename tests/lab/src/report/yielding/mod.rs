//! All matrices about yielding as one page: what is required, what is measured,
//! and what Vulture's report says of the same.

mod lever;
mod lines;
mod picture;
mod pressed;
mod runs;
mod table;

pub(super) use self::picture::draw;
use self::runs::Runs;
use self::table::{Table, overview};
use super::rows::rows;
use super::words::{failed, measured};
use super::{MatrixRecord, paths};
use crate::matrix::Variant;

/// What the page and its picture are called, without suffix; names of matrices
/// that have no page of their own begin with it.
pub(super) const NAME: &str = "yielding";

/// The matrix of other paths, whose variants these are.
pub(super) const UNSEEN: &str = "yielding-unseen";

/// Matrices with pages of their own that have figures for this one.
const OTHERS: [&str; 2] = ["lever", "deadlines"];

/// Whether a matrix has no other page.
pub(super) fn is_of(matrix: &MatrixRecord) -> bool {
    matrix.name.starts_with(NAME)
}

/// Those that the page is made of, of all there are.
pub(super) fn relevant(all: &[MatrixRecord]) -> Vec<MatrixRecord> {
    let those = all
        .iter()
        .filter(|matrix| is_of(matrix) || OTHERS.contains(&matrix.name.as_str()));
    those.cloned().collect()
}

/// The page, with the variants of [`UNSEEN`].
pub(super) fn page(matrices: &[MatrixRecord], unseen: &[Variant]) -> String {
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
            if !known.contains(&name) || paths::is_elsewhere(matrix, name, variants) {
                known.push(name);
                text.push_str(&paths::line(matrix, (name, scenario), variants));
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
const READING: &str = "What downloads that yield leave to others, and what they make of the \
    rest. A figure is the median over the seeds (least\u{2013}most); **bold** where the bound does \
    not hold. The servers are unmodified, with CUBIC or BBR. `observed` is with the observer that \
    `fairbat setup` makes, the others are without privilege; Vulture is its policy in the same \
    program, and beside it stands what its report says. Relative is relative to the foreground \
    alone with the same seed. What others leave is the link without all of their packets; pauses \
    count as a whole. A moment is found by means over half a second that begin with it, and what \
    never came counts with the time that was left for it.\n\n\
    ![What is used of pauses and taken in turns, and what a weight takes](yielding.svg)\n";

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
    tables.push(lever::table(&runs));
    tables.push(pressed::table(&runs));
    tables.retain(|table| !table.is_empty());
    tables
}

#[cfg(test)]
mod tests;
