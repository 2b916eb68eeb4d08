//! The command line of `lab`: arguments to one call each.

mod arguments;
mod list;
mod matrix;
mod multipath;
mod programs;
mod report;
mod run;
mod sender_cost;
mod simulate;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use dalbe::ebpf::EbpfPart;
use lab::calibrate::{Verdict, check};
use lab::{numerical, tuning};
use lab_run::contender::ContenderError;
use lab_run::sandbox::{self, Side};
use lab_run::{files, versions};

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
            let go_on = |work: &Path| run::run(arguments, name, scenario, work);
            inside_unless(arguments.simulate, needs, go_on)
        }
        Command::Simulate(arguments) => simulate::simulate(arguments),
        Command::Matrix(arguments) => {
            let plan = matrix::Plan::new(arguments)?;
            let (is_simulated, needs) = (plan.is_simulated(), plan.needs());
            inside_unless(is_simulated, needs, |_| plan.run())
        }
        Command::Numerical(arguments) => {
            let directory = arguments.directory.clone().unwrap_or_else(files::results);
            let written = numerical::write_all(&directory, &command_line(), &versions::commit())?;
            Ok(listed(&written))
        }
        Command::Tuning(arguments) => {
            let directory = arguments.directory.clone().unwrap_or_else(files::results);
            let written = tuning::write_all(&directory, &command_line(), &versions::commit())?;
            Ok(listed(&written))
        }
        Command::SenderCost(arguments) => {
            sandbox::require_root()?;
            let needs = Some(EbpfPart::CongestionControls);
            inside(needs, |_| sender_cost::sender_cost(arguments))
        }
        Command::Programs(arguments) => {
            sandbox::require_root()?;
            lab::programs::prepare(&programs::plan(arguments))?;
            inside(None, |work| programs::programs(arguments, work))
        }
        Command::Multipath(arguments) => {
            sandbox::require_root()?;
            let plan = multipath::plan(arguments)?;
            inside(None, |work| multipath::multipath(arguments, plan, work))
        }
        Command::Calibrate => inside(None, |_| calibrate()),
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

/// The same, but at once and with no directory for its files where it is calculated.
fn inside_unless(
    is_simulated: bool,
    needs: Option<EbpfPart>,
    go_on: impl FnOnce(&Path) -> Outcome,
) -> Outcome {
    match is_simulated {
        true => go_on(Path::new("")),
        false => inside(needs, go_on),
    }
}

/// Says which files were written.
fn listed(files: &[PathBuf]) -> ExitCode {
    for file in files {
        println!("{}", file.display());
    }
    ExitCode::SUCCESS
}

/// The command as it was typed, without the place of its files: what does the same
/// again.
fn command_line() -> String {
    let mut line = "lab".to_owned();
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--output" | "--side-by-side" => drop(words.next()),
            _ if word.starts_with("--output=") => {}
            _ => line.extend([" ", &quoted(&word)]),
        }
    }
    line
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./,=:".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Compares the link with theory, and says what differs.
fn calibrate() -> Outcome {
    match check(&mut |line| println!("{line}"))? {
        Verdict::Right => {
            println!("\nThe link is what it says.");
            Ok(ExitCode::SUCCESS)
        }
        Verdict::Unknown => {
            eprintln!(
                "lab: this machine is late too often to tell what its links do, see above; \
                 try again when it, or its host, has less to do"
            );
            Ok(ExitCode::from(CANNOT))
        }
        Verdict::Wrong => {
            eprintln!(
                "lab: the link is out of tolerance on this machine, see OUT above; \
                 is something else running?"
            );
            Ok(ExitCode::FAILURE)
        }
    }
}
