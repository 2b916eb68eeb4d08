//! The command line of `lab`: arguments to one call each.

mod arguments;
mod calibrate;
mod demo;
mod list;
mod matrix;
mod numerical;
mod report;
mod run;
mod sender_cost;
mod tuning;

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use dalbe::ebpf::EbpfPart;
use fairbat_lab::contender::ContenderError;
use fairbat_lab::sandbox::{self, Side};

use self::arguments::{Arguments, Command};

/// Exit status where this machine does not allow what was asked for: as for a
/// test that cannot be run (automake, meson).
const CANNOT: u8 = 77;

/// What a command comes to.
type Outcome = Result<ExitCode, Box<dyn Error>>;

/// Runs the command that was given.
pub(crate) fn main() -> ExitCode {
    let arguments = Arguments::parse();
    run(&arguments.command).unwrap_or_else(|error| {
        eprintln!("lab: {error}");
        if is_of_machine(&*error) {
            ExitCode::from(CANNOT)
        } else {
            ExitCode::FAILURE
        }
    })
}

/// Whether it, or what led to it, is that this machine does not allow it.
fn is_of_machine(error: &(dyn Error + 'static)) -> bool {
    if let Some(error) = error.downcast_ref::<ContenderError>() {
        return error.is_of_machine();
    }
    error.source().is_some_and(is_of_machine)
}

fn run(command: &Command) -> Outcome {
    match command {
        Command::List => list::list(),
        Command::Report(arguments) => report::report(arguments),
        Command::Run(arguments) => {
            let (name, scenario) = run::scenario(arguments)?;
            let needs = arguments.contender.needs();
            inside(needs, |work| run::run(arguments, name, scenario, work))
        }
        Command::Demo => {
            let scenario = demo::scenario()?;
            inside(None, |work| demo::demo(scenario, work))
        }
        Command::Matrix(arguments) => {
            let plan = matrix::Plan::new(arguments)?;
            let needs = plan.needs();
            inside(needs, |_| plan.run())
        }
        Command::Numerical(arguments) => numerical::numerical(arguments),
        Command::Tuning(arguments) => tuning::tuning(arguments),
        Command::SenderCost(arguments) => {
            sandbox::require_root()?;
            let needs = Some(EbpfPart::CongestionControls);
            inside(needs, |_| sender_cost::sender_cost(arguments))
        }
        Command::Calibrate => inside(None, |_| calibrate::calibrate()),
    }
}

/// Goes on in the sandbox. What was done before is done again there: so
/// whatever is wrong is said without the rights of root, and what has to be
/// built is built outside. What needs `fairbat setup` finds that of the machine.
fn inside(needs: Option<EbpfPart>, go_on: impl FnOnce(&Path) -> Outcome) -> Outcome {
    match sandbox::enter(needs)? {
        Side::Outside(code) => Ok(code),
        Side::Inside(work) => go_on(&work),
    }
}
