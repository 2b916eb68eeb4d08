//! The flags of `fairbat run`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use fairbat::units::parse_size;

use super::shared::{ControllerMethod, LaneArgs, LogArgs, ReceiverMethod, SenderMethod, weight};

// These groups have no doc comments: clap would show them as the help of the command.

#[derive(Debug, Args)]
#[command(
    about = "Run any command so that its connections yield to other traffic",
    long_about = "Runs COMMAND so that all TCP connections of it and of its descendants yield to \
        other traffic, in both directions. Together they weigh as much as one connection, however \
        many they are. This needs no privilege, and works with any program. Without a deadline \
        they always yield. With a deadline, they yield as far as the deadline allows. For that, \
        fairbat has to know how much the command will move: by --bytes, by earlier runs of the \
        same --name, or by what the command itself tells (--progress-from).\n\n\
        The terminal, the working directory, signals and the exit status are those of the \
        command. fairbat prints one line when it starts and one when it ends, both on standard \
        error.\n\n\
        What descends from the command and goes on in the background also yields, until it ends. \
        UDP does not yield, and so neither does QUIC.\n\n\
        Connections are noticed as they are made, by a seccomp filter. Under it, a program with \
        a set-user-ID bit, such as sudo, runs without the rights of its owner, unless root \
        started fairbat. Use --no-seccomp for commands that need such programs.",
    override_usage = "fairbat run [OPTIONS] -- COMMAND [ARGUMENTS]\n       \
        fairbat run [OPTIONS] --pid PID | --unit UNIT | --cgroup DIR"
)]
pub(crate) struct RunArgs {
    /// The command with its arguments, after --
    #[arg(
        value_name = "COMMAND",
        last = true,
        required_unless_present_any = ["pid", "unit", "cgroup"],
        value_hint = ValueHint::CommandWithArguments
    )]
    pub(crate) command: Vec<OsString>,

    /// Hold the connections of this process and its descendants, until Ctrl-C
    ///
    /// Their connections are then as free as before. It needs the rights of a debugger over
    /// the process; fairbat doctor explains them.
    #[arg(long, value_name = "PID", conflicts_with = "command")]
    pub(crate) pid: Option<i32>,

    /// Hold the connections of this systemd unit, until Ctrl-C
    ///
    /// Only root may do so, for a unit of the system, by its own name; .service may be left out. All
    /// processes of its control group are held.
    #[arg(long, value_name = "UNIT", conflicts_with_all = ["command", "pid"])]
    pub(crate) unit: Option<String>,

    /// Hold the connections of the processes in this control group and those below it, until
    /// Ctrl-C
    ///
    /// DIR is its directory (cgroup version 2), such as /sys/fs/cgroup/system.slice.
    #[arg(
        long,
        value_name = "DIR",
        conflicts_with_all = ["command", "pid", "unit"],
        value_hint = ValueHint::DirPath
    )]
    pub(crate) cgroup: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) speed: RunSpeedArgs,

    /// Hold connections to addresses of this machine too, such as 127.0.0.1
    #[arg(long)]
    pub(crate) include_local: bool,

    /// Find connections by looking for them ten times a second, without a seccomp filter
    #[arg(long)]
    pub(crate) no_seccomp: bool,

    /// Write what happens into this file, one JSON object per line
    ///
    /// What was in the file before is lost. docs/json.md in the source describes the objects.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) events: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) lane: LaneArgs,

    #[command(flatten)]
    pub(crate) log: LogArgs,
}

/// How a command tells how far along it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProgressFormat {
    /// `restic --json`: status messages on standard output.
    ResticJson,
    /// `rclone --use-json-log`: statistics on standard error.
    RcloneJson,
    /// `rsync --info=progress2`: one line on standard output.
    Rsync,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Deadline and speed")]
pub(crate) struct RunSpeedArgs {
    /// When the command should be done: 06:00, 90s, 45m, 4h, or RFC 3339
    ///
    /// WHEN is a moment (2026-03-01T06:00:00Z), the next local time of day (06:00), or a time
    /// span from now (4h). The deadline is soft: a late command goes on.
    #[arg(long, value_name = "WHEN")]
    pub(crate) deadline: Option<String>,

    /// Name of the run: earlier runs of this name tell how much it will move
    ///
    /// When the command ends, the bytes that it has moved are noted below
    /// ~/.local/state/fairbat/runs. fairbat runs lists them. The plan is a little more than nine
    /// of ten recent runs have moved. If the command moves more than planned, the plan grows.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// How much the command will move until the deadline, in both directions: 500M, 40G
    ///
    /// In powers of 1024. It replaces what earlier runs tell.
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) bytes: Option<u64>,

    /// Learn from the command's own output how far along it is: restic-json, rclone-json or rsync
    ///
    /// restic-json: restic --json, on standard output. rclone-json: rclone --use-json-log -v
    /// --stats 1s, on standard error. rsync: rsync --info=progress2, on standard output. That stream
    /// is passed on unchanged, through a pipe. What is left to move follows from it. It needs
    /// --deadline.
    #[arg(long, value_name = "FORMAT", requires = "deadline", conflicts_with_all = ["pid", "unit", "cgroup"])]
    pub(crate) progress_from: Option<ProgressFormat>,

    /// The lowest weight with a deadline as long as nothing tells how much there is to move
    ///
    /// Then fairbat cannot plan, and says so.
    #[arg(long, value_name = "W", default_value = "0.5", value_parser = weight)]
    pub(crate) floor: f64,

    /// The lowest weight of all connections together, from 0.02 (yields to all) to 1 (never
    /// yields)
    ///
    /// A deadline can raise it, up to 1, which is one ordinary connection.
    #[arg(long, value_name = "W", default_value = "0.02", value_parser = weight)]
    pub(crate) weight: f64,

    /// The law for the receive window of connections that yield
    #[arg(long, value_name = "POLICY", default_value = "delay")]
    pub(crate) receiver: ReceiverMethod,

    /// Which congestion control holds back what is sent
    ///
    /// This needs the congestion controls that root loads with fairbat setup. Without them,
    /// the rate of the packets is limited, and this flag changes nothing.
    #[arg(long, value_name = "POLICY", default_value = "vegas")]
    pub(crate) sender: SenderMethod,

    /// How a deadline raises the weight; without a deadline, it has no effect
    #[arg(long, value_name = "POLICY", default_value = "share")]
    pub(crate) controller: ControllerMethod,
}

#[derive(Debug, Args)]
#[command(
    about = "List what commands have moved under fairbat run --name",
    long_about = "Prints one line for each name that fairbat run --name was used with: how many \
        runs there are, and how much the next one is planned with. With NAME, prints one line for \
        each run of that name."
)]
pub(crate) struct RunsArgs {
    /// List the runs of this name
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// Print one JSON object for each run
    #[arg(long)]
    pub(crate) json: bool,
}
