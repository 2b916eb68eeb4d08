//! What a window does to a flow, as people are told.

use std::time::Duration;

use serde::Serialize;

use crate::weight::CapacityEstimate;

/// The rate is measured, and other traffic counts, over this time.
const STATE_PERIOD: Duration = Duration::from_secs(1);

/// Below this share of its highest recent rate, a flow is held back. The
/// search for the link's rate costs less than the rest.
pub const HELD_BACK_SHARE: f64 = 0.8;

/// Yielding begins when the window limits the flow beside other traffic in more
/// than this share of the samples of a period. A short queue of its own causes
/// less.
const YIELD_BEGINS_SHARE: f64 = 0.5;
/// Yielding goes on above this share: beside a stream the queue comes and goes.
const YIELD_STAYS_SHARE: f64 = 0.1;

/// Whether the window limits a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReceiveWindowState {
    /// It does not: w is 1.
    Free,
    /// It keeps the queue short, and there is no other traffic, or it leaves
    /// the flow as much as before.
    Filling,
    /// It holds the flow back for other traffic.
    Yielding,
}

/// Tells [`ReceiveWindowState::Yielding`] from [`ReceiveWindowState::Filling`].
/// A flow yields if the window limited it in the last second beside other
/// traffic, and it carries clearly less than before. A flow that found the link
/// busy from the start cannot tell how much it gives up.
#[derive(Debug, Clone, Default)]
pub(crate) struct YieldDetector {
    /// The highest recent rate of the flow.
    max_rate: CapacityEstimate,
    /// Bytes at the last sample.
    bytes: Option<u64>,
    /// When the present period began, and the bytes then.
    period: Option<(Duration, u64)>,
    /// Samples in the present period, and those in which the window held the flow
    /// back beside other traffic.
    samples: u32,
    holding: u32,
    is_yielding: bool,
}

impl YieldDetector {
    /// The connection has received `bytes` since it was opened; `holds` if the
    /// window holds it back now, and other traffic is to be detected.
    pub(crate) fn update(&mut self, now: Duration, bytes: u64, holds: bool) {
        let more = bytes.saturating_sub(*self.bytes.get_or_insert(bytes));
        self.bytes = Some(bytes);
        self.max_rate.record(now, more);
        self.samples += 1;
        self.holding += u32::from(holds);
        let &mut (began, before) = self.period.get_or_insert((now, bytes));
        let elapsed = now.saturating_sub(began);
        if elapsed < STATE_PERIOD {
            return;
        }
        let rate = bytes.saturating_sub(before) as f64 / elapsed.as_secs_f64();
        let enough = if self.is_yielding {
            YIELD_STAYS_SHARE
        } else {
            YIELD_BEGINS_SHARE
        };
        let holds = f64::from(self.holding) > enough * f64::from(self.samples);
        self.is_yielding = holds && rate < HELD_BACK_SHARE * self.max_rate.rate(now);
        (self.samples, self.holding) = (0, 0);
        self.period = Some((now, bytes));
    }

    /// Skips data that does not count: the flow is not held back, or the next response
    /// is awaited.
    pub(crate) fn pause(&mut self, bytes: u64) {
        self.bytes = Some(bytes);
        self.period = None;
        (self.samples, self.holding) = (0, 0);
    }

    pub(crate) fn is_yielding(&self) -> bool {
        self.is_yielding
    }
}
