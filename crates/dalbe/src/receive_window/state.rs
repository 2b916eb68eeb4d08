//! What a window does to a flow, as people are told.

use std::time::Duration;

use serde::Serialize;

use super::rounds::MIN_LOST_SEGMENTS;
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

/// The path limits a flow if its window does in more than this share of the samples of a period.
const LIMITS_SHARE: f64 = 0.5;

/// So many samples of a period that is cut short tell what limited it.
const MIN_SAMPLES: u32 = 10;

/// What a sample shows of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WindowEffect {
    /// Whether it is what limits the flow.
    pub(crate) limits: bool,
    /// Segments received out of order since the connection was opened.
    pub(crate) out_of_order: u32,
    /// Whether it does so beside other traffic.
    pub(crate) holds: bool,
}

/// Tells [`ReceiveWindowState::Yielding`] from [`ReceiveWindowState::Filling`], and whether the
/// path or the server limits a flow. A flow yields if the window limited it in the last second
/// beside other traffic, and it carries clearly less than before. A flow that found the link busy
/// from the start cannot tell how much it gives up.
#[derive(Debug, Clone, Default)]
pub(crate) struct YieldDetector {
    /// The highest recent rate of the flow.
    max_rate: CapacityEstimate,
    /// Bytes at the last sample.
    bytes: Option<u64>,
    /// When the present period began, and the bytes then.
    period: Option<(Duration, u64)>,
    /// Samples in the present period, those in which the window limited the flow, and those
    /// in which it did beside other traffic.
    samples: u32,
    limiting: u32,
    holding: u32,
    is_yielding: bool,
    /// Segments out of order up to the last period that was judged, and up to now.
    out_of_order_before: u32,
    out_of_order: u32,
    is_path_limited: bool,
}

impl YieldDetector {
    /// The connection has received `bytes` since it was opened.
    pub(crate) fn update(&mut self, now: Duration, bytes: u64, effect: WindowEffect) {
        let more = bytes.saturating_sub(*self.bytes.get_or_insert(bytes));
        self.bytes = Some(bytes);
        self.max_rate.record(now, more);
        self.out_of_order = effect.out_of_order;
        self.samples += 1;
        self.limiting += u32::from(effect.limits);
        self.holding += u32::from(effect.holds);
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
        self.judge();
        self.begin_period(Some((now, bytes)));
    }

    /// Skips data that does not count: the flow is not held back, or the next response
    /// is awaited.
    pub(crate) fn pause(&mut self, bytes: u64) {
        // What ends may be all that there is of a short response.
        if self.samples >= MIN_SAMPLES {
            self.judge();
        }
        self.bytes = Some(bytes);
        self.begin_period(None);
    }

    pub(crate) fn is_yielding(&self) -> bool {
        self.is_yielding
    }

    /// Begins a period at this moment, with so many bytes; `None` if the next sample does.
    fn begin_period(&mut self, period: Option<(Duration, u64)>) {
        self.period = period;
        (self.samples, self.limiting, self.holding) = (0, 0, 0);
    }

    /// The period is over: whether the path limited the flow in it.
    fn judge(&mut self) {
        let is_limited = f64::from(self.limiting) > LIMITS_SHARE * f64::from(self.samples);
        let late = self.out_of_order.wrapping_sub(self.out_of_order_before);
        let is_lost = late >= MIN_LOST_SEGMENTS;
        self.is_path_limited = is_lost || is_limited;
        self.out_of_order_before = self.out_of_order;
    }

    /// Whether the path limited the flow in the last period, and not its server: its window did,
    /// or data was lost.
    pub(crate) fn is_path_limited(&self) -> bool {
        self.is_path_limited
    }
}
