//! What a lane may be told, and the modes of its control.

use std::time::Duration;

use dalbe::weight::FlowTarget;

use super::admission::AdmissionSettings;

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
    /// *Stream*: transfers without a deadline keep arriving. m follows the real queue
    /// (FAIRBAT's own case), and the lever acts only while m is below one.
    Stream(AdmissionSettings),
    /// Transfers of any kind share the lane, as in the agent: by deadline for those
    /// with one, and every inactive chunk of the others counts.
    Shared,
    /// One upload by one request: w alone, every second.
    SingleConnection,
}

impl Mode {
    /// Whether transfers that know nothing of each other share the lane.
    pub(crate) fn is_shared(self) -> bool {
        self == Self::Shared
    }

    /// How many ordinary connections a lane may weigh as much as. A stream has as many
    /// as its law says, and one that never yields is not coupled.
    pub(crate) fn max_weight(self, settings: &LaneSettings) -> u32 {
        match self {
            Self::Stream(_) => u32::MAX,
            _ if settings.weight >= 1.0 => u32::MAX,
            _ => settings.max_weight,
        }
    }

    /// What flows do before the first sample, with this w_min.
    pub(crate) fn first_target(self, w_min: f64) -> FlowTarget {
        match self {
            // m starts with one whole connection.
            Self::Stream(_) => FlowTarget::FREE,
            _ => FlowTarget {
                w: w_min,
                capacity: 0.0,
            },
        }
    }
}
