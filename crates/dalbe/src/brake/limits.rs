//! What the policies and what is built on them take for granted alike.

use std::time::Duration;

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
