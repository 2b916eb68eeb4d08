//! The command line: what was typed, and what comes back.

mod args;
mod check;
mod clock;
mod exit;

use self::args::Command;
use self::exit::ExitCode;

/// Does what the command line says.
pub(crate) fn run() -> ExitCode {
    match args::parse() {
        Command::Check(args) => check::run(&args),
    }
}
