//! The flags that several commands share.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};
use dalbe::receive_window::ReceiverPolicy;
use dalbe::sender::SenderPolicy;
use dalbe::weight::{ControllerPolicy, MIN_WEIGHT};
use fairbat::machine::MachineLane;
use fairbat::settings::Http3Policy;
use fairbat::units::{SizeError, parse_duration, parse_size};

// These groups have no doc comments: clap would show them as the help of the command.

#[derive(Debug, Args)]
#[command(next_help_heading = "Deadline and speed")]
pub(crate) struct LimitArgs {
    /// Exit with 11 instead of 0 if a file misses its deadline
    #[arg(long)]
    pub(crate) fail_late: bool,

    /// Stop after this time, even if unfinished (exit status 10); 0 means never
    ///
    /// A later get continues where the run stopped. A later put starts over.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) max_time: Option<Duration>,

    /// Never go faster than this many bytes per second
    ///
    /// Write 500K, 2M or 1G, in powers of 1024. 0 means no limit. All files of a run share
    /// the limit. Servers may close connections that are too slow. fairbat serve closes those
    /// that carry less than 1 KiB in a minute.
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub(crate) limit_rate: Option<u64>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Deadline and speed")]
pub(crate) struct PathArgs {
    /// Use these network interfaces at once: names or addresses, separated by commas
    ///
    /// Each piece of a file goes over the interface by which it will have arrived first. Options
    /// follow after colons: eth0,wwan0:cost=metered:limit=500K
    ///
    /// weight=W is the lowest weight on this path, limit=RATE its highest rate. A path with
    /// cost=metered is used only if a deadline needs it, and then as late and as little as will
    /// do. Write an IPv6 address in brackets before options: [2001:db8::1]:cost=metered
    ///
    /// A path may go and come back during the transfer. Paths with the same bottleneck=NAME share a
    /// bottleneck and take the share of one, as Wi-Fi and cable to the same router.
    ///
    /// An upload goes over several interfaces only to a server that takes uploads in parts, such as
    /// fairbat serve --writable. To other servers it goes over one, the first that connects.
    #[arg(
        id = "interface",
        long,
        overrides_with = "interface",
        value_name = "LIST",
        value_delimiter = ','
    )]
    pub(crate) interfaces: Vec<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Agent")]
pub(crate) struct LaneArgs {
    /// Do not share a lane with fairbat-agent and other commands
    ///
    /// Where fairbat-agent runs, all commands share its lane: together they yield as one, and
    /// what is due first goes first. Without an agent, each command is alone. A command with
    /// --weight 1 is always alone.
    #[arg(long)]
    pub(crate) alone: bool,

    /// The agent's socket; the socket of its lane, lane.sock, is beside it
    #[arg(
        long,
        value_name = "PATH",
        default_value = AGENT_SOCKET,
        value_hint = ValueHint::FilePath
    )]
    pub(crate) socket: PathBuf,
}

/// Where the agent of a machine listens.
pub(crate) const AGENT_SOCKET: &str = "/run/fairbat/agent.sock";

impl LaneArgs {
    /// The lane of the machine, for the command of this name with this least weight. One that
    /// never yields is alone.
    pub(crate) fn machine(&self, name: &str, weight: f64) -> Option<MachineLane> {
        let is_shared = !self.alone && weight < 1.0;
        let is_named = self.socket != Path::new(AGENT_SOCKET);
        is_shared.then(|| MachineLane::of_agent(&self.socket, name).expected(is_named))
    }
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Requests")]
pub(crate) struct RequestArgs {
    /// Send this header with every request; may be repeated
    ///
    /// Only the hosts of the given URLs receive it. Hosts that they redirect to do not.
    ///
    /// Other users of the machine can see a command line, and any token in it. Prefer the
    /// variable for headers such as 'Authorization: Bearer TOKEN'. FAIRBAT_HEADER holds one
    /// header per line.
    #[arg(short = 'H', long, value_name = "NAME: VALUE", value_delimiter = '\n')]
    pub(crate) header: Vec<String>,

    /// Log in with Basic authentication
    ///
    /// Only the hosts of the given URLs receive the login. Other users of the machine can see
    /// a command line. FAIRBAT_USER and --netrc are safer.
    #[arg(short, long, value_name = "USER:PASSWORD")]
    pub(crate) user: Option<String>,

    /// Read user names and passwords from $NETRC, or from ~/.netrc
    ///
    /// They are for the hosts of the given URLs. Hosts that they redirect to receive none,
    /// even if the file names them or has a default entry. An entry without a password, but
    /// with an unknown word, is not used.
    #[arg(short, long)]
    pub(crate) netrc: bool,

    /// Trust only the certificate authorities in this PEM file, instead of the system's
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) cacert: Option<PathBuf>,

    /// When to speak HTTP/3, which goes over UDP
    ///
    /// With auto, wherever a server offers it. Where it does not work, everything goes over TCP.
    /// With a proxy, HTTP/3 is not spoken.
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    pub(crate) http3: Http3Choice,
}

// When HTTP/3 is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Http3Choice {
    /// Where a server offers it, and it works
    #[default]
    Auto,
    /// With every server, never over TCP
    Only,
    /// Not at all
    Never,
}

impl From<Http3Choice> for Http3Policy {
    fn from(when: Http3Choice) -> Self {
        match when {
            Http3Choice::Auto => Self::Auto,
            Http3Choice::Only => Self::Only,
            Http3Choice::Never => Self::Never,
        }
    }
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Failures")]
pub(crate) struct FailureArgs {
    /// Give up after N retries in a row without progress; `inf` means never
    /// [default: 20, or 5 before the first answer of a server]
    #[arg(long, value_name = "N", value_parser = retries)]
    pub(crate) retry: Option<RetryLimit>,

    /// The wait after the first failure; it doubles with each further failure
    ///
    /// Each wait is shortened at random, so that many clients do not come back at once. If a
    /// server asks for a longer wait (Retry-After), fairbat waits longer, but at most an hour
    /// or the time of --retry-max-wait.
    #[arg(long, value_name = "DURATION", default_value = "500ms", value_parser = parse_duration)]
    pub(crate) retry_wait: Duration,

    /// The longest wait, also if a server asks for more [default: 30s, or --retry-wait if that
    /// is more; an hour if a server asks for that]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) retry_max_wait: Option<Duration>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Failures")]
pub(crate) struct TimeoutArgs {
    /// Give up a connection that takes longer than this to open; 0 means never
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_duration)]
    pub(crate) connect_timeout: Duration,

    /// Give up a connection that is silent for this long; 0 means never
    ///
    /// An upload is silent if the server acknowledges no data. After the last byte, the
    /// server may take as long to answer as the upload took.
    #[arg(long, value_name = "DURATION", default_value = "20s", value_parser = parse_duration)]
    pub(crate) stall_timeout: Duration,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Messages")]
pub(crate) struct AnswerArgs {
    /// Print one JSON object instead of text
    ///
    /// docs/json.md in the source describes it.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Messages")]
pub(crate) struct MessageArgs {
    /// Print one JSON object per line to standard output
    ///
    /// docs/json.md in the source describes the objects.
    #[arg(long)]
    pub(crate) json: bool,

    /// Make the same random choices (retry waits) as another run with N
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub(crate) seed: Option<u64>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Messages")]
pub(crate) struct LogArgs {
    /// Print errors only
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// Explain more on standard error; -vv gives details, -vvv everything
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

/// How a connection detects other traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReceiverMethod {
    /// Queueing delay: the round-trip time minus its recent minimum
    Delay,
    /// Packet-interval variations (Li and Welzl 2017), or changes of the round-trip time
    /// where packets have no timestamps
    Vulture,
}

impl From<ReceiverMethod> for ReceiverPolicy {
    fn from(method: ReceiverMethod) -> Self {
        match method {
            ReceiverMethod::Delay => Self::Delay,
            ReceiverMethod::Vulture => Self::Vulture,
        }
    }
}

/// Which of fairbat's congestion controls limits what is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SenderMethod {
    /// The rules of a download: fills an idle path with a short queue, and yields
    Vegas,
    /// CDG: slows down when delays grow
    Cdg,
    /// CUBIC that reacts to congestion more often when its weight is low
    Cubic,
}

impl From<SenderMethod> for SenderPolicy {
    fn from(method: SenderMethod) -> Self {
        match method {
            SenderMethod::Vegas => Self::Vegas,
            SenderMethod::Cdg => Self::Cdg,
            SenderMethod::Cubic => Self::Cubic,
        }
    }
}

/// The deadline controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ControllerMethod {
    /// FAIRBAT's own: it learns how much rate a weight gets on this path
    Share,
    /// DA-LBE's PID controller (Hayes et al. 2017), for comparison
    Pid,
    /// A model-based controller after DA-LBE, for comparison
    Mbc,
}

impl From<ControllerMethod> for ControllerPolicy {
    fn from(method: ControllerMethod) -> Self {
        match method {
            ControllerMethod::Share => Self::Share,
            ControllerMethod::Pid => Self::Pid,
            ControllerMethod::Mbc => Self::Mbc,
        }
    }
}

/// The limit of `--retry`; `None` means to never give up.
pub(crate) type RetryLimit = Option<u32>;

fn retries(text: &str) -> Result<RetryLimit, String> {
    match text {
        "inf" => Ok(None),
        _ => text
            .parse()
            .map(Some)
            .map_err(|_| "write a whole number, or inf to never give up".to_owned()),
    }
}

/// Parses the lowest weight of a connection, [`MIN_WEIGHT`] to 1.
pub(crate) fn weight(text: &str) -> Result<f64, String> {
    let weight = text.parse().ok();
    weight
        .filter(|weight| (MIN_WEIGHT..=1.0).contains(weight))
        .ok_or_else(|| {
            format!(
                "write a number from {MIN_WEIGHT} (yields to all) to 1 (never yields), such as 0.3"
            )
        })
}

/// Parses a rate in byte/s. Zero is valid: the command line can lift a limit from the
/// environment.
pub(crate) fn rate(text: &str) -> Result<u64, SizeError> {
    match parse_size(text) {
        Err(SizeError::Zero(_)) => Ok(0),
        rate => rate,
    }
}
