//! The flags of `fairbat get`.

use std::path::PathBuf;

use clap::builder::FalseyValueParser;
use clap::{Args, ValueEnum, ValueHint, value_parser};

use super::shared::{FailureArgs, LogArgs, MessageArgs, RequestArgs, TimeoutArgs};

// No doc comments on these groups: clap would take them for the help of the
// whole command.

#[derive(Debug, Args)]
pub(crate) struct GetArgs {
    /// What to download: http or https URLs
    ///
    /// A user name and a password in a URL are used for its host only and
    /// never shown.
    #[arg(
        value_name = "URL",
        required_unless_present = "input_file",
        value_hint = ValueHint::Url
    )]
    pub(crate) urls: Vec<String>,
    #[command(flatten)]
    pub(crate) files: FileArgs,
    #[command(flatten)]
    pub(crate) pace: PaceArgs,
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
#[command(next_help_heading = "Saving")]
pub(crate) struct FileArgs {
    /// Save to FILE; with one URL only
    ///
    /// An existing FILE is replaced, at once, when the new one is complete. A
    /// relative FILE is taken from --directory, if that is given.
    #[arg(
        short,
        long,
        value_name = "FILE",
        env = "FAIRBAT_OUTPUT",
        value_hint = ValueHint::FilePath
    )]
    pub(crate) output: Option<PathBuf>,

    /// Save into DIR, under the names that the servers give [default: .]
    ///
    /// No existing file is replaced: a free name (NAME.1, NAME.2, ...) is
    /// taken instead. A file that fairbat saved there is not fetched again, as
    /// long as it and the server's version of it are unchanged, and the server
    /// tells the version (an ETag or Last-Modified).
    #[arg(
        short,
        long,
        value_name = "DIR",
        env = "FAIRBAT_DIRECTORY",
        value_hint = ValueHint::DirPath
    )]
    pub(crate) directory: Option<PathBuf>,

    /// Read URLs from FILE too, one per line; `-` is standard input
    ///
    /// Empty lines and lines that begin with # are skipped. After a URL its own
    /// deadline may follow, as for --deadline but without spaces, and counts
    /// instead of it: URL deadline=06:00
    #[arg(
        short,
        long,
        value_name = "FILE",
        env = "FAIRBAT_INPUT_FILE",
        value_hint = ValueHint::FilePath
    )]
    pub(crate) input_file: Option<PathBuf>,

    /// Continue what an earlier run left unfinished (the default)
    #[arg(
        short = 'c',
        long = "continue",
        env = "FAIRBAT_CONTINUE",
        value_parser = FalseyValueParser::new()
    )]
    continue_: bool,

    /// Start over, dropping what an earlier run left unfinished
    #[arg(
        long,
        env = "FAIRBAT_NO_CONTINUE",
        value_parser = FalseyValueParser::new()
    )]
    no_continue: bool,

    // The two flags above, resolved.
    #[arg(skip = true)]
    pub(crate) resume: bool,

    /// What the file must hash to: sha-256=HEX or sha-512=HEX; with one URL
    /// only
    ///
    /// A file with another digest is not kept, and the exit status is 4.
    #[arg(long, value_name = "TYPE=HEX", env = "FAIRBAT_CHECKSUM")]
    pub(crate) checksum: Option<String>,

    /// How disk space is reserved
    #[arg(
        long,
        value_name = "METHOD",
        env = "FAIRBAT_FILE_ALLOCATION",
        default_value = "falloc"
    )]
    pub(crate) file_allocation: AllocationMethod,
}

/// How disk space for a file of known size is reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AllocationMethod {
    /// Not at all: the file grows as bytes arrive
    None,
    /// With fallocate(2) before the first byte, so that a full disk is
    /// noticed at once
    Falloc,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Deadline and speed")]
pub(crate) struct PaceArgs {
    /// When the files should be there: 06:00, 90s, 45m, 4h, or RFC 3339
    ///
    /// A moment (2026-03-01T06:00:00Z), a local time of day (06:00, the next
    /// one) or a span from now. The nearer it presses, the less the download
    /// yields to other traffic, down to not at all, as one ordinary connection;
    /// more connections are used only when even that is not enough. The
    /// deadline is soft: a late download goes on, see --fail-late and
    /// --max-time. Of several files the earliest deadline goes first; when not
    /// all of them can be met, that keeps the largest lateness smallest, and a
    /// warning says which will probably be late. A span too becomes a moment of
    /// the wall clock: time that the machine sleeps counts, and when the clock
    /// is set all is planned anew, with a warning. A later run counts a span
    /// anew; name a moment to keep it. A file whose size the server does not
    /// tell cannot be planned and, with a deadline, does not yield.
    #[arg(long, value_name = "WHEN", env = "FAIRBAT_DEADLINE")]
    pub(crate) deadline: Option<String>,

    /// The least weight of a connection: from 0.02 (yields to anybody) to 1
    /// (never yields: an ordinary download)
    ///
    /// Without a deadline a connection has this weight all the time; a deadline
    /// raises it from here, never above 1. Between the two a connection asks for
    /// W/(1 + W) of the highest rate that this run has seen, whoever else is
    /// there, and takes more where others leave it. Beside a flow that was there
    /// first that rate may be low, and a weight in between then changes little.
    #[arg(long, value_name = "W", env = "FAIRBAT_WEIGHT", default_value = "0.02")]
    pub(crate) weight: String,

    /// What decides how far a connection yields
    ///
    /// In each case by its receive window, and as its weight allows. Vulture is
    /// here for comparison.
    #[arg(
        long,
        value_name = "POLICY",
        env = "FAIRBAT_RECEIVER",
        default_value = "delay"
    )]
    pub(crate) receiver: ReceiverMethod,

    /// Exit with 11 instead of 0 when a file was finished after the deadline
    #[arg(long, env = "FAIRBAT_FAIL_LATE", value_parser = FalseyValueParser::new())]
    pub(crate) fail_late: bool,

    /// Stop after this time, finished or not (exit status 10); 0 is never
    ///
    /// The same command continues later.
    #[arg(long, value_name = "DURATION", env = "FAIRBAT_MAX_TIME")]
    pub(crate) max_time: Option<String>,

    /// Never go faster than this many bytes per second, all files together
    ///
    /// 500K, 2M, 1G: powers of 1024. 0 is no limit.
    #[arg(long, value_name = "RATE", env = "FAIRBAT_LIMIT_RATE")]
    pub(crate) limit_rate: Option<String>,

    /// Connections to begin with, and never to go below
    ///
    /// Each yields by itself, so N of them together yield less than one.
    #[arg(
        short,
        long,
        value_name = "N",
        env = "FAIRBAT_SPLIT",
        default_value_t = 1,
        value_parser = value_parser!(u32).range(1..)
    )]
    pub(crate) split: u32,

    /// Connections never to go above, all files together [default: 4, or
    /// --split if that is more]
    ///
    /// Those beyond --split come only when a deadline presses, the connections
    /// there are do not yield any more, and what they carry is still not
    /// enough; and they go when the pressure does. With 1 a download never
    /// takes more than one ordinary connection.
    #[arg(
        short = 'x',
        long,
        value_name = "N",
        env = "FAIRBAT_MAX_CONNECTIONS",
        value_parser = value_parser!(u32).range(1..)
    )]
    pub(crate) max_connections: Option<u32>,

    /// Fetch pieces of this many bytes (1M, 512K); by default the size
    /// follows the speed
    #[arg(long, value_name = "SIZE", env = "FAIRBAT_CHUNK_SIZE")]
    pub(crate) chunk_size: Option<String>,
}

/// What decides how far a connection yields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReceiverMethod {
    /// Queueing delay: the round-trip time against the least one of late
    Delay,
    /// Vulture's packet-interval variations (Li and Welzl 2017); without
    /// per-packet timestamps, changes of the round-trip time in their place
    Vulture,
}
