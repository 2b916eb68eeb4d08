//! `lab sender-cost`.

use fairbat_tests::target::output_directory;
use lab::sender_cost::{Plan, measure, write_all};
use lab_run::files;

use super::arguments::SenderCostArguments;
use super::{Outcome, command_line, listed};

/// Measures what congestion controls of ours cost, and writes what came of it.
pub(super) fn sender_cost(arguments: &SenderCostArguments) -> Outcome {
    let mut plan = if arguments.quick {
        Plan::QUICK
    } else {
        Plan::FULL
    };
    plan.rounds = arguments.rounds.unwrap_or(plan.rounds);
    let directory = match &arguments.output {
        Some(directory) => directory.clone(),
        None if arguments.quick => output_directory("lab"),
        None => files::results(),
    };
    let record = measure(&plan, &command_line(), &mut |line| println!("{line}"))?;
    Ok(listed(&write_all(&record, &directory)?))
}
