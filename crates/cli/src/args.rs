//! The command line as typed: flags, their environment variables and their help. The
//! manual pages come from the same text.
//!
//! Most values stay text here. [`crate::settings`] parses and checks them.

mod agent;
pub(crate) mod appendix;
mod doctor;
mod get;
mod proxy;
mod put;
mod run;
mod serve;
mod shared;

use std::io;
use std::path::PathBuf;

use clap::builder::FalseyValueParser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use fairbat::manual::{self, Page, Shell};

pub(crate) use agent::{
    AddArgs, FleetAction, FleetArgs, RestoreArgs, SocketArgs, StartArgs, StatusArgs, TaskArgs,
};
pub(crate) use doctor::DoctorArgs;
pub(crate) use get::{AllocationMethod, GetArgs, LawName, PlanArgs, StreamArgs};
pub(crate) use proxy::ProxyArgs;
pub(crate) use put::PutArgs;
pub(crate) use run::{ProgressFormat, RunArgs, RunSpeedArgs, RunsArgs};
pub(crate) use serve::ServeArgs;
pub(crate) use shared::{
    FailureArgs, Http3Choice, LogArgs, MessageArgs, PathArgs, ReceiverMethod, RequestArgs,
    TimeoutArgs, rate, weight,
};

#[derive(Debug, Parser)]
#[command(
    name = "fairbat",
    version,
    about = "Move large files in spare bandwidth and still finish by a deadline",
    long_about = "fairbat downloads, uploads and serves files over HTTP and HTTPS in the \
        background. It yields to other traffic. As a deadline comes closer, it yields less. fairbat \
        run does the same for any other command.\n\n\
        A stopped download continues when you run the same command again. It never mixes two \
        versions of a file.\n\n\
        The commands status, add, pause, resume, cancel, start, restore and fleet talk to \
        fairbat-agent. \
        All other commands work without it.",
    arg_required_else_help = true,
    subcommand_value_name = "COMMAND",
    args_override_self = true
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// A command with its arguments.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Get(Box<GetArgs>),
    Plan(Box<PlanArgs>),
    Put(Box<PutArgs>),
    Run(Box<RunArgs>),
    Runs(RunsArgs),
    Proxy(Box<ProxyArgs>),
    Serve(Box<ServeArgs>),
    Status(StatusArgs),
    Add(AddArgs),
    #[command(
        about = "Pause tasks of the agent",
        long_about = "Pauses tasks of the agent until fairbat resume. Their progress is kept."
    )]
    Pause(TaskArgs),
    #[command(about = "Resume paused tasks of the agent")]
    Resume(TaskArgs),
    #[command(
        about = "End the run of a job, or remove a download or a restore",
        long_about = "Ends the current run of a job, even if it is paused or waits for a retry. \
            The job runs again at its next time. A paused job runs again after fairbat resume. \
            Downloads and restores are removed from the agent."
    )]
    Cancel(TaskArgs),
    Start(StartArgs),
    Restore(RestoreArgs),
    Fleet(FleetArgs),
    Doctor(Box<DoctorArgs>),
    Setup(SetupArgs),
    /// Print a completion script for a shell
    Completions {
        /// The shell that will read the script
        shell: Shell,
    },
    /// Print the manual pages; fairbat-agent man prints those of the agent
    Man {
        /// Write one file per page into this directory (fairbat.1, fairbat-get.1, ...)
        ///
        /// The directory is made if it is missing. Without this flag, all pages go to standard
        /// output.
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
#[command(
    about = "Load kernel parts that help all users' transfers yield better (root)",
    long_about = "Loads two parts into the kernel, as eBPF programs, for all users of this \
        machine.\n\n\
        The packet observer records when each packet of a connection was sent and when it \
        arrived. It does so only for connections whose owner asks for it. fairbat get asks for \
        its own downloads.\n\n\
        The congestion controls fairbat_vegas, fairbat_cdg and fairbat_cubic have a weight for \
        each connection. fairbat put and fairbat serve choose one with --sender. Any other \
        program may choose one too.\n\n\
        Other connections do not change. Nothing is written to the disk. Users can only affect \
        their own connections.\n\n\
        Only root can load the parts. They stay until the machine restarts or until --remove. \
        The kernel needs BTF, which distributions enable. The observer needs Linux 5.15, the \
        congestion controls need Linux 6.4. If one part fails, the other is still loaded.\n\n\
        Both parts live in a BPF file system of their own, /run/fairbat/bpf. If the kernel \
        already uses a name, the new one gets a number: fairbat_vegas2. A second setup changes \
        nothing. After an upgrade, it replaces the old version. Connections that use the old \
        version keep it.\n\n\
        A running fairbat put or fairbat serve uses the congestion controls, once loaded, for \
        each connection that it begins to hold back from then on. A running fairbat get does not use the \
        observer; start it again."
)]
pub(crate) struct SetupArgs {
    /// Remove both parts from the kernel, whatever their version
    ///
    /// A connection that uses one of the congestion controls keeps it until it ends.
    #[arg(long)]
    pub(crate) remove: bool,
    /// Only print what is loaded; works without root
    #[arg(long, conflicts_with = "remove")]
    pub(crate) status: bool,
}

/// The command with all its flags. The parser, the manual and the completions use it.
pub(crate) fn command() -> clap::Command {
    let with_appendix = |command: clap::Command| {
        let sections = appendix::of(command.get_name());
        if sections.is_empty() {
            return command;
        }
        command
            .after_help(manual::help_text(&sections[..1]))
            .after_long_help(manual::help_text(&sections))
    };
    with_appendix(Cli::command()).mut_subcommands(|command| {
        with_appendix(command)
            .args_override_self(true)
            .mut_args(with_variable)
    })
}

/// The flag with its variable: `--max-time` is also `FAIRBAT_MAX_TIME`, unless it names its own. The
/// variable of a flag without a value can also say no.
fn with_variable(arg: Arg) -> Arg {
    let Some(long) = arg.get_long() else {
        return arg;
    };
    // clap keeps names as long as the process lives.
    let variable = match arg.get_env() {
        Some(own) => own.to_owned(),
        None => variable_of(long).into(),
    };
    let variable = variable.leak();
    let arg = match arg.get_action() {
        ArgAction::SetTrue => arg.value_parser(FalseyValueParser::new()),
        _ => arg,
    };
    // A variable may hold a secret, so the help never shows values.
    arg.env(&*variable).hide_env_values(true)
}

/// The name of a flag's variable, by its long name or its id.
fn variable_of(flag: &str) -> String {
    format!("FAIRBAT_{}", flag.to_uppercase().replace('-', "_"))
}

/// The manual pages.
///
/// # Errors
/// A page cannot be rendered.
pub(crate) fn pages() -> io::Result<Vec<Page>> {
    manual::pages(command(), "1", "User Commands", appendix::of)
}

/// Reads the command line and the environment. Prints help, the version or a usage error
/// and ends the process if that is all there is to do.
pub(crate) fn parse() -> Command {
    // The help explains the variables once. The manual names each of them.
    let command = command().mut_subcommands(|command| command.mut_args(|arg| arg.hide_env(true)));
    command
        .try_get_matches()
        .and_then(|matches| from_matches(&matches))
        .unwrap_or_else(|error| with_tip(error).exit())
}

/// Adds a tip to the error for `fairbat URL`, the usual form of other downloaders, and for
/// `fairbat run` without `--`.
fn with_tip(mut error: clap::Error) -> clap::Error {
    if let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg)
        && std::env::args_os()
            .nth(1)
            .is_some_and(|command| command == "run")
        && !word.starts_with('-')
    {
        let tips = [
            format!("to run a command, write 'fairbat run -- {word}'"),
            format!("to start a job of the agent, write 'fairbat start {word}'"),
        ];
        let tips = tips.map(Into::into).to_vec();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
        return error;
    }
    if let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand)
        && word.contains("://")
    {
        let tip = "to download, write 'fairbat get URL'".into();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    error
}

fn from_matches(matches: &ArgMatches) -> Result<Command, clap::Error> {
    let mut command = Cli::from_arg_matches(matches)?.command;
    match (&mut command, matches.subcommand()) {
        (Command::Get(args), Some((_, matches))) => {
            args.files.resume = resume(matches);
            if let Some(error) = against_follow(args, matches) {
                return Err(error);
            }
        }
        // `plan` has the same variable, so that alone asks for nothing here.
        (Command::Doctor(args), Some((_, matches)))
            if args.path.is_none() && is_from(matches, "measure", ValueSource::CommandLine) =>
        {
            let wrong = "--measure is for --path URL: name a file to download meanwhile\n";
            return Err(clap::Error::raw(ErrorKind::MissingRequiredArgument, wrong));
        }
        _ => {}
    }
    Ok(command)
}

/// A flag that does not go with --follow, or with a run without it, as an error.
///
/// clap's own rules count a variable like a flag, and one that says "no" like "yes". A variable
/// is meant for all runs, so one that only --follow reads is ignored by the others. One that
/// would be lost with --follow is refused.
fn against_follow(args: &GetArgs, matches: &ArgMatches) -> Option<clap::Error> {
    let wrong = |kind, what: String| Some(clap::Error::raw(kind, what + "\n"));
    let flag = |id: &str| format!("--{}", id.replace('_', "-"));
    if !args.stream.follow {
        let mut shaping = StreamArgs::OF_FOLLOW.into_iter();
        let id = shaping.find(|id| is_from(matches, id, ValueSource::CommandLine))?;
        let what = format!(
            "{} is for --follow: add --follow, or leave it out",
            flag(id)
        );
        return wrong(ErrorKind::MissingRequiredArgument, what);
    }
    if args.files.input_file.is_none() {
        let what = "--follow reads URLs as they come: name where from, as in -i -";
        return wrong(ErrorKind::MissingRequiredArgument, what.to_owned());
    }
    let mut of_batch = StreamArgs::OF_BATCH.into_iter();
    let id = of_batch.find(|id| {
        let is_no = matches!(matches.try_get_one::<bool>(id), Ok(Some(false)));
        matches.value_source(id).is_some()
            && !is_from(matches, id, ValueSource::DefaultValue)
            && !is_no
    })?;
    let what = match is_from(matches, id, ValueSource::EnvVariable) {
        true => format!(
            "{} is set, and has no meaning with --follow: unset it",
            variable_of(id)
        ),
        false => format!(
            "{} cannot be used with --follow: leave one of them out",
            flag(id)
        ),
    };
    wrong(ErrorKind::ArgumentConflict, what)
}

/// Whether the value of this argument comes from there.
fn is_from(matches: &ArgMatches, id: &str, source: ValueSource) -> bool {
    matches.value_source(id) == Some(source)
}

/// Decides between `--continue` and `--no-continue`. The last one on the command line
/// wins, then the environment, then the default: continue.
///
/// clap's own overriding reports a conflict between a flag and a variable.
fn resume(matches: &ArgMatches) -> bool {
    let typed_at = |id| {
        let typed = is_from(matches, id, ValueSource::CommandLine);
        typed.then(|| matches.index_of(id)).flatten()
    };
    let (yes, no) = (typed_at("continue_"), typed_at("no_continue"));
    if yes != no {
        return yes > no;
    }
    let variable =
        |id| is_from(matches, id, ValueSource::EnvVariable).then(|| matches.get_flag(id));
    variable("no_continue") != Some(true) && variable("continue_") != Some(false)
}

#[cfg(test)]
pub(crate) mod tests;
