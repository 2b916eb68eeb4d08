//! `lab report`.

use std::path::PathBuf;
use std::process::ExitCode;

use fairbat_lab::{places, report};

use super::Outcome;
use super::arguments::ReportArguments;

/// Makes the tables and pictures of all matrices of a directory.
pub(super) fn report(arguments: &ReportArguments) -> Outcome {
    let directory: PathBuf = arguments.directory.clone().unwrap_or_else(places::results);
    for path in report::write_all(&directory)? {
        println!("{}", path.display());
    }
    Ok(ExitCode::SUCCESS)
}
