//! The command line of `lab`: arguments to one call each.

mod arguments;
mod calibrate;
mod demo;
mod list;
mod matrix;
mod report;
mod run;

use std::error::Error;
use std::process::ExitCode;

use clap::Parser;
use fairbat_lab::sandbox::{self, Side};

use self::arguments::{Arguments, Command};

/// What a command comes to.
type Outcome = Result<ExitCode, Box<dyn Error>>;

/// Runs the command that was given.
pub(crate) fn main() -> ExitCode {
    let arguments = Arguments::parse();
    run(&arguments.command).unwrap_or_else(|error| {
        eprintln!("lab: {error}");
        ExitCode::FAILURE
    })
}

fn run(command: &Command) -> Outcome {
    match command {
        Command::List => list::list(),
        Command::Report(arguments) => report::report(arguments),
        Command::Run(_) | Command::Demo | Command::Matrix(_) | Command::Calibrate => {
            // Only now: what is wrong with the arguments has been said.
            let work = match sandbox::enter()? {
                Side::Outside(code) => return Ok(code),
                Side::Inside(work) => work,
            };
            match command {
                Command::Run(arguments) => run::run(arguments, &work),
                Command::Demo => demo::demo(&work),
                Command::Matrix(arguments) => matrix::matrix(arguments),
                _ => calibrate::calibrate(),
            }
        }
    }
}
