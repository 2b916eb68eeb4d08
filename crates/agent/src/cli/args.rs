//! The command line as typed: flags, their environment variables and their help, and the
//! manual pages made from it.

use std::io;
use std::path::PathBuf;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueHint};
use fairbat::manual::{self, Page, Section, Shell};
use fairbat_agent::config;

use super::process::EXIT_STATUS;

#[derive(Debug, Parser)]
#[command(
    name = "fairbat-agent",
    version,
    about = "Keeps directories in step with remote stores by a deadline, in spare bandwidth",
    arg_required_else_help = true,
    subcommand_value_name = "COMMAND"
)]
struct AgentCli {
    #[command(subcommand)]
    command: AgentCommand,
}

/// A command with its arguments.
#[derive(Debug, Subcommand)]
pub(crate) enum AgentCommand {
    #[command(
        about = "Check the configuration and show what each job will do",
        long_about = "Reads the configuration and prints one line for each job on standard \
            output: what it does, when it starts next, and when it should be done.\n\n\
            Problems go to standard error, all of them at once. Each has its line and column, \
            and says what to write instead. There are also warnings: about sources, files in them, \
            and credentials that cannot be read, and about directories that cannot be written: of \
            the state, the socket, local stores and pulls. It walks through all sources for that. \
            No server is contacted, and nothing is written.\n\n\
            It looks with the rights of the user who runs it, and names that user. Run it as the \
            user of the service: root can read files that the agent cannot. \
            Outside of the service, that user lacks two things that systemd provides: the right \
            to read every file (CAP_DAC_READ_SEARCH) and the credentials \
            ($CREDENTIALS_DIRECTORY). So some warnings may be false.\n\n\
            With --store it compares the stores of the jobs that push with what was sent: names, \
            sizes and all contents. What is missing or damaged goes to standard output, and the \
            next run of the job sends it again if the source still has it. If the agent runs, it \
            does that work, at the lowest priority, and its log has each name. Otherwise this \
            command does it."
    )]
    Check(CheckArgs),
    #[command(
        about = "Run the jobs at their times, until stopped",
        long_about = "Runs the jobs of the configuration at their times, in spare bandwidth. \
            SIGTERM and SIGINT stop the agent. The next start continues all unfinished runs.\n\n\
            SIGHUP makes the agent read its configuration again. Runs of unchanged jobs go on. \
            A wrong configuration is refused.\n\n\
            The agent logs to standard error. It also reports to systemd if that started it."
    )]
    Run(ConfigArgs),
    #[command(
        about = "Hold the connections of other services, until stopped",
        long_about = "Holds the connections of the units and control groups that [[hold]] of the \
            configuration names: they yield to other traffic, as those of a command under fairbat \
            run do. Units may start and stop meanwhile. SIGTERM and SIGINT let all connections \
            go.\n\n\
            This takes the rights of a debugger (CAP_SYS_PTRACE), which the agent does not have. \
            So it is a service of its own, fairbat-hold.service. fairbat status and the metrics of \
            the agent show what it holds.\n\n\
            It reads its configuration when it starts. Restart it after a change."
    )]
    Hold(ConfigArgs),
    #[command(
        about = "Remove unfinished uploads of killed processes from the stores",
        long_about = "Removes unfinished uploads that this agent has begun and will not \
            continue, for all push jobs of the configuration. Each run of a job also does this. \
            To clean up after a job that will not run again, keep it in the configuration \
            without a schedule until this command has run.\n\n\
            It also removes uploads that the agent does not remember, because its state was \
            lost or another job used the same destination. It does not do so where a \
            destination is a whole bucket.\n\n\
            Stop the agent first. Run this as the user of the service, so that the state \
            still belongs to that user."
    )]
    Gc(ConfigArgs),
    #[command(
        about = "Print the key that authenticates the manifests of a job",
        long_about = "Prints the key that authenticates the manifests of a job. The first push of \
            a job makes it. Keep a copy elsewhere, as you keep a password: a new machine that has \
            it takes nothing from a store that someone else has changed.\n\n\
            With --import it reads a key from standard input and keeps it for the job, on a \
            machine that pulls or restores what another machine pushes.\n\n\
            Run it as the user of the service."
    )]
    Key(KeyArgs),
    /// Print a completion script for a shell
    Completions {
        /// The shell that will read the script
        shell: Shell,
    },
    /// Print the manual pages
    Man {
        /// Write one file per page into this directory (fairbat-agent.8, ...)
        ///
        /// The directory is made if it is missing. Without this flag, all pages go to standard
        /// output.
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
#[command(args_override_self = true, after_help = manual::help_text(&[exit_status()]))]
pub(crate) struct ConfigArgs {
    /// The configuration file
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
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
    /// Compare the stores with what was sent there
    #[arg(long)]
    pub(crate) store: bool,
    /// The only job whose store is compared
    #[arg(requires = "store")]
    pub(crate) job: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct KeyArgs {
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
    /// The job
    pub(crate) job: String,
    /// Read the key from standard input and keep it
    #[arg(long)]
    pub(crate) import: bool,
}

/// The command with all its flags. The manual and the completions use it.
pub(crate) fn command() -> clap::Command {
    AgentCli::command()
}

/// Reads the command line and the environment. Prints help, the version or a usage error
/// and ends the process if that is all there is to do.
pub(crate) fn parse() -> AgentCommand {
    AgentCli::parse().command
}

/// The manual pages: of the agent, of its visible commands, and of its configuration.
///
/// # Errors
/// A page cannot be rendered.
pub(crate) fn pages() -> io::Result<Vec<Page>> {
    let appendix = |command: &str| match command {
        "fairbat-agent" => vec![
            Section::lines("Files", FILES),
            Section::lines("Environment", ENVIRONMENT),
            Section::lines("Examples", EXAMPLES),
            Section::paragraph("See also", SEE_ALSO),
        ],
        _ => vec![exit_status()],
    };
    let mut pages = manual::pages(command(), "8", "System Administration", appendix)?;
    pages.push(Page::of_file(
        "fairbat-agent.toml",
        "5",
        "File Formats",
        &[
            Section::paragraph(
                "Name",
                "fairbat-agent.toml - configuration of fairbat-agent(8)",
            ),
            Section::paragraph("Synopsis", config::PATH),
            Section::paragraph(
                "Description",
                "The configuration is a TOML file. The example below has every key. An unknown \
                 key is an error. Its message gives the line and suggests the nearest known key.",
            ),
            Section::lines("Example", EXAMPLE),
            Section::paragraph(
                "See also",
                "fairbat-agent(8), systemd.time(7), systemd.exec(5)",
            ),
        ],
    ));
    Ok(pages)
}

fn exit_status() -> Section {
    Section::lines("Exit status", EXIT_STATUS)
}

/// The example configuration, with every key and its meaning.
const EXAMPLE: &str = include_str!("../../../../docs/agent.toml");

const FILES: &str = "\
/etc/fairbat/agent.toml   the configuration, see fairbat-agent.toml(5)
/var/lib/fairbat          the state that survives a restart
/run/fairbat/agent.sock   the socket for fairbat status, add, start, ...
/run/fairbat/lane.sock    where other commands share the agent's lanes
/usr/share/doc/fairbat    setup of the service, alert rules, a dashboard";

const ENVIRONMENT: &str = "\
FAIRBAT_CONFIG            the configuration, if --config is not given
FAIRBAT_LOG               log filter: info (the default), debug, warn, ...
CREDENTIALS_DIRECTORY, STATE_DIRECTORY, RUNTIME_DIRECTORY
                          directories of the service, set by systemd";

const EXAMPLES: &str = "\
Check the jobs and their problems:
    sudo -u fairbat fairbat-agent check
Start the service now and with the machine:
    sudo systemctl enable --now fairbat-agent.service
Let the service write to more directories:
    sudo systemctl edit fairbat-agent.service";

const SEE_ALSO: &str = "fairbat-agent.toml(5), fairbat(1), fairbat-status(1), systemctl(1)";

#[cfg(test)]
mod tests {
    use std::fs;

    use fairbat::manual::{completions, write_pages};

    use super::*;

    #[test]
    fn the_definition_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn each_command_that_is_shown_has_a_page() {
        let pages = pages().unwrap().into_iter();
        let names: Vec<_> = pages.map(|page| page.file_name).collect();
        assert_eq!(
            names,
            [
                "fairbat-agent.8",
                "fairbat-agent-check.8",
                "fairbat-agent-run.8",
                "fairbat-agent-hold.8",
                "fairbat-agent-gc.8",
                "fairbat-agent-key.8",
                "fairbat-agent-completions.8",
                "fairbat-agent-man.8",
                "fairbat-agent.toml.5",
            ]
        );
    }

    #[test]
    fn the_page_of_the_configuration_has_every_line_of_the_example() {
        let page = pages().unwrap().pop().unwrap();
        let page = String::from_utf8(page.roff).unwrap();
        let page = page
            .replace("\\-", "-")
            .replace("\\*(Aq", "'")
            .replace("\\&", "");
        for line in EXAMPLE.lines() {
            assert!(page.contains(line.trim_end()), "{line:?} is missing");
        }
    }

    #[test]
    fn a_page_that_cannot_be_written_is_named() {
        let pages = pages().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let new = dir.path().join("share/man8");
        write_pages(&pages, Some(&new)).unwrap();
        let page = new.join("fairbat-agent.8");
        assert!(fs::read_to_string(&page).unwrap().contains("agent.toml"));
        let refused = write_pages(&pages, Some(&page)).unwrap_err();
        assert!(refused.to_string().contains("fairbat-agent.8"), "{refused}");
    }

    #[test]
    fn scripts_know_the_commands_and_flags() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = String::from_utf8(completions(&mut command(), shell)).unwrap();
            for word in [
                "fairbat-agent",
                "check",
                "run",
                "hold",
                "gc",
                "key",
                "config",
                "store",
            ] {
                assert!(script.contains(word), "{shell}: {word} is missing");
            }
        }
    }
}
