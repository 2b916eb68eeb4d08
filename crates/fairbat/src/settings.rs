//! What a caller may choose, as resolved values. The binaries parse flags, environment and
//! configuration files.

use std::net::IpAddr;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Duration;

use dalbe::receive_window::ReceiverPolicy;
use dalbe::weight::ControllerPolicy;
use http::{HeaderName, HeaderValue};
use url::Url;

use crate::machine::MachineLane;

/// One file to fetch.
#[derive(Debug, Clone)]
pub struct TransferRequest {
    /// Where from: `http` or `https`. Credentials in it (`user:password@`)
    /// are used for its host only and never shown.
    pub url: Url,
    /// Other URLs of the same file, in the order in which they are tried.
    pub mirrors: Vec<Mirror>,
    /// Where to.
    pub target: Target,
    /// Soft deadline: the moment by which the file should be there.
    pub deadline: Option<jiff::Timestamp>,
    /// What the finished file must hash to.
    pub checksum: Option<Checksum>,
    /// What else is known of the file, from a Metalink.
    pub known: KnownFile,
}

/// Another URL of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mirror {
    /// `http` or `https`.
    pub url: Url,
    /// Whether the user named it. Only hosts that the user named see the user's credentials.
    pub is_named: bool,
}

/// What is known of a file before a server is asked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KnownFile {
    /// Its name in a [`Target::Directory`]; `None` lets the server or the URL suggest one.
    pub name: Option<String>,
    /// Whether the URL is not one that the user named, so that its host does not see the user's
    /// credentials.
    pub is_found: bool,
    /// Its size, bytes.
    pub size: Option<u64>,
    /// Hashes of its pieces.
    pub pieces: Option<PieceHashes>,
}

/// Hashes of the pieces of a file, each of which is `length` bytes long, the last one maybe less.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PieceHashes {
    /// Length of a piece, bytes.
    pub length: NonZeroU64,
    /// The hash of each, in order. All are of one algorithm.
    pub hashes: Vec<Checksum>,
}

/// Where a finished file goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// To this very path, which the user named. A file that is already there is replaced in
    /// one step, once the new one is complete.
    File(PathBuf),
    /// The same, to a path below a directory that is made if it is missing.
    FileIn {
        /// The directory.
        directory: PathBuf,
        /// The path from there.
        file: PathBuf,
    },
    /// Into this directory, which is made if it is missing, under the name that the server or
    /// the URL suggests. Never replaces a file: a free name (`NAME.1`) is taken.
    Directory(PathBuf),
}

/// An expected digest of a file, or of a piece of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Checksum {
    /// SHA-1, FIPS 180-4. Of pieces only ([`PieceHashes`]), for two files can be made with the same
    /// one.
    Sha1([u8; 20]),
    /// SHA-256, FIPS 180-4.
    Sha256([u8; 32]),
    /// SHA-512, FIPS 180-4.
    Sha512([u8; 64]),
}

/// What a caller may choose for a run, besides its transfers.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How to speak to servers.
    pub http: HttpSettings,
    /// The ways out of the machine to use at once; empty leaves it to the routes of the system.
    pub paths: Vec<PathSettings>,
    /// m_min: connections that may be active although nothing is behind schedule; at least 1.
    pub split: u32,
    /// m_max: the run never uses more connections; at least `split`.
    pub max_connections: u32,
    /// w_min: every flow has at least this weight, from 0.02 (yield to everything) to 1 (one
    /// best-effort flow: never yield).
    pub weight: f64,
    /// Together, the connections of a run with a lower `weight` weigh at most as much as so
    /// many ordinary ones; at least 1.
    pub max_weight: u32,
    /// The law for the receive window of a flow that yields.
    pub receiver: ReceiverPolicy,
    /// What raises the weight for a deadline.
    pub controller: ControllerPolicy,
    /// Fixed chunk length in bytes; `None` lets it follow the measured rate.
    pub chunk_size: Option<u64>,
    /// How disk space for a file of known size is reserved.
    pub file_allocation: FileAllocation,
    /// How failures are retried.
    pub retry: RetrySettings,
    /// Limit on the rate of the whole run, byte/s.
    pub limit_rate: Option<u64>,
    /// Size of the largest file that is fetched, bytes. `None` limits only what a server
    /// compresses: to 1 GiB, or 100 times its compressed size.
    pub max_size: Option<u64>,
    /// The lane of the machine to take part in, where an agent runs; `None` is for a lane of its
    /// own.
    pub machine: Option<MachineLane>,
    /// Whether part files of earlier runs are continued.
    pub resume: bool,
    /// Hard limit on the duration of the run.
    pub max_time: Option<Duration>,
    /// Seed of everything random (retry jitter): same seed, same choices.
    pub seed: u64,
}

/// How to speak to servers.
#[derive(Debug, Clone, Default)]
pub struct HttpSettings {
    /// Extra request headers; sent only to the host the user named.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// User name and password for Basic authentication, sent only to the host
    /// the user named.
    pub user: Option<Credentials>,
    /// A netrc file with credentials by host.
    pub netrc: Option<PathBuf>,
    /// PEM file with the only certificate authorities to trust; `None` trusts
    /// the system's.
    pub cacert: Option<PathBuf>,
    /// Whether the user sets the fields above with flags of `fairbat`, so that advice may
    /// name these.
    pub has_flags: bool,
    /// What every connection leaves the machine by; `None` leaves it to the routes of the system.
    pub local_end: Option<LocalEnd>,
    /// How long a connection may take to open.
    pub connect_timeout: Option<Duration>,
    /// How long a response may stay silent before the connection is given up.
    pub stall_timeout: Option<Duration>,
    /// When HTTP/3 is spoken.
    pub http3: Http3Policy,
    /// Whether requests leave in the first packets of an HTTP/3 connection (0-RTT), to a server
    /// that had one before. Whoever records them can repeat them, so uploads never do.
    pub early_data: bool,
    /// Where it is remembered which hosts offer HTTP/3, and where it does not work; `None` forgets
    /// it with the run.
    pub http3_memory: Option<PathBuf>,
}

/// When HTTP/3 is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Http3Policy {
    /// Where a server offers it, and it works.
    Auto,
    /// With every server; TCP is not tried.
    Only,
    /// Not at all.
    #[default]
    Never,
}

/// What a connection leaves the machine by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LocalEnd {
    /// This network interface (`SO_BINDTODEVICE`).
    Interface(String),
    /// The interface that has this address.
    Address(IpAddr),
}

impl std::fmt::Display for LocalEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Interface(name) => f.write_str(name),
            Self::Address(address) => address.fmt(f),
        }
    }
}

/// A way out of the machine, for a run that uses several at once.
#[derive(Debug, Clone, PartialEq)]
pub struct PathSettings {
    /// What its connections leave by.
    pub local_end: LocalEnd,
    /// w_min of the flows over it, 0.02 to 1; `None` takes that of the run.
    pub weight: Option<f64>,
    /// Whether its bytes cost money. Then it is used only when a deadline needs it.
    pub is_metered: bool,
    /// Limit on the rate over it, byte/s.
    pub limit_rate: Option<u64>,
    /// Name of its bottleneck, which other paths may share; `None` where nothing is known of it.
    pub bottleneck: Option<String>,
}

impl PathSettings {
    /// Whether the user says that both paths have the same bottleneck, as a path has with itself.
    pub(crate) fn shares_bottleneck(&self, other: &Self) -> bool {
        let is_named = self.bottleneck.is_some() && self.bottleneck == other.bottleneck;
        is_named || self.local_end == other.local_end
    }
}

/// A user name and a password; `Debug` does not show the password.
#[derive(Clone, Default)]
pub struct Credentials {
    /// User name.
    pub user: String,
    /// Password; may be empty.
    pub password: String,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Credentials({}:***)", self.user)
    }
}

/// How disk space for a file of known size is reserved (aria2's word).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileAllocation {
    /// Not at all: the file grows as bytes arrive.
    None,
    /// With fallocate(2), before the first byte is written: a full disk is noticed at
    /// once. Falls back to `None` where the file system cannot do it.
    Falloc,
}

/// How failures are retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetrySettings {
    /// Failures in a row without any progress before a transfer is given up;
    /// `None` means never.
    pub limit: Option<u32>,
    /// The same before the server has answered at all: a mistyped host should
    /// fail soon.
    pub limit_before_contact: Option<u32>,
    /// Delay after the first failure; doubles with each further one.
    pub base: Duration,
    /// Largest delay, unless the server's Retry-After asks for more.
    pub cap: Duration,
    /// The most that a Retry-After is granted. A server must not stop a transfer for days.
    pub max_retry_after: Duration,
}

impl RetrySettings {
    /// The wait that a server asks for, as far as it is granted.
    #[must_use]
    pub fn grant(&self, retry_after: Option<Duration>) -> Option<Duration> {
        retry_after.map(|asked| asked.min(self.max_retry_after))
    }
}
