//! `lab sender-cost`.

use std::process::ExitCode;

use fairbat_lab::places;
use fairbat_lab::sender_cost::{Plan, measure, write_all};
use fairbat_tests::target::output_directory;

use super::Outcome;
use super::arguments::SenderCostArguments;

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
        None => places::results(),
    };
    let record = measure(&plan, &command(arguments), &mut |line| println!("{line}"))?;
    for path in write_all(&record, &directory)? {
        println!("{}", path.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// What to type to have the same again.
fn command(arguments: &SenderCostArguments) -> String {
    let mut words = "lab sender-cost".to_owned();
    if arguments.quick {
        words.push_str(" --quick");
    }
    if let Some(rounds) = arguments.rounds {
        words.push_str(&format!(" --rounds {rounds}"));
    }
    words
}
