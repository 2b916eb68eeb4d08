//! What a run is: a link, the foreground on it, and what the background is
//! asked to do. Read from small TOML files; every quantity carries its unit
//! in its name.

mod background;
mod check;
mod discipline;
mod link;
mod path;
mod paths;
mod quick;
mod share;

use std::ops::Range;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::files::Content;
pub use crate::scenario::background::{Background, Jobs, Stalls, Transfer, WeightStep};
pub use crate::scenario::check::within;
pub use crate::scenario::check::{congestion_control, connections, scale, weight};
pub use crate::scenario::discipline::{Discipline, Radio};
use crate::scenario::link::is_zero;
pub use crate::scenario::link::{
    Cost, DelayStep, Departures, DirectionSpec, Interval, LinkSpec, QueueSpec, RateStep,
};
pub use crate::scenario::path::Path;
pub use crate::scenario::paths::MAX_PATHS;

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
    /// The bottlenecks, in the direction of the data: one, two in a row, or paths side by side.
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

    /// What these flows are called: by their kind, with a number where there may be several
    /// or is one before.
    #[must_use]
    pub fn flow_names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for foreground in self.flows() {
            let way = if foreground.backward { "backward " } else { "" };
            let kind = format!("{way}{}", foreground.traffic.kind());
            let alike = names.iter().filter(|name| {
                let rest = name.strip_prefix(&kind);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
            });
            names.push(match alike.count() {
                0 if !foreground.is_greedy() => kind,
                before => format!("{kind} {}", before + 1),
            });
        }
        names
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

    /// The round-trip time without any queue; of paths side by side, that of the first.
    #[must_use]
    pub fn base_rtt(&self) -> Duration {
        let links = if self.is_parallel() {
            1
        } else {
            self.link.len()
        };
        let sum: f64 = self.link.iter().take(links).map(LinkSpec::rtt_ms).sum();
        Duration::from_secs_f64(sum / 1e3)
    }
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
    /// Goes over this path, where links are side by side; over the first if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

impl Foreground {
    /// Whether it is web fetches.
    pub fn is_web(&self) -> bool {
        matches!(self.traffic, Traffic::Web { .. })
    }

    /// Whether it takes all that it gets.
    pub fn is_greedy(&self) -> bool {
        matches!(self.traffic, Traffic::Greedy { .. })
    }

    /// From when until when it is there, s.
    #[must_use]
    pub fn active(&self) -> Range<f64> {
        self.start_s..self.stop_s.unwrap_or(f64::INFINITY)
    }

    /// How many flows are recorded of it.
    pub fn flows(&self) -> usize {
        match self.traffic {
            Traffic::Greedy { flows } => flows as usize,
            Traffic::Constant { .. }
            | Traffic::OnOff { .. }
            | Traffic::Web { .. }
            | Traffic::Udp { .. }
            | Traffic::Call {} => 1,
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
    /// One direction of a call: 50 packets of 200 bytes a second over UDP, whose
    /// delay is recorded one by one.
    Call {},
}

/// Size of a packet of a call with its headers, bytes: 20 ms of speech by G.711
/// are 160 (RFC 3551, section 4.5.14), and RTP, UDP and IP have 40.
pub const CALL_PACKET_BYTES: u32 = 200;

/// Packets of a call in a second.
pub const CALL_PACKETS_PER_S: u32 = 50;

impl Traffic {
    /// What its flows are called.
    fn kind(&self) -> &'static str {
        match self {
            Self::Greedy { .. } => "greedy",
            Self::Constant { .. } => "constant",
            Self::OnOff { .. } => "on-off",
            Self::Web { .. } => "web",
            Self::Udp { .. } => "udp",
            Self::Call {} => "call",
        }
    }

    /// What it is called in a sentence.
    #[must_use]
    pub fn title(&self) -> &'static str {
        match self {
            Self::Greedy { .. } => "a greedy flow",
            Self::Constant { .. } => "a live stream",
            Self::OnOff { .. } => "a flow with pauses",
            Self::Web { .. } => "web traffic",
            Self::Udp { .. } => "a stream of datagrams",
            Self::Call {} => "a call",
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
    /// From when on the contender works, s, where its servers need more time to start than the
    /// scale leaves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_s: Option<f64>,
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
