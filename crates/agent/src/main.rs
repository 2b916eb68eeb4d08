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

use crate::cli::args::{self, AgentCommand};
use crate::cli::process::written;
use crate::cli::{check, key, service};

fn main() -> std::process::ExitCode {
    match args::parse() {
        AgentCommand::Check(args) => check::run(&args),
        AgentCommand::Run(args) => service::run(&args),
        AgentCommand::Hold(args) => service::hold(&args),
        AgentCommand::Gc(args) => service::collect(&args),
        AgentCommand::Key(args) => key::run(&args),
        AgentCommand::Completions { shell } => {
            written(write_completions(&mut args::command(), shell))
        }
        AgentCommand::Man { dir } => {
            let pages = args::pages();
            written(pages.and_then(|pages| write_pages(&pages, dir.as_deref())))
        }
    }
    .into()
}
