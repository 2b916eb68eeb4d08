//! The flags of `fairbat proxy`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint, value_parser};
use fairbat::proxy::Network;
use fairbat::units::parse_duration;

use super::serve::address;
use super::shared::{LogArgs, ReceiverMethod, SenderMethod, weight};

// These groups have no doc comments: clap would show them as the help of the command.

#[derive(Debug, Args)]
#[command(
    about = "Serve as a proxy whose connections yield to other traffic",
    long_about = "Listens as a proxy for programs that fairbat run cannot wrap: in containers, on \
        other machines, on other systems. It speaks HTTP (CONNECT, and requests for http:// URLs) \
        and SOCKS5 on the same port. All connections that it makes to servers yield to other \
        traffic in both directions, and weigh together as much as one.\n\n\
        Only this machine may use it, unless --allow or --token-file opens it. Clients beyond \
        this machine are not connected to addresses of this machine, nor to link-local ones.\n\n\
        Connections to this machine's own addresses do not yield, unless --include-local is \
        given. It cannot see what passes through a tunnel, and keeps nothing.\n\n\
        Metrics for Prometheus are at /metrics of its own address."
)]
pub(crate) struct ProxyArgs {
    /// Listen on this address and port; port 0 picks a free one
    ///
    /// 0.0.0.0:3128 is every IPv4 address of this machine. [::]:3128 is every address.
    #[arg(
        long,
        value_name = "ADDR",
        default_value = "127.0.0.1:3128",
        value_parser = address
    )]
    pub(crate) listen: SocketAddr,

    /// Let clients of this network use the proxy; may be repeated
    ///
    /// NETWORK is 192.168.0.0/16, fd00::/8, or one address. In FAIRBAT_ALLOW, separate them by
    /// commas.
    #[arg(long, value_name = "NETWORK", value_delimiter = ',')]
    pub(crate) allow: Vec<Network>,

    /// Require the token in this file from every client
    ///
    /// It is the password of Basic authentication, or of SOCKS5, whatever the user is called.
    /// Without --allow, clients of every network may use the proxy with it. It crosses the
    /// network in clear text.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) token_file: Option<PathBuf>,

    /// Read rules from this TOML file: what weighs more, and what is due
    ///
    /// Each [[rule]] has `host`, `port` and `client` to match connections, and `weight`, `hours`,
    /// `deadline` and `bytes`. The first rule that matches a connection counts. docs/run.md in the
    /// source shows an example.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) rules: Option<PathBuf>,

    /// The lowest weight of all connections together, from 0.02 (yields to all) to 1 (never
    /// yields)
    #[arg(long, value_name = "W", default_value = "0.02", value_parser = weight)]
    pub(crate) weight: f64,

    /// The law for the receive window of connections that yield
    #[arg(long, value_name = "POLICY", default_value = "delay")]
    pub(crate) receiver: ReceiverMethod,

    /// Which congestion control holds back what is sent to servers
    ///
    /// This needs the congestion controls that root loads with fairbat setup.
    #[arg(long, value_name = "POLICY", default_value = "vegas")]
    pub(crate) sender: SenderMethod,

    /// Hold connections to addresses of this machine too, such as 127.0.0.1
    #[arg(long)]
    pub(crate) include_local: bool,

    /// The number of connections from clients at once; others wait
    #[arg(
        long,
        value_name = "N",
        default_value = "1024",
        value_parser = value_parser!(u32).range(1..)
    )]
    pub(crate) max_connections: u32,

    /// Give up a connection to a server that takes longer than this to open
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_duration)]
    pub(crate) connect_timeout: Duration,

    /// Print the address in use as a JSON line
    #[arg(long, help_heading = "Messages")]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) log: LogArgs,
}
