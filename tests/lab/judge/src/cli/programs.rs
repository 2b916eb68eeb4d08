//! `lab programs`.

use std::path::Path;
use std::process::ExitCode;

use fairbat_tests::target::output_directory;
use lab::programs::{Plan, Way, measure, terminal, write_all};
use lab_run::files;

use super::arguments::ProgramsArguments;
use super::{Outcome, command_line, listed};

/// What the arguments ask for.
pub(super) fn plan(arguments: &ProgramsArguments) -> Plan {
    let repeats = if arguments.quick {
        Plan::QUICK_REPEATS
    } else {
        Plan::REPEATS
    };
    Plan {
        repeats: arguments.repeats.unwrap_or(repeats),
        only: arguments.only.clone(),
        way: if arguments.through_proxy {
            Way::Proxy
        } else {
            Way::Run
        },
    }
}

/// Runs programs of others plain and held back, and writes what came of it.
pub(super) fn programs(arguments: &ProgramsArguments, work: &Path) -> Outcome {
    let directory = match &arguments.output {
        Some(directory) => directory.clone(),
        None if arguments.quick => output_directory("lab"),
        None => files::results(),
    };
    let plan = plan(arguments);
    let record = measure(&plan, &command_line(), work, &mut |line| println!("{line}"))?;
    println!("\n{}", terminal(&record));
    let has_failed = record.programs.iter().any(|it| it.failure.is_some());
    listed(&write_all(record, &directory)?);
    Ok(if has_failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}
