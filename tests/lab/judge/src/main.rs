//! `lab`: measures transfers beside real foreground traffic over an emulated
//! bottleneck. Needs root, and touches nothing outside its own namespaces.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
