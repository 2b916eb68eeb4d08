//! The flags of `fairbat serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::FalseyValueParser;
use clap::{Args, ValueHint, value_parser};
use fairbat::units::parse_size;

use super::shared::{LogArgs, SenderMethod};

// No doc comments on these groups: clap would take them for the help of the
// whole command.

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// The directory whose files are served, those in its directories included
    ///
    /// All regular files, those whose names begin with a dot included. Symbolic
    /// links that stay within it are followed, others are not. There are no
    /// listings without --writable: a directory is not found.
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) directory: PathBuf,

    /// Listen on this address and port; port 0 takes a free one
    ///
    /// 0.0.0.0:8080 is every IPv4 address of this machine, [::]:8080 every
    /// address; names are not taken. What was taken is told on standard error.
    #[arg(
        long,
        value_name = "ADDR",
        env = "FAIRBAT_LISTEN",
        default_value = "127.0.0.1:8080",
        value_parser = address
    )]
    pub(crate) listen: SocketAddr,

    #[command(flatten)]
    pub(crate) pace: SendArgs,
    #[command(flatten)]
    pub(crate) uploads: UploadArgs,
    #[command(flatten)]
    pub(crate) access: AccessArgs,
    #[command(flatten)]
    pub(crate) messages: EventArgs,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

/// What clap says of a wrong address names no right one.
fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "write an IP address and a port, as 127.0.0.1:8080 or [::]:8080; names are not taken"
            .to_owned()
    })
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Speed")]
pub(crate) struct SendArgs {
    /// Let every response yield whose request does not say how it wants it
    #[arg(long, env = "FAIRBAT_BACKGROUND", value_parser = FalseyValueParser::new())]
    pub(crate) background: bool,

    /// Which congestion control holds back what yields, where root has set
    /// them up (fairbat setup); elsewhere it changes nothing [default: vegas]
    #[arg(long, value_name = "POLICY", env = "FAIRBAT_SENDER")]
    pub(crate) sender: Option<SenderMethod>,

    /// Connections at once; more wait until one ends
    #[arg(
        short = 'x',
        long,
        value_name = "N",
        env = "FAIRBAT_MAX_CONNECTIONS",
        default_value_t = 512,
        value_parser = value_parser!(u32).range(1..)
    )]
    pub(crate) max_connections: u32,

    /// Connections of one peer at once; more of it are refused
    ///
    /// A few of them, 4 of one peer and 32 of all, are answered 503 with
    /// Retry-After; others are closed without an answer. A peer is an IPv4
    /// address or an IPv6 network of 64 bits: clients behind one router or one
    /// proxy are one. It never gets all of --max-connections: of two or more, one
    /// is left to others.
    #[arg(
        long,
        value_name = "N",
        env = "FAIRBAT_MAX_CONNECTIONS_PER_PEER",
        default_value_t = 64,
        value_parser = value_parser!(u32).range(1..)
    )]
    pub(crate) max_connections_per_peer: u32,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Uploads")]
pub(crate) struct UploadArgs {
    /// Let clients change the files too: PUT, DELETE, MOVE and MKCOL
    ///
    /// Needs --token-file, unless it listens on a loopback address; what it does
    /// is told above.
    #[arg(long, env = "FAIRBAT_WRITABLE", value_parser = FalseyValueParser::new())]
    pub(crate) writable: bool,

    /// Take no upload of more bytes than these (500M, 20G); by default any that
    /// the disk has room for
    #[arg(
        long,
        value_name = "SIZE",
        env = "FAIRBAT_MAX_UPLOAD",
        requires = "writable",
        value_parser = parse_size
    )]
    pub(crate) max_upload: Option<u64>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Access")]
pub(crate) struct AccessArgs {
    /// Serve only requests with the bearer token in FILE (RFC 6750)
    ///
    /// A new one: openssl rand -hex 32 > FILE, which only the server's user
    /// should be able to read. Clients that have the file too send it so:
    /// FAIRBAT_HEADER="Authorization: Bearer $(cat FILE)" fairbat get URL. Over
    /// plain HTTP whoever listens on the way can read it.
    #[arg(
        long,
        value_name = "FILE",
        env = "FAIRBAT_TOKEN_FILE",
        value_hint = ValueHint::FilePath
    )]
    pub(crate) token_file: Option<PathBuf>,

    /// Serve HTTPS with the certificates in this PEM file, the server's own
    /// first
    ///
    /// The examples below have one that serves as its own authority.
    #[arg(
        long,
        value_name = "FILE",
        env = "FAIRBAT_TLS_CERT",
        requires = "tls_key",
        value_hint = ValueHint::FilePath
    )]
    pub(crate) tls_cert: Option<PathBuf>,

    /// The private key of the certificate, a PEM file without a passphrase
    #[arg(
        long,
        value_name = "FILE",
        env = "FAIRBAT_TLS_KEY",
        requires = "tls_cert",
        value_hint = ValueHint::FilePath
    )]
    pub(crate) tls_key: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Messages")]
pub(crate) struct EventArgs {
    /// Print events as JSON lines: what is listened on
    ///
    /// They are described in docs/json.md of the source.
    #[arg(long, env = "FAIRBAT_JSON", value_parser = FalseyValueParser::new())]
    pub(crate) json: bool,
}
