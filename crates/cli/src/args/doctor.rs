//! The flags of `fairbat doctor`.

use std::time::Duration;

use clap::{Args, ValueHint};
use fairbat::units::parse_duration;

use crate::args::shared::{AnswerArgs, LogArgs, RequestArgs, TimeoutArgs};

#[derive(Debug, Args)]
#[command(
    about = "Show what this machine supports, or what kind of bottleneck a path has",
    long_about = "Shows what this machine supports, what is missing, and which lever makes \
        transfers yield.\n\n\
        With --path, it looks at a path instead. It downloads from a file over one connection \
        and throws the data away. It says what kind of bottleneck the path has, and how well \
        a download yields there. It also says the highest rate, the round-trip time without a \
        queue, and the longest queue.\n\n\
        For 30 % of the time the connection yields. Then it is an ordinary connection, which \
        fills the queue on the way and disturbs others, because a queue shows what it is only \
        when it is full. Other traffic makes it harder to tell. The answer may be that the \
        kind is unknown.\n\n\
        One connection cannot tell whether a router has a queue for each connection (fair \
        queueing)."
)]
pub(crate) struct DoctorArgs {
    /// Look at the path from the server of this http or https URL
    ///
    /// Name a file that takes longer to download than the measurement. A user name and
    /// password in a URL are used for its host only. They are never shown.
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) path: Option<String>,

    /// With --path: download for at most this long
    ///
    /// Ten seconds or less show little. Long paths need more.
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "20s",
        value_parser = parse_duration
    )]
    pub(crate) measure: Duration,

    #[command(flatten)]
    pub(crate) requests: RequestArgs,
    #[command(flatten)]
    pub(crate) timeouts: TimeoutArgs,
    #[command(flatten)]
    pub(crate) messages: AnswerArgs,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}
