//! The ways of a transfer: its sources over the paths of the run. No I/O.
//!
//! A failure is one of a way: the same source may answer over another path, and another source over
//! the same one.

use std::time::Duration;

use super::pieces::{ChunkSizer, FinishedChunk};
use crate::arrival::{INITIAL_WINDOW, WayState};
use crate::lane::Member;
use crate::retry::Backoff;
use crate::settings::RetrySettings;

/// Round-trip time that is reckoned with while none has been measured.
const UNKNOWN_RTT: Duration = Duration::from_millis(100);

/// Rate that is reckoned with while none has been measured, byte/s: 100 Mbit/s. Without one, a way
/// that has just begun would seem to bring everything at once.
const UNKNOWN_RATE: f64 = 12.5e6;

/// Names a way of a transfer: which of its sources, and which of the run's paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct WayId {
    pub(crate) source: usize,
    pub(crate) path: usize,
}

/// A source over a path.
#[derive(Debug)]
pub(crate) struct Way {
    pub(crate) id: WayId,
    /// Its place in the lane of the path.
    pub(crate) member: Member,
    pub(crate) tries: Tries,
    /// Whether it has failed as often as it may.
    pub(crate) is_exhausted: bool,
}

/// Failures in a row of a source, or of one of its ways.
#[derive(Debug, Clone)]
pub(crate) struct Tries {
    pub(crate) backoff: Backoff,
    /// It is not tried again before this.
    pub(crate) not_before: Duration,
}

impl Tries {
    /// Nothing has failed yet.
    pub(crate) fn new(retry: RetrySettings) -> Self {
        Self {
            backoff: Backoff::new(retry),
            not_before: Duration::ZERO,
        }
    }
}

impl Way {
    pub(crate) fn new(id: WayId, member: Member, tries: Tries) -> Self {
        Self {
            id,
            member,
            tries,
            is_exhausted: false,
        }
    }

    /// Forgets failures: bytes have arrived, and they stay.
    pub(crate) fn progress(&mut self) {
        self.tries.backoff.progress();
        self.is_exhausted = false;
    }

    /// Begins anew, as if nothing had failed but these.
    pub(crate) fn renew(&mut self, tries: Tries) {
        self.tries = tries;
        self.is_exhausted = false;
    }

    /// When it may be tried: after its own failures, and what its host has asked for unless the
    /// lane's queue waits for that.
    pub(crate) fn not_before(&self, waits_for_host: bool) -> Duration {
        let host = match waits_for_host {
            true => self.member.host_not_before(),
            false => None,
        };
        self.tries.not_before.max(host.unwrap_or_default())
    }
}

/// What has been measured of the connections to one host over one path.
#[derive(Debug, Clone)]
pub(crate) struct WayMeter {
    pub(crate) sizer: ChunkSizer,
    /// The least round-trip time, which leaves out queues.
    pub(crate) rtt: Option<Duration>,
}

impl WayMeter {
    pub(crate) fn new(sizer: ChunkSizer) -> Self {
        Self { sizer, rtt: None }
    }

    /// Learns from a finished chunk.
    pub(crate) fn finished(&mut self, chunk: FinishedChunk) {
        self.sizer.finished(chunk);
    }

    pub(crate) fn note_rtt(&mut self, rtt: Duration) {
        self.rtt = Some(self.rtt.map_or(rtt, |known| known.min(rtt)));
    }
}

/// A way for a prediction, of which so much is known. `queued` bytes come first.
///
/// A receiver does not see the sender's window. What has come per round trip stands for it, and is
/// taken for all that comes: a way that is still in slow start is underrated until its next chunk.
pub(crate) fn state(known_rtt: Option<Duration>, rate: Option<f64>, queued: u64) -> WayState {
    let rtt = known_rtt.unwrap_or(UNKNOWN_RTT);
    let window = rate.map_or(INITIAL_WINDOW, |rate| rate * rtt.as_secs_f64());
    WayState {
        rtt,
        window,
        threshold: if rate.is_some() {
            window
        } else {
            f64::INFINITY
        },
        max_rate: rate.unwrap_or(UNKNOWN_RATE),
        queued: queued as f64,
        // The request, and before the first one the connection.
        round_trips: if known_rtt.is_some() { 1.0 } else { 2.0 },
    }
}
