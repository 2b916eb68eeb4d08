//! What the policies and what is built on them take for granted alike.

use std::time::Duration;

use crate::socket::TcpInfo;

/// Round-trip times are known to a tick of the timestamp clock (Linux).
pub(super) const TICK: Duration = Duration::from_millis(1);

/// Least window, segments: with less, a delayed acknowledgement stops the
/// sender (RFC 9840 section 4.2.2 uses the same floor).
pub(super) const FLOOR: f64 = 2.0;

/// Window to begin with, bytes: what Linux offers at the handshake and cannot
/// take back.
pub(super) const INITIAL: f64 = 65_536.0;

/// A window of which less than this share is used does not limit the flow, and
/// its delay says little of it.
pub(super) const USED: f64 = 0.6;

/// A delay above the base that is no longer than this is no queue: so long,
/// s, ...
pub(super) const SHORT: f64 = 0.0015;
/// ... and this share of the base (clock ticks and jitter grow with the path).
const SHORT_SHARE: f64 = 0.01;

/// A delay in which nothing at all is to be seen of a queue: this long, s, ...
const NONE: f64 = 0.0008;
/// ... and this share of the base.
const NONE_SHARE: f64 = 0.004;

/// Below this delay, s, over this base, s, the path is seen without a queue.
pub(super) fn no_queue(base: f64) -> f64 {
    NONE + NONE_SHARE * base
}

/// The longest delay that is no queue, s, over this base, s.
pub(super) fn short_queue(base: f64) -> f64 {
    SHORT + SHORT_SHARE * base
}

/// Hardly any link has segments as large as this, bytes, but loopback (jumbo
/// frames have up to 9 KiB).
const LOOPBACK: u32 = 16_384;

/// Largest segment that the sender is known to send, bytes. Over loopback
/// Linux gathers what an application writes into segments of half the largest
/// window it was ever offered, whatever has come before, and sends none that
/// does not fit (RFC 9293 section 3.8.6.2.1).
pub(super) fn segment(info: &TcpInfo) -> f64 {
    let seen = f64::from(info.rcv_mss);
    if info.advmss > LOOPBACK {
        seen.max(f64::from(info.advmss).min(INITIAL / 2.0))
    } else {
        seen
    }
}

#[cfg(test)]
mod tests {
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
        assert_eq!(segment(&told(536, 65_483)), 32_768.0);
        assert_eq!(segment(&told(6_611, 65_483)), 32_768.0);
        assert_eq!(segment(&told(65_483, 65_483)), 65_483.0);
        assert_eq!(segment(&told(4_096, 17_000)), 17_000.0);
    }

    #[test]
    fn over_a_link_a_segment_is_what_has_come() {
        assert_eq!(segment(&told(1_448, 1_448)), 1_448.0);
        assert_eq!(segment(&told(1_400, 8_948)), 1_400.0);
    }
}
