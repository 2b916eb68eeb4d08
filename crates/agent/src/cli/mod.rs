//! The command line: what was typed, and what comes back.

mod args;
mod check;
mod clock;
mod completions;
mod exit;
mod load;
mod man;
mod service;

use std::io;

use self::args::Command;
use self::exit::ExitCode;

/// Does what the command line says.
pub(crate) fn run() -> ExitCode {
    match args::parse() {
        Command::Check(args) => check::run(&args),
        Command::Run(args) => service::run(&args),
        Command::Gc(args) => service::collect(&args),
        Command::Completions(args) => written(completions::run(args.shell)),
        Command::Man(args) => written(man::run(args.dir.as_deref())),
    }
}

/// The exit code of a command that only writes.
fn written(result: io::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::Done,
        // A reader who has seen enough is no error.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::Done,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::Other
        }
    }
}
