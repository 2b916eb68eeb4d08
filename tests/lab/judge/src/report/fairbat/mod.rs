//! The page of FAIRBAT's evaluation: the paper's figures and its Table I with what
//! the lab measured, every point with its intervals, and whether what is required
//! holds. Computed from the runs, all of it.

mod figures;
mod group;
mod pictures;
pub(crate) mod points;
mod required;
mod stream;
mod tables;
mod theory;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::report::fairbat::pictures::{FIGURES, FLOWS_FILE};
use crate::report::fairbat::points::Point;
use crate::report::words::{all_failures, head, how, measured, terms_of_all};
use crate::results::MatrixRecord;
use lab_run::jobs::SOON;

/// The matrix, and what its page is called.
pub(crate) const NAME: &str = "fairbat";

/// The matrices of one of its points at other scales: a third of the paper's, and all of it.
const SCALINGS: [&str; 2] = ["fairbat-scaling", "fairbat-full"];

/// The matrix of one of its points for longer.
const LONG: &str = "fairbat-long";

/// The matrix of the law as printed, in longer runs.
const CONVERGED: &str = "fairbat-converged";

/// Name of the record of steps in load and of its page.
const STEPS: &str = "tuning";

/// The law of that record that is used.
const LAW: &str = "defaults";

/// What was measured apart from the matrix and is on its page, as far as it is there.
#[derive(Clone, Copy, Default)]
struct Beside<'a> {
    scalings: [Option<&'a MatrixRecord>; SCALINGS.len()],
    long: Option<&'a MatrixRecord>,
    converged: Option<&'a MatrixRecord>,
    steps: Option<&'a Steps>,
}

impl<'a> Beside<'a> {
    /// The points that were measured at other scales, and where.
    fn at_other_scales(self) -> impl Iterator<Item = (&'a MatrixRecord, Point<'a>)> {
        let all = self.scalings.into_iter().flatten();
        all.flat_map(|it| Point::all(it).into_iter().map(move |point| (it, point)))
    }

    /// Where flows over time are shown from: what was measured for longer, if it was.
    fn flows(self, matrix: &'a MatrixRecord) -> &'a MatrixRecord {
        let long = self.long.filter(|long| pictures::scene(long).is_some());
        long.unwrap_or(matrix)
    }
}

/// Whether a matrix is on this page.
pub(crate) fn is_of(matrix: &MatrixRecord) -> bool {
    let name = matrix.name.as_str();
    [NAME, LONG, CONVERGED, stream::NAME].contains(&name) || SCALINGS.contains(&name)
}

/// Makes the page and its pictures if the matrix is there, and returns where they
/// are.
///
/// # Errors
/// When one cannot be written.
pub(crate) fn write(
    all: &[MatrixRecord],
    directory: &Path,
) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let named = |name: &str| all.iter().find(|matrix| matrix.name == name);
    let mut written = Vec::new();
    if let Some(matrix) = named(stream::NAME) {
        let path = directory.join(format!("{}.md", stream::NAME));
        fs::write(&path, stream::page(matrix))?;
        written.push(path);
    }
    let Some(matrix) = named(NAME) else {
        return Ok(written);
    };
    let path = directory.join(format!("{NAME}.md"));
    let steps = Steps::read(directory)?;
    let beside = Beside {
        scalings: SCALINGS.map(named),
        long: named(LONG),
        converged: named(CONVERGED),
        steps: steps.as_ref(),
    };
    fs::write(&path, page(matrix, beside))?;
    written.push(path);
    for figure in FIGURES.iter().filter(|one| one.is_there(matrix)) {
        let picture = directory.join(figure.file());
        figure.draw(matrix, &picture)?;
        written.push(picture);
    }
    if let Some(scene) = pictures::scene(beside.flows(matrix)) {
        let picture = directory.join(FLOWS_FILE);
        scene.draw(&picture)?;
        written.push(picture);
    }
    Ok(written)
}

/// How it is all to be read.
const READING: &str = include_str!("../../text/fairbat-reading.md");

fn page(matrix: &MatrixRecord, beside: Beside<'_>) -> String {
    let figures = FIGURES.iter().filter(|one| one.is_there(matrix));
    let others = beside
        .scalings
        .into_iter()
        .chain([beside.long, beside.converged]);
    [
        head(matrix),
        READING.to_owned(),
        required::section(matrix, beside),
        pictures::section(beside.flows(matrix)),
        figures.map(|figure| figure.section(matrix)).collect(),
        tables::table1(matrix),
        tables::every_point(matrix),
        tables::joined(matrix),
        tables::chunks(matrix),
        beside.long.map(tables::for_longer).unwrap_or_default(),
        tables::limits(matrix),
        beside.converged.map(tables::converged).unwrap_or_default(),
        tables::scales(matrix, beside.at_other_scales()),
        "\n## Scenarios\n\n".to_owned(),
        terms_of_all(matrix),
        all_failures(matrix),
        how(matrix),
        others.flatten().map(measured).collect(),
    ]
    .concat()
}

/// After how many mean chunk times the limit was found, step by step; `None` where it
/// never was.
#[derive(Debug, Clone, PartialEq)]
struct Steps(Vec<Option<f64>>);

impl Steps {
    /// What the record in a directory says; `None` if there is none of steps.
    ///
    /// # Errors
    /// When it is there and cannot be read.
    fn read(directory: &Path) -> Result<Option<Self>, Box<dyn Error>> {
        let path = directory.join(format!("{STEPS}.json"));
        if !path.try_exists()? {
            return Ok(None);
        }
        let record: Value = serde_json::from_slice(&fs::read(&path)?)?;
        let list = |value: &Value| value.as_array().cloned();
        let laws =
            list(&record["laws"]).ok_or_else(|| format!("{} has no laws", path.display()))?;
        let law = laws.iter().find(|one| one["law"] == LAW);
        let steps = law.and_then(|law| list(&law["runs"]["steps"]));
        let after = steps.into_iter().flatten();
        let after: Vec<_> = after.map(|step| step["course"]["after"].as_f64()).collect();
        Ok((!after.is_empty()).then_some(Self(after)))
    }

    /// Whether all are followed soon.
    fn holds(&self) -> bool {
        let mut all = self.0.iter();
        all.all(|after| after.is_some_and(|after| after <= SOON))
    }

    /// For people.
    fn words(&self) -> String {
        let one = |after: &Option<f64>| match after {
            Some(after) => format!("{after:.0}"),
            None => "never".to_owned(),
        };
        let words: Vec<_> = self.0.iter().map(one).collect();
        format!("after {} chunk times", words.join(", "))
    }
}

#[cfg(test)]
mod tests;
