//! The flags of `fairbat put`.

use std::path::PathBuf;

use clap::builder::FalseyValueParser;
use clap::{Args, ValueHint};

use super::shared::{FailureArgs, LogArgs, MessageArgs, RequestArgs, SenderMethod, TimeoutArgs};

// No doc comments on these groups: clap would take them for the help of the
// whole command.

#[derive(Debug, Args)]
pub(crate) struct PutArgs {
    /// What to upload: a regular file
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,

    /// Where to: an http or https URL; one that ends with / gets the name of
    /// the file
    ///
    /// A user name and a password in a URL are used for its host only and
    /// never shown.
    #[arg(value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) url: String,

    /// Replace nothing: refuse when there is a file already
    ///
    /// The server is asked first, and told in the request itself
    /// (If-None-Match). Of two who upload at the same moment, a server that does
    /// not know that condition keeps the later one.
    #[arg(long, env = "FAIRBAT_CREATE_ONLY", value_parser = FalseyValueParser::new())]
    pub(crate) create_only: bool,

    #[command(flatten)]
    pub(crate) pace: UploadPaceArgs,
    #[command(flatten)]
    pub(crate) requests: RequestArgs,
    #[command(flatten)]
    pub(crate) failures: FailureArgs,
    #[command(flatten)]
    pub(crate) timeouts: TimeoutArgs,
    #[command(flatten)]
    pub(crate) messages: MessageArgs,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Deadline and speed")]
pub(crate) struct UploadPaceArgs {
    /// When the server should have the file: 06:00, 90s, 45m, 4h, or RFC 3339
    ///
    /// A moment (2026-03-01T06:00:00Z), a local time of day (06:00, the next
    /// one) or a span from now. The nearer it presses, the less the upload
    /// yields to other traffic, down to not at all, as one ordinary connection.
    /// The deadline is soft: a late upload goes on, see --fail-late and
    /// --max-time. Time that the machine sleeps counts, and when the clock is
    /// set all is planned anew, with a warning.
    #[arg(long, value_name = "WHEN", env = "FAIRBAT_DEADLINE")]
    pub(crate) deadline: Option<String>,

    /// The least weight of the connection: from 0.02 (yields to anybody) to 1
    /// (never yields: an ordinary upload)
    ///
    /// Without a deadline it has this weight all the time; a deadline raises it
    /// from here, never above 1.
    #[arg(long, value_name = "W", env = "FAIRBAT_WEIGHT", default_value = "0.02")]
    pub(crate) weight: String,

    /// Which congestion control decides how far the connection yields
    ///
    /// Only where root has loaded them. Elsewhere the upload yields by what the
    /// kernel has, and this changes nothing.
    #[arg(
        long,
        value_name = "POLICY",
        env = "FAIRBAT_SENDER",
        default_value = "vegas"
    )]
    pub(crate) sender: SenderMethod,

    /// Exit with 11 instead of 0 when the server had the file after the
    /// deadline
    #[arg(long, env = "FAIRBAT_FAIL_LATE", value_parser = FalseyValueParser::new())]
    pub(crate) fail_late: bool,

    /// Stop after this time, finished or not (exit status 10); 0 is never
    #[arg(long, value_name = "DURATION", env = "FAIRBAT_MAX_TIME")]
    pub(crate) max_time: Option<String>,

    /// Never go faster than this many bytes per second
    ///
    /// 500K, 2M, 1G: powers of 1024. 0 is no limit.
    #[arg(long, value_name = "RATE", env = "FAIRBAT_LIMIT_RATE")]
    pub(crate) limit_rate: Option<String>,
}
