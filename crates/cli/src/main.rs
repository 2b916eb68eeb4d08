//! The `fairbat` command: arguments → settings → one library call → exit code.
//!
//! It must not know how files are moved: that is the library's business.

mod agent;
mod args;
mod clock;
mod completions;
mod console;
mod doctor;
mod exit;
mod get;
mod json;
mod log;
mod man;
mod plan;
mod progress;
mod put;
mod serve;
mod session;
mod settings;
mod setup;
mod signals;

use std::io;

use crate::args::Command;
use crate::console::Console;
use crate::exit::ExitCode;

fn main() -> std::process::ExitCode {
    match args::parse() {
        Command::Get(args) => get::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Put(args) => put::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Status(args) => agent::status(&args),
        Command::Add(args) => agent::add(&args),
        Command::Pause(args) => agent::pause(&args),
        Command::Resume(args) => agent::resume(&args),
        Command::Cancel(args) => agent::cancel(&args),
        Command::Run(args) => agent::run(&args),
        Command::Restore(args) => agent::restore(&args),
        Command::Doctor(args) => written(doctor::run(args.json)),
        Command::Setup(args) => setup::run(&args),
        Command::Completions(args) => written(completions::run(args.shell)),
        Command::Man(args) => written(man::run(args.dir.as_deref())),
    }
    .into()
}

/// The exit code of a command that only writes: a reader who has seen enough
/// (`fairbat man | head`) is no error.
fn written(result: io::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::Done,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::Done,
        Err(error) => {
            Console::plain().line(&format!("error: {error}"));
            ExitCode::Other
        }
    }
}
