//! The flags of `fairbat put`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::shared::{
    ControllerMethod, FailureArgs, LaneArgs, LimitArgs, LogArgs, MessageArgs, PathArgs,
    RequestArgs, SenderMethod, TimeoutArgs, weight,
};

// These groups have no doc comments: clap would show them as the help of the command.

#[derive(Debug, Args)]
#[command(
    about = "Upload a file",
    long_about = "Sends FILE to a server with HTTP PUT, over one connection, and yields to other \
        traffic. Without a deadline, an upload always yields. With a deadline, it yields as far \
        as the deadline allows. An upload that is short of time uses an ordinary connection, \
        which does not yield. With --weight 1, it never yields. With several paths in \
        --interface, it has one connection on each, if the server takes uploads in parts.\n\n\
        A URL that ends with / is a directory on the server. The upload keeps its file name \
        there.\n\n\
        An interrupted upload starts over. It cannot continue, because no server keeps a part \
        of a file for a later run. Most servers keep the old file until the new one is complete. \
        If FILE changes while it is read, the upload stops before its last byte and is never \
        reported as done.\n\n\
        Redirects 307 and 308 are followed. Redirects 301, 302 and 303 are not, because they do \
        not allow an upload at the new place.\n\n\
        Each flag has an environment variable, and the command line wins. If a flag is given \
        twice, the last one counts.",
    override_usage = "fairbat put [OPTIONS] FILE URL"
)]
pub(crate) struct PutArgs {
    /// The file to upload; it must be a regular file
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,

    /// The http or https URL of the upload; after a final /, the file keeps its name
    ///
    /// A user name and password in a URL are used for its host only. They are never shown.
    #[arg(value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) url: String,

    /// Fail if the file already exists on the server
    ///
    /// fairbat asks the server first. The upload itself also carries the condition
    /// (If-None-Match). If a server ignores the condition and two uploads run at once, the
    /// later one wins.
    #[arg(long)]
    pub(crate) create_only: bool,

    #[command(flatten)]
    pub(crate) speed: UploadSpeedArgs,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    #[command(flatten)]
    pub(crate) lane: LaneArgs,
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
pub(crate) struct UploadSpeedArgs {
    /// When the server should have the file: 06:00, 90s, 45m, 4h, or RFC 3339
    ///
    /// WHEN is a moment (2026-03-01T06:00:00Z), the next local time of day (06:00), or a time
    /// span from now (4h).
    ///
    /// The closer the deadline, the less the upload yields. It takes at most the share of one
    /// ordinary connection.
    ///
    /// The deadline is soft. A late upload goes on; see --fail-late and --max-time. Time
    /// asleep counts. If the clock is set, fairbat warns and plans again.
    #[arg(long, value_name = "WHEN")]
    pub(crate) deadline: Option<String>,

    /// The lowest weight of the connection, from 0.02 (yields to all) to 1 (never yields)
    ///
    /// Without a deadline, the connection always has this weight. A deadline can raise it, up
    /// to 1, which is an ordinary upload.
    #[arg(long, value_name = "W", default_value = "0.02", value_parser = weight)]
    pub(crate) weight: f64,

    /// Which congestion control yields to other traffic
    ///
    /// Over TCP, this needs the congestion controls that root loads with fairbat setup. Without
    /// them, the upload uses what the kernel has there, and this flag changes nothing.
    #[arg(long, value_name = "POLICY", default_value = "vegas")]
    pub(crate) sender: SenderMethod,

    /// How a deadline raises the weight; without a deadline, it has no effect
    ///
    /// Every second, the controller compares the rate with the one that the deadline needs. The
    /// policies pid and mbc are included for comparison.
    #[arg(long, value_name = "POLICY", default_value = "share")]
    pub(crate) controller: ControllerMethod,

    #[command(flatten)]
    pub(crate) paths: PathArgs,
}
