//! The sender lever: from w to the rate at which this machine sends.
//!
//! [`SenderLevers::open`] takes the best lever that the machine allows:
//! - a congestion control of FAIRBAT's own with parameters for each socket,
//!   which root loads once ([`crate::ebpf::WeightedCongestion`]);
//! - a limit on the rate of the packets ([`Pacer`]);
//! - a congestion control of the kernel that yields by itself ([`stock`]). It
//!   has no weight, so it serves at the smallest weight only; above it nothing
//!   holds the flow back.
//!
//! This room knows connections and weights. It knows neither deadlines nor
//! what is sent.

mod levers;
mod pacing;
pub mod stock;

use serde::Serialize;

pub use self::levers::{SenderLever, SenderLevers};
pub use self::pacing::{DeliveredBytes, Pacer, PacingTarget};
pub use self::stock::KernelCongestionControls;
use crate::ebpf::CongestionLaw;
pub use crate::ebpf::SenderCoupling;

/// Which of FAIRBAT's congestion controls to use, if they are set up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SenderPolicy {
    /// The rules of the receive window: fills an idle path with a short queue, and yields.
    #[default]
    Vegas,
    /// CDG: backs off when delays grow, the sooner the smaller w is.
    Cdg,
    /// CUBIC that meets congestion signals 1/w times as often.
    Cubic,
}

impl SenderPolicy {
    /// As it is written in flags and events.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Vegas => "vegas",
            Self::Cdg => "cdg",
            Self::Cubic => "cubic",
        }
    }

    /// The law that the congestion control follows under it.
    #[must_use]
    pub fn law(self) -> CongestionLaw {
        match self {
            Self::Vegas => CongestionLaw::Vegas,
            Self::Cdg => CongestionLaw::Cdg,
            Self::Cubic => CongestionLaw::CubicPhantom,
        }
    }
}

/// The levers on the data that this machine sends, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum SenderLeverKind {
    /// A congestion control of our own.
    #[serde(rename = "congestion-control")]
    Congestion,
    /// A limit on the rate of the packets.
    #[serde(rename = "pacing")]
    Pacing,
    /// The kernel's own congestion control that yields, while a flow does.
    #[serde(rename = "stock-congestion-control")]
    Stock,
    /// Nothing: packets are only marked Lower-Effort (RFC 8622), where that
    /// works.
    #[serde(rename = "dscp-le")]
    Mark,
}

impl SenderLeverKind {
    /// The best kind on a machine: with FAIRBAT's own congestion controls
    /// (`has_own`), with limits on the rate (`paces`), and with these congestion
    /// controls of the kernel.
    pub(crate) fn best(has_own: bool, paces: bool, allowed: &[String]) -> Self {
        if has_own {
            Self::Congestion
        } else if paces {
            Self::Pacing
        } else if stock::choose_yielding(allowed).is_some() {
            Self::Stock
        } else {
            Self::Mark
        }
    }

    /// As it is written in events.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Congestion => "congestion-control",
            Self::Pacing => "pacing",
            Self::Stock => "stock-congestion-control",
            Self::Mark => "dscp-le",
        }
    }

    /// What an upload does under it, in a few words.
    #[must_use]
    pub fn brief(self) -> &'static str {
        match self {
            Self::Congestion => "yields to other traffic by its congestion control",
            Self::Pacing => "yields to other traffic by the rate of its packets",
            Self::Stock => "yields to other traffic by a congestion control of the kernel's",
            Self::Mark => "does not yield, packets are only marked Lower-Effort (RFC 8622)",
        }
    }

    /// The meaning for the flows, and the reason, in plain words.
    #[must_use]
    pub fn explanation(self) -> &'static str {
        match self {
            Self::Congestion => {
                "An upload uses FAIRBAT's own congestion control, because root has run fairbat \
                 setup. It fills an idle path with a short queue, and yields to other traffic. \
                 The closer the deadline, the less it yields."
            }
            Self::Pacing => {
                "An upload limits the rate of its packets, by what the kernel reports of the \
                 connection. So it yields to other traffic. The closer the deadline, the less it \
                 yields. This needs no privilege."
            }
            Self::Stock => {
                "An upload uses a congestion control of the kernel that yields to other traffic. \
                 When the deadline needs more, it becomes an ordinary connection. This needs no \
                 privilege."
            }
            Self::Mark => {
                "Uploads do not yield: each takes its share like any other connection. Only their \
                 packets are marked Lower-Effort (RFC 8622), where that works."
            }
        }
    }
}
