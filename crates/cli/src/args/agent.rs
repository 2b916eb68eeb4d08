//! The flags of the commands that talk to fairbat-agent.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use fairbat::settings::Checksum;

use super::shared::AGENT_SOCKET;

// These groups have no doc comments: clap would show them as the help of the command.

#[derive(Debug, Args)]
#[command(next_help_heading = "Agent")]
pub(crate) struct SocketArgs {
    /// The agent's socket
    #[arg(
        long,
        value_name = "PATH",
        default_value = AGENT_SOCKET,
        value_hint = ValueHint::FilePath
    )]
    pub(crate) socket: PathBuf,

    /// Print the answers of the agent's API, one JSON object per line
    ///
    /// Errors of the API are printed too. docs/agent-api.md in the source describes the
    /// objects.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(
    about = "Show the tasks of the agent",
    long_about = "Prints one line for each task of the agent on standard output. A line shows \
        the state of the task, its progress in this run, its deadline, and when it will probably \
        finish. Below the tasks are the latest problems, with advice. The last lines show the \
        two lanes: one carries uploads, the other downloads.\n\n\
        The rate of a task is the rate of its lane if no other task uses the lane. If several \
        tasks share a lane, only --watch shows their own rates, from its second update on."
)]
pub(crate) struct StatusArgs {
    /// The tasks to show [default: all]
    #[arg(value_name = "TASK")]
    pub(crate) tasks: Vec<String>,

    /// Show changes as they happen, at most once a second, until the agent ends
    ///
    /// On a terminal, an update replaces the last one. Otherwise each update is printed below the
    /// last one.
    #[arg(short, long)]
    pub(crate) watch: bool,

    #[command(flatten)]
    pub(crate) agent: SocketArgs,
}

#[derive(Debug, Args)]
#[command(
    about = "Let the agent download a file",
    long_about = "Gives a URL to the agent and prints the name of the new task on standard \
        output. The download continues even after a restart of the machine. The agent writes \
        the file as its own user. Without an agent, use fairbat get."
)]
pub(crate) struct AddArgs {
    /// The http or https URL to download
    ///
    /// A user name and password in a URL are used for its host only. They are never shown.
    #[arg(value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) url: String,

    /// Another URL of the same file; may be given several times
    ///
    /// The mirrors are for when URL fails. With --checksum and --deadline, several servers are used
    /// at once, as far as the lane of the agent has connections for them.
    #[arg(
        id = "mirror",
        long,
        value_name = "URL",
        value_delimiter = '\n',
        value_hint = ValueHint::Url
    )]
    pub(crate) mirrors: Vec<String>,

    /// Check the digest of the file: sha-256=HEX or sha-512=HEX
    #[arg(long, value_name = "TYPE=HEX")]
    pub(crate) checksum: Option<Checksum>,

    /// Save to FILE
    ///
    /// The agent makes the directory of FILE if that is missing. A relative FILE starts from --directory, if that is given.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,

    /// Save into DIR, under the name that the server gives [default: .]
    ///
    /// The agent makes a missing DIR.
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) directory: Option<PathBuf>,

    /// When the file should be complete: 06:00, 90s, 45m, 4h, or RFC 3339
    ///
    /// Without a deadline, the download waits for its turn among all that were added without
    /// one. Then it has an ordinary connection, when the law of [stream] in agent.toml allows
    /// it, and yields otherwise.
    #[arg(long, value_name = "WHEN")]
    pub(crate) deadline: Option<String>,

    #[command(flatten)]
    pub(crate) agent: SocketArgs,
}

#[derive(Debug, Args)]
pub(crate) struct TaskArgs {
    /// The tasks, by the names that fairbat status shows
    #[arg(value_name = "TASK", required = true)]
    pub(crate) tasks: Vec<String>,

    #[command(flatten)]
    pub(crate) agent: SocketArgs,
}

#[derive(Debug, Args)]
#[command(
    about = "Run a job of the agent now",
    long_about = "Lets the agent run a job of its configuration now, whatever its schedule."
)]
pub(crate) struct StartArgs {
    /// The job, by its name in the configuration
    #[arg(value_name = "JOB")]
    pub(crate) job: String,

    /// Accept that nothing is mounted at PATH any more; may be repeated
    ///
    /// A directory that was a mount point and is none is not backed up, because its disk may
    /// only be missing. Nor is anything written to a local store whose disk is not mounted. This
    /// says that it stays as it is. PATH is that directory: below the source of the job, the source
    /// itself, or where the disk of the store was mounted. Files that were on a disk of the source
    /// count as deleted.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::DirPath)]
    pub(crate) accept_unmounted: Vec<PathBuf>,

    /// Wait for the end of the run; the exit status tells its result
    ///
    /// With --json, the last line is the task, as in the status.
    #[arg(short, long)]
    pub(crate) wait: bool,

    #[command(flatten)]
    pub(crate) agent: SocketArgs,
}

#[derive(Debug, Args)]
#[command(
    about = "Restore the files that a job has stored",
    long_about = "Lets the agent copy the stored files of a job back into a directory of this \
        machine. Prints the name of the new task on standard output. The agent writes the files \
        as its own user."
)]
pub(crate) struct RestoreArgs {
    /// The job, by its name in the configuration
    #[arg(value_name = "JOB")]
    pub(crate) job: String,

    /// The directory for the files; it must be empty or missing
    #[arg(
        long,
        value_name = "DIR",
        required = true,
        value_hint = ValueHint::DirPath
    )]
    pub(crate) to: PathBuf,

    /// Give files their set-user-ID and set-group-ID bits
    ///
    /// Such a program runs with the rights of its owner. Use this only if you trust whoever can
    /// write to the store. Only root and the agent's user may.
    #[arg(long)]
    pub(crate) setuid: bool,

    /// When the files should be complete: 06:00, 90s, 45m, 4h, or RFC 3339
    #[arg(long, value_name = "WHEN")]
    pub(crate) deadline: Option<String>,

    /// Wait for the end of the restore; the exit status tells its result
    ///
    /// With --json, the last line is the task, as in the status.
    #[arg(short, long)]
    pub(crate) wait: bool,

    #[command(flatten)]
    pub(crate) agent: SocketArgs,
}

/// What `fairbat fleet` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FleetAction {
    /// Show the hosts of the site, and its lanes
    Status,
    /// Give these hosts no more connections until they are released
    Hold,
    /// Let these hosts have connections again
    Release,
}

#[derive(Debug, Args)]
#[command(
    about = "Show the hosts of a site, or hold some of them back",
    long_about = "Talks to the coordinator of the site whose lane the agent shares, by way of the \
        agent. fairbat fleet status prints one line for each host: what it moves, how much is left, \
        its earliest deadline, and whether it will be late. The last lines show the lanes of the \
        site.\n\n\
        fairbat fleet hold gives a host no more connections. What it is moving, it moves to the end \
        of the chunk. The host stays held, whichever agent coordinates, until fairbat fleet release. \
        A host that loses its way to the site goes on alone, even when it is held."
)]
pub(crate) struct FleetArgs {
    /// What to do
    #[arg(value_name = "ACTION")]
    pub(crate) action: FleetAction,

    /// The hosts to hold or to release
    #[arg(
        value_name = "HOST",
        required_if_eq_any([("action", "hold"), ("action", "release")])
    )]
    pub(crate) hosts: Vec<String>,

    #[command(flatten)]
    pub(crate) agent: SocketArgs,
}
