//! `lab numerical`.

use std::path::PathBuf;
use std::process::ExitCode;

use fairbat_lab::{numerical, places, versions};

use super::Outcome;
use super::arguments::NumericalArguments;

/// What to type to have the same again.
const COMMAND: &str = "lab numerical";

/// Runs the numerical experiments, and writes what came of them.
pub(super) fn numerical(arguments: &NumericalArguments) -> Outcome {
    let directory: PathBuf = arguments.directory.clone().unwrap_or_else(places::results);
    for path in numerical::write_all(&directory, COMMAND, &versions::commit())? {
        println!("{}", path.display());
    }
    Ok(ExitCode::SUCCESS)
}
