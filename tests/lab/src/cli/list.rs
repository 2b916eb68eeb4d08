//! `lab list`.

use std::process::ExitCode;

use fairbat_lab::contender::Contender;
use fairbat_lab::matrix::Matrix;
use fairbat_lab::{places, scenario};

use super::Outcome;

/// Prints all there is to choose from.
pub(super) fn list() -> Outcome {
    println!("Scenarios (lab run NAME; * has a quick variant):\n");
    for named in scenario::all(&places::scenarios())? {
        let quick = if named.scenario.quick.is_some() {
            '*'
        } else {
            ' '
        };
        println!("  {:<22}{quick} {}", named.name, named.scenario.description);
    }
    println!("\nContenders (--contender NAME):\n");
    for contender in Contender::ALL {
        println!("  {:<24}{}", contender.to_string(), contender.title());
    }
    println!("\nMatrices (lab matrix NAME):\n");
    for (name, matrix) in Matrix::all(&places::matrices())? {
        println!("  {name:<24}{}", matrix.description);
    }
    Ok(ExitCode::SUCCESS)
}
