//! What a congestion control sees of its connection, and what it sets. Windows are
//! segments, as in Linux.

use std::time::Duration;

use crate::packet::SEGMENT;

/// The window to begin with (RFC 6928), segments.
pub(crate) const INITIAL_WINDOW: f64 = 10.0;

/// What Linux hands to a device at once at most, bytes.
const LONGEST_BURST: f64 = 64_000.0;

/// Added to a millisecond of the rate on a path without a delay, bytes; half of that for
/// each 0.5 ms of the round-trip time (`tcp_tso_autosize`).
const SHORT_PATH_BURST: u32 = 65_536;

/// Whether the window is being reduced (`enum tcp_ca_state`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nothing is wrong.
    Open,
    /// Packets were marked.
    Reduction,
    /// Packets were lost.
    Recovery,
    /// A timer has expired.
    Loss,
}

/// The state that a sender and its congestion control share.
#[derive(Debug, Clone)]
pub(crate) struct CongestionState {
    pub(crate) now: Duration,
    pub(crate) window: f64,
    /// Slow start ends here; infinite before the first loss.
    pub(crate) threshold: f64,
    pub(crate) phase: Phase,
    /// The first byte that is not acknowledged.
    pub(crate) acknowledged: u64,
    /// The next byte to be sent for the first time.
    pub(crate) next: u64,
    /// Smoothed round-trip time (RFC 6298), s; 0 before the first sample.
    pub(crate) rtt: f64,
    /// The least; `Duration::MAX` before the first sample.
    pub(crate) min_rtt: Duration,
    pub(crate) in_flight: f64,
    /// Segments that are not acknowledged, lost ones too.
    pub(crate) outstanding: u32,
    /// Most of those in the last round trip.
    pub(crate) max_outstanding: u32,
    /// Whether the window kept segments back in the last round trip.
    pub(crate) is_window_limited: bool,
    /// Segments that have arrived.
    pub(crate) delivered: u64,
    /// Rate that the control asks for, byte/s.
    pub(crate) pacing: Option<f64>,
    /// The least number of segments that leave together.
    pub(crate) min_burst: u32,
    /// The window that the receiver offers, bytes.
    pub(crate) offered: u64,
    /// Whether something has arrived beyond what is missing.
    pub(crate) has_hole: bool,
}

impl CongestionState {
    /// Whether nothing is being repaired.
    pub(crate) fn is_calm(&self) -> bool {
        matches!(self.phase, Phase::Open | Phase::Reduction)
    }

    pub(crate) fn new() -> Self {
        Self {
            now: Duration::ZERO,
            window: INITIAL_WINDOW,
            threshold: f64::INFINITY,
            phase: Phase::Open,
            acknowledged: 0,
            next: 0,
            rtt: 0.0,
            min_rtt: Duration::MAX,
            in_flight: 0.0,
            outstanding: 0,
            max_outstanding: 0,
            is_window_limited: false,
            delivered: 0,
            pacing: None,
            min_burst: 2,
            offered: 0,
            has_hole: false,
        }
    }

    pub(crate) fn is_slow_start(&self) -> bool {
        self.window < self.threshold
    }

    /// Whether the window is used enough to grow (RFC 7661; `tcp_is_cwnd_limited`).
    pub(crate) fn may_grow(&self) -> bool {
        let is_used = self.window < 2.0 * f64::from(self.max_outstanding);
        self.is_window_limited || self.is_slow_start() && is_used
    }

    /// Grows by a segment for each that was acknowledged, up to the threshold; returns
    /// how many are left (RFC 5681).
    pub(crate) fn slow_start(&mut self, acknowledged: f64) -> f64 {
        let window = (self.window + acknowledged).min(self.threshold);
        let used = window - self.window;
        self.window = window;
        acknowledged - used
    }

    /// Segments that leave together: a millisecond of the rate (`tcp_tso_autosize`).
    pub(crate) fn burst(&self) -> u32 {
        let rate = self.pacing.unwrap_or_else(|| {
            let is_early = self.window < self.threshold / 2.0;
            let factor = if is_early { 2.0 } else { 1.2 };
            let window = self.window.max(f64::from(self.outstanding));
            factor * window * SEGMENT as f64 / self.rtt.max(1e-6)
        });
        let shift = self.min_rtt.as_micros() >> 9;
        let more = match u32::try_from(shift) {
            Ok(shift) if shift < 32 => SHORT_PATH_BURST >> shift,
            _ => 0,
        };
        let bytes = (rate / 1024.0 + f64::from(more)).min(LONGEST_BURST);
        ((bytes / SEGMENT as f64) as u32).clamp(self.min_burst, 44)
    }
}

/// What an acknowledgement tells.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Acknowledged {
    /// Segments that have arrived now, in order or not.
    pub(crate) segments: u32,
    /// Of the newest of them, unless one was sent twice.
    pub(crate) rtt: Option<Duration>,
    /// Segments in flight before it.
    pub(crate) prior_in_flight: f64,
    /// One-way delay.
    pub(crate) delay: Duration,
    /// The receiver's clock when it answered less that of the sender when it sent the oldest
    /// packet that is acknowledged now (RFC 7323), ms: with the time for which the answer was
    /// delayed. `None` if that was sent twice.
    pub(crate) echoed_ms: Option<u32>,
    /// Rate of delivery, byte/s with headers (draft-cheng-iccrg-delivery-rate-estimation).
    pub(crate) rate: Option<f64>,
    /// Whether the application kept that rate low.
    pub(crate) is_application_limited: bool,
    /// Segments that are taken for lost now.
    pub(crate) lost: u32,
    /// Segments that had been delivered when the newest one left.
    pub(crate) delivered_before: u64,
}
