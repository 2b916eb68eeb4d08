//! What a run is: a link, the foreground on it, and what the background is
//! asked to do. Read from small TOML files; every quantity carries its unit
//! in its name.

mod check;
mod quick;
mod share;

use std::ops::Range;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::files::Content;
pub use crate::scenario::check::{congestion_control, scale, weight};

/// One scenario, as its file says it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// One line for people: what this is, and where it is from.
    pub description: String,
    /// Length of a run, s.
    pub duration_s: f64,
    /// Figures are taken from here, s. Whatever starts up does it before.
    pub measure_from_s: f64,
    /// Figures are taken up to here, s; to the end if it is not given. Fetches
    /// that began before have the rest of the run to be over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measure_until_s: Option<f64>,
    /// From here on nothing presses the contender any more, s: by its deadline
    /// it would get there as gently as it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pressure_until_s: Option<f64>,
    /// The bottlenecks, in the direction of the data: one, or two in a row.
    pub link: Vec<LinkSpec>,
    /// What must not be disturbed.
    #[serde(default)]
    pub foreground: Vec<Foreground>,
    /// What the contender has to do.
    #[serde(default)]
    pub background: Background,
    /// What is different in the quick variant, which takes less than a
    /// minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quick: Option<Quick>,
}

impl Content for Scenario {
    const KIND: &'static str = "scenario";

    fn check(&self) -> Result<(), String> {
        Self::check(self)
    }
}

impl Scenario {
    /// From when until when figures are taken, s.
    #[must_use]
    pub fn measured(&self) -> Range<f64> {
        self.measure_from_s..self.measure_until_s.unwrap_or(self.duration_s)
    }

    /// The foreground flow by flow, in the order in which flows are recorded;
    /// all fetches of a web source are one.
    pub fn flows(&self) -> impl Iterator<Item = &Foreground> {
        let kinds = self.foreground.iter();
        kinds.flat_map(|foreground| std::iter::repeat_n(foreground, foreground.flows()))
    }

    /// What happens to the background for a while: it is stopped, or the first
    /// link carries nothing, s. The first of the latter counts.
    #[must_use]
    pub fn disturbance(&self) -> Option<Range<f64>> {
        let outages = self.link.first().map(|link| link.outage.as_slice());
        let outage = outages.and_then(<[Interval]>::first).copied();
        let interval = self.background.stopped.or(outage)?;
        Some(interval.from_s..interval.until_s)
    }

    /// The round-trip time without any queue.
    #[must_use]
    pub fn base_rtt(&self) -> Duration {
        let both_ways = |link: &LinkSpec| link.delay_ms + link.backward().delay_ms;
        let sum: f64 = self.link.iter().map(both_ways).sum();
        Duration::from_secs_f64(sum / 1e3)
    }
}

/// A bottleneck: the direction of the data, and the other one. The first is
/// written out: serde cannot both flatten and refuse unknown keys.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkSpec {
    /// Rate of IP packets, Mbit/s, headers included.
    pub rate_mbit: f64,
    /// Propagation delay one way, ms.
    pub delay_ms: f64,
    /// Size of the drop-tail queue.
    pub queue: QueueSpec,
    /// Probability of a packet to be lost besides, 0 to 1.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub loss: f64,
    /// Each packet is up to so much later, at random, and none before another,
    /// ms.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub jitter_ms: f64,
    /// Changes of the rate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schedule: Vec<RateStep>,
    /// When nothing gets through, s.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outage: Vec<Interval>,
    /// The other direction; unless it is given it has the same rate, delay,
    /// queue and outages, and neither schedule nor loss nor jitter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backward: Option<DirectionSpec>,
}

impl LinkSpec {
    /// The direction of the data.
    #[must_use]
    pub fn forward(&self) -> DirectionSpec {
        DirectionSpec {
            rate_mbit: self.rate_mbit,
            delay_ms: self.delay_ms,
            queue: self.queue,
            loss: self.loss,
            jitter_ms: self.jitter_ms,
            schedule: self.schedule.clone(),
            outage: self.outage.clone(),
        }
    }

    /// The other direction.
    #[must_use]
    pub fn backward(&self) -> DirectionSpec {
        self.backward.clone().unwrap_or_else(|| DirectionSpec {
            loss: 0.0,
            jitter_ms: 0.0,
            schedule: Vec::new(),
            ..self.forward()
        })
    }
}

/// One direction of a bottleneck.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DirectionSpec {
    /// Rate of IP packets, Mbit/s, headers included.
    pub rate_mbit: f64,
    /// Propagation delay one way, ms.
    pub delay_ms: f64,
    /// Size of the drop-tail queue.
    pub queue: QueueSpec,
    /// Probability of a packet to be lost besides, 0 to 1.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub loss: f64,
    /// Each packet is up to so much later, at random, and none before another,
    /// ms.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub jitter_ms: f64,
    /// Changes of the rate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schedule: Vec<RateStep>,
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

impl Interval {
    /// Its ends, since the run began.
    #[must_use]
    pub fn moments(&self) -> (Duration, Duration) {
        let moment = Duration::from_secs_f64;
        (moment(self.from_s), moment(self.until_s))
    }
}

/// How much a drop-tail queue holds, the packet being sent included.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum QueueSpec {
    /// So many packets of any size.
    Packets(u32),
    /// So many bytes.
    Bytes(u64),
    /// So many times what the link carries in the round-trip time of the
    /// scenario (all links, both ways), in packets of 1500 bytes.
    Bdp(f64),
}

/// A kind of foreground traffic, over kernel TCP unless it says otherwise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Foreground {
    /// What it does.
    pub traffic: Traffic,
    /// From when, s.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub start_s: f64,
    /// Until when, s; to the end if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_s: Option<f64>,
    /// The sender's congestion control.
    #[serde(default = "cubic")]
    pub congestion_control: String,
    /// Goes against the direction of the data.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub backward: bool,
    /// Crosses only this link, counted from 1; all of them if it is not
    /// given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<usize>,
}

impl Foreground {
    /// From when until when it is there, s.
    #[must_use]
    pub fn active(&self) -> Range<f64> {
        self.start_s..self.stop_s.unwrap_or(f64::INFINITY)
    }

    /// How many flows are recorded of it.
    fn flows(&self) -> usize {
        match self.traffic {
            Traffic::Greedy { flows } => flows as usize,
            Traffic::Constant { .. }
            | Traffic::OnOff { .. }
            | Traffic::Web { .. }
            | Traffic::Udp { .. } => 1,
        }
    }
}

/// What foreground traffic does.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Traffic {
    /// Connections that always have something to send.
    Greedy {
        /// How many.
        #[serde(default = "one")]
        flows: u32,
    },
    /// A live stream: so much and no more; what could not be sent for a
    /// second is not sent any more.
    Constant {
        /// Mbit/s of payload.
        rate_mbit: f64,
    },
    /// One connection, greedy in turns.
    OnOff {
        /// Length of a turn of sending, s.
        on_s: f64,
        /// Length of a pause, s.
        off_s: f64,
    },
    /// Fetches that begin at random (Poisson), each over a connection of its
    /// own, with sizes of exponential distribution.
    Web {
        /// Mean load as a share of the link's rate, payload against payload.
        load: f64,
        /// Mean size of a fetch, kB (1000 bytes).
        mean_kb: f64,
    },
    /// Datagrams with exponential gaps, which yield to nobody.
    Udp {
        /// Mean rate of IP packets, Mbit/s.
        rate_mbit: f64,
        /// Size of each with its IP and UDP headers, bytes.
        #[serde(default = "udp_packet")]
        packet_bytes: u32,
    },
}

impl Traffic {
    /// What it is called in a sentence.
    #[must_use]
    pub fn title(&self) -> &'static str {
        match self {
            Self::Greedy { .. } => "a greedy flow",
            Self::Constant { .. } => "a live stream",
            Self::OnOff { .. } => "a flow with pauses",
            Self::Web { .. } => "web traffic",
            Self::Udp { .. } => "a stream of datagrams",
        }
    }
}

/// What is different in the quick variant.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Quick {
    /// Every moment and every length of time in the scenario is multiplied by
    /// this, and sizes with them; delays are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_scale: Option<f64>,
    /// Length of a run, s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_s: Option<f64>,
    /// Up to where figures are taken, s; with a duration of its own the quick
    /// variant is measured to the end unless this is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measure_until_s: Option<f64>,
    /// From where figures are taken, s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measure_from_s: Option<f64>,
}

fn cubic() -> String {
    "cubic".to_owned()
}

fn one() -> u32 {
    1
}

fn udp_packet() -> u32 {
    1000
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

/// What the contender is asked to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Background {
    /// From when, s.
    pub start_s: f64,
    /// Congestion control of the server that sends.
    pub congestion_control: String,
    /// What there is to move, MB (10^6 bytes); no end if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size_mb: Option<f64>,
    /// Seconds after its start by which it should be there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_s: Option<f64>,
    /// The least weight of its connections, for those that have one (`fairbat
    /// get --weight`); its own default if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<f64>,
    /// From when on a sender of the lab's has another weight; without a
    /// deadline.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub weights: Vec<WeightStep>,
    /// CDG's back-off scale G, ms, for senders that follow CDG; theirs follows
    /// from the weight if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub g_ms: Option<f64>,
    /// DA-LBE's price ratio that a sender of the lab's has at first; 1 if it is
    /// not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phi: Option<f64>,
    /// What a sender of the lab's makes its weight of when it has a deadline;
    /// what `fairbat` does if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<DeadlineController>,
    /// Connections to begin with, for `fairbat` (`--split`); its own default if
    /// it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections: Option<u32>,
    /// The server sends no more than this on each connection, kB/s (1000
    /// bytes).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_kb_s: Option<f64>,
    /// When the program is stopped by SIGSTOP, and goes on, s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Interval>,
    /// How many contenders there are, each with a transfer of its own.
    #[serde(skip_serializing_if = "is_one")]
    pub copies: u32,
    /// Each contender begins so much later than the one before, s.
    #[serde(skip_serializing_if = "is_zero")]
    pub stagger_s: f64,
    /// Many transfers in place of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jobs: Option<Jobs>,
    /// Several transfers in place of one, in the order in which the contender
    /// is told of them, all at once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub transfer: Vec<Transfer>,
}

/// A change of a weight.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WeightStep {
    /// When, s.
    pub at_s: f64,
    /// To what.
    pub weight: f64,
}

/// A deadline controller of DA-LBE's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeadlineController {
    /// By PID.
    Pid,
    /// By a model of the congestion control.
    Mbc,
}

impl DeadlineController {
    /// As it is written.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pid => "pid",
            Self::Mbc => "mbc",
        }
    }
}

impl FromStr for DeadlineController {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        [Self::Pid, Self::Mbc]
            .into_iter()
            .find(|one| one.name() == name)
            .ok_or_else(|| "must be pid or mbc".to_owned())
    }
}

/// Transfers that arrive at random (Poisson), with sizes of exponential
/// distribution (FAIRBAT's evaluation).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Jobs {
    /// Mean load as a share of the first link's rate.
    pub load: f64,
    /// Mean size, kB (1000 bytes).
    pub mean_kb: f64,
    /// From when on none arrives any more, s, so that what has arrived can be
    /// over when the run is; until the end of it if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_s: Option<f64>,
}

/// One of several transfers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transfer {
    /// What there is to move, MB (10^6 bytes).
    pub size_mb: f64,
    /// Seconds after the start of the contender by which it should be there.
    pub deadline_s: f64,
}

impl Default for Background {
    fn default() -> Self {
        Self {
            start_s: 2.0,
            congestion_control: cubic(),
            size_mb: None,
            deadline_s: None,
            weight: None,
            weights: Vec::new(),
            g_ms: None,
            phi: None,
            controller: None,
            connections: None,
            server_kb_s: None,
            stopped: None,
            copies: 1,
            stagger_s: 0.0,
            jobs: None,
            transfer: Vec::new(),
        }
    }
}

impl Background {
    /// All transfers that have a size and a deadline.
    #[must_use]
    pub fn due(&self) -> Vec<Transfer> {
        let only = self.size_mb.zip(self.deadline_s);
        let only = only.map(|(size_mb, deadline_s)| Transfer {
            size_mb,
            deadline_s,
        });
        self.transfer.iter().copied().chain(only).collect()
    }

    /// Seconds from the start to the last of the deadlines; `None` without
    /// any.
    #[must_use]
    pub fn window_s(&self) -> Option<f64> {
        let deadlines = self.due().into_iter().map(|transfer| transfer.deadline_s);
        deadlines.reduce(f64::max)
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_one(value: &u32) -> bool {
    *value == 1
}

/// A path. Where there are two links both are alike in proportion.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Path {
    /// Rate of the first link, Mbit/s.
    pub rate_mbit: f64,
    /// Round-trip time without queues, ms.
    pub rtt_ms: f64,
    /// Size of the queues in bandwidth-delay products.
    pub queue_bdp: f64,
}

impl FromStr for Path {
    type Err = String;

    /// As [`Path`] is shown: Mbit/s, ms and bandwidth-delay products.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let numbers: Result<Vec<f64>, _> = text.split(',').map(str::parse).collect();
        match numbers.as_deref() {
            Ok(&[rate_mbit, rtt_ms, queue_bdp]) => Ok(Self {
                rate_mbit,
                rtt_ms,
                queue_bdp,
            }),
            _ => Err(
                "must be a rate in Mbit/s, a round-trip time in ms and a queue in \
                      bandwidth-delay products, as 40,20,0.5"
                    .to_owned(),
            ),
        }
    }
}

impl std::fmt::Display for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{},{},{}", self.rate_mbit, self.rtt_ms, self.queue_bdp)
    }
}

impl Scenario {
    /// Puts everything on another path. What has a rate of its own has the same
    /// part of the link, and what there is to move takes as long.
    pub fn put_on(&mut self, path: &Path) {
        let before = self.link.first().map_or(1.0, |link| link.rate_mbit);
        let by = path.rate_mbit / before;
        let delay_ms = path.rtt_ms / 2.0 / self.link.len() as f64;
        let queue = QueueSpec::Bdp(path.queue_bdp);
        for link in &mut self.link {
            (link.delay_ms, link.queue) = (delay_ms, queue);
            link.rate_mbit *= by;
            let mut steps = link.schedule.iter_mut().collect::<Vec<_>>();
            if let Some(backward) = &mut link.backward {
                (backward.delay_ms, backward.queue) = (delay_ms, queue);
                backward.rate_mbit *= by;
                steps.extend(&mut backward.schedule);
            }
            steps.into_iter().for_each(|step| step.rate_mbit *= by);
        }
        for foreground in &mut self.foreground {
            if let Traffic::Constant { rate_mbit } | Traffic::Udp { rate_mbit, .. } =
                &mut foreground.traffic
            {
                *rate_mbit *= by;
            }
        }
        let background = &mut self.background;
        let sizes = background.transfer.iter_mut().map(|one| &mut one.size_mb);
        let sizes = sizes.chain(&mut background.size_mb);
        sizes
            .chain(&mut background.server_kb_s)
            .for_each(|value| *value *= by);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_read_as_it_is_shown() {
        let path: Path = "40,180,0.25".parse().unwrap();
        assert_eq!(
            (path.rate_mbit, path.rtt_ms, path.queue_bdp),
            (40.0, 180.0, 0.25)
        );
        assert_eq!(path.to_string(), "40,180,0.25");
        for bad in ["", "40", "40,180", "40,180,0.25,1", "40 180 1"] {
            let error = bad.parse::<Path>().unwrap_err();
            assert!(error.contains("as 40,20,0.5"), "{error}");
        }
    }

    #[test]
    fn everything_keeps_its_part_of_the_link() {
        let text = "description = \"test\"\nduration_s = 60.0\nmeasure_from_s = 10.0\n\
                    [[link]]\nrate_mbit = 10.0\ndelay_ms = 50.0\nqueue = { packets = 86 }\n\
                    schedule = [{ at_s = 20.0, rate_mbit = 5.0 }]\n\
                    backward = { rate_mbit = 5.0, delay_ms = 1.0, queue = { packets = 5 } }\n\
                    [[foreground]]\ntraffic = { constant = { rate_mbit = 6.0 } }\n\
                    [[foreground]]\ntraffic = { web = { load = 0.3, mean_kb = 300.0 } }\n\
                    [background]\nsize_mb = 20.0\n";
        let mut scenario: Scenario = toml::from_str(text).unwrap();
        scenario.put_on(&"2,40,0.5".parse().unwrap());
        let link = &scenario.link[0];
        let back = link.backward();
        assert_eq!((link.rate_mbit, link.delay_ms), (2.0, 20.0));
        assert_eq!((back.rate_mbit, back.delay_ms), (1.0, 20.0));
        assert_eq!(
            (link.queue, back.queue),
            (QueueSpec::Bdp(0.5), QueueSpec::Bdp(0.5))
        );
        assert_eq!(link.schedule[0].rate_mbit, 1.0);
        assert_eq!(scenario.base_rtt().as_millis(), 40);
        let Traffic::Constant { rate_mbit } = scenario.foreground[0].traffic else {
            panic!("it is a live stream");
        };
        assert!((rate_mbit - 1.2).abs() < 1e-9);
        assert_eq!(scenario.background.size_mb, Some(4.0));
    }
}
