//! The flags of the commands that speak to the agent.

use std::path::PathBuf;

use clap::builder::FalseyValueParser;
use clap::{Args, ValueHint};

use super::appendix;

// No doc comments on these groups: clap would take them for the help of the
// whole command.

#[derive(Debug, Args)]
#[command(next_help_heading = "Agent")]
pub(crate) struct SocketArgs {
    /// Where the agent listens
    #[arg(
        long,
        value_name = "PATH",
        env = "FAIRBAT_SOCKET",
        default_value = "/run/fairbat/agent.sock",
        value_hint = ValueHint::FilePath
    )]
    pub(crate) socket: PathBuf,

    /// Print what the agent's API says, one JSON object per line
    ///
    /// It is described in docs/agent-api.md of the source. Of a refusal that is
    /// printed too.
    #[arg(long, env = "FAIRBAT_JSON", value_parser = FalseyValueParser::new())]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(
    about = "Tell how the agent's tasks stand",
    long_about = "Prints, on standard output, a line for each task of the agent: what it does, \
        what is done of all that there is to do in this run, as far as that is known, by when it is \
        to be through, and when it probably will be. Below are what went wrong last, and what to \
        do about it, and how the two lanes are, which carry what leaves and what comes.\n\n\
        The rate of a task is that of its lane if it is the only one that runs there; of several \
        it is known with --watch only, from one line to the next.",
    args_override_self = true,
    after_help = appendix::text("status", appendix::Length::Short),
    after_long_help = appendix::text("status", appendix::Length::Long)
)]
pub(crate) struct StatusArgs {
    /// Only these tasks; by default all of them
    #[arg(value_name = "TASK")]
    pub(crate) tasks: Vec<String>,

    /// Go on as long as the agent does: at most once a second, what has changed
    ///
    /// On a terminal in the place of what was there, elsewhere below it.
    #[arg(short, long, env = "FAIRBAT_WATCH", value_parser = FalseyValueParser::new())]
    pub(crate) watch: bool,

    #[command(flatten)]
    pub(crate) agent: SocketArgs,
}

#[derive(Debug, Args)]
#[command(
    about = "Have the agent download a file",
    long_about = "Gives the agent a URL to download, and prints, on standard output, what the \
        download is called from now on. It goes on when this machine was started again, too. The \
        agent writes the file as the user that it runs as. fairbat get does the same without an \
        agent.",
    args_override_self = true,
    after_help = appendix::text("add", appendix::Length::Short),
    after_long_help = appendix::text("add", appendix::Length::Long)
)]
pub(crate) struct AddArgs {
    /// What to download: an http or https URL
    ///
    /// A user name and a password in a URL are used for its host only and
    /// never shown.
    #[arg(value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) url: String,

    /// Save to FILE
    ///
    /// A relative FILE is taken from --directory, if that is given.
    #[arg(
        short,
        long,
        value_name = "FILE",
        env = "FAIRBAT_OUTPUT",
        value_hint = ValueHint::FilePath
    )]
    pub(crate) output: Option<PathBuf>,

    /// Save into DIR, under the name that the server gives [default: .]
    #[arg(
        short,
        long,
        value_name = "DIR",
        env = "FAIRBAT_DIRECTORY",
        value_hint = ValueHint::DirPath
    )]
    pub(crate) directory: Option<PathBuf>,

    /// When it should be there: 06:00, 90s, 45m, 4h, or RFC 3339
    #[arg(long, value_name = "WHEN", env = "FAIRBAT_DEADLINE")]
    pub(crate) deadline: Option<String>,

    #[command(flatten)]
    pub(crate) agent: SocketArgs,
}

#[derive(Debug, Args)]
pub(crate) struct TaskArgs {
    /// The tasks, as fairbat status names them
    #[arg(value_name = "TASK", required = true)]
    pub(crate) tasks: Vec<String>,

    #[command(flatten)]
    pub(crate) agent: SocketArgs,
}

#[derive(Debug, Args)]
#[command(
    about = "Stop tasks of the agent until they are resumed",
    long_about = "Stops tasks of the agent until fairbat resume. What they have is kept.",
    args_override_self = true,
    after_help = appendix::text("pause", appendix::Length::Short),
    after_long_help = appendix::text("pause", appendix::Length::Long)
)]
pub(crate) struct PauseArgs {
    #[command(flatten)]
    pub(crate) tasks: TaskArgs,
}

#[derive(Debug, Args)]
#[command(
    about = "Go on with tasks of the agent that were paused",
    args_override_self = true,
    after_help = appendix::text("resume", appendix::Length::Short),
    after_long_help = appendix::text("resume", appendix::Length::Long)
)]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    pub(crate) tasks: TaskArgs,
}

#[derive(Debug, Args)]
#[command(
    about = "End the run of a job, or forget a download or a restore",
    long_about = "Ends the run of a job, or gives up what is left of one that was paused or \
        is to be tried again: it will run again at its time, a paused one when it is resumed. \
        Forgets a download or a restore.",
    args_override_self = true,
    after_help = appendix::text("cancel", appendix::Length::Short),
    after_long_help = appendix::text("cancel", appendix::Length::Long)
)]
pub(crate) struct CancelArgs {
    #[command(flatten)]
    pub(crate) tasks: TaskArgs,
}

#[derive(Debug, Args)]
#[command(
    about = "Have the agent run a job now",
    long_about = "Has the agent run a job of its configuration now, whatever its schedule.",
    args_override_self = true,
    after_help = appendix::text("run", appendix::Length::Short),
    after_long_help = appendix::text("run", appendix::Length::Long)
)]
pub(crate) struct RunArgs {
    /// The job, by its name in the configuration
    #[arg(value_name = "JOB")]
    pub(crate) job: String,

    /// Wait until it has ended, and tell how by the exit status
    ///
    /// With --json its last line is the task, as in the status.
    #[arg(short, long, env = "FAIRBAT_WAIT", value_parser = FalseyValueParser::new())]
    pub(crate) wait: bool,

    #[command(flatten)]
    pub(crate) agent: SocketArgs,
}

#[derive(Debug, Args)]
#[command(
    about = "Have the agent bring back what a job has stored",
    long_about = "Has the agent bring what a job has stored back into a directory of this \
        machine, and prints, on standard output, what the restore is called from now on. The \
        agent writes the files as the user that it runs as.",
    args_override_self = true,
    after_help = appendix::text("restore", appendix::Length::Short),
    after_long_help = appendix::text("restore", appendix::Length::Long)
)]
pub(crate) struct RestoreArgs {
    /// The job, by its name in the configuration
    #[arg(value_name = "JOB")]
    pub(crate) job: String,

    /// Into this directory, which is made if need be, and otherwise empty
    #[arg(
        long,
        value_name = "DIR",
        env = "FAIRBAT_TO",
        required = true,
        value_hint = ValueHint::DirPath
    )]
    pub(crate) to: PathBuf,

    /// When it should be there: 06:00, 90s, 45m, 4h, or RFC 3339
    #[arg(long, value_name = "WHEN", env = "FAIRBAT_DEADLINE")]
    pub(crate) deadline: Option<String>,

    /// Wait until it has ended, and tell how by the exit status
    ///
    /// With --json its last line is the task, as in the status.
    #[arg(short, long, env = "FAIRBAT_WAIT", value_parser = FalseyValueParser::new())]
    pub(crate) wait: bool,

    #[command(flatten)]
    pub(crate) agent: SocketArgs,
}
