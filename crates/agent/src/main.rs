//! The `fairbat-agent` command: arguments → configuration → one library call → exit code.

/// The command line: flags, help, manual, and the commands themselves.
mod cli {
    pub(crate) mod args;
    pub(crate) mod check;
    pub(crate) mod compare;
    pub(crate) mod key;
    pub(crate) mod process;
    pub(crate) mod service;
}

use fairbat::manual::{write_completions, write_pages};

use crate::cli::args::{self, Command};
use crate::cli::process::written;
use crate::cli::{check, key, service};

fn main() -> std::process::ExitCode {
    match args::parse() {
        Command::Check(args) => check::run(&args),
        Command::Run(args) => service::run(&args),
        Command::Hold(args) => service::hold(&args),
        Command::Gc(args) => service::collect(&args),
        Command::Key(args) => key::run(&args),
        Command::Completions { shell } => written(write_completions(&mut args::command(), shell)),
        Command::Man { dir } => {
            let pages = args::pages();
            written(pages.and_then(|pages| write_pages(&pages, dir.as_deref())))
        }
    }
    .into()
}
