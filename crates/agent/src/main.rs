//! The `fairbat-agent` command: arguments → configuration → one library call → exit code.

mod cli;

fn main() -> std::process::ExitCode {
    cli::run().into()
}
