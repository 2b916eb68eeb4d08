//! What is seen of a run while it goes on, as its JSON file holds it: packets of
//! links, flows, fetches and probes, and what contenders tell. Times are seconds
//! since the run began, unless a name says otherwise.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// One link of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkRecord {
    /// The direction of the data.
    pub forward: DirectionRecord,
    /// The other one.
    pub backward: DirectionRecord,
    /// Processor time of the thread that is this link, s.
    pub cpu_s: f64,
    /// How much later than it should have been the link handed packets over.
    pub lateness: Lateness,
}

/// How late what was due has come, ms: packets of a link that were handed over, both
/// directions together, or processors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Lateness {
    /// Half of it was at most so late.
    pub median_ms: f64,
    /// 99 % of it was at most so late.
    pub p99_ms: f64,
    /// The latest.
    pub max_ms: f64,
}

/// One direction of a link.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DirectionRecord {
    /// Packets.
    pub counters: Counters,
    /// The state in regular intervals.
    pub samples: Samples,
    /// Connections (or UDP flows) of the background.
    pub connections: Vec<Connection>,
}

/// A connection of the background, as a link sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connection {
    /// Ports of source and destination.
    pub ports: (u16, u16),
    /// In which second it was first seen.
    pub from_s: u64,
    /// Payload that left the queue in each second from there on, bytes.
    pub payload: Vec<u64>,
}

/// Counted packets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Came.
    pub arrived: u64,
    /// Found the queue full, or a policer's bucket empty.
    pub dropped: u64,
    /// Dropped by active queue management (CoDel, PIE). A longer queue would not have
    /// prevented it.
    #[serde(default)]
    pub aqm_dropped: u64,
    /// Marked by it in place of being dropped.
    #[serde(default)]
    pub marked: u64,
    /// Lost at random, or because the device at the other end was down.
    pub lost: u64,
    /// Dropped by the device before the link could take them, because it came
    /// too late: 0 in a sound run.
    pub overrun: u64,
    /// Reached the other end.
    pub delivered: u64,
    /// Bytes of those, headers included.
    pub delivered_bytes: u64,
    /// Payload of the background in those, what came twice included, bytes.
    #[serde(default)]
    pub background_payload: u64,
}

/// The state of one direction in regular intervals. Columns: element i is
/// the moment `(i + 1) * interval_ms`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Samples {
    /// Interval, ms.
    pub interval_ms: u64,
    /// Queue, the packet being sent included, packets.
    pub queue_packets: Vec<u32>,
    /// Queue, bytes.
    pub queue_bytes: Vec<u64>,
    /// Payload of the foreground that left the queue during the interval,
    /// bytes.
    pub foreground: Vec<u64>,
    /// The same of the background.
    pub background: Vec<u64>,
    /// Whole packets of anybody that left the queue during the interval, bytes.
    #[serde(default)]
    pub carried: Vec<u64>,
    /// What the link could have carried during the interval, headers included, bytes.
    /// Empty if the scenario alone tells it: without radio.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capacity: Vec<u64>,
}

/// A datagram whose time is measured: a probe's for its round trip, that of a
/// call's packet for its one way.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    /// When it was sent.
    pub t: f64,
    /// It took so long, ms; `None` if it did not come.
    pub ms: Option<f64>,
}

/// A foreground flow, or all fetches of a web source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowRecord {
    /// What it is, for people: `greedy 1`, `constant`, `web`.
    pub name: String,
    /// Whether it goes against the direction of the data.
    pub backward: bool,
    /// What its receiver had got, by 100 ms: element i is the moment
    /// `(i + 1) * 0.1`, cumulative, bytes of payload.
    pub received: Vec<u64>,
    /// Each packet of a call, in the order of sending; empty for other flows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub packets: Vec<Probe>,
}

/// A fetch with a beginning and an end.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Fetch {
    /// When it began.
    pub t: f64,
    /// Its size, bytes.
    pub bytes: u64,
    /// How long it took, s; `None` if it was not over at the end of the run.
    pub seconds: Option<f64>,
}

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
    /// What one of the lab's senders saw, once a second; empty for the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sender: Vec<SenderSample>,
    /// What the receiver of one of the lab's senders had got, as
    /// [`FlowRecord::received`](FlowRecord::received); empty for the others.
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
    /// How far each transfer was, about once a second; empty where the contender does not say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub progress: Vec<Progress>,
    /// What went wrong on purpose; empty where nothing did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<FaultRecord>,
    /// Whether it took part in the lane of its site, until that has become
    /// [`FaultRecord::recovered_s`]; empty for what is in none.
    #[serde(skip)]
    pub site: Vec<SiteSample>,
    /// Congestion control that a sender of ours was seen to send with; `None` for
    /// other senders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_by: Option<String>,
    /// The first time that `fairbat` foretold a deadline missed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forecast: Option<Forecast>,
}

/// Something that went wrong on purpose.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FaultRecord {
    /// When.
    pub t: f64,
    /// When it was over, if it was; an agent that is stopped or killed goes on by itself.
    pub until: Option<f64>,
    /// What, and where.
    pub what: String,
    /// How long it took from then, or from when it was over, until all hosts took part in the
    /// lane of their site for good, s; 0 if none of them ever did not, `None` if something else
    /// went wrong before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovered_s: Option<f64>,
}

/// An agent in its site.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SiteSample {
    /// When.
    pub t: f64,
    /// Whether it heard a coordinator, and did what that granted.
    pub takes_part: bool,
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

/// What one of the lab's senders saw of its connection. Counters count from its
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
    /// Whether it yields to somebody; `None` where that is unknown.
    pub is_yielding: Option<bool>,
}

/// Interval of [`FlowRecord::received`].
pub const RECEIVED_EVERY: Duration = Duration::from_millis(100);

/// What a receiver got between two moments, Mbit/s, of what it had got by 100 ms
/// ([`FlowRecord::received`]).
pub(crate) fn goodput(counts: &[u64], from: f64, until: f64) -> f64 {
    let bytes = received(counts, until) - received(counts, from);
    ratio(bytes.max(0.0) * 8e-6, until - from)
}

/// What a receiver had got at this moment, bytes, linear between two samples.
fn received(counts: &[u64], moment: f64) -> f64 {
    let at = |index: usize| {
        let index = index.min(counts.len());
        index
            .checked_sub(1)
            .map_or(0.0, |index| counts[index] as f64)
    };
    let place = (moment / RECEIVED_EVERY.as_secs_f64()).max(0.0);
    let below = place.floor() as usize;
    at(below) + (place - place.floor()) * (at(below + 1) - at(below))
}

/// When a receiver had got so many bytes, at least one, s, linear between two samples; `None`
/// if it never had.
pub(crate) fn first_bytes_s(counts: &[u64], bytes: u64) -> Option<f64> {
    let index = counts.iter().position(|count| *count >= bytes)?;
    let before = index.checked_sub(1).map_or(0, |index| counts[index]);
    let part = (bytes - before) as f64 / (counts[index] - before) as f64;
    Some(RECEIVED_EVERY.as_secs_f64() * (index as f64 + part))
}

/// A share of nothing is 0.
pub(crate) fn ratio(part: f64, whole: f64) -> f64 {
    let ratio = part / whole;
    if ratio.is_finite() { ratio } else { 0.0 }
}
