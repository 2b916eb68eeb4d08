//! Many runs beside each other: tables for people, and a picture that shows
//! who takes what from whom. Knows summaries only, no samples.

mod chart;
mod deadlines;
mod fairbat;
mod general;
mod overview;
mod select;
mod senders;
mod terminal;
mod verdict;
mod words;
mod yielding;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

pub use crate::report::general::markdown;
pub use crate::report::overview::overview;
use crate::report::senders::Kind;
pub use crate::report::terminal::terminal;
use crate::report::yielding::{NAME, UNSEEN};
use crate::results::{ALONE, MatrixRecord, RunSummary};
use crate::sender_cost;

/// The contender that is ours, to which curl is compared.
const OURS: &str = "fairbat";

/// The contender that is ours and pushes.
const PUSHING: &str = "agent";

impl MatrixRecord {
    /// Whether there is anybody to compare with [`ALONE`].
    fn has_contenders(&self) -> bool {
        self.runs.iter().any(|run| run.contender != ALONE)
    }

    /// Whether there is a foreground alone to compare with.
    fn has_alone(&self) -> bool {
        self.runs.iter().any(|run| run.contender == ALONE)
    }

    /// Whether deadlines are what it is about.
    fn is_about_deadlines(&self) -> bool {
        let mut scenarios = self.scenarios.values();
        !self.scenarios.is_empty()
            && scenarios.all(|scenario| scenario.background.window_s().is_some())
    }

    /// Whether what varies is the weight.
    fn is_about_weights(&self) -> bool {
        !self.runs.is_empty() && self.runs.iter().all(|run| run.weight.is_some())
    }
}

/// Makes the table and the picture of each matrix of a directory, and returns
/// where they are; likewise the page of [`sender_cost`], if that was measured.
/// Other files are left alone.
///
/// # Errors
/// When one cannot be read or written.
pub fn write_all(directory: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut written = Vec::new();
    let all = MatrixRecord::read_all(directory)?;
    let apart = |matrix: &&MatrixRecord| yielding::is_of(matrix) || fairbat::is_of(matrix);
    for matrix in all.iter().filter(|matrix| !apart(matrix)) {
        let page = directory.join(format!("{}.md", matrix.name));
        let picture = page.with_extension("svg");
        if let Some(kind) = Kind::of(matrix) {
            let variants = words::variants(&matrix.name);
            fs::write(&page, senders::page(kind, matrix, &variants))?;
            if senders::has_picture(kind) {
                senders::draw(kind, matrix, &picture)?;
                written.push(picture);
            }
        } else if matrix.is_about_deadlines() {
            fs::write(&page, deadlines::page(matrix))?;
            if deadlines::has_picture(matrix) {
                deadlines::draw(matrix, &picture)?;
                written.push(picture);
            }
        } else if matrix.is_about_weights() {
            fs::write(&page, general::page(matrix))?;
        } else {
            fs::write(&page, markdown(matrix))?;
            if matrix.has_contenders() {
                overview(matrix, &picture)?;
                written.push(picture);
            }
        }
        written.push(page);
    }
    if all.iter().any(yielding::is_of) {
        let matrices = yielding::relevant(&all);
        let page = directory.join(format!("{NAME}.md"));
        let picture = page.with_extension("svg");
        let unseen = words::variants(UNSEEN);
        fs::write(&page, yielding::page(&matrices, &unseen))?;
        yielding::draw(&matrices, &picture)?;
        written.extend([page, picture]);
    }
    written.extend(fairbat::write(&all, directory)?);
    written.extend(sender_cost::write_page(directory)?);
    if written.is_empty() {
        return Err(format!(
            "there are no results of matrices in {}",
            directory.display()
        )
        .into());
    }
    written.sort();
    Ok(written)
}

#[cfg(test)]
pub(crate) mod tests;
