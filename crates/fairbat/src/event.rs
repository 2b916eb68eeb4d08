//! What a run reports while it works: the `--json` interface.
//!
//! The field names are an interface (documented in `docs/json.md`);
//! units are bytes, seconds and bytes per second unless a name says otherwise.

use std::path::PathBuf;

use dalbe::receive_window::LeverKind;
use dalbe::receive_window::{BottleneckKind, ReceiveWindowState, ReceiverPolicy};
use dalbe::sender::{SenderLeverKind, SenderPolicy};
use dalbe::weight::ControllerPolicy;
use serde::Serialize;

use crate::error::{ErrorKind, TransferError};
use crate::http::Transient;
use crate::lane::LateMember;

/// An event with its moment.
#[derive(Debug, Clone, Serialize)]
pub struct TimedEvent {
    /// Seconds since the run started (monotonic clock).
    pub t: f64,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// What answers come over, by its name in TLS (ALPN).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Protocol {
    /// HTTP/1.1 over TCP.
    #[serde(rename = "http/1.1")]
    Http1,
    /// HTTP/3 over QUIC.
    #[serde(rename = "h3")]
    Http3,
}

/// What happened.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The run starts.
    Start {
        /// The URLs as given, without credentials.
        urls: Vec<String>,
        /// The lever the flows of this run are under.
        lever: LeverKind,
        /// The law for how far the flows yield; `None` under another lever, and at weight 1.
        receiver: Option<ReceiverPolicy>,
        /// What raises their weight for a deadline.
        controller: ControllerPolicy,
    },
    /// An upload starts.
    #[serde(rename = "start")]
    Sending {
        /// The URL that the file is sent to, without credentials; one.
        urls: Vec<String>,
        /// The lever its connection is under, by [`SenderLeverKind::name`].
        lever: SenderLeverKind,
        /// The congestion control of FAIRBAT that decides how far it yields; `None` under
        /// another lever, and at weight 1.
        sender: Option<SenderPolicy>,
        /// What raises its weight for a deadline.
        controller: ControllerPolicy,
        /// w_min of the connection; at 1 no lever acts.
        weight: f64,
    },
    /// A transfer has been probed and planned; bytes begin to move.
    File {
        /// The URL as given, without credentials.
        url: String,
        /// Where the finished file will be.
        path: PathBuf,
        /// Size, if the server told it.
        bytes: Option<u64>,
        /// Bytes that an earlier run already had.
        resumed_bytes: u64,
        /// Whether the server serves ranges of this file, so that it can be
        /// resumed and split.
        ranges: bool,
    },
    /// The state of the control loop, once a second.
    Control(Control),
    /// A deadline will probably be missed; reported once for each transfer, as soon as the
    /// flows have shown what they can carry. Not reported of a run in a shared lane: there,
    /// [`MemberForecast`](crate::lane::MemberForecast) tells.
    Forecast {
        /// The URL as given, without credentials.
        url: String,
        /// Seconds by which it will probably be late.
        late_s: f64,
        /// Lowest rate that would meet all deadlines, byte/s.
        zeta: f64,
        /// What the path gives at most, byte/s.
        rate: f64,
    },
    /// Something failed and will be tried again.
    Retry {
        /// The URL as given, without credentials.
        url: String,
        /// What failed.
        reason: String,
        /// Seconds until the next try.
        after_s: f64,
        /// How many tries have failed in a row.
        attempt: u32,
        /// What kind of failure it was; not part of the JSON interface.
        #[serde(skip)]
        cause: RetryCause,
    },
    /// A source has been given up.
    Source {
        /// The URL as given, without credentials.
        url: String,
        /// That of the source, without credentials.
        source: String,
        /// Why it has been given up.
        reason: String,
        /// The source that is asked next; `None` if others go on.
        next: Option<String>,
    },
    /// When a transfer over several paths will be complete, by the rates of its paths. Told once.
    Prediction {
        /// The URL as given, without credentials.
        url: String,
        /// Bytes that are still to come.
        bytes: u64,
        /// Seconds that they will take.
        predicted_s: f64,
    },
    /// A path that the user named has come or gone.
    Path {
        /// What its connections leave the machine by: a name or an address, as given.
        interface: String,
        /// Whether the machine has it now.
        up: bool,
    },
    /// Two paths that the user named share a bottleneck: from now on they are one lane.
    Bottleneck {
        /// One path: a name or an address, as given.
        interface: String,
        /// The other one.
        with: String,
    },
    /// A file is finished, verified and in its place.
    Done {
        /// The URL as given, without credentials.
        url: String,
        /// The finished file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// Seconds this transfer took in this run.
        elapsed_s: f64,
        /// Its SHA-256 in hex, if it was asked for or the server sent one.
        sha256: Option<String>,
        /// What the last bytes of it came over; `None` if none had to come.
        protocol: Option<Protocol>,
        /// Whether the soft deadline was met; `None` without a deadline.
        deadline_met: Option<bool>,
    },
    /// A server has taken a file.
    #[serde(rename = "done")]
    Sent {
        /// The URL as given, without credentials.
        url: String,
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// Seconds this took.
        elapsed_s: f64,
        /// The status of the answer (RFC 9110 section 15.3); 202 is only a promise.
        status: u16,
        /// What it went over; `None` if that is not known.
        protocol: Option<Protocol>,
        /// Whether the soft deadline was met; `None` without a deadline.
        deadline_met: Option<bool>,
    },
    /// A transfer ended without its file.
    Error {
        /// The URL as given, without credentials.
        url: String,
        /// What the user can do depends on this.
        kind: ErrorKind,
        /// What failed.
        message: String,
        /// What to do next; may be empty.
        hint: String,
    },
}

impl Event {
    /// A transfer ended with this error.
    pub(crate) fn failed(url: String, error: TransferError) -> Self {
        Self::Error {
            url,
            kind: error.kind,
            message: error.message,
            hint: error.hint,
        }
    }

    /// A member of a lane, the transfer of this URL, will be late.
    pub(crate) fn late(url: &str, late: &LateMember) -> Self {
        Self::Forecast {
            url: url.to_owned(),
            late_s: late.late_s,
            zeta: late.zeta,
            rate: late.rate,
        }
    }
}

/// What kind of failure is followed by another try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryCause {
    /// The network.
    Network,
    /// The server failed.
    Server,
    /// The server wanted fewer requests.
    Busy,
    /// The file is not what it was.
    Changed,
}

impl RetryCause {
    /// Of a failure that may pass.
    pub(crate) fn of(failure: &Transient) -> Self {
        match failure.kind {
            ErrorKind::Network => Self::Network,
            _ if failure.push_back => Self::Busy,
            _ => Self::Server,
        }
    }
}

/// One sample of the control loop. Of a run in a shared lane, `n`, `m`, `w` and `zeta` are
/// those of the whole lane, and the rest is of the run.
#[derive(Debug, Clone, Serialize)]
pub struct Control {
    /// What waits and counts for FAIRBAT: the shortfall in chunks, when paced; in a stream,
    /// transfers that have no ordinary connection.
    pub n: f64,
    /// Limit on active connections (real-valued).
    pub m: f64,
    /// The target of n in a stream; `None` elsewhere.
    pub tau: Option<f64>,
    /// Connections in use now.
    pub active: usize,
    /// Weight of each flow, 1 = one best-effort flow.
    pub w: f64,
    /// Mean receive window of the active connections, bytes; `None` without a connection, and
    /// under another lever.
    pub window: Option<f64>,
    /// What the receive windows of the active connections do: `Free` if `w` is 1, and
    /// `Yielding` if any of them does and all together carry less than they could; `None`
    /// without a connection, and under another lever.
    pub brake: Option<ReceiveWindowState>,
    /// CDG's back-off scale G of the connection that sends, ms; `None` where no delay
    /// gradient makes it back off: under another lever, at the least weight, and at w = 1.
    pub g_ms: Option<f64>,
    /// The kind of bottleneck that the connections have seen; `None` while it is unknown,
    /// if they go over different ones, and under another lever.
    pub bottleneck: Option<BottleneckKind>,
    /// Lowest rate that still meets the deadline(s), byte/s; `None` without
    /// one.
    pub zeta: Option<f64>,
    /// Bytes that the transfers with deadlines are behind an even pace;
    /// negative when they are ahead, `None` without a deadline.
    pub lag: Option<f64>,
    /// Mean rate over the last period, byte/s.
    pub rate: f64,
    /// Mean round-trip time over the active connections, ms; `None` without one.
    pub rtt_ms: Option<f64>,
    /// Bytes of all transfers that are on disk, earlier runs included; of an
    /// upload those that the other end's machine has acknowledged.
    pub bytes_done: u64,
    /// Bytes of all transfers; `None` while any size is unknown.
    pub bytes_total: Option<u64>,
    /// Each of the paths that the user named.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathSample>,
    /// Each unfinished file, for progress bars; not part of the JSON
    /// interface.
    #[serde(skip)]
    pub files: Vec<FileProgress>,
}

/// How one of several paths stands.
#[derive(Debug, Clone, Serialize)]
pub struct PathSample {
    /// What its connections leave the machine by: a name or an address, as given.
    pub interface: String,
    /// Whether the machine has that now.
    pub up: bool,
    /// Connections in use now.
    pub active: usize,
    /// Limit on active connections.
    pub m: f64,
    /// Weight of each flow.
    pub w: f64,
    /// Mean rate over the last period, byte/s.
    pub rate: f64,
    /// Bytes that have come over it in this run.
    pub bytes_done: u64,
}

/// How far one file is.
#[derive(Debug, Clone)]
pub struct FileProgress {
    /// The URL as given, without credentials.
    pub url: String,
    /// Bytes on disk, or acknowledged.
    pub bytes_done: u64,
    /// Size, if known.
    pub bytes_total: Option<u64>,
}
