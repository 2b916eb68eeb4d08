//! The bottlenecks of a scenario, as its file says them.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::scenario::discipline::{Discipline, Radio};

/// A bottleneck: the direction of the data, and the other one. The first is
/// written out: serde cannot both flatten and refuse unknown keys.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkSpec {
    /// Name of the path that it is, and of its devices: links with a path are side by side, and
    /// all others in a row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// What bytes over this path cost; `fairbat get --interface` is told.
    #[serde(default, skip_serializing_if = "Cost::is_free")]
    pub cost: Cost,
    /// The user's limit on what is fetched over this path, Mbit/s; `fairbat get --interface` is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_mbit: Option<f64>,
    /// How often this path goes away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub departures: Option<Departures>,
    /// Rate of IP packets, Mbit/s, headers included.
    pub rate_mbit: f64,
    /// Propagation delay one way, ms.
    pub delay_ms: f64,
    /// Size of the queue, or of a policer's bucket.
    pub queue: QueueSpec,
    /// How packets are queued.
    #[serde(default, skip_serializing_if = "Discipline::is_drop_tail")]
    pub discipline: Discipline,
    /// The discipline marks packets of those that know ECN in place of dropping
    /// them, and the hosts ask for ECN.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ecn: bool,
    /// How the rate varies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub radio: Option<Radio>,
    /// Packets arrive together, so often, ms.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub aggregate_ms: f64,
    /// Probability of a packet to be lost besides, 0 to 1.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub loss: f64,
    /// Share of the acknowledgements without data that is left out if another one of the
    /// flow comes soon, as Wi-Fi and cable modems do, 0 to 1.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub thinned_acks: f64,
    /// Each packet is up to so much later, at random, and none before another,
    /// ms.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub jitter_ms: f64,
    /// Probability of a packet to be later, 0 to 1.
    #[serde(default = "all", skip_serializing_if = "is_all")]
    pub jitter_share: f64,
    /// Changes of the rate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schedule: Vec<RateStep>,
    /// Changes of the propagation delay.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delay_steps: Vec<DelayStep>,
    /// When nothing gets through, s.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outage: Vec<Interval>,
    /// The other direction; unless it is given it is as this one, without
    /// schedule, changes of the delay, losses and jitter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backward: Option<DirectionSpec>,
}

/// What the bytes over a path cost whoever pays for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cost {
    /// Nothing.
    #[default]
    Free,
    /// Each byte costs.
    Metered,
}

impl Cost {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
    pub(crate) fn is_free(&self) -> bool {
        *self == Self::Free
    }
}

/// How often a path goes away during a run, and for how long. It is the device at the client
/// that goes down, and comes up again with its address and its routes, as a network manager
/// would have it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Departures {
    /// How often.
    pub times: u32,
    /// For how long at least, s.
    pub least_s: f64,
    /// For how long at most, s.
    pub most_s: f64,
}

/// Keeps these draws apart from others of the same seed.
const STREAM: u64 = 0x6465_7061_7274_7300;

impl Departures {
    /// When the path is away between two moments, s: once in each of as many periods of the same
    /// length, at random. The same for a seed and a path.
    #[must_use]
    pub fn draw(self, (from_s, until_s): (f64, f64), path: usize, seed: u64) -> Vec<Interval> {
        let mut random = StdRng::seed_from_u64(seed ^ STREAM ^ ((path as u64) << 48));
        let period = (until_s - from_s) / f64::from(self.times);
        let most = self.most_s.min(period);
        let times = (0..self.times).map(|number| {
            let length = random.random_range(self.least_s.min(most)..=most);
            let begins = random.random_range(0.0..=period - length);
            let from_s = from_s + f64::from(number) * period + begins;
            Interval {
                from_s,
                until_s: from_s + length,
            }
        });
        times.collect()
    }
}

impl LinkSpec {
    /// A link with a drop-tail queue and nothing that varies.
    #[must_use]
    pub fn plain(rate_mbit: f64, delay_ms: f64, queue: QueueSpec) -> Self {
        Self {
            path: None,
            cost: Cost::Free,
            limit_mbit: None,
            departures: None,
            rate_mbit,
            delay_ms,
            queue,
            discipline: Discipline::DropTail,
            ecn: false,
            radio: None,
            aggregate_ms: 0.0,
            loss: 0.0,
            thinned_acks: 0.0,
            jitter_ms: 0.0,
            jitter_share: 1.0,
            schedule: Vec::new(),
            delay_steps: Vec::new(),
            outage: Vec::new(),
            backward: None,
        }
    }

    /// Its round-trip time without any queue, ms.
    #[must_use]
    pub fn rtt_ms(&self) -> f64 {
        self.delay_ms + self.backward().delay_ms
    }

    /// Whether it says what is for paths only, its name left aside.
    pub(crate) fn is_like_a_path(&self) -> bool {
        self.departures.is_some() || self.limit_mbit.is_some() || !self.cost.is_free()
    }

    /// The direction of the data.
    #[must_use]
    pub fn forward(&self) -> DirectionSpec {
        DirectionSpec {
            rate_mbit: self.rate_mbit,
            delay_ms: self.delay_ms,
            queue: self.queue,
            discipline: self.discipline,
            ecn: self.ecn,
            radio: self.radio,
            aggregate_ms: self.aggregate_ms,
            loss: self.loss,
            thinned_acks: self.thinned_acks,
            jitter_ms: self.jitter_ms,
            jitter_share: self.jitter_share,
            schedule: self.schedule.clone(),
            delay_steps: self.delay_steps.clone(),
            outage: self.outage.clone(),
        }
    }

    /// The other direction.
    #[must_use]
    pub fn backward(&self) -> DirectionSpec {
        self.backward.clone().unwrap_or_else(|| DirectionSpec {
            loss: 0.0,
            jitter_ms: 0.0,
            jitter_share: 1.0,
            schedule: Vec::new(),
            delay_steps: Vec::new(),
            ..self.forward()
        })
    }
}

/// One direction of a bottleneck; see [`LinkSpec`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DirectionSpec {
    /// Rate of IP packets, Mbit/s, headers included.
    pub rate_mbit: f64,
    /// Propagation delay one way, ms.
    pub delay_ms: f64,
    /// Size of the queue, or of a policer's bucket.
    pub queue: QueueSpec,
    /// How packets are queued.
    #[serde(default, skip_serializing_if = "Discipline::is_drop_tail")]
    pub discipline: Discipline,
    /// The discipline marks packets of those that know ECN in place of dropping
    /// them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ecn: bool,
    /// How the rate varies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub radio: Option<Radio>,
    /// Packets arrive together, so often, ms.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub aggregate_ms: f64,
    /// Probability of a packet to be lost besides, 0 to 1.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub loss: f64,
    /// Share of the acknowledgements without data that is left out if another one of the
    /// flow comes soon, as Wi-Fi and cable modems do, 0 to 1.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub thinned_acks: f64,
    /// Each packet is up to so much later, at random, and none before another,
    /// ms.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub jitter_ms: f64,
    /// Probability of a packet to be later, 0 to 1.
    #[serde(default = "all", skip_serializing_if = "is_all")]
    pub jitter_share: f64,
    /// Changes of the rate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schedule: Vec<RateStep>,
    /// Changes of the propagation delay.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delay_steps: Vec<DelayStep>,
    /// When nothing gets through, s.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outage: Vec<Interval>,
}

/// A time within a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// From when, s.
    pub from_s: f64,
    /// Until when, s.
    pub until_s: f64,
}

/// A change of a link's rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateStep {
    /// When, s.
    pub at_s: f64,
    /// To what, Mbit/s.
    pub rate_mbit: f64,
}

/// A change of a link's propagation delay, as of another route.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DelayStep {
    /// When, s.
    pub at_s: f64,
    /// To what one way, ms. No packet comes before one that was sent before it.
    pub delay_ms: f64,
}

impl DelayStep {
    /// Makes it so much longer, ms, and none shorter than nothing.
    pub(crate) fn shift(&mut self, longer_ms: f64) {
        self.delay_ms = (self.delay_ms + longer_ms).max(0.0);
    }
}

impl Interval {
    /// Its ends, since the run began.
    #[must_use]
    pub fn moments(&self) -> (Duration, Duration) {
        let moment = Duration::from_secs_f64;
        (moment(self.from_s), moment(self.until_s))
    }
}

/// How much a queue holds, the packet being sent included. A policer's bucket holds
/// as many bytes; there a packet is 1500.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum QueueSpec {
    /// So many packets of any size.
    Packets(u32),
    /// So many bytes.
    Bytes(u64),
    /// So many times what the link carries in the round-trip time of the
    /// scenario (all links, both ways), in packets of 1500 bytes, and never less
    /// than four of them.
    Bdp(f64),
}

fn all() -> f64 {
    1.0
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_all(value: &f64) -> bool {
    *value == 1.0
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
pub(crate) fn is_zero(value: &f64) -> bool {
    *value == 0.0
}
