//! The flags of `fairbat get`, and of `fairbat plan`, which forecasts a download.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint, value_parser};
use fairbat::settings::Checksum;
use fairbat::units::{parse_duration, parse_size};

use super::shared::{
    AnswerArgs, ControllerMethod, FailureArgs, LaneArgs, LimitArgs, LogArgs, MessageArgs, PathArgs,
    ReceiverMethod, RequestArgs, TimeoutArgs, weight,
};

// These groups have no doc comments: clap would show them as the help of the command.

#[derive(Debug, Args)]
#[command(
    about = "Download files",
    long_about = "Downloads each URL to a file and yields to other traffic. To yield, it limits \
        the receive window of its connections. That needs no privileges.\n\n\
        Without a deadline, a download always yields. With a deadline, it yields as far as the \
        deadline allows. A download that is short of time uses one ordinary connection, which \
        does not yield. If that is not enough, it opens more, up to --max-connections. Those yield, \
        unless --max-weight allows more. With --weight 1, it never yields.\n\n\
        With --follow, URLs are downloaded as they come, without a deadline: see there.\n\n\
        An unfinished download is kept as NAME.part, with its journal NAME.part.fairbat. The \
        same command continues it. If the file has changed on the server, the download starts \
        over. NAME appears only when the file is complete and verified.\n\n\
        Each flag has an environment variable, and the command line wins. For a flag without a \
        value, the variable can be 0, no, off, false or empty to mean no. If a flag is given \
        twice, the last one counts, except --header and --mirror: all of them count.",
    override_usage = "fairbat get [OPTIONS] URL...\n       \
        fairbat get [OPTIONS] --input-file FILE [--follow] [URL]...\n       \
        fairbat get [OPTIONS] --metalink FILE [URL]..."
)]
pub(crate) struct GetArgs {
    /// The http or https URLs to download
    ///
    /// A user name and password in a URL are used for its host only. They are never shown.
    #[arg(
        value_name = "URL",
        required_unless_present_any = ["input_file", "metalink"],
        value_hint = ValueHint::Url
    )]
    pub(crate) urls: Vec<String>,
    #[command(flatten)]
    pub(crate) files: FileArgs,
    #[command(flatten)]
    pub(crate) speed: SpeedArgs,
    #[command(flatten)]
    pub(crate) stream: StreamArgs,
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
#[command(next_help_heading = "Saving")]
pub(crate) struct FileArgs {
    /// Save to FILE; with one URL only
    ///
    /// An existing FILE stays until the new one is complete. Then it is replaced at once,
    /// unless another user owns it and everybody may write to its directory, as to /tmp. A
    /// relative FILE starts from --directory, if that is given.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,

    /// Save into DIR, under the names that the servers give [default: .]
    ///
    /// A missing DIR is made, with its parents.
    ///
    /// Existing files are never replaced. If a name is taken, a free one is used instead:
    /// NAME.1, NAME.2 and so on. A file that you saved there with fairbat earlier is not
    /// fetched again if neither side has changed. To detect that, the server must send an ETag
    /// or Last-Modified; a file that changed in the last second may have neither that counts.
    /// It is fetched again then, with a warning.
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) directory: Option<PathBuf>,

    /// Another URL of the same file; with one URL only
    ///
    /// May be given several times; FAIRBAT_MIRROR holds one URL per line. With --checksum, or if the
    /// first server sends a digest (Repr-Digest), all of them are used at once, and what they send
    /// is joined under that digest. A server that has another version of the file is not used. If
    /// the digest is yours, one that fails is left for another one that may be asked sooner, and has
    /// its turn again when that fails.
    ///
    /// Without a digest, the mirrors are for when URL fails. They are tried in this order. Each one
    /// begins with the first byte: an ETag or a length does not show that two servers have the
    /// same file. While something is there of the file, the others wait until the server that
    /// it came from is given up.
    ///
    /// A server is given up when it refuses the file, when --retry tries in a row have failed, or
    /// when the file is larger than --max-size, keeps changing, or has another digest than it
    /// should. With --retry inf, a server that is out of reach is never given up.
    ///
    /// The name is that of the first server that has the file. Without a digest, a file in DIR that
    /// came from another server than the one that answers now is fetched again, under a free name.
    #[arg(
        id = "mirror",
        long,
        value_name = "URL",
        value_delimiter = '\n',
        value_hint = ValueHint::Url
    )]
    pub(crate) mirrors: Vec<String>,

    /// Download the files of a Metalink (.meta4, RFC 5854): FILE, or its URL
    ///
    /// A Metalink says what its files are called, where they are, and what they hash to. Hashes of
    /// pieces find a wrong server as soon as it has sent a piece. The names count in DIR; existing
    /// files are never replaced. User names, passwords and --header go to none of its servers.
    #[arg(short = 'M', long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) metalink: Option<String>,

    /// Also read URLs from FILE, one file per line; `-` is standard input
    ///
    /// Empty lines and lines that start with # are skipped. Further URLs in a line are mirrors
    /// of the first one: see --mirror. A line may have a deadline of its own, which replaces
    /// --deadline. Write it without spaces: URL deadline=06:00
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) input_file: Option<PathBuf>,

    /// Continue unfinished downloads of an earlier run (the default)
    #[arg(short = 'c', long = "continue")]
    continue_: bool,

    /// Start over and drop unfinished downloads of an earlier run
    #[arg(long)]
    no_continue: bool,

    // The two flags above, resolved.
    #[arg(skip = true)]
    pub(crate) resume: bool,

    /// Check the digest of the file: sha-256=HEX or sha-512=HEX; with one URL only
    ///
    /// A file with another digest is not kept, and the exit status is 4.
    #[arg(long, value_name = "TYPE=HEX")]
    pub(crate) checksum: Option<Checksum>,

    /// Refuse files that are larger than SIZE
    ///
    /// Write 500K, 2M or 1G, in powers of 1024. If the server announces the size, nothing is
    /// fetched. Otherwise the download ends at SIZE. Nothing is kept of the file, and the exit
    /// status is 12.
    ///
    /// Without this flag, only data that the server compresses has a limit: 1 GiB, or 100
    /// times its compressed size if that is more.
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) max_size: Option<u64>,

    /// How to reserve disk space
    #[arg(long, value_name = "METHOD", default_value = "falloc")]
    pub(crate) file_allocation: AllocationMethod,
}

/// How disk space for a file of known size is reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AllocationMethod {
    /// Not at all: the file grows as bytes arrive
    None,
    /// With fallocate(2) before the first byte is written: a full disk is noticed at once
    Falloc,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Deadline and speed")]
pub(crate) struct SpeedArgs {
    /// When the files should be complete: 06:00, 90s, 45m, 4h, or RFC 3339
    ///
    /// WHEN is a moment (2026-03-01T06:00:00Z), the next local time of day (06:00), or a time
    /// span from now (4h).
    ///
    /// The closer the deadline, the less the download yields. It takes at most the share of
    /// one ordinary connection, or of as many as --max-weight says. If that is not enough, it
    /// opens more connections, which yield.
    ///
    /// The deadline is soft. A late download goes on; see --fail-late and --max-time. With
    /// several files, the earliest deadline goes first. If not all deadlines can be met, this
    /// order keeps the worst delay as short as possible. A warning names each file that will
    /// probably be late.
    ///
    /// A time span is counted once, from the start of the run. Time asleep counts. A second
    /// run counts the span again, so name a moment to keep it. If the clock is set, fairbat
    /// warns and plans again.
    ///
    /// A file of unknown size cannot be planned. With a deadline, its download does not yield.
    #[arg(long, value_name = "WHEN")]
    pub(crate) deadline: Option<String>,

    /// The lowest weight of the run, from 0.02 (yields to all) to 1 (never yields)
    ///
    /// Without a deadline, a run always has this weight, but for one with --follow. A deadline
    /// can raise it, up to 1, which is an ordinary connection (see --max-weight). Below 1, the
    /// connections of a run share its weight, unless --max-weight allows more.
    ///
    /// A weight W below 1 aims at the share W/(1 + W) of the highest rate of this run. It
    /// takes more when the path has room. If another flow was there first, the highest
    /// rate of this run may be low. Then a weight between 0.02 and 1 changes little.
    #[arg(long, value_name = "W", default_value = "0.02", value_parser = weight)]
    pub(crate) weight: f64,

    /// The highest weight of the run, in ordinary connections
    ///
    /// A run that is short of time weighs as much as so many ordinary connections, if it has
    /// as many. All its other connections yield. It has no effect with --weight 1: then all
    /// connections are ordinary ones.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = value_parser!(u32).range(1..)
    )]
    pub(crate) max_weight: u32,

    /// Ask in the first packets of a new HTTP/3 connection (0-RTT)
    ///
    /// This saves a round trip where a server has closed a connection, or did not follow to a new
    /// address. It takes a server that allows it. Whoever records these packets can repeat the
    /// request, and learns nothing by that.
    #[arg(long)]
    pub(crate) early_data: bool,

    /// How a connection detects other traffic
    ///
    /// Both policies limit the receive window, as far as the weight asks for it. Vulture is
    /// included for comparison.
    #[arg(long, value_name = "POLICY", default_value = "delay")]
    pub(crate) receiver: ReceiverMethod,

    /// How a deadline raises the weight; without a deadline, it has no effect
    ///
    /// Every 1 to 10 s, a hundredth of the time left, the controller compares the rate with the
    /// one that the deadline needs. The policies pid and mbc are included for comparison. A
    /// server that is fairbat serve controls its end by share.
    #[arg(long, value_name = "POLICY", default_value = "share")]
    pub(crate) controller: ControllerMethod,

    /// The number of connections at the start, and the minimum
    ///
    /// Several connections together have the weight of one.
    #[arg(
        short,
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = value_parser!(u32).range(1..)
    )]
    pub(crate) split: u32,

    /// The maximum number of connections, for all files together [default: 4, or --split if
    /// that is more]
    ///
    /// Connections beyond --split open only for a deadline, once the existing ones no longer
    /// yield and are still too slow. They close when the download is back on schedule. They help
    /// where a server limits each connection, and on long paths that lose packets; beside other
    /// traffic they yield, see --max-weight. With --follow, it is the upper bound of the law.
    #[arg(
        short = 'x',
        long,
        value_name = "N",
        value_parser = value_parser!(u32).range(1..)
    )]
    pub(crate) max_connections: Option<u32>,

    #[command(flatten)]
    pub(crate) paths: PathArgs,

    /// Fetch pieces of this many bytes (1M, 512K) [default: depends on the speed]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) chunk_size: Option<u64>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "URLs that keep coming")]
pub(crate) struct StreamArgs {
    /// Start each URL of --input-file when its line comes, until the input ends
    ///
    /// Reads standard input (-i -) or a named pipe, once: it ends when the last program that
    /// writes to it closes it, and a plain file ends at its last line. The downloads have no
    /// deadline. FAIRBAT's law decides how many connections are active, up to
    /// --max-connections: as few as carry what comes. Each is an ordinary one and fetches one
    /// file. When the law asks for less than one connection, there is one that yields for the
    /// rest of the time, with the weight of --weight.
    ///
    /// So these downloads are not held back for ever by other traffic, as they are without
    /// --follow. But they wait for each other.
    ///
    /// A line has one URL, and no mirrors. Any other line is reported and skipped, and the exit
    /// status is 2 in the end, unless a download has failed. A URL that comes twice is downloaded
    /// twice.
    #[arg(long)]
    pub(crate) follow: bool,

    /// The law for the number of connections
    #[arg(long, value_name = "LAW", default_value = "damped")]
    pub(crate) law: LawName,

    /// tau: so many downloads wait in the mean while others want the path [default: 5; 20 for
    /// paper]
    ///
    /// Above 0. With more, fewer connections are enough, and each download waits longer.
    #[arg(long, value_name = "N")]
    pub(crate) tau: Option<f64>,

    /// gamma at first: connections more for each download that waits beyond tau [default: 0.02;
    /// 0.05 for paper]
    ///
    /// Above 0. It is applied once in the time that a download takes, at least once a minute,
    /// and decreases as the number of connections settles.
    #[arg(long, value_name = "G")]
    pub(crate) gamma: Option<f64>,

    /// kappa: connections more for each download by which the queue has grown, from 0 on
    /// [default: 1; 0 for paper]
    #[arg(long, value_name = "K")]
    pub(crate) kappa: Option<f64>,

    /// The least number of connections; below 1, the least share of the time with an ordinary
    /// one [default: 0.2; 1 with --weight 1]
    ///
    /// Above 0, up to --max-connections. With --weight 1 none yields: below 1, there is no
    /// connection for the rest of the time.
    #[arg(long, value_name = "M")]
    pub(crate) min_connections: Option<f64>,
}

impl StreamArgs {
    /// What shapes a stream, and has no meaning without --follow.
    pub(super) const OF_FOLLOW: [&str; 5] = ["law", "tau", "gamma", "kappa", "min_connections"];

    /// What has no meaning with --follow.
    pub(super) const OF_BATCH: [&str; 9] = [
        "output",
        "metalink",
        "mirror",
        "checksum",
        "deadline",
        "fail_late",
        "split",
        "max_weight",
        "chunk_size",
    ];
}

/// FAIRBAT's law for the limit on active connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LawName {
    /// m(t+1) = m(t) + gamma (n - tau) + kappa (n(t) - n(t-1)), which settles
    Damped,
    /// m(t+1) = m(t) + gamma (n - tau), as in the FAIRBAT paper
    Paper,
}

#[derive(Debug, Args)]
#[command(
    about = "Forecast whether a download meets a deadline, and when to start it",
    long_about = "Measures the path to a file and prints the forecast on standard output. It \
        asks the server for the size, then fetches from the file for a short while over one \
        connection. It writes no file.\n\n\
        The connection yields for three quarters of the measurement. In the last quarter it is \
        an ordinary connection, because a yielding connection cannot show its highest rate.\n\n\
        The verdict is one of four. Comfortable: the download needs at most 80 % of the average \
        rate while yielding. Tight: it needs more, but not more than the highest rate over half \
        a second. Impossible: it needs more than that, so one connection cannot carry it. \
        Unknown: the size is unknown, the server serves no ranges, or nothing was measured.\n\n\
        The forecast aims a little before the deadline, as get does: by 10 % of the time left, \
        at least 2 s, at most half of it. At the latest start, the average rate is just enough. \
        Start earlier if others may use more of the path by then.\n\n\
        Each flag has an environment variable, and the command line wins. If a flag is given \
        twice, the last one counts.",
    override_usage = "fairbat plan [OPTIONS] --deadline WHEN URL"
)]
pub(crate) struct PlanArgs {
    /// The http or https URL of the file
    ///
    /// A user name and password in a URL are used for its host only. They are never shown.
    #[arg(value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) url: String,

    /// When the file should be complete: 06:00, 90s, 45m, 4h, or RFC 3339
    ///
    /// WHEN is a moment (2026-03-01T06:00:00Z), the next local time of day (06:00), or a time
    /// span from now (4h). A time span includes the measurement.
    #[arg(long, value_name = "WHEN", required = true)]
    pub(crate) deadline: String,

    /// Measure for at most this long; 0 means not at all
    ///
    /// The data is thrown away. The first second does not count, because a connection starts
    /// slowly. Less than about four seconds shows little. Without a measurement, the verdict
    /// is unknown. In the last quarter of the time, the connection does not yield.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration)]
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
