//! Many runs beside each other: tables for people, and a picture that shows
//! who takes what from whom. Knows summaries only, no samples.

mod bound;
mod colors;
mod deadlines;
mod fairbat;
mod grid;
mod harm;
mod markdown;
mod overview;
mod paths;
mod place;
mod rows;
mod senders;
mod terminal;
mod verdict;
mod weights;
mod words;
mod yielding;

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use self::markdown::markdown;
pub use self::overview::overview;
pub use self::terminal::terminal;
use crate::record::{Provenance, Summary};
use crate::scenario::{DeadlineController, Scenario};
use crate::sender_cost;

/// The contender that does nothing, to which the others are compared.
pub const ALONE: &str = "none";

/// The contender that is ours, to which curl is compared.
const OURS: &str = "fairbat";

/// The contender that is ours and pushes.
const PUSHING: &str = "agent";

/// Seeds of each contender in each scenario.
pub type Planned = BTreeMap<String, BTreeMap<String, BTreeSet<u64>>>;

/// All runs of a matrix of scenarios, contenders and seeds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MatrixRecord {
    /// Name of the matrix, and of its file without `.json`.
    pub name: String,
    /// What it is to show, for people; a line or a paragraph.
    pub description: String,
    /// Where and how it was measured.
    pub provenance: Provenance,
    /// The scenarios by name, as they were run.
    pub scenarios: BTreeMap<String, Scenario>,
    /// Seeds that were to be run, by the names of scenario and contender, where not
    /// all have the same.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub planned: Planned,
    /// The runs. Tables keep the order in which contenders first appear,
    /// after [`ALONE`].
    pub runs: Vec<RunSummary>,
}

impl MatrixRecord {
    /// Writes it to its file; never leaves half of one, however it ends.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, file: &Path) -> Result<(), Box<dyn Error>> {
        let unfinished = file.with_extension("json.part");
        fs::write(&unfinished, serde_json::to_vec_pretty(self)?)?;
        fs::rename(unfinished, file)?;
        Ok(())
    }

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

/// One run of a matrix.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// Name of the scenario.
    pub scenario: String,
    /// What the background was.
    pub contender: String,
    /// Congestion control of the server that sends; `None` for contenders
    /// that do not heed it.
    pub congestion_control: Option<String>,
    /// What was different in how it was run, if anything was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// The least weight of the background's connections, if it was varied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<f64>,
    /// CDG's back-off scale, ms, if it was varied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub g_ms: Option<f64>,
    /// What made the weight of a deadline, if it was varied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<DeadlineController>,
    /// Seed of everything random.
    pub seed: u64,
    /// The figures.
    pub summary: Summary,
    /// What went wrong, for people. The figures of such a run are not
    /// compared with those of others.
    pub failure: Option<String>,
}

/// Makes the table and the picture of each matrix of a directory, and returns
/// where they are; likewise the page of [`sender_cost`], if that was measured.
/// Other files are left alone.
///
/// # Errors
/// When one cannot be read or written.
pub fn write_all(directory: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut written = Vec::new();
    let all = read_all(directory)?;
    let apart = |matrix: &&MatrixRecord| yielding::is_of(matrix) || fairbat::is_of(matrix);
    for matrix in all.iter().filter(|matrix| !apart(matrix)) {
        let page = directory.join(format!("{}.md", matrix.name));
        let picture = page.with_extension("svg");
        if let Some(kind) = senders::Kind::of(matrix) {
            let variants = paths::variants(&matrix.name);
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
            fs::write(&page, weights::page(matrix))?;
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
        let page = directory.join(format!("{}.md", yielding::NAME));
        let picture = page.with_extension("svg");
        let unseen = paths::variants(yielding::UNSEEN);
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

/// All matrices of a directory, by the names of their files; other files are
/// left out.
fn read_all(directory: &Path) -> Result<Vec<MatrixRecord>, Box<dyn Error>> {
    let read = |error| format!("read {}: {error}", directory.display());
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory).map_err(read)? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            paths.push(path);
        }
    }
    paths.sort();
    let mut matrices = Vec::new();
    for path in paths {
        matrices.extend(serde_json::from_slice::<MatrixRecord>(&fs::read(&path)?).ok());
    }
    Ok(matrices)
}

#[cfg(test)]
mod synthetic;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_survives_its_file() {
        let mut matrix = synthetic::matrix();
        matrix.runs = vec![synthetic::run("constant", "curl", 1, &[4.5, 0.25])];
        let text = serde_json::to_string(&matrix).unwrap();
        let read: MatrixRecord = serde_json::from_str(&text).unwrap();
        assert_eq!(read.runs, matrix.runs);
        assert_eq!(read.scenarios, matrix.scenarios);
        assert_eq!(read.provenance, matrix.provenance);
    }
}
