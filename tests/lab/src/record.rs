//! Everything a run left behind, as its JSON file holds it. Times are seconds
//! since the run began, unless a name says otherwise.

use serde::{Deserialize, Serialize};

use crate::deadline::DeadlineFigures;
use crate::jobs::JobsFigures;
use crate::scenario::Scenario;
use crate::summary::{Course, Measured, summarise};
use crate::yielding::{BesideFigures, YieldFigures};

/// One run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    /// Name of the scenario.
    pub scenario: String,
    /// Whether it was the quick variant.
    pub quick: bool,
    /// Seed of everything random.
    pub seed: u64,
    /// What the background was.
    pub contender: String,
    /// Congestion control of the server that sends; `None` for contenders
    /// that do not heed it.
    pub congestion_control: Option<String>,
    /// The scenario as it was run.
    pub setup: Scenario,
    /// Where and how it was measured.
    pub provenance: Provenance,
    /// The figures.
    pub summary: Summary,
    /// The links, in the direction of the data.
    pub links: Vec<LinkRecord>,
    /// Round-trip times under load.
    pub rtt: Vec<Probe>,
    /// Foreground flows, in the order of the scenario.
    pub flows: Vec<FlowRecord>,
    /// Web fetches of the foreground.
    pub fetches: Vec<Fetch>,
    /// What the contenders did, in the order of their start.
    pub background: Vec<BackgroundRecord>,
}

impl Record {
    /// What the files of this run are called, without suffix.
    #[must_use]
    pub fn file_name(&self) -> String {
        let control = self.congestion_control.as_deref();
        file_name(&self.scenario, &self.contender, control, self.seed)
    }

    /// State of our control loop; of the first contender that has one.
    #[must_use]
    pub fn control(&self) -> &[ControlSample] {
        let mut all = self.background.iter().map(|one| one.control.as_slice());
        all.find(|control| !control.is_empty()).unwrap_or(&[])
    }

    /// What a sender of the lab's saw; of the first contender that is one.
    #[must_use]
    pub fn sender(&self) -> &[SenderSample] {
        let mut all = self.background.iter().map(|one| one.sender.as_slice());
        all.find(|sender| !sender.is_empty()).unwrap_or(&[])
    }

    /// When the last of the contenders was done; `None` unless all were.
    #[must_use]
    pub fn done(&self) -> Option<f64> {
        let moments: Option<Vec<_>> = self.background.iter().map(|one| one.done).collect();
        moments?.into_iter().reduce(f64::max)
    }

    /// Its figures, taken anew from what it holds. Processor time is not recorded
    /// otherwise, and stays.
    #[must_use]
    pub fn summarised(&self) -> Summary {
        summarise(&Measured {
            setup: &self.setup,
            links: &self.links,
            rtt: &self.rtt,
            flows: &self.flows,
            fetches: &self.fetches,
            background: &self.background,
            lab_cpu_s: self.summary.lab_cores * self.setup.duration_s,
        })
    }

    /// What went wrong with contenders, or with the lab itself, for people.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        let directions = self
            .links
            .iter()
            .flat_map(|link| [&link.forward, &link.backward]);
        let overrun: u64 = directions.map(|direction| direction.counters.overrun).sum();
        let too_slow = (overrun > 0).then(|| {
            format!("the link was too slow for this machine: {overrun} packets overran it")
        });
        let failures = self.background.iter().filter_map(|one| one.failure.clone());
        too_slow
            .into_iter()
            .chain(failures)
            .reduce(|all, one| format!("{all}; {one}"))
    }

    /// What the contenders were asked to move in pieces.
    #[must_use]
    pub fn jobs(&self) -> Vec<Fetch> {
        let all = self.background.iter().flat_map(|one| &one.jobs);
        all.copied().collect()
    }
}

/// What the files of a run are called, without suffix.
#[must_use]
pub fn file_name(
    scenario: &str,
    contender: &str,
    congestion_control: Option<&str>,
    seed: u64,
) -> String {
    let control = congestion_control.map_or_else(String::new, |name| format!("-{name}"));
    format!("{scenario}-{contender}{control}-{seed}")
}

/// Where and how a run was measured: what it takes to do it again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// The command that does it again.
    pub command: String,
    /// Commit that the lab is built of; `-dirty` when its sources, or those of
    /// what it measures, had been changed by then.
    pub commit: String,
    /// Kernel.
    pub kernel: String,
    /// Processor, and how many cores.
    pub machine: String,
    /// What took part, with versions.
    pub versions: Vec<String>,
    /// When it began, UTC.
    pub started: String,
    /// How many labs ran side by side, this one included.
    pub side_by_side: String,
}

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

/// How late packets were handed over, both directions together, ms.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Lateness {
    /// Half of the packets were at most so late.
    pub median_ms: f64,
    /// 99 % of the packets were at most so late.
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
    /// Found the queue full.
    pub dropped: u64,
    /// Lost at random.
    pub lost: u64,
    /// Dropped by the device before the link could take them, because it came
    /// too late: 0 in a sound run.
    pub overrun: u64,
    /// Reached the other end.
    pub delivered: u64,
    /// Bytes of those, headers included.
    pub delivered_bytes: u64,
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
}

/// A probe of the round-trip time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    /// When it was sent.
    pub t: f64,
    /// What came back took so long, ms; `None` if nothing came back.
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

/// The figures of a run, over the measured part of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Payload of the foreground in the direction of the data, Mbit/s, by
    /// flow, at its receiver, while the flow was active.
    pub foreground_mbit: Vec<f64>,
    /// The same of all of them together, over the whole of the measured part.
    pub foreground_together_mbit: f64,
    /// Payload of flows in the other direction, Mbit/s, by flow.
    pub backward_mbit: Vec<f64>,
    /// Payload of the background that crossed the last link, Mbit/s, what was
    /// sent twice included.
    pub background_mbit: f64,
    /// What the receivers of senders of the lab's got, Mbit/s: nothing that was
    /// sent twice. `None` for other contenders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_mbit: Option<f64>,
    /// Payload of the foreground in the direction of the data in the 10 s after
    /// the background's start, at its receivers, Mbit/s; `None` without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreground_first_mbit: Option<f64>,
    /// Jain's index of what contenders carried over the last link; `None` with
    /// fewer than two.
    #[serde(default)]
    pub background_jain: Option<f64>,
    /// Share of the first link's rate in use by both, 0 to 1, their payload
    /// taken for that of full packets.
    pub utilisation: f64,
    /// Round-trip time, mean, ms.
    #[serde(default)]
    pub rtt_mean_ms: Option<f64>,
    /// Round-trip time, median, ms.
    pub rtt_median_ms: Option<f64>,
    /// Round-trip time, 95th percentile, ms.
    pub rtt_p95_ms: Option<f64>,
    /// Probes that did not come back, 0 to 1.
    pub probe_loss: f64,
    /// Mean queue of the first link, packets.
    pub queue_mean_packets: f64,
    /// Web fetches that began in the measured part.
    pub fetches: usize,
    /// Of these, not over at the end.
    pub unfinished: usize,
    /// Mean time of a fetch, s; one that was not over counts with the time it
    /// had taken so far.
    pub fetch_mean_s: Option<f64>,
    /// 95th percentile of the time of a fetch, s, counted alike.
    pub fetch_p95_s: Option<f64>,
    /// 99 % of the packets were handed over by the links at most so much
    /// later than they should have been, ms; of the worst link.
    pub late_p99_ms: f64,
    /// Processor time of all links, share of one core.
    pub link_cores: f64,
    /// Processor time of the lab with its generators and links, share of one
    /// core.
    pub lab_cores: f64,
    /// What became of transfers with deadlines; of the whole run, whatever part
    /// of it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<DeadlineFigures>,
    /// How the background yielded, and used what nobody else wanted; `None`
    /// without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub yielding: Option<YieldFigures>,
    /// How a sender of the lab's stood beside others; `None` for whoever is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<BesideFigures>,
    /// How it went, where a controller made the weight of a sender of the lab's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub course: Option<Course>,
    /// See [`Summary::rate_against_greedy()`]; filled in where the course is not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_against_greedy: Option<f64>,
    /// What web fetches and background chunks had of each other; `None` where no
    /// chunks arrive at random.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<JobsFigures>,
}

impl Summary {
    /// Payload of the background, Mbit/s: what its receivers got where that is
    /// known, as that of the foreground, else what crossed the last link.
    #[must_use]
    pub fn goodput_mbit(&self) -> f64 {
        self.received_mbit.unwrap_or(self.background_mbit)
    }
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
    /// What a sender of the lab's saw, once a second; empty for the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sender: Vec<SenderSample>,
    /// What the receiver of a sender of the lab's had got, as
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
