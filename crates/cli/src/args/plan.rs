//! The flags of `fairbat plan`.

use clap::builder::FalseyValueParser;
use clap::{Args, ValueHint};

use super::shared::{LogArgs, RequestArgs, TimeoutArgs};

// No doc comments on these groups: clap would take them for the help of the
// whole command.

#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// What is to be downloaded: an http or https URL
    ///
    /// A user name and a password in a URL are used for its host only and
    /// never shown.
    #[arg(value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) url: String,

    /// When the file should be there: 06:00, 90s, 45m, 4h, or RFC 3339
    ///
    /// A moment (2026-03-01T06:00:00Z), a local time of day (06:00, the next
    /// one) or a span from now, the measurement included.
    #[arg(long, value_name = "WHEN", env = "FAIRBAT_DEADLINE", required = true)]
    pub(crate) deadline: String,

    /// Fetch from the file for at most this long, to see what the path gives;
    /// 0 is not at all
    ///
    /// What arrives is thrown away. In the last quarter the connection does not
    /// yield to other traffic. The first second, in which a connection gathers
    /// speed, does not count: below some four seconds there is little to see.
    /// Without a measurement the verdict is unknown.
    #[arg(
        long,
        value_name = "DURATION",
        env = "FAIRBAT_MEASURE",
        default_value = "10s"
    )]
    pub(crate) measure: String,

    #[command(flatten)]
    pub(crate) requests: RequestArgs,
    #[command(flatten)]
    pub(crate) timeouts: TimeoutArgs,
    #[command(flatten)]
    pub(crate) messages: AnswerArgs,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Messages")]
pub(crate) struct AnswerArgs {
    /// Print one JSON object instead of text
    ///
    /// It is described in docs/json.md of the source.
    #[arg(long, env = "FAIRBAT_JSON", value_parser = FalseyValueParser::new())]
    pub(crate) json: bool,
}
