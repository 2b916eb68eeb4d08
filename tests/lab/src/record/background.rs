//! What contenders did, as the record of a run holds it.

use serde::{Deserialize, Serialize};

use super::Fetch;

/// What the contender did.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BackgroundRecord {
    /// State of our control loop, once a second; empty for the others.
    pub control: Vec<ControlSample>,
    /// When it was done, if it had an end and reached it.
    pub done: Option<f64>,
    /// What it was asked to move in pieces.
    pub jobs: Vec<Fetch>,
    /// Bytes that it says it has moved, where it says so.
    pub bytes: Option<u64>,
    /// What went wrong, for people.
    pub failure: Option<String>,
    /// What a sender of the lab's saw, once a second; empty for the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sender: Vec<SenderSample>,
    /// What the receiver of a sender of the lab's had got, as
    /// [`FlowRecord::received`](super::FlowRecord::received); empty for the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub received: Vec<u64>,
    /// When it began, if it did.
    #[serde(default)]
    pub began: Option<f64>,
    /// Processor time of its program until the end of the run, s; `None` for
    /// one that is no program, or ended by itself.
    #[serde(default)]
    pub cpu_s: Option<f64>,
    /// Each transfer that has an end, in the order of the scenario.
    #[serde(default)]
    pub transfers: Vec<TransferRecord>,
    /// How far each transfer was, about once a second; empty where nobody says so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub progress: Vec<Progress>,
    /// Congestion control that a sender of ours was seen to send with; `None` for
    /// other senders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_by: Option<String>,
    /// The first time that `fairbat` foretold a deadline missed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forecast: Option<Forecast>,
}

/// What became of a transfer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TransferRecord {
    /// Name of the file.
    pub name: String,
    /// Its size, bytes.
    pub bytes: u64,
    /// Seconds after the contender began by which it should have been there.
    pub deadline_s: Option<f64>,
    /// When it was there.
    pub done: Option<f64>,
    /// Whether that was in time; `None` without a deadline, and when the run
    /// was over before it.
    pub met: Option<bool>,
    /// How much later than it should have been it was there, s; 0 in time. Of
    /// one that was not there at the end of the run, how much later that was.
    pub late_s: Option<f64>,
    /// Seconds from when the contender began until it was there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_s: Option<f64>,
    /// Which it was to be there: the first, 1, the second, ...
    pub place: Option<usize>,
}

/// How far each of several transfers was.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// When.
    pub t: f64,
    /// Bytes of each that its contender says it has moved, in the order of the
    /// scenario.
    pub bytes: Vec<u64>,
}

/// What `fairbat` said of deadlines that it cannot meet.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Forecast {
    /// When.
    pub t: f64,
    /// By how much the first of them will be late, s.
    pub late_s: f64,
}

/// One sample of our control loop; see `fairbat get --json`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ControlSample {
    /// When.
    pub t: f64,
    /// Inactive chunks that count.
    pub n: f64,
    /// Limit on active connections.
    pub m: f64,
    /// Active connections.
    pub active: u32,
    /// Weight of each flow.
    pub w: f64,
    /// Lowest rate that still meets the deadline, byte/s.
    pub zeta: Option<f64>,
    /// Measured rate, byte/s.
    pub rate: f64,
}

/// What a sender of the lab's saw of its connection. Counters count from its
/// start; where the congestion control is not ours they are 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct SenderSample {
    /// When.
    pub t: f64,
    /// Weight.
    pub w: f64,
    /// DA-LBE's price ratio.
    pub phi: f64,
    /// What was acknowledged since the last sample, byte/s.
    pub rate: f64,
    /// Congestion window, packets.
    pub cwnd: u32,
    /// Smoothed round-trip time, ms.
    pub rtt_ms: f64,
    /// Round-trip time without a queue, as the sender sees it, ms.
    pub base_rtt_ms: f64,
    /// Indications of congestion by loss.
    pub losses: u32,
    /// The same by delay.
    pub delays: u32,
    /// Back-offs for a phantom or probabilistic signal.
    pub phantoms: u32,
    /// Reductions of the window altogether.
    pub backoffs: u32,
    /// Whether it yields to somebody; `None` where nobody knows.
    pub is_yielding: Option<bool>,
}
