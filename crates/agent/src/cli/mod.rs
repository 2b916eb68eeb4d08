//! The command line of the agent: flags, help, manual, and the commands themselves.

mod args;
mod check;
mod process;
mod service;

use fairbat::manual::{write_completions, write_pages};

use self::args::Command;
use self::process::{ExitCode, written};

/// Runs the command of the command line.
pub(crate) fn run() -> ExitCode {
    match args::parse() {
        Command::Check(args) => check::run(&args),
        Command::Run(args) => service::run(&args),
        Command::Gc(args) => service::collect(&args),
        Command::Completions { shell } => written(write_completions(&mut args::command(), shell)),
        Command::Man { dir } => {
            let pages = args::pages();
            written(pages.and_then(|pages| write_pages(&pages, dir.as_deref())))
        }
    }
}
