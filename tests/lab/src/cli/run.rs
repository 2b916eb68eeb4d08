//! `lab run`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use fairbat_lab::record::Record;
use fairbat_lab::run::{Plan, run as run_plan};
use fairbat_lab::{picture, places, report, scenario};
use fairbat_tests::target::output_directory;

use super::Outcome;
use super::arguments::RunArguments;

/// Runs one scenario.
pub(super) fn run(arguments: &RunArguments, work: &Path) -> Outcome {
    let plan = plan(arguments, work)?;
    let directory = match &arguments.output {
        Some(directory) => {
            std::fs::create_dir_all(directory)?;
            directory.clone()
        }
        None => output_directory("lab"),
    };
    let record = run_plan(&plan)?;
    let (json, svg) = save(&record, &directory)?;
    print!("{}", report::terminal(&record));
    println!("\nsamples: {}\npicture: {}", json.display(), svg.display());
    Ok(exit_code(&record))
}

fn plan(arguments: &RunArguments, work: &Path) -> Result<Plan, Box<dyn std::error::Error>> {
    let named = scenario::find(&places::scenarios(), &arguments.scenario)?;
    let mut scenario = if arguments.quick {
        named.scenario.quick_variant()?
    } else {
        named.scenario
    };
    if let Some(factor) = arguments.time_scale {
        scenario.scale_time(factor);
    }
    if let Some(name) = &arguments.congestion_control {
        scenario.background.congestion_control.clone_from(name);
    }
    Ok(Plan {
        name: named.name,
        scenario,
        quick: arguments.quick,
        seed: arguments.seed,
        contender: arguments.contender,
        sampling: Duration::from_millis(arguments.sampling),
        command: command(arguments),
        side_by_side: arguments.side_by_side.clone(),
        work: work.to_owned(),
    })
}

/// What to type to have the same again.
fn command(arguments: &RunArguments) -> String {
    let mut words = vec![format!(
        "lab run {} --seed {} --contender {}",
        arguments.scenario, arguments.seed, arguments.contender
    )];
    if arguments.quick {
        words.push("--quick".to_owned());
    }
    if let Some(factor) = arguments.time_scale {
        words.push(format!("--time-scale {factor}"));
    }
    if let Some(name) = &arguments.congestion_control {
        words.push(format!("--congestion-control {name}"));
    }
    if arguments.sampling != 10 {
        words.push(format!("--sampling {}", arguments.sampling));
    }
    words.join(" ")
}

/// Writes the samples and the picture; returns where.
pub(super) fn save(
    record: &Record,
    directory: &Path,
) -> Result<(PathBuf, PathBuf), Box<dyn std::error::Error>> {
    let name = record.file_name();
    let json = directory.join(format!("{name}.json"));
    let svg = directory.join(format!("{name}.svg"));
    std::fs::write(&json, serde_json::to_vec(record)?)?;
    picture::draw(record, &svg)?;
    Ok((json, svg))
}

fn exit_code(record: &Record) -> ExitCode {
    let mut failures = record
        .background
        .iter()
        .filter_map(|one| one.failure.as_ref());
    match failures.next() {
        None => ExitCode::SUCCESS,
        Some(failure) => {
            eprintln!("lab: {}: {failure}", record.contender);
            ExitCode::FAILURE
        }
    }
}
