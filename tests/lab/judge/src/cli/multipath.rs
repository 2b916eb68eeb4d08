//! `lab multipath`.

use std::path::Path;
use std::process::ExitCode;

use fairbat_tests::target::output_directory;
use lab::multipath::{PathsPlan, Setup, knows_interfaces, measure};
use lab_run::files;

use super::arguments::MultipathArguments;
use super::{Outcome, command_line};

/// The plan as it will be carried out, with its name.
pub(super) fn plan(
    arguments: &MultipathArguments,
) -> Result<(String, PathsPlan), Box<dyn std::error::Error>> {
    let (name, mut plan): (_, PathsPlan) = files::find(&files::multipath(), &arguments.plan)?;
    plan.only(&arguments.carrier)?;
    if arguments.quick {
        plan.shorten();
    }
    // It is built now, outside, if it has to be.
    let _ = knows_interfaces();
    Ok((name, plan))
}

/// Carries it out, and prints tables and verdicts.
pub(super) fn multipath(
    arguments: &MultipathArguments,
    (name, plan): (String, PathsPlan),
    work: &Path,
) -> Outcome {
    let output = arguments.output.clone();
    let setup = Setup {
        name,
        command: command_line(),
        jobs: arguments.jobs,
        work: work.to_owned(),
        output: output.unwrap_or_else(|| output_directory("lab")),
    };
    let page = measure(&plan, &setup, &|line| eprintln!("{line}"))?;
    println!("{page}");
    let results = setup.output.join(&setup.name);
    println!("figures: {}.jsonl", results.display());
    Ok(ExitCode::SUCCESS)
}
