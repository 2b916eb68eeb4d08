//! The receiver lever: from w to the receive window of a download.
//!
//! A download can only be slowed from its own end, by the receive window. A
//! window per round trip is a rate. [`ReceiveWindowLimiter`] computes the
//! window, [`WindowLever`] sets it on a socket.
//!
//! - `limiter`: the window of one connection, from two candidates.
//! - `policy`: the rule for a flow that yields: `yielding` (with `history` and
//!   `growth`) or [`vulture`].
//! - `bottleneck`: an active test of the rate of the bottleneck.
//! - `pause`: pauses between reads, for less than the smallest window.
//! - `delays`: the queueing delay; `arrivals`: what the observer reports.
//! - `stale`: when a new connection would be faster; [`ConnectionRenewals`]:
//!   how often one may be tried.
//! - `lever`: the window on a socket.
//!
//! This room knows neither deadlines nor where w comes from. This file holds
//! the sample and the constants that several of the files share.

mod arrivals;
mod bottleneck;
mod delays;
mod history;
mod lever;
mod limiter;
mod pause;
mod policy;
mod renewals;
mod stale;
mod vulture;
mod yielding;

use std::time::Duration;

pub(crate) use self::arrivals::PacketArrivals;
pub use self::lever::{PathMemory, WindowLever, WindowOffer, WindowSettings};
pub(crate) use self::limiter::ReceiveWindowLimiter;
pub use self::limiter::{HELD_BACK_SHARE, ReceiveWindowState};
pub use self::policy::ReceiverPolicy;
pub use self::renewals::ConnectionRenewals;
use crate::socket::TcpInfo;

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
    /// What the path carries without other traffic, byte/s; 0 while it is
    /// unknown.
    pub(crate) capacity: f64,
    /// The part of the capacity that is filled fast when the path becomes free,
    /// 0 to 1. At 0, fast growth ends at the threshold.
    pub(crate) eagerness: f64,
}

/// Segments of this size are assumed until the kernel knows better, bytes
/// (RFC 9293, section 3.7.1).
pub(crate) const MIN_SEGMENT: u32 = 536;

/// Round-trip times are known to a tick of the timestamp clock (Linux).
pub(crate) const TIMESTAMP_TICK: Duration = Duration::from_millis(1);

/// Least window, segments: with less, a delayed acknowledgement stops the
/// sender (RFC 9840 section 4.2.2 uses the same floor).
pub(crate) const MIN_WINDOW_SEGMENTS: f64 = 2.0;

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

/// A delay in which nothing at all is to be seen of a queue: this long, s, ...
const NO_QUEUE: f64 = 0.0008;
/// ... and this share of the base.
const NO_QUEUE_SHARE: f64 = 0.004;

/// Below this delay, s, over this base, s, the path is seen without a queue.
pub(crate) fn no_queue(base: f64) -> f64 {
    NO_QUEUE + NO_QUEUE_SHARE * base
}

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
    let seen = f64::from(info.rcv_mss);
    if info.advmss > MIN_LOOPBACK_SEGMENT {
        seen.max(f64::from(info.advmss).min(INITIAL_WINDOW / 2.0))
    } else {
        seen
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
    fn over_loopback_a_segment_is_what_the_sender_may_gather() {
        assert_eq!(largest_segment(&told(536, 65_483)), 32_768.0);
        assert_eq!(largest_segment(&told(6_611, 65_483)), 32_768.0);
        assert_eq!(largest_segment(&told(65_483, 65_483)), 65_483.0);
        assert_eq!(largest_segment(&told(4_096, 17_000)), 17_000.0);
    }

    #[test]
    fn over_a_link_a_segment_is_what_has_come() {
        assert_eq!(largest_segment(&told(1_448, 1_448)), 1_448.0);
        assert_eq!(largest_segment(&told(1_400, 8_948)), 1_400.0);
    }
}
