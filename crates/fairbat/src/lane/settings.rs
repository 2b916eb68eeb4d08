//! What a lane may be told, and the modes of its control.

use std::time::Duration;

use dalbe::weight::{ControllerPolicy, MIN_WEIGHT, WeightController};
use jiff::Timestamp;

use super::admission::AdmissionSettings;
use super::load::WeightSource;

/// How a transfer is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// *By deadline*: this soft one.
    ByDeadline(Timestamp),
    /// *Stream*: one of those without a deadline that keep arriving. Each of them has one
    /// ordinary connection, when FAIRBAT's m allows it.
    Stream,
    /// *Scavenge*: it takes what others leave.
    Scavenge,
}

impl Service {
    /// That of a transfer with this deadline, if it has one, which is not one of a stream.
    #[must_use]
    pub fn of_batch(deadline: Option<Timestamp>) -> Self {
        deadline.map_or(Self::Scavenge, Self::ByDeadline)
    }

    /// The soft deadline.
    #[must_use]
    pub fn deadline(self) -> Option<Timestamp> {
        match self {
            Self::ByDeadline(deadline) => Some(deadline),
            Self::Stream | Self::Scavenge => None,
        }
    }
}

/// Limits of a lane.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LaneSettings {
    /// m_max: the lane never uses more connections than these; at least 1.
    pub max_connections: u32,
    /// w_min: the lane has at least this weight, 0.02 to 1.
    pub weight: f64,
    /// The lane weighs at most as much as so many ordinary connections; at least 1.
    pub max_weight: u32,
    /// Limit on the rate of all members together, byte/s. The lane demands no more.
    /// The transport has to keep to it.
    pub limit_rate: Option<u64>,
    /// Whether a lever can make flows yield. Without one they weigh 1.
    pub is_held: bool,
    /// What raises the weight for a deadline.
    pub controller: ControllerPolicy,
    /// The law for the transfers of a stream; its m_max follows from `max_connections`.
    pub stream: AdmissionSettings,
}

impl LaneSettings {
    /// A lane that no lever holds, with this m_max and otherwise the defaults of `fairbat get`.
    #[must_use]
    pub const fn new(max_connections: u32) -> Self {
        Self {
            max_connections,
            weight: MIN_WEIGHT,
            max_weight: 1,
            limit_rate: None,
            is_held: false,
            controller: ControllerPolicy::Share,
            stream: AdmissionSettings::stream(),
        }
    }

    /// So many of the connections that are not of a stream may weigh as much as an ordinary
    /// one. Those of a lane that never yields all do.
    pub(crate) fn carriers(&self) -> u32 {
        if self.weight >= 1.0 {
            u32::MAX
        } else {
            self.max_weight
        }
    }

    /// The least weight of connections, where a lever holds them.
    pub(crate) fn held_weight(&self) -> Option<f64> {
        self.is_held.then_some(self.weight)
    }

    /// What decides the weight of connections that are not of a stream.
    pub(crate) fn weight_source(&self) -> WeightSource {
        self.held_weight().map_or(WeightSource::Unheld, |w_min| {
            WeightSource::Deadlines(WeightController::new(self.controller, w_min))
        })
    }

    /// The weight of a connection of the stream that yields, where one can.
    pub(crate) fn yielding_weight(&self) -> Option<f64> {
        self.held_weight().filter(|w_min| *w_min < 1.0)
    }

    /// The law of its stream.
    ///
    /// In a shared lane, the stream leaves one of several connections to the others: its
    /// transfers are never cut, and may take hours. And where none can yield, it has at least
    /// one, so that an idle link is used.
    pub(crate) fn stream_law(&self, mode: Mode) -> AdmissionSettings {
        let (mut m_min, mut m_max) = (self.stream.m_min, self.max_connections);
        if mode.is_shared() {
            m_max -= u32::from(m_max > 1);
            if self.yielding_weight().is_none() {
                m_min = m_min.max(1.0);
            }
        }
        AdmissionSettings {
            m_min: m_min.min(f64::from(m_max)),
            m_max,
            ..self.stream
        }
    }
}

/// How a lane controls its connections.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Mode {
    /// One batch of transfers. *By deadline* where there is one: w carries the load up
    /// to one best-effort flow, m what is missing then. Without any deadline it
    /// *scavenges*: w_min, and m_min connections.
    Batch {
        /// m_min; at least 1.
        min_connections: u32,
        /// Time to the nearest deadline, if there is one.
        window: Option<Duration>,
    },
    /// *Stream* alone: transfers without a deadline keep arriving. m follows the real queue
    /// (FAIRBAT's own case), and the lever acts only while m is below one.
    Stream,
    /// Transfers of any kind share the lane, as in the agent. Those of a stream have an m of
    /// their own; of those that scavenge, every inactive chunk counts.
    Shared,
    /// One upload by one request: w alone, every second.
    SingleConnection,
}

impl Mode {
    /// Whether transfers that know nothing of each other share the lane.
    pub(crate) fn is_shared(self) -> bool {
        self == Self::Shared
    }
}
