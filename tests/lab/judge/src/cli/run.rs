//! `lab run`.

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use fairbat_tests::target::output_directory;
use lab_run::run::{Plan, run as run_plan};
use lab_run::scenario::Scenario;
use lab_run::terminal::terminal;
use lab_run::{files, picture, sandbox};

use super::arguments::RunArguments;
use super::{Outcome, command_line};

/// The scenario as it will be run, with its name; the contender can do it.
pub(super) fn scenario(arguments: &RunArguments) -> Result<(String, Scenario), Box<dyn Error>> {
    let (name, mut scenario): (_, Scenario) =
        files::find(&files::scenarios(), &arguments.scenario)?;
    let wrong = |error| format!("{name}: {error}");
    if arguments.quick {
        scenario = scenario.quick_variant().map_err(wrong)?;
    }
    if let Some(factor) = arguments.time_scale {
        scenario.scale_time(factor);
    }
    if let Some(last) = arguments.measure_last {
        scenario.measure_last(last);
    }
    if let Some(name) = &arguments.congestion_control {
        scenario.background.congestion_control.clone_from(name);
    }
    scenario = arguments.changes().as_run(&scenario).map_err(wrong)?;
    let measured = scenario.measured();
    let measured = Duration::from_secs_f64(measured.end - measured.start);
    if sampling(arguments) > measured {
        return Err(wrong("what is measured is shorter than from sample to sample".into()).into());
    }
    if !arguments.simulate {
        sandbox::require_root()?;
    }
    arguments.contender.check(&scenario)?;
    Ok((name, scenario))
}

/// Runs one scenario, or calculates it.
pub(super) fn run(
    arguments: &RunArguments,
    name: String,
    scenario: Scenario,
    work: &Path,
) -> Outcome {
    let plan = Plan {
        name,
        scenario,
        quick: arguments.quick,
        seed: arguments.seed,
        contender: arguments.contender,
        sampling: sampling(arguments),
        command: command_line(),
        side_by_side: arguments.side_by_side.clone(),
        work: work.to_owned(),
    };
    let directory = match &arguments.output {
        Some(directory) => {
            std::fs::create_dir_all(directory)
                .map_err(|error| format!("make {}: {error}", directory.display()))?;
            directory.clone()
        }
        None => output_directory("lab"),
    };
    let record = match arguments.simulate {
        true => lab_simulation::record(&plan)?,
        false => run_plan(&plan)?,
    };
    let (json, svg) = picture::save(&record, &directory)?;
    print!("{}", terminal(&record));
    println!("\nsamples: {}\npicture: {}", json.display(), svg.display());
    match record.failure() {
        None => Ok(ExitCode::SUCCESS),
        Some(failure) => Err(format!("{}: {failure}", record.contender).into()),
    }
}

fn sampling(arguments: &RunArguments) -> Duration {
    Duration::from_millis(arguments.sampling)
}
