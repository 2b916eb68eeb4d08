//! The flags of several commands that ask servers.

use std::path::PathBuf;

use clap::builder::FalseyValueParser;
use clap::{Args, ValueEnum, ValueHint};
use dalbe::sender::SenderPolicy;

// No doc comments on these groups: clap would take them for the help of the
// whole command.

#[derive(Debug, Args)]
#[command(next_help_heading = "Requests")]
pub(crate) struct RequestArgs {
    /// Send this header with every request; may be repeated
    ///
    /// Only the hosts of the given URLs see it, not those that they redirect
    /// to. FAIRBAT_HEADER holds one header per line. Other users of the machine
    /// can see command lines, and a token in them: for 'Authorization: Bearer
    /// TOKEN', FAIRBAT_HEADER is safer.
    #[arg(
        short = 'H',
        long,
        value_name = "NAME: VALUE",
        env = "FAIRBAT_HEADER",
        value_delimiter = '\n'
    )]
    pub(crate) header: Vec<String>,

    /// Log in with Basic authentication
    ///
    /// Only the hosts of the given URLs see it. Other users of the machine
    /// can see command lines: FAIRBAT_USER and --netrc are safer.
    #[arg(short, long, value_name = "USER:PASSWORD", env = "FAIRBAT_USER")]
    pub(crate) user: Option<String>,

    /// Look up user names and passwords in $NETRC, or else ~/.netrc
    #[arg(short, long, env = "FAIRBAT_NETRC", value_parser = FalseyValueParser::new())]
    pub(crate) netrc: bool,

    /// Trust only the certificate authorities in this PEM file, not the
    /// system's
    #[arg(
        long,
        value_name = "FILE",
        env = "FAIRBAT_CACERT",
        value_hint = ValueHint::FilePath
    )]
    pub(crate) cacert: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Failures")]
pub(crate) struct FailureArgs {
    /// Give up after N retries in a row without progress; `inf` is never
    /// [default: 20, and 5 before the first answer of a server]
    #[arg(long, value_name = "N", env = "FAIRBAT_RETRY")]
    pub(crate) retry: Option<String>,

    /// Wait this long after the first failure, twice as long after each
    /// further one
    ///
    /// Waits are shortened at random, so that many clients do not return at
    /// the same moment. A server that asks for a longer wait (Retry-After)
    /// gets it.
    #[arg(
        long,
        value_name = "DURATION",
        env = "FAIRBAT_RETRY_WAIT",
        default_value = "500ms"
    )]
    pub(crate) retry_wait: String,

    /// Never wait longer than this by oneself [default: 30s, or --retry-wait
    /// if that is more]
    #[arg(long, value_name = "DURATION", env = "FAIRBAT_RETRY_MAX_WAIT")]
    pub(crate) retry_max_wait: Option<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Failures")]
pub(crate) struct TimeoutArgs {
    /// Give up a connection that takes longer to open; 0 is never
    #[arg(
        long,
        value_name = "DURATION",
        env = "FAIRBAT_CONNECT_TIMEOUT",
        default_value = "30s"
    )]
    pub(crate) connect_timeout: String,

    /// Give up a connection on which nothing arrives for this long; 0 is
    /// never
    ///
    /// In an upload: when for this long nothing is acknowledged of what is on
    /// its way. The answer may take as long as the upload did, besides.
    #[arg(
        long,
        value_name = "DURATION",
        env = "FAIRBAT_STALL_TIMEOUT",
        default_value = "20s"
    )]
    pub(crate) stall_timeout: String,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Messages")]
pub(crate) struct MessageArgs {
    /// Print one JSON object per line to standard output
    ///
    /// The objects are described in docs/json.md of the source.
    #[arg(long, env = "FAIRBAT_JSON", value_parser = FalseyValueParser::new())]
    pub(crate) json: bool,

    /// Make the same random choices (retry waits) as another run with N
    #[arg(long, value_name = "N", env = "FAIRBAT_SEED", hide_short_help = true)]
    pub(crate) seed: Option<u64>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Messages")]
pub(crate) struct LogArgs {
    /// Print errors only
    #[arg(short, long, env = "FAIRBAT_QUIET", value_parser = FalseyValueParser::new())]
    pub(crate) quiet: bool,

    /// Explain more on standard error; twice for details, three times for
    /// everything
    #[arg(short, long, env = "FAIRBAT_VERBOSE", action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

/// Which congestion control of fairbat's own holds back what is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SenderMethod {
    /// Vegas with a memory: fills an idle path with a short queue, and yields
    Vegas,
    /// CDG: backs off when delays grow
    Cdg,
    /// CUBIC that meets congestion more often the less it weighs
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
