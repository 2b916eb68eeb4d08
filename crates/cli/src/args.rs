//! The command line as it was typed: flags, their environment variables and
//! their help, which is also the manual page.
//!
//! It must not know what the values mean: `settings` parses and checks them.

mod agent;
pub(crate) mod appendix;
mod get;
mod plan;
mod put;
mod serve;
mod shared;

use std::path::PathBuf;

use clap::builder::FalseyValueParser;
use clap::error::{ContextKind, ContextValue};
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};

pub(crate) use agent::{
    AddArgs, CancelArgs, PauseArgs, RestoreArgs, ResumeArgs, RunArgs, SocketArgs, StatusArgs,
    TaskArgs,
};
pub(crate) use get::{AllocationMethod, GetArgs, ReceiverMethod};
pub(crate) use plan::PlanArgs;
pub(crate) use put::PutArgs;
pub(crate) use serve::ServeArgs;
pub(crate) use shared::{FailureArgs, LogArgs, MessageArgs, RequestArgs, TimeoutArgs};

#[derive(Debug, Parser)]
#[command(
    name = "fairbat",
    version,
    about = "Background downloads and uploads that yield to other traffic, as far as a deadline \
        allows",
    long_about = "fairbat downloads and uploads files over HTTP and HTTPS in the background: it \
        yields to other traffic, less and less as a deadline comes nearer. A download that was \
        stopped, for whatever reason, continues where it was when the same command is run \
        again, and never mixes two versions of a file.\n\n\
        status, add, pause, resume, cancel, run and restore speak to fairbat-agent, where that \
        runs; nothing else needs it.",
    arg_required_else_help = true,
    subcommand_value_name = "COMMAND",
    args_override_self = true,
    after_help = appendix::text("fairbat", appendix::Length::Short),
    after_long_help = appendix::text("fairbat", appendix::Length::Long)
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    #[command(
        about = "Download files",
        long_about = "Downloads each URL to a file, and yields to other traffic by holding \
            back the receive window, which needs no privilege. The nearer the deadline \
            presses, the less it yields, up to the weight of one ordinary connection; more \
            connections (up to --max-connections) follow only when even that is not enough. \
            Without a deadline it always yields; with --weight 1 it never does.\n\n\
            An unfinished download is kept as NAME.part with its journal \
            NAME.part.fairbat; the same command continues it, and starts over by itself \
            when the file has changed on the server. NAME appears only when it is \
            complete and verified.\n\n\
            Every flag can also be given as an environment variable; the command line \
            wins. For flags without a value, 0, no, off, false and the empty text mean \
            no. Of a flag given twice the last one counts.",
        override_usage = "fairbat get [OPTIONS] URL...\n       \
            fairbat get [OPTIONS] --input-file FILE [URL]...",
        args_override_self = true,
        after_help = appendix::text("get", appendix::Length::Short),
        after_long_help = appendix::text("get", appendix::Length::Long)
    )]
    Get(Box<GetArgs>),
    #[command(
        about = "Tell whether a download can meet a deadline, and when it must start",
        long_about = "Asks the server for the size of a file, fetches from it for a short \
            while over one connection, and tells on standard output what the deadline \
            needs, what the path gave, and what follows. No file is written. For three \
            quarters of the time the connection yields to other traffic; in the last \
            quarter it is an ordinary one, because a connection that yields does not show \
            what it could have.\n\n\
            The verdict is comfortable when at most 80 % of what came on average while it \
            yielded is needed; tight when more is needed, but no more than the highest rate \
            over half a second, an estimate of what the path gives to one ordinary \
            connection; impossible when more than that is needed, for then one best-effort \
            connection cannot carry it; unknown when the server does not tell \
            the size or serves no ranges, or nothing was measured. What is needed aims a \
            little before the deadline, as get does: by 2 % of the time left, at least 2 s, \
            at most half of it. The latest start is when that average just suffices: \
            others may want more of the path by then.\n\n\
            Every flag can also be given as an environment variable; the command line \
            wins. Of a flag given twice the last one counts.",
        override_usage = "fairbat plan [OPTIONS] --deadline WHEN URL",
        args_override_self = true,
        after_help = appendix::text("plan", appendix::Length::Short),
        after_long_help = appendix::text("plan", appendix::Length::Long)
    )]
    Plan(Box<PlanArgs>),
    #[command(
        about = "Upload a file",
        long_about = "Sends FILE to a server by HTTP PUT, over one connection, and yields to \
            other traffic by holding back what it sends. The nearer the deadline presses, the \
            less it yields, up to the weight of one ordinary connection. Without a deadline it \
            always yields; with --weight 1 it never does.\n\n\
            A URL that ends with / is a directory of the server's and gets the name of the \
            file. An upload that broke starts over; it is not continued, because no server \
            tells whether it would take the rest for the whole. Most servers keep the old file \
            until they have all of the new one. A file that changes while it is \
            read is broken off before its last byte, and never reported as uploaded.\n\n\
            Redirects 307 and 308 are followed; 301, 302 and 303 are not, because they do not \
            say that an upload may go there.\n\n\
            Every flag can also be given as an environment variable; the command line \
            wins. Of a flag given twice the last one counts.",
        override_usage = "fairbat put [OPTIONS] FILE URL",
        args_override_self = true,
        after_help = appendix::text("put", appendix::Length::Short),
        after_long_help = appendix::text("put", appendix::Length::Long)
    )]
    Put(Box<PutArgs>),
    #[command(
        about = "Serve the files of a directory, yielding to other traffic as clients wish",
        long_about = "Serves the regular files below a directory over HTTP/1.1, whole or in \
            ranges, until it is told to stop. A response is held back at this end, which a \
            download cannot do as well, when the client says that it may be: by the header \
            Priority with an urgency of 6 or 7 (RFC 9218), as fairbat get sends it, it yields \
            to anybody; by Fairbat-Deadline it yields as far as the deadline allows. That is a \
            dictionary (RFC 9651) with due, seconds from now, remaining, bytes still to move \
            by then, and w, the least weight: due=3600, remaining=5000000000, w=0.02. fairbat \
            get sends it to servers that answer with the header Fairbat: 1, as this one does. \
            Each connection looks after the deadline by itself. Other clients get what any \
            server gives, unless --background is given.\n\n\
            Every file is sent as application/octet-stream, whatever its name, so that no browser \
            shows it. A request for several ranges gets the whole file.\n\n\
            A file that changes while it is sent is broken off, so that the client sees it is \
            not whole; one that is written without a pause is answered 503 with Retry-After. \
            Until some seconds after its last change a file has neither ETag nor Last-Modified, \
            and clients cannot resume it. A file's SHA-256 is sent (Repr-Digest, RFC 9530) once it is \
            known; a request with Want-Repr-Digest has it computed, for those that come later. \
            A connection on which nothing is acknowledged for 60 s during a response, or for \
            30 s otherwise, is closed. A peer that has --max-connections-per-peer is answered \
            503 with Retry-After on a few others, and the rest is closed without an answer.\n\n\
            With --writable it also takes PUT of a file: 201 when it is new, 204 when it replaced \
            another, with its ETag, and then it is on the disk. Until then nothing is seen of \
            it: it is gathered in the directory .fairbat-upload, which is never served, and \
            comes to its name at once. Directories on the way are made. If-None-Match: * \
            replaces nothing (412), If-Match replaces one version only; a body that is not what \
            Content-Digest or Repr-Digest says (RFC 9530) is refused with 400; a full disk is \
            507; of more than 64 uploads at once the others are answered 503 with Retry-After; \
            who sends nothing for 60 s is given up. DELETE removes a file, a symbolic link or \
            an empty directory, MOVE \
            gives a file the name in Destination (replacing nothing with Overwrite: F), MKCOL \
            makes a directory. A symbolic link of the name itself is replaced, not followed; \
            nothing is changed outside of DIR, nor in a file system that is mounted below it. \
            Without a token these are taken only from clients that ask for a loopback address \
            or localhost.\n\n\
            With --writable too, GET of a directory with Accept: application/json is an array \
            of {\"name\", \"type\", \"size\", \"mtime\", \"etag\"}, in the order of the \
            names' bytes: type is file or directory, size is bytes, mtime seconds since 1970; \
            size and etag of a directory are null, and so is the etag of a file that was just \
            changed. A name that is not UTF-8 is \
            percent-encoded, and its entry has \"percent_encoded\": true. ?limit=N asks for N \
            entries at most, &after=NAME, percent-encoded, for those behind that name; fewer \
            than N are the last.\n\n\
            With -v each request is a line on standard error: address of the client, method, \
            path, status, bytes, and how it is sent, or how many bytes were stored.\n\n\
            Every flag can also be given as an environment variable; the command line \
            wins. Of a flag given twice the last one counts.",
        args_override_self = true,
        after_help = appendix::text("serve", appendix::Length::Short),
        after_long_help = appendix::text("serve", appendix::Length::Long)
    )]
    Serve(Box<ServeArgs>),
    Status(StatusArgs),
    Add(AddArgs),
    Pause(PauseArgs),
    Resume(ResumeArgs),
    Cancel(CancelArgs),
    Run(RunArgs),
    Restore(RestoreArgs),
    #[command(
        about = "Tell what this machine offers for polite transfers, and what is missing",
        args_override_self = true
    )]
    Doctor(DoctorArgs),
    #[command(
        about = "Load what lets the transfers of all users yield better (root)",
        long_about = "Loads two eBPF programs into the kernel, for all users of this machine. \
            The packet observer keeps, of those connections whose owner asks for it, \
            statistics of when each packet was sent and when it arrived; fairbat get asks for \
            it of its own downloads. The congestion controls fairbat_vegas, fairbat_cdg and \
            fairbat_cubic have a weight for each connection; fairbat put and fairbat serve \
            choose one for what they send (--sender), and any other program may. Other \
            connections are left as they are, nothing is written to the disk, and users can \
            do nothing to connections that are not their own.\n\n\
            Only root may do that, once: it lasts until the machine restarts or --remove. It \
            takes a kernel with BTF, as distributions have them: of 5.15 or newer for the \
            observer, of 6.4 or newer for the congestion controls. Where one of the two cannot \
            be had the other is set up all the same. Both live in a BPF file system of their \
            own, /run/fairbat/bpf. Names that the kernel has already are numbered: \
            fairbat_vegas2. Doing it again changes nothing; after an upgrade it puts the new \
            version in the place of the old one, which connections that have it keep.\n\n\
            A fairbat put or fairbat serve that is running need not be started again: it uses \
            the congestion controls for the connections that it begins to hold back from then \
            on. A fairbat get has the observer only if it starts afterwards.",
        args_override_self = true,
        after_help = appendix::text("setup", appendix::Length::Short),
        after_long_help = appendix::text("setup", appendix::Length::Long)
    )]
    Setup(SetupArgs),
    #[command(
        about = "Print a completion script for a shell",
        after_help = appendix::text("completions", appendix::Length::Short)
    )]
    Completions(CompletionsArgs),
    #[command(
        about = "Print the manual pages",
        args_override_self = true,
        after_help = appendix::text("man", appendix::Length::Short)
    )]
    Man(ManArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArgs {
    /// Print one JSON object instead of text
    #[arg(long, env = "FAIRBAT_JSON", value_parser = FalseyValueParser::new())]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct SetupArgs {
    /// Undo it: take both out of the kernel, whichever version they are;
    /// connections that follow one of the congestion controls keep it until
    /// they end
    #[arg(long, env = "FAIRBAT_REMOVE", value_parser = FalseyValueParser::new())]
    pub(crate) remove: bool,
    /// Only tell what is set up, on standard output; needs no root
    #[arg(
        long,
        env = "FAIRBAT_STATUS",
        value_parser = FalseyValueParser::new(),
        conflicts_with = "remove"
    )]
    pub(crate) status: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// The shell to write for
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ManArgs {
    /// Write one file per page (fairbat.1, fairbat-get.1, ...) into this
    /// directory, which is made if need be, instead of all pages to standard
    /// output
    #[arg(long, value_name = "DIR", env = "FAIRBAT_DIR")]
    pub(crate) dir: Option<PathBuf>,
}

/// The command with all its flags, for parsing and for everything that is
/// generated from it.
pub(crate) fn command() -> clap::Command {
    // Values from the environment may be secrets, and the help should be the
    // same everywhere.
    Cli::command().mut_subcommands(|command| command.mut_args(|arg| arg.hide_env_values(true)))
}

/// Reads the command line and the environment; prints help, version or a
/// usage error and ends the process where there is nothing to do.
pub(crate) fn parse() -> Command {
    // The help says once how all variables are called; the manual has room to
    // name each of them.
    let command = command().mut_subcommands(|command| command.mut_args(|arg| arg.hide_env(true)));
    command
        .try_get_matches()
        .and_then(|matches| from_matches(&matches))
        .unwrap_or_else(|error| with_tip(error).exit())
}

/// `fairbat URL`, as other programs take it, gets a tip.
fn with_tip(mut error: clap::Error) -> clap::Error {
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
    if let (Command::Get(args), Some((_, matches))) = (&mut command, matches.subcommand()) {
        args.files.resume = resume(matches);
    }
    Ok(command)
}

/// Decides between `--continue` and `--no-continue`: the last one on the
/// command line, else the environment, else yes.
///
/// clap's own overriding takes a flag and a variable for the opposite for a
/// conflict.
fn resume(matches: &ArgMatches) -> bool {
    let from = |id, source| matches.value_source(id) == Some(source);
    let typed_at = |id| {
        let typed = from(id, ValueSource::CommandLine);
        typed.then(|| matches.index_of(id)).flatten()
    };
    let (yes, no) = (typed_at("continue_"), typed_at("no_continue"));
    if yes != no {
        return yes > no;
    }
    let variable = |id| from(id, ValueSource::EnvVariable).then(|| matches.get_flag(id));
    variable("no_continue") != Some(true) && variable("continue_") != Some(false)
}

#[cfg(test)]
pub(crate) mod tests;
