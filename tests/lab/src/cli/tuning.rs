//! `lab tuning`.

use std::path::PathBuf;
use std::process::ExitCode;

use fairbat_lab::{places, tuning, versions};

use super::Outcome;
use super::arguments::TuningArguments;

/// What to type to have the same again.
const COMMAND: &str = "lab tuning";

/// Runs the law's simulations, and writes what came of them.
pub(super) fn tuning(arguments: &TuningArguments) -> Outcome {
    let directory: PathBuf = arguments.directory.clone().unwrap_or_else(places::results);
    for path in tuning::write_all(&directory, COMMAND, &versions::commit())? {
        println!("{}", path.display());
    }
    Ok(ExitCode::SUCCESS)
}
