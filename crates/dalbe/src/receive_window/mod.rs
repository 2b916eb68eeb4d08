//! The receiver lever: from w to the receive window of a download.
//!
//! A download can only be slowed from its own end, by the receive window. A
//! window per round trip is a rate. `limiter` computes the window, [`WindowLever`]
//! sets it on a socket.
//!
//! - `limiter`: the window of one connection, from two candidates.
//! - `policy`: the rule for a flow that yields: `yielding` (with `levels`, `knock`,
//!   `depth` and `variation`) or `vulture`.
//! - `coupling`: one `yielding` for all connections over a path.
//! - `bottleneck`: an active test of the rate of the bottleneck; `bottleneck_kind`: the
//!   kind of queue that it has, by `bottleneck_evidence`.
//! - `rounds`: what each round trip has shown; `bursts`: whether packets come in bursts.
//! - `pause`: pauses between reads, for less than the smallest window.
//! - `shutter`: the same where another program reads.
//! - `receiver_rtt`: which of the kernel's round-trip times tell of the path; `delays`: the
//!   queueing delay by them; `arrivals`: what is reported of packets.
//! - `stale`: when a new connection would be faster, and how often one may be
//!   tried.
//! - `state`: what the window does to the flow, as people are told.
//! - `lever`: the window on a socket.
//!
//! This room knows neither deadlines nor where w comes from. This file holds the
//! kinds of levers, and the sample and the constants that several files share.

mod arrivals;
mod bottleneck;
mod bottleneck_evidence;
mod bottleneck_kind;
mod bursts;
mod coupling;
mod delays;
mod lever;
mod limiter;
mod pause;
mod policy;
mod receiver_rtt;
mod response_start;
mod rounds;
mod shutter;
mod stale;
mod state;
mod vulture;
mod yielding;

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

pub(crate) use self::arrivals::PacketArrivals;
pub use self::bottleneck_kind::{BottleneckKind, PathFindings};
pub use self::bursts::ArrivalWatch;
pub use self::coupling::WindowGroup;
pub use self::lever::{ReceivingConnection, WindowLever, WindowOffer, WindowSettings};
pub use self::limiter::{PathMemory, ReceiveWindowLimiter};
pub use self::policy::ReceiverPolicy;
pub use self::stale::ConnectionRenewals;
pub use self::state::{HELD_BACK_SHARE, ReceiveWindowState};
use crate::ebpf::Observer;
use crate::socket::TcpInfo;
pub(crate) use delays::MinFilter;

/// What makes the downloads of this machine yield to others, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeverKind {
    /// As [`LeverKind::ReceiveWindow`], by what the observer sees of each packet
    /// ([`crate::ebpf`]).
    ObservedReceiveWindow,
    /// Downloads yield by their receive window.
    ReceiveWindow,
    /// Our packets are marked Lower-Effort (RFC 8622). Downloads do not yield.
    DscpLe,
    /// Not even the mark can be set.
    None,
}

impl LeverKind {
    /// Whether the receive window of a download is held.
    #[must_use]
    pub fn holds_window(self) -> bool {
        matches!(self, Self::ObservedReceiveWindow | Self::ReceiveWindow)
    }

    /// The observer, for a lever that has one; `None` if it is gone.
    #[must_use]
    pub fn observer(self) -> Option<Arc<Observer>> {
        match self {
            Self::ObservedReceiveWindow => Observer::open().ok().map(Arc::new),
            Self::ReceiveWindow | Self::DscpLe | Self::None => None,
        }
    }

    /// The meaning for the flows, and the reason, in plain words.
    #[must_use]
    pub fn explanation(self) -> &'static str {
        match self {
            Self::ObservedReceiveWindow => {
                "A download yields to other traffic. It offers its server only the window that \
                 the path carries without a queue. The closer the deadline, the less it yields. \
                 The kernel also reports when each packet was sent and when it arrived, because \
                 root has run fairbat setup."
            }
            Self::ReceiveWindow => {
                "A download yields to other traffic. It offers its server only the window that \
                 the path carries without a queue. The closer the deadline, the less it yields. \
                 This needs no privilege."
            }
            Self::DscpLe => {
                "Downloads do not yield: each takes its share like any other connection. Only \
                 the packets that this machine sends are marked Lower-Effort (RFC 8622), and \
                 routers that know the mark drop them first. This needs no privilege."
            }
            Self::None => {
                "Downloads do not yield: each takes its share like any other connection. This \
                 machine does not even allow the Lower-Effort mark on packets."
            }
        }
    }

    /// What a download does under it, in a few words.
    #[must_use]
    pub fn brief(self) -> &'static str {
        match self {
            Self::ObservedReceiveWindow => {
                "yields to other traffic by its receive window, each packet observed"
            }
            Self::ReceiveWindow => "yields to other traffic by its receive window",
            Self::DscpLe => "does not yield, packets are only marked Lower-Effort (RFC 8622)",
            Self::None => "does not yield, this machine allows no lever",
        }
    }

    /// As it is written in events.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ObservedReceiveWindow => "observed-receive-window",
            Self::ReceiveWindow => "receive-window",
            Self::DscpLe => "dscp-le",
            Self::None => "none",
        }
    }
}

/// One sample of a connection.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ConnectionSample {
    /// Round-trip time, smoothed.
    pub(crate) rtt: Duration,
    /// Round-trip time without a queue.
    pub(crate) base: Duration,
    /// Queueing delay of the data since the last sample, s; `None` if no data
    /// came.
    pub(crate) queueing: Option<f64>,
    /// Largest segment, bytes.
    pub(crate) segment: f64,
    /// Bytes received since the connection was opened.
    pub(crate) bytes: u64,
    /// Segments received out of order since the connection was opened.
    pub(crate) out_of_order: u32,
    /// By how much the base exceeds the round-trip time of the handshake, s. The
    /// handshake's packets are small, so a packet of data takes no longer than this at
    /// the bottleneck.
    pub(crate) excess: f64,
}

/// The least round-trip times that are known of a path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LeastRtt {
    /// Of segments, recently.
    pub(crate) base: Option<Duration>,
    /// Of small packets, which the kernel measures exactly.
    pub(crate) handshake: Option<Duration>,
}

impl LeastRtt {
    /// The shorter of each.
    fn or_less(self, other: Self) -> Self {
        let least = |one: Option<Duration>, other| one.into_iter().chain(other).min();
        Self {
            base: least(self.base, other.base),
            handshake: least(self.handshake, other.handshake),
        }
    }
}

/// Segments of this size are assumed until the kernel knows better, bytes
/// (RFC 9293, section 3.7.1).
pub(crate) const MIN_SEGMENT: u32 = 536;

/// Round-trip times are known to a tick of the timestamp clock (Linux).
pub(crate) const TIMESTAMP_TICK: Duration = Duration::from_millis(1);

/// Least window, segments: with less, a delayed acknowledgement stops the
/// sender (RFC 9840 section 4.2.2 uses the same floor).
pub(crate) const MIN_WINDOW_SEGMENTS: f64 = 2.0;

/// What CUBIC keeps of its window after a loss (RFC 9438, section 4.6).
pub(crate) const KEPT_AFTER_LOSS: f64 = 0.7;

/// Window to begin with, bytes: what Linux offers at the handshake and cannot
/// take back.
pub(crate) const INITIAL_WINDOW: f64 = 65_536.0;

/// A window of which less than this share is used does not limit the flow, and
/// its delay says little of it.
pub(crate) const LIMITING_SHARE: f64 = 0.6;

/// A delay above the base that is no longer than this is no queue: so long,
/// s, ...
pub(crate) const SHORT_QUEUE: f64 = 0.0015;
/// ... and this share of the base (clock ticks and jitter grow with the path).
const SHORT_QUEUE_SHARE: f64 = 0.01;

/// The longest delay that is no queue, s, over this base, s.
pub(crate) fn short_queue(base: f64) -> f64 {
    SHORT_QUEUE + SHORT_QUEUE_SHARE * base
}

/// Hardly any link has segments as large as this, bytes, but loopback (jumbo
/// frames have up to 9 KiB).
const MIN_LOOPBACK_SEGMENT: u32 = 16_384;

/// Largest segment that the sender is known to send, bytes. Over loopback
/// Linux gathers what an application writes into segments of half the largest
/// window it was ever offered, whatever has come before, and sends none that
/// does not fit (RFC 9293 section 3.8.6.2.1).
pub(crate) fn largest_segment(info: &TcpInfo) -> f64 {
    let received = f64::from(info.rcv_mss);
    if info.advmss > MIN_LOOPBACK_SEGMENT {
        received.max(f64::from(info.advmss).min(INITIAL_WINDOW / 2.0))
    } else {
        received
    }
}

#[cfg(test)]
mod limits_tests {
    use super::*;

    fn told(rcv_mss: u32, advmss: u32) -> TcpInfo {
        TcpInfo {
            rcv_mss,
            advmss,
            ..TcpInfo::parse(&[0; 240]).unwrap()
        }
    }

    #[test]
    fn a_segment_over_loopback_is_what_the_sender_may_gather() {
        assert_eq!(largest_segment(&told(536, 65_483)), 32_768.0);
        assert_eq!(largest_segment(&told(6_611, 65_483)), 32_768.0);
        assert_eq!(largest_segment(&told(65_483, 65_483)), 65_483.0);
        assert_eq!(largest_segment(&told(4_096, 17_000)), 17_000.0);
    }

    #[test]
    fn a_segment_over_a_link_is_the_largest_received() {
        assert_eq!(largest_segment(&told(1_448, 1_448)), 1_448.0);
        assert_eq!(largest_segment(&told(1_400, 8_948)), 1_400.0);
    }
}

#[cfg(test)]
mod lever_kind_tests {
    use super::*;

    #[test]
    fn a_lever_serializes_as_its_name() {
        for lever in [
            LeverKind::ObservedReceiveWindow,
            LeverKind::ReceiveWindow,
            LeverKind::DscpLe,
            LeverKind::None,
        ] {
            assert_eq!(serde_json::to_value(lever).unwrap(), lever.name());
        }
    }
}
