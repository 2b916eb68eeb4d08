//! What the holder of connections reports: the lines of `--events`.
//!
//! The field names are an interface (documented in `docs/json.md`); units are bytes, seconds
//! and bytes per second unless a name says otherwise.

use std::path::PathBuf;

use dalbe::receive_window::{LeverKind, ReceiveWindowState};
use dalbe::sender::SenderLeverKind;
use serde::Serialize;

use crate::lane::LateMember;

/// An event with its moment.
#[derive(Debug, Clone, Serialize)]
pub struct TimedHoldEvent {
    /// Seconds since the holding began (monotonic clock).
    pub t: f64,
    /// What happened.
    #[serde(flatten)]
    pub event: HoldEvent,
}

/// What happened.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum HoldEvent {
    /// The holding begins.
    Start {
        /// The process of the command; `None` if what runs already is held.
        pid: Option<i32>,
        /// The lever on what the connections receive.
        lever: LeverKind,
        /// The lever on what they send.
        sender: SenderLeverKind,
        /// Whether connections are told as they are made. Otherwise they are found by looking.
        notified: bool,
    },
    /// The state of the control loop, once a second.
    Control(HoldControl),
    /// A process cannot be reached: its connections do not yield.
    OutOfReach {
        /// The process.
        pid: i32,
        /// The name of its program.
        program: String,
    },
    /// A program that has the rights of its owner was run without them.
    Unprivileged {
        /// The program.
        program: PathBuf,
    },
    /// The deadline will probably be missed.
    Forecast {
        /// Seconds by which it will probably be late.
        late_s: f64,
        /// Lowest rate that would meet the deadline, byte/s.
        zeta: f64,
        /// What the path gives at most, byte/s.
        rate: f64,
    },
    /// The command has ended, or its connections are let go.
    Done(HoldReport),
}

impl From<LateMember> for HoldEvent {
    fn from(late: LateMember) -> Self {
        Self::Forecast {
            late_s: late.late_s,
            zeta: late.zeta,
            rate: late.rate,
        }
    }
}

/// One sample of the control loop.
#[derive(Debug, Clone, Serialize)]
pub struct HoldControl {
    /// Connections that are held now.
    pub connections: usize,
    /// Weight of all of them together, 1 = one best-effort flow.
    pub w: f64,
    /// What the receive windows do: `Yielding` if any of them does; `None` without a
    /// connection.
    pub brake: Option<ReceiveWindowState>,
    /// Lowest rate that still meets the deadline, byte/s; `None` without one.
    pub zeta: Option<f64>,
    /// Mean rate over the last period, both ways, byte/s.
    pub rate: f64,
    /// Mean round-trip time over the connections that move, ms; `None` without one.
    pub rtt_ms: Option<f64>,
    /// Bytes that all connections have received and sent.
    pub bytes_done: u64,
    /// Bytes that are expected; `None` if that is unknown.
    pub bytes_total: Option<u64>,
}

/// What was held, and what was not.
#[derive(Debug, Clone, Default, Serialize, serde::Deserialize)]
pub struct HoldReport {
    /// Seconds.
    pub elapsed_s: f64,
    /// Bytes that the connections have received.
    pub bytes_received: u64,
    /// Bytes that they have sent and that were acknowledged.
    pub bytes_sent: u64,
    /// Connections that were held.
    pub connections: u64,
    /// Connections to addresses of this machine, which were left alone.
    pub local_connections: u64,
    /// Seconds in which the connections yielded to other traffic.
    pub yielded_s: f64,
    /// UDP flows that were seen (QUIC, for instance), which do not yield.
    pub udp_flows: u64,
    /// Processes whose sockets could not be reached.
    pub out_of_reach: u64,
    /// Whether the soft deadline was met; `None` without a deadline.
    pub deadline_met: Option<bool>,
}
