//! `lab report`.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use lab::report;
use lab::results::MatrixRecord;
use lab_run::record::Record;
use lab_run::{files, versions};

use super::arguments::ReportArguments;
use super::{Outcome, listed};

/// Makes the tables and pictures of all matrices of a directory.
pub(super) fn report(arguments: &ReportArguments) -> Outcome {
    let directory: PathBuf = arguments.directory.clone().unwrap_or_else(files::results);
    if let Some(samples) = &arguments.samples {
        take_anew(&directory, samples)?;
    }
    Ok(listed(&report::write_all(&directory)?))
}

/// Takes the figures of the matrix that is called as its samples' directory is
/// anew: what is to be told of a run may change when it is long over.
fn take_anew(directory: &Path, samples: &Path) -> Result<(), Box<dyn Error>> {
    let name = samples.file_name().unwrap_or_default().to_string_lossy();
    let file = MatrixRecord::file(directory, &name);
    let read = |path: &Path| {
        fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
    };
    let mut matrix = MatrixRecord::read(&file)?;
    for run in matrix.runs.iter_mut().filter(|run| run.failure.is_none()) {
        let variant = run.variant.as_deref().unwrap_or_default();
        let path = samples.join(variant).join(run.file_name() + ".json");
        let record: Record = serde_json::from_slice(&read(&path)?)?;
        if record.provenance.started < matrix.provenance.started {
            return Err(format!("{} is of an earlier run", path.display()).into());
        }
        run.summary = record.summarised();
    }
    let by = format!("figures taken by the lab of {}", versions::commit());
    let others = matrix.provenance.versions.iter();
    let others = others.filter(|one| !one.starts_with("figures taken by"));
    matrix.provenance.versions = others.cloned().chain([by]).collect();
    matrix.write(&file)
}
