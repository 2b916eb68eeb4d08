//! The `fairbat` command: arguments → settings → one library call → exit code.
//!
//! - `args`: the flags as typed, with their help and the manual
//! - `settings`: values that several commands parse and check
//! - `get`, `put`, `plan`, `serve`, `proxy`: from arguments to the library call
//! - `run`: any command, with connections that yield; `runs`: what such commands have moved
//! - `agent`: the commands that talk to fairbat-agent
//! - `doctor`, `path`, `setup`: what this machine supports, what a path is like, and the kernel
//!   parts
//! - `session`, `progress`, `console`: what surrounds a library call
//! - `exit`: the exit codes

mod agent;
mod args;
mod console;
mod doctor;
mod exit;
mod get;
mod path;
mod plan;
mod progress;
mod proxy;
mod put;
mod run;
mod runs;
mod serve;
mod session;
mod settings;
mod setup;

use fairbat::manual::{write_completions, write_pages};

use crate::args::Command;
use crate::console::written;

fn main() -> std::process::ExitCode {
    match args::parse() {
        Command::Get(args) => get::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Put(args) => put::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Run(args) => run::run(&args),
        Command::Runs(args) => runs::run(&args),
        Command::Proxy(args) => proxy::run(&args),
        Command::Status(args) => agent::status(&args),
        Command::Add(args) => agent::add(&args),
        Command::Pause(args) => agent::each(&args, "/v1/pause", "paused"),
        Command::Resume(args) => agent::each(&args, "/v1/resume", "resumed"),
        Command::Cancel(args) => agent::each(&args, "/v1/cancel", "cancelled"),
        Command::Start(args) => agent::start(&args),
        Command::Restore(args) => agent::restore(&args),
        Command::Fleet(args) => agent::fleet(&args),
        Command::Doctor(args) => match &args.path {
            Some(url) => path::run(url, &args),
            None => written(doctor::run(args.messages.json)),
        },
        Command::Setup(args) => setup::run(&args),
        Command::Completions { shell } => written(write_completions(&mut args::command(), shell)),
        Command::Man { dir } => {
            let pages = args::pages();
            written(pages.and_then(|pages| write_pages(&pages, dir.as_deref())))
        }
    }
    .into()
}
