//! The command line as it was typed: flags, their environment variables and
//! their help.
//!
//! It must not know what the values mean.

use std::path::PathBuf;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueHint};
use fairbat_agent::config;

use super::exit::EXIT_STATUS;

#[derive(Debug, Parser)]
#[command(
    name = "fairbat-agent",
    version,
    about = "Keeps directories in step with remote stores by a deadline, in the capacity that \
        nobody else wants",
    arg_required_else_help = true,
    subcommand_value_name = "COMMAND"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    #[command(
        about = "Check the configuration, and tell what each job will do and when",
        long_about = "Reads the configuration and prints, on standard output, a line for each \
            job: what it does, when it starts next, and by when it should be done. What is \
            wrong is told on standard error, all of it at once, each with its line and column \
            and with what to write instead. Sources that are not there or not readable and \
            credentials that cannot be read are warned of. No server is asked, and nothing is \
            written.\n\n\
            Run it as the user of the service: what root can read, the agent perhaps cannot. \
            Outside of the service that user lacks what systemd gives it, the right to read \
            every file (CAP_DAC_READ_SEARCH) and credentials ($CREDENTIALS_DIRECTORY): then \
            more is warned of than is wrong.",
        args_override_self = true,
        after_help = EXIT_STATUS
    )]
    Check(ConfigArgs),
    #[command(
        about = "Run the jobs at their times, until stopped",
        long_about = "Runs the jobs of the configuration at their times, in the capacity that \
            nobody else wants, until it is stopped by SIGTERM or SIGINT; everything then goes on \
            from there with the next start. With SIGHUP it reads the configuration again: runs \
            of jobs that stay as they are go on, and a configuration that is wrong is refused. \
            What it does is told on standard error, and to systemd if that has started it.",
        args_override_self = true,
        after_help = EXIT_STATUS
    )]
    Run(ConfigArgs),
    #[command(
        about = "Give up what killed processes have left unfinished in the stores",
        long_about = "Gives up uploads that this agent has begun and will not go on with, of the \
            jobs of the configuration that push: a job that is not to run again has to stay in \
            it, without a schedule, until this is done. Each run of a job does so as well. \
            Besides those it gives up uploads to the places of these jobs that it does not \
            remember, because its state was lost or the place was another job's; but not where a \
            place is all of a bucket.\n\n\
            The agent must not be running. Run it as the user of the service, so that the state \
            stays that user's.",
        args_override_self = true,
        after_help = EXIT_STATUS
    )]
    Gc(ConfigArgs),
    #[command(about = "Print a completion script for a shell", hide = true)]
    Completions(CompletionsArgs),
    #[command(about = "Print the manual pages", hide = true)]
    Man(ManArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    /// The configuration
    #[arg(
        long,
        value_name = "FILE",
        env = "FAIRBAT_CONFIG",
        default_value = config::PATH,
        value_hint = ValueHint::FilePath,
        hide_env_values = true
    )]
    pub(crate) config: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell to write for
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Write one file per page (fairbat-agent.8, ...) into this directory, which
    /// is made if need be, instead of all pages to standard output
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

/// The definition, for what is generated from it.
pub(crate) fn command() -> clap::Command {
    Cli::command()
}

/// Reads the command line and the environment; prints help, version or a usage
/// error and ends the process where there is nothing to do.
pub(crate) fn parse() -> Command {
    Cli::parse().command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        command().debug_assert();
    }
}
