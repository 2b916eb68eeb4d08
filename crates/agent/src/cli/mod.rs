//! The command line: what was typed, and what comes back.

mod args;
mod check;
mod clock;
mod exit;
mod load;
mod service;

use self::args::Command;
use self::exit::ExitCode;

/// Does what the command line says.
pub(crate) fn run() -> ExitCode {
    match args::parse() {
        Command::Check(args) => check::run(&args),
        Command::Run(args) => service::run(&args),
        Command::Gc(args) => service::collect(&args),
    }
}
