//! `fairbat runs`: what the runs of each name have moved, and what the next one is expected to.

use fairbat::hold::history::{PastRun, expected};
use indicatif::BinaryBytes;
use serde_json::json;

use crate::args::RunsArgs;
use crate::console::{Console, shown};
use crate::exit::ExitCode;
use crate::progress::span;
use crate::run::history::{names, of};
use crate::session::with_valid;
use crate::settings::UsageError;

/// Prints the runs.
pub(crate) fn run(args: &RunsArgs) -> ExitCode {
    let names = match &args.name {
        Some(name) => Ok(vec![name.clone()]),
        None => names(),
    };
    with_valid(names.and_then(|names| read(&names)), |mut all| {
        // A command that could not be started has left its name.
        all.retain(|(_, runs)| !runs.is_empty());
        if args.name.is_some() && all.is_empty() {
            Console::plain().line("error: there is no run of this name; fairbat runs lists them");
            return ExitCode::Other;
        }
        let lines: Vec<_> = match (args.json, &args.name) {
            (true, _) => all
                .iter()
                .flat_map(|(name, runs)| as_json(name, runs))
                .collect(),
            (false, Some(_)) => all.iter().flat_map(|(_, runs)| each(runs)).collect(),
            (false, None) => all.iter().map(|(name, runs)| summary(name, runs)).collect(),
        };
        match lines.is_empty() {
            true => {
                Console::plain()
                    .line("no run is noted yet: give them names, by fairbat run --name");
                ExitCode::Done
            }
            false => shown(&lines.join("\n")),
        }
    })
}

/// The runs of these names.
fn read(names: &[String]) -> Result<Vec<(String, Vec<PastRun>)>, UsageError> {
    let read = |name: &String| {
        let runs = of(name)?.runs();
        let runs = runs.map_err(|error| UsageError::new(format!("runs of {name}: {error}")))?;
        Ok((name.clone(), runs))
    };
    names.iter().map(read).collect()
}

fn as_json(name: &str, runs: &[PastRun]) -> Vec<String> {
    let line = |run: &PastRun| {
        let mut value = json!(run);
        value["name"] = name.into();
        value.to_string()
    };
    runs.iter().map(line).collect()
}

/// One line for the runs of a name.
fn summary(name: &str, runs: &[PastRun]) -> String {
    let next = match expected(runs) {
        Some(bytes) => format!("the next one is planned with {}", BinaryBytes(bytes)),
        None => {
            "none has ended well and moved anything, so the next one cannot be planned".to_owned()
        }
    };
    let count = runs.len();
    let plural = if count == 1 { "run" } else { "runs" };
    format!("{name}: {count} {plural}; {next}")
}

/// One line for each run.
fn each(runs: &[PastRun]) -> Vec<String> {
    let line = |run: &PastRun| {
        let status = match run.status {
            Some(0) => "done".to_owned(),
            Some(status) => format!("exit status {status}"),
            None => "ended by a signal".to_owned(),
        };
        let late = match run.deadline_met {
            Some(true) => ", in time",
            Some(false) => ", late",
            None => "",
        };
        format!(
            "{:.0}  {} in {}, {status}{late}",
            run.started,
            BinaryBytes(run.bytes()),
            span(run.elapsed_s)
        )
    };
    runs.iter().map(line).collect()
}
