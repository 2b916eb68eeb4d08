//! The `fairbat-agent` command: arguments → configuration → one call → exit code.
//!
//! It must not know how anything is transferred: that is the library's business.

mod cli;

fn main() -> std::process::ExitCode {
    cli::run().into()
}
